//! What sees memory in a loop, so that a store has to have been done by then.

use super::Here;
use super::carry::address_of;
use super::neighbours::Located;
use super::why::Decline;
use crate::analysis::cfg::must_execute::FirstIteration;
use crate::analysis::inst::effects::Effects;
use crate::fault::fault;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::ir::{Block, Inst, InstructionData};
use std::rc::Rc;

/// Loads that are done once more before the loop so that another one may be. 4: what a cell of a table is made of, its neighbours and what is compared.
const MAX_REPEATED: usize = 4;

/// What can be seen of an iteration from outside.
pub(super) struct Seen {
    /// Loads and stores that run on each entry of the loop, unless one of `traps_before` traps, of which so many come before; and, if they may trap, before anything
    /// else that can be observed.
    pub(super) first: FxHashMap<Inst, usize>,
    /// Loads that may trap, in the order in which they run, with nothing else before them that can be observed. What they are in the first iteration can be made
    /// before the loop.
    pub(super) traps_before: Vec<Inst>,
    /// The first thing that shows memory to others.
    observer: Option<Inst>,
}

impl Here<'_> {
    /// What can be seen of the loop as it is. Linear in the size of the loop, if it was forgotten.
    pub(super) fn seen(&mut self) -> &Seen {
        let seen = self.seen.take().unwrap_or_else(|| self.look());
        self.seen.insert(seen)
    }

    fn look(&self) -> Seen {
        let mut walk = FirstIteration::new(self.func, self.forest, self.domtree, self.lp);
        let mut seen = Seen { first: FxHashMap::default(), traps_before: Vec::new(), observer: None };
        for &block in self.blocks {
            walk.enter(block);
            for inst in self.func.layout.block_insts(block) {
                let effects = Effects::of(self.func, inst);
                let is_certain = || walk.reaches(block) && walk.interruption().is_none();
                let unseen = !effects.traps || walk.observable().is_none();
                let comes_first = (effects.reads || effects.writes) && unseen && is_certain();
                if comes_first {
                    seen.first.insert(inst, seen.traps_before.len());
                }
                if effects.traps || effects.fences || effects.diverges {
                    seen.observer.get_or_insert(inst);
                }
                let has_room = seen.traps_before.len() < MAX_REPEATED;
                if comes_first && effects.traps && has_room && self.can_be_repeated(inst) {
                    seen.traps_before.push(inst);
                } else {
                    walk.pass_effects(inst, effects);
                }
            }
        }
        seen
    }

    /// Whether an instruction is a load, and can be done before the loop as it is in the first iteration.
    fn can_be_repeated(&self, inst: Inst) -> bool {
        let is_load = matches!(self.func.dfg.insts[inst], InstructionData::Load { .. });
        is_load && self.is_made_of(address_of(self.func, inst), &self.first_values())
    }

    /// (L4), (L5): why the stores have to stay, if so.
    pub(super) fn prove_stores(
        &mut self,
        accesses: &[Rc<Located>],
        invisible: bool,
        seen_by: Option<Inst>,
    ) -> Option<Decline> {
        let store = accesses.iter().find(|access| access.stored.is_some()).expect("a cell is stored to").inst;
        if let Some(load) = seen_by.filter(|_| !fault!(UnseenStores)) {
            return Some(Decline::MayBeRead { store, load });
        }
        if invisible {
            return None;
        }
        if let Some(trap) = self.seen().observer.filter(|_| !fault!(StoresPassTraps)) {
            return Some(Decline::MayTrap { store, trap });
        }
        let is_certain = |exit: Block| {
            let mut stores = accesses.iter().filter(|access| access.stored.is_some());
            stores.any(|store| {
                let home = self.func.layout.inst_block(store.inst).expect("an access is in the layout");
                self.domtree.block_dominates(home, exit)
            })
        };
        let exits = &self.forest.data(self.lp).exits;
        let uncertain = exits.iter().map(|exit| exit.source(self.func)).find(|&exit| !is_certain(exit));
        uncertain.filter(|_| !fault!(InventedStore)).map(|block| Decline::NotStored { store, block })
    }
}
