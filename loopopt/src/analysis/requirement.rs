//! What has to hold of some integers, and what is known of them without looking further.

use super::address::Sum;
use cranelift_codegen::ir::condcodes::IntCC;
use std::fmt;

/// Something that may hold of integers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Requirement {
    /// `left cond right`, of as many bits.
    Compare {
        /// The condition.
        cond: IntCC,
        /// What is compared.
        left: Sum,
        /// What it is compared with.
        right: Sum,
    },
    /// The product of two unsigned numbers of as many bits does not overflow.
    Fits {
        /// A factor.
        left: Sum,
        /// The other one.
        right: Sum,
    },
}

impl Requirement {
    /// `left cond right`.
    pub fn new(cond: IntCC, left: Sum, right: Sum) -> Self {
        Self::Compare { cond, left, right }
    }

    /// `left <= right`, unsigned.
    pub fn at_most(left: Sum, right: Sum) -> Self {
        Self::new(IntCC::UnsignedLessThanOrEqual, left, right)
    }

    /// Whether it holds, if that is known whatever the values are.
    pub fn known(&self) -> Option<bool> {
        match self {
            Self::Compare { cond, left, right } => compare(*cond, left, right),
            Self::Fits { left, right } => left.most().checked_mul(right.most()).and_then(|most| {
                let limit = Sum::constant(u64::MAX, left.bits()).constant_part();
                (most <= limit).then_some(true)
            }),
        }
    }
}

fn compare(cond: IntCC, left: &Sum, right: &Sum) -> Option<bool> {
    let bits = left.bits();
    if left == right {
        return Some(holds_of_equals(cond));
    }
    if let (Some(left), Some(right)) = (left.as_constant(), right.as_constant()) {
        return Some(holds(cond, left, right, bits));
    }
    let max = Sum::constant(u64::MAX, bits).constant_part();
    match cond {
        IntCC::UnsignedLessThanOrEqual => {
            let right = right.as_constant()?;
            (left.most() <= right || right == max).then_some(true)
        }
        IntCC::UnsignedLessThan if left.as_constant() == Some(max) => Some(false),
        IntCC::UnsignedLessThan => (left.most() < right.as_constant()?).then_some(true),
        IntCC::UnsignedGreaterThanOrEqual => {
            let left = left.as_constant()?;
            (right.most() <= left).then_some(true)
        }
        IntCC::UnsignedGreaterThan if right.as_constant() == Some(max) => Some(false),
        IntCC::UnsignedGreaterThan => (right.most() < left.as_constant()?).then_some(true),
        _ => match left.minus(right)?.as_constant()? {
            0 => Some(holds_of_equals(cond)),
            _ => match cond {
                IntCC::Equal => Some(false),
                IntCC::NotEqual => Some(true),
                _ => None,
            },
        },
    }
}

/// Whether a number compares so with itself.
fn holds_of_equals(cond: IntCC) -> bool {
    holds(cond, 0, 0, 64)
}

/// Whether two numbers of so many bits compare so.
fn holds(cond: IntCC, left: u64, right: u64, bits: u32) -> bool {
    let unused = 64 - bits;
    let (a, b) = (left << unused, right << unused);
    let (s, t) = (a as i64, b as i64);
    match cond {
        IntCC::Equal => a == b,
        IntCC::NotEqual => a != b,
        IntCC::UnsignedLessThan => a < b,
        IntCC::UnsignedLessThanOrEqual => a <= b,
        IntCC::UnsignedGreaterThan => a > b,
        IntCC::UnsignedGreaterThanOrEqual => a >= b,
        IntCC::SignedLessThan => s < t,
        IntCC::SignedLessThanOrEqual => s <= t,
        IntCC::SignedGreaterThan => s > t,
        IntCC::SignedGreaterThanOrEqual => s >= t,
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compare { cond, left, right } => {
                let sign = if *cond == cond.unsigned() { "" } else { "signed " };
                let word = match cond.unsigned() {
                    IntCC::Equal => "==",
                    IntCC::NotEqual => "!=",
                    IntCC::UnsignedLessThan => "<",
                    IntCC::UnsignedLessThanOrEqual => "<=",
                    IntCC::UnsignedGreaterThan => ">",
                    _ => ">=",
                };
                write!(f, "{left} {sign}{word} {right}")
            }
            Self::Fits { left, right } => write!(f, "({left}) * ({right}) fits"),
        }
    }
}

