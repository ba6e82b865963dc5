//! Whether what is known at a place implies a comparison.
//!
//! Every comparison becomes claims of one form, about exact integers: `left - right` is at most a constant. A claim holds if
//!
//! * the ranges of both sides say so, or both are one sum and a constant each, and nothing wraps between them;
//! * a fact says so, or one says something of the left side and another of the right: `i < m` and `m <= n`;
//! * it holds for what the instruction that computes a side chooses from, or is not above: `i & 7`, `i >> 1`, `umin(i, n)`;
//! * it holds in the other reading, and neither side is negative there;
//! * it holds for the arguments of all edges into the block that has a side as a parameter.
//!
//! # Loops
//!
//! The last rule does what an analysis of induction variables would do. In
//!
//! ```text
//! block1(i):                  claim: i < n, without sign
//!     trapz i < n
//!     j = i + 1
//!     brif j < n, block1(j), block2
//! ```
//!
//! the claim has to hold for the first value of `i`, which the guard before the loop says, and for `j` on the back edge, which the
//! test says. On the back edge, the claim may be used for the `i` of the same iteration: this is induction over time, since all
//! that a proof on an edge rests on happened earlier. That `i` does not wrap is a claim of its own, `i` being at most one less
//! than the largest number, and is proved in the same way if something has to rest on it. A step, a direction or a limit with
//! which this is not so needs no special case: the proof fails.
//!
//! The other side of the claim has to be the same on both ends of an edge: defined above the block, or one of its parameters too.
//!
//! # Cost
//!
//! A question looks at [`BUDGET`] claims at most, and each claim at the facts of one place.

use crate::analysis::cfg::edges::{Edge, edges_into};
use crate::analysis::facts::known::{Conditions, Fact, Home, Order, Place, Sides, Spot, order};
use crate::analysis::scev::linear_expr::{Sum, constant_of};
use crate::analysis::scev::value_range::{Bounds, Number, Term, limits};
use crate::fault::fault;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, Inst, InstructionData, Opcode, Value, ValueDef};
use smallvec::SmallVec;
use std::collections::hash_map::Entry;

/// Claims that one question may look at. 256: a check against the test of its loop takes 3 or 20, the longest proof among the samples
/// (`stencil3`, three checks around `n - 1`) takes 202, and most questions without an answer are given up after 4. With 32, `elide_checks`
/// takes 28 % less time over all samples, and does not find those of downward loops.
const BUDGET: usize = 256;

/// The same for questions that are seldom answered. 6: what a branch before says in so many words takes 4 at most.
const SMALL_BUDGET: usize = 6;

/// Claims of which each may rest on the next. 10: a counter that is compared with sign and checked without takes 5.
const MAX_DEPTH: usize = 10;

/// Claims about parameters of one block of which one may rest on the other. 2: that a counter does not wrap, and what follows.
const MAX_HYPOTHESES: usize = 2;

/// Edges into a block above which its parameters are not followed.
const MAX_EDGES: usize = 4;

/// `left - right` is at most `most`. Nothing stands for 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Claim {
    left: Option<Term>,
    right: Option<Term>,
    most: i128,
}

impl Fact {
    fn claim(&self) -> Claim {
        Claim { left: self.left, right: self.right, most: self.most }
    }
}

/// Nothing.
const ZERO: Number = Number { term: None, offset: 0 };

impl Claim {
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

/// A claim somewhere, and how much is assumed: with more of that it is another question.
type Question = (Spot, Claim, usize);

/// What a prover needs, kept for the next one.
#[derive(Default)]
pub(in crate::analysis) struct Scratch {
    hypotheses: Vec<(Block, Claim)>,
    open: FxHashMap<Question, usize>,
    used: Vec<Inst>,
}

/// Proves claims, as far as its budget goes.
pub(in crate::analysis) struct Prover<'c, 'a> {
    conditions: &'c mut Conditions<'a>,
    budget: usize,
    /// What is being proved of parameters, and so holds where their block has been passed before.
    hypotheses: Vec<(Block, Claim)>,
    /// Claims that could not be proved, or not yet, and how deep the proof could be.
    open: FxHashMap<Question, usize>,
    /// Whether the next claim is another reading of the one before.
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
        let Self { conditions, hypotheses, open, used, .. } = self;
        conditions.sources.extend_from_slice(&used);
        conditions.scratch = Scratch { hypotheses, open, used };
    }

