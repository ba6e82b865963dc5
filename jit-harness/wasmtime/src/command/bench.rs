//! `bench`: a call in both arms, and how long it takes.

use crate::cli::BenchArgs;
use crate::figures::Samples;
use crate::report::{Record, Report, print};
use crate::trial::Pair;
use anyhow::Result;
use jit_harness::command::Ending;
use jit_harness::report::json::{create, write_json};
use std::io::Write;
use std::time::Duration;

pub(super) fn run(args: &BenchArgs, out: &mut dyn Write) -> Result<Ending> {
    let program = args.call.program()?;
    let call = args.call.call()?;
    let file = args.json.as_deref().map(create).transpose()?;
    let mut records = Vec::new();
    for setup in args.setup.setups()? {
        let pair = Pair::new(&program, &setup)?;
        let compared = pair.compare(&call)?;
        let mut record = Record::new(&program.name, &pair, &compared);
        if record.agree {
            let samples =
                Samples::of(&program, &setup, (&call, &compared.seen), Duration::from_secs_f64(args.seconds))?;
            record.measure(&samples.figures());
        }
        records.push(record);
    }
    let report = Report::new(records);
    print(&report, out)?;
    if let Some(file) = file {
        write_json(file, &report)?;
    }
    Ok(if report.records.iter().all(|record| record.agree) { Ending::Fine } else { Ending::Differs })
}
