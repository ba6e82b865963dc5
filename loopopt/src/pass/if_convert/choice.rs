//! The choice between two values.
//!
//! ```text
//!     v4 = iadd v2, v3                     v5 = select v1, v3, 0
//!     v5 = select v1, v4, v2       ──►     v6 = iadd v2, v5
//! ```
//!
//! Where the one value is the other one with something added, what is added is chosen. If `v2` is a sum that the loop carries, the choice can be made long before
//! the sum of the iteration before is there. What is added may be nothing: 0, or all bits for `band`; or another constant. Constants that are a bit apart, as the fuel
//! of two arms often is, are the smaller one and that bit, which the comparison is already: the fuel of `triples` then takes 0.83 of the time.

use crate::analysis::facts::tested::is_comparison;
use crate::analysis::inst::number::{constant_of, mask};
use crate::analysis::scev::const_eval::signed;
use crate::analysis::scev::linear_expr::offset;
use crate::edit::at;
use crate::edit::inst::trap_location::locate_at_load;
use crate::fault::fault;
use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::condcodes::CondCode;
use cranelift_codegen::ir::{Function, Inst, InstBuilder, InstructionData, Opcode, Value};

/// Computes before `place` the first of two values if `condition` is not 0, and the second one otherwise.
pub(super) fn choose(func: &mut Function, place: Inst, condition: Value, values: [Value; 2]) -> Value {
    let known = func.dfg.num_insts();
    let chosen = make_choice(func, place, condition, values);
    if !fault!(TrapAtTheChoice) {
        (known..func.dfg.num_insts()).for_each(|inst| locate_at_load(func, Inst::new(inst)));
    }
    chosen
}

fn make_choice(func: &mut Function, place: Inst, condition: Value, [then, other]: [Value; 2]) -> Value {
    if then == other {
        return then;
    }
    if let Some((base, steps)) = stepped(func, [then, other]) {
        let ty = func.dfg.value_type(base);
        if let Some(sum) = add_bit(func, place, condition, (base, steps)) {
            return sum;
        }
        let [then, other] = steps.map(|step| at(func, place).ins().iconst(ty, signed(step, ty) as i64));
        let step = at(func, place).ins().select(condition, then, other);
        return at(func, place).ins().iadd(base, step);
    }
    let added = added_to(func, then, other).map(|added| (added, other, true));
    let taken = || added_to(func, other, then).map(|added| (added, then, false));
    let Some(((opcode, what, is_first), base, if_set)) = added.or_else(taken) else {
        return at(func, place).ins().select(condition, then, other);
    };
    let ty = func.dfg.value_type(base);
    let is_one = constant_of(func, what) == Some(1) && opcode != Opcode::Band && ty.bits() > 8;
    let bit = if is_one { bit_of(func, place, condition, if_set) } else { None };
    let chosen = if let Some(bit) = bit {
        at(func, place).ins().uextend(ty, bit)
    } else {
        let nothing = if opcode == Opcode::Band { mask(ty.bits()).cast_signed() } else { 0 };
        let nothing = at(func, place).ins().iconst(ty, nothing);
        let [then, other] = if if_set { [what, nothing] } else { [nothing, what] };
        at(func, place).ins().select(condition, then, other)
    };
    let args = if is_first { [base, chosen] } else { [chosen, base] };
    let (inst, _) = at(func, place).ins().Binary(opcode, ty, args[0], args[1]);
    func.dfg.first_result(inst)
}

/// Adds the smaller of two steps, and the bit that says whether it is the larger one, shifted, if an address of x86-64 does that.
fn add_bit(func: &mut Function, place: Inst, condition: Value, (base, steps): (Value, [u128; 2])) -> Option<Value> {
    const MAX_SHIFT: u32 = 3;
    let ty = func.dfg.value_type(base);
    let shift = |more: u128, less: u128| {
        let distance = more.wrapping_sub(less) & u128::from(mask(ty.bits()));
        distance.is_power_of_two().then(|| distance.trailing_zeros()).filter(|&shift| shift <= MAX_SHIFT)
    };
    let [then, other] = steps;
    let (shift, is_set, less) = match (shift(then, other), shift(other, then)) {
        _ if ty.bits() <= 8 => return None,
        (Some(shift), _) => (shift, true, other),
        (None, Some(shift)) => (shift, false, then),
        (None, None) => return None,
    };
    let bit = bit_of(func, place, condition, is_set)?;
    let more = at(func, place).ins().uextend(ty, bit);
    let more = at(func, place).ins().ishl_imm_u(more, i64::from(shift));
    let sum = at(func, place).ins().iadd(base, more);
    Some(at(func, place).ins().iadd_imm_s(sum, signed(less, ty) as i64))
}

/// A value that is 1 if `condition` is not 0, or if it is 0, as `is_set` says, and 0 otherwise. Nothing if that takes more than a comparison.
fn bit_of(func: &mut Function, place: Inst, condition: Value, is_set: bool) -> Option<Value> {
    if is_set {
        return is_comparison(func, condition).then_some(condition);
    }
    let inst = func.dfg.value_def(condition).inst()?;
    let InstructionData::IntCompare { cond, args: [a, b], .. } = func.dfg.insts[inst] else { return None };
    Some(at(func, place).ins().icmp(cond.complement(), a, b))
}

/// What two values are constants more than, and the constants, if none is 0.
pub(super) fn stepped(func: &Function, values: [Value; 2]) -> Option<(Value, [u128; 2])> {
    let ty = func.dfg.value_type(values[0]);
    let [(base, then), (same, other)] = values.map(|value| offset(func, None, value));
    (base == same && then != other && then != 0 && other != 0 && ty.is_int() && ty.bits() <= 64)
        .then_some((base, [then, other]))
}

/// The operation that makes `value` of `base` and something else, and would give `base` if that were its neutral element: that, and whether `base` comes
/// first.
fn added_to(func: &Function, value: Value, base: Value) -> Option<(Opcode, Value, bool)> {
    use Opcode::{Band, Bor, Bxor, Iadd, Isub};
    let InstructionData::Binary { opcode, args: [a, b] } = func.dfg.insts[func.dfg.value_def(value).inst()?] else {
        return None;
    };
    let ty = func.dfg.value_type(value);
    if !matches!(opcode, Iadd | Isub | Band | Bor | Bxor) || !ty.is_int() || ty.bits() > 64 {
        return None;
    }
    match () {
        () if a == base => Some((opcode, b, true)),
        () if b == base && opcode != Isub => Some((opcode, a, false)),
        () => None,
    }
}
