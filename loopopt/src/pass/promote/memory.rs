//! What a loop does to memory: its accesses by address, and which of them may overlap.

use super::Here;
use super::neighbours::{Located, Neighbours, Place};
use super::why::Decline;
use crate::analysis::memory::alias::LoopMemory;
use crate::analysis::scev::linear_expr::Sum;
use crate::pass::PassCx;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::ir::{Inst, InstructionData};
use std::rc::Rc;

/// What a loop does to memory, and what of that may overlap.
pub(super) struct Memory {
    pub(super) accesses: Vec<Rc<Located>>,
    /// A call, an atomic, a fence.
    pub(super) fence: Option<Inst>,
    /// The most pairs of bases to compare.
    pub(super) max_pairs: usize,
    neighbours: Option<Neighbours>,
}

impl Memory {
    /// Made when the first cell asks: most loops have none.
    pub(super) fn neighbours(&mut self) -> &mut Neighbours {
        let Self { accesses, max_pairs, neighbours, .. } = self;
        neighbours.get_or_insert_with(|| Neighbours::of(accesses, *max_pairs))
    }
}

impl Here<'_> {
    /// What the loop does to memory, if there is something for this pass in it.
    pub(super) fn memory(&mut self, cx: &PassCx<'_>) -> Result<Memory, Decline> {
        let mut insts = self.blocks.iter().flat_map(|&block| self.func.layout.block_insts(block));
        if !insts.any(|inst| matches!(self.func.dfg.insts[inst], InstructionData::Store { .. })) {
            return Err(Decline::NothingStored);
        }
        if let Some(entry) = self.forest.irreducible_in(self.lp) {
            return Err(Decline::Irreducible { entry });
        }
        // With a fence in the loop, only cells in slots of its own are carried.
        let LoopMemory { accesses, fence } = match self.addresses.private.is_empty() {
            true => LoopMemory::without_fenced_loads(self.func, self.blocks),
            false => LoopMemory::of(self.func, self.blocks),
        };
        let (count, max) = (accesses.len(), cx.options.promote_max_accesses);
        if count > max {
            return Err(Decline::TooManyAccesses { accesses: count, max });
        }
        let accesses = accesses.into_iter().filter_map(|inst| self.addresses.locate(self.func, inst)).collect();
        Ok(Memory { accesses, fence, max_pairs: cx.options.promote_max_pairs, neighbours: None })
    }

    /// The accesses to each address that is the same in each iteration and is stored to, in the order in which they are first stored
    /// to, so that stores at the exits keep that order.
    pub(super) fn groups(&self, memory: &Memory) -> Vec<Vec<Rc<Located>>> {
        let mut groups = FxHashMap::<Place, Vec<&Rc<Located>>>::default();
        for access in &memory.accesses {
            groups.entry(access.place).or_default().push(access);
        }
        let stores = memory.accesses.iter().filter(|access| access.stored.is_some());
        let stored = stores.filter_map(|store| groups.remove(&store.place));
        let invariant = stored.filter(|group| self.is_invariant(&group[0].address));
        invariant.map(|group| group.into_iter().cloned().collect()).collect()
    }

    pub(super) fn is_invariant(&self, address: &Sum) -> bool {
        let mut invariant = true;
        address.each_value(&mut |value| {
            invariant &= self.forest.is_from_outside(self.func, self.lp, value);
        });
        invariant
    }

    /// (L2): that no store but those of the cell may overlap it. Gives a load that may.
    pub(super) fn prove_alone(
        &mut self,
        memory: &mut Memory,
        accesses: &[Rc<Located>],
    ) -> Result<Option<Inst>, Decline> {
        let access = accesses[0].inst;
        let max = memory.max_pairs;
        let too_many = |_| Decline::TooManyPairs { access, max };
        let neighbours = memory.neighbours();
        let disjoint = self.addresses.private.disjoint();
        // One region, or none, need not be that of all accesses to the cell; nor what they are proved disjoint from.
        let kind = |access: &Located| {
            (
                access.flags.alias_region(),
                access.flags.readonly(),
                disjoint.is_member(access.inst).then_some(access.inst),
            )
        };
        let mut kinds = Vec::new();
        let mut seen_by = None;
        for own in accesses {
            if kinds.contains(&kind(own)) {
                continue;
            }
            kinds.push(kind(own));
            let is_other =
                |other: &Located| other.place != accesses[0].place && !disjoint.are_disjoint(own.inst, other.inst);
            if let Some(other) = neighbours.store(self.addresses, own, is_other).map_err(too_many)? {
                return Err(Decline::Aliased { access, other });
            }
            if seen_by.is_none() {
                seen_by = neighbours.load(self.addresses, own, is_other).map_err(too_many)?;
            }
        }
        Ok(seen_by)
    }
}
