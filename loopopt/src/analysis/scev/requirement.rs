//! What has to hold of some integers, and what is known of them without looking further.
//!
//! Both sides are numbers modulo two to their bits, read with or without sign as the condition says: `n - 1` is the largest number if `n` is
//! 0. What follows from a requirement follows from it so; of true integers speaks the module `integer`.

use crate::analysis::inst::number::{mask, signed};
use crate::analysis::scev::const_eval::compares;
use crate::analysis::scev::linear_expr::Sum;
use crate::analysis::scev::predication::gathered::gathered;
use crate::analysis::scev::predication::indices::of_first_and_last;
use crate::analysis::scev::predication::summands::of_larger_sums;
use crate::analysis::scev::wrap_arc::{interval, is_signed, is_strict};
use cranelift_codegen::ir::Value;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
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
    /// `left cond right`. Unsigned, the smaller number is on the left.
    pub fn new(cond: IntCC, left: Sum, right: Sum) -> Self {
        match cond {
            IntCC::UnsignedGreaterThan | IntCC::UnsignedGreaterThanOrEqual => {
                Self::Compare { cond: cond.swap_args(), left: right, right: left }
            }
            _ => Self::Compare { cond, left, right },
        }
    }

    /// `left <= right`, unsigned.
    pub fn at_most(left: Sum, right: Sum) -> Self {
        Self::new(IntCC::UnsignedLessThanOrEqual, left, right)
    }

    /// Visits the values of both sides, each as often as it is there.
    pub fn each_value(&self, visit: &mut dyn FnMut(Value)) {
        let (Self::Compare { left, right, .. } | Self::Fits { left, right }) = self;
        left.each_value(visit);
        right.each_value(visit);
    }

    /// Whether it holds, if that is known whatever the values are.
    pub fn known(&self) -> Option<bool> {
        match self {
            Self::Compare { cond, left, right } => compare(*cond, left, right),
            Self::Fits { left, right } => left.most().checked_mul(right.most()).and_then(|most| {
                let limit = mask(left.bits());
                (most <= limit).then_some(true)
            }),
        }
    }
}

/// Fewer comparisons that are enough for these, where they imply each other.
///
/// * `a <= r` is removed if `e <= r` and `a <= r - e`: nothing wraps there, and `r - e` is not more than `r`.
/// * `a <= n - 1`, `a != n` and `0 < n` are removed if `a < n`.
/// * `1 < n` is removed if `3 < n`; and then `a <= n - 2` is removed if `a <= n - 4`, as neither wraps.
/// * `a <= 9` is removed if `a + 1 <= n` and `n <= 10`, and `a + 1` cannot wrap.
/// * `0 < n` and `a <= n - 1` together are `a < n`.
///
/// Before that, bounds of what is next to each other become one (the modules `gathered`, `indices` and `summands`), which may be more than what was required.
///
/// Time grows with the square of their number: each is compared with each other one, and with a third one only if these two are next to each other.
pub fn simplified(required: Vec<Requirement>) -> Vec<Requirement> {
    let mut required = needed_beside(of_larger_sums(gathered(of_first_and_last(required))), Vec::new());
    let mut index = 0;
    while index < required.len() {
        let merged = required[index].as_positive().and_then(|n| {
            let last = n.clone().offset(-1);
            required
                .iter()
                .position(|other| other.as_at_most().is_some_and(|(_, r)| *r == last))
                .map(|at| (at, n.clone()))
        });
        let Some((at, n)) = merged else {
            index += 1;
            continue;
        };
        let (a, _) = required[at].as_at_most().expect("just seen");
        required[at] = Requirement::new(IntCC::UnsignedLessThan, a.clone(), n);
        required.remove(index);
    }
    required
}

/// Those of `required` that do not follow from each other and from what is `given`.
pub fn needed_beside(mut required: Vec<Requirement>, given: Vec<Requirement>) -> Vec<Requirement> {
    let mut count = required.len();
    required.extend(given);
    // One after the other: of two that imply each other, one stays. What does not follow from others does not follow from fewer of them.
    let mut index = 0;
    while index < count {
        if is_implied(&required, index) {
            drop(required.remove(index));
            count -= 1;
        } else {
            index += 1;
        }
    }
    required.truncate(count);
    required
}

/// That one number is less than another one, or at most that.
struct Less<'r> {
    signed: bool,
    strict: bool,
    smaller: &'r Sum,
    larger: &'r Sum,
}

/// Whether `asked` follows from one of these.
pub(in crate::analysis) fn follows(required: &[Requirement], asked: &Requirement) -> bool {
    required.iter().any(|one| one.implies(asked))
}

