//! What sees memory in a loop, so that a store has to have been done by then.

use super::Here;
use super::neighbours::Located;
use super::why::Decline;
use crate::analysis::cfg::must_execute::FirstIteration;
use crate::analysis::inst::effects::Effects;
use crate::fault::fault;
use cranelift_codegen::FxHashSet;
use cranelift_codegen::ir::{Block, Inst};
use std::rc::Rc;

/// What can be seen of an iteration from outside.
pub(super) struct Seen {
    /// Loads and stores that run on each entry of the loop, and before anything that can be observed if they may trap.
    pub(super) first: FxHashSet<Inst>,
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
        let mut seen = Seen { first: FxHashSet::default(), observer: None };
        for &block in self.blocks {
            walk.enter(block);
            for inst in self.func.layout.block_insts(block) {
                let effects = Effects::of(self.func, inst);
                let is_certain = || walk.reaches(block) && walk.detour().is_none();
                let unseen = !effects.traps || walk.observable().is_none();
                if (effects.reads || effects.writes) && unseen && is_certain() {
                    seen.first.insert(inst);
                }
                if effects.traps || effects.fences || effects.diverges {
                    seen.observer.get_or_insert(inst);
                }
                walk.pass_effects(inst, effects);
            }
        }
        seen
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
