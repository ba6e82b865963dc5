//! Programs from files, with the names and lines that messages need.

use crate::entry::warn;
use crate::error::{Panicked, guard, in_file};
use crate::names::with_unique_names;
use crate::older;
use crate::subject::{UNCHECKED, sample_case, sample_text};
use crate::traced::without_place;
use anyhow::{Context as _, Error, Result, anyhow, bail, ensure};
use cranelift_codegen::ir::Function;
use cranelift_codegen::ir::entities::AnyEntity;
use cranelift_reader::{ParseOptions, parse_test};
use loopopt::oracle::{Call, Case, Compiled, Foreign, Pipeline, Program, Settings};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes of memory that `mem` points to in calls from files and from the command line.
const IMAGE: usize = 64 << 10;

/// A file and the program in it.
#[derive(Debug)]
pub struct Input {
    /// The name of the file, for messages.
    pub name: String,
    /// What it holds, with another name for each function after the first of one name.
    pub text: String,
    /// The program, for the first target of the file that is this machine's.
    pub program: Program,
    /// The same for the other targets that are.
    pub others: Vec<Program>,
    /// The targets that are not.
    pub foreign: Vec<Foreign>,
}

impl Input {
    /// Reads a CLIF file, or the standard input if the path is `-`. What is no file may be the name of a sample program.
    pub fn open(path: &Path) -> Result<Self> {
        let (name, text) = load(path)?;
        Self::from_text(name, text)
    }

    /// The sample program of this name.
    pub fn of_sample(name: &str) -> Result<Self> {
        let text = sample_text(name).with_context(|| format!("no sample program {name}; `list` names them all"))?;
        Self::from_text(name.to_owned(), text)
    }

    fn from_text(name: String, text: String) -> Result<Self> {
        let mut parsed = Program::parse_all(&text).map_err(|error| cannot_read(&name, &error))?;
        for (line, meant) in mistyped(&text) {
            warn(&format!("{name}:{line}: this is a comment; is `; {meant}: …` meant?"));
        }
        let program = parsed.programs.remove(0);
        Ok(Self { name, text, program, others: parsed.programs, foreign: parsed.foreign })
    }

    /// The names of the functions, without `%`.
    pub fn function_names(&self) -> Vec<String> {
        self.program.functions().iter().map(plain_name).collect()
    }

    /// The name without `%`, if there is such a function.
    pub fn require_function(&self, name: &str) -> Result<String> {
        let name = name.trim_start_matches('%').to_owned();
        let known = self.function_names();
        if known.contains(&name) {
            return Ok(name);
        }
        let known: Vec<_> = known.iter().map(|name| format!("%{name}")).collect();
        bail!("{}: there is no function %{name}; the functions of this file are {}", self.name, known.join(", "))
    }

    /// The functions that are asked for: the one of this name, or all.
    pub fn selected(&self, name: Option<&str>) -> Result<Vec<String>> {
        match name {
            Some(name) => Ok(vec![self.require_function(name)?]),
            None => Ok(self.function_names()),
        }
    }

    /// Compiles the program.
    pub fn compile(&self, pipeline: Pipeline<'_>) -> Result<Compiled> {
        self.compile_program(&self.program, pipeline)
    }

    /// Compiles one of the programs of the file. What fails without loopopt as well is reported as it fails there.
    pub fn compile_program(&self, program: &Program, pipeline: Pipeline<'_>) -> Result<Compiled> {
        let compile = |pipeline| guard(|| Compiled::new(program, pipeline, Settings::default()));
        let compiled = compile(pipeline).or_else(|error| match pipeline {
            Pipeline::LoopOpt(_) => compile(Pipeline::Speed).and(Err(error)),
            Pipeline::None | Pipeline::Speed => Err(error),
        });
        compiled.map_err(|error| cannot_compile(&self.name, &error))
    }

    /// A call from text.
    pub fn call(&self, text: &str) -> Result<Call> {
        if let Some((name, _)) = text.split_once('(') {
            self.require_function(name.trim())?;
        }
        let advice =
            "write a call as in `f(1, 0x1.8p0, mem+16)`, with the arguments that the function's signature asks for";
        self.program.parse_call(text).map_err(|error| in_file(&self.name, &error, advice))
    }

