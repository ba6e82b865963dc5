//! Cranelift's own mid-end once more, without memory.
//!
//! Copies of iterations have constants where the original had parameters: conditions fold, values repeat, checks were done
//! before. Cranelift's egraph pass knows all that, so it runs again instead of a GVN and folder of ours. What a pass leaves in
//! one place it sees to itself: the guard of a rotated loop, the test before a version, a branch that is decided.
//!
//! What the pass knows of memory is not used: its dead stores are read after all where iterations, addresses that fold or paths that never
//! return make them look dead (`docs/upstream.md`), and no list of such cases would be complete. So it [sees none](hide): no load and no
//! store is moved, joined or removed by it. Loads that are known from accesses before are found [here](KnownLoads), by rules that are
//! those of all other passes, and before the pass runs, so that what is made of them folds with the rest.
//!
//! # Needs
//!
//! Nothing.
//!
//! # Legal when
//!
//! Always: the egraph pass for all that is no memory, and (L1) what memory holds is [known](crate::analysis::memory::available).
//!
//! # Pays when
//!
//! A pass has left something to fold ([`PassCx::wants_cleanup`]). It takes as long as the first run of the egraph pass, half
//! the time of all loop passes together, so it is not done on suspicion, nor in nests so deep that it would take too long.
//!
//! # Changes
//!
//! Everything that `Context::optimize` changes, but NaN canonicalization, which ran before, and stores.
//!
//! # Not done
//!
//! Dead stores stay.

mod hide;
mod trap_locations;

use crate::analysis::memory::available::KnownLoads;
use crate::change::Change;
use crate::claim::Claim;
use crate::edit::cfg::unreachable::remove_unreachable;
use crate::edit::materialize::known_loads::replace_loads;
use crate::edit::materialize::neighbours::keep_neighbours;
use crate::edit::ssa::params::remove_redundant_params;
use crate::pass::{Pass, PassCx};
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_codegen::{CodegenResult, Context};
use hide::Hidden;

/// The name of this pass.
pub(crate) const NAME: &str = "cleanup";

/// The pass.
pub(crate) const PASS: Pass =
    Pass { name: NAME, run, reasons: &[], claims: &[Claim::CellHolds], is_mandatory: true, ..Pass::OPTIONAL };

/// Runs it if it is wanted, unless the embedder compiles without optimization. Asks for another round: an inner loop
/// may have been removed, and a header that was too large may be small enough.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let wanted = std::mem::take(&mut cx.wants_cleanup);
    if !wanted || !is_possible(ctx, cx) {
        return Ok(Change::Nothing);
    }
    remove_redundant_params(ctx);
    replace_known_loads(ctx, cx);
    let hidden = Hidden::take(&mut ctx.func);
    trap_locations::move_to_branches(&mut ctx.func);
    cx.analyses.egraph_runs += 1;
    let result = ctx.egraph_pass(&unverified(), cx.ctrl_plane);
    hidden.put_back(&mut ctx.func);
    result?;
    // The egraph pass removes blocks without looking who names them.
    remove_unreachable(ctx, cx.isa)?;
    ctx.verify_if(cx.isa)?;
    keep_neighbours(&mut ctx.func);
    cx.look_again_at_all();
    // The egraph pass has rebuilt the graph and the tree, and what was removed since is in neither.
    cx.trust_flowgraph(ctx);
    cx.forget_loops(Change::Cfg);
    Ok(Change::Nothing)
}

/// Whether it would run if it were wanted.
pub(crate) fn is_possible(ctx: &Context, cx: &mut PassCx<'_>) -> bool {
    let most = cx.options.cleanup_max_depth;
    let forest = cx.forest(ctx);
    forest.loops().all(|lp| forest.data(lp).depth <= most)
}

/// (L1) Lets loads be what memory is known to hold.
fn replace_known_loads(ctx: &mut Context, cx: &mut PassCx<'_>) {
    let options = cx.options;
    let found = KnownLoads::new(ctx, &cx.forest(ctx), options, &cx.private_slots(ctx)).everywhere();
    replace_loads(&mut ctx.func, found);
}

/// Flags for the egraph pass, which asks them for nothing but whether to verify what is no function now.
fn unverified() -> Flags {
    let mut flags = settings::builder();
    flags.set("enable_verifier", "false").expect("a flag of Cranelift's");
    Flags::new(flags)
}