    /// Whether the comparison always holds at `spot`.
    pub(in crate::analysis) fn holds(&mut self, spot: Spot, cond: IntCC, [left, right]: [Sides; 2]) -> bool {
        self.used.clear();
        self.start();
        let less = |signed, most| Claim::of(left.read(signed), right.read(signed), most);
        let greater = |signed, most| Claim::of(right.read(signed), left.read(signed), most);
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

    /// Starts anew, with the whole budget.
    fn start(&mut self) {
        self.budget = if self.conditions.thorough { BUDGET } else { SMALL_BUDGET };
        self.open.clear();
    }

    /// Whether the claim with `more` added holds. What holds in each iteration may be more than what is asked for: that a counter
    /// is at most its limit does not follow from the iteration before if it stops when it is equal, that it is less does.
    fn prove_order(&mut self, spot: Spot, claim: Claim, more: i128) -> bool {
        let asked = Claim { most: claim.most + more, ..claim };
        let strict = Claim { most: claim.most - 1, ..claim };
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
        let found = self.conditions.differing(spot).iter().find(|fact| match (left.term, right.term) {
            _ if (fact.left, fact.right) == (left.term, right.term) => fact.most == apart,
            _ if (fact.right, fact.left) == (left.term, right.term) => fact.most == -apart,
            (Some(term), None) => self.never_is(fact, term, apart),
            (None, Some(term)) => self.never_is(fact, term, -apart),
            _ => false,
        });
        let found = found.map(|fact| fact.source);
        self.used.extend(found);
        found.is_some()
    }

    /// Whether the claim holds at `spot`.
    fn prove(&mut self, spot: Spot, claim: Claim, depth: usize) -> bool {
        // Of a claim that is another reading of one there is no third, unless its sides are read in two ways.
        let is_mixed = claim.left.zip(claim.right).is_some_and(|(left, right)| left.signed != right.signed);
        let is_reading = std::mem::take(&mut self.is_reading) && !is_mixed;
        let (left, right) = (self.bounds(claim.left), self.bounds(claim.right));
        if left.1 - right.0 <= claim.most {
            return true;
        }
        let cannot_hold = left.0 - right.1 > claim.most;
        if cannot_hold || depth == 0 || self.budget == 0 || self.is_unknowable(spot, claim) {
            return false;
        }
        let question = (spot, claim, self.hypotheses.len());
        match self.open.entry(question) {
            Entry::Occupied(tried) if *tried.get() >= depth => return false,
            Entry::Occupied(mut tried) => drop(tried.insert(depth)),
            Entry::Vacant(tried) => drop(tried.insert(depth)),
        }
        self.budget -= 1;
        let used = self.used.len();
        let proved = self.by_distance(spot, claim, depth - 1)
            || self.by_facts(spot, claim, depth - 1)
            || self.by_difference(spot, claim, depth - 1)
            || (!is_reading && self.by_other_reading(spot, claim, depth - 1))
            || self.by_more(spot, claim, depth - 1);
        if proved {
            self.open.remove(&question);
        } else {
            self.used.truncate(used);
        }
        proved
    }

    /// Whether there is nothing that a proof of the claim, of which the ranges do not tell, could start from: most conditions are
    /// about something that has just been loaded.
    fn is_unknowable(&self, spot: Spot, claim: Claim) -> bool {
        let numbers = &self.conditions.numbers;
        let is_unknown = |term: &Term| numbers.is_opaque(term.root) && !self.conditions.may_speak_of(spot, term.root);
        let is_assumed = |term: &Term| {
            let sides = self.hypotheses.iter().flat_map(|(_, assumed)| [assumed.left, assumed.right]).flatten();
            sides.into_iter().any(|side| side.root == term.root)
        };
        let mut terms = [claim.left, claim.right].into_iter().flatten();
        match (claim.left, claim.right) {
            // A side that is never large leaves the other to be proved.
            (Some(left), Some(right)) => {
                let is_any = self.bounds(claim.left).1 == limits(numbers.bits(left.root), left.signed).1;
                left.root != right.root && is_any && terms.all(|term| is_unknown(&term) && !is_assumed(&term))
            }
            _ => terms.all(|term| is_unknown(&term) && !is_assumed(&term)),
        }
    }

    /// Whether a claim holds that is another reading of the one that is being proved.
    fn prove_reading(&mut self, spot: Spot, claim: Claim, depth: usize) -> bool {
        self.is_reading = true;
        self.prove(spot, claim, depth)
    }

    /// Whether the claim holds for more reasons than what is said in so many words.
    fn by_more(&mut self, spot: Spot, claim: Claim, depth: usize) -> bool {
        if !self.conditions.thorough {
            // A constant often comes through one parameter after the other.
            let is_simple = claim.left.is_none() || claim.right.is_none();
            return is_simple && (self.by_rounding(spot, claim, depth) || self.by_params(spot, claim, depth.min(2)));
        }
        self.by_definition(spot, claim, depth)
            || self.by_params(spot, claim, depth)
            || self.by_other_facts(spot, claim, depth)
    }

    fn bounds(&self, term: Option<Term>) -> Bounds {
        self.conditions.numbers.bounds(term)
    }

    /// Whether both sides are the same sum, apart from a constant.
    fn by_distance(&mut self, spot: Spot, claim: Claim, depth: usize) -> bool {
        if claim.left.is_none() {
            return false;
        }
        let Some(distance) = self.distance(claim.left, claim.right) else { return false };
        if distance.far <= claim.most {
            return true;
        }
        distance.near <= claim.most && self.is_near(spot, [claim.left, claim.right], depth)
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

    /// Whether nothing wraps on the way down from `lower` to `upper`, which is below it, both with the same root.
    fn is_near(&mut self, spot: Spot, [upper, lower]: [Option<Term>; 2], depth: usize) -> bool {
        let (Some(distance), Some(term)) = (self.distance(upper, lower), lower) else { return false };
        if distance.near == distance.far {
            return true;
        }
        let down = -distance.near;
        let (least, largest) = limits(self.conditions.numbers.bits(term.root), term.signed);
        let high_enough = Claim { left: None, right: lower, most: -(least + down) };
        let low_enough = Claim { left: upper, right: None, most: largest - down };
        self.prove(spot, low_enough, depth) || self.prove(spot, high_enough, depth)
    }

    /// Whether a fact and what else is known of its sides say so. What is assumed comes first, and what says it at once.
    fn by_facts(&mut self, spot: Spot, claim: Claim, depth: usize) -> bool {
        let found = self.facts_about(spot, claim);
        for direct in [true, false] {
            for &(fact, source, _) in found.iter().filter(|(.., says_all)| *says_all == direct) {
                let proved = match direct {
                    true => self.by_fact(spot, claim, fact, depth),
                    false => self.by_chain(spot, claim, fact, depth),
                };
                if proved {
                    self.used.extend(source);
                    return true;
                }
            }
        }
        false
    }

    /// What is assumed or known of the side of the claim from which proofs go on, each with the branch or check that it is known
    /// from, and whether it is about both sides.
    fn facts_about(&self, spot: Spot, claim: Claim) -> SmallVec<[(Claim, Option<Inst>, bool); 4]> {
        let is_about = |left: Option<Term>, right: Option<Term>| match claim.left {
            Some(_) => have_one_root(claim.left, left).then(|| have_one_root(claim.right, right)),
            None => have_one_root(claim.right, right).then_some(left.is_none()),
        };
        let mut found = SmallVec::new();
        for (header, assumed) in &self.hypotheses {
            if let Some(says_all) = is_about(assumed.left, assumed.right)
                && self.conditions.domtree.block_dominates(*header, self.conditions.block_of(spot))
            {
                found.push((*assumed, None, says_all));
            }
        }
        let subject = claim.left.or(claim.right);
        let may_speak = subject.is_none_or(|term| self.conditions.may_speak_of(spot, term.root));
        let facts = if may_speak { self.conditions.ordered(spot) } else { &[] };
        for fact in facts {
            if let Some(says_all) = is_about(fact.left, fact.right) {
                found.push((fact.claim(), Some(fact.source), says_all));
            }
        }
        found
    }

    /// Whether `fact` is about the same sums, with constants for which the claim follows.
    fn by_fact(&mut self, spot: Spot, claim: Claim, fact: Claim, depth: usize) -> bool {
        let above = self.distance(claim.left, fact.left);
        let below = self.distance(fact.right, claim.right);
        let (Some(above), Some(below)) = (above, below) else { return false };
        let left = claim.most - fact.most;
        if above.far + below.far <= left {
            return true;
        }
        if above.near + below.near > left {
            return false;
        }
        let pairs = [[claim.left, fact.left], [fact.right, claim.right]];
        let mut near = |side: usize| self.is_near(spot, pairs[side], depth);
        match (above.near + below.far <= left, above.far + below.near <= left) {
            (false, false) => near(0) && near(1),
            (first, second) => (first && near(0)) || (second && near(1)),
        }
    }

    /// Whether `fact` leads from one side of the claim to something else, of which the claim holds.
    fn by_chain(&mut self, spot: Spot, claim: Claim, fact: Claim, depth: usize) -> bool {
        let (above, below) = (self.distance(claim.left, fact.left), self.distance(fact.right, claim.right));
        let rest = |distance: i128| claim.most - fact.most - distance;
        let (pair, distance, next) = match (above, below) {
            // Nothing is below 0 that is not known by its range.
            (Some(above), None) if claim.left.is_some() => {
                let next = |by| Claim { left: fact.right, right: claim.right, most: rest(by) };
                ([claim.left, fact.left], above, [next(above.far), next(above.near)])
            }
            (None, Some(below)) if claim.left.is_none() => {
                let next = |by| Claim { left: claim.left, right: fact.left, most: rest(by) };
                ([fact.right, claim.right], below, [next(below.far), next(below.near)])
            }
            _ => return false,
        };
        if self.prove(spot, next[0], depth) {
            return true;
        }
        distance.near != distance.far && self.prove(spot, next[1], depth) && self.is_near(spot, pair, depth)
    }

    /// Whether a fact that is about integers with sign says so, of integers that are not negative.
    fn by_other_facts(&mut self, spot: Spot, claim: Claim, depth: usize) -> bool {
        let is_other = |own: Option<Term>, other: Option<Term>| {
            own.zip(other).is_some_and(|(own, other)| own.root == other.root && !own.signed && other.signed)
        };
        let Some(subject) = claim.left.or(claim.right) else { return false };
        if subject.signed || !self.conditions.may_speak_of(spot, subject.root) {
            return false;
        }
        let is_relevant = |fact: &Fact| match claim.left {
            Some(_) => is_other(claim.left, fact.left) && (fact.right.is_none() || fact.most <= 0),
            None => is_other(claim.right, fact.right) && fact.most <= 0,
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
            let reread = Claim::of(left, right, fact.most);
            self.used.push(fact.source);
            if self.by_fact(spot, claim, reread, depth) || self.by_chain(spot, claim, reread, depth) {
                return true;
            }
            self.used.truncate(used);
        }
        false
    }

    fn is_not_negative(&mut self, spot: Spot, term: Option<Term>, depth: usize) -> bool {
        term.is_none_or(|term| {
            !term.signed || self.prove(spot, Claim { left: None, right: Some(term), most: 0 }, depth)
        })
    }

    /// Whether the sides are not further apart than one more than claimed, and known not to be as far apart as that.
    fn by_difference(&mut self, spot: Spot, claim: Claim, depth: usize) -> bool {
        let excluded = claim.most + 1;
        for number in 0..self.conditions.differing(spot).len() {
            let fact = &self.conditions.differing(spot)[number];
            let is_excluded = match (claim.left, claim.right) {
                _ if (fact.left, fact.right) == (claim.left, claim.right) => fact.most == excluded,
                _ if (fact.right, fact.left) == (claim.left, claim.right) => fact.most == -excluded,
                (Some(term), None) => self.never_is(fact, term, excluded),
                (None, Some(term)) => self.never_is(fact, term, -excluded),
                _ => false,
            };
            let source = fact.source;
            if is_excluded && self.prove(spot, Claim { most: excluded, ..claim }, depth) {
                self.used.push(source);
                return true;
            }
        }
        false
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

    /// Whether the claim holds for what the definition of a side says of it.
    fn by_definition(&mut self, spot: Spot, claim: Claim, depth: usize) -> bool {
        if let Some(term) = claim.left
            && self.bounds(claim.left).1 < limits(self.conditions.numbers.bits(term.root), term.signed).1
            && claim.right.is_some()
        {
            let largest = self.bounds(claim.left).1;
            if self.prove(spot, Claim { left: None, most: claim.most - largest, ..claim }, depth) {
                return true;
            }
        }
        let is_plain = |term: &Term| term.constant == 0;
        let left = claim.left.filter(is_plain).and_then(|term| self.definition(term));
        if let Some((inst, signed)) = left
            && self.by_definition_of_left(spot, claim, (inst, signed), depth)
        {
            return true;
        }
        let right = claim.right.filter(is_plain).and_then(|term| self.definition(term));
        if let Some((inst, signed)) = right
            && self.by_definition_of_right(spot, claim, (inst, signed), depth)
        {
            return true;
        }
        self.by_rounding(spot, claim, depth)
            || claim.left.is_some_and(|term| !term.signed && self.by_subtraction(spot, claim, term, depth))
    }

    /// Whether the right side is a number rounded down to a multiple of a power of two, and the claim that it is at least a constant,
    /// which holds if that number is at least the next multiple.
    fn by_rounding(&mut self, spot: Spot, claim: Claim, depth: usize) -> bool {
        let func = self.conditions.func;
        let (None, Some(term)) = (claim.left, claim.right) else { return false };
        let value = self.conditions.numbers.value(term.root).filter(|_| term.constant == 0 && !term.signed);
        let Some(InstructionData::Binary { opcode: Opcode::Band, args }) =
            value.and_then(|value| func.dfg.value_def(value).inst()).map(|inst| func.dfg.insts[inst])
        else {
            return false;
        };
        let [a, b] = args.map(|arg| constant_of(func, arg));
        let (Some(mask), rounded) = (a.or(b), if a.is_some() { args[1] } else { args[0] }) else { return false };
        let unit = 1_i128 << mask.trailing_zeros();
        let is_rounding = i128::from(mask) == (1 << self.conditions.numbers.bits(term.root)) - unit;
        let least = (-claim.most).checked_add(unit - 1).map(|least| least / unit * unit);
        let Some(number) = self.conditions.numbers.of(rounded, false).filter(|_| is_rounding) else { return false };
        least.is_some_and(|least| self.prove(spot, Claim { most: -least, ..claim }.with_right(number), depth))
    }

    /// The instruction that computes a term, and whether what it says is to be read with sign.
    fn definition(&self, term: Term) -> Option<(Inst, bool)> {
        let value = self.conditions.numbers.value(term.root)?;
        let ValueDef::Result(inst, 0) = self.conditions.func.dfg.value_def(value) else { return None };
        let is_signed = match self.conditions.func.dfg.insts[inst].opcode() {
            Opcode::Smin | Opcode::Smax => true,
            Opcode::Select => term.signed,
            _ => false,
        };
        // What is never negative is the same in both readings, and then its term is the one without.
        let either = !term.signed && self.conditions.numbers.is_never_negative(term);
        (is_signed == term.signed || either).then_some((inst, is_signed))
    }

    fn by_definition_of_left(&mut self, spot: Spot, claim: Claim, (inst, signed): (Inst, bool), depth: usize) -> bool {
        let func = self.conditions.func;
        let args = func.dfg.inst_args(inst);
        let mut below = |value: Value, by: i128| {
            let Some(number) = self.conditions.numbers.of(value, signed) else { return false };
            self.prove(spot, claim.with_left(number, by), depth)
        };
        match func.dfg.insts[inst].opcode() {
            Opcode::Select => below(args[1], 0) && below(args[2], 0),
            Opcode::Umax | Opcode::Smax => below(args[0], 0) && below(args[1], 0),
            Opcode::Umin | Opcode::Smin | Opcode::Band => below(args[0], 0) || below(args[1], 0),
            Opcode::Urem => below(args[1], -1) || below(args[0], 0),
            Opcode::Udiv | Opcode::Ushr => below(args[0], 0),
            _ => false,
        }
    }

    fn by_definition_of_right(&mut self, spot: Spot, claim: Claim, (inst, signed): (Inst, bool), depth: usize) -> bool {
        let func = self.conditions.func;
        let args = func.dfg.inst_args(inst);
        let mut above = |value: Value| {
            let Some(number) = self.conditions.numbers.of(value, signed) else { return false };
            self.prove(spot, claim.with_right(number), depth)
        };
        match func.dfg.insts[inst].opcode() {
            Opcode::Select => above(args[1]) && above(args[2]),
            Opcode::Umin | Opcode::Smin => above(args[0]) && above(args[1]),
            Opcode::Umax | Opcode::Smax | Opcode::Bor => above(args[0]) || above(args[1]),
            _ => false,
        }
    }

    /// Whether the left side is `a - b - c`, read without sign, which is no more than `a` less the least `b` and `c` if it does
    /// not wrap.
    fn by_subtraction(&mut self, spot: Spot, claim: Claim, term: Term, depth: usize) -> bool {
        let numbers = &mut self.conditions.numbers;
        let Some((a, b)) = numbers.difference(term.root) else { return false };
        let all = 1_i128 << numbers.bits(term.root);
        let down = match term.constant {
            0 => 0,
            constant => all - i128::from(constant),
        };
        let (Some(a), Some(b)) = (numbers.of(a, false), numbers.of(b, false)) else { return false };
        if down >= all / 2 {
            return false;
        }
        let least = self.bounds(b.term).0 + b.offset;
        self.prove(spot, claim.with_left(a, -least - down), depth) && self.prove(spot, Claim::of(b, a, -down), depth)
    }

    /// Whether the claim holds when its terms are read the other way, in which none of them is negative.
    fn by_other_reading(&mut self, spot: Spot, claim: Claim, depth: usize) -> bool {
        let terms = || [claim.left, claim.right].into_iter().flatten();
        if !self.conditions.thorough && !self.is_read_otherwise(spot, claim) {
            return false;
        }
        if terms().all(|term| !term.signed) {
            return self.by_signed_reading(spot, claim, depth);
        }
        let is_readable = |term: Term| term.signed || self.conditions.numbers.is_never_negative(term);
        terms().all(is_readable) && self.by_unsigned_reading(spot, claim, depth)
    }

    /// Whether there is a fact about a side of the claim in the other reading.
    fn is_read_otherwise(&self, spot: Spot, claim: Claim) -> bool {
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
        is_about(claim.left) || is_about(claim.right)
    }

    /// For terms that are read without sign.
    fn by_signed_reading(&mut self, spot: Spot, claim: Claim, depth: usize) -> bool {
        let (left, right) = (self.reread(claim.left, true), self.reread(claim.right, true));
        // With a left side that is not negative, and at most the right side in the signed reading, neither is that.
        let most = if claim.left.is_some() && claim.right.is_none() { claim.most } else { claim.most.min(0) };
        let not_negative = Claim::of(ZERO, left, 0);
        (claim.left.is_none() || fault!(AnyReading) || self.prove(spot, not_negative, depth))
            && self.prove_reading(spot, Claim::of(left, right, most), depth)
    }

    /// For terms that are read with sign, or are never negative.
    fn by_unsigned_reading(&mut self, spot: Spot, claim: Claim, depth: usize) -> bool {
        let (left, right) = (self.reread(claim.left, false), self.reread(claim.right, false));
        let terms = [claim.left, claim.right].into_iter().flatten();
        let widths = terms.map(|term| self.conditions.numbers.bits(term.root));
        let largest = limits(widths.min().unwrap_or(1), true).1;
        let right_is_positive = |prover: &mut Self| prover.prove_reading(spot, Claim::of(right, ZERO, largest), depth);
        match (claim.left, claim.right) {
            (Some(_), Some(_)) => {
                right_is_positive(self) && self.prove_reading(spot, Claim::of(left, right, claim.most.min(0)), depth)
            }
            (Some(_), None) => {
                claim.most >= 0 && self.prove_reading(spot, Claim::of(left, ZERO, claim.most.min(largest)), depth)
            }
            (None, _) => {
                right_is_positive(self)
                    && (claim.most >= 0 || self.prove_reading(spot, Claim::of(ZERO, right, claim.most), depth))
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

    /// Whether the claim holds for what all edges into a block pass, if a side is one of its parameters.
    fn by_params(&mut self, spot: Spot, claim: Claim, depth: usize) -> bool {
        let Some(block) = self.block_of_params(spot, claim) else { return false };
        if self.hypotheses.iter().filter(|(other, _)| *other == block).count() >= MAX_HYPOTHESES {
            return false;
        }
        let Conditions { func, cfg, domtree, .. } = *self.conditions;
        let mut edges: SmallVec<[Edge; MAX_EDGES + 1]> = edges_into(func, cfg, block).take(MAX_EDGES + 1).collect();
        if edges.is_empty() || edges.len() > MAX_EDGES {
            return false;
        }
        // What holds in each iteration holds in the first, which is soon said.
        edges.sort_by_key(|edge| domtree.block_dominates(block, edge.source(func)));
        self.hypotheses.push((block, claim));
        let considered = if fault!(FirstIterationOnly) { &edges[..1] } else { &edges };
        let proved = considered.iter().all(|&edge| {
            let next = self.along(edge, block, claim);
            next.is_some_and(|next| self.is_in_range(next) || self.prove_on(edge, next, depth))
        });
        self.hypotheses.pop();
        proved
    }

    /// Whether the claim holds on `edge`.
    fn prove_on(&mut self, edge: Edge, claim: Claim, depth: usize) -> bool {
        let spot = self.conditions.spot(Place::On(edge));
        self.prove(spot, claim, depth)
    }

    /// Whether what both sides can be says so.
    fn is_in_range(&self, claim: Claim) -> bool {
        self.bounds(claim.left).1 - self.bounds(claim.right).0 <= claim.most
    }

    /// The block that has parameters in the claim and above which all its other values are defined.
    fn block_of_params(&mut self, spot: Spot, claim: Claim) -> Option<Block> {
        let domtree = self.conditions.domtree;
        let mut home = Home::Nowhere;
        for term in [claim.left, claim.right].into_iter().flatten() {
            home = home.lower(self.conditions.home(term.root), domtree);
        }
        let Home::At { block, params: true } = home else { return None };
        domtree.block_dominates(block, self.conditions.block_of(spot)).then_some(block)
    }

    /// The claim for what `edge` passes to `block`.
    fn along(&mut self, edge: Edge, block: Block, claim: Claim) -> Option<Claim> {
        let func = self.conditions.func;
        let arg = |index: usize| edge.args(func).nth(index)?.as_value();
        let numbers = &mut self.conditions.numbers;
        let mut pass = |term: Option<Term>| {
            let Some(term) = term else { return Some(ZERO) };
            match numbers.value(term.root).map(|value| func.dfg.value_def(value)) {
                Some(ValueDef::Param(home, index)) if home == block => {
                    return numbers.of_value_and(arg(index)?, term.constant, term.signed);
                }
                Some(_) => return Some(Number { term: Some(term), offset: 0 }),
                None => {}
            }
            let sum = numbers.sum_of_term(term);
            let passed = sum.substituted(&mut |value| match func.dfg.value_def(value) {
                ValueDef::Param(home, index) if home == block => numbers.sum_of(arg(index)?),
                _ => Some(Sum::of_leaf(func, value)),
            })?;
            Some(numbers.of_sum(passed)[usize::from(term.signed)])
        };
        Some(Claim::of(pass(claim.left)?, pass(claim.right)?, claim.most))
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