/// Whether one of them follows from others.
fn is_implied(required: &[Requirement], index: usize) -> bool {
    let (before, after) = (&required[..index], &required[index + 1..]);
    if follows(before, &required[index]) || follows(after, &required[index]) {
        return true;
    }
    let Some(asked) = required[index].as_at_most() else { return false };
    let others = Others { before, after };
    others.imply_by_room(asked) || others.imply_by_less(asked) || others.imply_by_cap(asked)
}

/// All that is required but the one of which it is asked whether it can be removed: none is its own reason. `x < x + 1` and `x <= 100` say that `x + 1`
/// is at most 101, and so that `x` is at most 100; without `x <= 100`, they do not.
#[derive(Clone, Copy)]
struct Others<'r> {
    before: &'r [Requirement],
    after: &'r [Requirement],
}

impl<'r> Others<'r> {
    fn iter(self) -> impl Iterator<Item = &'r Requirement> {
        self.before.iter().chain(self.after)
    }

    /// Whether `a <= r`, where `r` is a constant, follows from a bound of what is `a` but for a constant, and from a constant that this bound is
    /// at most.
    fn imply_by_cap(self, (a, r): (&Sum, &Sum)) -> bool {
        let Some(most) = r.as_constant().filter(|_| a.never_wraps()) else { return false };
        let bounds = || self.iter().filter_map(Requirement::as_less).filter(|less| !less.signed);
        bounds().filter(|bound| bound.smaller.never_wraps()).any(|bound| {
            if distance(bound.smaller, a).is_none() {
                return false;
            }
            let [own, others] = [a, bound.smaller].map(|sum| i128::from(sum.constant_part()));
            let more = others - own + i128::from(bound.strict);
            let is_enough = |limit: i128| limit - more <= most.into();
            if let Some(limit) = bound.larger.as_constant() {
                return is_enough(limit.into());
            }
            let above = |root: &Sum| Some(signed(distance(bound.larger, root)?, root.bits()).into());
            bounds().any(|cap| match (cap.larger.as_constant(), above(cap.smaller)) {
                // The bound has not wrapped if it is above what has a limit.
                (Some(limit), Some(more @ 0..)) => {
                    let limit = i128::from(limit) + more - i128::from(cap.strict);
                    limit <= mask(a.bits()).into() && is_enough(limit)
                }
                _ => false,
            })
        })
    }

    /// Whether `a <= r` follows from `a <= r - c`, where neither wraps as what they are below some `n` is less than that is known to be.
    fn imply_by_less(self, (a, r): (&Sum, &Sum)) -> bool {
        let bounds = || self.iter().filter_map(Requirement::as_above);
        let is_other = |(b, s): &(&Sum, &Sum)| *b == a && distance(s, r).is_some();
        self.iter().filter_map(Requirement::as_at_most).filter(is_other).any(|(_, s)| {
            bounds().any(|(least, n)| match (distance(n, r), distance(n, s)) {
                (Some(near), Some(far)) => near < far && far - 1 <= least,
                _ => false,
            })
        })
    }

    /// Whether `a <= r` follows from `e <= r` and `a <= r - e`.
    fn imply_by_room(self, (a, r): (&Sum, &Sum)) -> bool {
        let others = || self.iter().filter_map(Requirement::as_at_most);
        // `a` has few bounds, and `r` may be that of all others.
        let rests = others().filter(|(b, s)| *b == a && *s != r);
        let mut smaller = rests.filter_map(|(_, s)| r.minus(s)).filter(|e| e != a);
        smaller.any(|e| others().any(|(other, same)| *other == e && same == r))
    }
}

/// How far `a` is above `b`, if that is a constant and both have as many bits: a narrower sum of the same terms is another number.
fn distance(a: &Sum, b: &Sum) -> Option<u64> {
    let is_constant = a.bits() == b.bits() && a.terms() == b.terms();
    is_constant.then(|| a.constant_part().wrapping_sub(b.constant_part()) & mask(a.bits()))
}

impl Requirement {
    /// Whether `other` holds wherever this does, as far as that is seen at once.
    fn implies(&self, other: &Self) -> bool {
        if self == other {
            return true;
        }
        let Some(Less { signed, strict, smaller, larger }) = self.as_less() else { return false };
        if let Self::Compare { cond: IntCC::NotEqual, left, right } = other {
            return strict && [(left, right), (right, left)].contains(&(smaller, larger));
        }
        let Some(asked) = other.as_less().filter(|asked| asked.signed == signed) else { return false };
        // With something below the larger one, and something above the smaller one, nothing wraps next to them.
        let is_next = strict && !asked.strict;
        let is_weaker = strict || !asked.strict;
        match (asked.smaller == smaller, asked.larger == larger) {
            (true, true) => is_weaker,
            (true, false) if is_next && *asked.larger == larger.clone().offset(-1) => true,
            (false, true) if is_next && *asked.smaller == smaller.clone().offset(1) => true,
            (true, false) if !signed && is_weaker => {
                larger.as_constant().zip(asked.larger.as_constant()).is_some_and(|(own, asked)| own <= asked)
            }
            (false, true) if !signed => asked
                .smaller
                .as_constant()
                .is_some_and(|number| if is_weaker { smaller.least() >= number } else { smaller.least() > number }),
            _ => false,
        }
    }