/// The numbers on the circle of all numbers for which a comparison with `bound` holds, if it holds for any: from the first to the last.
///
/// They are next to each other, whatever the condition, so that a number that starts among them and moves less than the
/// distance to the end stays among them.
pub fn arc(cond: IntCC, bound: &Sum) -> (Sum, Sum) {
    let bits = bound.bits();
    let constant = |number: u64| Sum::constant(number, bits);
    let least = if cond == cond.unsigned() { constant(0) } else { constant(1 << (bits - 1)) };
    let largest = least.clone().offset(-1);
    let (before, after) = (bound.clone().offset(-1), bound.clone().offset(1));
    match cond {
        IntCC::Equal => (bound.clone(), bound.clone()),
        IntCC::NotEqual => (after, before),
        IntCC::UnsignedLessThan | IntCC::SignedLessThan => (least, before),
        IntCC::UnsignedLessThanOrEqual | IntCC::SignedLessThanOrEqual => (least, bound.clone()),
        IntCC::UnsignedGreaterThan | IntCC::SignedGreaterThan => (after, largest),
        IntCC::UnsignedGreaterThanOrEqual | IntCC::SignedGreaterThanOrEqual => (bound.clone(), largest),
    }
}

#[cfg(test)]
mod tests {
    use super::super::address::Term;
    use super::*;
    use cranelift_codegen::ir::{Value, types};

    /// `arc` holds the numbers for which the comparison holds, and no others, for each condition and bound of 8 bits.
    #[test]
    fn arcs_hold_what_fulfils_the_condition() {
        use IntCC::{
            Equal, NotEqual, SignedGreaterThan, SignedGreaterThanOrEqual, SignedLessThan, SignedLessThanOrEqual,
            UnsignedGreaterThan, UnsignedGreaterThanOrEqual, UnsignedLessThan, UnsignedLessThanOrEqual,
        };
        let bits = types::I8.bits();
        for cond in [
            Equal,
            NotEqual,
            SignedGreaterThan,
            SignedGreaterThanOrEqual,
            SignedLessThan,
            SignedLessThanOrEqual,
            UnsignedGreaterThan,
            UnsignedGreaterThanOrEqual,
            UnsignedLessThan,
            UnsignedLessThanOrEqual,
        ] {
            for bound in 0..256 {
                let (from, to) = arc(cond, &Sum::constant(bound, bits));
                let [from, to] = [from, to].map(|end| end.as_constant().expect("of a constant"));
                let fulfils = |number: u64| holds(cond, number, bound, bits);
                if !(0..256).any(fulfils) {
                    continue;
                }
                let in_arc = |number: u64| number.wrapping_sub(from) & 255 <= to.wrapping_sub(from) & 255;
                assert!((0..256).all(|number| fulfils(number) == in_arc(number)), "{cond} {bound}: {from} to {to}");
            }
        }
    }

    #[test]
    fn known_of_constants_and_narrow_numbers() {
        let constant = |number| Sum::constant(number, 64);
        let narrow = Sum::of_term(
            Term::Extended { signed: false, sum: Box::new(Sum::of_term(Term::Value(Value::from_u32(1)), 1, 32)) },
            8,
            64,
        );
        let known = |cond, left: &Sum, right: &Sum| Requirement::new(cond, left.clone(), right.clone()).known();
        assert_eq!(known(IntCC::SignedLessThan, &constant(u64::MAX), &constant(0)), Some(true));
        assert_eq!(known(IntCC::UnsignedLessThan, &constant(u64::MAX), &constant(0)), Some(false));
        assert_eq!(known(IntCC::UnsignedLessThanOrEqual, &narrow, &constant(8 << 32)), Some(true));
        assert_eq!(known(IntCC::UnsignedLessThanOrEqual, &narrow, &constant(7 << 32)), None);
        assert_eq!(known(IntCC::NotEqual, &narrow, &narrow.clone().offset(1)), Some(true));
        let fits = Requirement::Fits { left: narrow.clone(), right: constant(1 << 28) };
        assert_eq!(fits.known(), Some(true));
        assert_eq!(Requirement::Fits { left: narrow, right: constant(1 << 40) }.known(), None);
    }
}
