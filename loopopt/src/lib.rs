//! Loop optimization passes for compilers that use Cranelift.
//!
//! loopopt rewrites CLIF in place, between Cranelift's egraph phase and its lowering phase. It changes no result, no
//! memory that anyone can see, no trap and no call, and if it finds nothing to do it leaves the function as it is, to the
//! letter. Each loop gets a remark that says what was done, or why not.
//!
//! # Ways in
//!
//! * [`LoopOptimizer::run`] on a [`Context`](cranelift_codegen::Context) that `Context::optimize` has been through.
//! * [`LoopOptimizer::compile`] in the place of `Context::compile`: optimize, rewrite, lower.
//! * [`LoopOptModule`] wraps a `JITModule`, an `ObjectModule` or any other module: nothing else changes.
//!
//! The `opt_level` of the ISA counts: nothing is done at `none`, and nothing that copies code at `speed_and_size` ([`Options::for_size`]).
//! [`Options::fingerprint`] is for caches of compiled code.
//!
//! What CLIF cannot say and the author of a compiler knows, such as memory that other threads write, is said by an [`Embedder`].
//!
//! ```
//! use cranelift_codegen::control::ControlPlane;
//! use cranelift_codegen::settings::{self, Configurable};
//! use cranelift_codegen::Context;
//! use loopopt::{LoopOptimizer, Options};
//!
//! # let text = "function %count(i64) -> i64 {
//! # block0(v0: i64):
//! #     v1 = iconst.i64 0
//! #     v2 = iconst.i64 1
//! #     jump block1(v1)
//! # block1(v3: i64):
//! #     v4 = icmp slt v3, v0
//! #     brif v4, block2, block3
//! # block2:
//! #     v5 = iadd v3, v2
//! #     jump block1(v5)
//! # block3:
//! #     return v3
//! # }";
//! # let func = cranelift_reader::parse_functions(text)?.remove(0);
//! let mut flags = settings::builder();
//! flags.set("opt_level", "speed")?;
//! let isa = cranelift_native::builder()?.finish(settings::Flags::new(flags))?;
//!
//! let mut loops = LoopOptimizer::new(Options::default());
//! let mut ctx = Context::for_function(func); // a function with a while loop
//! ctx.optimize(&*isa, &mut ControlPlane::default())?;
//! let report = loops.run(&mut ctx, &*isa, &mut ControlPlane::default())?;
//!
//! assert!(report.changed);
//! for remark in &report.remarks {
//!     println!("{remark}"); // block1: rotate: the test of block1 ... now ends the loop
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it does
//!
//! | pass | what it gives |
//! |---|---|
//! | `forward_select_load` | a load at one of two addresses that have both been loaded is a choice of two values |
//! | `mem2reg` | stack slots become values, also in functions without loops |
//! | `guard_to_trap` | checked accesses through Spectre guards become checks that trap, if the embedder lets guards go |
//! | `thread_jumps` | an edge that decides the branch of the block that it enters goes straight to where that branches |
//! | `canon` | the form that the others stand on: one preheader, one back edge, dedicated exits, closed form |
//! | `record_profile` | a loop counts what it does, for a [`profile`] |
//! | `apply_profile` | what a [`profile`] says is rare is cold, and trip counts are remembered |
//! | `specialize` | a loop gets a version for the values that a [`profile`] says are nearly always there |
//! | `propagate_equality` | behind a branch, its condition is a constant, and a number that equals a constant is that |
//! | `gvn_sink` | what all ways to a latch compute alike, such as the next value of a counter, is computed once |
//! | `hoist_header_stores` | what an iteration stores before its poll is stored at the end of the one before |
//! | `version` | a loop whose checks can all be tested in front of it is there twice: without them, and as it was |
//! | `strip_mine` | a loop that polls in each iteration polls once for a strip of iterations |
//! | `rotate` | a loop that tests at the top becomes a guard and a loop that tests at the bottom |
//! | `fuse_exit_tests` | a loop that counts its strip and itself has one test |
//! | `elide_checks` | checks that branches and checks before them imply are removed |
//! | `licm` | what is the same in each iteration is computed once, before the loop: loads and checks too |
//! | `final_values` | what a loop leaves behind is a formula of its trip count, and a loop without effect goes |
//! | `unswitch` | a branch that goes the same way in each iteration is taken in front of the loop, which is there once for each way |
//! | `transfer` | a rare part of a loop becomes a part of a loop around it, where it no longer stands in the way of the rest |
//! | `split_iterations` | a loop with a branch that its counter decides becomes two, one behind the other: for the iterations before it changes, and for the rest |
//! | `full_unroll` | a loop that runs a few times becomes its iterations |
//! | `peel` | the first iterations are taken out, so that the others need not do again what they did |
//! | `cleanup` | Cranelift's egraph pass once more, without memory, and loads that are known, if a pass has left something to fold |
//! | `widen_indices` | addresses that are computed in 32 bits and extended are computed in 64 bits |
//! | `load_elimination` | what an iteration has loaded or stored, or one before it in an unrolled group, need not be loaded again |
//! | `promote` | a memory cell that a loop reads and writes again and again is carried in a register |
//! | `if_convert` | a short branch on what was loaded becomes a choice of values |
//! | `partial_unroll` | a loop that runs often does several iterations for each time that it tests whether there are more; a search keeps its tests, and shares the jump |
//! | `consolidate_guards` | one Spectre guard stands for all accesses near one address |
//! | `sink` | what only exits or rare blocks use is computed there |
//! | `leave_canonical_form` | undoes what canonical form no longer serves |
//! | `reassociate` | a sum that waits for itself takes an unrolled group in one operation |
//! | `extend_loads` | what is loaded and extended is loaded extended |
//! | `tail_duplicate` | latches that share one test get one each |
//! | `layout` | loops are placed in one piece, with their exits after them |
//! | `order_latch` | latches are ordered so that a back edge needs no move and is one jump |
//! | `save_at_cold_calls` | values are saved where a cold call needs it, and live in registers elsewhere |
//! | `split_at_cold_edges` | a value that a cold part uses has a place of its own there |
//! | `split_live_ranges` | a loop without calls has its values in registers, whatever the loop around calls |
//! | `split_latch` | what the back edge and the exit both pass is used once, so that loads are operands on x86-64 |
//!
//! Time and memory are linear in the size of the function; a function without loops and stack slots costs one look at its branches. Input
//! that does not verify is an error if the ISA's `enable_verifier` is on, as it is by default ([all errors](LoopOptimizer::run)).
//!
//! # Checked proofs
//!
//! What a rewrite rests on has a name ([`claim::Claim`]), and with [`Options::assert_claims`] it is asserted while the program runs. For
//! tests of this library and of compilers that use it.
//!
//! # Features
//!
//! * `oracle`: `oracle`, which runs functions before and after and compares everything that can be observed.
//! * `profile`: profiles as JSON.
//! * `object`: `finish` on a `LoopOptModule<ObjectModule>`.
//! * `fuzzing`: `fuzzing`, a generator of loop programs and the bodies of the fuzz targets.

