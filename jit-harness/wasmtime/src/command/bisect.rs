//! `bisect`: the one rewrite that breaks a program.
//!
//! loopopt stops after as many optional rewrites as it has fuel for, and with one more the rewrites before are the same: the
//! module is compiled on one thread, function after function.

use crate::arm::{CompiledArm, Program, Setup};
use crate::cli::RunArgs;
use crate::guest::{Call, Guest};
use crate::hook::Compiled;
use crate::observation::Observation;
use anyhow::{Result, anyhow};
use jit_harness::command::Ending;
use jit_harness::command::explain::print_remark;
use jit_harness::schedule::Arm;
use loopopt::Remark;
use std::io::Write;

pub(super) fn run(args: &RunArgs, out: &mut dyn Write) -> Result<Ending> {
    let program = args.call.program()?;
    let call = args.call.call()?;
    let mut ending = Ending::Fine;
    for setup in args.setup.setups()? {
        let mode = setup.mode.clone();
        let baseline = CompiledArm::new(&program, &setup, Arm::Baseline)?;
        let seen = Guest::new(&baseline, &call)?.run().observe()?;
        let search = Search { program: &program, setup, call: &call, seen };
        match search.difference(search.setup.options.fuel)? {
            (_, None) => writeln!(out, "{} ({mode}): both arms agree", program.name)?,
            (arm, Some(_)) => {
                ending = Ending::Differs;
                let number = search.first(arm.compilation.rewrites)?;
                search.print(number, arm.compilation.rewrites, out)?;
            }
        }
    }
    Ok(ending)
}

/// A call in one mode, and what it should do.
struct Search<'a> {
    program: &'a Program,
    setup: Setup,
    call: &'a Call,
    seen: Observation,
}

impl Search<'_> {
    /// What differs with this many rewrites.
    fn difference(&self, fuel: Option<u64>) -> Result<(CompiledArm, Option<String>)> {
        let mut setup = self.setup.clone();
        setup.options.fuel = fuel;
        let arm = CompiledArm::new(self.program, &setup, Arm::LoopOpt)?;
        let seen = Guest::new(&arm, self.call)?.run().observe()?;
        Ok((arm, self.seen.difference(&seen)))
    }

    /// The fewest rewrites with which the arms differ: at most this many.
    fn first(&self, most: u64) -> Result<u64> {
        let (mut good, mut bad) = (0, most);
        if self.difference(Some(0))?.1.is_some() {
            return Ok(0);
        }
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            match self.difference(Some(middle))?.1 {
                Some(_) => bad = middle,
                None => good = middle,
            }
        }
        Ok(bad)
    }

    fn print(&self, number: u64, most: u64, out: &mut dyn Write) -> Result<()> {
        let (name, mode) = (&self.program.name, &self.setup.mode);
        let (arm, difference) = self.difference(Some(number))?;
        let difference = difference.ok_or_else(|| anyhow!("{name} ({mode}): does not do the same each time"))?;
        writeln!(out, "{name} ({mode}): {difference}")?;
        let Some(before) = number.checked_sub(1) else {
            return Ok(writeln!(out, "this is so without any optional rewrite")?);
        };
        writeln!(out, "rewrite {number} of {most} makes the difference:")?;
        let (arm_before, _) = self.difference(Some(before))?;
        for (function, before) in arm.compilation.functions.iter().zip(&arm_before.compilation.functions) {
            for remark in more(function, before) {
                let index = function.index.unwrap_or_default();
                writeln!(out, "function {index} {} at {}", arm.function_name(index), remark.header)?;
                print_remark("    ", remark, out)?;
            }
        }
        Ok(())
    }
}

/// What was done to a function and not before.
fn more<'a>(function: &'a Compiled, before: &'a Compiled) -> impl Iterator<Item = &'a Remark> {
    let known: Vec<&Remark> = before.report.remarks.iter().collect();
    function.report.remarks.iter().filter(move |remark| remark.fired() && !known.contains(remark))
}
