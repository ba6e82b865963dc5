//! Undo what canonical form no longer serves.
//!
//! Closed form leaves parameters that have one value only where no copy of the loop was made, and a rotated header is
//! entered by its latch alone. Such parameters go, and blocks that form a chain are merged. Preheaders, single back
//! edges and dedicated exits stay: Cranelift would have to split those edges again, with worse places for the blocks.
//!
//! # Needs        Nothing.
//! # Legal when   Always.
//! # Changes      Parameters and blocks.

use crate::change::Change;
use crate::edit::merge::merge_blocks;
use crate::pass::PassCx;
use cranelift_codegen::{CodegenResult, Context};

/// The name of this pass.
pub(crate) const NAME: &str = "tidy";

/// Tidies up.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    ctx.remove_constant_phis(cx.isa)?;
    ctx.func.dfg.resolve_all_aliases();
    let merged = merge_blocks(&mut ctx.func, &ctx.cfg, &ctx.domtree);
    Ok(if merged { Change::Cfg } else { Change::Insts })
}
