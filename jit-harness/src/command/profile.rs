//! `profile`: record what loops do, compile again with that, and time both.

use super::Ending;
use super::bench::measured;
use crate::cli::ProfileArgs;
use crate::error::guard;
use crate::input::cannot_compile;
use crate::interrupt;
use crate::recorded;
use crate::report::table;
use crate::sample::Effort;
use crate::subject::Subject;
use anyhow::{Result, bail};
use loopopt::Options;
use loopopt::oracle::{Compiled, Outcome, Pipeline, Settings};
use loopopt::profile::{Profiling, Recorder};
use std::io::Write;
use std::mem;
use std::sync::Arc;

pub(super) fn run(args: &ProfileArgs, out: &mut dyn Write) -> Result<Ending> {
    let mut subjects = Subject::selected(&args.files, args.filter.as_deref(), &args.optimizer)?;
    let recorder = Arc::new(Recorder::new());
    let recording = Profiling::Record(recorder.clone());
    for subject in &subjects {
        record(subject, &with(&subject.options, &recording))?;
    }
    let profile = Arc::new(recorder.profile());
    if let Some(path) = &args.out {
        recorded::write(path, &profile)?;
    }
    let loops: usize = profile.functions.values().map(|function| function.loops.len()).sum();
    let functions = profile.functions.len();
    writeln!(out, "recorded loops: {loops}, of functions: {functions}")?;
    if args.no_time {
        return Ok(Ending::Fine);
    }
    let effort = if args.quick { Effort::QUICK } else { Effort::FULL };
    let (what, profiling) = match args.recording {
        true => ("baseline: Cranelift; loopopt: code that records", recording),
        false => ("baseline: loopopt without the profile; loopopt: with it", Profiling::Use(profile)),
    };
    for subject in &mut subjects {
        let options = with(&subject.options, &profiling);
        let without = mem::replace(&mut subject.options, options);
        subject.baseline = (!args.recording).then_some(without);
    }
    writeln!(out, "{what}\n")?;
    let bench = measured(&subjects.iter().collect::<Vec<_>>(), effort)?;
    table::print(&bench, false, out)?;
    if !bench.complete {
        writeln!(out, "\n{}", interrupt::NOTICE)?;
    }
    Ok(Ending::of(&bench))
}

fn with(options: &Options, profiling: &Profiling) -> Options {
    let mut options = options.clone();
    options.profiling = profiling.clone();
    options
}

/// Makes the call that is timed, while it is recorded.
fn record(subject: &Subject, options: &Options) -> Result<()> {
    let compile = || Compiled::new(&subject.program, Pipeline::LoopOpt(options), Settings::default());
    let mut compiled = guard(compile).map_err(|error| cannot_compile(&subject.name, &error))?;
    let call = &subject.large.call;
    match compiled.observe(call, &subject.large.memory)?.outcome {
        Outcome::Returned(_) => Ok(()),
        outcome => bail!("{}: {call} {outcome}; a call that is recorded must return", subject.name),
    }
}
