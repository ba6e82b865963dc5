//! Whether what is known at a place implies a comparison.
//!
//! Every comparison becomes goals of one form, about exact integers: `left - right` is at most a constant. A goal holds if
//!
//! * the ranges of both sides say so, or both are one sum and a constant each, and nothing wraps between them;
//! * a fact says so, or one says something of the left side and another of the right: `i < m` and `m <= n`;
//! * it holds for what the instruction that computes a side chooses from, or is not above: `i & 7`, `i >> 1`, `umin(i, n)`, and
//!   `i + umin(n - i, c)` for an `i` that is not above `n`;
//! * it holds in the other reading, and neither side is negative there;
//! * it holds for the arguments of all edges into the block that has a side as a parameter.
//!
//! # Loops
//!
//! The last rule does what an analysis of induction variables would do. In
//!
//! ```text
//! block1(i):                  goal: i < n, without sign
//!     trapz i < n
//!     j = i + 1
//!     brif j < n, block1(j), block2
//! ```
//!
//! the goal has to hold for the first value of `i`, which the guard before the loop says, and for `j` on the back edge, which the
//! test says. On the back edge, the goal may be used for the `i` of the same iteration: this is induction over time, since all
//! that a proof on an edge rests on happened earlier. That `i` does not wrap is a goal of its own, `i` being at most one less
//! than the largest number, and is proved in the same way if something has to rest on it. A step, a direction or a limit with
//! which this is not so needs no special case: the proof fails.
//!
//! The other side of the goal has to be the same on both ends of an edge: defined above the block, or one of its parameters too.
//!
//! # Cost
//!
//! A question looks at [`BUDGET`] goals at most, and each goal at the facts of one place, of which those after [`MANY_FACTS`] count as well: each check that has been passed
//! is one. After [`PATIENCE`] questions that have used all of it,
//! others look at [`LATER_BUDGET`]: in a loop with hundreds of checks of one array, the later ones are proved or not as the first ones were.

mod definition;
mod params;
mod reading;

use crate::analysis::facts::known::{Conditions, Fact, Order, Sides, Spot, order};
use crate::analysis::scev::value_range::{Bounds, Number, Term, limits};
use crate::fault::fault;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, Inst};
use smallvec::SmallVec;
use std::collections::hash_map::Entry;

/// Goals that one question may look at. 256: a check against the test of its loop takes 3 or 20, the longest proof among the samples
/// (`stencil3`, three checks around `n - 1`) takes 202, and most questions without an answer are given up after 4. With 32, `elide_checks`
/// takes 28 % less time over all samples, and does not find those of downward loops.
const BUDGET: usize = 256;

/// Questions of one [`Conditions`] that may use all of their budget. 16: no sample has more, and a function of 200 checks that are not
/// implied took 7 times as long in `elide_checks` as in all of Cranelift.
const PATIENCE: usize = 16;

/// Goals that a question may look at once so many have found no answer. 32: see [`BUDGET`].
const LATER_BUDGET: usize = 32;

/// The same for questions that are seldom answered. 6: what an earlier branch states directly takes 4 at most.
const SMALL_BUDGET: usize = 6;

/// Questions that may use all of the one budget or the other, before those to come get the [`SMALL_BUDGET`]. 64: a loop with 200 checks that are not
/// implied, each of another distance, took 9 times as long in `elide_checks` as in all of Cranelift.
const LATER_PATIENCE: usize = 64;

/// Facts about one side of a goal from which on each counts as a goal. 8: it leads to another goal, which mostly cannot hold. Without that, a loop with 40 checks
/// that nothing implies took 15 times as long in `elide_checks` as in all of Cranelift; it takes 9 times.
const MANY_FACTS: usize = 8;

/// Goals of which each may rest on the next. 10: a counter that is compared with sign and checked without takes 5.
const MAX_DEPTH: usize = 10;

/// `left - right` is at most `most`. Nothing stands for 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Inequality {
    left: Option<Term>,
    right: Option<Term>,
    most: i128,
}

impl Fact {
    fn inequality(&self) -> Inequality {
        Inequality { left: self.left, right: self.right, most: self.most }
    }
}

/// Nothing.
const ZERO: Number = Number { term: None, offset: 0 };