    /// The same as an order of two numbers, if it is one.
    fn as_less(&self) -> Option<Less<'_>> {
        let Self::Compare { cond, left, right } = self else { return None };
        let (strict, swapped) = match interval(*cond) {
            (None, Some(_)) => (is_strict(*cond), false),
            (Some(_), None) => (is_strict(*cond), true),
            _ => return None,
        };
        let (smaller, larger) = if swapped { (right, left) } else { (left, right) };
        Some(Less { signed: is_signed(*cond), strict, smaller, larger })
    }

    /// The sides of `left <= right`, unsigned.
    pub(in crate::analysis) fn as_at_most(&self) -> Option<(&Sum, &Sum)> {
        match self {
            Self::Compare { cond: IntCC::UnsignedLessThanOrEqual, left, right } => Some((left, right)),
            _ => None,
        }
    }

    /// A constant, and a number that is required to be larger, unsigned.
    fn as_above(&self) -> Option<(u64, &Sum)> {
        match self {
            Self::Compare { cond: IntCC::UnsignedLessThan, left, right } => Some((left.as_constant()?, right)),
            _ => None,
        }
    }

    /// The number that is required not to be 0.
    fn as_positive(&self) -> Option<&Sum> {
        match self {
            Self::Compare { cond: IntCC::UnsignedLessThan, left, right } if left.as_constant() == Some(0) => {
                Some(right)
            }
            _ => None,
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
    match cond {
        IntCC::UnsignedLessThanOrEqual if left.most() <= right.least() => Some(true),
        IntCC::UnsignedLessThanOrEqual => (left.least() > right.most()).then_some(false),
        IntCC::UnsignedLessThan if left.most() < right.least() => Some(true),
        IntCC::UnsignedLessThan => (left.least() >= right.most()).then_some(false),
        IntCC::UnsignedGreaterThanOrEqual | IntCC::UnsignedGreaterThan => compare(cond.swap_args(), right, left),
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
    compares(cond, [left.into(), right.into()], Sum::constant(0, bits).ty())
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compare { cond, left, right } => {
                let sign = if is_signed(*cond) { "signed " } else { "" };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::scev::linear_expr::Term;
    use cranelift_codegen::FxHashMap;
    use cranelift_codegen::ir::Value;

    /// What remains says the same of all numbers of a few bits.
    #[test]
    fn simplified_is_the_same() {
        let value = |number| Sum::of_term(Term::Value(Value::from_u32(number)), 1, 8);
        let (a, e, n) = (value(1), value(2), value(3));
        let (zero, last) = (Sum::constant(0, 8), n.clone().offset(-1));
        let at_most = |left: &Sum, right: &Sum| Requirement::at_most(left.clone(), right.clone());
        let rest = last.minus(&e).expect("few terms");
        let required = vec![
            Requirement::new(IntCC::UnsignedLessThan, zero, n.clone()),
            at_most(&a, &last),
            at_most(&e, &last),
            at_most(&a, &rest),
        ];
        let fewer = simplified(required.clone());
        let circle = vec![
            at_most(&a, &last),
            at_most(&e, &last),
            at_most(&a, &last.minus(&e).expect("few terms")),
            at_most(&e, &last.minus(&a).expect("few terms")),
        ];
        assert_eq!(simplified(circle).len(), 3, "of two that stand for each other, one stays");
        assert_eq!(fewer, [Requirement::new(IntCC::UnsignedLessThan, e, n.clone()), at_most(&a, &rest)]);
        let all_hold = |required: &[Requirement], numbers: [u64; 3]| {
            required.iter().all(|requirement| {
                let Requirement::Compare { cond, left, right } = requirement else { return false };
                let [left, right] = [left, right].map(|sum| {
                    let one = |value: Value| Some(Sum::constant(numbers[value.as_u32() as usize - 1], 8));
                    let number = sum.substituted(&mut { one }).and_then(|sum| sum.as_constant());
                    number.expect("all values are given")
                });
                holds(*cond, left, right, 8)
            })
        };
        let above = |least| Requirement::new(IntCC::UnsignedLessThan, Sum::constant(least, 8), n.clone());
        let four = vec![above(3), above(1), at_most(&a, &n.clone().offset(-4)), at_most(&a, &n.clone().offset(-2))];
        let fewer_of_four = simplified(four.clone());
        assert_eq!(fewer_of_four, [above(3), at_most(&a, &n.clone().offset(-4))]);
        for number in 0..1 << 18 {
            let numbers = [0, 6, 12].map(|shift| {
                let low = number >> shift & 63;
                if low < 32 { low } else { low + 192 }
            });
            assert_eq!(all_hold(&required, numbers), all_hold(&fewer, numbers), "{numbers:?}");
            assert_eq!(all_hold(&four, numbers), all_hold(&fewer_of_four, numbers), "{numbers:?}");
        }
    }

    /// Whatever three things are required: what remains is enough for them, of all numbers near which something changes.
    #[test]
    fn simplified_is_enough() {
        const EDGES: [u64; 17] = [0, 1, 2, 3, 4, 5, 15, 16, 17, 126, 127, 128, 129, 250, 252, 254, 255];
        let value = |number| Sum::of_term(Term::Value(Value::from_u32(number)), 1, 8);
        let (x, n, zero) = (value(1), value(2), Sum::constant(0, 8));
        // Never more than 15.
        let small = x.clone().divided(16);
        let sums: Vec<_> = [(&x, 0), (&x, 1), (&x, -1), (&n, 0), (&n, -4), (&small, 0), (&small, 2)]
            .into_iter()
            .chain([(&zero, 0), (&zero, 1), (&zero, 4), (&zero, 16), (&zero, 17)])
            .map(|(sum, offset)| sum.clone().offset(offset))
            .collect();
        let pairs = sums.iter().flat_map(|left| sums.iter().map(move |right| (left, right)));
        let orders = [IntCC::UnsignedLessThan, IntCC::UnsignedLessThanOrEqual];
        let family: Vec<_> = pairs
            .flat_map(|(left, right)| orders.map(|cond| Requirement::new(cond, left.clone(), right.clone())))
            .filter(|one| one.known().is_none())
            .collect();
        let numbers: Vec<_> = EDGES.into_iter().flat_map(|x| EDGES.map(|n| [x, n])).collect();
        let mut seen = FxHashMap::<Requirement, Vec<bool>>::default();
        let mut truth = |one: &Requirement| {
            let Requirement::Compare { cond, left, right } = one else { return Vec::new() };
            let number = |sum: &Sum, numbers: &[u64; 2]| {
                let one = |value: Value| Some(Sum::constant(numbers[value.as_u32() as usize - 1], 8));
                sum.substituted(&mut { one }).and_then(|sum| sum.as_constant()).expect("all values are given")
            };
            let is_so = |at| holds(*cond, number(left, at), number(right, at), 8);
            seen.entry(one.clone()).or_insert_with(|| numbers.iter().map(is_so).collect()).clone()
        };
        let (mut fewer_than_before, mut needed_than_before) = (0, 0);
        let count = family.len();
        for (i, j, k) in (0..count).flat_map(|i| (0..i).flat_map(move |j| (0..j).step_by(11).map(move |k| (i, j, k)))) {
            // One of three orders of each three.
            let mut required = vec![family[i].clone(), family[j].clone(), family[k].clone()];
            required.rotate_left((i + j + k) % 3);
            let fewer = simplified(required.clone());
            fewer_than_before += usize::from(fewer.len() < 3);
            let [before, after] = [&required, &fewer].map(|all| all.iter().map(&mut truth).collect::<Vec<_>>());
            let given = required.pop().expect("three");
            let needed = needed_beside(required.clone(), vec![given.clone()]);
            needed_than_before += usize::from(needed.len() < 2);
            let with_given: Vec<_> = needed.iter().chain([&given]).map(&mut truth).collect();
            for at in 0..numbers.len() {
                let [before, after, beside] = [&before, &after, &with_given].map(|all| all.iter().all(|one| one[at]));
                assert!(before || !after, "{:?}: {required:?}, {given:?} became {fewer:?}", numbers[at]);
                assert!(before || !beside, "{:?}: {required:?} became {needed:?} beside {given:?}", numbers[at]);
            }
        }
        assert!(fewer_than_before > 3_000, "{fewer_than_before}");
        assert!(needed_than_before > 1_000, "{needed_than_before}");
    }

    /// What is required of the low half of a number says nothing of the number.
    #[test]
    fn a_narrower_number_is_another_one() {
        let number = |bits| Sum::of_term(Term::Value(Value::from_u32(1)), 1, bits);
        let [half, whole] =
            [(8, 2), (16, 255)].map(|(bits, limit)| Requirement::at_most(number(bits), Sum::constant(limit, bits)));
        for required in [vec![half.clone(), whole.clone()], vec![whole.clone(), half.clone()]] {
            assert_eq!(simplified(required.clone()), required);
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
