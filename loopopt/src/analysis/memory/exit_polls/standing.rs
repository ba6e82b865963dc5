//! What stands still as long as nobody writes: numbers that move only if a flag is set, in a register or in memory.
//!
//! ```text
//! header(v1):
//!     v2 = load.i8 v0            brif v2, body, next(v1)          a branch decides whether it moves
//!     v3 = icmp ne v2, v9        v4 = uextend v3                  or how far: by one or not at all
//!     v5 = iadd v1, v4           brif (v5 > 3), exit, header(v5)
//! ```
//!
//! A loop that such a number ends waits for the flag. A number that stands still because of what varies, as in a binary search, is not such a number: the next
//! iteration finds something else.
//!
//! # What moves
//!
//! An exit is *sure* if each iteration reaches it and what is asked there [progresses](Search::progresses): it is made of what is different in each
//! iteration, and not so that what is loaded from one place can hide that. A parameter of the header is different if each path through an iteration adds to it
//! ([`passed`](super::passed)); or if on the paths on which nothing is added to it, what decides these paths is different in the next iteration. That is not so
//! if it is made of loads from one place, and of parameters that stand still on the same path: a consumer that asks whether its
//! number is that of the producer, and counts if not. What is not known to progress does not.

use super::passed::{Kept, Params};
use super::{ExitCondition, Guards, Operands, Search, condition, is_select};
use crate::analysis::memory::alias::{Access, PrivateSlots, address_operand};
use crate::analysis::scev::linear_expr::offset;
use cranelift_codegen::FxHashSet;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value, ValueDef};
use std::rc::Rc;

/// Values on one path down to what is asked. What is made of more is not known to progress.
const MAX_DEPTH: usize = 64;

/// Values that are looked at to see what one is made of.
const MAX_VALUES: usize = 64;

/// Pairs of a poll and a store of one loop. If there are more, each store may write what any poll loads.
const MAX_PAIRS: usize = 4_096;

/// Branches and choices on what is loaded from one place, of one loop. If there are more, any of them may decide anything.
const MAX_DECIDERS: usize = 16;

/// A condition that is made of a load from one place, among others, and decides what an iteration does.
pub(super) struct Decider {
    condition: Value,
    /// Whether what is loaded may decide alone, whatever else varies.
    is_masked: bool,
    /// The parameters of the header that it is made of.
    params: Params,
}

/// What a value is made of in one iteration.
pub(super) struct Parts {
    /// Whether a load from one place is a part of it, or may be.
    pub is_loaded: bool,
    pub params: Params,
    /// Whether all of it was looked at.
    pub is_whole: bool,
    /// The conditions of the choices that were seen.
    chosen_by: Operands,
}

