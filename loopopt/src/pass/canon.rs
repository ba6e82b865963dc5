//! Canonical form: what the other passes may rely on.
//!
//! ```text
//!      a     b                       a     b
//!       \   /                         \   /
//!        \ /                        preheader          one entry edge, from a block that only jumps
//!     ┌─►header◄─┐      ──►             │
//!     │  /   \   │               ┌──► header
//!     │ c     d──┘               │   /     \
//!     │/ \     \                 │  c ──► latch        one back edge
//!     ┘   \     e                │  │       │
//!          exit                  │ exit'    │          an exit block is entered from its loop alone
//!                                └──┼───────┘
//!                                  exit
//! ```
//!
//! and values leave a loop through parameters of its exit blocks ([`crate::edit::ssa::close`]).
//!
//! # Needs
//!
//! Nothing but a verified function without unreachable blocks. Loops that were [skipped](crate::pass::select) stay as they are.
//!
//! # Legal when
//!
//! Always: only empty blocks are put on edges, and values are passed along them.
//!
//! # Changes
//!
//! Blocks that form a chain are merged, and empty latches after one branch are removed. Then: exit blocks that others enter too are split off for each
//! innermost loop that leaves to them; several entry edges, or one that is not a jump's, get a preheader;
//! several back edges get one latch; values that leave loops get exit parameters.
//!
//! # Not done
//!
//! Nested loops that share a header stay one loop with one latch. Irreducible cycles are named in a
//! remark and stay as they are: copying blocks to make them reducible can double code for each entry.
//!
//! The order matters: an exit edge may enter another loop's header, so exits come before preheaders and latches.

use crate::analysis::cfg::edges::{Edge, edges_into, only_edge_into};
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::change::Change;
use crate::edit::TooManyParams;
use crate::edit::cfg::merge::merge_all;
use crate::edit::cfg::split_edges::{funnel, skip_block};
use crate::edit::inst::rename::Replaced;
use crate::edit::ssa::close::{close_loops, escapes};
use crate::pass::select::Skip;
use crate::pass::{Form, Pass, PassCx};
use crate::refusal::refusals;
use cranelift_codegen::ir::{Block, Function, Opcode};
use cranelift_codegen::{CodegenResult, Context};

/// The name of this pass.
pub(crate) const NAME: &str = "canon";

/// The pass.
pub(crate) const PASS: Pass = Pass {
    name: NAME,
    run,
    reasons: &[Decline::REASONS, Skip::REASONS],
    is_mandatory: true,
    makes: Form::Canonical,
    ..Pass::OPTIONAL
};

/// Brings all loops into canonical form.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    // Merging, splitting edges and rotation keep closed form.
    let is_closed = cx.form >= Form::Closed;
    merge_blocks(ctx, cx);
    let skipped = skip_empty_latches(ctx, cx);
    cx.invalidate(ctx, skipped);
    let shaped = shape(ctx, cx);
    cx.invalidate(ctx, shaped);
    if !is_closed {
        let closed = close(ctx, cx);
        cx.invalidate(ctx, closed);
    }
    name_irreducible_cycles(ctx, cx);
    Ok(Change::Nothing)
}

