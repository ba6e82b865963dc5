//! Goals about integers with sign that follow from goals about integers without, and the other way round.

use super::{Inequality, Prover, ZERO};
use crate::analysis::facts::known::{Fact, Spot};
use crate::analysis::scev::value_range::{Number, Term, limits};
use crate::fault::fault;

impl Prover<'_, '_> {
    /// Whether the goal holds in the other reading of its terms, in which none of them is negative.
    pub(super) fn by_other_reading(&mut self, spot: Spot, goal: Inequality, depth: usize) -> bool {
        let terms = || [goal.left, goal.right].into_iter().flatten();
        if !self.conditions.thorough && !self.is_read_otherwise(spot, goal) {
            return false;
        }
        if terms().all(|term| !term.signed) {
            return self.by_signed_reading(spot, goal, depth);
        }
        let is_readable = |term: Term| term.signed || self.conditions.numbers.is_never_negative(term);
        terms().all(is_readable) && self.by_unsigned_reading(spot, goal, depth)
    }

    /// Whether there is a fact about a side of the goal in the other reading.
    fn is_read_otherwise(&self, spot: Spot, goal: Inequality) -> bool {
        let is_same =
            |a: Option<Term>, b: Option<Term>| a.zip(b).is_some_and(|(a, b)| (a.root, a.signed) == (b.root, !b.signed));
        let is_about = |side: Option<Term>| {
            side.is_some_and(|term| self.conditions.may_speak_of(spot, term.root))
                && self
                    .conditions
                    .ordered(spot)
                    .iter()
                    .any(|fact| is_same(fact.left, side) || is_same(fact.right, side))
        };
        is_about(goal.left) || is_about(goal.right)
    }

    /// For terms that are read without sign.
    fn by_signed_reading(&mut self, spot: Spot, goal: Inequality, depth: usize) -> bool {
        let (left, right) = (self.reread(goal.left, true), self.reread(goal.right, true));
        // With a left side that is not negative, and at most the right side in the signed reading, neither is that.
        let most = if goal.left.is_some() && goal.right.is_none() { goal.most } else { goal.most.min(0) };
        let not_negative = Inequality::of(ZERO, left, 0);
        (goal.left.is_none() || fault!(AnyReading) || self.prove(spot, not_negative, depth))
            && self.prove_reading(spot, Inequality::of(left, right, most), depth)
    }

    /// For terms that are read with sign, or are never negative.
    fn by_unsigned_reading(&mut self, spot: Spot, goal: Inequality, depth: usize) -> bool {
        let (left, right) = (self.reread(goal.left, false), self.reread(goal.right, false));
        let terms = [goal.left, goal.right].into_iter().flatten();
        let widths = terms.map(|term| self.conditions.numbers.bits(term.root));
        let largest = limits(widths.min().unwrap_or(1), true).1;
        let right_is_positive =
            |prover: &mut Self| prover.prove_reading(spot, Inequality::of(right, ZERO, largest), depth);
        match (goal.left, goal.right) {
            (Some(_), Some(_)) => {
                right_is_positive(self)
                    && self.prove_reading(spot, Inequality::of(left, right, goal.most.min(0)), depth)
            }
            (Some(_), None) => {
                goal.most >= 0 && self.prove_reading(spot, Inequality::of(left, ZERO, goal.most.min(largest)), depth)
            }
            (None, _) => {
                right_is_positive(self)
                    && (goal.most >= 0 || self.prove_reading(spot, Inequality::of(ZERO, right, goal.most), depth))
            }
        }
    }

    /// The term, read with or without sign.
    fn reread(&mut self, term: Option<Term>, signed: bool) -> Number {
        match term {
            None => ZERO,
            Some(term) => self.conditions.numbers.of_term(Term { signed, ..term }),
        }
    }

    /// Whether a fact that is about integers with sign says so, of integers that are not negative.
    pub(super) fn by_other_facts(&mut self, spot: Spot, goal: Inequality, depth: usize) -> bool {
        let is_other = |own: Option<Term>, other: Option<Term>| {
            own.zip(other).is_some_and(|(own, other)| own.root == other.root && !own.signed && other.signed)
        };
        let Some(subject) = goal.left.or(goal.right) else { return false };
        if subject.signed || !self.conditions.may_speak_of(spot, subject.root) {
            return false;
        }
        let is_relevant = |fact: &Fact| match goal.left {
            Some(_) => is_other(goal.left, fact.left) && (fact.right.is_none() || fact.most <= 0),
            None => is_other(goal.right, fact.right) && fact.most <= 0,
        };
        let mut next = 0;
        while let Some(place) = self.conditions.ordered(spot)[next..].iter().position(is_relevant) {
            let fact = self.conditions.ordered(spot)[next + place];
            next += place + 1;
            // If the left side is not negative, neither is the right side, which is not less.
            let used = self.used.len();
            if !self.is_not_negative(spot, fact.left, depth) {
                continue;
            }
            let [left, right] = [fact.left, fact.right].map(|term| self.reread(term, false));
            let reread = Inequality::of(left, right, fact.most);
            self.used.push(fact.source);
            if self.by_fact(spot, goal, reread, depth) || self.by_chain(spot, goal, reread, depth) {
                return true;
            }
            self.used.truncate(used);
        }
        false
    }

    fn is_not_negative(&mut self, spot: Spot, term: Option<Term>, depth: usize) -> bool {
        term.is_none_or(|term| {
            !term.signed || self.prove(spot, Inequality { left: None, right: Some(term), most: 0 }, depth)
        })
    }
}