    /// The calls to compare arms on: these, or else those of the file, or those of them that are to one function. A sample
    /// program has a call of its own.
    pub fn cases(&self, function: Option<&str>, invoke: &[String]) -> Result<Vec<Case>> {
        let case = |call| Case { call, memory: image() };
        if !invoke.is_empty() {
            return invoke.iter().map(|text| self.call(text).map(case)).collect();
        }
        let names = self.selected(function)?;
        if let Some(sample) = sample_case(&self.name) {
            return Ok(vec![sample]);
        }
        let advice = "write it as in `; run: %f(1) == 2`, `; call: %f(1)` or `; bench: %f(1)`";
        let calls = calls(&self.program, &self.text).map_err(|error| in_file(&self.name, &error, advice))?;
        Ok(calls.into_iter().map(|(_, call)| call).filter(|call| names.contains(&call.function)).map(case).collect())
    }
}

/// The lines of a file.
#[derive(Debug)]
pub struct Lines<'a> {
    text: Vec<&'a str>,
    /// For each function, where its blocks and values are defined, by their names.
    entities: HashMap<String, HashMap<String, usize>>,
}

impl<'a> Lines<'a> {
    /// The lines of this text. Where blocks and values are, as far as the reader knows.
    pub fn new(text: &'a str) -> Self {
        let mut lines = Self { text: text.lines().collect(), entities: HashMap::new() };
        let text = without_header(text);
        let Ok(file) = parse_test(&text, ParseOptions::default()) else { return lines };
        for (function, details) in &file.functions {
            let name = plain_name(function);
            let blocks = function.layout.blocks().map(AnyEntity::Block);
            let all = blocks.chain(function.dfg.values().map(AnyEntity::Value));
            let known = all.filter_map(|entity| Some((entity.to_string(), details.map.location(entity)?.line_number)));
            lines.entities.insert(name, known.collect());
        }
        lines
    }

    /// The line that defines a block or a value.
    pub fn of(&self, function: &str, entity: &str) -> Option<usize> {
        self.entities.get(function)?.get(entity).copied()
    }

    /// The first line of a block of a function that has an instruction of this opcode.
    pub fn of_opcode(&self, function: &str, block: &str, opcode: &str) -> Option<usize> {
        let first = self.of(function, block)? + 1;
        let is_inside = |line: &usize| {
            let text = self.instruction(*line).trim();
            !text.is_empty() && !text.starts_with("block") && text != "}"
        };
        let is_meant = |line: &usize| {
            let text = self.instruction(*line).trim();
            let computed = text.split_once(" = ").map_or(text, |(_, computed)| computed);
            computed.split([' ', '.']).next() == Some(opcode)
        };
        (first..=self.text.len()).take_while(is_inside).find(is_meant)
    }

    /// What a line holds, without a comment and without a source location.
    pub fn instruction(&self, line: usize) -> &str {
        let text = self.text.get(line - 1).copied().unwrap_or_default();
        without_place(text.split(';').next().unwrap_or_default()).1
    }
}

/// An error of a compilation, with what to do about it.
pub fn cannot_compile(name: &str, error: &Error) -> Error {
    let is_panic = error.is::<Panicked>() || error.to_string().starts_with("Cranelift panics ");
    let advice = if is_panic {
        "report it to whose panic it is, and leave the function out until it is fixed"
    } else {
        "use what Cranelift and the harness support: functions of one file, host functions, no data"
    };
    in_file(name, error, advice)
}

/// The calls in the `run:`, `print:`, `trap:`, `call:` and `bench:` comments of a text, with their lines, in the order of
/// the text. Of a `call:` no result is known, as in `; call: %f(mem, 3)`.
pub fn calls(program: &Program, text: &str) -> Result<Vec<(usize, Call)>> {
    let runs = program.runs(text)?.into_iter().map(|run| (run.line, run.call));
    let benches = program.benches(text)?.into_iter().map(|bench| (bench.line, bench.call));
    let mut calls: Vec<(usize, Call)> = runs.chain(benches).collect();
    for (line, content) in (1..).zip(text.lines()) {
        let comment = content.trim_start().trim_start_matches([';', ' ']);
        if content.trim_start().starts_with(';')
            && let Some(call) = comment.strip_prefix("call:")
        {
            let call = program.parse_call(call).with_context(|| format!("line {line}"))?;
            calls.push((line, call));
        }
    }
    calls.sort_by_key(|(line, _)| *line);
    Ok(calls)
}

