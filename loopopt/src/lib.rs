//! Loop optimization passes for compilers that use Cranelift.
//!
//! loopopt rewrites CLIF in place, between Cranelift's egraph phase and its lowering phase. It changes no result, no
//! observable memory, no trap and no call. If it finds nothing to do, it leaves the function exactly as it is. For each
//! loop, remarks say what was done, or why nothing was done.
//!
//! # Entry points
//!
//! * [`LoopOptimizer::run`] on a [`Context`](cranelift_codegen::Context) that `Context::optimize` has been through.
//! * [`LoopOptimizer::compile`] in the place of `Context::compile`: optimize, rewrite, lower.
//! * [`LoopOptModule`] wraps a `JITModule`, an `ObjectModule` or any other module: nothing else changes.
//!
//! The `opt_level` of the ISA decides what is done: nothing at `none`, and nothing that copies code at `speed_and_size` ([`Options::for_size`]).
//! Caches of compiled code need [`Options::fingerprint`] in their keys.
//!
//! An [`Embedder`] says what the author of a compiler knows and CLIF cannot express, such as which memory other threads write.
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
//! | `forward_select_load` | a load at an address that is selected from two becomes a `select` of two values, if both addresses have just been loaded from |
//! | `mem2reg` | stack slots become values, also in functions without loops |
//! | `guard_to_trap` | checked accesses through Spectre guards become checks that trap, if the embedder allows guards to be removed |
//! | `thread_jumps` | an edge into a block whose branch it decides goes directly to the target of that branch |
//! | `canon` | the form that the other passes need: one preheader, one back edge, dedicated exits, closed form |
//! | `record_profile` | a loop counts what it does, for a [`profile`] |
//! | `apply_profile` | blocks that are rare according to a [`profile`] are marked cold, and its trip counts are kept for other passes |
//! | `specialize` | a loop gets a version for the values that nearly always occur according to a [`profile`] |
//! | `propagate_equality` | after a branch, its condition is replaced by a constant, and so is a number that it has found equal to a constant |
//! | `gvn_sink` | what all paths to a latch compute in the same way, such as the next value of a counter, is computed once |
//! | `hoist_header_stores` | stores before the poll of an iteration move to the end of the iteration before |
//! | `version` | a loop whose checks can be tested before it becomes two versions: without these checks, and as it was |
//! | `strip_mine` | a loop that polls in each iteration polls once for a strip of iterations |
//! | `rotate` | a loop that tests at the top becomes a guard and a loop that tests at the bottom |
//! | `fuse_exit_tests` | the test that counts a strip and the test that ends the loop become one |
//! | `elide_checks` | checks that branches and checks before them imply are removed |
//! | `licm` | what is the same in each iteration is computed once, before the loop: loads and checks too |
//! | `final_values` | a value that is used after a loop becomes a formula of its trip count, and a loop without effect is removed |
//! | `unswitch` | a branch that takes the same edge in each iteration moves before the loop, of which each arm gets a version |
//! | `transfer` | a rare part of a loop becomes a part of a new outer loop, so that it no longer prevents optimizations of the rest |
//! | `split_iterations` | a loop with a branch that its counter decides becomes two: one for the iterations before the branch changes, and one for the rest |
//! | `full_unroll` | a loop with few iterations is replaced by copies of its body |
//! | `peel` | the first iterations are copied before the loop, so that the others need not repeat their checks and loads |
//! | `cleanup` | if a pass has left something to fold, Cranelift's egraph pass runs once more, without memory, and loads of known values are removed |
//! | `widen_indices` | addresses that are computed in 32 bits and extended are computed in 64 bits |
//! | `load_elimination` | a value that was loaded or stored in the same iteration, or in an earlier one of an unrolled group, is not loaded again |
//! | `promote` | a memory cell that a loop reads and writes again and again is carried in a register |
//! | `if_convert` | a short branch on loaded data becomes a `select` |
//! | `partial_unroll` | a loop with many iterations does several of them for each test of its count; a search keeps its tests, and shares the jump |
//! | `consolidate_guards` | one Spectre guard protects all accesses near one address |
//! | `sink` | a value that only exits or rare blocks use is computed there |
//! | `leave_canonical_form` | undoes what only canonical form needed |
//! | `reassociate` | a reduction takes the values of an unrolled group in one operation; constants in indices are offsets of loads and stores |
//! | `extend_loads` | a load and the extension of its value become one extending load |
//! | `tail_duplicate` | latches that share one test get one each |
//! | `layout` | loops are placed in one piece, with their exits after them |
//! | `order_latch` | latches are ordered so that a back edge needs no move and is one jump |
//! | `save_at_cold_calls` | values that live across a cold call are saved at the call, and stay in registers elsewhere |
//! | `split_at_cold_edges` | a value that is passed to or from cold code that calls gets a separate register or stack slot there |
//! | `split_live_ranges` | a loop without calls keeps its values in registers, even if the outer loop calls |
//! | `split_latch` | a value that both the back edge and the exit pass gets a single use, so that loads become operands on x86-64 |
//!
//! Time and memory are linear in the size of the function times the depth of its loop nests; in a function without loops and stack slots, only the branches are looked at. Input
//! that does not verify is an error if the ISA's `enable_verifier` is on, as it is by default ([all errors](LoopOptimizer::run)).
//!
//! # Checked proofs
//!
//! Each fact on which a rewrite rests is a [`claim::Claim`]. With [`Options::assert_claims`], claims are asserted at run time, for
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
