//! Accesses that may be moved stay where they are if their addresses are known there only.
//!
//! ```text
//!     brif v0, block2, block1                          brif v0, block2, block1
//! block1:                                          block1:
//!     v1 = load.i64 notrap can_move v0+8    ──►        v1 = load.i64 notrap 0+8
//! ```
//!
//! `can_move` says of an access that it may be done wherever its address is available: at that address. What a branch has proved takes the place of an
//! operand where it is proved, and so, through instructions without effect, of an address. That is another address elsewhere
//! ([`pin_accesses_at`]).
//!
//! # Addresses that are chosen
//!
//! ```text
//!     brif v0, block2(v0), block1
//! block1 cold:
//!     jump block2(v1)
//! block2(v2: i64):
//!     v3 = load.i64 notrap can_move v2+8      wherever v2 is available, and that is here; v0 may be null
//! ```
//!
//! An address that depends on how control has come to a place is available at that place. Many passes let what is chosen be all that there is: one arm
//! of a branch gets a loop of its own, a cold path leaves the loop, a check decides a branch, an iteration becomes a copy, a sum that traps is proved not
//! to. Then the address is what was one of several, and that is available long before the choice. So an access at an address that is made
//! of a choice is pinned before all passes, whichever of them may decide it ([`pin_chosen`]). Choices are parameters of blocks; results of comparisons,
//! of what selects, and of operations that may trap or tell if they overflow; and what is loaded, unless it is the same anywhere: `readonly` and
//! `can_move`. A load that loses this permission is the same anywhere no longer, and what is at addresses made of it is pinned with it.
//!
//! ```text
//!     v1 = load.i64 notrap v0
//!     brif v1, block2, block3                     v1 may be null
//! block2:
//!     store notrap v5, v0+64
//!     v2 = load.i64 notrap v0                     is v1, for one that sees that the store is elsewhere
//!     v3 = load.i64 notrap can_move v2+8          wherever v2 is available, and that is here
//! ```
//!
//! A load may become what was loaded or stored earlier, and that is available above a test that comes before the load, or the store. One from a stack slot may
//! become a parameter. Not so arithmetic: nothing is left of it that is available earlier than its operands.

use crate::analysis::cfg::edges::{each_use, edges_of};
use crate::analysis::memory::alias::{Access, address_operand};
use crate::fault::fault;
use crate::ir::{all_insts, all_mem_flags};
use cranelift_codegen::FxHashMap;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Function, Inst, MemFlags, MemFlagsData, Opcode, Value, ValueDef};

/// Takes the permission to be moved from each access at an address that is made of a choice. Takes time linear in the size of the function, and none if
/// no access has the permission.
pub(crate) fn pin_chosen(func: &mut Function) {
    if !has_movable(func) || fault!(ChosenAddressMoves) {
        return;
    }
    let mut choices = Choices::default();
    let mut blocks = func.layout.entry_block();
    while let Some(block) = blocks {
        let mut insts = func.layout.first_inst(block);
        while let Some(inst) = insts {
            if may_move(func, inst) && address_operand(func, inst).is_some_and(|address| choices.holds(func, address)) {
                pin(func, inst);
            }
            insts = func.layout.next_inst(inst);
        }
        blocks = func.layout.next_block(block);
    }
}

/// Whether an access of `func` may have the permission to be moved.
fn has_movable(func: &Function) -> bool {
    all_mem_flags(func).any(|flags| func.dfg.mem_flags[flags].can_move())
}

/// Whether `inst` is an access that has the permission to be moved.
fn may_move(func: &Function, inst: Inst) -> bool {
    func.dfg.insts[inst].memflags().is_some_and(|flags| func.dfg.mem_flags[flags].can_move())
}

/// Which values are choices or made of one, as far as that was asked.
#[derive(Default)]
struct Choices {
    known: EntitySet<Value>,
    chosen: EntitySet<Value>,
    /// The values of which the operands were asked of.
    asked: EntitySet<Value>,
    open: Vec<Value>,
}

impl Choices {
    /// Whether `value` is one. All questions together take time linear in the size of the function.
    fn holds(&mut self, func: &Function, value: Value) -> bool {
        self.open.push(value);
        while let Some(&value) = self.open.last() {
            if !self.known.contains(value) {
                match self.settled(func, value) {
                    Some(true) => _ = self.chosen.insert(value),
                    Some(false) => {}
                    // Its operands come first.
                    None => continue,
                }
                self.known.insert(value);
            }
            self.open.pop();
        }
        self.chosen.contains(value)
    }

    /// Whether `value` is one, if that is known of the operands of what computes it. If not, asks of these, once.
    fn settled(&mut self, func: &Function, value: Value) -> Option<bool> {
        let inst = match func.dfg.value_def(value) {
            ValueDef::Param(block, _) => return Some(func.layout.entry_block() != Some(block)),
            ValueDef::Union(..) => return Some(false),
            ValueDef::Result(inst, _) => inst,
        };
        if may_be_replaced(func, inst) {
            return Some(true);
        }
        let args = func.dfg.inst_args(inst);
        if args.iter().any(|&arg| self.chosen.contains(arg)) {
            return Some(true);
        }
        if self.asked.insert(value) {
            self.open.extend(args.iter().copied().filter(|&arg| !self.known.contains(arg)));
            return None;
        }
        Some(false)
    }
}

