//! Write sums, and what is required of them, as instructions. None of them traps.

use crate::analysis::facts::polynomial::Polynomial;
use crate::analysis::inst::number::mask;
use crate::analysis::scev::linear_expr::{Sum, Term};
use crate::analysis::scev::requirement::Requirement;
use crate::edit::at;
use cranelift_codegen::cursor::FuncCursor;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Function, Inst, InstBuilder, Opcode, Value, types};

/// Computes right before `before` whether all of `required` hold: not zero if so. There has to be at least one. The values in the
/// sums must be defined there.
pub(crate) fn emit_all(func: &mut Function, before: Inst, required: &[Requirement]) -> Value {
    let mut cursor = at(func, before);
    let mut all = None;
    for requirement in required {
        let holds = emit_requirement(&mut cursor, requirement);
        all = Some(all.map_or(holds, |all| cursor.ins().band(all, holds)));
    }
    all.expect("something is required")
}

/// Computes `sum` right before `before`. The values in it must be defined there.
pub(crate) fn emit(func: &mut Function, before: Inst, sum: &Sum) -> Value {
    emit_sum(&mut at(func, before), sum)
}

/// Computes what `polynomial` is in the iteration of this number, right before `before`. The values in both must be defined there.
///
/// Of `k` and `k - 1` one is even: `k(k-1)/2` is `(k >> 1) · ((k-1) | 1)`, without a division and without a wider type. `k(k-1)(k-2)/6` is that times
/// `k - 2`, divided by 3, without a remainder: modulo a power of two that is a product with the inverse of 3.
pub(crate) fn emit_polynomial(func: &mut Function, before: Inst, polynomial: &Polynomial, number: &Sum) -> Value {
    let mut cursor = at(func, before);
    let coefficients = polynomial.coefficients();
    let mut total = emit_sum(&mut cursor, &coefficients[0]);
    let ty = cursor.func.dfg.value_type(total);
    let k = emit_sum(&mut cursor, number);
    let k = if number.bits() < ty.bits() { cursor.ins().uextend(ty, k) } else { k };
    let mut binomial = k;
    for (index, coefficient) in coefficients.iter().enumerate().skip(1) {
        binomial = match index {
            1 => k,
            2 => emit_pairs(&mut cursor, k),
            _ => emit_triples(&mut cursor, k, binomial),
        };
        if coefficient.as_constant() == Some(0) {
            continue;
        }
        let is_wide = cursor.func.dfg.value_type(binomial) != ty;
        let reduced = if is_wide { cursor.ins().ireduce(ty, binomial) } else { binomial };
        let product = match coefficient.as_constant() {
            Some(factor) => emit_multiple(&mut cursor, reduced, factor),
            None => {
                let factor = emit_sum(&mut cursor, coefficient);
                cursor.ins().imul(reduced, factor)
            }
        };
        total = cursor.ins().iadd(total, product);
    }
    total
}

/// `k(k-1)/2`, modulo two to the bits of `k`.
fn emit_pairs(cursor: &mut FuncCursor<'_>, k: Value) -> Value {
    let ty = cursor.func.dfg.value_type(k);
    let [one, minus_one] = [1, mask(ty.bits())].map(|number| cursor.ins().iconst(ty, number.cast_signed()));
    let half = cursor.ins().ushr(k, one);
    let less = cursor.ins().iadd(k, minus_one);
    let odd = cursor.ins().bor(less, one);
    cursor.ins().imul(half, odd)
}

/// `k(k-1)(k-2)/6` from `k(k-1)/2`, modulo two to the bits of `k`.
fn emit_triples(cursor: &mut FuncCursor<'_>, k: Value, pairs: Value) -> Value {
    /// Times 3, this is 1 modulo two to 64, and so to any fewer bits.
    const THIRD: u64 = 0xaaaa_aaaa_aaaa_aaab;
    let ty = cursor.func.dfg.value_type(k);
    let [minus_two, third] = [u64::MAX - 1, THIRD].map(|number| {
        let number = number & mask(ty.bits());
        cursor.ins().iconst(ty, number.cast_signed())
    });
    let less = cursor.ins().iadd(k, minus_two);
    let product = cursor.ins().imul(pairs, less);
    cursor.ins().imul(product, third)
}

