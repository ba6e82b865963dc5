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

use crate::analysis::edges::destinations;
use crate::fault::fault;
use cranelift_codegen::Context;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, BlockArg, Function, Value};

/// Removes all of them, and resolves the aliases that this makes. Needs `ctx.cfg` and `ctx.domtree`, and keeps them.
pub(crate) fn remove_redundant_params(ctx: &mut Context) {
    if alias_redundant_params(ctx) {
        ctx.func.dfg.resolve_all_aliases();
    }
}

/// Removes all of them, each an alias of its value now. Returns whether there was any. Needs `ctx.cfg` and `ctx.domtree`, and
/// keeps them.
///
/// In reverse postorder one round finds everything but what depends on a back edge. Another round is made if one of the blocks
/// that back edges enter has become redundant in a parameter since. Time is linear in the arguments of edges for each round.
pub(crate) fn alias_redundant_params(ctx: &mut Context) -> bool {
    /// Parameters that wait for each other through more back edges than this stay: a bound on time, not on correctness.
    const MAX_ROUNDS: usize = 4;
    let Context { func, cfg, domtree, .. } = ctx;
    let entry = func.layout.entry_block();
    let mut passed = Vec::new();
    let mut visited = EntitySet::with_capacity(func.dfg.num_blocks());
    let mut waiting = Vec::new();
    let mut found = false;
    for round in 0..MAX_ROUNDS {
        for &block in domtree.cfg_rpo() {
            if func.dfg.num_block_params(block) > 0 && Some(block) != entry {
                found |= remove_from(func, cfg, block, &mut passed);
                if round == 0 && cfg.pred_iter(block).any(|pred| !visited.contains(pred.block)) {
                    waiting.push(block);
                }
            }
            visited.insert(block);
        }
        if !found || !waiting.iter().any(|&block| remove_from(func, cfg, block, &mut passed)) {
            break;
        }
    }
    found
}

/// What the edges into a block pass for one of its parameters, the parameter itself aside.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Passed {
    Nothing,
    One(Value),
    Several,
}

impl Passed {
    fn and(self, func: &Function, param: Value, arg: BlockArg) -> Self {
        let BlockArg::Value(value) = arg else { return Self::Several };
        match (self, value) {
            (Self::Several, _) => self,
            (Self::One(one), value) if one == value => self,
            _ => match (self, func.dfg.resolve_aliases(value)) {
                (_, value) if value == param => self,
                (Self::Nothing, value) => Self::One(value),
                (Self::One(one), value) if one == value => self,
                _ => Self::Several,
            },
        }
    }

    fn is_one(self) -> bool {
        matches!(self, Self::One(_))
    }
}

/// Removes the redundant parameters of `block`. `passed` is a buffer.
fn remove_from(func: &mut Function, cfg: &ControlFlowGraph, block: Block, passed: &mut Vec<Passed>) -> bool {
    passed.clear();
    passed.resize(func.dfg.num_block_params(block), Passed::Nothing);
    let params = func.dfg.block_params(block);
    let mut edges = 0;
    for pred in cfg.pred_iter(block) {
        for call in destinations(func, pred.inst).iter().filter(|call| call.block(&func.dfg.value_lists) == block) {
            if fault!(OneEdgeDecides) && edges > 0 {
                break;
            }
            edges += 1;
            for ((passed, &param), arg) in passed.iter_mut().zip(params).zip(call.args(&func.dfg.value_lists)) {
                *passed = passed.and(func, param, arg);
            }
        }
    }
    if !passed.iter().any(|passed| passed.is_one()) {
        return false;
    }
    // All at once: to remove one takes time for all behind it.
    let params = func.dfg.detach_block_params(block);
    for (index, passed) in passed.iter().enumerate() {
        let param = params.get(index, &func.dfg.value_lists).expect("a parameter for each place");
        match *passed {
            Passed::One(value) => func.dfg.change_to_alias(param, value),
            Passed::Nothing | Passed::Several => func.dfg.attach_block_param(block, param),
        }
    }
    for pred in cfg.pred_iter(block) {
        let dfg = &mut func.dfg;
        let calls = dfg.insts[pred.inst].branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables);
        for call in calls {
            if call.block(&dfg.value_lists) != block {
                continue;
            }
            let args = call.args(&dfg.value_lists).zip(&*passed);
            let kept: Vec<_> = args.filter(|(_, passed)| !passed.is_one()).map(|(arg, _)| arg).collect();
            call.clear(&mut dfg.value_lists);
            call.extend(kept, &mut dfg.value_lists);
        }
    }
    true
}
