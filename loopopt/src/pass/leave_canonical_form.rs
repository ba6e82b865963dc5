//! Undo what only canonical form needed.
//!
//! Closed form leaves parameters that have one value only where no copy of the loop was made, and a rotated header is
//! entered by its latch alone. Such parameters and those that nothing needs are removed, chains of blocks are merged, and the one edge into a latch that
//! only jumps goes to the header itself, so that the branch that it belongs to ends the loop. Constants that edits have moved
//! away from their uses are rematerialized beside them. Preheaders, single back
//! edges and dedicated exits stay: Cranelift would have to split those edges again, with worse places for the blocks.
//!
//! A parameter stays if the last branch of an iteration passes it what a parameter of the header was: without it, that value would live on beside its next
//! one, and each iteration would move registers (`extend_loads/fires-loop-that-leaves-with-its-counter.clif`: 48 instructions, and 38 with it).
//!
//! # Needs
//!
//! Nothing.
//!
//! # Legal when
//!
//! Always.
//!
//! # Changes
//!
//! Parameters and blocks.

use crate::analysis::cfg::edges::{Edge, only_edge_into};
use crate::analysis::cfg::jumps::jump_target;
use crate::analysis::cfg::loops::LoopForest;
use crate::change::Change;
use crate::edit::cfg::merge::merge_all;
use crate::edit::cfg::split_edges::skip_block;
use crate::edit::inst::rename::Replaced;
use crate::edit::materialize::constants::replace_and_localize;
use crate::edit::ssa::dead_params::remove_dead_params;
use crate::edit::ssa::params::detach_redundant_params;
use crate::pass::{Form, Pass, PassCx};
use cranelift_codegen::ir::{Function, Value, ValueDef};
use cranelift_codegen::{CodegenResult, Context};

/// The name of this pass.
pub(crate) const NAME: &str = "leave_canonical_form";

/// The pass.
pub(crate) const PASS: Pass = Pass { name: NAME, run, reasons: &[], claims: &[], is_mandatory: true, ..Pass::OPTIONAL };

/// Tidies up.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    cx.keep_form(Form::Any);
    let mut replaced = Replaced::default();
    let forest = cx.forest(ctx);
    detach_redundant_params(ctx, &mut replaced, &|func, edges, value| is_left_behind(func, &forest, edges, value));
    let skipped = skip_empty_latches(ctx, &forest, &replaced);
    // No other block has more or fewer edges into it for that, so the old graph still says which can be merged.
    let named = cx.named(&ctx.func);
    let merged = merge_all(&mut ctx.func, (&ctx.cfg, &ctx.domtree), named, &mut replaced);
    let has_replaced = !replaced.is_empty();
    let localized = replace_and_localize(&mut ctx.func, replaced);
    let named = cx.named(&ctx.func);
    let died = remove_dead_params(&mut ctx.func, &named);
    Ok(match (skipped || merged, has_replaced || localized || died) {
        (true, _) => Change::Cfg,
        (false, true) => Change::Insts,
        (false, false) => Change::Nothing,
    })
}

/// Sends the edge into a latch that only jumps on to the header. Returns whether there was any.
fn skip_empty_latches(ctx: &mut Context, forest: &LoopForest, replaced: &Replaced) -> bool {
    // Inner loops first.
    let latches: Vec<_> = forest.loops().rev().filter_map(|lp| forest.latch(&ctx.func, lp)).collect();
    let mut skipped = false;
    for latch in latches {
        let only_jumps = jump_target(&ctx.func, latch).is_some()
            && ctx.func.layout.first_inst(latch) == ctx.func.layout.last_inst(latch);
        if only_jumps
            && let Some(edge) = only_edge_into(&ctx.func, &ctx.cfg, latch)
            && ctx.func.layout.is_cold(edge.source(&ctx.func)) == ctx.func.layout.is_cold(latch)
            // Where an inner loop is left, `layout` would rebuild the block.
            && forest.innermost(edge.source(&ctx.func)) == forest.innermost(latch)
        {
            skip_block(&mut ctx.func, edge, latch, replaced);
            skipped = true;
        }
    }
    skipped
}

/// Whether `value` is a parameter of a header that leaves its loop on these edges at the end of an iteration, where its next value is known already.
fn is_left_behind(func: &Function, forest: &LoopForest, edges: &[Edge], value: Value) -> bool {
    let ValueDef::Param(header, _) = func.dfg.value_def(value) else { return false };
    let Some(lp) = forest.loop_of_header(header) else { return false };
    let [back_edge] = forest.data(lp).back_edges[..] else { return false };
    let leaves = |edge: &Edge| edge.branch == back_edge.branch && !forest.contains(lp, edge.target(func));
    edges.iter().all(leaves) && back_edge.passed_for(func, value) != Some(value)
}