/// The name of a function without `%`.
pub fn plain_name(function: &Function) -> String {
    function.name.to_string().trim_start_matches('%').to_owned()
}

/// The functions of a file whatever machine they are for, all or the one of this name, with the name of the file and what it holds. They are not
/// verified.
pub fn functions_for_any_target(path: &Path, wanted: Option<&str>) -> Result<(String, String, Vec<Function>)> {
    let (name, text) = load(path)?;
    let plain = without_header(&text);
    let parsed = parse_test(&plain, ParseOptions::default())
        .map_err(|error| cannot_read(&name, &anyhow!("line {}: {}", error.location.line_number, error.message)))?;
    let mut functions: Vec<Function> = parsed.functions.into_iter().map(|(function, _)| function).collect();
    ensure!(!functions.is_empty(), "{name}: there is no function; {CORRECT}");
    if let Some(wanted) = wanted.map(|name| name.trim_start_matches('%')) {
        functions.retain(|function| plain_name(function) == wanted);
        ensure!(!functions.is_empty(), "{name}: there is no function %{wanted}; without --function there are all");
    }
    Ok((name, text, functions))
}

/// The text with empty lines before the first function: the reader takes some headers for wrong that are not.
fn without_header(text: &str) -> String {
    let header = text.lines().take_while(|line| !line.trim_start().starts_with("function ")).count();
    let lines = text.lines().enumerate().map(|(at, line)| if at < header { "" } else { line });
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// What to do about most of what is wrong with a file.
const CORRECT: &str = "correct the file, or give another that is valid CLIF";

fn cannot_read(name: &str, error: &Error) -> Error {
    let text = error.to_string();
    let is_foreign = text.contains("is not this machine's");
    let foreign = || is_foreign.then(|| "`show --target NAME` shows code that this machine cannot run".to_owned());
    let advice = older::advice(&text).or_else(foreign).unwrap_or_else(|| CORRECT.to_owned());
    in_file(name, error, &advice)
}

/// The name of a file for messages, and what it holds, with another name for each function after the first of one name.
fn load(path: &Path) -> Result<(String, String)> {
    let name = path.display().to_string();
    let sample = sample_text(&name).filter(|_| !path.exists());
    let (name, text) = match sample {
        Some(text) => (name, text),
        None if name.strip_suffix(UNCHECKED).is_some_and(|name| sample_text(name).is_some()) && !path.exists() => {
            let sample = name.trim_end_matches(UNCHECKED);
            bail!("{name}: sample program {sample} has no checks to leave out; `list` tags those that have some")
        }
        None if name == "-" => ("standard input".to_owned(), read(io::stdin(), "standard input")?),
        None => {
            let file = File::open(path)
                .map_err(|error| anyhow!("{name}: {error}; give a CLIF file, or a sample program that `list` names"))?;
            let text = read(file, &name)?;
            (name, text)
        }
    };
    Ok((name, with_unique_names(&text).into_owned()))
}

/// The lines of comments that look like a call, but are none: a colon is missing, or letters are in upper case.
fn mistyped(text: &str) -> impl Iterator<Item = (usize, &'static str)> + '_ {
    const KNOWN: [&str; 6] = ["run", "bench", "print", "call", "trap", "options"];
    (1..).zip(text.lines()).filter_map(|(number, line)| {
        let comment = line.trim().strip_prefix(';')?.trim_start_matches([' ', ';']);
        let (word, rest) = comment.split_once([' ', ':'])?;
        let meant = KNOWN
            .into_iter()
            .find(|known| word.eq_ignore_ascii_case(known.trim_end_matches('s')) || word.eq_ignore_ascii_case(known))?;
        let is_one = comment[word.len()..].starts_with(':') && word == meant;
        let is_meant = if meant == "options" { rest.contains('=') } else { rest.trim_start().starts_with('%') };
        (!is_one && is_meant).then_some((number, meant))
    })
}

/// The text without a byte-order mark.
fn read(mut from: impl Read, name: &str) -> Result<String> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes)
        .map_err(|error| anyhow!("{name}: {error}; give a CLIF file, or a sample program that `list` names"))?;
    let text = String::from_utf8(bytes).ok().with_context(|| format!("{name}: not a text file; give a CLIF file"))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// The memory image of calls from files and from the command line: byte `k` is `k % 251`, so that neighbors differ.
pub fn image() -> Vec<u8> {
    (0..=250).cycle().take(IMAGE).collect()
}
