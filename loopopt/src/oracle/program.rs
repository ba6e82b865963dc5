//! Programs, and the calls in their comments.

use super::header::{Foreign, Header, at_line};
use super::isa::{Target, Use};
use super::{Arg, Call, Outcome, Unknown, run};
use crate::ir::all_insts;
use anyhow::{Context as _, Result, bail, ensure};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::entities::AnyEntity;
use cranelift_codegen::ir::{AbiParam, Function, Inst, Signature, SourceLoc, TrapCode, Type, UserFuncName};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa};
use cranelift_codegen::verify_function;
use cranelift_reader::{ParseOptions, RunCommand, parse_run_command, parse_test};
use std::collections::HashSet;

/// Functions that call each other by name, and host functions by any other name.
#[derive(Clone, Debug)]
pub struct Program {
    functions: Vec<Function>,
    target: Target,
}

/// The program of a file for each target of it that is this machine's.
#[derive(Clone, Debug)]
pub struct Programs {
    /// One or more.
    pub programs: Vec<Program>,
    /// The targets that are not this machine's.
    pub foreign: Vec<Foreign>,
}

/// A call that a `run:`, `print:` or `trap:` comment asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The line of the comment, from 1.
    pub line: usize,
    /// The call.
    pub call: Call,
    /// How it should end.
    pub expectation: Expectation,
}

/// How a call should end.
#[derive(Clone, Debug, PartialEq)]
pub enum Expectation {
    /// `== values`.
    Equal(Vec<DataValue>),
    /// `!= values`.
    NotEqual(Vec<DataValue>),
    /// Of a `print:` comment: anything that is returned.
    Anything,
    /// Of a `trap:` comment: this trap.
    Trap(TrapCode),
}

/// A call that a `bench:` comment asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Bench {
    /// The line of the comment, from 1.
    pub line: usize,
    /// The call.
    pub call: Call,
}

impl Expectation {
    /// Whether a call has ended as expected. Floats are compared by their bits.
    pub fn is_met(&self, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Returned(results) => self.holds(results),
            Outcome::Trapped { code, .. } => *self == Self::Trap(*code),
            Outcome::TimedOut => false,
        }
    }

    /// Whether these results are as expected. Floats are compared by their bits.
    pub fn holds(&self, results: &[DataValue]) -> bool {
        let equal = |expected: &[DataValue]| {
            expected.len() == results.len() && expected.iter().zip(results).all(|(a, b)| a.bitwise_eq(b))
        };
        match self {
            Self::Equal(expected) => equal(expected),
            Self::NotEqual(expected) => !equal(expected),
            Self::Anything => true,
            Self::Trap(_) => false,
        }
    }
}

impl Program {
    /// A program of these functions, which are called by their names: `name` of `%name`, `u0:3` of `u0:3`.
    ///
    /// Fails if two names are equal or the verifier finds anything.
    pub fn new(functions: Vec<Function>) -> Result<Self> {
        Self::new_for(Target::host(), functions)
    }

    /// A program of other functions, for the same target. Fails as [`Program::new`].
    pub fn with_functions(&self, functions: Vec<Function>) -> Result<Self> {
        Self::new_for(self.target.clone(), functions)
    }

    fn new_for(target: Target, functions: Vec<Function>) -> Result<Self> {
        for function in &functions {
            verify(function, &target, |_| None)?;
        }
        Self::of_verified(target, functions)
    }

    /// The program of a CLIF file, for the first of its targets that is this machine's; see [`Program::parse_all`].
    pub fn parse(text: &str) -> Result<Self> {
        Ok(Self::parse_all(text)?.programs.swap_remove(0))
    }

    /// The programs of a CLIF file, one for each of its `target` lines that is this machine's, with the settings of the `set` lines
    /// before it, and with nothing of the processor but what the line names. A file without such a line has one, for the host with
    /// all that it can do. `opt_level` is what an arm is made of, and a few settings are the oracle's own. Of the `test` lines,
    /// `test run` makes the host's calling convention the default, as in Cranelift, and the others mean nothing.
    ///
    /// Fails if the text is not CLIF, with the line in the message, if this machine can run none of the targets, or as
    /// [`Program::new`].
    pub fn parse_all(text: &str) -> Result<Programs> {
        let header = Header::read(text)?;
        let file = parse_test(&header.rest, ParseOptions::default()).map_err(|error| at_line(&error))?;
        ensure!(!file.functions.is_empty(), "there is no function");
        if let ([], [first, rest @ ..]) = (&header.targets[..], &header.foreign[..]) {
            let others = rest.iter().map(|foreign| format!(", nor is target {}", foreign.target)).collect::<String>();
            bail!("line {}: target {} is not this machine's ({}){others}", first.line, first.target, first.reason);
        }
        let program = |target: Target| {
            for (function, details) in &file.functions {
                let place = |entity| Some(details.map.location(entity).unwrap_or(details.location).line_number);
                verify(function, &target, place)?;
            }
            Self::of_verified(target, file.functions.iter().map(|(function, _)| function.clone()).collect())
        };
        let programs = header.targets.into_iter().map(program).collect::<Result<_>>()?;
        Ok(Programs { programs, foreign: header.foreign })
    }