impl Inequality {
    fn of(left: Number, right: Number, most: i128) -> Self {
        Self { left: left.term, right: right.term, most: most + right.offset - left.offset }
    }

    fn with_left(self, left: Number, above: i128) -> Self {
        Self { left: left.term, most: self.most - left.offset - above, ..self }
    }

    fn with_right(self, right: Number) -> Self {
        Self { right: right.term, most: self.most + right.offset, ..self }
    }
}

/// How far one term is above another with the same root: by `near` if nothing wraps between them, and by `far` at most.
#[derive(Clone, Copy)]
struct Distance {
    near: i128,
    far: i128,
}

/// A goal somewhere, and how much is assumed: with more of that it is another question.
type Question = (Spot, Inequality, usize);

/// What a prover needs, kept for the next one.
#[derive(Default)]
pub(in crate::analysis) struct Scratch {
    hypotheses: Vec<(Block, Inequality)>,
    open: FxHashMap<Question, usize>,
    used: Vec<Inst>,
}

impl Conditions<'_> {
    /// Whether so many questions have used all of their budget that those to come get less.
    pub fn is_impatient(&self) -> bool {
        self.exhausted >= PATIENCE
    }
}

/// Proves goals, as far as its budget goes.
pub(in crate::analysis) struct Prover<'c, 'a> {
    conditions: &'c mut Conditions<'a>,
    budget: usize,
    /// What is being proved of parameters, and so holds where their block has been passed earlier.
    hypotheses: Vec<(Block, Inequality)>,
    /// Goals that could not be proved, or not yet, and how deep the proof could be.
    open: FxHashMap<Question, usize>,
    /// Whether the next goal is another reading of the one before.
    is_reading: bool,
    /// The branches and checks that the proofs rest on.
    used: Vec<Inst>,
}

impl<'c, 'a> Prover<'c, 'a> {
    pub(in crate::analysis) fn new(conditions: &'c mut Conditions<'a>) -> Self {
        let Scratch { hypotheses, open, used } = std::mem::take(&mut conditions.scratch);
        Self { conditions, budget: 0, hypotheses, open, is_reading: false, used }
    }

    /// Leaves what the next prover needs, and the branches and checks that the proof rests on.
    pub(in crate::analysis) fn finish(self) {
        let Self { conditions, budget, hypotheses, open, used, .. } = self;
        conditions.exhausted += usize::from(conditions.thorough && budget == 0);
        conditions.sources.extend_from_slice(&used);
        conditions.scratch = Scratch { hypotheses, open, used };
    }

    /// Whether the comparison always holds at `spot`.
    pub(in crate::analysis) fn holds(&mut self, spot: Spot, cond: IntCC, [left, right]: [Sides; 2]) -> bool {
        self.used.clear();
        self.start();
        let less = |signed, most| Inequality::of(left.read(signed), right.read(signed), most);
        let greater = |signed, most| Inequality::of(right.read(signed), left.read(signed), most);
        match order(cond) {
            Order::Less { with_sign, most } => self.prove_order(spot, less(with_sign, 0), most),
            Order::Greater { with_sign, most } => self.prove_order(spot, greater(with_sign, 0), most),
            Order::Equal => {
                self.prove(spot, less(false, 0), MAX_DEPTH) && self.prove(spot, greater(false, 0), MAX_DEPTH)
            }
            Order::NotEqual => {
                self.differ(spot, [left.read(false), right.read(false)])
                    || [false, true].into_iter().any(|signed| {
                        self.prove(spot, less(signed, -1), MAX_DEPTH)
                            || self.prove(spot, greater(signed, -1), MAX_DEPTH)
                    })
            }
        }
    }

    /// Starts again, with the whole budget.
    fn start(&mut self) {
        self.budget = match self.conditions.exhausted {
            _ if !self.conditions.thorough => SMALL_BUDGET,
            ..PATIENCE => BUDGET,
            PATIENCE..LATER_PATIENCE => LATER_BUDGET,
            _ => SMALL_BUDGET,
        };
        self.open.clear();
    }

