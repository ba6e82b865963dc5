//! Writes [claims](crate::claim) down as run-time checks, in functions in which they are asserted; does nothing in others.
//!
//! An assertion is placed before the instruction that the claim is about, and is made of pure instructions, a load that repeats one of
//! the program, and a `trapz` or `trapnz`.

use crate::analysis::cfg::edges::{Edge, edges_of};
use crate::analysis::inst::number::mask;
use crate::analysis::memory::alias::{Access, address_operand};
use crate::analysis::scev::linear_expr::Sum;
use crate::claim::{Claim, is_marked};
use crate::edit::at;
use crate::edit::materialize::emit::emit;
use crate::edit::materialize::pin::pinned;
use cranelift_codegen::cursor::FuncCursor;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::{
    Endianness, Function, Inst, InstBuilder, InstructionData, MemFlagsData, Opcode, Type, Value, types,
};

/// Asserts right before `before` that `condition` is not zero, or that it is.
pub(crate) fn assert_truth(func: &mut Function, before: Inst, claim: Claim, (condition, holds): (Value, bool)) {
    if is_marked(func) {
        trap_unless(&mut at(func, before), claim, (condition, holds));
    }
}

/// Asserts that `branch`, a `brif` or `br_table`, takes its edge number `slot`.
pub(crate) fn assert_takes(func: &mut Function, branch: Inst, claim: Claim, slot: usize) {
    if !is_marked(func) {
        return;
    }
    match func.dfg.insts[branch] {
        InstructionData::Brif { arg, .. } => trap_unless(&mut at(func, branch), claim, (arg, slot == 0)),
        InstructionData::BranchTable { arg, .. } => {
            let slots = slots_like(func, branch, slot);
            if slots.len() <= MAX_SLOTS {
                assert_index(func, branch, claim, (arg, &slots));
            }
        }
        _ => {}
    }
}

/// Edges of one `br_table` that an assertion distinguishes from the others: more are not compared, for it would be as long as the table.
const MAX_SLOTS: usize = 16;

/// The edges of `branch` that have the target of this one, with the same arguments.
fn slots_like(func: &Function, branch: Inst, slot: usize) -> Vec<usize> {
    let edge = |slot| Edge { branch, slot };
    let goes = |slot| (edge(slot).target(func), edge(slot).args(func).collect::<Vec<_>>());
    let wanted = goes(slot);
    edges_of(func, branch).map(|edge| edge.slot).filter(|&other| goes(other) == wanted).collect()
}

/// Asserts that a `br_table` on `index` takes one of these edges, of which the default is the first.
fn assert_index(func: &mut Function, branch: Inst, claim: Claim, (index, slots): (Value, &[usize])) {
    let entries = edges_of(func, branch).count() - 1;
    let mut cursor = at(func, branch);
    let ty = cursor.func.dfg.value_type(index);
    let mut any = cursor.ins().iconst(types::I8, 0);
    for slot in slots {
        let (cond, number) = match slot.checked_sub(1) {
            None => (IntCC::UnsignedGreaterThanOrEqual, entries),
            Some(entry) => (IntCC::Equal, entry),
        };
        let number = cursor.ins().iconst(ty, number as i64);
        let this = cursor.ins().icmp(cond, index, number);
        any = cursor.ins().bor(any, this);
    }
    trap_unless(&mut cursor, claim, (any, true));
}

/// Asserts that `select` gives the one of its two values that has this number.
pub(crate) fn assert_chooses(func: &mut Function, select: Inst, arm: usize) {
    let condition = func.dfg.inst_args(select)[0];
    assert_truth(func, select, Claim::ConditionKnown, (condition, arm == 0));
}

