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
//! so the same address whatever overflows ([`Sum`]). The store stays. An exchange of neighbours (`if a[i] > a[i + 1]`) leaves in `a[i + 1]` what it has
//! stored there, or what it has loaded, and the next iteration does not wait for memory.
//!
//! # Legal when
//!
//! * (R1) each path to the latch contains a store to the address of the next load, or a load of it, in no inner loop ([`flow`](super::flow)); where two of them
//!   meet, a parameter is the one or the other;
//! * (R2) after the last of them no store of the iteration may overlap it; no call, fence or atomic is in the loop;
//! * (R3) before the load, no store of its iteration may overlap it;
//! * (R4) the load may be done before the loop, with the first values of the parameters: it runs on each entry, before
//!   anything that can be observed if it may trap but loads that are repeated there before it; or it is `notrap` and `can_move`;
//! * (R5) neither the loop nor an enclosing one waits for what the load gives ([`exit_polls`](crate::analysis::memory::exit_polls)).
//!
//! In later iterations the load could not have trapped: the access before it was to the same bytes.
//!
//! # Pays when
//!
//! One of the stores is not cold: to load again what was loaded costs no more than to keep it. And a register is left.
//!
//! # References
//!
//! GCC's predictive commoning; Callahan, Carr and Kennedy, "Improving register allocation for subscripted variables", 1990.

use super::carry::{address_of, as_loaded, merged_load_flags, replace_load, to_cell};
use super::flow::{Flow, Followed, Holds};
use super::neighbours::Located;
use super::why::Decline;
use super::{EntryLoad, Here, Memory, prove_known_memory};
use crate::analysis::cfg::edges::edges_into;
use crate::analysis::memory::alias::{Access, cell_type};
use crate::analysis::scev::linear_expr::Sum;
use crate::edit::cfg::split_edges::append_arg;
use crate::edit::materialize::assertion::assert_loads;
use crate::fault::fault;
use crate::pass::PassCx;
use crate::refusal::Said;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Block, Function, Inst, InstBuilder, Opcode, Type, Value};
use cranelift_codegen::{FxHashMap, FxHashSet};
use std::rc::Rc;
use std::{iter, slice};

/// A load of which the iteration before knows what it gives.
struct Recurrence {
    load: Rc<Located>,
    /// A store to what the load reads in the next iteration.
    store: Rc<Located>,
}

/// What the cell of a load holds at the end of an iteration.
struct Carried {
    flow: Flow,
    /// The accesses that it is known from.
    sources: Vec<Rc<Located>>,
    /// Where they meet.
    joins: Vec<Block>,
    /// So many of the loads that [come first](super::observers::Seen::traps_before) have to be repeated before the loop.
    traps_before: usize,
}

