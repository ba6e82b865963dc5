//! Hosts on which machine code cannot be run.

use super::{Access, Ended, Entry, Slot, Watch};
use crate::oracle::host::Import;
use anyhow::{Result, bail};
use std::ops::Range;
use std::time::Duration;

const MISSING: &str = "running machine code needs x86-64 Linux";

/// Fails.
pub(in crate::oracle) fn require() -> Result<()> {
    bail!(MISSING)
}

/// Nothing: it cannot be made.
#[derive(Debug)]
pub(in crate::oracle) enum Mapping {}

impl Mapping {
    pub(in crate::oracle) fn reserve(_len: usize) -> Result<Self> {
        bail!(MISSING)
    }

    pub(in crate::oracle) fn protect(&self, _range: Range<usize>, _access: Access) -> Result<()> {
        match *self {}
    }

    pub(in crate::oracle) fn address(&self) -> usize {
        match *self {}
    }

    pub(in crate::oracle) fn data(&mut self, _range: Range<usize>) -> &mut [u8] {
        match *self {}
    }
}

pub(in crate::oracle) fn on_program_stack(_address: usize) -> bool {
    false
}

pub(in crate::oracle) fn program_stack_left() -> usize {
    0
}

pub(in crate::oracle) unsafe extern "C" fn host_entry(_: *const Import, _: *const Slot, _: *mut Slot) -> u8 {
    1
}

pub(in crate::oracle) unsafe extern "C" fn resume(_: usize, _: usize, _: usize, _: i64, _: i64) -> ! {
    unreachable!("{MISSING}")
}

pub(in crate::oracle) fn processor_time() -> Duration {
    Duration::ZERO
}

pub(in crate::oracle) fn call(_: &Entry, _: &mut [Slot], _: Watch<'_>) -> Result<(Ended, Duration)> {
    bail!(MISSING)
}
