//! `profile`: record what loops do, compile again with that, and time both.

use super::Ending;
use super::bench::{Work, measured};
use crate::cli::ProfileArgs;
use crate::error::guard;
use crate::input::cannot_compile;
use crate::recorded;
use crate::report::table;
use crate::sample::Effort;
use crate::subject::Subject;
use anyhow::{Result, bail};
use loopopt::Options;
use loopopt::oracle::{Compiled, Outcome, Pipeline, Settings};
use loopopt::profile::{Profiling, Recorder};
use std::io::Write;
use std::sync::Arc;

pub(super) fn run(args: &ProfileArgs, out: &mut dyn Write) -> Result<Ending> {
    let options = args.optimizer.options()?;
    let subjects = Subject::selected(&args.files, args.filter.as_deref())?;
    let recorder = Arc::new(Recorder::new());
    let recording = with(&options, Profiling::Record(recorder.clone()));
    for subject in &subjects {
        record(subject, &recording)?;
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
    let using = with(&options, Profiling::Use(profile));
    let (what, work) = match args.recording {
        true => ("baseline: Cranelift; loopopt: code that records", Work::new(&recording, effort)),
        false => (
            "baseline: loopopt without the profile; loopopt: with it",
            Work { baseline: Some(&options), ..Work::new(&using, effort) },
        ),
    };
    writeln!(out, "{what}\n")?;
    let bench = measured(&subjects.iter().collect::<Vec<_>>(), &work)?;
    table::print(&bench, false, out)?;
    Ok(Ending::of(&bench))
}

fn with(options: &Options, profiling: Profiling) -> Options {
    let mut options = options.clone();
    options.profiling = profiling;
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
