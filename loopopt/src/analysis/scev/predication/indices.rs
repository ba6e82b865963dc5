//! Few comparisons for extended indices next to each other: of the first of the least one, and of the last of the greatest.
//!
//! An index of few bits that is extended, and compared with a length of more, requires three things before a loop: that it does not overflow, that the first one is
//! below the length, and how far it may advance. `s` is an index in the first iteration, `r` how far all of them move, and 9 the largest number of the narrow
//! type:
//!
//! ```text
//! r <= 9 - s,        signed(s) < n,        unsigned(r) <= n - signed(s) - 1
//! r <= 9 - (s + 2),  signed(s + 2) < n,    unsigned(r) <= n - signed(s + 2) - 1
//!
//!             n <= 10,  signed(s) < n,     unsigned(r) + 2 <= n - signed(s) - 1
//! ```
//!
//! A constant may have come out of an extension: `unsigned(r) <= n - signed(s)` speaks of a range of `r - 1`, and `1 <= unsigned(r)` is required then. What says that an address
//! with such an index does not wrap follows too.
//!
//! The three are enough. The first index is not negative, as it is below the length, and what is up to 2 above the last one is below the length, so that it is
//! at most 9. So none of the indices overflows, whatever is between 0 and 2 above the first, and all are below the length. They are more than what was required: a length
//! above all numbers of the narrow type is none that such an index can use up.

use super::unwrapped::MAX_TAKEN;
use crate::analysis::inst::number::{mask, signed};
use crate::analysis::scev::linear_expr::{Sum, Term};
use crate::analysis::scev::requirement::Requirement;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};

/// The same, or more, with fewer comparisons, where several indices have one length.
pub(in crate::analysis) fn of_first_and_last(mut required: Vec<Requirement>) -> Vec<Requirement> {
    let mut gone = FxHashSet::default();
    let mut fewer = Vec::new();
    for groups in by_length(&required) {
        let mut covered: FxHashSet<usize> = groups.iter().flat_map(|group| group.covered(&required)).collect();
        covered.retain(|place| !gone.contains(place));
        let cap = groups[0].cap();
        if cap.known() == Some(false) {
            continue;
        }
        let cap = Some(cap).filter(|cap| cap.known().is_none());
        let enough: Vec<_> = cap.into_iter().chain(groups.iter().flat_map(Group::first_and_last)).collect();
        if enough.len() < covered.len() {
            gone.extend(covered);
            fewer.extend(enough);
        }
    }
    let mut place = 0..;
    required.retain(|_| !place.next().is_some_and(|place| gone.contains(&place)));
    required.extend(fewer);
    required
}

/// Indices that differ by constants, have one length, and move equally far.
struct Group {
    length: Sum,
    signed: bool,
    /// The first of the indices, but for the constants.
    base: Sum,
    /// How far they move, and `less` more than that.
    range: Sum,
    less: u64,
    /// What is added to the base, for each of them.
    offsets: Vec<i64>,
    /// Where it is required that they are below the length.
    places: Vec<usize>,
}

/// All indices in groups, those of one length and sign together.
fn by_length(required: &[Requirement]) -> Vec<Vec<Group>> {
    let mut firsts: FxHashMap<&Sum, Vec<(&Sum, usize)>> = FxHashMap::default();
    for (place, requirement) in required.iter().enumerate() {
        if let Requirement::Compare { cond: IntCC::UnsignedLessThan, left, right } = requirement {
            firsts.entry(left).or_default().push((right, place));
        }
    }
    let mut lengths: FxHashMap<(Sum, bool), usize> = FxHashMap::default();
    let mut all: Vec<Vec<Group>> = Vec::new();
    for index in (0..).zip(required).filter_map(|(place, last)| Group::of_one((place, last), &firsts)) {
        let number = *lengths.entry((index.length.clone(), index.signed)).or_insert(all.len());
        if number == all.len() {
            all.push(Vec::new());
        }
        match all[number].iter_mut().find(|group| group.moves_like(&index)) {
            Some(group) => {
                group.offsets.extend(index.offsets);
                group.places.extend(index.places);
            }
            None => all[number].push(index),
        }
    }
    all
}

impl Group {
    /// The index of which `last` says how far it may advance, if its first is required to be below the length.
    fn of_one((place, last): (usize, &Requirement), firsts: &FxHashMap<&Sum, Vec<(&Sum, usize)>>) -> Option<Self> {
        let (left, right) = last.as_at_most()?;
        let bits = right.bits();
        right.terms().iter().filter(|(_, factor)| *factor == mask(bits)).find_map(|(term, _)| {
            let Term::Extended { signed: has_sign, sum } = term else { return None };
            let extended = Sum::of_term(term.clone(), 1, bits);
            let length = right.plus(&extended, 1)?.offset(1);
            let (base, offset) = (**sum).clone().split_constant();
            narrow(left, base.bits())?;
            firsts.get(&extended)?.iter().find_map(|&(own, first)| {
                // What was taken out of an extension.
                let less = length.minus(own)?.as_constant().filter(|less| *less <= MAX_TAKEN)?;
                Some(Self {
                    length: own.clone(),
                    signed: *has_sign,
                    range: left.clone(),
                    less,
                    offsets: vec![signed(offset, base.bits())],
                    places: vec![first, place],
                    base: base.clone(),
                })
            })
        })
    }

