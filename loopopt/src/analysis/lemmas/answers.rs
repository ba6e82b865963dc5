//! What the engines say of one loop, as answers that have to hold in each run of it.

use super::dice::Dice;
use super::meaning::{compare, integer, low, number};
use crate::analysis::cfg::edges::edges_from;
use crate::analysis::cfg::loops::{Loop, def_block, defined_in};
use crate::analysis::facts::known::{Conditions, Place};
use crate::analysis::facts::nowrap::Extents;
use crate::analysis::scev::linear_expr::Sum;
use crate::analysis::scev::recurrence::Recurrences;
use crate::analysis::scev::value_range::Bounds;
use crate::analysis::scev::view::View;
use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Block, Function, Inst, Value};

/// Questions about comparisons that are asked of one loop.
const COMPARISONS: usize = 40;

/// Questions that an engine may ask of what was compared.
const QUESTIONS: usize = 100;

/// What an engine says of a place in a loop, each time that it is reached.
#[derive(Debug)]
pub(super) enum Answer {
    /// The comparison holds.
    Compares(IntCC, [Sum; 2]),
    /// A value, read with or without sign, is within these bounds.
    Lies { value: Value, signed: bool, bounds: Bounds },
    /// A value is this sum.
    Is { value: Value, sum: Sum },
    /// A value, extended to 64 bits, is a sum of extended values: each with its bits, how it is read, and a factor.
    Extends { value: Value, signed: bool, terms: Vec<(Value, u32, bool, i64)>, constant: i64 },
    /// A value, read so, does not wrap where a step is added to it.
    Steps { value: Value, next: Value, signed: bool, by: i64 },
    /// A value grows by so much in each iteration, and is this in the first, in terms of what is before the loop.
    Grows { value: Value, by: u64, first: Option<Sum> },
}

impl Answer {
    /// Who gives it.
    pub(super) fn engine(&self) -> &'static str {
        match self {
            Self::Compares(..) => "prover: a comparison holds where it is said to",
            Self::Lies { .. } => "value_range: a value lies in its range",
            Self::Is { .. } => "linear_expr: a value is the sum that it is taken for",
            Self::Extends { .. } => "nowrap: an extended sum is the sum of what is extended",
            Self::Steps { .. } => "nowrap: a counter does not wrap",
            Self::Grows { .. } => "recurrence: a value grows by its step",
        }
    }
}

/// An answer, and where it is made.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) inst: Inst,
    /// The edge of the branch that this is about, or all.
    pub(super) slot: Option<usize>,
    /// The bits of what it is about.
    bits: u32,
    pub(super) answer: Answer,
}

/// What a run remembers for the answers about several iterations.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) iteration: u64,
    /// For each answer the iteration that a value was seen in last, and the value.
    seen: Vec<Option<(u64, u64)>>,
    /// What is before the loop.
    entry: Vec<u64>,
}

impl Memory {
    /// Forgets what it knows at the start of a loop.
    pub(super) fn start(&mut self, answers: usize, entry: &[u64]) {
        self.iteration = 0;
        self.seen.clear();
        self.seen.resize(answers, None);
        self.entry.clear();
        self.entry.extend_from_slice(entry);
    }
}

impl Placed {
    /// Whether the answer, which is the one of this number, is true now.
    pub(super) fn is_true(&self, index: usize, values: &[u64], memory: &mut Memory) -> bool {
        let bits = self.bits;
        let read = |value: Value, signed: bool| integer(values[value.index()], bits, signed);
        match &self.answer {
            Answer::Compares(cond, [left, right]) => {
                compare(*cond, [number(left, values), number(right, values)], bits)
            }
            Answer::Lies { value, signed, bounds } => (bounds.0..=bounds.1).contains(&read(*value, *signed)),
            Answer::Is { value, sum } => number(sum, values) == values[value.index()],
            Answer::Extends { value, signed, terms, constant } => {
                let add = |total: i64, &(leaf, bits, signed, factor): &(Value, u32, bool, i64)| {
                    total.wrapping_add((integer(values[leaf.index()], bits, signed) as i64).wrapping_mul(factor))
                };
                i128::from(terms.iter().fold(*constant, add)) == read(*value, *signed)
            }
            Answer::Steps { value, next, signed, by } => {
                read(*value, *signed) + i128::from(*by) == read(*next, *signed)
            }
            Answer::Grows { value, by, first } => {
                let now = values[value.index()];
                let is_first = |sum: &Sum| number(sum, &memory.entry) == now;
                let starts = memory.iteration > 0 || first.as_ref().is_none_or(is_first);
                let before = memory.seen[index].replace((memory.iteration, now));
                let grows = |(iteration, before): (u64, u64)| {
                    low(before.wrapping_add(by.wrapping_mul(memory.iteration - iteration)), bits) == now
                };
                starts && before.is_none_or(grows)
            }
        }
    }
}

/// All that is asked about one loop.
pub(super) fn answers(view: View<'_>, lp: Loop, dice: &mut Dice) -> Vec<Placed> {
    let mut answers = Vec::new();
    of_values(view, lp, &mut answers);
    of_sums(view, lp, &mut answers);
    of_counters(view, lp, &mut answers);
    of_recurrences(view, lp, &mut answers);
    of_comparisons(view, lp, dice, &mut answers);
    answers
}

fn end(func: &Function, block: Block) -> Inst {
    func.layout.last_inst(block).expect("a block ends in a branch or a return")
}