    /// Whether the goal with `more` added holds. What holds in each iteration may be more than what is asked for: that a counter
    /// is at most its limit does not follow from the iteration before if it stops when it is equal, that it is less does.
    fn prove_order(&mut self, spot: Spot, goal: Inequality, more: i128) -> bool {
        let asked = Inequality { most: goal.most + more, ..goal };
        let strict = Inequality { most: goal.most - 1, ..goal };
        if self.prove(spot, asked, MAX_DEPTH) {
            return true;
        }
        if more != 0 {
            return false;
        }
        self.start();
        self.prove(spot, strict, MAX_DEPTH)
    }

    /// Whether these are sure not to be the same.
    fn differ(&mut self, spot: Spot, [left, right]: [Number; 2]) -> bool {
        let apart = right.offset - left.offset;
        match (left.term, right.term) {
            (Some(a), Some(b)) if a == b => return apart != 0,
            (Some(a), Some(b)) if (a.root, a.signed, 0) == (b.root, b.signed, apart) => return true,
            _ => {}
        }
        let found = self.excluding(spot, [left.term, right.term], apart);
        self.used.extend(found);
        found.is_some()
    }

    /// Where it is known from that `left - right` is not this number, if it is.
    fn excluding(&self, spot: Spot, [left, right]: [Option<Term>; 2], number: i128) -> Option<Inst> {
        let mut facts = self.conditions.differing(spot).iter();
        let found = facts.find(|fact| match (left, right) {
            _ if (fact.left, fact.right) == (left, right) => fact.most == number,
            _ if (fact.right, fact.left) == (left, right) => fact.most == -number,
            (Some(term), None) => self.never_is(fact, term, number),
            (None, Some(term)) => self.never_is(fact, term, -number),
            _ => false,
        });
        found.map(|fact| fact.source)
    }

    /// Whether the goal holds at `spot`.
    fn prove(&mut self, spot: Spot, goal: Inequality, depth: usize) -> bool {
        // Of a goal that is another reading of one there is no third, unless its sides are read in two ways.
        let is_mixed = goal.left.zip(goal.right).is_some_and(|(left, right)| left.signed != right.signed);
        let is_reading = std::mem::take(&mut self.is_reading) && !is_mixed;
        let (left, right) = (self.bounds(goal.left), self.bounds(goal.right));
        if left.1 - right.0 <= goal.most {
            return true;
        }
        let cannot_hold = left.0 - right.1 > goal.most;
        if cannot_hold || depth == 0 || self.budget == 0 || self.is_unknowable(spot, goal) {
            return false;
        }
        let question = (spot, goal, self.hypotheses.len());
        match self.open.entry(question) {
            Entry::Occupied(tried) if *tried.get() >= depth => return false,
            Entry::Occupied(mut tried) => drop(tried.insert(depth)),
            Entry::Vacant(tried) => drop(tried.insert(depth)),
        }
        self.budget -= 1;
        let used = self.used.len();
        let proved = self.by_distance(spot, goal, depth - 1)
            || self.by_facts(spot, goal, depth - 1)
            || self.by_difference(spot, goal, depth - 1)
            || (!is_reading && self.by_other_reading(spot, goal, depth - 1))
            || self.by_more(spot, goal, depth - 1);
        if proved {
            self.open.remove(&question);
        } else {
            self.used.truncate(used);
        }
        proved
    }

    /// Whether there is nothing that a proof of the goal, of which the ranges do not tell, could start from: most conditions are
    /// about something that has just been loaded.
    fn is_unknowable(&self, spot: Spot, goal: Inequality) -> bool {
        let numbers = &self.conditions.numbers;
        let is_unknown = |term: &Term| numbers.is_opaque(term.root) && !self.conditions.may_speak_of(spot, term.root);
        let is_assumed = |term: &Term| {
            let sides = self.hypotheses.iter().flat_map(|(_, assumed)| [assumed.left, assumed.right]).flatten();
            sides.into_iter().any(|side| side.root == term.root)
        };
        let mut terms = [goal.left, goal.right].into_iter().flatten();
        match (goal.left, goal.right) {
            // A side that is never large leaves the other to be proved.
            (Some(left), Some(right)) => {
                let is_any = self.bounds(goal.left).1 == limits(numbers.bits(left.root), left.signed).1;
                left.root != right.root && is_any && terms.all(|term| is_unknown(&term) && !is_assumed(&term))
            }
            _ => terms.all(|term| is_unknown(&term) && !is_assumed(&term)),
        }
    }

