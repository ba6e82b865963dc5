//! True integers, as opposed to sums, which are numbers modulo two to their bits.
//!
//! ```text
//! 10 + (2^64 - 4)                               as a sum of 64 bits: 6          as an integer: too large for one
//! unsigned(a) + (unsigned(b) - unsigned(a))     as a sum: unsigned(b)           as an integer: only if a <= b
//! 2^32 * (2^30 * x)                             as a sum: 2^62 * x, 0 if x is 4, and so on
//! ```
//!
//! What a loop moves by, and what a sum is at most, are integers: they are compared, and a fold of constants, terms or factors
//! that is right modulo a power of two says something else of them if it overflows. So the rule is
//!
//! * a [`Sum`] is a number modulo two to its bits. Everything may be folded in it, and a comparison of it is one of what remains;
//! * an [`Integer`] is what a sum is, read without sign, and the sum that stands for it is exact. Arithmetic on integers is the
//!   same arithmetic on the sums, and requires that the result is in range:
//!
//! | operation | is exact if |
//! |---|---|
//! | `a + b` | the sum, modulo, is not below `a`; or both are too small to overflow, whatever their values are |
//! | `a - b` | `b <= a` |
//! | `a * c` | `a <= (2^bits - 1) / c` |
//! | `a * b` | the product fits |
//! | in fewer bits | it is at most the largest number of these |
//! | in more bits, `a / c` | always |
//!
//! What is required is remembered where it is ([`Needs`]), so that no integer is made without it. There is no other way to make one
//! but to read a sum without sign.

use crate::analysis::inst::number::mask;
use crate::analysis::scev::linear_expr::Sum;
use crate::analysis::scev::requirement::{Requirement, follows};
use crate::fault::fault;
use cranelift_codegen::ir::condcodes::IntCC;

/// What has to hold, each thing once.
#[derive(Clone, Debug, Default)]
pub(in crate::analysis) struct Needs(Vec<Requirement>);

impl Needs {
    /// Adds something, unless it always holds, or follows from what is needed already.
    pub(in crate::analysis) fn require(&mut self, requirement: Requirement) {
        if !self.imply(&requirement) {
            self.0.push(requirement);
        }
    }

    /// Whether something always holds, or follows from what is needed already.
    pub(in crate::analysis) fn imply(&self, requirement: &Requirement) -> bool {
        requirement.known() == Some(true) || follows(&self.0, requirement) || self.imply_below(requirement)
    }

    /// Whether a number is required to be at most a constant that is a constant below one that is never larger, and not too small for that.
    fn imply_below(&self, requirement: &Requirement) -> bool {
        let Requirement::Compare { cond: IntCC::UnsignedLessThanOrEqual, left, right } = requirement else {
            return false;
        };
        let (root, less) = left.clone().split_constant();
        let less = less.wrapping_neg() & mask(root.bits());
        let is_small =
            right.as_constant().zip(root.most().checked_sub(less)).is_some_and(|(right, most)| most <= right);
        is_small && less > 0 && follows(&self.0, &above(less - 1, root))
    }

    /// How many things there are.
    pub(in crate::analysis) fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets all but the first so many.
    pub(in crate::analysis) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    pub(in crate::analysis) fn into_vec(self) -> Vec<Requirement> {
        self.0
    }
}

impl Extend<Requirement> for Needs {
    fn extend<I: IntoIterator<Item = Requirement>>(&mut self, more: I) {
        more.into_iter().for_each(|one| self.require(one));
    }
}

/// An integer that is not negative, and fits into the bits of the sum that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::analysis) struct Integer(Sum);

impl Integer {
    /// What a sum is, read without sign.
    pub(in crate::analysis) fn of(sum: Sum) -> Self {
        Self(sum)
    }

    /// A constant of so many bits.
    pub(in crate::analysis) fn constant(number: u64, bits: u32) -> Self {
        Self(Sum::constant(number, bits))
    }

