//! Comparisons with a constant, of the least that they are about.
//!
//! ```text
//!   4 * unsigned(n) + 8 <= 2147483647    ──►    n <= 536870909
//!   3 <= -n + 2147483647                 ──►    n signed <= 2147483644
//! ```
//!
//! Both sides say the same of all numbers. The second form takes one instruction, and says of `n` itself where it ends: other passes ask what a branch says
//! of a number, and not of a sum of it.
//!
//! * Of a sum that does not wrap, what is added is taken away on both sides, and what it is multiplied by divides the other one. An extension without a sign is the
//!   number, and a quotient is at most `m` if what is divided is at most the last number with that quotient.
//! * `a <= b` if and only if `-b - 1 <= -a - 1`, without sign: all bits of both are turned over.
//! * With half of all numbers added, an order without sign is the order with sign.

use crate::analysis::inst::number::{least_number, mask, signed};
use crate::analysis::scev::linear_expr::{Sum, Term};
use crate::analysis::scev::requirement::Requirement;
use crate::fault::fault;
use cranelift_codegen::ir::condcodes::IntCC;

/// The same requirement, of the least that it is about.
pub fn plain(requirement: Requirement) -> Requirement {
    let Some((side, mut sum, mut limit)) = bounded(&requirement) else { return requirement };
    while let Some((inner, inner_limit)) = peeled(side, &sum, limit) {
        (sum, limit) = (inner, inner_limit);
    }
    let is_negative = sum.terms().iter().all(|(_, factor)| signed(*factor, sum.bits()) < 0);
    let (side, sum, limit) = match is_negative {
        true => (side.other(), sum.times(u64::MAX).offset(-1), mask(sum.bits()) - limit),
        false => (side, sum, limit),
    };
    let half = least_number(sum.bits(), true);
    let is_halfway = sum.constant_part() == half;
    let is_as_before =
        matches!(&requirement, Requirement::Compare { left, right, .. } if *left == sum || *right == sum);
    if is_as_before && !is_halfway {
        return requirement;
    }
    let turned = |sum: Sum| if is_halfway { sum.offset(half.cast_signed()) } else { sum };
    let cond = if is_halfway { IntCC::SignedLessThanOrEqual } else { IntCC::UnsignedLessThanOrEqual };
    let (limit, sum) = (turned(Sum::constant(limit, sum.bits())), turned(sum));
    match side {
        Side::Most => Requirement::new(cond, sum, limit),
        Side::Least => Requirement::new(cond, limit, sum),
    }
}

/// Whether a limit is the largest number or the least.
#[derive(Clone, Copy)]
enum Side {
    Most,
    Least,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::Most => Self::Least,
            Self::Least => Self::Most,
        }
    }
}

/// The sum that is compared with a constant, without sign, and that. Nothing if it may never be so, or is always.
fn bounded(requirement: &Requirement) -> Option<(Side, Sum, u64)> {
    let Requirement::Compare { cond, left, right } = requirement else { return None };
    let strict = match cond {
        IntCC::UnsignedLessThan => 1,
        IntCC::UnsignedLessThanOrEqual => 0,
        _ => return None,
    };
    match (left.as_constant(), right.as_constant()) {
        (None, Some(limit)) => Some((Side::Most, left.clone(), limit.checked_sub(strict)?)),
        (Some(limit), None) if limit < mask(left.bits()) => Some((Side::Least, right.clone(), limit + strict)),
        _ => None,
    }
}

