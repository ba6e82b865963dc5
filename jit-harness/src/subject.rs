//! What is measured: a program, and a small and a large call to it.

use crate::cli::OptimizerArgs;
use crate::error::in_file;
use crate::input::{self, Input};
use anyhow::{Context as _, Result, bail};
use bench_programs as samples;
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::Function;
use cranelift_codegen::ir::immediates::Ieee64;
use cranelift_reader::parse_functions;
use loopopt::Options;
use loopopt::oracle::{Arg, Call, Case, Expectation, Program, Run};
use std::path::PathBuf;

/// What follows the name of a sample that is meant without its checks.
pub(crate) const UNCHECKED: &str = "/unchecked";

/// A program to be checked and timed.
pub struct Subject {
    /// The name of the sample, or the file and line.
    pub name: String,
    /// The sample's tags.
    pub tags: Vec<String>,
    /// The program.
    pub program: Program,
    /// The same without its checks, if it has any.
    pub unchecked: Option<Program>,
    /// What the baseline runs, if that is not this program: the same rewritten by hand.
    pub by_hand: Option<Program>,
    /// A call that is quick to check.
    pub small: Case,
    /// The call that is timed.
    pub large: Case,
    /// What the file that it is from says of its calls.
    pub runs: Vec<Run>,
    /// The sample that this is, which knows what must come out.
    pub sample: Option<&'static samples::Program>,
    /// The settings that loopopt has for it.
    pub options: Options,
    /// Those that it has in the baseline, if that is not Cranelift alone.
    pub baseline: Option<Options>,
}

impl Subject {
    /// A sample program.
    pub fn of_sample(sample: &'static samples::Program) -> Result<Self> {
        let program =
            |function| Program::new(vec![function]).with_context(|| format!("sample program {}", sample.name));
        let unchecked = match sample.source {
            samples::Source::Checked { build, .. } => Some(program(build(samples::Checks::Off))?),
            _ => None,
        };
        Ok(Self {
            name: sample.name.to_owned(),
            tags: sample.tags.iter().map(|&tag| tag.to_owned()).collect(),
            small: case(sample, (sample.small)()),
            large: case(sample, (sample.large)()),
            program: program(sample_function(sample)?)?,
            unchecked,
            by_hand: None,
            runs: Vec::new(),
            sample: Some(sample),
            options: Options::default(),
            baseline: None,
        })
    }

    /// All sample programs.
    pub fn samples() -> Result<Vec<Self>> {
        samples::all().iter().map(Self::of_sample).collect()
    }

    /// Those of the sample programs that somebody has rewritten by hand, each to be compared with that, both with loopopt.
    pub fn all_against_hand(subjects: Vec<Self>) -> Result<Vec<Self>> {
        subjects.into_iter().map(Self::against_hand).filter_map(Result::transpose).collect()
    }

    /// This sample program, to be compared so. Nothing if nobody has rewritten it.
    fn against_hand(mut self) -> Result<Option<Self>> {
        let Some(text) = samples::by_hand(&self.name) else { return Ok(None) };
        let program = Program::parse(text).with_context(|| format!("sample program {} by hand", self.name))?;
        self.by_hand = Some(program);
        self.baseline = Some(self.options.clone());
        self.unchecked = None;
        Ok(Some(self))
    }

    /// All sample programs, or those of the files, that the filter selects. There must be some. Each has the settings of the command line
    /// and of its file.
    pub fn selected(files: &[PathBuf], filter: Option<&str>, optimizer: &OptimizerArgs) -> Result<Vec<Self>> {
        let mut subjects = if files.is_empty() { Self::samples()? } else { Vec::new() };
        let options = optimizer.options()?;
        subjects.iter_mut().for_each(|subject| subject.options = options.clone());
        for path in files {
            let input = Input::open(path)?;
            subjects.extend(Self::of_file(&input, &optimizer.options_for(&input)?)?);
        }
        subjects.retain(|subject| subject.matches(filter));
        if subjects.is_empty() {
            let filter = filter.unwrap_or_default();
            bail!("no program has `{filter}` in its name or as a tag; `list` names them all");
        }
        Ok(subjects)
    }

    /// The programs of a file, of which there must be some.
    fn of_file(input: &Input, options: &Options) -> Result<Vec<Self>> {
        let subjects = Self::of_input(input, options)?;
        if subjects.is_empty() {
            bail!("{}: there is nothing to time; add a line like `; bench: %f(mem, 1000)`", input.name);
        }
        Ok(subjects)
    }