    /// Whether a goal holds that is another reading of the one that is being proved.
    fn prove_reading(&mut self, spot: Spot, goal: Inequality, depth: usize) -> bool {
        self.is_reading = true;
        self.prove(spot, goal, depth)
    }

    /// Whether the goal holds for more reasons than what is stated directly.
    fn by_more(&mut self, spot: Spot, goal: Inequality, depth: usize) -> bool {
        if !self.conditions.thorough {
            // A constant often comes through one parameter after the other.
            let is_simple = goal.left.is_none() || goal.right.is_none();
            return is_simple && (self.by_rounding(spot, goal, depth) || self.by_params(spot, goal, depth.min(2)));
        }
        self.by_definition(spot, goal, depth)
            || self.by_params(spot, goal, depth)
            || self.by_other_facts(spot, goal, depth)
    }

    fn bounds(&self, term: Option<Term>) -> Bounds {
        self.conditions.numbers.bounds(term)
    }

    /// Whether both sides are the same sum, apart from a constant.
    fn by_distance(&mut self, spot: Spot, goal: Inequality, depth: usize) -> bool {
        if goal.left.is_none() {
            return false;
        }
        let Some(distance) = self.distance(goal.left, goal.right) else { return false };
        if distance.far <= goal.most {
            return true;
        }
        distance.near <= goal.most && self.is_near(spot, [goal.left, goal.right], depth)
    }

    /// How far `upper` is above `lower`, if they have the same root and are read in the same way.
    fn distance(&self, upper: Option<Term>, lower: Option<Term>) -> Option<Distance> {
        let (upper, lower) = match (upper, lower) {
            (None, None) => return Some(Distance { near: 0, far: 0 }),
            (Some(upper), Some(lower)) if have_one_root(Some(upper), Some(lower)) => (upper, lower),
            _ => return None,
        };
        if upper.constant == lower.constant {
            return Some(Distance { near: 0, far: 0 });
        }
        let bits = self.conditions.numbers.bits(upper.root);
        let all = 1_i128 << bits;
        let far = i128::from(upper.constant.wrapping_sub(lower.constant)) & (all - 1);
        let near = if far >= all / 2 { far - all } else { far };
        if fault!(NothingWraps) {
            return Some(Distance { near, far: near });
        }
        Some(Distance { near, far })
    }

    /// Whether nothing wraps from `lower` down to `upper`, which is below it, both with the same root.
    fn is_near(&mut self, spot: Spot, [upper, lower]: [Option<Term>; 2], depth: usize) -> bool {
        let (Some(distance), Some(term)) = (self.distance(upper, lower), lower) else { return false };
        if distance.near == distance.far {
            return true;
        }
        let down = -distance.near;
        let (least, largest) = limits(self.conditions.numbers.bits(term.root), term.signed);
        let high_enough = Inequality { left: None, right: lower, most: -(least + down) };
        let low_enough = Inequality { left: upper, right: None, most: largest - down };
        self.prove(spot, low_enough, depth) || self.prove(spot, high_enough, depth)
    }

    /// Whether a fact and what else is known of its sides say so. What is assumed comes first, and what says it at once.
    fn by_facts(&mut self, spot: Spot, goal: Inequality, depth: usize) -> bool {
        let found = self.facts_about(spot, goal);
        self.budget = self.budget.saturating_sub(found.len().saturating_sub(MANY_FACTS));
        for direct in [true, false] {
            for &(fact, source, _) in found.iter().filter(|(.., says_all)| *says_all == direct) {
                let proved = match direct {
                    true => self.by_fact(spot, goal, fact, depth),
                    false => self.by_chain(spot, goal, fact, depth),
                };
                if proved {
                    self.used.extend(source);
                    return true;
                }
            }
        }
        false
    }