    fn of_verified(target: Target, functions: Vec<Function>) -> Result<Self> {
        let mut names = HashSet::new();
        for function in &functions {
            ensure!(names.insert(&function.name), "there are two functions {}", function.name);
        }
        Ok(Self { functions, target })
    }

    /// The same program, in which each instruction has a source location: those without get one of their own.
    pub(crate) fn located(&self) -> Self {
        let mut program = self.clone();
        for func in &mut program.functions {
            let insts: Vec<Inst> = all_insts(func).collect();
            let last = insts.iter().map(|&inst| func.srcloc(inst)).filter(|place| !place.is_default());
            let mut next = last.map(|place| place.bits()).max().map_or(1, |last| last.saturating_add(1));
            for inst in insts {
                if func.srcloc(inst).is_default() {
                    func.set_srcloc(inst, SourceLoc::new(next));
                    // The largest number stands for none.
                    next = next.saturating_add(1).min(u32::MAX - 1);
                }
            }
        }
        program
    }

    /// The ISA that the program's text asks for, at `opt_level=speed`: what `Context::optimize` and the loop passes get here.
    ///
    /// # Errors
    ///
    /// If Cranelift makes no code for this machine with these settings.
    pub fn isa(&self) -> Result<OwnedTargetIsa> {
        self.target.isa(Use::Optimize, false)
    }

    /// What the code is made for.
    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// The `set` and `target` lines of a file that ask for what the code is made for. Empty if that is the host as it is.
    pub fn target_lines(&self) -> &str {
        self.target.lines()
    }

    /// The functions.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The function of this name, without `%`, or of one like `u0:3`.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| Self::name_of(function) == name)
    }

    /// The name of a function, without `%`.
    pub(super) fn name_of(function: &Function) -> String {
        match &function.name {
            UserFuncName::Testcase(name) => String::from_utf8_lossy(name.raw()).into_owned(),
            UserFuncName::User(name) => name.to_string(),
        }
    }

    /// A call from text: `f(1, 0x1.8p0, mem+16)`, with or without `%`. `mem` is the address of the memory image; other
    /// arguments are read according to the function's signature.
    pub fn parse_call(&self, text: &str) -> Result<Call> {
        let text = text.trim();
        let (name, rest) =
            text.split_once('(').with_context(|| format!("`{text}` is not a call, as in `f(1, mem)`"))?;
        let args = rest.trim_end().strip_suffix(')').with_context(|| format!("`{text}` does not end with `)`"))?;
        let name = name.trim().trim_start_matches('%');
        let function = self.function(name).ok_or_else(|| {
            let names: Vec<String> = self.functions.iter().map(|function| function.name.to_string()).collect();
            Unknown::new((&format!("%{name}"), format!("there is no function %{name}")), "functions", &names)
        })?;
        let args: Vec<&str> = if args.trim().is_empty() { Vec::new() } else { args.split(',').collect() };
        let params = &function.signature.params;
        run::require_count(name, args.len(), &function.signature)?;
        let args = args.iter().zip(params).map(|(arg, param)| parse_arg(arg.trim(), param.value_type));
        let call = Call { function: name.to_owned(), args: args.collect::<Result<_>>()? };
        run::require_args(&call, &function.signature)?;
        Ok(call)
    }

    /// The calls in the `run:`, `print:` and `trap:` comments of a text, usually the one that the program is from.
    ///
    /// A comment is read as Cranelift's file tests do, except that the call can be to any function and can have `mem` as
    /// an argument. `; run` alone calls the function before it, which should not return 0. `; trap: %f(1) == user7` says which trap ends a call.
    pub fn runs(&self, text: &str) -> Result<Vec<Run>> {
        let mut before = None;
        let mut runs = Vec::new();
        for (line, content) in (1..).zip(text.lines()) {
            if let Some(header) = content.trim_start().strip_prefix("function ") {
                before = header.split_once('(').map(|(name, _)| name.trim());
            }
            let run = match directive(content) {
                Some(("run", Some(command))) => self.parse_run(command),
                Some(("run", None)) => self.run_without_call(before),
                Some(("print", Some(call))) => self.parse_call(call).map(|call| (call, Expectation::Anything)),
                Some(("trap", Some(command))) => self.parse_trap(command),
                _ => continue,
            };
            let (call, expectation) = run.with_context(|| format!("line {line}"))?;
            runs.push(Run { line, call, expectation });
        }
        Ok(runs)
    }

    /// The calls in the `bench:` comments of a text, usually the one that the program is from.
    pub fn benches(&self, text: &str) -> Result<Vec<Bench>> {
        let mut benches = Vec::new();
        for (line, content) in (1..).zip(text.lines()) {
            if let Some(("bench", Some(call))) = directive(content) {
                let call = self.parse_call(call).with_context(|| format!("line {line}"))?;
                benches.push(Bench { line, call });
            }
        }
        Ok(benches)
    }

    fn parse_run(&self, command: &str) -> Result<(Call, Expectation)> {
        let equal = command.find("==").map(|at| (at, true));
        let not_equal = command.find("!=").map(|at| (at, false));
        let Some((at, equal)) = equal.or(not_equal) else { bail!("`==` or `!=` is missing") };
        let call = self.parse_call(&command[..at])?;
        let function = self.function(&call.function).expect("the call names a function of the program");
        if let Some((_, rest)) = command.split_once(';')
            && matches!(directive(&format!(";{rest}")), Some(("run" | "print" | "bench", Some(_))))
        {
            bail!("a line can hold one call, and `{}` is a second one", rest.trim());
        }
        let values = parse_values(command[at + 2..].trim(), &function.signature.returns)?;
        Ok((call, if equal { Expectation::Equal(values) } else { Expectation::NotEqual(values) }))
    }

    fn parse_trap(&self, command: &str) -> Result<(Call, Expectation)> {
        let (call, code) = command.split_once("==").context("`==` and a trap code are missing")?;
        let code = code.trim();
        let trap =
            code.parse().ok().with_context(|| format!("`{code}` is no trap code, as `user7` and `heap_oob` are"))?;
        Ok((self.parse_call(call)?, Expectation::Trap(trap)))
    }

    fn run_without_call(&self, name: Option<&str>) -> Result<(Call, Expectation)> {
        let call = self.parse_call(&format!("{}()", name.context("there is no function before it")?))?;
        let function = self.function(&call.function).expect("the call names a function of the program");
        match &function.signature.returns[..] {
            [result] if result.value_type.is_int() => {
                let zero = DataValue::from_integer(0, result.value_type)?;
                Ok((call, Expectation::NotEqual(vec![zero])))
            }
            _ => bail!("%{} does not return one integer", call.function),
        }
    }
}