/// What `sum` is made of, and the limit of that, if nothing wraps in between.
fn peeled(side: Side, sum: &Sum, limit: u64) -> Option<(Sum, u64)> {
    if !sum.never_wraps() {
        return None;
    }
    let constant = sum.constant_part();
    let less = if fault!(AddedTwice) { limit } else { limit.checked_sub(constant)? };
    let [(term, factor)] = sum.terms() else {
        let without = sum.clone().offset(constant.wrapping_neg().cast_signed());
        return (constant != 0).then_some((without, less));
    };
    let limit = match side {
        Side::Most => less / factor,
        Side::Least => less.div_ceil(*factor),
    };
    let (inner, limit) = match term {
        Term::Extended { signed: false, sum } => ((**sum).clone(), limit),
        Term::Quotient { sum, by } => {
            let first = limit.checked_mul(*by)?;
            let limit = match side {
                Side::Most => first.checked_add(by - 1)?,
                Side::Least => first,
            };
            ((**sum).clone(), limit)
        }
        _ if *factor == 1 && constant == 0 => return None,
        _ => (Sum::of_term(term.clone(), 1, sum.bits()), limit),
    };
    // Otherwise it is always so, or never.
    (limit <= mask(inner.bits())).then_some((inner, limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::scev::const_eval::compares;
    use cranelift_codegen::ir::Value;

    fn holds(requirement: &Requirement, number: u64) -> bool {
        let Requirement::Compare { cond, left, right } = requirement else { panic!("{requirement}") };
        let at = |sum: &Sum| {
            let sum = sum.substituted(&mut |_| Some(Sum::constant(number, 8)));
            u128::from(sum.and_then(|sum| sum.as_constant()).expect("all values are given"))
        };
        compares(*cond, [at(left), at(right)], left.ty())
    }

    /// It says the same of each number of 8 bits, whatever is added up, extended, multiplied and divided.
    #[test]
    fn says_the_same() {
        let value = Sum::of_term(Term::Value(Value::from_u32(1)), 1, 8);
        let narrow = [1, 255, 2, 254]
            .into_iter()
            .flat_map(|factor| [0, 1, -1, 5, 127, -128].map(|constant| value.times(factor).offset(constant)));
        let narrow: Vec<_> = narrow.flat_map(|sum| [sum.clone(), sum.divided(3)]).collect();
        let wide = narrow.iter().flat_map(|sum| {
            [(1, 0), (1, 1), (2, 7), (3, 0), (256, 3)]
                .map(|(factor, constant)| sum.clone().extended(16, false).times(factor).offset(constant))
        });
        let (mut plainer, mut with_sign) = (0, 0);
        for sum in narrow.iter().cloned().chain(wide) {
            let limits = [0, 1, 2, 7, 8, 126, 127, 128, 129, 254, 255, 256, 300, 1000, 0xffff];
            for limit in limits.into_iter().filter(|&limit| limit <= mask(sum.bits())) {
                let limit = Sum::constant(limit, sum.bits());
                for cond in [IntCC::UnsignedLessThan, IntCC::UnsignedLessThanOrEqual] {
                    for [left, right] in [[&sum, &limit], [&limit, &sum]] {
                        let before = Requirement::new(cond, left.clone(), right.clone());
                        let after = plain(before.clone());
                        let same = |number: &u64| holds(&before, *number) == holds(&after, *number);
                        assert!((0..256).all(|number| same(&number)), "{before} became {after}");
                        plainer += usize::from(before != after);
                        with_sign += usize::from(matches!(
                            after,
                            Requirement::Compare { cond: IntCC::SignedLessThanOrEqual, .. }
                        ));
                    }
                }
            }
        }
        assert!(plainer > 1_000 && with_sign > 100, "{plainer}, {with_sign}");
    }

    #[test]
    fn as_the_module_says() {
        let n = Sum::of_term(Term::Value(Value::from_u32(1)), 1, 32);
        let most = Sum::constant(0x7fff_ffff, 32);
        let cases = [
            (
                Requirement::at_most(
                    n.clone().extended(64, false).times(4).offset(8),
                    most.clone().extended(64, false),
                ),
                "v1 <= 536870909",
            ),
            (Requirement::at_most(Sum::constant(3, 32), most.minus(&n).expect("one term")), "v1 signed <= 2147483644"),
        ];
        for (before, after) in cases {
            assert_eq!(plain(before).to_string(), after);
        }
    }
}
