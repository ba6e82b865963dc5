//! What the counters of a loop can be, and whether they wrap.

use super::{Counter, Extents, in_both, is_within};
use crate::analysis::cfg::loops::Loop;
use crate::analysis::facts::known::Place;
use crate::analysis::scev::comparison::Comparison;
use crate::analysis::scev::const_eval;
use crate::analysis::scev::exit_count;
use crate::analysis::scev::exit_test::ExitTest;
use crate::analysis::scev::linear_expr::{Sum, Term, offset};
use crate::analysis::scev::recurrence::{Induction, Recurrences};
use crate::analysis::scev::value_range::{Bounds, common, limits};
use crate::analysis::scev::view::View;
use crate::analysis::scev::wrap_arc::{interval, is_signed};
use crate::fault::fault;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Type, Value, ValueDef};

impl Extents<'_> {
    /// Finds the counters of the loop that `value` is a header parameter of, and of the enclosing loops. None if it is not.
    pub(super) fn look_at(&mut self, value: Value) -> Option<()> {
        let View { ctx, forest } = self.view;
        let ValueDef::Param(block, _) = ctx.func.dfg.value_def(value) else { return None };
        let mut next = forest.loop_of_header(block);
        next?;
        let mut nest = Vec::new();
        while let Some(lp) = next.filter(|lp| self.looked_at.insert(*lp)) {
            nest.push(lp);
            next = forest.data(lp).parent;
        }
        // A counter often starts at that of the outer loop.
        nest.into_iter().rev().for_each(|lp| self.find_counters(lp));
        Some(())
    }

    pub(super) fn find_counters(&mut self, lp: Loop) {
        let tests: Vec<ExitTest> = ExitTest::all(self.view, lp).collect();
        let recurrences = Recurrences::with_constant_steps(self.view, lp);
        let around = exit_count::bound_by(self.view, lp, &tests, &recurrences).most();
        for Induction { param, start, recurrence } in recurrences.inductions() {
            let ty = self.view.func().dfg.value_type(*param);
            let Some(step) = recurrence.step.as_constant().filter(|_| ty.bits() <= 32) else { continue };
            let step = const_eval::signed(step, ty) as i64;
            let (param, start) = (*param, *start);
            let mut counter = Counter { lp, param, start, step, bounds: [None; 2], stays: [None; 2] };
            let starts = self.start_bounds(&counter, ty);
            counter.bounds = in_both(
                [false, true]
                    .map(|signed| self.bounds_from(&counter, starts[usize::from(signed)], (&tests, around), signed)),
                ty,
            );
            self.counters.insert(param, counter);
        }
        self.find_carried(lp, &tests);
    }

    /// What a counter starts from, read without sign and with it. One question, if that is whether it may be negative.
    fn start_bounds(&mut self, counter: &Counter, ty: Type) -> [Bounds; 2] {
        let bounds = [false, true].map(|signed| self.passed_bounds(counter.start, signed));
        let [entry] = self.view.forest.data(counter.lp).entries[..] else { return bounds };
        let Some(start) = self.view.sum(counter.start).filter(|_| bounds[1].0 < 0) else { return bounds };
        let (place, zero) = (Place::Before(entry.branch), Sum::constant(0, ty.bits()));
        let is_never_negative =
            self.is_told(place, &start) && self.ask(place, IntCC::SignedGreaterThanOrEqual, [&start, &zero]);
        let never_negative = (0, limits(ty.bits(), true).1);
        bounds.map(|bounds| if is_never_negative { common(bounds, never_negative) } else { bounds })
    }

    /// What a counter of a loop with these tests can be, if the back edge is taken at most so often, and if it is sure not to wrap in this reading.
    pub(super) fn bounds_from(
        &mut self,
        counter: &Counter,
        start: Bounds,
        (tests, around): (&[ExitTest], Option<u128>),
        signed: bool,
    ) -> Option<Bounds> {
        let counted = self.counted(counter, start, around, signed);
        // For `!=` it has to be proved that the counter reaches its bound, which takes a question; the count mostly gives the same bounds.
        let tests = tests.iter().filter(|test| counted.is_none() || test.comparison.cond != IntCC::NotEqual);
        tests.fold(counted, |known, test| {
            let tested = self.tested(counter, start, test.comparison, signed);
            [known, tested].into_iter().flatten().reduce(common)
        })
    }

    /// What a counter can be if the back edge is taken at most so often, if it is sure not to wrap in this reading.
    fn counted(&self, counter: &Counter, start: Bounds, around: Option<u128>, signed: bool) -> Option<Bounds> {
        let moved = i128::from(counter.step).checked_mul(i128::try_from(around?).ok()?)?;
        let bounds = (start.0.checked_add(moved.min(0))?, start.1.checked_add(moved.max(0))?);
        is_within(bounds, self.limits(counter, signed)).then_some(bounds)
    }

    /// The same by a comparison that holds in each iteration but the last. If the counter, or the next one, or one in between, has to be
    /// less than something for the loop to go on, the next one is no more than a step above that, and if that leaves room for another
    /// step, nothing has wrapped. A counter that steps by one until it is equal to something that is not less than its start does not
    /// pass it. That there is room for a step at the start is also what keeps the sum from wrapping that is compared there.
    fn tested(&mut self, counter: &Counter, start: Bounds, comparison: Comparison, signed: bool) -> Option<Bounds> {
        let func = self.view.func();
        let ty = func.dfg.value_type(counter.param);
        let mut sides = comparison.sides().map(|side| (side, offset(func, Some(&self.view.ctx.cfg), side.left)));
        let (Comparison { cond, right: bound, .. }, (_, added)) =
            sides.find(|(_, (base, _))| *base == counter.param)?;
        let (step, added) = (i128::from(counter.step), const_eval::signed(added, ty));
        let is_between = if step > 0 { (0..=step).contains(&added) } else { (step..=0).contains(&added) };
        let limit = bound.map_or((0, 0), |bound| self.passed_bounds(bound, signed));
        let strict = match cond {
            IntCC::NotEqual if step.abs() == 1 && bound.is_none_or(|it| self.view.is_from_outside(counter.lp, it)) => {
                let is_before = if step > 0 { start.1 + added <= limit.0 } else { start.0 + added >= limit.1 };
                let starts_before = is_before || self.starts_before(counter, (added, bound), signed);
                starts_before.then_some(1)?
            }
            _ if is_signed(cond) != signed => return None,
            _ => match interval(cond) {
                (None, Some(end)) if step > 0 => i128::from(-end),
                (Some(end), None) if step < 0 => end.into(),
                _ => return None,
            },
        };
        // The last number is the bound and so much more, or the start.
        let beyond = if step > 0 { step - strict - added } else { step + strict - added };
        let limit = match bound.filter(|bound| is_between && self.view.is_from_outside(counter.lp, *bound)) {
            Some(bound) => self.with_room(counter, (bound, limit), beyond + step, signed),
            None => limit,
        };
        let start = self.with_room(counter, (counter.start, start), step, signed);
        let bounds = match step > 0 {
            true => (start.0, start.1.max(limit.1 + beyond)),
            false => (start.0.min(limit.0 + beyond), start.1),
        };
        let with_step = (bounds.0 + step.min(0), bounds.1 + step.max(0));
        (is_between && is_within(with_step, self.limits(counter, signed))).then_some(bounds)
    }

    /// What `value` is, which is within `known`, where the loop is entered: if comparisons say that `beyond` can be added to it, no more than that, or no less. One
    /// question.
    fn with_room(&mut self, counter: &Counter, (value, known): (Value, Bounds), beyond: i128, signed: bool) -> Bounds {
        let [entry] = self.view.forest.data(counter.lp).entries[..] else { return known };
        let (limits, is_most) = (self.limits(counter, signed), counter.step > 0);
        let room = if is_most { (known.0, limits.1 - beyond) } else { (limits.0 - beyond, known.1) };
        let end = if is_most { room.1 } else { room.0 };
        if is_within(known, room) || room.0 > room.1 {
            return known;
        }
        let (place, Some(sum)) = (Place::Before(entry.branch), self.view.sum(value)) else { return known };
        let end = Sum::constant(end as u64, sum.bits());
        let has_room = self.is_told(place, &sum)
            && (fault!(RoomUnasked) || self.is_not_beyond(place, counter, [&sum, &end], signed));
        if has_room { common(known, room) } else { known }
    }

    /// Whether anything at all has been compared, before `place`, with the only value that `sum` has.
    fn is_told(&mut self, place: Place, sum: &Sum) -> bool {
        matches!(sum.terms(), [(Term::Value(only), _)] if self.conditions.knows(place, *only))
    }

    /// All numbers that a counter could be, read so.
    pub(super) fn limits(&self, counter: &Counter, signed: bool) -> Bounds {
        limits(self.view.func().dfg.value_type(counter.param).bits(), signed)
    }

    /// Whether comparisons say that a counter and so much more is not beyond `bound` where the loop is entered.
    fn starts_before(&mut self, counter: &Counter, (added, bound): (i128, Option<Value>), signed: bool) -> bool {
        let [entry] = self.view.forest.data(counter.lp).entries[..] else { return false };
        let Some(start) = self.view.sum(counter.start).map(|start| start.offset(added as i64)) else { return false };
        let zero = Sum::constant(0, start.bits());
        let Some(bound) = bound.map_or(Some(zero), |bound| self.view.sum(bound)) else { return false };
        self.is_not_beyond(Place::Before(entry.branch), counter, [&start, &bound], signed)
    }

    /// Whether comparisons say that a counter does not wrap on the back edge.
    pub(super) fn stays(&mut self, counter: &Counter, signed: bool) -> bool {
        let [back_edge] = self.view.forest.data(counter.lp).back_edges[..] else { return false };
        let (least, largest) = self.limits(counter, signed);
        let step = i128::from(counter.step);
        let bound = if step > 0 { largest - step } else { least - step };
        let sum = Sum::of_leaf(self.view.func(), counter.param);
        let bound = Sum::constant(bound as u64, sum.bits());
        // A guard says it of the first iteration, and the test of the others.
        self.conditions.set_thorough(true);
        let stays = self.is_not_beyond(Place::On(back_edge), counter, [&sum, &bound], signed);
        self.conditions.set_thorough(false);
        stays
    }
}
