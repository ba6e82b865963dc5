//! Remove block parameters that have one value only.
//!
//! ```text
//!     brif v1, block2(v3), block4              brif v1, block2, block4
//! block2(v5: i64):                     ──►    block2:
//!     jump block6(v5)                          jump block6(v3)
//! ```
//!
//! A parameter that gets the same value on each edge, itself aside, is that value: the value dominates the sources of all
//! of these edges, and so the block. `Context::remove_constant_phis`, which `Context::optimize` runs, does the same around
//! cycles of several parameters, but only for values that are no parameters themselves; closed form makes many that are.

use crate::analysis::edges::{Edge, edges_into};
use crate::edit::funnel::set_edge;
use crate::fault::fault;
use cranelift_codegen::Context;
use cranelift_codegen::ir::{Block, BlockArg, Function, Value};

/// Removes all of them, and resolves the aliases that this makes. Needs `ctx.cfg` and `ctx.domtree`, and keeps them.
///
/// In reverse postorder one round finds everything but what depends on a back edge. Time is linear in the arguments of
/// edges for each round, and a round that finds nothing ends it.
pub(crate) fn remove_redundant_params(ctx: &mut Context) {
    /// Parameters that wait for each other through more back edges than this stay: a bound on time, not on correctness.
    const MAX_ROUNDS: usize = 4;
    let mut edges = Vec::new();
    let mut any = false;
    for _ in 0..MAX_ROUNDS {
        let mut found = false;
        for &block in ctx.domtree.cfg_rpo() {
            if Some(block) != ctx.func.layout.entry_block() && ctx.func.dfg.num_block_params(block) > 0 {
                edges.clear();
                edges.extend(edges_into(&ctx.func, &ctx.cfg, block));
                found |= remove_from(&mut ctx.func, block, &edges);
            }
        }
        if !found {
            break;
        }
        any = true;
    }
    if any {
        ctx.func.dfg.resolve_all_aliases();
    }
}

fn remove_from(func: &mut Function, block: Block, edges: &[Edge]) -> bool {
    let params = func.dfg.block_params(block).to_vec();
    let args: Vec<Vec<_>> = edges.iter().map(|edge| edge.args(func).collect()).collect();
    let only: Vec<_> = params
        .iter()
        .enumerate()
        .map(|(index, &param)| only_value(func, param, args.iter().map(|args| args[index])))
        .collect();
    if only.iter().all(Option::is_none) {
        return false;
    }
    // All at once: to remove one takes time for all behind it.
    func.dfg.detach_block_params(block);
    for (param, value) in params.into_iter().zip(&only) {
        match *value {
            Some(value) => func.dfg.change_to_alias(param, value),
            None => func.dfg.attach_block_param(block, param),
        }
    }
    for &edge in edges {
        let kept: Vec<_> = edge.args(func).zip(&only).filter(|(_, only)| only.is_none()).map(|(arg, _)| arg).collect();
        set_edge(func, edge, block, &kept);
    }
    true
}

/// The value that all of `edges` pass for `param`, which is parameter number `index`, except where they pass it itself.
fn only_value(func: &Function, param: Value, args: impl Iterator<Item = BlockArg>) -> Option<Value> {
    let mut only = None;
    for arg in args.take(if fault!(OneEdgeDecides) { 1 } else { usize::MAX }) {
        let BlockArg::Value(value) = arg else { return None };
        let value = func.dfg.resolve_aliases(value);
        if value != param && *only.get_or_insert(value) != value {
            return None;
        }
    }
    only
}