/// Asserts right before `before` that an operation with an overflow flag, which has become a plain one, does not overflow.
pub(crate) fn assert_fits(func: &mut Function, before: Inst, opcode: Opcode, [a, b]: [Value; 2]) {
    use IntCC::{Equal, SignedGreaterThanOrEqual, UnsignedGreaterThanOrEqual};
    let ty = func.dfg.value_type(a);
    if !is_marked(func) || ty.bits() > 64 {
        return;
    }
    let mut cursor = at(func, before);
    let (cond, left, right) = match opcode {
        Opcode::UaddOverflow => (UnsignedGreaterThanOrEqual, cursor.ins().iadd(a, b), a),
        Opcode::UsubOverflow => (UnsignedGreaterThanOrEqual, a, b),
        // Where the signs say that it may overflow, it is the result that has the wrong one.
        Opcode::SaddOverflow | Opcode::SsubOverflow => {
            let is_sum = opcode == Opcode::SaddOverflow;
            let result = if is_sum { cursor.ins().iadd(a, b) } else { cursor.ins().isub(a, b) };
            let changed = cursor.ins().bxor(a, result);
            let other = if is_sum { cursor.ins().bxor(b, result) } else { cursor.ins().bxor(a, b) };
            let wrong = cursor.ins().band(changed, other);
            (SignedGreaterThanOrEqual, wrong, cursor.ins().iconst(ty, 0))
        }
        Opcode::UmulOverflow => {
            let high = match ty.double_width().filter(|_| ty.bits() < 64) {
                Some(wide) => {
                    let [a, b] = [a, b].map(|value| cursor.ins().uextend(wide, value));
                    let product = cursor.ins().imul(a, b);
                    let shift = cursor.ins().iconst(wide, i64::from(ty.bits()));
                    cursor.ins().ushr(product, shift)
                }
                None => cursor.ins().umulhi(a, b),
            };
            let zero = cursor.func.dfg.value_type(high);
            (Equal, high, cursor.ins().iconst(zero, 0))
        }
        _ => return,
    };
    let fits = cursor.ins().icmp(cond, left, right);
    trap_unless(&mut cursor, Claim::NoWrap, (fits, true));
}

/// Asserts right before `before` that two values of one type are the same, bit by bit.
pub(crate) fn assert_equal(func: &mut Function, before: Inst, claim: Claim, [a, b]: [Value; 2]) {
    if is_marked(func) && a != b {
        let mut cursor = at(func, before);
        let [a, b] = [a, b].map(|value| bits(&mut cursor, value));
        let same = cursor.ins().icmp(IntCC::Equal, a, b);
        trap_unless(&mut cursor, claim, (same, true));
    }
}

/// Asserts right before `before` that `load`, a plain one of which the address is there, would give `value`: it is done once more. Nothing of a load
/// that [need not be where it says](need_not_be_there).
pub(crate) fn assert_loads(func: &mut Function, before: Inst, load: Inst, value: Value) {
    if !is_marked(func) {
        return;
    }
    let InstructionData::Load { opcode, flags, offset, arg } = func.dfg.insts[load] else { return };
    if need_not_be_there(func, load, func.dfg.mem_flags[flags]) {
        return;
    }
    let ty = func.dfg.value_type(value);
    let again = pinned(func.dfg.mem_flags[flags]).with_trap_code(Some(Claim::Readable.trap_code()));
    let Ok(flags) = func.dfg.mem_flags.insert(again) else { return };
    let mut cursor = at(func, before);
    let (again, dfg) = cursor.ins().Load(opcode, ty, flags, offset, arg);
    let again = dfg.first_result(again);
    assert_equal(func, before, Claim::CellHolds, [again, value]);
}

/// Asserts that `access` would be at the same place with `address` and `offset` as it is now.
pub(crate) fn assert_same_place(func: &mut Function, access: Inst, (address, offset): (Value, Offset32)) {
    if !is_marked(func) {
        return;
    }
    let places = address_operand(func, access).zip(func.dfg.insts[access].load_store_offset());
    let Some(place) = places.filter(|place| *place != (address, offset.into())) else { return };
    let mut cursor = at(func, access);
    let [now, then] = [place, (address, offset.into())].map(|place| start(&mut cursor, place));
    assert_equal(func, access, Claim::SamePlace, [now, then]);
}

/// Whether an access may have been moved to where the program does not execute it, so that it need not be in the region that it says: then what it
/// gives is not used. Whoever has moved it knows no more.
fn region_need_not_hold(flags: MemFlagsData) -> bool {
    flags.can_move() && flags.alias_region().is_some()
}