fn emit_requirement(cursor: &mut FuncCursor<'_>, requirement: &Requirement) -> Value {
    match requirement {
        Requirement::Compare { cond, left, right } => {
            let (left, right) = (emit_sum(cursor, left), emit_sum(cursor, right));
            cursor.ins().icmp(*cond, left, right)
        }
        Requirement::Fits { left, right } => {
            let bits = left.bits();
            let (left, right) = (emit_sum(cursor, left), emit_sum(cursor, right));
            if bits == 64 {
                let high = cursor.ins().umulhi(left, right);
                return cursor.ins().icmp_imm_u(IntCC::Equal, high, 0);
            }
            let [left, right] = [left, right].map(|value| cursor.ins().uextend(types::I64, value));
            let product = cursor.ins().imul(left, right);
            let most = mask(bits).cast_signed();
            cursor.ins().icmp_imm_u(IntCC::UnsignedLessThanOrEqual, product, most)
        }
    }
}

/// Computes a sum. Recursive as deep as sums are nested, which their analysis bounds.
fn emit_sum(cursor: &mut FuncCursor<'_>, sum: &Sum) -> Value {
    let constant = sum.constant_part();
    let ones = mask(sum.bits());
    let is_negative = |factor: u64| factor.wrapping_neg() & ones < factor;
    let (taken, added): (Vec<_>, Vec<_>) = sum.terms().iter().partition(|(_, factor)| is_negative(*factor));
    let mut total = None;
    for (term, factor) in added {
        let one = emit_term(cursor, term, sum);
        let product = emit_multiple(cursor, one, *factor);
        total = Some(total.map_or(product, |total| cursor.ins().iadd(total, product)));
    }
    let mut total = match total {
        Some(total) if constant == 0 => total,
        Some(total) => {
            let constant = cursor.ins().iconst(sum.ty(), constant.cast_signed());
            cursor.ins().iadd(total, constant)
        }
        None => cursor.ins().iconst(sum.ty(), constant.cast_signed()),
    };
    for (term, factor) in taken {
        let one = emit_term(cursor, term, sum);
        let product = emit_multiple(cursor, one, factor.wrapping_neg() & ones);
        total = cursor.ins().isub(total, product);
    }
    total
}

/// `value` times `factor`: shifted, if that is a power of two.
pub(crate) fn emit_multiple(cursor: &mut FuncCursor<'_>, value: Value, factor: u64) -> Value {
    let ty = cursor.func.dfg.value_type(value);
    if factor.is_power_of_two() {
        return emit_shifted(cursor, Opcode::Ishl, value, factor.trailing_zeros());
    }
    let factor = cursor.ins().iconst(ty, factor.cast_signed());
    cursor.ins().imul(value, factor)
}

/// `value`, unsigned, divided by `number`, which is not 0: a machine takes many cycles for a division, and no egraph pass may run any more that would replace it.
/// Shifted, if that is a power of two; otherwise a product with its [`reciprocal`].
pub(crate) fn emit_quotient(cursor: &mut FuncCursor<'_>, value: Value, number: u64) -> Value {
    let ty = cursor.func.dfg.value_type(value);
    if number.is_power_of_two() {
        return emit_shifted(cursor, Opcode::Ushr, value, number.trailing_zeros());
    }
    let (multiplier, shift) = reciprocal(number, ty.bits());
    let multiplier = cursor.ins().iconst(types::I64, multiplier.cast_signed());
    let Some(shift) = shift else {
        let wide = cursor.ins().uextend(types::I64, value);
        let high = cursor.ins().umulhi(wide, multiplier);
        return cursor.ins().ireduce(ty, high);
    };
    let high = cursor.ins().umulhi(value, multiplier);
    let rest = cursor.ins().isub(value, high);
    let half = emit_shifted(cursor, Opcode::Ushr, rest, 1);
    let sum = cursor.ins().iadd(half, high);
    emit_shifted(cursor, Opcode::Ushr, sum, shift)
}

