//! A program in all arms: seen to agree first, timed then.

use crate::arm::{CompiledArm, Program, Setup};
use crate::guest::{Call, Guest};
use crate::observation::{Observation, Outcome};
use anyhow::Result;
use jit_harness::schedule::Arm;

/// A program, compiled with and without loopopt.
pub struct Pair {
    /// Without.
    pub baseline: CompiledArm,
    /// With.
    pub loopopt: CompiledArm,
}

/// What the comparison of two runs says.
#[derive(Debug)]
pub struct Compared {
    /// What was seen without loopopt.
    pub seen: Observation,
    /// What differs with it, in one line.
    pub difference: Option<String>,
    /// Whether an access trapped at another offset, which is no difference.
    pub moved: bool,
}

impl Pair {
    /// Compiles both arms.
    pub fn new(program: &Program, setup: &Setup) -> Result<Self> {
        let baseline = CompiledArm::new(program, setup, Arm::Baseline)?;
        let loopopt = CompiledArm::new(program, setup, Arm::LoopOpt)?;
        Ok(Self { baseline, loopopt })
    }

    /// Makes a call in both arms and compares all that can be seen.
    pub fn compare(&self, call: &Call) -> Result<Compared> {
        let seen = Guest::new(&self.baseline, call)?.run().observe()?;
        let other = Guest::new(&self.loopopt, call)?.run().observe()?;
        let difference = seen.difference(&other);
        let moved = difference.is_none() && seen.outcome.is_like(&other.outcome) && seen.outcome != other.outcome;
        Ok(Compared { seen, difference, moved })
    }

    /// Bytes of machine code, without and with loopopt.
    pub fn code_bytes(&self) -> [usize; 2] {
        [&self.baseline, &self.loopopt].map(CompiledArm::code_bytes)
    }
}

impl Compared {
    /// Whether there was something to compare: a program that uses up the stack does it in its own way in each arm.
    pub fn is_comparable(&self) -> bool {
        self.seen.outcome != Outcome::StackExhausted
    }
}
