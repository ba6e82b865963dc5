//! Cranelift's own mid-end once more.
//!
//! Copies of iterations have constants where the original had parameters: conditions fold, values repeat, checks were done
//! before. Cranelift's egraph pass knows all that, so it runs again instead of a GVN and folder of ours. What a pass leaves in
//! one place it sees to itself: the guard of a rotated loop, the test in front of a version, a branch that is decided.
//!
//! # Needs
//!
//! Nothing.
//!
//! # Pays when
//!
//! A pass has left something to fold ([`PassCx::wants_cleanup`]). It takes as long as the first run of the egraph pass, half
//! the time of all loop passes together, so it is not done on suspicion. Not in functions in which
//! Cranelift would go wrong, nor in nests so deep that it would take too long.
//!
//! # Changes
//!
//! Everything that `Context::optimize` changes, but NaN canonicalization, which ran before.

mod trust;

use crate::change::Change;
use crate::edit::forget::remove_unreachable;
use crate::edit::neighbours::keep_neighbours;
use crate::edit::params::remove_redundant_params;
use crate::pass::PassCx;
use cranelift_codegen::settings::OptLevel;
use cranelift_codegen::{CodegenResult, Context};

/// The name of this pass.
pub(crate) const NAME: &str = "cleanup";

/// The reasons for which it leaves a loop alone.
pub(crate) const REASONS: &[&str] = &[];

/// Loops around a loop above which it does not run: its time grows with the square of the depth. 256: 38 ms for a nest of 250
/// loops, 1.5 s for one of 1,000, which is no program that anybody has written.
const MAX_DEPTH: u32 = 256;

/// Runs it if it is wanted, unless the embedder compiles without optimization. Asks for another round: a loop inside another
/// one may have gone, and a header that was too large may be small enough.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let wanted = std::mem::take(&mut cx.wants_cleanup);
    if !wanted || !is_possible(ctx, cx) {
        return Ok(Change::Nothing);
    }
    remove_redundant_params(ctx);
    ctx.egraph_pass(cx.isa, cx.ctrl_plane)?;
    remove_unreachable(ctx, cx.isa)?;
    keep_neighbours(&mut ctx.func);
    cx.wants_another_round = true;
    Ok(Change::Cfg)
}

/// Whether it would run if it were wanted.
pub(crate) fn is_possible(ctx: &Context, cx: &mut PassCx<'_>) -> bool {
    let forest = cx.forest(ctx);
    let is_deep = forest.loops().any(|lp| forest.data(lp).depth > MAX_DEPTH);
    cx.isa.flags().opt_level() != OptLevel::None && !is_deep && trust::is_safe(ctx, cx)
}
