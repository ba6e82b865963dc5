//! `run`: compile with loopopt, run, and compare.

use super::Ending;
use crate::agree::{describe, difference, expected};
use crate::cli::RunArgs;
use crate::error::{guard, in_file};
use crate::input::{Input, image};
use crate::subject::sample_case;
use anyhow::{Result, bail};
use loopopt::Options;
use loopopt::oracle::{Case, Compiled, Expectation, Foreign, Outcome, Pipeline, Program, Run, check};
use std::io::Write;

pub(super) fn run(args: &RunArgs, out: &mut dyn Write) -> Result<Ending> {
    let input = Input::open(&args.file)?;
    let options = args.optimizer.options_for(&input)?;
    for Foreign { line, target, reason } in &input.foreign {
        writeln!(out, "line {line}: target {target}: not run, {reason}")?;
    }
    let mut worst = Ending::Fine;
    for program in std::iter::once(&input.program).chain(&input.others) {
        if !input.others.is_empty() {
            writeln!(out, "{}:", program.target_lines().lines().collect::<Vec<_>>().join(", "))?;
        }
        let runner = Runner { input: &input, program, options: &options };
        let ending = match &args.invoke {
            Some(text) => runner.invoke(Case { call: input.call(text)?, memory: image() }, out)?,
            None if sample_case(&input.name).is_some() => runner.run_sample(args.function.as_deref(), out)?,
            None => runner.run_comments(args.function.as_deref(), out)?,
        };
        worst = if worst == Ending::Fine { ending } else { worst };
    }
    Ok(worst)
}

/// A program of a file, for one of its targets.
struct Runner<'a> {
    input: &'a Input,
    program: &'a Program,
    options: &'a Options,
}

/// What is wrong with the first call of a `; run:` or `; trap:` line that does not end as the line says, if there is one.
pub(super) fn unmet(input: &Input, options: &Options, function: Option<&str>) -> Result<Option<String>> {
    let runner = Runner { input, program: &input.program, options };
    let mut runs = runner.named_runs(function)?;
    runs.retain(|run| !matches!(run.expectation, Expectation::Anything));
    if runs.is_empty() {
        return Ok(None);
    }
    let mut compiled = runner.compile()?;
    for run in runs {
        let Ran { line, case, unmet, .. } = runner.run(&mut compiled, run)?;
        if let Some(unmet) = unmet {
            return Ok(Some(format!("line {line}: {}: {unmet}", case.call)));
        }
    }
    Ok(None)
}

/// What came of a `; run:` line.
struct Ran {
    line: usize,
    case: Case,
    outcome: Outcome,
    expectation: Expectation,
    /// What is wrong with that.
    unmet: Option<String>,
}

impl Runner<'_> {
    /// Makes one call and prints what it returns.
    fn invoke(&self, case: Case, out: &mut dyn Write) -> Result<Ending> {
        let outcome = self.outcome(&mut self.compile()?, &case)?;
        writeln!(out, "{}", describe(&outcome, self.program, &case.call))?;
        let ending = match outcome {
            // The other arms would take as long, and what does not end cannot be compared.
            Outcome::TimedOut => return Ok(Ending::Trapped),
            Outcome::Trapped { .. } => Ending::Trapped,
            Outcome::Returned(_) => Ending::Fine,
        };
        let compared = self.compare(vec![case], out)?;
        Ok(if compared == Ending::Fine { ending } else { compared })
    }

    /// Makes the small call of a sample program.
    fn run_sample(&self, function: Option<&str>, out: &mut dyn Write) -> Result<Ending> {
        let cases = self.input.cases(function, &[])?;
        let mut worst = Ending::Fine;
        for case in cases {
            write!(out, "{}: ", case.call)?;
            let ending = self.invoke(case, out)?;
            worst = if worst == Ending::Fine { ending } else { worst };
        }
        Ok(worst)
    }

    /// Makes the calls of the `; run:` and `; trap:` lines and checks how they end.
    fn run_comments(&self, function: Option<&str>, out: &mut dyn Write) -> Result<Ending> {
        let runs = self.runs(function)?;
        let mut compiled = self.compile()?;
        let (total, mut failed) = (runs.len(), 0);
        let mut ended = Vec::new();
        for run in runs {
            let Ran { line, case, outcome, expectation, unmet } = self.run(&mut compiled, run)?;
            let call = &case.call;
            failed += usize::from(unmet.is_some());
            match (expectation, unmet) {
                (_, Some(unmet)) => writeln!(out, "line {line}: {call}: FAILED: {unmet}")?,
                (Expectation::Anything, None) => {
                    writeln!(out, "line {line}: {call}: {}", describe(&outcome, self.program, call))?
                }
                (_, None) => writeln!(out, "line {line}: {call}: ok")?,
            }
            if outcome != Outcome::TimedOut {
                ended.push(case);
            }
        }
        let ending = self.compare(ended, out)?;
        if failed > 0 {
            writeln!(out, "{failed} of {total} calls failed")?;
            return Ok(Ending::Differs);
        }
        Ok(ending)
    }

    /// Makes the call of a `; run:` line.
    fn run(&self, compiled: &mut Compiled, Run { line, call, expectation }: Run) -> Result<Ran> {
        let case = Case { call, memory: image() };
        let outcome = self.outcome(compiled, &case)?;
        let wrong = || format!("{}, expected {}", describe(&outcome, self.program, &case.call), expected(&expectation));
        let unmet = (!expectation.is_met(&outcome)).then(wrong);
        Ok(Ran { line, case, outcome, expectation, unmet })
    }

    /// The `; run:` lines that are asked for.
    fn named_runs(&self, function: Option<&str>) -> Result<Vec<Run>> {
        let (name, text) = (&self.input.name, &self.input.text);
        let names = self.input.selected(function)?;
        let advice = "write it as in `; run: %f(1) == 2`";
        let runs = self.program.runs(text).map_err(|error| in_file(name, &error, advice))?;
        Ok(runs.into_iter().filter(|run| names.contains(&run.call.function)).collect())
    }

    /// The same, of which there has to be one.
    fn runs(&self, function: Option<&str>) -> Result<Vec<Run>> {
        let runs = self.named_runs(function)?;
        if runs.is_empty() {
            let name = &self.input.name;
            let names = self.input.selected(function)?;
            let function = names.first().map_or("f", String::as_str);
            bail!("{name}: no `; run:` line to run; add one, or make a call with --invoke '{function}(…)'");
        }
        Ok(runs)
    }

    fn compile(&self) -> Result<Compiled> {
        self.input.compile_program(self.program, Pipeline::LoopOpt(self.options))
    }

    fn outcome(&self, compiled: &mut Compiled, case: &Case) -> Result<Outcome> {
        let observation = compiled.observe(&case.call, &case.memory);
        let advice = "call it with what its signature and its memory flags allow";
        Ok(observation.map_err(|error| in_file(&self.input.name, &error, advice))?.outcome)
    }

    /// Compares all arms on these calls.
    fn compare(&self, cases: Vec<Case>, out: &mut dyn Write) -> Result<Ending> {
        match guard(|| check(self.program, &cases, self.options)) {
            Ok(_) => Ok(Ending::Fine),
            Err(error) => {
                let what =
                    difference(error).map_err(|error| in_file(&self.input.name, &error, "nothing was compared"))?;
                writeln!(out, "DIFFERS: {what}")?;
                Ok(Ending::Differs)
            }
        }
    }
}