/// Brings all loops into canonical form again, for a pass that found something to do in loops that have lost it.
pub(crate) fn restore(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<()> {
    run(ctx, cx)?;
    cx.form = Form::Canonical;
    Ok(())
}

/// Merges the blocks that form a chain.
pub(crate) fn merge_blocks(ctx: &mut Context, cx: &mut PassCx<'_>) {
    if cx.is_merged {
        return;
    }
    let mut replaced = Replaced::default();
    let named = cx.named(&ctx.func);
    let merged = merge_all(&mut ctx.func, (&ctx.cfg, &ctx.domtree), named, &mut replaced);
    replaced.apply(&mut ctx.func);
    cx.invalidate(ctx, if merged { Change::Cfg } else { Change::Nothing });
    cx.is_merged = true;
}

/// Gives each exit block to one loop, and each loop a preheader and a single back edge.
fn shape(ctx: &mut Context, cx: &mut PassCx<'_>) -> Change {
    let forest = cx.forest(ctx);
    let mut needed = shared_exits(ctx, &forest);
    let mut change = Change::Nothing;
    // An exit edge that enters a loop is an entry of that loop, too.
    if needed.iter().any(|(target, _)| forest.loop_of_header(*target).is_some()) {
        change = funnel_all(&mut ctx.func, std::mem::take(&mut needed));
        cx.invalidate(ctx, change);
    }
    needed.extend(several_entries(ctx, &cx.forest(ctx)));
    change.max(funnel_all(&mut ctx.func, needed))
}

/// Lets a branch that reaches the header through an empty latch go to the header: then it is seen that the loop tests at the bottom. What passes remove,
/// a poll for example, may leave such a latch.
fn skip_empty_latches(ctx: &mut Context, cx: &mut PassCx<'_>) -> Change {
    let forest = cx.forest(ctx);
    let mut empty = Vec::new();
    for lp in forest.loops() {
        let (func, data) = (&ctx.func, forest.data(lp));
        let [back_edge] = data.back_edges[..] else { continue };
        let latch = back_edge.source(func);
        let is_jump = func.dfg.insts[back_edge.branch].opcode() == Opcode::Jump;
        let is_empty = is_jump && func.layout.first_inst(latch) == Some(back_edge.branch);
        if !is_empty || latch == data.header || forest.is_named(latch) {
            continue;
        }
        let Some(edge) = only_edge_into(func, &ctx.cfg, latch) else { continue };
        let source = edge.source(func);
        let is_own = forest.innermost(source) == Some(lp) && func.layout.is_cold(source) == func.layout.is_cold(latch);
        if is_own && func.dfg.insts[edge.branch].opcode() == Opcode::Brif {
            empty.push((edge, latch));
        }
    }
    for &(edge, latch) in &empty {
        skip_block(&mut ctx.func, edge, latch, &Replaced::default());
    }
    if empty.is_empty() { Change::Nothing } else { Change::Cfg }
}

/// For each exit block that is not entered from one innermost loop alone: the exit edges of each such loop.
fn shared_exits(ctx: &Context, forest: &LoopForest) -> Vec<(Block, Vec<Edge>)> {
    let func = &ctx.func;
    let mut exits = Vec::<(Block, Loop, Edge)>::new();
    for lp in forest.loops() {
        let own = forest.data(lp).exits.iter().filter(|edge| forest.innermost(edge.source(func)) == Some(lp));
        exits.extend(own.map(|&edge| (edge.target(func), lp, edge)));
    }
    exits.sort_by_key(|&(target, lp, _)| (target, lp));
    let mut shared = Vec::new();
    for same_target in exits.chunk_by(|(one, ..), (other, ..)| one == other) {
        let (target, first, _) = same_target[0];
        let several_loops = same_target.iter().any(|&(_, lp, _)| lp != first);
        if several_loops || same_target.len() < forest.edges_into(func, &ctx.cfg, target).len() {
            for same_loop in same_target.chunk_by(|(_, one, _), (_, other, _)| one == other) {
                shared.push((target, same_loop.iter().map(|&(.., edge)| edge).collect()));
            }
        }
    }
    shared
}

/// For each loop without a preheader its entry edges, and for each with several back edges those.
fn several_entries(ctx: &Context, forest: &LoopForest) -> Vec<(Block, Vec<Edge>)> {
    let mut needed = Vec::new();
    for lp in forest.loops() {
        let data = forest.data(lp);
        if forest.preheader(&ctx.func, lp).is_none() {
            needed.push((data.header, data.entries.clone()));
        }
        if data.back_edges.len() > 1 {
            needed.push((data.header, data.back_edges.clone()));
        }
    }
    needed
}

fn funnel_all(func: &mut Function, needed: Vec<(Block, Vec<Edge>)>) -> Change {
    let change = if needed.is_empty() { Change::Nothing } else { Change::Cfg };
    for (target, edges) in needed {
        funnel(func, &edges, target);
    }
    change
}

/// Lets values leave loops through parameters of exit blocks.
fn close(ctx: &mut Context, cx: &mut PassCx<'_>) -> Change {
    let budget = cx.options.max_closing_args;
    let forest = cx.forest(ctx);
    match close_loops(&mut ctx.func, &ctx.cfg, &ctx.domtree, &forest, budget) {
        Ok(true) => Change::Insts,
        Ok(false) => Change::Nothing,
        Err(TooManyParams) => {
            let header = forest.loops().next().map(|lp| forest.data(lp).header);
            if let Some(header) = header {
                cx.declined(&ctx.func, NAME, header, &Decline::TooManyValues);
            }
            cx.gave_up = true;
            Change::Nothing
        }
    }
}

refusals! {
    /// Why a loop, or all of them, are left as they are.
    enum Decline {
        /// A cycle that has no header.
        Irreducible(entry: Block)
            => "irreducible", "the cycle through {entry} can be entered elsewhere too, so it is no loop",
            help "enter the cycle at one block only";
        /// Closed form would take too many parameters.
        TooManyValues => "too-many-values", "too many values leave the loops of this function by too many exits",
            help "use fewer values after loops with many exits, or raise Options::max_closing_args";
    }
}

fn name_irreducible_cycles(ctx: &Context, cx: &mut PassCx<'_>) {
    for block in cx.forest(ctx).irreducible().to_vec() {
        cx.add_irreducible();
        cx.declined(&ctx.func, NAME, block, &Decline::Irreducible(block));
    }
}

/// Says which loop is not in `form`, if any: for tests and for `Options::verify_each_pass`.
pub(crate) fn check(ctx: &Context, forest: &LoopForest, form: Form) -> Result<(), String> {
    if form >= Form::Canonical {
        forest.loops().try_for_each(|lp| check_shape(ctx, forest, lp))?;
    }
    if form < Form::Closed {
        return Ok(());
    }
    match escapes(&ctx.func, &ctx.domtree, forest).first_key_value() {
        Some((value, _)) => Err(format!("{value} is used outside its loop")),
        None => Ok(()),
    }
}

/// Says what this loop lacks: a preheader, a single back edge, exit blocks of its own.
fn check_shape(ctx: &Context, forest: &LoopForest, lp: Loop) -> Result<(), String> {
    let data = forest.data(lp);
    let header = data.header;
    if forest.preheader(&ctx.func, lp).is_none() {
        return Err(format!("the loop of {header} has no preheader"));
    }
    if forest.latch(&ctx.func, lp).is_none() {
        return Err(format!("the loop of {header} has {} back edges", data.back_edges.len()));
    }
    for exit in &data.exits {
        let target = exit.target(&ctx.func);
        let foreign = edges_into(&ctx.func, &ctx.cfg, target).find(|edge| !forest.contains(lp, edge.source(&ctx.func)));
        if let Some(edge) = foreign {
            let source = edge.source(&ctx.func);
            return Err(format!("{target} is an exit of the loop of {header} and is entered from {source} too"));
        }
    }
    Ok(())
}
