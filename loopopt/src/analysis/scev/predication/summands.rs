//! One limit in place of two: a sum is at least what some of its summands are.
//!
//! ```text
//! unsigned(a) + 8 * unsigned(n) <= 4294967295,  unsigned(a) + 8 * unsigned(n) + 8 * unsigned(m) <= 4294967303
//!
//!                                               unsigned(a) + 8 * unsigned(n) + 8 * unsigned(m) <= 4294967295
//! ```
//!
//! Neither sum can wrap, and what one has more than the other is not negative. So the larger one, at most the least of the limits, is enough for both. It may be more than what was
//! required, where the larger one has a larger limit: by no more than a 256th, as where both are addresses in a memory with one end.

use super::gathered::as_at_most;
use crate::analysis::scev::linear_expr::Sum;
use crate::analysis::scev::requirement::Requirement;

/// The same, or more, with fewer comparisons, where sums have constant limits.
pub(in crate::analysis) fn of_larger_sums(required: Vec<Requirement>) -> Vec<Requirement> {
    let limit = |one: &Requirement| {
        let (sum, limit) = as_at_most(one)?;
        Some((sum, limit.as_constant()?))
    };
    let mut limits: Vec<Option<(Sum, u64)>> = required.iter().map(limit).collect();
    let mut all: Vec<Option<Requirement>> = required.into_iter().map(Some).collect();
    for smaller in 0..limits.len() {
        let found = (0..limits.len()).filter(|&larger| larger != smaller).find_map(|larger| {
            let (limit, (sum, larger_limit)) = (limits[smaller].as_ref()?, limits[larger].as_ref()?);
            Some((larger, limit_for_both((sum, *larger_limit), (&limit.0, limit.1))?))
        });
        let Some((larger, limit)) = found else { continue };
        let (sum, old) = limits[larger].as_mut().expect("it has been looked at");
        *old = limit;
        all[larger] = Some(Requirement::at_most(sum.clone(), Sum::constant(limit, sum.bits())));
        (limits[smaller], all[smaller]) = (None, None);
    }
    all.into_iter().flatten().collect()
}

/// What `larger` has to be at most so that `smaller` is at most its limit, if that is about its own limit.
fn limit_for_both((larger, limit): (&Sum, u64), (smaller, other): (&Sum, u64)) -> Option<u64> {
    let has = |term: &_, factor: &u64| larger.terms().iter().any(|(own, most)| own == term && factor <= most);
    let is_part = larger.bits() == smaller.bits()
        && larger.terms().len() > smaller.terms().len()
        && smaller.terms().iter().all(|(term, factor)| has(term, factor));
    if !is_part || !larger.never_wraps() || !smaller.never_wraps() {
        return None;
    }
    let above = smaller.constant_part().saturating_sub(larger.constant_part());
    let both = other.checked_sub(above)?.min(limit);
    (limit - both <= limit >> 8).then_some(both)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::scev::linear_expr::Term;
    use cranelift_codegen::ir::Value;

    /// A multiple of a number of 4 bits, in 16 bits.
    fn number(number: u32, factor: u64) -> Sum {
        let narrow = Sum::of_term(Term::Value(Value::from_u32(number)), 1, 4);
        Sum::of_term(Term::Extended { signed: false, sum: Box::new(narrow) }, factor, 16)
    }

    fn sum(parts: &[Sum], constant: i64) -> Sum {
        parts[1..].iter().fold(parts[0].clone(), |sum, part| sum.plus(part, 1).expect("short")).offset(constant)
    }

    fn limit(sum: &Sum, limit: u64) -> Requirement {
        Requirement::at_most(sum.clone(), Sum::constant(limit, 16))
    }

    /// For all numbers, the larger sum is enough for the smaller one.
    #[test]
    fn the_larger_sum_is_enough() {
        let [a, b] = [number(0, 16), number(1, 8)];
        let both = sum(&[a.clone(), b], 2);
        for smaller in [a.clone(), sum(&[a], 5)] {
            let before = [limit(&smaller, 255), limit(&both, 256)];
            for before in [before.to_vec(), before.iter().rev().cloned().collect()] {
                let after = of_larger_sums(before.clone());
                assert_eq!(after.len(), if smaller.constant_part() == 0 { 1 } else { 2 }, "{after:?}");
            }
            let far = [limit(&smaller, 255), limit(&both, 1024)].to_vec();
            assert_eq!(of_larger_sums(far.clone()), far);
        }
        let after = of_larger_sums(vec![limit(&number(0, 16), 255), limit(&both, 256)]);
        for (a, b) in (0..16).flat_map(|a| (0..16).map(move |b| (a, b))) {
            let value = |sum: &Sum| {
                let one = |value: Value| Some(Sum::constant(if value.as_u32() == 0 { a } else { b }, 4));
                sum.substituted(&mut { one }).and_then(|sum| sum.as_constant()).expect("all values are given")
            };
            let Requirement::Compare { left, right, .. } = &after[0] else { panic!("{after:?}") };
            assert!(value(left) > value(right) || 16 * a <= 255 && value(&both) <= 256, "{a} {b}");
        }
    }
}