impl Search<'_> {
    /// Whether this exit is taken eventually, whatever is loaded from places that nobody writes to.
    pub(super) fn is_sure(&mut self, (block, asked): &ExitCondition) -> bool {
        asked.iter().all(|&value| self.progresses(value, false))
            && (self.is_in_each_iteration(*block) || self.blocking().is_empty())
    }

    /// The conditions that may decide the same from some iteration on, because of what is loaded.
    pub(super) fn blocking(&mut self) -> Vec<Value> {
        let conditions: Vec<_> = self.deciders().iter().map(|decider| decider.condition).collect();
        let is_all = conditions.len() > MAX_DECIDERS;
        conditions.into_iter().filter(|&condition| is_all || !self.progresses(condition, false)).collect()
    }

    /// Remembers the loads from one place that these values are made of as what the loop waits for.
    pub(super) fn wait_for(&mut self, values: Vec<Value>) {
        let loads = self.steady_source_loads(values, &mut FxHashSet::default());
        self.awaited.extend(loads);
    }

    fn steady_source_loads(&mut self, values: Vec<Value>, done: &mut FxHashSet<Value>) -> Vec<Inst> {
        let loads = self.source_loads(values, done);
        loads.into_iter().filter(|&load| self.is_steady(self.func.dfg.first_result(load))).collect()
    }

    /// Whether `value` is a different one in each iteration, from what is known. With `assumes`, all parameters of the header are.
    pub(super) fn progresses(&mut self, value: Value, assumes: bool) -> bool {
        self.progresses_within(value, assumes, MAX_DEPTH)
    }

    fn progresses_within(&mut self, value: Value, assumes: bool, depth: usize) -> bool {
        if depth == 0 || self.is_steady(value) {
            return false;
        }
        if let Some(&known) = self.progressing.get(&(value, assumes)) {
            return known;
        }
        // A parameter of an inner loop that is made of itself.
        self.progressing.insert((value, assumes), true);
        let progresses = match self.func.dfg.value_def(value) {
            ValueDef::Param(block, _) if block == self.forest.data(self.lp).header => assumes || self.counts(value),
            ValueDef::Param(..) => {
                let passed = self.operands(value).unwrap_or_default();
                self.all_progress(&passed, assumes, depth)
            }
            ValueDef::Result(inst, _) => self.result_progresses(inst, assumes, depth),
            ValueDef::Union(..) => false,
        };
        if !progresses {
            // What was found meanwhile may rest on the contrary.
            self.progressing.retain(|_, progresses| !*progresses);
        }
        self.progressing.insert((value, assumes), progresses);
        progresses
    }

    fn result_progresses(&mut self, inst: Inst, assumes: bool, depth: usize) -> bool {
        use Opcode::{Bxor, Fadd, Fcmp, Fsub, Iadd, Icmp, Isub};
        let opcode = self.func.dfg.insts[inst].opcode();
        let args = Operands::from_slice(self.func.dfg.inst_args(inst));
        if !super::is_deterministic(self.func, inst) {
            return true;
        }
        if is_select(opcode) {
            return self.all_progress(&args[1..], assumes, depth);
        }
        let hides = !opcode.can_load() && !matches!(opcode, Bxor | Fadd | Fcmp | Fsub | Iadd | Icmp | Isub);
        let progressing: Vec<_> = args.iter().map(|&arg| self.progresses_within(arg, assumes, depth - 1)).collect();
        let mut rest = args.iter().zip(&progressing).filter(|(_, progresses)| !**progresses).map(|(&arg, _)| arg);
        progressing.contains(&true) && !(hides && rest.any(|arg| self.parts(arg).is_loaded))
    }

    /// Whether a choice among these values progresses: each of them does, or is steady and not made of a load; and no load decides that a steady one is chosen.
    fn all_progress(&mut self, values: &[Value], assumes: bool, depth: usize) -> bool {
        let is_any_steady = values.iter().any(|&value| self.is_steady(value));
        if is_any_steady && !assumes && self.deciders().iter().any(|decider| decider.is_masked) {
            return false;
        }
        values.iter().all(|&value| match self.is_steady(value) {
            true => !self.has_load(value),
            false => self.progresses_within(value, assumes, depth - 1),
        })
    }

    /// Whether `param` of the header is different in each iteration, or stands still only because of what is different.
    fn counts(&mut self, param: Value) -> bool {
        match self.kept_on_some_path(&[param]) {
            Kept::No => true,
            Kept::ForGood => false,
            Kept::Yes => !self.may_be_kept_for_good(param),
        }
    }

    /// Whether what decides that `param` is kept may be the same in the next iteration.
    fn may_be_kept_for_good(&mut self, param: Value) -> bool {
        let deciders = self.deciders();
        if deciders.len() > MAX_DECIDERS || deciders.iter().any(|decider| decider.is_masked) {
            return true;
        }
        let mut together: Vec<Params> = deciders.iter().map(|decider| decider.params.clone()).collect();
        together.iter_mut().for_each(|params| params.push(param));
        together.into_iter().any(|params| self.kept_on_some_path(&params) != Kept::No)
    }

    /// The conditions of branches that stay in the loop, and of choices, that are made of loads from one place. One more than [`MAX_DECIDERS`] if
    /// there are too many.
    fn deciders(&mut self) -> &[Decider] {
        if self.deciders.is_none() {
            let Self { func, forest, lp, .. } = *self;
            let insts = forest.blocks(lp).iter().flat_map(|&block| func.layout.block_insts(block));
            let mut conditions: Vec<_> = insts.filter_map(|inst| self.decided_by(inst)).collect();
            conditions.sort_unstable();
            conditions.dedup();
            let mut found = Vec::new();
            for condition in conditions {
                let parts = self.parts(condition);
                if parts.is_loaded {
                    let is_masked = !self.progresses(condition, true);
                    found.push(Decider { condition, is_masked, params: parts.params.clone() });
                }
                if found.len() > MAX_DECIDERS {
                    break;
                }
            }
            self.deciders = Some(found);
        }
        self.deciders.as_deref().unwrap_or_default()
    }

    /// The condition of a choice, or of a branch that stays in the loop.
    fn decided_by(&self, inst: Inst) -> Option<Value> {
        let Self { func, forest, lp, .. } = *self;
        if is_select(func.dfg.insts[inst].opcode()) {
            return func.dfg.inst_args(inst).first().copied();
        }
        let asked = condition(func, inst)?;
        let targets = func.dfg.insts[inst].branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables);
        let inside = targets.iter().map(|call| call.block(&func.dfg.value_lists)).filter(|&to| forest.contains(lp, to));
        (inside.count() > 1).then_some(asked)
    }

    /// What `value` is made of within one iteration.
    pub(super) fn parts(&mut self, value: Value) -> Rc<Parts> {
        if let Some(known) = self.parts.get(&value) {
            self.deciding.extend_from_slice(&known.chosen_by);
            return Rc::clone(known);
        }
        let parts = Rc::new(self.find_parts(value));
        self.parts.insert(value, Rc::clone(&parts));
        parts
    }

    fn find_parts(&mut self, value: Value) -> Parts {
        let header = self.forest.data(self.lp).header;
        let mut parts = Parts { is_loaded: false, params: Params::new(), is_whole: true, chosen_by: Operands::new() };
        let (mut open, mut seen) = (Operands::from_slice(&[value]), FxHashSet::default());
        while let Some(value) = open.pop() {
            if !seen.insert(value) {
                continue;
            }
            if seen.len() > MAX_VALUES {
                (parts.is_loaded, parts.is_whole) = (true, false);
                break;
            }
            match self.func.dfg.value_def(value) {
                ValueDef::Param(block, _) if block == header => {
                    parts.params.push(value);
                    // What an earlier iteration has loaded from one place is what this one would.
                    parts.is_loaded |= self.is_loaded(value);
                }
                _ => {
                    parts.is_loaded |= self.load_of(value).is_some() && self.is_steady(value);
                    parts.chosen_by.extend(self.chosen_by(value));
                    open.extend(self.operands(value).unwrap_or_default());
                }
            }
        }
        parts
    }

    /// The polls `loads`, and those that decide what the loop itself stores where these load: `while (*n < 4) if (*flag) ++*n` waits for the flag.
    pub(super) fn with_stored(&mut self, mut loads: Vec<Inst>) -> Vec<Inst> {
        let mut stores = if loads.is_empty() { Vec::new() } else { self.stores() };
        let (mut known, mut done): (FxHashSet<_>, _) = (loads.iter().copied().collect(), FxHashSet::default());
        let (mut next, mut pairs) = (0, 0);
        while let Some(&load) = loads.get(next).filter(|_| !stores.is_empty()) {
            next += 1;
            pairs += stores.len();
            let access = Access::of(self.func, load).filter(|_| pairs <= MAX_PAIRS);
            // Each store is looked at once.
            let may_write = |store: &Access| access.as_ref().is_none_or(|load| self.may_meet(load, store));
            let (found, rest): (Vec<_>, Vec<_>) = stores.into_iter().partition(may_write);
            stores = rest;
            for store in found {
                let decide = self.decide_stored(store.inst);
                let found = self.steady_source_loads(decide, &mut done);
                loads.extend(found.into_iter().filter(|&load| known.insert(load)));
            }
        }
        loads.sort_unstable();
        loads
    }

    /// The plain stores of the loop.
    fn stores(&self) -> Vec<Access> {
        let Self { func, forest, lp, .. } = *self;
        let insts = forest.blocks(lp).iter().flat_map(|&block| func.layout.block_insts(block));
        let is_store = |inst: &Inst| matches!(func.dfg.insts[*inst], InstructionData::Store { .. });
        insts.filter(is_store).filter_map(|inst| Access::of(func, inst)).collect()
    }

    /// Whether a store may write what is loaded, in this iteration or another: from whatever byte on, and by whatever address.
    fn may_meet(&self, load: &Access, store: &Access) -> bool {
        let Self { func, forest, lp, .. } = *self;
        if load.is_kept_apart(store) {
            return false;
        }
        // What differs by a constant in one iteration may not do so in two.
        let mut stand = true;
        for access in [load, store] {
            let is_outside = |value| forest.is_from_outside(func, lp, value);
            access.address.each_value(&mut |value| stand &= is_outside(value));
        }
        !stand || load.may_alias(store, &PrivateSlots::default())
    }

    /// What is steady and loaded and decides whether `store` is done, where, or what it stores: how far what was there is moved, or what comes in its place.
    fn decide_stored(&mut self, store: Inst) -> Vec<Value> {
        let func = self.func;
        let mut guards = Guards::default();
        if let Some(block) = func.layout.inst_block(store) {
            self.is_guarded(block, &mut guards);
            if !self.is_in_each_iteration(block) {
                guards.conditions.extend(self.blocking());
                guards.conditions.extend(self.standing_before(block));
            }
        }
        let mut decide = guards.conditions;
        decide.extend(address_operand(func, store));
        let (mut open, mut seen) = (vec![func.dfg.inst_args(store)[0]], FxHashSet::default());
        let (mut distances, mut loaded_distances, mut moves) = (EntitySet::new(), Vec::new(), false);
        while let Some(value) = open.pop() {
            let is_new = seen.insert(value);
            match func.dfg.value_def(value) {
                _ if !is_new => {}
                _ if seen.len() > MAX_VALUES => decide.push(value),
                // What the place holds decides nothing, nor does a distance from there that is loaded.
                ValueDef::Result(inst, _) if place(func, inst) == place(func, store) => moves = true,
                ValueDef::Result(inst, _) if place(func, inst).is_some() => {
                    let list = if distances.contains(value) { &mut loaded_distances } else { &mut decide };
                    list.extend(self.is_loaded(value).then_some(value));
                }
                ValueDef::Result(inst, _) => {
                    let args = func.dfg.inst_args(inst);
                    if let (Opcode::Iadd | Opcode::Isub, &[_, _]) = (func.dfg.insts[inst].opcode(), args) {
                        args.iter().for_each(|&arg| _ = distances.insert(arg));
                    }
                    open.extend(args);
                }
                ValueDef::Param(block, _) if self.forest.contains(self.lp, block) => {
                    decide.extend(self.steady_deciders());
                    open.extend(self.operands(value).unwrap_or_default());
                }
                _ => {}
            }
        }
        if !moves {
            decide.append(&mut loaded_distances);
        }
        decide
    }

    /// The conditions that vary and decide in an iteration whether it reaches `block`, but for those that progress.
    fn standing_before(&mut self, block: Block) -> Operands {
        let header = self.forest.data(self.lp).header;
        let above = |&block: &Block| self.domtree.idom(block).filter(|_| block != header);
        let blocks = std::iter::successors(above(&block), above).filter(|&block| self.has_several_successors(block));
        let branches = blocks.filter_map(|block| self.func.layout.last_inst(block));
        let mut conditions: Operands = branches.filter_map(|branch| condition(self.func, branch)).collect();
        conditions.retain(|&mut condition| !self.is_steady(condition) && !self.progresses(condition, false));
        conditions
    }

    /// The conditions that decide what an iteration does and are the same in each.
    fn steady_deciders(&mut self) -> Operands {
        let conditions: Operands = self.deciders().iter().map(|decider| decider.condition).collect();
        conditions.into_iter().filter(|&condition| self.is_steady(condition)).collect()
    }
}

/// A value, and how many bytes after it an address is.
type Place = (Value, u128);

/// Where a load or a store accesses memory.
fn place(func: &Function, inst: Inst) -> Option<Place> {
    let (address, distance) = match func.dfg.insts[inst] {
        InstructionData::Load { arg, offset, .. } => (arg, offset),
        InstructionData::Store { args: [_, address], offset, .. } => (address, offset),
        _ => return None,
    };
    let (base, sum) = offset(func, None, address);
    Some((base, sum.wrapping_add(i128::from(i32::from(distance)).cast_unsigned()) & u128::from(u64::MAX)))
}
