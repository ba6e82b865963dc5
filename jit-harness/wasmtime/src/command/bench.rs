//! `bench`: a call in both arms, and how long it takes.

use crate::arm::{CompiledArm, Program, Setup};
use crate::cli::BenchArgs;
use crate::figures::Samples;
use crate::guest::{Call, Guest};
use crate::report::{Record, Report, print};
use crate::trial::Pair;
use anyhow::Result;
use jit_harness::command::Ending;
use jit_harness::interrupt;
use jit_harness::progress::progress;
use jit_harness::report::whole::WholeFile;
use jit_harness::schedule::Arm;
use loopopt::profile::{Profiling, Recorder};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

pub(super) fn run(args: &BenchArgs, out: &mut dyn Write) -> Result<Ending> {
    let program = args.call.program()?;
    let call = args.call.call()?;
    let file = args.json.as_deref().map(WholeFile::new).transpose()?;
    let setups = args.setup.setups()?;
    interrupt::listen()?;
    let progress = progress(setups.len());
    let mut records = Vec::new();
    for mut setup in setups {
        if interrupt::is_asked() {
            break;
        }
        progress.set_message(setup.mode.to_string());
        if args.record {
            setup.options.profiling = recorded(&program, &setup, &call)?;
        }
        let pair = Pair::new(&program, &setup)?;
        let compared = pair.compare(&call)?;
        let mut record = Record::new(&program.name, &pair, &compared);
        if record.agree {
            let samples =
                Samples::of(&program, &setup, (&call, &compared.seen), Duration::from_secs_f64(args.seconds))?;
            record.measure(&samples.figures());
        }
        records.push(record);
        progress.inc(1);
        file.as_ref().map_or(Ok(()), |file| file.write(&Report::new(records.clone())))?;
    }
    progress.finish_and_clear();
    let report = Report::new(records);
    print(&report, out)?;
    if let Some(file) = file {
        file.finish(&report)?;
    }
    report.ending(out)
}

/// Makes the call once, and returns what the loops did.
fn recorded(program: &Program, setup: &Setup, call: &Call) -> Result<Profiling> {
    let recorder = Arc::new(Recorder::new());
    let mut recording = setup.clone();
    recording.options.profiling = Profiling::Record(recorder.clone());
    let arm = CompiledArm::new(program, &recording, Arm::LoopOpt)?;
    Guest::new(&arm, call)?.run();
    Ok(Profiling::Use(Arc::new(recorder.profile())))
}