/// Whether a load [need not be](region_need_not_hold) in its region, or, at an index, in its slot.
fn need_not_be_there(func: &Function, load: Inst, flags: MemFlagsData) -> bool {
    let is_at_index = |access: Access| access.address.slot().is_some() && access.address.terms().len() > 1;
    region_need_not_hold(flags) || flags.can_move() && Access::of(func, load).is_some_and(is_at_index)
}

/// Asserts right before `before` that the two accesses, whose addresses are there, have no byte in common. Nothing of two that are proved disjoint by their
/// regions, one of which [need not hold](region_need_not_hold).
pub(crate) fn assert_disjoint(func: &mut Function, before: Inst, [a, b]: [&Access; 2]) {
    let by_region = [a, b].iter().any(|access| region_need_not_hold(access.flags)) && a.is_kept_apart(b);
    if !is_marked(func) || by_region {
        return;
    }
    let mut cursor = at(func, before);
    let [start_a, start_b] = [a, b].map(|access| {
        let offset = cursor.func.dfg.insts[access.inst].load_store_offset().unwrap_or(0);
        start(&mut cursor, (access.operand, offset))
    });
    trap_unless_disjoint(&mut cursor, (start_a, a.size), (start_b, b.size));
}

/// Asserts right before `access` that it has no byte in common with so many bytes at this address, of which the values are there.
pub(crate) fn assert_disjoint_from(func: &mut Function, access: Inst, (address, size): (&Sum, u32)) {
    let Some(access) = Access::of(func, access).filter(|_| is_marked(func)) else { return };
    let place = emit(func, access.inst, address);
    let offset = func.dfg.insts[access.inst].load_store_offset().unwrap_or(0);
    let mut cursor = at(func, access.inst);
    let own = start(&mut cursor, (access.operand, offset));
    trap_unless_disjoint(&mut cursor, (own, access.size), (place, size));
}

/// Traps unless two ranges of bytes have none in common. Does nothing if their addresses are not of one type.
fn trap_unless_disjoint(cursor: &mut FuncCursor<'_>, (a, size_a): (Value, u32), (b, size_b): (Value, u32)) {
    let ty = cursor.func.dfg.value_type(a);
    if cursor.func.dfg.value_type(b) != ty {
        return;
    }
    // On the circle of all addresses, each has to be at least as far ahead of the other as that is long.
    for (ahead, behind, size) in [(a, b, size_b), (b, a, size_a)] {
        let distance = cursor.ins().isub(ahead, behind);
        let size = cursor.ins().iconst(ty, i64::from(size));
        let apart = cursor.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, distance, size);
        trap_unless(cursor, Claim::NoOverlap, (apart, true));
    }
}

/// The sum of an address and an offset.
fn start(cursor: &mut FuncCursor<'_>, (address, offset): (Value, i32)) -> Value {
    let ty = cursor.func.dfg.value_type(address);
    let offset = i64::from(offset).cast_unsigned() & mask(ty.bits());
    let offset = cursor.ins().iconst(ty, offset.cast_signed());
    cursor.ins().iadd(address, offset)
}

/// The bits of `value` as an integer.
fn bits(cursor: &mut FuncCursor<'_>, value: Value) -> Value {
    let ty = cursor.func.dfg.value_type(value);
    let Some(int) = Type::int_with_byte_size(ty.bytes() as u16).filter(|&int| int != ty) else { return value };
    let flags = match ty.is_vector() {
        true => MemFlagsData::new().with_endianness(Endianness::Little),
        false => MemFlagsData::new(),
    };
    cursor.ins().bitcast(int, flags, value)
}

fn trap_unless(cursor: &mut FuncCursor<'_>, claim: Claim, (condition, holds): (Value, bool)) {
    let opcode = if holds { Opcode::Trapz } else { Opcode::Trapnz };
    let ty = cursor.func.dfg.value_type(condition);
    cursor.ins().CondTrap(opcode, ty, claim.trap_code(), condition);
}
