//! Programs from files, with the names and lines that messages need.

use crate::error::{guard, in_file};
use crate::subject::sample_text;
use anyhow::{Context as _, Result, anyhow, bail};
use cranelift_codegen::ir::Block;
use cranelift_codegen::ir::entities::AnyEntity;
use cranelift_reader::{ParseOptions, parse_test};
use loopopt::oracle::{Call, Compiled, Pipeline, Program, Settings};
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// Bytes of memory that `mem` points to in calls from files and from the command line.
const IMAGE: usize = 64 << 10;

/// What to do about a program that cannot be compiled.
pub const CANNOT_COMPILE: &str =
    "use what Cranelift and the harness support: functions of one file, host functions, no data";

/// A file and the program in it.
#[derive(Debug)]
pub struct Input {
    /// The name of the file, for messages.
    pub name: String,
    /// What it holds.
    pub text: String,
    /// The program.
    pub program: Program,
}

impl Input {
    /// Reads a CLIF file. What is no file may be the name of a sample program.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let text = match sample_text(&name).filter(|_| !path.exists()) {
            Some(text) => text,
            None => read(path, &name)?,
        };
        let program = Program::parse(&text)
            .map_err(|error| in_file(&name, &error, "correct the file, or give another that is valid CLIF"))?;
        Ok(Self { name, text, program })
    }

    /// The names of the functions, without `%`.
    pub fn function_names(&self) -> Vec<String> {
        let functions = self.program.functions().iter();
        functions.map(|function| function.name.to_string().trim_start_matches('%').to_owned()).collect()
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
        guard(|| Compiled::new(&self.program, pipeline, Settings::default()))
            .map_err(|error| in_file(&self.name, &error, CANNOT_COMPILE))
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

    /// The line of each block of each function, as far as the reader knows them.
    pub fn block_lines(&self) -> HashMap<(String, Block), usize> {
        let Ok(file) = parse_test(&self.text, ParseOptions::default()) else { return HashMap::new() };
        let mut lines = HashMap::new();
        for (function, details) in &file.functions {
            let name = function.name.to_string().trim_start_matches('%').to_owned();
            for block in function.layout.blocks() {
                if let Some(location) = details.map.location(AnyEntity::Block(block)) {
                    lines.insert((name.clone(), block), location.line_number);
                }
            }
        }
        lines
    }
}

fn read(path: &Path, name: &str) -> Result<String> {
    let bytes = fs::read(path)
        .map_err(|error| anyhow!("{name}: {error}; give a CLIF file, or a sample program that `list` names"))?;
    String::from_utf8(bytes).ok().with_context(|| format!("{name}: not a text file; give a CLIF file"))
}

/// The memory image of calls from files and from the command line: byte `k` is `k % 251`, so that neighbors differ.
pub fn image() -> Vec<u8> {
    (0..=250).cycle().take(IMAGE).collect()
}