pub mod analysis;
mod change;
pub mod claim;
mod edit;
mod embedder;
#[cfg(feature = "fuzzing")]
pub mod fault;
#[cfg(not(feature = "fuzzing"))]
mod fault;
mod fuel;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod ir;
mod isa;
mod module;
mod optimizer;
mod options;
#[cfg(feature = "oracle")]
pub mod oracle;
mod pass;
mod pipeline;
pub mod profile;
mod refusal;
mod remark;
mod report;
#[cfg(test)]
mod testing;
mod totals;

use std::collections::BTreeSet;

pub use embedder::{Embedder, SpectreGuards, Writers};
pub use isa::lowering_isa;
pub use module::LoopOptModule;
pub use optimizer::LoopOptimizer;
pub use options::{Effort, Options};
pub use remark::{Remark, Remarks, Verdict};
pub use report::{Analyses, Report};
pub use totals::Totals;

/// The names of the passes, each once, in the order in which they run first.
pub fn pass_names() -> impl Iterator<Item = &'static str> {
    pipeline::passes().map(|pass| pass.name)
}

/// All reasons for which a pass declines a loop, as `(pass, reason)`: the reasons of [`Verdict::Declined`].
pub fn decline_reasons() -> impl Iterator<Item = (&'static str, &'static str)> {
    let reasons =
        pipeline::passes().flat_map(|pass| pass.reasons.concat().into_iter().map(|reason| (pass.name, reason)));
    // Some have one name for two reasons.
    reasons.collect::<BTreeSet<_>>().into_iter()
}
