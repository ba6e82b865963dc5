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
    let mut found = false;
    for index in (0..func.dfg.num_block_params(block)).rev() {
        let param = func.dfg.block_params(block)[index];
        if let Some(value) = only_value(func, param, index, edges) {
            func.dfg.remove_block_param(param);
            func.dfg.change_to_alias(param, value);
            for &edge in edges {
                remove_arg(func, edge, index);
            }
            found = true;
        }
    }
    found
}

/// The value that all of `edges` pass for `param`, which is parameter number `index`, except where they pass it itself.
fn only_value(func: &Function, param: Value, index: usize, edges: &[Edge]) -> Option<Value> {
    let mut only = None;
    let edges = if fault!(OneEdgeDecides) { &edges[..1] } else { edges };
    for edge in edges {
        let BlockArg::Value(value) = edge.args(func).nth(index)? else { return None };
        let value = func.dfg.resolve_aliases(value);
        if value != param && *only.get_or_insert(value) != value {
            return None;
        }
    }
    only
}

fn remove_arg(func: &mut Function, edge: Edge, index: usize) {
    let dfg = &mut func.dfg;
    let calls = dfg.insts[edge.branch].branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables);
    calls[edge.slot].remove(index, &mut dfg.value_lists);
}
