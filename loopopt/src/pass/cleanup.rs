//! Cranelift's own mid-end once more.
//!
//! Copies of blocks have constants where the original had parameters: guards fold, values repeat, checks were done
//! before. Cranelift's egraph pass knows all that, so it runs again instead of a GVN and folder of ours.
//!
//! # Needs
//!
//! Nothing.
//!
//! # Pays when
//!
//! An edge was changed since it ran last: nothing else gives it anything new to find. The pipeline asks.
//!
//! # Changes
//!
//! Everything that `Context::optimize` changes, but NaN canonicalization, which ran before.

use crate::change::Change;
use crate::pass::PassCx;
use cranelift_codegen::settings::OptLevel;
use cranelift_codegen::{CodegenResult, Context};

/// The name of this pass.
pub(crate) const NAME: &str = "cleanup";

/// The reasons for which it leaves a loop alone.
pub(crate) const REASONS: &[&str] = &[];

/// Runs it, unless the embedder compiles without optimization.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    ctx.remove_constant_phis(cx.isa)?;
    ctx.func.dfg.resolve_all_aliases();
    if cx.isa.flags().opt_level() != OptLevel::None {
        ctx.egraph_pass(cx.isa, cx.ctrl_plane)?;
        ctx.eliminate_unreachable_code(cx.isa)?;
    }
    Ok(Change::Cfg)
}
