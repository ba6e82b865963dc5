//! The flow graph, brought up to date where edges have changed.
//!
//! Most passes change the edges of a few blocks. The branches tell which: what each block ended in when the graph was made is
//! compared with what it ends in now, which costs less than to rebuild the graph.

use crate::analysis::cfg::edges::destinations;
use cranelift_codegen::entity::{SecondaryMap, packed_option::PackedOption};
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Function, Inst};
use std::ops::Range;

/// The edges of a function as its flow graph has them.
#[derive(Default)]
pub(crate) struct KnownEdges {
    ends: SecondaryMap<Block, End>,
    /// The targets of the branches, one after the other.
    targets: Vec<Block>,
    /// The same at the previous look.
    before: Vec<Block>,
    /// How many edges enter each block.
    entering: SecondaryMap<Block, u32>,
    /// The blocks that ended differently at the previous look, and their targets then.
    changed: Vec<(Block, Range<usize>)>,
    /// How often the branches were looked at. Nothing is known as long as they were not.
    looks: u32,
}

/// What a block ends in.
#[derive(Clone, Default)]
struct End {
    branch: PackedOption<Inst>,
    /// Which of the targets are those of the block.
    targets: Range<usize>,
    /// At which look the block was in the layout last.
    look: u32,
}

impl KnownEdges {
    /// Takes note of the edges of `func`, of which the flow graph is valid.
    pub(crate) fn see(&mut self, func: &Function) {
        self.look(func);
    }

    /// Makes `cfg`, which was valid when the edges were seen last, the flow graph of `func` as it is now.
    pub(crate) fn update(&mut self, func: &Function, cfg: &mut ControlFlowGraph) {
        let is_known = self.looks > 0 && cfg.is_valid();
        let cost = self.look(func);
        if !is_known || cost > self.targets.len() {
            cfg.compute(func);
        } else {
            self.changed.iter().for_each(|(block, _)| cfg.recompute_block(func, *block));
        }
        debug_assert!(is_graph_of(func, cfg), "an edge is not known");
    }

    /// Finds the blocks that end differently than at the previous look, or are not there any more. Returns how many edges the flow
    /// graph looks at to bring them up to date: for each that is removed, all into the block that it enters.
    fn look(&mut self, func: &Function) -> usize {
        self.looks += 1;
        self.ends.resize(func.dfg.num_blocks());
        self.changed.clear();
        std::mem::swap(&mut self.targets, &mut self.before);
        self.targets.clear();
        for block in func.layout.blocks() {
            let start = self.targets.len();
            let branch = func.layout.last_inst(block);
            if let Some(branch) = branch {
                let calls = destinations(func, branch).iter();
                self.targets.extend(calls.map(|call| call.block(&func.dfg.value_lists)));
            }
            let end = End { branch: branch.into(), targets: start..self.targets.len(), look: self.looks };
            let known = std::mem::replace(&mut self.ends[block], end);
            if known.branch != branch.into() || self.before[known.targets.clone()] != self.targets[start..] {
                self.changed.push((block, known.targets));
            }
        }
        let looks = self.looks;
        for (block, end) in self.ends.iter_mut().filter(|(_, end)| end.look != looks && end.branch.is_some()) {
            self.changed.push((block, std::mem::take(end).targets));
        }
        let left = self.changed.iter().flat_map(|(_, targets)| &self.before[targets.clone()]);
        let cost = left.map(|&target| self.entering[target] as usize).sum();
        self.entering.clear();
        self.entering.resize(func.dfg.num_blocks());
        self.targets.iter().for_each(|&target| self.entering[target] += 1);
        cost
    }
}

/// Whether `cfg` is what would be computed for `func`.
fn is_graph_of(func: &Function, cfg: &ControlFlowGraph) -> bool {
    let made = ControlFlowGraph::with_function(func);
    func.layout.blocks().all(|block| {
        let preds =
            |cfg: &ControlFlowGraph| cfg.pred_iter(block).map(|pred| (pred.inst, pred.block)).collect::<Vec<_>>();
        cfg.succ_iter(block).eq(made.succ_iter(block)) && preds(cfg) == preds(&made)
    })
}