    /// Whether the indices of two groups of one length differ by constants.
    fn moves_like(&self, other: &Self) -> bool {
        (&self.base, &self.range, self.less) == (&other.base, &other.range, other.less)
    }

    /// The largest number of the narrow type.
    fn largest(&self) -> u64 {
        mask(self.base.bits()) >> u32::from(self.signed)
    }

    /// The least and the greatest of what is added.
    fn ends(&self) -> (i64, i64) {
        let all = || self.offsets.iter().copied();
        all().min().zip(all().max()).expect("a group has an index")
    }

    /// The requirements that follow from what is required of the first and the last.
    fn covered(&self, required: &[Requirement]) -> Vec<usize> {
        let follows =
            |(left, right): (&Sum, &Sum)| self.never_overflows(left, right) || self.never_exceeds(left, right);
        let places = (0..required.len()).filter(|&place| required[place].as_at_most().is_some_and(follows));
        self.places.iter().copied().chain(places).collect()
    }

    /// Whether `left <= right` says that an index does not overflow: one between the least and the largest, or one of these two.
    fn never_overflows(&self, left: &Sum, right: &Sum) -> bool {
        let bits = self.base.bits();
        let range = narrow(&self.range, bits).expect("it has been looked at").offset(-self.less.cast_signed());
        let index = || Sum::constant(self.largest(), bits).minus(right).map(Sum::split_constant);
        *left == range && index().is_some_and(|(base, offset)| base == self.base && self.is_between(offset).is_some())
    }

    /// Whether `left`, the sum of such an index without sign, of how far it moves and of a constant, is at most `right` as the index is below the length.
    fn never_exceeds(&self, left: &Sum, right: &Sum) -> bool {
        let (Some(limit), true) = (right.as_constant(), left.never_wraps() && left.bits() == self.range.bits()) else {
            return false;
        };
        let Some(rest) = left.minus(&self.range) else { return false };
        let [(Term::Extended { signed: false, sum }, 1)] = rest.terms() else { return false };
        let (base, offset) = (**sum).clone().split_constant();
        let Some(above) = self.is_between(offset).filter(|_| base == self.base) else { return false };
        let (least, greatest) = self.ends();
        // What does not wrap is a sum of numbers without sign, its constant too.
        let constant = i128::from(left.constant_part()) - i128::from(self.range.constant_part());
        let most = [self.less.cast_signed(), above, -(greatest - least)].map(i128::from).iter().sum::<i128>();
        i128::from(self.largest()) + constant + most <= limit.into()
    }

    /// How far above the least index the base is with `offset`, if it is not above the greatest.
    fn is_between(&self, offset: u64) -> Option<i64> {
        let (least, greatest) = self.ends();
        let offset = signed(offset, self.base.bits());
        (least..=greatest).contains(&offset).then(|| offset - least)
    }

    /// The length is no more than there are numbers in the narrow type that are not negative.
    fn cap(&self) -> Requirement {
        Requirement::at_most(self.length.clone(), Sum::constant(self.largest() + 1, self.length.bits()))
    }

    /// The first of the least index is below the length, and so is what is as far above it as the last of the greatest can be.
    fn first_and_last(&self) -> SmallVec<[Requirement; 3]> {
        let (least, greatest) = self.ends();
        let wide = self.length.bits();
        let first = self.base.clone().offset(least).extended(wide, self.signed);
        let room = self.length.minus(&first).expect("no more terms than were there");
        let room = room.offset(self.less.cast_signed() - 1);
        let last = Requirement::at_most(self.range.clone().offset(greatest - least), room);
        let mut all = smallvec![Requirement::new(IntCC::UnsignedLessThan, first, self.length.clone()), last];
        if self.less > 0 {
            all.push(Requirement::at_most(Sum::constant(self.less, wide), self.range.clone()));
        }
        all
    }
}