/// `value` shifted by `shift` bits.
fn emit_shifted(cursor: &mut FuncCursor<'_>, opcode: Opcode, value: Value, shift: u32) -> Value {
    if shift == 0 {
        return value;
    }
    let ty = cursor.func.dfg.value_type(value);
    let by = cursor.ins().iconst(ty, i64::from(shift));
    let (inst, dfg) = cursor.ins().Binary(opcode, ty, value, by);
    dfg.first_result(inst)
}

/// What a number of so many bits is multiplied with to divide it by `number`, no power of two, and how far what is beyond 64 bits of that is shifted.
///
/// Of up to 32 bits, `m` is the least above `2^64 / number`: `n · m / 2^64` is above `n / number` by less than `n / 2^64`, which is less than `1 / number`. Of more, it takes
/// 65 bits, of which the highest is 1: with `h` for what the others give, the quotient is `(n + h) >> (shift + 1)`, where the sum is made without a carry.
/// Granlund and Montgomery, "Division by invariant integers using multiplication", PLDI 1994, figure 4.1.
fn reciprocal(number: u64, bits: u32) -> (u64, Option<u32>) {
    if bits <= 32 {
        return (u64::MAX / number + 1, None);
    }
    let log = u64::BITS - number.leading_zeros();
    let above = (1_u128 << log) - u128::from(number);
    ((((above << 64) / u128::from(number)) + 1) as u64, Some(log - 1))
}

/// Computes one of the terms of `sum`.
fn emit_term(cursor: &mut FuncCursor<'_>, term: &Term, sum: &Sum) -> Value {
    let ty = sum.ty();
    match term {
        Term::Value(value) if cursor.func.dfg.value_type(*value) == ty => *value,
        Term::Value(value) => cursor.ins().ireduce(ty, *value),
        Term::Slot(slot) => cursor.ins().stack_addr(ty, *slot, 0),
        Term::Extended { signed, sum } => {
            let inner = emit_sum(cursor, sum);
            if *signed { cursor.ins().sextend(ty, inner) } else { cursor.ins().uextend(ty, inner) }
        }
        Term::Quotient { sum, by } => {
            let inner = emit_sum(cursor, sum);
            emit_quotient(cursor, inner, *by)
        }
        Term::Product(a, b) => {
            let (a, b) = (emit_sum(cursor, a), emit_sum(cursor, b));
            cursor.ins().imul(a, b)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What [`emit_quotient`] makes of a number of so many bits.
    fn quotient(value: u64, number: u64, bits: u32) -> u64 {
        let (multiplier, shift) = reciprocal(number, bits);
        let high = ((u128::from(value) * u128::from(multiplier)) >> 64) as u64;
        match shift {
            None => high,
            Some(shift) => (((value - high) >> 1) + high) >> shift,
        }
    }

    #[test]
    fn quotients_by_products() {
        let is_one = |number: &u64| !number.is_power_of_two();
        for number in (3..256).filter(is_one) {
            (0..256).for_each(|value| assert_eq!(quotient(value, number, 8), value / number));
        }
        for bits in [16, 32, 64] {
            let most = mask(bits);
            let ends =
                (0..70).flat_map(|end| [end, most - end, (most >> 1) - end, (most >> 1) + end, (most / 3) + end]);
            let numbers: Vec<_> = ends.filter(|&number| number > 2 && number <= most).filter(is_one).collect();
            for &number in &numbers {
                let multiples = [1, 2, 3, most / number].map(|times| number.wrapping_mul(times));
                let near = multiples
                    .into_iter()
                    .flat_map(|multiple| [multiple.wrapping_sub(1), multiple, multiple.wrapping_add(1)]);
                for value in near.chain([0, most]).filter(|&value| value <= most) {
                    assert_eq!(quotient(value, number, bits), value / number, "{value} / {number}");
                }
            }
        }
    }
}
