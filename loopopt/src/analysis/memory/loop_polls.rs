//! The [polls](crate::analysis::memory::exit_polls) of loops, found once for each loop while a function changes little.

use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::memory::exit_polls::polls;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Function, Inst};

/// The polls of the loops of a function, found once for each loop that is asked for.
#[derive(Debug, Default)]
pub struct LoopPolls {
    known: FxHashMap<Loop, Polls>,
    /// How often the function has changed since.
    changes: usize,
}

/// Those of one loop, as it was.
#[derive(Debug)]
struct Polls {
    /// Sorted.
    loads: Vec<Inst>,
    /// How many instructions there were: those from there on are not known.
    insts: usize,
    /// How often the function had changed.
    changes: usize,
}

impl LoopPolls {
    /// Whether `load` is a poll of `lp`. What was none of the loop as it was is none now: the loop does the same.
    pub fn contains(
        &mut self,
        func: &Function,
        flow: (&ControlFlowGraph, &DominatorTree),
        (forest, lp): (&LoopForest, Loop),
        load: Inst,
    ) -> bool {
        let changes = self.changes;
        let is_settled = |known: &Polls| {
            known.changes == changes || (load.index() < known.insts && known.loads.binary_search(&load).is_err())
        };
        self.find(func, flow, (forest, lp), is_settled).binary_search(&load).is_ok()
    }

    /// The polls of `lp` as it is. A loop that had none has none now: it does the same.
    pub fn of(
        &mut self,
        func: &Function,
        flow: (&ControlFlowGraph, &DominatorTree),
        place: (&LoopForest, Loop),
    ) -> &[Inst] {
        let changes = self.changes;
        self.find(func, flow, place, |known| known.changes == changes || known.loads.is_empty())
    }

    /// Those that are known, if these will do, or else those of the loop as it is.
    fn find(
        &mut self,
        func: &Function,
        flow: (&ControlFlowGraph, &DominatorTree),
        (forest, lp): (&LoopForest, Loop),
        will_do: impl Fn(&Polls) -> bool,
    ) -> &[Inst] {
        if !self.known.get(&lp).is_some_and(will_do) {
            let loads = polls(func, flow, forest, lp);
            self.known.insert(lp, Polls { loads, insts: func.dfg.num_insts(), changes: self.changes });
        }
        &self.known[&lp].loads
    }

    /// Loads have become values: a loop may wait for fewer than before.
    pub fn loads_have_gone(&mut self) {
        self.changes += 1;
    }
}