    /// The same modulo two to its bits.
    pub(in crate::analysis) fn sum(&self) -> &Sum {
        &self.0
    }

    /// A number that it is at most.
    pub(in crate::analysis) fn most(&self) -> u64 {
        self.0.most()
    }

    /// That it is at most `right`, read without sign.
    pub(in crate::analysis) fn at_most(&self, right: Sum) -> Requirement {
        Requirement::at_most(self.0.clone(), right)
    }

    /// The same in at least as many bits.
    pub(in crate::analysis) fn extended(self, bits: u32) -> Self {
        Self(self.0.extended(bits, false))
    }

    /// The same in so many bits. Nothing if there is no sum for that.
    pub(in crate::analysis) fn fitted(self, bits: u32, needs: &mut Needs) -> Option<Self> {
        if self.0.bits() <= bits {
            return Some(self.extended(bits));
        }
        needs.require(self.at_most(Sum::constant(mask(bits), self.0.bits())));
        self.0.reduced(bits).map(Self)
    }

    /// Divided by a number that is not zero, and rounded down.
    pub(in crate::analysis) fn divided(self, by: u64) -> Self {
        Self(self.0.divided(by))
    }

    /// Whether so many times this is sure not to overflow.
    pub(in crate::analysis) fn can_be_multiplied(&self, factor: u64) -> bool {
        self.most().checked_mul(factor).is_some_and(|most| most <= mask(self.0.bits()))
    }

    /// So many times this.
    pub(in crate::analysis) fn times(&self, factor: u64, needs: &mut Needs) -> Self {
        let bits = self.0.bits();
        if factor > 1 && !fault!(FactorsVanish) {
            needs.require(self.at_most(Sum::constant(mask(bits) / factor, bits)));
        }
        Self(self.0.times(factor))
    }

    /// This times `other`, of as many bits.
    pub(in crate::analysis) fn product(&self, other: &Self, needs: &mut Needs) -> Self {
        needs.require(Requirement::Fits { left: self.0.clone(), right: other.0.clone() });
        Self(self.0.product(&other.0))
    }

    /// This and `other`, of as many bits. Nothing if there are too many terms.
    pub(in crate::analysis) fn plus(&self, other: &Self, needs: &mut Needs) -> Option<Self> {
        let total = self.0.plus(&other.0, 1)?;
        let most = self.most().checked_add(other.most());
        if most.is_none_or(|most| most > mask(total.bits())) && !fault!(TermsCancel) {
            needs.require(fits(&self.0, &other.0, &total));
        }
        Some(Self(total))
    }

    /// This without `other`, of as many bits. Nothing if there are too many terms.
    pub(in crate::analysis) fn minus(&self, other: &Self, needs: &mut Needs) -> Option<Self> {
        needs.require(other.at_most(self.0.clone()));
        self.0.minus(&other.0).map(Self)
    }
}

/// That a number is above a constant.
fn above(constant: u64, number: Sum) -> Requirement {
    Requirement::new(IntCC::UnsignedLessThan, Sum::constant(constant, number.bits()), number)
}