fn bits_of(func: &Function, value: Value) -> u32 {
    func.dfg.value_type(value).bits()
}

/// Ranges, and sums.
fn of_values(view: View<'_>, lp: Loop, answers: &mut Vec<Placed>) {
    let func = view.func();
    let mut conditions = Conditions::new(func, &view.ctx.cfg, &view.ctx.domtree);
    for &block in view.forest.blocks(lp) {
        for value in defined_in(func, block) {
            let (inst, bits) = (end(func, block), bits_of(func, value));
            let mut answer = |answer| answers.push(Placed { inst, slot: None, bits, answer });
            for signed in [false, true] {
                let number = conditions.numbers.of(value, signed).expect("of at most 64 bits");
                let bounds = conditions.numbers.bounds_of(number);
                if bounds != crate::analysis::scev::value_range::limits(bits, signed) {
                    answer(Answer::Lies { value, signed, bounds });
                }
            }
            for sum in [Some(Sum::of(func, value)), view.sum(value)].into_iter().flatten() {
                if sum != Sum::of_leaf(func, value) {
                    answer(Answer::Is { value, sum });
                }
            }
        }
    }
}

/// What is the same in more bits.
fn of_sums(view: View<'_>, lp: Loop, answers: &mut Vec<Placed>) {
    let func = view.func();
    let mut extents = Extents::new(view);
    extents.allow(QUESTIONS);
    for &block in view.forest.blocks(lp) {
        let (inst, place) = (end(func, block), Place::end(func, block));
        for value in defined_in(func, block) {
            let sum = Sum::of(func, value);
            if sum == Sum::of_leaf(func, value) {
                continue;
            }
            for signed in [false, true] {
                let Ok(exact) = extents.exact(&sum, signed, place) else { continue };
                let term = |(leaf, factor): &(crate::analysis::facts::nowrap::Leaf, i64)| {
                    (leaf.value, bits_of(func, leaf.value), leaf.signed, *factor)
                };
                let terms = exact.terms.iter().map(term).collect();
                let answer = Answer::Extends { value, signed, terms, constant: exact.constant };
                answers.push(Placed { inst, slot: None, bits: sum.bits(), answer });
            }
        }
    }
}

/// Counters that do not wrap.
fn of_counters(view: View<'_>, lp: Loop, answers: &mut Vec<Placed>) {
    let func = view.func();
    let mut extents = Extents::new(view);
    extents.allow(QUESTIONS);
    let data = view.forest.data(lp);
    let [back_edge] = data.back_edges[..] else { return };
    let passed = back_edge.args(func).map(|arg| arg.as_value().expect("a value"));
    for (&value, next) in func.dfg.block_params(data.header).iter().zip(passed) {
        for signed in [false, true] {
            let Some(counter) = extents.counter(value, signed) else { continue };
            let by = counter.step;
            let answer = Answer::Steps { value, next, signed, by };
            let (inst, slot) = (back_edge.branch, Some(back_edge.slot));
            answers.push(Placed { inst, slot, bits: bits_of(func, value), answer });
        }
    }
}

fn of_recurrences(view: View<'_>, lp: Loop, answers: &mut Vec<Placed>) {
    let func = view.func();
    let recurrences = Recurrences::of(view, lp);
    let steps = recurrences.steps(view);
    for &block in view.forest.blocks(lp) {
        for value in defined_in(func, block) {
            let Some(by) = steps.get(value) else { continue };
            let answer = Answer::Grows { value, by, first: recurrences.of_value(view, value).map(|found| found.start) };
            answers.push(Placed { inst: end(func, block), slot: None, bits: bits_of(func, value), answer });
        }
    }
}

/// Comparisons between what is computed in the loop and before it.
fn of_comparisons(view: View<'_>, lp: Loop, dice: &mut Dice, answers: &mut Vec<Placed>) {
    let func = view.func();
    let mut conditions = Conditions::new(func, &view.ctx.cfg, &view.ctx.domtree);
    let values: Vec<Value> = func.layout.blocks().flat_map(|block| defined_in(func, block)).collect();
    let places: Vec<(Block, Option<usize>)> = view
        .forest
        .blocks(lp)
        .iter()
        .flat_map(|&block| edges_from(func, block).map(move |edge| (block, Some(edge.slot))).chain([(block, None)]))
        .collect();
    for number in 0..COMPARISONS {
        conditions.set_thorough(number % 4 != 0);
        let (block, slot) = dice.pick(&places);
        let dominates =
            |value: &Value| def_block(func, *value).is_some_and(|home| view.ctx.domtree.block_dominates(home, block));
        let known: Vec<Value> = values.iter().copied().filter(dominates).collect();
        let left = dice.pick(&known);
        let same: Vec<Value> = known.into_iter().filter(|&value| bits_of(func, value) == bits_of(func, left)).collect();
        let right = dice.pick(&same);
        let inst = end(func, block);
        let place = match slot {
            Some(slot) => Place::On(edges_from(func, block).find(|edge| edge.slot == slot).expect("of this block")),
            None => Place::Before(inst),
        };
        let sides = [left, right].map(|value| Sum::of(func, value));
        let cond = dice.pick(IntCC::all());
        let Some(truth) = conditions.implies(place, cond, [&sides[0], &sides[1]]) else { continue };
        let cond = if truth { cond } else { cond.complement() };
        answers.push(Placed { inst, slot, bits: bits_of(func, left), answer: Answer::Compares(cond, sides) });
    }
}
