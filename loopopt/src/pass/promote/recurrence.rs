//! A cell that moves along: what one iteration stores, the next one loads.
//!
//! ```text
//! header(v1: i64):                       v9 = load.i64 v0-8      (with the first v1: before the loop)
//!     v2 = iadd v0, v1                   header(v1: i64, v3: i64):
//!     v3 = load.i64 v2-8                     v2 = iadd v0, v1
//!     v4 = imul v3, v5         ──►           v4 = imul v3, v5
//!     store v4, v2                           store v4, v2
//!     v6 = iadd v1, 8                        v6 = iadd v1, 8
//!     brif v7, header(v6), exit              brif v7, header(v6, v4), exit
//! ```
//!
//! The address of the load, with the next values of the header's parameters, is the address of the store: the same sum,
//! so the same address whatever overflows ([`Sum`]). The store stays.
//!
//! # Legal when
//!
//! * (R1) the store runs in each iteration that goes on: it dominates the latch, and stands in no inner loop;
//! * (R2) between the store and the load of the next iteration nothing may write the cell: no other store of the loop may
//!   overlap the one or the other, no call, fence or atomic is in the loop;
//! * (R3) the store itself comes after the load in an iteration, or does not overlap it;
//! * (R4) the load may be done before the loop, with the first values of the parameters: it runs on each entry, before
//!   anything that can be observed if it may trap; or it is `notrap` and `can_move`;
//! * (R5) the loop does not wait for what the load gives ([`exit_polls`](crate::analysis::memory::exit_polls)).
//!
//! In later iterations the load could not have trapped: the store before it was to the same bytes.
//!
//! # References
//!
//! GCC's predictive commoning; Callahan, Carr and Kennedy, "Improving register allocation for subscripted variables", 1990.

use super::carry::{address_of, as_loaded, merged_load_flags, replace_load, to_cell};
use super::neighbours::Located;
use super::why::Decline;
use super::{Here, Memory, prove_known_memory};
use crate::analysis::cfg::loops::def_block;
use crate::analysis::memory::alias::{Access, cell_type};
use crate::analysis::scev::linear_expr::Sum;
use crate::edit::cfg::split_edges::append_arg;
use crate::edit::materialize::assertion::assert_loads;
use crate::fault::fault;
use crate::pass::PassCx;
use crate::refusal::Said;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::ir::{Block, Function, Value};
use std::rc::Rc;
use std::slice;

/// A load that the store of the iteration before has the value for.
struct Recurrence {
    load: Rc<Located>,
    store: Rc<Located>,
}