/// What is enough for two numbers, which are `total` modulo two to their bits, not to overflow: `total` is not below one of them.
fn fits(a: &Sum, b: &Sum, total: &Sum) -> Requirement {
    let (part, rest) = if a.terms().len() <= b.terms().len() { (a, b) } else { (b, a) };
    if let Some(added) = part.as_constant()
        && let (root, less) = rest.clone().split_constant()
        && let less = less.wrapping_neg() & mask(root.bits())
        && (1..=mask(root.bits()) / 2).contains(&less)
        && root.most().checked_add(added.saturating_sub(less)).is_some_and(|most| most <= mask(root.bits()))
    {
        // What `rest` is below its root by, it is not too small for.
        return above(less - 1, root);
    }
    let (root, less) = total.clone().split_constant();
    match less == mask(total.bits()) {
        true => Requirement::new(IntCC::UnsignedLessThan, part.clone(), root),
        false => Requirement::at_most(part.clone(), total.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::scev::linear_expr::Term;
    use cranelift_codegen::ir::Value;

    /// A few sums of two values of 8 bits, some of them of numbers that are never large.
    fn sums() -> Vec<Sum> {
        let value = |number| Sum::of_term(Term::Value(Value::from_u32(number)), 1, 8);
        let (a, b) = (value(1), value(2));
        let half = a.clone().divided(16);
        let minus = |a: &Sum, b: &Sum| a.minus(b).expect("short");
        vec![
            Sum::constant(0, 8),
            Sum::constant(10, 8),
            Sum::constant(252, 8),
            a.clone(),
            b.clone(),
            a.clone().offset(-1),
            a.clone().offset(-7),
            b.clone().offset(5),
            minus(&a, &b),
            minus(&b, &a),
            minus(&b, &a).offset(-1),
            a.times(16),
            half.clone(),
            half.clone().offset(-1),
            half.offset(3),
        ]
    }

    fn number(sum: &Sum, numbers: [u64; 2]) -> u64 {
        let one = |value: Value| Some(Sum::constant(numbers[value.as_u32() as usize - 1], 8));
        sum.substituted(&mut { one }).and_then(|sum| sum.as_constant()).expect("all values are given")
    }

    fn holds(needs: &Needs, numbers: [u64; 2]) -> bool {
        needs.0.iter().all(|one| {
            let (Requirement::Compare { left, right, .. } | Requirement::Fits { left, right }) = one;
            let [left, right] = [left, right].map(|sum| number(sum, numbers));
            match one {
                Requirement::Compare { cond, .. } => {
                    let one = Requirement::new(*cond, Sum::constant(left, 8), Sum::constant(right, 8));
                    one.known().expect("of constants")
                }
                Requirement::Fits { .. } => left * right < 256,
            }
        })
    }

    /// Numbers at which one of the sums, or two of them together, overflow or do not.
    const EDGES: [u64; 30] = [
        0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 15, 16, 17, 32, 85, 86, 100, 127, 128, 129, 200, 241, 245, 246, 247, 248, 249,
        251, 254, 255,
    ];

    /// How two integers are put together, and what that is exactly, if it fits into 8 bits.
    type Operation = (fn(&Integer, &Integer, &mut Needs) -> Option<Integer>, fn(u64, u64) -> Option<u64>);

    /// Where what is needed holds, arithmetic is that of integers.
    #[test]
    fn what_is_needed_is_enough() {
        let operations: [Operation; 5] = [
            (Integer::plus, |a, b| a.checked_add(b)),
            (Integer::minus, |a, b| a.checked_sub(b)),
            (|a, b, needs| Some(a.product(b, needs)), |a, b| a.checked_mul(b)),
            (|a, _, needs| Some(a.times(3, needs)), |a, _| a.checked_mul(3)),
            (|a, _, needs| Some(a.times(16, needs)), |a, _| a.checked_mul(16)),
        ];
        let sums = sums();
        let mut held = 0;
        for (a, b) in sums.iter().flat_map(|a| sums.iter().map(move |b| (a, b))) {
            for (operation, exact) in operations {
                let mut needs = Needs::default();
                let made = operation(&Integer::of(a.clone()), &Integer::of(b.clone()), &mut needs).expect("few terms");
                let pairs = EDGES.iter().flat_map(|a| EDGES.map(|b| [*a, b]));
                for numbers in pairs.filter(|numbers| holds(&needs, *numbers)) {
                    held += 1;
                    let is = number(made.sum(), numbers);
                    let exactly = exact(number(a, numbers), number(b, numbers)).filter(|number| *number < 256);
                    assert_eq!(exactly, Some(is), "{a}, {b}: {}, {:?}", made.sum(), needs.0);
                    assert!(is <= made.most());
                }
            }
        }
        assert!(held > 100_000, "{held}");
    }
}
