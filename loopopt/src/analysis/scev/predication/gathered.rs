//! One bound in place of several: of what is next to each other, the last is the largest.
//!
//! ```text
//! unsigned(i) <= n - 4,  unsigned(i + 8) <= n - 4,  unsigned(i + 2) <= n - 2,  n - 2 <= 2^32 - 1
//!
//!                               unsigned(i) + 10 <= n - 2,  n - 2 <= 2^32 - 1
//! ```
//!
//! All sums here are too wide to wrap, as integers. Bounds that differ by a constant become the largest of them, with the difference
//! added on the other side: as that is at most the largest bound, the smaller one has not wrapped. Of numbers that differ by
//! a constant inside an extension, the first stands for all: with what lies between them it is at most the bound, and as
//! the bound is no more than the narrower type can tell, none of the others has wrapped. Which of two is the first is not known, as
//! numbers are on a circle; the shorter way around is taken. Where something is taken away from a constant, `-x - 1` is the room below 2^64, and
//! `-x + 2^32 - 1` that below 2^32: these are not next to each other, though they differ by a constant.
//!
//! What is required afterwards is enough for what was required before. It may be more: that what is next to each other lies there
//! without wraparound.

use crate::analysis::inst::number::{mask, signed};
use crate::analysis::scev::exit_test::is_negative;
use crate::analysis::scev::linear_expr::{Sum, Term};
use crate::analysis::scev::predication::MIN_BITS_OF_LENGTHS;
use crate::analysis::scev::requirement::Requirement;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::ir::condcodes::IntCC;

/// Bounds of one kind for which it pays to require one more thing: that they are no more than a narrower type can tell. 3: of two,
/// as many would remain.
const MIN_GATHERED: usize = 3;

/// The same, or more, with fewer comparisons, where several sums have one bound, apart from a constant.
pub(in crate::analysis) fn gathered(required: Vec<Requirement>) -> Vec<Requirement> {
    let mut numbers: FxHashMap<(Sum, bool), usize> = FxHashMap::default();
    let mut groups: Vec<Group> = Vec::new();
    for (index, requirement) in required.iter().enumerate() {
        let Some((left, right)) = as_at_most(requirement) else { continue };
        let (root, is_cap) = match right.as_constant() {
            Some(_) => (left.clone(), true),
            None => (right.clone(), false),
        };
        let (root, offset) = root.split_constant();
        let offset = i128::from(signed(offset, left.bits()));
        let is_room = offset < 0 && is_negative(&root);
        let number = *numbers.entry((root, is_room)).or_insert_with_key(|(root, _)| {
            groups.push(Group { root: root.clone(), bounds: Vec::new(), caps: Vec::new() });
            groups.len() - 1
        });
        let member = Member { index, offset, other: if is_cap { right } else { left } };
        let group = &mut groups[number];
        if is_cap { group.caps.push(member) } else { group.bounds.push(member) }
    }
    let mut places: Vec<Vec<Requirement>> = required.into_iter().map(|one| vec![one]).collect();
    for mut group in groups {
        let Some(fewer) = group.gathered() else { continue };
        let members = group.bounds.iter().chain(&group.caps).map(|member| member.index);
        let first = members.clone().min().expect("there are two at least");
        members.for_each(|index| places[index].clear());
        places[first] = fewer;
    }
    places.into_iter().flatten().collect()
}

/// The sides of `left <= right`, unsigned, where the sum on the left cannot wrap if there is one.
pub(super) fn as_at_most(requirement: &Requirement) -> Option<(Sum, Sum)> {
    let Requirement::Compare { cond, left, right } = requirement else { return None };
    let more = match cond {
        IntCC::UnsignedLessThanOrEqual => 0,
        IntCC::UnsignedLessThan => 1,
        _ => return None,
    };
    match right.as_constant() {
        Some(right) if left.as_constant().is_none() => {
            let most = right.checked_sub(more)?;
            Some((left.clone(), Sum::constant(most, left.bits())))
        }
        Some(_) => None,
        None => Some((plus(left, more)?, right.clone())),
    }
}

/// A sum that cannot wrap, and a constant, if the two cannot either.
fn plus(sum: &Sum, constant: u64) -> Option<Sum> {
    let total = Sum::constant(sum.constant_part().checked_add(constant)?, sum.bits());
    let fits = total.as_constant() == sum.constant_part().checked_add(constant);
    let mut more = sum.clone().split_constant().0;
    more.add(&total, 1)?;
    (fits && more.never_wraps()).then_some(more)
}

