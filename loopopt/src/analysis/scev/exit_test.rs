//! The tests of a loop: the comparisons that decide whether it is left.

use crate::analysis::cfg::edges::Edge;
use crate::analysis::cfg::loops::Loop;
use crate::analysis::inst::number::mask;
use crate::analysis::scev::comparison::Comparison;
use crate::analysis::scev::linear_expr::{Sum, Term};
use crate::analysis::scev::recurrence::{Recurrence, Recurrences, Step};
use crate::analysis::scev::requirement::Requirement;
use crate::analysis::scev::view::View;
use crate::analysis::scev::wrap_arc::is_signed;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Function, InstructionData, Value};

/// The test of an exiting block that ends in a `brif`.
#[derive(Clone, Copy, Debug)]
pub struct ExitTest {
    /// The edge that leaves the loop.
    pub exit: Edge,
    /// The other edge, on which the comparison holds.
    pub stay: Edge,
    /// The loop goes on if it holds.
    pub comparison: Comparison,
}

impl ExitTest {
    /// The test that `exit` leaves by.
    pub fn of(func: &Function, exit: Edge) -> Option<Self> {
        let InstructionData::Brif { arg, .. } = func.dfg.insts[exit.branch] else { return None };
        let stay = Edge { slot: 1 - exit.slot, ..exit };
        Some(Self { exit, stay, comparison: Comparison::of(func, arg, stay.slot == 0) })
    }

    /// The tests that each iteration makes, in the order of the exits.
    pub fn all(view: View<'_>, lp: Loop) -> impl Iterator<Item = Self> {
        let func = view.func();
        let latch = view.forest.latch(func, lp);
        let exits = view.forest.data(lp).exits.iter();
        let always = exits
            .filter(move |exit| latch.is_some_and(|latch| view.ctx.domtree.block_dominates(exit.source(func), latch)));
        always.filter_map(move |&exit| Self::of(func, exit))
    }

    /// The test as one of an add-recurrence and something loop-invariant.
    pub fn counted(self, view: View<'_>, lp: Loop, recurrences: &Recurrences) -> Option<CountedTest> {
        let mut sides = self.comparison.sides().filter_map(|comparison| {
            let tested = view.sum(comparison.left)?;
            Some((comparison, tested, comparison.bound(view)?))
        });
        let (comparison, tested, bound) = sides.find(|(.., bound)| view.is_invariant(lp, bound))?;
        let (cond, tested, bound, requires) = match narrowed(comparison.cond, &tested, &bound) {
            Some((cond, tested, bound, requires)) => (cond, tested, bound, Some(requires)),
            None => (comparison.cond, tested, bound, None),
        };
        let Recurrence { start: first, step } = recurrences.of_sum(view, &tested)?;
        let counter = match step {
            Step::Constant(_) => None,
            Step::Invariant(_) => view.changing(lp, &tested),
        };
        let step = step.reduced(tested.bits())?;
        let up = !is_negative(&step);
        Some(CountedTest { exit: self, tested: comparison, cond, first, bound, step, up, counter, requires })
    }
}

/// A test that each iteration makes, of an add-recurrence and something loop-invariant.
#[derive(Clone, Debug)]
pub struct CountedTest {
    /// Where it is.
    pub exit: ExitTest,
    /// What is compared, the recurrence on the left.
    pub tested: Comparison,
    /// The loop goes on if the recurrence compares so with the bound.
    pub cond: IntCC,
    /// What the recurrence is in the first iteration.
    pub first: Sum,
    /// What it is compared with.
    pub bound: Sum,
    /// What is added to it in each iteration.
    pub step: Sum,
    /// Whether that is taken for a step upwards.
    pub up: bool,
    /// The induction variable that it follows, if the step is no constant.
    pub counter: Option<Value>,
    /// What has to hold for the comparison, of extended numbers, to be this one, of the numbers themselves.
    pub requires: Option<Requirement>,
}

impl CountedTest {
    /// How many steps lead to the bound on average, if that is a constant and the first number is not: from a number that is anywhere between zero and there. An
    /// estimate: what counts up to a constant seldom starts below zero, unless it starts where something is subtracted.
    pub fn usual_steps(&self) -> Option<u64> {
        let is_negative = |number: u64| sign(number, self.bound.bits());
        let counts_up = self.up && self.goes_towards_end();
        let bound = self.bound.as_constant().filter(|&bound| counts_up && !is_negative(bound))?;
        let starts = self.first.terms();
        let is_estimated = !starts.is_empty() && starts.iter().all(|&(_, factor)| !is_negative(factor));
        let steps = bound.checked_div(self.step.as_constant().filter(|_| is_estimated)?)?;
        Some(steps.div_ceil(2))
    }

    /// What is subtracted as long as no less is left, from a number that is not known, if it is more than one: then the loop takes a remainder, or the whole bytes of some bits, and
    /// makes few steps.
    pub fn remainder_by(&self) -> Option<u64> {
        let bits = self.step.bits();
        let by = self.step.as_constant()?.wrapping_neg() & mask(bits);
        let counts_down = !self.up && self.goes_towards_end() && !self.first.terms().is_empty();
        let bound = self.bound.as_constant().filter(|_| counts_down && by > 1)?;
        (bound / 2 <= by).then_some(by)
    }

    /// Whether each step comes closer to where the loop ends.
    pub fn goes_towards_end(&self) -> bool {
        use IntCC::{
            NotEqual, SignedGreaterThan, SignedGreaterThanOrEqual, SignedLessThan, SignedLessThanOrEqual,
            UnsignedGreaterThan, UnsignedGreaterThanOrEqual, UnsignedLessThan, UnsignedLessThanOrEqual,
        };
        match self.cond {
            NotEqual => true,
            SignedLessThan | SignedLessThanOrEqual | UnsignedLessThan | UnsignedLessThanOrEqual => self.up,
            SignedGreaterThan | SignedGreaterThanOrEqual | UnsignedGreaterThan | UnsignedGreaterThanOrEqual => !self.up,
            _ => false,
        }
    }

    /// By how much a step leads up, or down.
    pub fn distance(&self) -> Sum {
        if self.up { self.step.clone() } else { self.step.times(u64::MAX) }
    }
}

/// The comparison of an extended number as one of the number itself, and what `bound` has to be for that.
fn narrowed(cond: IntCC, tested: &Sum, bound: &Sum) -> Option<(IntCC, Sum, Sum, Requirement)> {
    let [(Term::Extended { signed, sum }, 1)] = tested.terms() else { return None };
    if tested.constant_part() != 0 {
        return None;
    }
    let (wide, narrow) = (tested.bits(), sum.bits());
    let largest = Sum::constant((1 << narrow) - 1, wide);
    let shifted = match (signed, is_signed(cond) || matches!(cond, IntCC::Equal | IntCC::NotEqual)) {
        (false, _) => bound.clone(),
        (true, true) => bound.clone().offset(1 << (narrow - 1)),
        (true, false) => return None,
    };
    let cond = if *signed { cond } else { cond.unsigned() };
    Some((cond, (**sum).clone(), bound.reduced(narrow)?, Requirement::at_most(shifted, largest)))
}

/// Whether a step is to be taken for one downwards: a negative constant, or negative factors only.
pub(in crate::analysis) fn is_negative(step: &Sum) -> bool {
    match step.as_constant() {
        Some(number) => sign(number, step.bits()),
        None => step.constant_part() == 0 && step.terms().iter().all(|&(_, factor)| sign(factor, step.bits())),
    }
}

/// The sign of a number of so many bits.
fn sign(number: u64, bits: u32) -> bool {
    number >> (bits - 1) == 1
}