/// Fails if the verifier finds anything. The line of what it is about precedes the message, if `line_of` knows it.
fn verify(function: &Function, target: &Target, line_of: impl Fn(AnyEntity) -> Option<usize>) -> Result<()> {
    let isa = target.isa(Use::Optimize, true)?;
    let at = |entity| line_of(entity).map_or(String::new(), |line| format!("line {line}: "));
    let name = &function.name;
    match verify_function(function, &*isa).map_err(|errors| errors.0.into_iter().next()) {
        Ok(()) => Ok(()),
        Err(Some(first)) => bail!("{}{name} is not valid CLIF: {first}", at(first.location)),
        Err(None) => bail!("{}{name} is not valid CLIF", at(AnyEntity::Function)),
    }
}

/// The word of a comment like `; word: rest` or `; word`, and the rest.
pub(super) fn directive(line: &str) -> Option<(&str, Option<&str>)> {
    let comment = line.trim().strip_prefix(';')?.trim_start_matches([' ', ';']);
    match comment.split_once(':') {
        Some((word, rest)) => Some((word.trim(), Some(rest))),
        None => Some((comment, None)),
    }
}

fn parse_arg(text: &str, ty: Type) -> Result<Arg> {
    let Some(offset) = text.strip_prefix("mem") else {
        let values = parse_values(text, &[AbiParam::new(ty)])?;
        return Ok(Arg::Value(values.into_iter().next().expect("one value was asked for")));
    };
    let offset = offset.trim();
    if offset.is_empty() {
        return Ok(Arg::Memory(0));
    }
    let digits = offset.strip_prefix('+').with_context(|| format!("`{text}` is not `mem` or `mem+N`"))?.trim();
    let number = match digits.strip_prefix("0x") {
        Some(digits) => usize::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    Ok(Arg::Memory(number.with_context(|| format!("`{text}` is not `mem` or `mem+N`"))?))
}

/// Reads values of these types: one as it is, any other number of them in brackets.
fn parse_values(text: &str, types: &[AbiParam]) -> Result<Vec<DataValue>> {
    let text = text.split(';').next().unwrap_or_default().trim();
    let list =
        if types.len() == 1 { Some(text) } else { text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) };
    let list = list.with_context(|| format!("`{text}` is not a list in brackets"))?;
    // As the arguments of a call, because after them the reader looks for the end.
    let mut signature = Signature::new(CallConv::Fast);
    signature.params.extend_from_slice(types);
    match parse_run_command(&format!("run: %f({list}) == []"), &signature) {
        Ok(Some(RunCommand::Run(call, ..))) => Ok(call.args),
        Ok(_) => bail!("`{text}` is not a value"),
        Err(error) => bail!("`{text}`: {}", error.message),
    }
}