/// A requirement that has to do with a root and a constant.
struct Member {
    /// Which it is.
    index: usize,
    /// The constant, which is added to the root.
    offset: i128,
    /// What the two are compared with.
    other: Sum,
}

/// Requirements that have to do with one root.
struct Group {
    root: Sum,
    /// Something is at most the root and a constant.
    bounds: Vec<Member>,
    /// The root and a constant is at most a constant.
    caps: Vec<Member>,
}

impl Group {
    /// Fewer requirements from which those of the group follow; what does not follow from them has left the group. `None` if they are not fewer.
    fn gathered(&mut self) -> Option<Vec<Requirement>> {
        let largest = self.bounds.iter().map(|bound| bound.offset).max()?;
        self.bounds.retain_mut(|bound| {
            let more = u64::try_from(largest - bound.offset).ok();
            let sum = more.and_then(|more| plus(&bound.other, more));
            sum.map(|sum| bound.other = sum).is_some()
        });
        let least = self.bounds.iter().map(|bound| bound.offset).min()?;
        // The root and a constant has not wrapped, and is not above the largest bound, if it is not below the least.
        self.caps.retain(|cap| (least..=largest).contains(&cap.offset));
        let cap = self.caps.iter().filter_map(|cap| cap.other.as_constant()).min();
        let mut sums = Gathering { cap, may_cap: self.bounds.len() >= MIN_GATHERED, sums: Vec::new() };
        self.bounds.iter().for_each(|bound| sums.add(&bound.other));
        let all = self.root.clone().offset(largest as i64);
        let cap = sums.cap.map(|cap| Requirement::at_most(all.clone(), Sum::constant(cap, all.bits())));
        // A constant that is larger than the least cap: this requirement never holds, as none of the original ones would have.
        let is_too_large = |sum: &Sum| sums.cap.filter(|cap| sum.constant_part() > *cap);
        let bounds = sums.sums.into_iter().map(|(_, sum)| match (is_too_large(&sum), sum.as_constant()) {
            (Some(cap), _) => Requirement::at_most(sum, Sum::constant(cap, all.bits())),
            // That is how others say what a number is above.
            (None, Some(1..)) => Requirement::new(IntCC::UnsignedLessThan, sum.offset(-1), all.clone()),
            (None, _) => Requirement::at_most(sum, all.clone()),
        });
        let fewer: Vec<_> = cap.into_iter().chain(bounds).collect();
        (fewer.len() < self.bounds.len() + self.caps.len()).then_some(fewer)
    }
}

/// Sums that cannot wrap and have one bound.
struct Gathering {
    /// What the bound is at most.
    cap: Option<u64>,
    /// Whether that may be required if it is not yet.
    may_cap: bool,
    /// The sums, each with what it is without constants.
    sums: Vec<(Sum, Sum)>,
}

impl Gathering {
    /// Adds a sum, or makes another one large enough.
    fn add(&mut self, sum: &Sum) {
        let key = without_constants(sum);
        for at in 0..self.sums.len() {
            let (own_key, own) = &self.sums[at];
            if *own_key == key
                && let Some((both, cap)) = self.joined(own, sum)
            {
                self.sums[at].1 = both;
                self.cap = cap;
                return;
            }
        }
        self.sums.push((key, sum.clone()));
    }

    /// A sum that is at most the bound only if two others are, and what the bound is to be at most then.
    fn joined(&self, one: &Sum, other: &Sum) -> Option<(Sum, Option<u64>)> {
        let difference = other.minus(one)?;
        if difference.terms().is_empty() {
            let larger = if one.constant_part() < other.constant_part() { other } else { one };
            return Some((larger.clone(), self.cap));
        }
        let [(a, _), (b, _)] = difference.terms() else { return None };
        let (factor, [narrow, other_narrow]) = [(a, b), (b, a)].into_iter().find_map(|(own, others)| {
            let (_, factor) = one.terms().iter().find(|(term, _)| term == own)?;
            other.terms().contains(&(others.clone(), *factor)).then_some(())?;
            match (own, others) {
                (Term::Extended { signed: false, sum: a }, Term::Extended { signed: false, sum: b }) => {
                    Some((*factor, [&**a, &**b]))
                }
                _ => None,
            }
        })?;
        if narrow.bits() != other_narrow.bits() {
            return None;
        }
        let cap = self.cap_for(narrow.bits(), factor, one.bits())?;
        let (up, down) = (other_narrow.minus(narrow)?.as_constant()?, narrow.minus(other_narrow)?.as_constant()?);
        let (least, last, apart) = if up <= down { (one, other, up) } else { (other, one, down) };
        let end = last.constant_part().checked_add(factor.checked_mul(apart)?)?;
        let more = end.saturating_sub(least.constant_part());
        Some((plus(least, more)?, Some(cap)))
    }

