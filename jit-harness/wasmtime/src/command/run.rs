//! `run`: a call in both arms, and whether they agree.

use crate::cli::RunArgs;
use crate::observation::Outcome;
use crate::trial::Pair;
use anyhow::Result;
use jit_harness::command::Ending;
use jit_harness::report::table::{Columns, time};
use std::io::Write;

pub(super) fn run(args: &RunArgs, out: &mut dyn Write) -> Result<Ending> {
    let program = args.call.program()?;
    let call = args.call.call()?;
    let mut table = Columns::new(&["mode", "agree", "code", "compile time", "", "rewrites", "outcome:"]);
    let mut differences = Vec::new();
    let mut trapped = false;
    for (index, setup) in args.setup.setups()?.iter().enumerate() {
        let pair = Pair::new(&program, setup)?;
        let compared = pair.compare(&call)?;
        if index == 0 {
            out.write_all(&compared.seen.stdout)?;
        }
        let agree = match &compared.difference {
            Some(what) => {
                differences.push(format!("{} ({}): {what}", program.name, setup.mode));
                "NO"
            }
            None if compared.is_comparable() => "yes",
            None => "-",
        };
        trapped |= !matches!(compared.seen.outcome, Outcome::Returned(_) | Outcome::Exited(0));
        let [before, after] = pair.code_bytes();
        table.add(&[
            setup.mode.to_string(),
            agree.to_owned(),
            format!("{:.3}", after as f64 / before as f64),
            time(pair.baseline.time.as_nanos() as f64),
            time(pair.loopopt.time.as_nanos() as f64),
            pair.loopopt.compilation.rewrites.to_string(),
            compared.seen.outcome.to_string(),
        ]);
    }
    writeln!(out, "{table}")?;
    for difference in &differences {
        writeln!(out, "DIFFERS: {difference}")?;
    }
    Ok(match (differences.is_empty(), trapped) {
        (false, _) => Ending::Differs,
        (true, true) => Ending::Trapped,
        (true, false) => Ending::Fine,
    })
}
