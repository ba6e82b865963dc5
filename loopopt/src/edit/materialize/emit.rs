//! Write sums, and what is required of them, as instructions. None of them traps.

use crate::analysis::scev::linear_expr::{Sum, Term, mask};
use crate::analysis::scev::requirement::Requirement;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Function, Inst, InstBuilder, Value, types};

/// Computes right before `before` whether all of `required` hold: not zero if so. There has to be at least one. The values in the
/// sums must be defined there.
pub(crate) fn emit_all(func: &mut Function, before: Inst, required: &[Requirement]) -> Value {
    let srcloc = func.srcloc(before);
    let mut cursor = FuncCursor::new(func).at_inst(before);
    cursor.set_srcloc(srcloc);
    let mut all = None;
    for requirement in required {
        let holds = emit_requirement(&mut cursor, requirement);
        all = Some(all.map_or(holds, |all| cursor.ins().band(all, holds)));
    }
    all.expect("something is required")
}

/// Computes `sum` right before `before`. The values in it must be defined there.
pub(crate) fn emit(func: &mut Function, before: Inst, sum: &Sum) -> Value {
    let srcloc = func.srcloc(before);
    let mut cursor = FuncCursor::new(func).at_inst(before).with_srcloc(srcloc);
    emit_sum(&mut cursor, sum)
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

fn emit_multiple(cursor: &mut FuncCursor<'_>, value: Value, factor: u64) -> Value {
    if factor == 1 {
        return value;
    }
    let ty = cursor.func.dfg.value_type(value);
    if factor.is_power_of_two() {
        let by = cursor.ins().iconst(ty, i64::from(factor.trailing_zeros()));
        return cursor.ins().ishl(value, by);
    }
    let factor = cursor.ins().iconst(ty, factor.cast_signed());
    cursor.ins().imul(value, factor)
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
            if by.is_power_of_two() {
                let by = cursor.ins().iconst(ty, i64::from(by.trailing_zeros()));
                return cursor.ins().ushr(inner, by);
            }
            let by = cursor.ins().iconst(ty, by.cast_signed());
            cursor.ins().udiv(inner, by)
        }
        Term::Product(a, b) => {
            let (a, b) = (emit_sum(cursor, a), emit_sum(cursor, b));
            cursor.ins().imul(a, b)
        }
    }
}
