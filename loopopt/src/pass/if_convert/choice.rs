//! The choice between two values.
//!
//! ```text
//!     v4 = iadd v2, v3                     v5 = select v1, v3, 0
//!     v5 = select v1, v4, v2       ──►     v6 = iadd v2, v5
//! ```
//!
//! Where the one value is the other one with something added, what is added is chosen. If `v2` is a sum that the loop carries, the choice can be made long before
//! the sum of the iteration before is there. What is added may be nothing: 0, or all bits for `band`; or another constant.

use crate::analysis::facts::tested::is_comparison;
use crate::analysis::inst::number::{constant_of, mask};
use crate::analysis::scev::const_eval::signed;
use crate::analysis::scev::linear_expr::offset;
use crate::edit::at;
use cranelift_codegen::ir::{Function, Inst, InstBuilder, InstructionData, Opcode, Value};

/// Computes before `place` the first of two values if `condition` is not 0, and the second one otherwise.
pub(super) fn choose(func: &mut Function, place: Inst, condition: Value, [then, other]: [Value; 2]) -> Value {
    if then == other {
        return then;
    }
    if let Some((base, steps)) = stepped(func, [then, other]) {
        let ty = func.dfg.value_type(base);
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
    let is_one = constant_of(func, what) == Some(1) && opcode != Opcode::Band;
    let chosen = if is_one && if_set && is_comparison(func, condition) && ty.bits() > 8 {
        at(func, place).ins().uextend(ty, condition)
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

/// What two values are constants more than, and the constants, if none is 0.
pub(super) fn stepped(func: &Function, values: [Value; 2]) -> Option<(Value, [u128; 2])> {
    let ty = func.dfg.value_type(values[0]);
    let [(base, then), (same, other)] = values.map(|value| offset(func, None, value));
    (base == same && then != other && then != 0 && other != 0 && ty.is_int() && ty.bits() <= 64)
        .then_some((base, [then, other]))
}

/// The operation that makes `value` of `base` and something else, with which nothing of `base` would change if that were nothing: that, and whether `base` comes
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
