//! The oracle: runs a program before and after optimization by loopopt, and says whether both do the same.
//!
//! Compared are the results, the whole memory image, the code and the place of a trap and the memory at the trap, and
//! the log of calls to host functions with the memory that each of them saw. The oracle runs the optimizer itself, so it
//! always compares the function that loopopt has made. [`check`] is the entry point; the rest of this module is what it is made of, for those who
//! want to run or to time programs themselves.
//!
//! # A comparison
//!
//! ```
//! use loopopt::oracle::{Case, Program, check};
//!
//! let program = Program::parse(
//!     "function %sum(i64, i64) -> i32 {
//!      block0(v0: i64, v1: i64):
//!          v2 = iconst.i32 0
//!          jump block1(v0, v2)
//!      block1(v3: i64, v4: i32):
//!          v5 = load.i32 v3
//!          v6 = iadd v4, v5
//!          v9 = iconst.i64 4
//!          v7 = iadd v3, v9
//!          v8 = icmp ult v7, v1
//!          brif v8, block1(v7, v6), block2
//!      block2:
//!          return v6
//!      }",
//! )?;
//! let case = Case { call: program.parse_call("sum(mem, mem+64)")?, memory: vec![1; 64] };
//! let agreement = check(&program, &[case], &loopopt::Options::default())?;
//! assert_eq!(agreement.compared, 1);
//! # Ok::<(), anyhow::Error>(())
//! ```
//!
//! # Arms
//!
//! A program is compiled three times: by Cranelift at `opt_level=none`, by Cranelift at `opt_level=speed`, and by the
//! latter followed by loopopt. The first two are compared as well, to know whether a difference is of loopopt's making.
//! Where Cranelift's interpreter can run the program, its result is compared too: a fourth opinion that shares no code
//! generator with the others.
//!
//! # What a program sees
//!
//! * A memory image, at the same address for all arms. An access beyond its end, rounded up to 64 bytes, traps, and so does
//!   one before the page in which it begins. What can be accessed around the image is zero before the call, and is not
//!   looked at after it.
//! * A stack of its own, of 4 MiB.
//! * Host functions: each function that it calls by a name that the program does not have. They can have any name and any
//!   signature of integers, `f32`, `f64` and vectors of up to 128 bits. An integer result is the wrapping sum of all
//!   integer arguments, cut off or sign-extended to the result's type; a float result is the sum of all float arguments of
//!   its type; a vector is zero. Addresses on the stack count as zero, as they differ from arm to arm.
//!   One whose name begins with `write` changes the eight bytes that its first argument points to, and one whose name begins with `read` takes them for
//!   that argument.
//! * Cranelift's library calls.
//!
//! # Traps and endless loops
//!
//! A trap ends the call; so does the time limit. Machine code is run under signal handlers that are installed once for the
//! process, and pass on what is not theirs. This needs x86-64 Linux; elsewhere, everything that runs machine code is an
//! error.

mod arena;
mod call;
mod code;
mod code_range;
mod compare;
mod compile;
mod difference;
mod header;
mod host;
mod interpret;
mod isa;
mod library;
mod native;
mod options;
mod program;
mod run;
mod thunk;
mod unknown;

pub use call::{Arg, Call, ConcurrentWrite, HostCall, Observation, Outcome};
pub use compare::{Agreement, Case, check, check_reports, check_with, rewrite};
pub use compile::{Compiled, CompiledFunction};
pub use difference::{Arm, Difference, Mismatch};
pub use header::Foreign;
pub use interpret::{Interpreted, interpret};
pub use options::{file_options, option_values};
pub use program::{Bench, Expectation, Program, Programs, Run};
pub use run::{Fault, Prepared};
pub use unknown::{Unknown, require_passes};

use crate::{Options, Report};
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{CodegenResult, Context};
use std::time::Duration;

/// What is compiled.
#[derive(Clone, Copy, Debug)]
pub enum Pipeline<'a> {
    /// Cranelift at `opt_level=none`.
    None,
    /// Cranelift at `opt_level=speed`.
    Speed,
    /// Cranelift at `opt_level=speed`, then loopopt.
    LoopOpt(&'a Options),
}

/// How a program is compiled and run.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Where functions begin in a cache line.
    pub placement: Placement,
    /// Whether Cranelift's verifier runs on what is optimized and on what is lowered. It takes compile time.
    pub verifier: bool,
    /// How long a call may take. Then it is stopped and [`Outcome::TimedOut`].
    pub limit: Duration,
    /// Whether a second run of loopopt has to change nothing. Passes that give loops a shape and an order are done after one
    /// run. Those that move and copy code may find more to do, so this is off by default.
    pub settles: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { placement: Placement::default(), verifier: true, limit: Duration::from_secs(10), settles: false }
    }
}

/// Where in a cache line of 64 bytes all functions of a program begin: after this many times 4 bytes. A function
/// with constants that need more alignment begins at the next place that has it.
///
/// Placement alone can make a loop slower or faster by tens of percent, so it is fixed, and can be varied on purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Placement(u8);

impl Placement {
    /// All of them.
    pub const ALL: [Self; 16] = {
        let mut all = [Self(0); 16];
        let mut index = 1;
        while index < 16 {
            all[index] = Self(all[index - 1].0 + 1);
            index += 1;
        }
        all
    };

    const STEP: usize = 4;

    /// The address of each function, modulo 64, as long as its alignment allows.
    pub fn offset(self) -> usize {
        usize::from(self.0) * Self::STEP
    }
}

/// The host's target, as arms are optimized for it.
#[cfg(feature = "fuzzing")]
pub(crate) fn optimizing_isa() -> anyhow::Result<cranelift_codegen::isa::OwnedTargetIsa> {
    isa::Target::host().isa(isa::Use::Optimize, true)
}

/// Something in the place of loopopt: it rewrites a function that `Context::optimize` has been through. What it leaves is lowered as it is:
/// with the flow graph and the dominator tree of the context, and without aliases.
pub type Rewrite<'a> = dyn FnMut(&mut Context, &dyn TargetIsa) -> CodegenResult<Report> + 'a;