impl Here<'_> {
    /// Carries all such cells. Gives the reason why one is not, if there is one.
    pub(super) fn promote_recurrences(&mut self, cx: &mut PassCx<'_>, memory: &mut Memory) -> Option<Said> {
        let mut said = None;
        for recurrence in self.recurrences(memory) {
            let proved = self.prove_recurrence(cx, memory, &recurrence);
            match proved.and_then(|carried| self.judge_load(cx, &recurrence.load, &carried).map(|()| carried)) {
                Ok(carried) if cx.fuel.take() => self.carry_along(&recurrence.load, &carried),
                Ok(_) => said = Some(self.say(Decline::Withheld)),
                Err(why) => said = Some(self.say(why)),
            }
        }
        said
    }

    /// The loads of the loop whose address is, in the next iteration, that of a store.
    fn recurrences(&self, memory: &Memory) -> Vec<Recurrence> {
        let is_moving = |access: &&Rc<Located>| self.is_own(access.inst) && !self.is_invariant(&access.address);
        let mut stores = FxHashMap::<(&Sum, u32), &Rc<Located>>::default();
        for store in memory.accesses.iter().filter(|access| access.stored.is_some()).filter(is_moving) {
            stores.entry((&store.address, store.size)).or_insert(store);
        }
        let mut found = Vec::new();
        for load in memory.accesses.iter().filter(|access| access.stored.is_none()).filter(is_moving) {
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

    /// Whether `inst` is in a block of the loop that is in no inner loop.
    fn is_own(&self, inst: Inst) -> bool {
        let block = self.func.layout.inst_block(inst);
        block.is_some_and(|block| self.forest.innermost(block) == Some(self.lp))
    }

    /// The address of `access` in the next iteration, made of values of this one.
    fn next_address(&self, access: &Access) -> Option<Sum> {
        let offset = self.func.dfg.insts[access.inst].load_store_offset()?;
        let mut leaf = |value| match self.back_edge_arg(value) {
            Some(next) => Some(Sum::of(self.func, next)),
            None => {
                let outside = !self.forest.defines(self.func, self.lp, value);
                outside.then(|| Sum::of_leaf(self.func, value))
            }
        };
        Some(Sum::with_leaves(self.func, address_of(self.func, access.inst), &mut leaf)?.offset(offset.into()))
    }

    /// The argument of the back edge for `value`, if that is a parameter of the header.
    fn back_edge_arg(&self, value: Value) -> Option<Value> {
        let [back_edge] = self.forest.data(self.lp).back_edges[..] else { return None };
        back_edge.passed_for(self.func, value)
    }

    /// What the header's parameters are in the first iteration.
    pub(super) fn first_values(&self) -> impl Fn(&Function, Value) -> Option<Value> + use<> {
        let entry = self.entry_edge();
        move |func, value| entry.passed_for(func, value)
    }

    /// (R1) to (R5)
    fn prove_recurrence(
        &mut self,
        cx: &PassCx<'_>,
        memory: &mut Memory,
        Recurrence { load, store }: &Recurrence,
    ) -> Result<Carried, Decline> {
        let access = load.inst;
        let kind_of = |access: &Access| (cell_type(self.func, access.inst), access.flags.explicit_endianness());
        if kind_of(load) != kind_of(store) {
            return Err(Decline::MixedTypes { a: load.inst, b: store.inst });
        }
        if cx.options.is_asynchronous(self.func, load.flags) || cx.options.is_asynchronous(self.func, store.flags) {
            return Err(Decline::Asynchronous { access });
        }
        if let (Some(ty), false) = (cell_type(self.func, access), cx.options.ignore_cost) {
            self.prove_room(cx, ty, access)?;
        }
        if let Some(fence) = memory.fence {
            return Err(Decline::Fenced { access, fence });
        }
        prove_known_memory(cx, [&***load, &**store].into_iter())?;
        let carried = self.prove_carried(memory, load, store)?;
        self.prove_no_poll(access, |_, _| false)?;
        let can_be_made = self.is_made_of(address_of(self.func, load.inst), &self.first_values());
        match self.entry_load(slice::from_ref(load)) {
            Some(EntryLoad { traps_before, .. }) if can_be_made => Ok(Carried { traps_before, ..carried }),
            _ => Err(Decline::NotCertain { access }),
        }
    }

    /// (R1) to (R3)
    fn prove_carried(&mut self, memory: &mut Memory, load: &Located, store: &Located) -> Result<Carried, Decline> {
        let access = load.inst;
        let aliased = |other| Decline::Aliased { access, other };
        let writers = self.writers(memory, load, access)?;
        let at_entry =
            Flow::of(self, &Followed { sources: &FxHashSet::default(), writers: &writers, at: access }).at_entry;
        if let Holds::Overwritten(other) = at_entry {
            return Err(aliased(other));
        }
        let kind_of = |access: &Access| {
            let flags = access.flags;
            (cell_type(self.func, access.inst), flags.explicit_endianness(), flags.alias_region())
        };
        let is_source = |other: &&Rc<Located>| {
            // What was a load may be a parameter by now.
            let is_access = self.func.dfg.insts[other.inst].opcode() != Opcode::Nop;
            is_access && other.place == store.place && kind_of(other) == kind_of(store) && self.is_own(other.inst)
        };
        let sources: Vec<_> = memory.accesses.iter().filter(is_source).cloned().collect();
        let writers = self.writers(memory, store, access)?;
        let at = &sources.iter().map(|source| source.inst).collect();
        let flow = Flow::of(self, &Followed { sources: at, writers: &writers, at: access });
        let latch = self.forest.data(self.lp).back_edges[0].source(self.func);
        let (joins, reaching) = flow.reaching(self, latch);
        for holds in &reaching {
            match *holds {
                Holds::Overwritten(other) => return Err(aliased(other)),
                Holds::AtStart => return Err(Decline::NotCertain { access: store.inst }),
                Holds::Accessed(_) | Holds::Joined(_) => {}
            }
        }
        let sources = sources.into_iter().filter(|source| reaching.contains(&Holds::Accessed(source.inst))).collect();
        Ok(Carried { flow, sources, joins, traps_before: 0 })
    }

    /// The stores of the loop that may write the cell of `place`, none of them in an inner loop.
    fn writers(&mut self, memory: &mut Memory, place: &Located, access: Inst) -> Result<FxHashSet<Inst>, Decline> {
        let max = memory.max_pairs;
        let writers = memory.neighbours().stores(self.addresses, place);
        let writers = writers.map_err(|_| Decline::TooManyPairs { access, max })?;
        match writers.iter().copied().filter(|&inst| !self.is_own(inst)).min() {
            Some(other) => Err(Decline::Aliased { access, other }),
            None if fault!(CellChangesInBetween) => Ok(FxHashSet::default()),
            None => Ok(writers),
        }
    }

    /// (P1), (P2)
    fn judge_load(&mut self, cx: &PassCx<'_>, load: &Access, carried: &Carried) -> Result<(), Decline> {
        let access = load.inst;
        if cx.options.ignore_cost {
            return Ok(());
        }
        let is_cold = |inst: Inst| {
            let block = self.func.layout.inst_block(inst);
            block.is_some_and(|block| self.func.is_effectively_cold(block))
        };
        if is_cold(access) {
            return Err(Decline::Cold { access });
        }
        let mut stores = carried.sources.iter().filter(|source| source.stored.is_some());
        if stores.all(|store| is_cold(store.inst)) {
            return Err(Decline::Cold { access: carried.sources[0].inst });
        }
        let ty = cell_type(self.func, access).expect("a plain access has a type");
        self.take_register(cx, ty, access)
    }

    /// Carries what the cell holds at the end of an iteration to where `load` would load it.
    fn carry_along(&mut self, load: &Access, carried: &Carried) {
        let ty = cell_type(self.func, load.inst).expect("a plain access has a type");
        let (header, entry) = (self.forest.data(self.lp).header, self.entry_edge());
        self.repeat_before(carried.traps_before);
        let address = self.make_before(address_of(self.func, load.inst), &self.first_values());
        self.forget();
        let offset = self.func.dfg.insts[load.inst].load_store_offset().expect("a plain access");
        let accesses = carried.sources.iter().map(|source| &***source);
        let flags = merged_load_flags(iter::once(load).chain(accesses), load.flags);
        let value = self.load_before(ty, flags, (address, offset), load.inst);
        let param = self.func.dfg.append_block_param(header, ty);
        append_arg(self.func, entry, value);
        self.pass_carried(carried, ty);
        let name = self.func.dfg.display_inst(load.inst).to_string();
        let value = as_loaded(self.func, load.inst, param);
        assert_loads(self.func, load.inst, load.inst, value);
        replace_load(self.func, load.inst, value);
        let by: Vec<_> =
            carried.sources.iter().map(|source| self.func.dfg.display_inst(source.inst).to_string()).collect();
        let done = match (&by[..], carried.sources[0].stored) {
            ([store], Some(_)) => format!("what \"{store}\" stored"),
            _ => format!("what \"{}\" left in memory", by.join("\" or \"")),
        };
        self.done.push(format!("\"{name}\" has {done} in the iteration before, in a register"));
    }

    /// Passes what the cell of type `ty` holds at the end of an iteration to the next one, with parameters where its sources meet.
    fn pass_carried(&mut self, Carried { flow, sources, joins, .. }: &Carried, ty: Type) {
        let read_or_written: FxHashMap<_, _> =
            sources.iter().map(|source| (source.inst, cell_at(self.func, source, ty))).collect();
        let joined: FxHashMap<_, _> =
            joins.iter().map(|&block| (block, self.func.dfg.append_block_param(block, ty))).collect();
        let value_of = |holds: Holds| match holds {
            Holds::Joined(block) => joined[&block],
            Holds::Accessed(inst) | Holds::Overwritten(inst) => read_or_written[&inst],
            Holds::AtStart => unreachable!("the cell is known on each path"),
        };
        for &block in joins {
            let edges: Vec<_> = edges_into(self.func, self.cfg, block).collect();
            for edge in edges {
                append_arg(self.func, edge, value_of(flow.at_end(edge.source(self.func))));
            }
        }
        let back_edge = self.forest.data(self.lp).back_edges[0];
        append_arg(self.func, back_edge, value_of(flow.at_end(back_edge.source(self.func))));
    }
}

/// The bytes that `access` reads or writes, as one value.
fn cell_at(func: &mut Function, access: &Access, ty: Type) -> Value {
    if let Some(stored) = access.stored {
        return to_cell(func, access.inst, stored, ty);
    }
    let loaded = func.dfg.first_result(access.inst);
    if func.dfg.value_type(loaded) == ty {
        return loaded;
    }
    let srcloc = func.srcloc(access.inst);
    FuncCursor::new(func).after_inst(access.inst).with_srcloc(srcloc).ins().ireduce(ty, loaded)
}