    /// What is assumed or known of the side of the goal from which proofs go on, each with the branch or check that it is known
    /// from, and whether it is about both sides.
    fn facts_about(&self, spot: Spot, goal: Inequality) -> SmallVec<[(Inequality, Option<Inst>, bool); 4]> {
        let is_about = |left: Option<Term>, right: Option<Term>| match goal.left {
            Some(_) => have_one_root(goal.left, left).then(|| have_one_root(goal.right, right)),
            None => have_one_root(goal.right, right).then_some(left.is_none()),
        };
        let mut found = SmallVec::new();
        for (header, assumed) in &self.hypotheses {
            if let Some(says_all) = is_about(assumed.left, assumed.right)
                && self.conditions.domtree.block_dominates(*header, self.conditions.block_of(spot))
            {
                found.push((*assumed, None, says_all));
            }
        }
        let subject = goal.left.or(goal.right);
        let may_speak = subject.is_none_or(|term| self.conditions.may_speak_of(spot, term.root));
        let facts = if may_speak { self.conditions.ordered(spot) } else { &[] };
        for fact in facts {
            if let Some(says_all) = is_about(fact.left, fact.right) {
                found.push((fact.inequality(), Some(fact.source), says_all));
            }
        }
        found
    }

    /// Whether `fact` is about the same sums, with constants for which the goal follows.
    fn by_fact(&mut self, spot: Spot, goal: Inequality, fact: Inequality, depth: usize) -> bool {
        let above = self.distance(goal.left, fact.left);
        let below = self.distance(fact.right, goal.right);
        let (Some(above), Some(below)) = (above, below) else { return false };
        let left = goal.most - fact.most;
        if above.far + below.far <= left {
            return true;
        }
        if above.near + below.near > left {
            return false;
        }
        let pairs = [[goal.left, fact.left], [fact.right, goal.right]];
        let mut near = |side: usize| self.is_near(spot, pairs[side], depth);
        match (above.near + below.far <= left, above.far + below.near <= left) {
            (false, false) => near(0) && near(1),
            (first, second) => (first && near(0)) || (second && near(1)),
        }
    }

    /// Whether `fact` leads from one side of the goal to something else, of which the goal holds.
    fn by_chain(&mut self, spot: Spot, goal: Inequality, fact: Inequality, depth: usize) -> bool {
        let (above, below) = (self.distance(goal.left, fact.left), self.distance(fact.right, goal.right));
        let rest = |distance: i128| goal.most - fact.most - distance;
        let (pair, distance, next) = match (above, below) {
            // Nothing is below 0 that is not known by its range.
            (Some(above), None) if goal.left.is_some() => {
                let next = |by| Inequality { left: fact.right, right: goal.right, most: rest(by) };
                ([goal.left, fact.left], above, [next(above.far), next(above.near)])
            }
            (None, Some(below)) if goal.left.is_none() => {
                let next = |by| Inequality { left: goal.left, right: fact.left, most: rest(by) };
                ([fact.right, goal.right], below, [next(below.far), next(below.near)])
            }
            _ => return false,
        };
        if self.prove(spot, next[0], depth) {
            return true;
        }
        distance.near != distance.far && self.prove(spot, next[1], depth) && self.is_near(spot, pair, depth)
    }

    /// Whether the difference of the sides is at most one more than claimed, and a fact excludes that it is exactly that.
    fn by_difference(&mut self, spot: Spot, goal: Inequality, depth: usize) -> bool {
        let excluded = goal.most + 1;
        let Some(source) = self.excluding(spot, [goal.left, goal.right], excluded) else { return false };
        let proved = self.prove(spot, Inequality { most: excluded, ..goal }, depth);
        self.used.extend(proved.then_some(source));
        proved
    }

    /// Whether `fact`, that a term and a number differ, says that `term` is not `number`.
    fn never_is(&self, fact: &Fact, term: Term, number: i128) -> bool {
        let (other, excluded) = match (fact.left, fact.right) {
            (Some(other), None) => (other, fact.most),
            (None, Some(other)) => (other, -fact.most),
            _ => return false,
        };
        let bits = self.conditions.numbers.bits(term.root);
        let (least, largest) = limits(bits, other.signed);
        let apart = i128::from(term.constant) - i128::from(other.constant);
        other.root == term.root
            && (least..=largest).contains(&excluded)
            && (excluded + apart - number) % (1 << bits) == 0
    }
}

/// Whether two terms are a known distance apart if nothing wraps, or both are nothing.
fn have_one_root(a: Option<Term>, b: Option<Term>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => (a.root, a.signed) == (b.root, b.signed),
        _ => false,
    }
}