/// Whether the flags of `inst` say that it may be moved, and that nothing writes what it reads.
fn is_same_anywhere(func: &Function, inst: Inst) -> bool {
    let flags = func.dfg.insts[inst].memflags().map(|flags| func.dfg.mem_flags[flags]);
    flags.is_some_and(|flags| flags.can_move() && flags.readonly())
}

/// Whether `inst` is an access to a stack slot.
fn is_in_slot(func: &Function, inst: Inst) -> bool {
    !func.sized_stack_slots.is_empty() && Access::of(func, inst).is_some_and(|access| access.address.slot().is_some())
}

/// Whether a pass may put in the place of a result of `inst` what is available before it.
fn may_be_replaced(func: &Function, inst: Inst) -> bool {
    use Opcode::{Fcmp, Icmp, Select, SelectSpectreGuard};
    match func.dfg.insts[inst].opcode() {
        Icmp | Fcmp | Select | SelectSpectreGuard => true,
        opcode if opcode.can_trap() => true,
        opcode if opcode.can_load() => !is_same_anywhere(func, inst) || is_in_slot(func, inst),
        // A number, and whether it has overflown.
        _ => func.dfg.inst_results(inst).len() == 2,
    }
}

/// Takes the permission to be moved from each access of which the address is computed from one of these values. Takes time as sorting all uses
/// of values does, and nothing if no access has it.
pub(crate) fn pin_accesses_at(func: &mut Function, values: impl IntoIterator<Item = Value>) {
    if !has_movable(func) {
        return;
    }
    let mut open: Vec<Value> = values.into_iter().collect();
    if open.is_empty() {
        return;
    }
    let mut uses = Vec::new();
    for inst in all_insts(func) {
        each_use(func, inst, |value| uses.push((value, inst)));
    }
    uses.sort_unstable();
    let mut found = EntitySet::new();
    while let Some(value) = open.pop() {
        if !found.insert(value) {
            continue;
        }
        let first = uses.partition_point(|&(used, _)| used < value);
        for inst in uses[first..].iter().take_while(|&&(used, _)| used == value).map(|&(_, inst)| inst) {
            let was_same_anywhere = is_same_anywhere(func, inst);
            if address_operand(func, inst) == Some(value) {
                pin(func, inst);
            }
            let opcode = func.dfg.insts[inst].opcode();
            if opcode.is_branch() {
                for edge in edges_of(func, inst) {
                    let params = func.dfg.block_params(edge.target(func)).iter().copied();
                    let passed = params.zip(edge.args(func)).filter(|(_, arg)| arg.as_value() == Some(value));
                    open.extend(passed.map(|(param, _)| param));
                }
            }
            // What is computed from a load that stays does not come before it, unless it was available wherever another load of the same is.
            if !opcode.can_load() || was_same_anywhere {
                open.extend_from_slice(func.dfg.inst_results(inst));
            }
        }
    }
}

/// Takes the permission to be moved from these accesses, and from those at addresses that are made of what they load, if that was the same anywhere.
pub(crate) fn pin_all(func: &mut Function, accesses: impl IntoIterator<Item = Inst>) {
    let mut loaded = Vec::new();
    for inst in accesses {
        loaded.extend(loads_the_same_anywhere(func, inst));
        pin(func, inst);
    }
    pin_accesses_at(func, loaded);
}

/// What `inst` loads, if that is the same anywhere.
pub(super) fn loads_the_same_anywhere(func: &Function, inst: Inst) -> Option<Value> {
    is_same_anywhere(func, inst).then(|| func.dfg.inst_results(inst).first().copied()).flatten()
}

/// Says of these accesses that they do not trap, and may be done wherever their address is available. Of none of which the flags would be too many.
pub(super) fn let_move(func: &mut Function, accesses: Vec<Inst>) {
    let mut movable = FxHashMap::<MemFlags, Option<MemFlags>>::default();
    for inst in accesses {
        let flags = func.dfg.insts[inst].memflags().expect("an access has flags");
        let new = *movable.entry(flags).or_insert_with(|| {
            let new = func.dfg.mem_flags[flags].with_notrap().with_can_move();
            func.dfg.mem_flags.insert(new).ok()
        });
        if let Some(new) = new {
            set_flags(func, inst, new);
        }
    }
}

pub(super) fn set_flags(func: &mut Function, inst: Inst, flags: MemFlags) {
    *func.dfg.insts[inst].memflags_mut().expect("an access has flags") = flags;
}

/// Takes the permission to be moved from `inst`, if it is an access that has it.
fn pin(func: &mut Function, inst: Inst) {
    let Some(flags) = func.dfg.insts[inst].memflags() else { return };
    let old = func.dfg.mem_flags[flags];
    if !old.can_move() {
        return;
    }
    let pinned = func.dfg.mem_flags.insert(pinned(old)).expect("passes do not run if flags may run out");
    set_flags(func, inst, pinned);
}

/// The same flags without the permission to be moved.
pub(super) fn pinned(old: MemFlagsData) -> MemFlagsData {
    let mut new = MemFlagsData::new().with_trap_code(old.trap_code()).with_alias_region(old.alias_region());
    if old.aligned() {
        new.set_aligned();
    }
    if old.readonly() {
        new.set_readonly();
    }
    if let Some(endianness) = old.explicit_endianness() {
        new.set_endianness(endianness);
    }
    new
}
