//! Loads that may be done after their loop.
//!
//! A place is a block that only the loop of the load enters, by edges that leave it. The load dominates each of these edges, since its value is passed there or
//! used in the place, so that it has been done in the same iteration, at the same address: what does not trap there does not trap after the edge. Between
//! the two, only blocks of the loop run. If none of them writes, nor lets others write, memory holds the same. The exit block of an enclosing loop is no such
//! place, though a value that was put after the inner loop may be put there next: what runs between writes.

use super::places::Kind;
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::inst::effects::Effects;
use crate::fault::fault;
use crate::options::Options;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData};
use std::cell::RefCell;

/// Which loads may be done later.
pub(super) struct Loads<'a> {
    func: &'a Function,
    forest: &'a LoopForest,
    kind: Kind,
    options: &'a Options,
    /// Whether a loop, with its inner loops, leaves memory as it is, once that was asked for.
    quiet: RefCell<FxHashMap<Loop, bool>>,
}

impl<'a> Loads<'a> {
    pub(super) fn new(func: &'a Function, forest: &'a LoopForest, (kind, options): (Kind, &'a Options)) -> Self {
        Self { func, forest, kind, options, quiet: RefCell::default() }
    }

    /// Whether `inst` loads what it would load in blocks that are entered from `sources`.
    pub(super) fn may_wait(&self, inst: Inst, mut sources: impl Iterator<Item = Block>) -> bool {
        let func = self.func;
        let InstructionData::Load { flags, .. } = func.dfg.insts[inst] else { return false };
        let flags = func.dfg.mem_flags[flags];
        let home = func.layout.inst_block(inst).and_then(|block| self.forest.innermost(block));
        self.kind == Kind::Exits
            && flags.notrap()
            && !Effects::of(func, inst).asserts
            && !self.options.is_asynchronous(func, flags)
            && home.is_some_and(|lp| {
                self.is_quiet(lp) && sources.all(|source| self.forest.contains(lp, source) || fault!(SunkTwoLoops))
            })
    }

    fn is_quiet(&self, lp: Loop) -> bool {
        let find = || {
            let insts = self.forest.blocks(lp).iter().flat_map(|&block| self.func.layout.block_insts(block));
            insts.map(|inst| Effects::of(self.func, inst)).all(|effects| !effects.writes && !effects.fences)
        };
        *self.quiet.borrow_mut().entry(lp).or_insert_with(find) || fault!(SunkLoad)
    }
}
