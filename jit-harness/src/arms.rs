//! The arms of a comparison, compiled and seen to do the same.

use crate::agree::Agreed;
use crate::machine::InnermostLoops;
use crate::schedule::Arm;
use anyhow::{Context as _, Result};
use loopopt::oracle::{Compiled, Pipeline, Placement, Prepared, Settings};
use std::time::Duration;

/// At how many places each arm's code is tried.
pub const PLACES: usize = Placement::ALL.len();

/// All arms at all placements, each of which did what it should on the call that is timed.
pub struct Arms {
    /// By placement, then by arm.
    compiled: Vec<Vec<Compiled>>,
}

/// What can be said of an arm without running it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Static {
    /// Bytes of machine code.
    pub code_bytes: usize,
    /// The shortest time from CLIF to machine code.
    pub compile_time: Duration,
    /// Instructions in the innermost loops that were emitted.
    pub loop_insts: usize,
    /// How many of them read or write the stack frame.
    pub loop_stack_accesses: usize,
}

impl Arms {
    /// Compiles all arms and makes the large call with each of them. Gives what is wrong if one does something else.
    pub fn new(agreed: &Agreed<'_>) -> Result<Result<Self, String>> {
        let mut arms = Self { compiled: Vec::with_capacity(PLACES) };
        let subject = agreed.subject;
        let baseline = subject.baseline.as_ref().map_or(Pipeline::Speed, Pipeline::LoopOpt);
        for placement in Placement::ALL {
            let settings = Settings { placement, verifier: false, ..Settings::default() };
            let compile =
                |program, pipeline| Compiled::new(program, pipeline, settings).with_context(|| subject.name.clone());
            let arm = |arm: Arm| {
                let pipeline = if arm.has_loopopt() { Pipeline::LoopOpt(&subject.options) } else { baseline };
                let program = match arm {
                    Arm::Unchecked | Arm::UncheckedAgain => subject.unchecked.as_ref()?,
                    Arm::Baseline | Arm::Again => subject.by_hand.as_ref().unwrap_or(&subject.program),
                    Arm::LoopOpt | Arm::LoopOptAgain => &subject.program,
                };
                Some(compile(program, pipeline))
            };
            let compiled = Arm::ALL.into_iter().filter_map(arm).collect::<Result<_>>()?;
            arms.compiled.push(compiled);
        }
        Ok(match arms.mismatch(agreed)? {
            Some(what) => Err(what),
            None => Ok(arms),
        })
    }

    fn mismatch(&mut self, agreed: &Agreed<'_>) -> Result<Option<String>> {
        let case = &agreed.subject.large;
        for arm in 0..self.count() {
            let mut first = None;
            for compiled in self.compiled.iter_mut().map(|arms| &mut arms[arm]) {
                let seen = compiled.observe(&case.call, &case.memory).with_context(|| agreed.subject.name.clone())?;
                if let Some(what) = agreed.mismatch(&seen, first.as_ref())? {
                    return Ok(Some(what));
                }
                first.get_or_insert(seen);
            }
        }
        Ok(None)
    }

    /// How many arms there are.
    pub fn count(&self) -> usize {
        self.compiled[0].len()
    }

    /// Makes the call that is timed ready, for all arms.
    pub fn prepare<'m>(&self, agreed: &'m Agreed<'_>) -> Result<Prepared<'m>> {
        let case = &agreed.subject.large;
        self.compiled[0][0].prepare(&case.call, &case.memory)
    }

    /// Makes a call once, in nanoseconds.
    pub fn time(&mut self, place: usize, arm: Arm, call: &mut Prepared<'_>) -> Result<f64> {
        let (time, _) = self.compiled[place][arm as usize].time(call)?;
        Ok(time.as_nanos() as f64)
    }

    /// What can be said of an arm without running it.
    pub fn describe(&self, arm: Arm) -> Static {
        let at = |place: usize| self.compiled[place][arm as usize].functions();
        let compile_time = |place| at(place).iter().map(|function| function.compile_time).sum();
        let codes = || at(0).iter().map(|function| &function.code[..]);
        let loops: Vec<_> = codes().map(InnermostLoops::of).collect();
        Static {
            code_bytes: codes().map(<[u8]>::len).sum(),
            compile_time: (0..PLACES).map(compile_time).min().unwrap_or_default(),
            loop_insts: loops.iter().map(|inner| inner.insts).sum(),
            loop_stack_accesses: loops.iter().map(|inner| inner.stack_accesses).sum(),
        }
    }
}
