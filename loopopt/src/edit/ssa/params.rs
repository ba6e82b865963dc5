//! Remove block parameters that have one value only.
//!
//! ```text
//!     brif v1, block2(v3), block4              brif v1, block2, block4
//! block2(v5: i64):                     ──►    block2:
//!     jump block6(v5)                          jump block6(v3)
//! ```
//!
//! A parameter that gets the same value on each edge, itself aside, is that value: the value dominates the sources of all
//! of these edges, and so the block. `Context::remove_constant_phis`, which `Context::optimize` runs, does the same for
//! cycles of several parameters, but only for values that are no parameters themselves; closed form makes many that are.

use crate::analysis::cfg::edges::{Edge, EdgesByTarget};
use crate::edit::inst::rename::Replaced;
use crate::fault::fault;
use cranelift_codegen::Context;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, BlockArg, Function, Value};

/// Removes all of them. Needs `ctx.domtree`, and keeps it and `ctx.cfg`.
pub(crate) fn remove_redundant_params(ctx: &mut Context) {
    let mut replaced = Replaced::default();
    detach_redundant_params(ctx, &mut replaced, &|_, _, _| false);
    replaced.apply(&mut ctx.func);
}

/// Removes all of them but those of a block that `stays` for this value on these edges into it. In `replaced`, each one's value stands for it. Needs
/// `ctx.domtree`, and keeps it and `ctx.cfg`.
///
/// In reverse postorder one round finds everything but what depends on a back edge. Another round is made if one of the blocks
/// that back edges enter has become redundant in a parameter since. Time is linear in the arguments of edges for each round.
pub(crate) fn detach_redundant_params(
    ctx: &mut Context,
    replaced: &mut Replaced,
    stays: &dyn Fn(&Function, &[Edge], Value) -> bool,
) {
    /// Parameters that depend on each other through more back edges than this stay: a bound on time, not on correctness.
    const MAX_ROUNDS: usize = 4;
    let Context { func, domtree, .. } = ctx;
    let entry = func.layout.entry_block();
    let edges = EdgesByTarget::new(func, |block| func.dfg.num_block_params(block) > 0);
    let mut remover = Remover { func, edges, replaced, stays, passed: Vec::new() };
    let mut visited = EntitySet::with_capacity(remover.func.dfg.num_blocks());
    let mut waiting = Vec::new();
    let mut found = false;
    for round in 0..MAX_ROUNDS {
        for &block in domtree.cfg_rpo() {
            if remover.func.dfg.num_block_params(block) > 0 && Some(block) != entry {
                found |= remover.remove_from(block);
                let mut sources = remover.edges.entering(block).iter().map(|edge| edge.source(remover.func));
                if round == 0 && sources.any(|source| !visited.contains(source)) {
                    waiting.push(block);
                }
            }
            visited.insert(block);
        }
        if !found || !waiting.iter().any(|&block| remover.remove_from(block)) {
            break;
        }
    }
}

/// Removes the parameters of `block` that are not to be kept, by their places, and their block arguments. Nothing may use them.
pub(crate) fn keep_params(func: &mut Function, (block, edges): (Block, &[Edge]), keeps: &[bool]) {
    let params = func.dfg.detach_block_params(block);
    for (index, _) in keeps.iter().enumerate().filter(|(_, keeps)| **keeps) {
        let param = params.get(index, &func.dfg.value_lists).expect("a parameter for each place");
        func.dfg.attach_block_param(block, param);
    }
    for &edge in edges {
        keep_args(func, edge, |index| keeps[index]);
    }
}

/// Removes the arguments of `edge` that are not to be kept, by their places.
fn keep_args(func: &mut Function, edge: Edge, keeps: impl Fn(usize) -> bool) {
    let dfg = &mut func.dfg;
    let calls = dfg.insts[edge.branch].branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables);
    let call = &mut calls[edge.slot];
    let args = call.args(&dfg.value_lists).enumerate();
    let kept: Vec<_> = args.filter(|(index, _)| keeps(*index)).map(|(_, arg)| arg).collect();
    call.clear(&mut dfg.value_lists);
    call.extend(kept, &mut dfg.value_lists);
}

/// The block arguments for one of the parameters of a block, the parameter itself aside.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Passed {
    Nothing,
    One(Value),
    Several,
}

impl Passed {
    fn and(self, replaced: &Replaced, param: Value, arg: BlockArg) -> Self {
        let BlockArg::Value(value) = arg else { return Self::Several };
        match (self, value) {
            (Self::Several, _) => self,
            (Self::One(one), value) if one == value => self,
            _ => match (self, replaced.resolve(value)) {
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

struct Remover<'a> {
    func: &'a mut Function,
    /// The edges into blocks with parameters.
    edges: EdgesByTarget,
    replaced: &'a mut Replaced,
    stays: &'a dyn Fn(&Function, &[Edge], Value) -> bool,
    /// A buffer.
    passed: Vec<Passed>,
}

impl Remover<'_> {
    /// Removes the redundant parameters of `block`. Returns whether there was any.
    fn remove_from(&mut self, block: Block) -> bool {
        self.find(block);
        let Self { func, edges, replaced, stays, passed } = self;
        for passed in passed.iter_mut() {
            if let Passed::One(value) = *passed
                && stays(func, edges.entering(block), value)
            {
                *passed = Passed::Several;
            }
        }
        if !passed.iter().any(|passed| passed.is_one()) {
            return false;
        }
        // All at once: to remove one takes time for all after it.
        let params = func.dfg.detach_block_params(block);
        for (index, passed) in passed.iter().enumerate() {
            let param = params.get(index, &func.dfg.value_lists).expect("a parameter for each place");
            match *passed {
                Passed::One(value) => replaced.insert(param, value),
                Passed::Nothing | Passed::Several => func.dfg.attach_block_param(block, param),
            }
        }
        for &edge in edges.entering(block) {
            keep_args(func, edge, |index| !passed[index].is_one());
        }
        true
    }

    /// Finds the block arguments of the edges into `block`.
    fn find(&mut self, block: Block) {
        let Self { func, edges, replaced, passed, .. } = self;
        let params = func.dfg.block_params(block);
        passed.clear();
        passed.resize(params.len(), Passed::Nothing);
        for (index, edge) in edges.entering(block).iter().enumerate() {
            if fault!(OneEdgeDecides) && index > 0 {
                return;
            }
            for ((passed, &param), arg) in passed.iter_mut().zip(params).zip(edge.args(func)) {
                *passed = passed.and(replaced, param, arg);
            }
            if passed.iter().all(|passed| *passed == Passed::Several) {
                return;
            }
        }
    }
}
