//! The flow graph, brought up to date where edges have changed.
//!
//! Most passes change the edges of a few blocks. Which, the branches tell: what each block ended in when the graph was made is
//! compared with what it ends in now, which takes less than to make the graph anew.

use crate::analysis::cfg::edges::destinations;
use cranelift_codegen::entity::{SecondaryMap, packed_option::PackedOption};
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Function, Inst};

/// The edges of a function as its flow graph has them.
#[derive(Default)]
pub(crate) struct KnownEdges {
    ends: SecondaryMap<Block, End>,
    /// What branches go to, one after the other.
    targets: Vec<Block>,
    /// The same at the look before.
    before: Vec<Block>,
    /// How often the branches were looked at. Nothing is known as long as they were not.
    looks: u32,
}

/// What a block ends in.
#[derive(Clone, Default)]
struct End {
    branch: PackedOption<Inst>,
    /// Where its targets start and end.
    targets: (u32, u32),
    /// At which look the block was in the layout last.
    look: u32,
}

impl KnownEdges {
    /// Takes note of the edges of `func`, of which the flow graph is valid.
    pub(crate) fn see(&mut self, func: &Function) {
        self.look(func, |_| {});
    }

    /// Makes `cfg`, which was valid when the edges were seen last, the flow graph of `func` as it is now.
    pub(crate) fn update(&mut self, func: &Function, cfg: &mut ControlFlowGraph) {
        if self.looks == 0 || !cfg.is_valid() {
            cfg.compute(func);
            self.see(func);
            return;
        }
        self.look(func, |block| cfg.recompute_block(func, block));
        debug_assert!(is_graph_of(func, cfg), "an edge is not known");
    }

    /// Calls `changed` with each block that ends otherwise than when this was asked last, or is not there any more.
    fn look(&mut self, func: &Function, mut changed: impl FnMut(Block)) {
        self.looks += 1;
        self.ends.resize(func.dfg.num_blocks());
        std::mem::swap(&mut self.targets, &mut self.before);
        self.targets.clear();
        for block in func.layout.blocks() {
            let start = self.targets.len();
            let branch = func.layout.last_inst(block);
            if let Some(branch) = branch {
                let calls = destinations(func, branch).iter();
                self.targets.extend(calls.map(|call| call.block(&func.dfg.value_lists)));
            }
            let targets = (start as u32, self.targets.len() as u32);
            let end =
                std::mem::replace(&mut self.ends[block], End { branch: branch.into(), targets, look: self.looks });
            let known = &self.before[end.targets.0 as usize..end.targets.1 as usize];
            if end.branch != branch.into() || *known != self.targets[start..] {
                changed(block);
            }
        }
        let looks = self.looks;
        for (block, end) in self.ends.iter_mut().filter(|(_, end)| end.look != looks && end.branch.is_some()) {
            *end = End::default();
            changed(block);
        }
    }
}

/// Whether `cfg` is what would be made of `func`.
fn is_graph_of(func: &Function, cfg: &ControlFlowGraph) -> bool {
    let made = ControlFlowGraph::with_function(func);
    func.layout.blocks().all(|block| {
        let preds =
            |cfg: &ControlFlowGraph| cfg.pred_iter(block).map(|pred| (pred.inst, pred.block)).collect::<Vec<_>>();
        cfg.succ_iter(block).eq(made.succ_iter(block)) && preds(cfg) == preds(&made)
    })
}