impl Here<'_> {
    /// Carries all such cells. Gives the reason why one is not, if there is one.
    pub(super) fn promote_recurrences(&mut self, cx: &mut PassCx<'_>, memory: &mut Memory) -> Option<Said> {
        let mut said = None;
        for Recurrence { load, store } in self.recurrences(memory) {
            match self.prove_recurrence(cx, memory, &load, &store).and_then(|()| self.judge_load(cx, &load)) {
                Ok(()) if cx.fuel.take() => self.carry_along(&load, &store),
                Ok(()) => said = Some(self.say(Decline::Withheld)),
                Err(why) => said = Some(self.say(why)),
            }
        }
        said
    }

    /// The loads of the loop whose address is, in the next iteration, that of a store.
    fn recurrences(&self, memory: &Memory) -> Vec<Recurrence> {
        let is_own = |access: &&Rc<Located>| {
            let block = self.func.layout.inst_block(access.inst);
            block.is_some_and(|block| self.forest.innermost(block) == Some(self.lp))
                && !self.is_invariant(&access.address)
        };
        let mut stores = FxHashMap::<(&Sum, u32), &Rc<Located>>::default();
        for store in memory.accesses.iter().filter(|access| access.stored.is_some()).filter(is_own) {
            stores.entry((&store.address, store.size)).or_insert(store);
        }
        let mut found = Vec::new();
        for load in memory.accesses.iter().filter(|access| access.stored.is_none()).filter(is_own) {
            if stores.is_empty() {
                break;
            }
            let Some(next) = self.next_address(load) else { continue };
            if let Some(&store) = stores.get(&(&next, load.size)) {
                found.push(Recurrence { load: load.clone(), store: store.clone() });
            }
        }
        found
    }

    /// The address of `access` in the next iteration, made of values of this one.
    fn next_address(&self, access: &Access) -> Option<Sum> {
        let offset = self.func.dfg.insts[access.inst].load_store_offset()?;
        let mut leaf = |value| match self.back_edge_arg(value) {
            Some(next) => Some(Sum::of(self.func, next)),
            None => {
                let outside = def_block(self.func, value).is_none_or(|def| !self.forest.contains(self.lp, def));
                outside.then(|| Sum::of_leaf(self.func, value))
            }
        };
        Some(Sum::with_leaves(self.func, address_of(self.func, access.inst), &mut leaf)?.offset(offset.into()))
    }

    /// What the back edge passes for `value`, if that is a parameter of the header.
    fn back_edge_arg(&self, value: Value) -> Option<Value> {
        let [back_edge] = self.forest.data(self.lp).back_edges[..] else { return None };
        back_edge.passed_for(self.func, value)
    }

    /// What the header's parameters are in the first iteration.
    fn first_values(&self) -> impl Fn(&Function, Value) -> Option<Value> + use<> {
        let entry = self.entry_edge();
        move |func, value| entry.passed_for(func, value)
    }

    /// (R1) to (R5)
    fn prove_recurrence(
        &mut self,
        cx: &PassCx<'_>,
        memory: &mut Memory,
        load: &Rc<Located>,
        store: &Located,
    ) -> Result<(), Decline> {
        let access = load.inst;
        let type_of = |access: &Access| (cell_type(self.func, access.inst), access.flags.explicit_endianness());
        if type_of(load) != type_of(store) {
            return Err(Decline::MixedTypes { a: load.inst, b: store.inst });
        }
        if cx.options.is_asynchronous(self.func, load.flags) || cx.options.is_asynchronous(self.func, store.flags) {
            return Err(Decline::Asynchronous { access });
        }
        if let Some(fence) = memory.fence {
            return Err(Decline::Fenced { access, fence });
        }
        prove_known_memory(cx, [&***load, &**store].into_iter())?;
        let max = memory.max_pairs;
        for place in [&**load, store] {
            let clobber = memory.neighbours().store(self.addresses, place, |other| other.inst != store.inst);
            let clobber = clobber.map_err(|_| Decline::TooManyPairs { access, max })?;
            if let Some(other) = clobber.filter(|_| !fault!(CellChangesInBetween)) {
                return Err(Decline::Aliased { access, other });
            }
        }
        let flow = (self.cfg, self.domtree);
        if self.polls.contains(self.func, flow, (self.forest, self.lp), access) {
            return Err(Decline::Poll { load: access });
        }
        let comes_first = self.domtree.dominates(load.inst, store.inst, &self.func.layout);
        if !comes_first && store.may_alias(load, &self.addresses.private) {
            return Err(Decline::Aliased { access, other: store.inst });
        }
        let latch = self.forest.data(self.lp).back_edges[0].source(self.func);
        let home = self.func.layout.inst_block(store.inst).expect("an access is in the layout");
        if !self.domtree.block_dominates(home, latch) {
            return Err(Decline::NotCertain { access: store.inst });
        }
        let can_be_made = self.is_made_of(address_of(self.func, load.inst), &self.first_values());
        if !can_be_made || self.entry_flags(slice::from_ref(load)).is_none() {
            return Err(Decline::NotCertain { access });
        }
        Ok(())
    }

    fn judge_load(&mut self, cx: &PassCx<'_>, load: &Access) -> Result<(), Decline> {
        let access = load.inst;
        let is_cold = |block: Option<Block>| block.is_some_and(|block| self.func.is_effectively_cold(block));
        if cx.options.ignore_cost {
            return Ok(());
        }
        if is_cold(self.func.layout.inst_block(access)) {
            return Err(Decline::Cold { access });
        }
        let ty = cell_type(self.func, access).expect("a plain access has a type");
        self.take_register(cx, ty, access)
    }

    /// Carries what `store` stores to where `load` would load it.
    fn carry_along(&mut self, load: &Access, store: &Access) {
        let ty = cell_type(self.func, load.inst).expect("a plain access has a type");
        let (header, entry) = (self.forest.data(self.lp).header, self.entry_edge());
        let address = self.make_before(address_of(self.func, load.inst), &self.first_values());
        self.forget();
        let offset = self.func.dfg.insts[load.inst].load_store_offset().expect("a plain access");
        let flags = merged_load_flags([load, store], load.flags);
        let value = self.load_before(ty, flags, (address, offset), load.inst);
        let param = self.func.dfg.append_block_param(header, ty);
        append_arg(self.func, entry, value);
        let stored = to_cell(self.func, store.inst, store.stored.expect("a store stores"), ty);
        let back_edge = self.forest.data(self.lp).back_edges[0];
        append_arg(self.func, back_edge, stored);
        let name = self.func.dfg.display_inst(load.inst).to_string();
        let value = as_loaded(self.func, load.inst, param);
        assert_loads(self.func, load.inst, load.inst, value);
        replace_load(self.func, load.inst, value);
        let store = self.func.dfg.display_inst(store.inst);
        self.done.push(format!("\"{name}\" has what \"{store}\" stored in the iteration before, in a register"));
    }
}