    /// What the bound is to be at most so that a number of so many bits is all that a multiple of it can be at most.
    fn cap_for(&self, narrow: u32, factor: u64, wide: u32) -> Option<u64> {
        let most = mask(narrow).checked_mul(factor).filter(|most| *most <= mask(wide))?;
        match self.cap {
            Some(cap) => (cap <= most).then_some(cap),
            None => (self.may_cap && narrow >= MIN_BITS_OF_LENGTHS).then_some(most),
        }
    }
}

/// A sum without its constant, and without those inside its extensions.
fn without_constants(sum: &Sum) -> Sum {
    let mut rest = Sum::constant(0, sum.bits());
    for (term, factor) in sum.terms() {
        let term = match term {
            Term::Extended { signed, sum } => {
                let sum = (**sum).clone().split_constant().0;
                Term::Extended { signed: *signed, sum: Box::new(sum) }
            }
            _ => term.clone(),
        };
        rest.add(&Sum::of_term(term, *factor, sum.bits()), 1).expect("no more terms than before");
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_codegen::ir::Value;

    const LESS: IntCC = IntCC::UnsignedLessThan;
    const AT_MOST: IntCC = IntCC::UnsignedLessThanOrEqual;

    fn value(number: u32, bits: u32) -> Sum {
        Sum::of_term(Term::Value(Value::from_u32(number)), 1, bits)
    }

    /// Whether a requirement holds if the values are these numbers.
    fn holds(requirement: &Requirement, numbers: [u64; 3]) -> bool {
        let Requirement::Compare { cond, left, right } = requirement else { return false };
        let number = |sum: &Sum| {
            let bits = |value: Value| if value.as_u32() == 1 { 16 } else { 8 };
            let one = |value: Value| Some(Sum::constant(numbers[value.as_u32() as usize - 1], bits(value)));
            sum.substituted(&mut { one }).and_then(|sum| sum.as_constant()).expect("all values are given")
        };
        let requirement = Requirement::new(*cond, Sum::constant(number(left), 16), Sum::constant(number(right), 16));
        requirement.known().expect("of constants")
    }

    /// What is gathered is enough, for all numbers that matter, and says no where numbers lie next to each other only.
    #[test]
    fn gathered_is_enough() {
        let limit = |offset| value(1, 16).offset(offset);
        let index = |number, offset| value(number, 8).offset(offset).extended(16, false);
        let bound = |cond, left: Sum, right: Sum| Requirement::new(cond, left, right);
        let required = vec![
            bound(AT_MOST, limit(-2), Sum::constant(255, 16)),
            bound(AT_MOST, index(2, 8), limit(-4)),
            bound(LESS, index(2, 0), limit(-1)),
            bound(AT_MOST, index(2, -3).offset(7), limit(-2)),
            bound(AT_MOST, index(3, 1).plus(&index(2, 4), 2).expect("short"), limit(-2)),
            bound(AT_MOST, index(3, 9).plus(&index(2, 4), 2).expect("short"), limit(-2)),
            bound(AT_MOST, Sum::constant(17, 16), limit(-9)),
            bound(AT_MOST, Sum::constant(18, 16), limit(-9)),
        ];
        let fewer = gathered(required.clone());
        assert_eq!(fewer.len(), 4, "{fewer:?}");
        let all_hold = |required: &[Requirement], numbers| required.iter().all(|one| holds(one, numbers));
        let (mut both, mut first) = (0, 0);
        for n in (0..300).chain(65_530..65_536) {
            for index in 0..256 {
                for other in [0, 1, 100, 246, 247, 248, 254, 255] {
                    let numbers = [n, index, other];
                    let [before, after] = [&required, &fewer].map(|all| all_hold(all, numbers));
                    assert!(before || !after, "{numbers:?}");
                    both += u32::from(after);
                    first += u32::from(before);
                }
            }
        }
        assert!(both * 10 > first * 9 && both > 100, "{both} of {first}");
    }
}