/// The sum of so many bits that `wide` extends without sign.
fn narrow(wide: &Sum, bits: u32) -> Option<Sum> {
    match wide.terms() {
        [] => (wide.constant_part() <= mask(bits)).then(|| Sum::constant(wide.constant_part(), bits)),
        [(Term::Extended { signed: false, sum }, 1)] if wide.constant_part() == 0 && sum.bits() == bits => {
            Some((**sum).clone())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_codegen::ir::Value;

    /// Numbers of 4 bits and a length of 8.
    fn value(number: u32) -> Sum {
        Sum::of_term(Term::Value(Value::from_u32(number)), 1, if number == 0 { 8 } else { 4 })
    }

    /// What an index requires of a length that is the value 0, if it moves as far as the value 1 says, but for `less`.
    fn required(index: &Sum, with_sign: bool, less: i64) -> [Requirement; 3] {
        let (length, range) = (value(0), value(1));
        let first = index.clone().extended(8, with_sign);
        let room = length.minus(&first).expect("short").offset(less - 1);
        [
            Requirement::at_most(range.clone().offset(-less), largest(with_sign).minus(index).expect("short")),
            Requirement::new(IntCC::UnsignedLessThan, first, length),
            Requirement::at_most(range.extended(8, false), room),
        ]
    }

    fn largest(with_sign: bool) -> Sum {
        Sum::constant(if with_sign { 7 } else { 15 }, 4)
    }

    /// That the last number that is `constant` above an index is one of the narrow type.
    fn address(index: &Sum, constant: i64, with_sign: bool) -> Requirement {
        bounded(index, constant, largest(with_sign).constant_part().cast_signed())
    }

    /// That the last number that is `constant` above an index is at most this.
    fn bounded(index: &Sum, constant: i64, most: i64) -> Requirement {
        let [index, range] = [index.clone(), value(1)].map(|number| number.extended(8, false));
        let last = index.plus(&range, 1).expect("short").offset(constant);
        Requirement::at_most(last, Sum::constant(0, 8).offset(most))
    }

    fn holds(requirement: &Requirement, numbers: [u64; 4]) -> bool {
        let Requirement::Compare { cond, left, right } = requirement else { return false };
        let number = |sum: &Sum| {
            let one = |value: Value| {
                let bits = if value.as_u32() == 0 { 8 } else { 4 };
                Some(Sum::constant(numbers[value.as_u32() as usize], bits))
            };
            sum.substituted(&mut { one }).and_then(|sum| sum.as_constant()).expect("all values are given")
        };
        let [left, right] = [left, right].map(|sum| Sum::constant(number(sum), 64));
        Requirement::new(*cond, left, right).known().expect("of constants, without sign")
    }

    /// What is required of the first and the last is enough, for all numbers, and no more for lengths that the indices can use up.
    #[test]
    fn the_first_and_the_last_are_enough() {
        for (with_sign, less) in [(false, 0), (true, 0), (false, 1), (true, 1)] {
            let indices = [value(2), value(2).offset(2), value(2).offset(-1), value(3).offset(1), value(3)];
            let mut before: Vec<_> = indices.iter().flat_map(|index| required(index, with_sign, less)).collect();
            before.extend([address(&value(2), 2 - less, with_sign), address(&value(3), 1 - less, with_sign)]);
            // It may be beyond the last index.
            before.push(address(&value(3), 2 - less, with_sign));
            let after = of_first_and_last(before.clone());
            assert_eq!((before.len(), after.len()), (18, if less == 0 { 6 } else { 8 }), "{after:?}");
            let most = if with_sign { 8 } else { 16 };
            let (mut before_hold, mut after_hold) = (0, 0);
            for (n, r) in (0..256).flat_map(|n| (0..16).map(move |r| (n, r))) {
                for (a, b) in (0..16).flat_map(|a| (0..16).map(move |b| (a, b))) {
                    let [old, new] = [&before, &after].map(|all| all.iter().all(|one| holds(one, [n, r, a, b])));
                    assert!(old || !new, "{n} {r} {a} {b}: {with_sign} {less}");
                    before_hold += u32::from(old && n <= most && r >= less.unsigned_abs());
                    after_hold += u32::from(new);
                }
            }
            // Indices that are next to each other on the circle only are not taken.
            assert!(after_hold > 100 && 10 * after_hold > 9 * before_hold, "{after_hold} of {before_hold}");
        }
    }

    /// A large constant is no negative one: what is as far below it as an index may be does not follow.
    #[test]
    fn large_constants_are_without_sign() {
        let index = value(2);
        let others = [index.clone().offset(1), index.clone().offset(2)];
        let mut before: Vec<_> =
            [&index, &others[0], &others[1]].iter().flat_map(|index| required(index, false, 0)).collect();
        let (follows, stays) = (bounded(&index, 128, 128 + 15), bounded(&index, 128, 128 + 12));
        before.extend([follows.clone(), stays.clone()]);
        let after = of_first_and_last(before);
        assert!(after.contains(&stays) && !after.contains(&follows), "{after:?}");
    }

    /// A length that is known is compared with nothing, if it is not too large.
    #[test]
    fn known_lengths_are_not_compared() {
        for (length, after) in [(8, 4), (9, 12)] {
            let constant = |sum: &Sum| {
                let one = |number: Value| match number.as_u32() {
                    0 => Some(Sum::constant(length, 8)),
                    number => Some(value(number)),
                };
                sum.substituted(&mut { one }).expect("short")
            };
            let indices = [value(2), value(2).offset(2), value(3), value(3).offset(1)];
            let before = indices.iter().flat_map(|index| required(index, true, 0)).map(|one| match one {
                Requirement::Compare { cond, left, right } => Requirement::new(cond, constant(&left), constant(&right)),
                other => other,
            });
            assert_eq!(of_first_and_last(before.collect()).len(), after);
        }
    }

    /// Fewer would not be less.
    #[test]
    fn one_index_stays() {
        let before = required(&value(2), true, 0).to_vec();
        assert_eq!(of_first_and_last(before.clone()), before);
    }
}
