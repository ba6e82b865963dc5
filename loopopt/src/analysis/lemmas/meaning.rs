//! What sums and requirements mean, by their definitions: numbers for numbers.

use crate::analysis::scev::linear_expr::{Sum, Term};
use crate::analysis::scev::requirement::Requirement;
use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::condcodes::IntCC;

/// The low bits of a number.
pub(super) fn low(number: u64, bits: u32) -> u64 {
    number & (u64::MAX >> (64 - bits))
}

/// A number of so many bits, read with sign.
pub(super) fn with_sign(number: u64, bits: u32) -> i64 {
    let unused = 64 - bits;
    ((number << unused) as i64) >> unused
}

/// A number of so many bits as an exact integer, read with or without sign.
pub(super) fn integer(number: u64, bits: u32, signed: bool) -> i128 {
    if signed { with_sign(number, bits).into() } else { number.into() }
}

/// Whether two numbers of so many bits compare so.
pub(super) fn compare(cond: IntCC, [left, right]: [u64; 2], bits: u32) -> bool {
    let signed = [left, right].map(|number| with_sign(number, bits));
    match cond {
        IntCC::Equal => left == right,
        IntCC::NotEqual => left != right,
        IntCC::UnsignedLessThan => left < right,
        IntCC::UnsignedLessThanOrEqual => left <= right,
        IntCC::UnsignedGreaterThan => left > right,
        IntCC::UnsignedGreaterThanOrEqual => left >= right,
        IntCC::SignedLessThan => signed[0] < signed[1],
        IntCC::SignedLessThanOrEqual => signed[0] <= signed[1],
        IntCC::SignedGreaterThan => signed[0] > signed[1],
        IntCC::SignedGreaterThanOrEqual => signed[0] >= signed[1],
    }
}

/// The number that `sum` is if each value is what `values` says at its index.
pub(super) fn number(sum: &Sum, values: &[u64]) -> u64 {
    let of_term = |term: &Term| match term {
        Term::Value(value) => values[value.index()],
        Term::Slot(_) => unreachable!("no shape has a slot"),
        Term::Extended { signed: false, sum } => number(sum, values),
        Term::Extended { signed: true, sum } => with_sign(number(sum, values), sum.bits()) as u64,
        Term::Quotient { sum, by } => number(sum, values) / by,
        Term::Product(a, b) => number(a, values).wrapping_mul(number(b, values)),
    };
    let add = |total: u64, (term, factor): &(Term, u64)| total.wrapping_add(of_term(term).wrapping_mul(*factor));
    low(sum.terms().iter().fold(sum.constant_part(), add), sum.bits())
}

/// Whether `requirement` holds if each value is what `values` says at its index.
pub(super) fn holds(requirement: &Requirement, values: &[u64]) -> bool {
    match requirement {
        Requirement::Compare { cond, left, right } => {
            compare(*cond, [number(left, values), number(right, values)], left.bits())
        }
        Requirement::Fits { left, right } => {
            let product = u128::from(number(left, values)) * u128::from(number(right, values));
            product >> left.bits() == 0
        }
    }
}