    /// The programs of a file: its `; bench:` lines, without any its `; run:` lines.
    pub fn of_input(input: &Input, options: &Options) -> Result<Vec<Self>> {
        if let Some(sample) = sample_named(&input.name) {
            let mut subject = Self::of_sample(sample)?;
            if input.name.ends_with(UNCHECKED)
                && let Some(program) = subject.unchecked.take()
            {
                (subject.program, subject.name) = (program, input.name.clone());
            }
            subject.options = options.clone();
            return Ok(vec![subject]);
        }
        let advice = "write it as in `; bench: %f(mem, 1000)`";
        let benches = input.program.benches(&input.text).map_err(|error| in_file(&input.name, &error, advice))?;
        let mut calls: Vec<_> = benches.into_iter().map(|bench| (bench.line, bench.call)).collect();
        let advice = "write it as in `; run: %f(1) == 2`";
        let runs = input.program.runs(&input.text).map_err(|error| in_file(&input.name, &error, advice))?;
        if calls.is_empty() {
            // A call that traps is none to be timed.
            let returns = runs.iter().filter(|run| !matches!(run.expectation, Expectation::Trap(_)));
            calls.extend(returns.map(|run| (run.line, run.call.clone())));
        }
        Ok(calls.into_iter().map(|(line, call)| Self::of_call(input, line, call, &runs, options)).collect())
    }

    /// A call of a file. What the `; run:` lines say of the function is checked before it is timed.
    fn of_call(input: &Input, line: usize, call: Call, runs: &[Run], options: &Options) -> Self {
        let runs = runs.iter().filter(|run| run.call.function == call.function).cloned().collect();
        let case = Case { call, memory: input::image() };
        Self {
            name: format!("{}:{line}", input.name),
            tags: Vec::new(),
            program: input.program.clone(),
            unchecked: None,
            by_hand: None,
            small: case.clone(),
            large: case,
            runs,
            sample: None,
            options: options.clone(),
            baseline: None,
        }
    }

    /// Whether a filter selects this program: text in its name, or a tag.
    pub fn matches(&self, filter: Option<&str>) -> bool {
        filter.is_none_or(|filter| self.name.contains(filter) || self.tags.iter().any(|tag| tag == filter))
    }

    /// What a call must return, and the memory after it, if the program says.
    pub fn expected(&self, large: bool) -> Option<(Vec<DataValue>, Vec<u8>)> {
        let sample = self.sample?;
        let input = if large { (sample.large)() } else { (sample.small)() };
        let mut memory = input.memory.clone();
        let result = (sample.reference)(&input, &mut memory);
        Some((result.into_iter().map(data_value).collect(), memory))
    }
}

/// The function of a sample program.
pub fn sample_function(sample: &samples::Program) -> Result<Function> {
    match sample.source {
        samples::Source::Built(build) => Ok(build()),
        samples::Source::Checked { build, .. } => Ok(build(samples::Checks::On)),
        samples::Source::Clif(text) => {
            let functions = parse_functions(text).with_context(|| format!("sample program {}", sample.name))?;
            functions.into_iter().next().with_context(|| format!("sample program {} is empty", sample.name))
        }
    }
}

/// The CLIF of the sample program of this name.
pub fn sample_text(name: &str) -> Option<String> {
    let sample = sample_named(name)?;
    match sample.source {
        samples::Source::Clif(text) => Some(text.to_owned()),
        samples::Source::Built(build) => Some(build().display().to_string()),
        samples::Source::Checked { build, .. } => {
            let checks = if name.ends_with(UNCHECKED) { samples::Checks::Off } else { samples::Checks::On };
            Some(build(checks).display().to_string())
        }
    }
}

/// The small call of the sample program of this name.
pub fn sample_case(name: &str) -> Option<Case> {
    sample_named(name).map(|sample| case(sample, (sample.small)()))
}

fn sample_named(name: &str) -> Option<&'static samples::Program> {
    let is_checked = |sample: &samples::Program| matches!(sample.source, samples::Source::Checked { .. });
    let is_meant = |sample: &&samples::Program| {
        sample.name == name || is_checked(sample) && Some(sample.name) == name.strip_suffix(UNCHECKED)
    };
    samples::all().iter().find(is_meant)
}

/// A call of a sample program.
pub fn case(sample: &samples::Program, input: samples::Input) -> Case {
    let args = input.args.iter().map(|arg| match *arg {
        samples::Arg::Value(value) => Arg::Value(data_value(value)),
        samples::Arg::Pointer(offset) => Arg::Memory(offset),
    });
    let call = Call { function: sample.name.replace('-', "_"), args: args.collect() };
    Case { call, memory: input.memory }
}

fn data_value(value: samples::Value) -> DataValue {
    match value {
        samples::Value::I32(value) => DataValue::I32(value),
        samples::Value::I64(value) => DataValue::I64(value),
        samples::Value::F64(value) => DataValue::F64(Ieee64::with_float(value)),
    }
}
