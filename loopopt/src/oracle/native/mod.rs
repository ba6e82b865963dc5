//! What depends on the host: memory from the system, and calls to machine code that survive traps and endless loops.
//!
//! There is one implementation, for x86-64 Linux. On other hosts the same interface only says that it is missing.

#![cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux")),
    allow(dead_code, reason = "what would run machine code is missing")
)]

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[path = "linux_x64.rs"]
mod host;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
#[path = "elsewhere.rs"]
mod host;

pub(super) use host::{
    Mapping, call, host_entry, on_program_stack, processor_time, program_stack_left, require, resume,
};
use std::ops::Range;
use std::time::Duration;

/// Size of a page, and the unit of [`Mapping::protect`].
pub(super) const PAGE: usize = 4096;

/// Stack of a program, in bytes.
pub(super) const STACK: usize = 4 << 20;

/// An argument or a result, as trampolines and shims exchange them with Rust code.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(16))]
pub(super) struct Slot(pub(super) [u8; 16]);

/// What may be done with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Nothing: an access traps.
    None,
    /// Read and write.
    Data,
    /// Read and run.
    Code,
}

/// What [`call`] calls.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The address of the trampoline for the signature of `callee`.
    pub(super) trampoline: usize,
    /// The address of the function.
    pub(super) callee: usize,
    /// The machine code of the program. Only there is a program stopped when its time is up.
    pub(super) code: Range<usize>,
    /// How many bytes of stack it gets, no more than [`STACK`].
    pub(super) stack: usize,
}

/// How long a call may take, and what another thread does meanwhile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch<'a> {
    /// How much time it may take: on the processor, or on the clock if something is written.
    pub(super) limit: Duration,
    /// What is written, again and again.
    pub(super) write: Option<Write<'a>>,
}

/// What another thread writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write<'a> {
    /// Where.
    pub(super) address: usize,
    /// What.
    pub(super) bytes: &'a [u8],
    /// A byte, and what it must not be for that.
    pub(super) unless: Option<(usize, u8)>,
}

/// How a call to machine code ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// It returned.
    Returned,
    /// Its time was up.
    TimedOut,
    /// The processor refused an instruction.
    Fault {
        /// The address of the instruction.
        pc: usize,
        /// The address that it accessed, if it is about memory.
        address: usize,
        /// Whether the access was to the guard of the program's stack.
        stack_guard: bool,
    },
}
