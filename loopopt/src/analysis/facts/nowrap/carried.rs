//! Numbers that a counter of an inner loop starts from, and comes back to: those of loops that are [strip-mined](crate::pass::strip_mine).
//!
//! ```text
//! block1(v1: i32):                    as v2 and v3, but no more than v0 - 1 on the back edge
//!     jump block2(v1)
//! block2(v2: i32):                    starts at v1, and goes up by 4
//!     v3 = iadd v2, 4
//!     v4 = icmp slt v3, v5
//!     brif v4, block2(v3), block3
//! block3:
//!     v6 = icmp slt v3, v0
//!     brif v6, block1(v3), block4
//! ```
//!
//! The test of the outer loop compares the very number that is passed to its next iteration, so that this is less than `v0`, or what the first number was. If for a start of at
//! most that the inner counter does not wrap, nor the number that is passed back, then what is passed back is no less than it was. So it is never less than
//! what it was at first. A strip may be one of several loops, of which one runs: then this is so of each of them.

use super::{Counter, Extents, in_both, is_within};
use crate::analysis::cfg::edges::edges_into;
use crate::analysis::cfg::loops::Loop;
use crate::analysis::scev::const_eval;
use crate::analysis::scev::exit_count;
use crate::analysis::scev::exit_test::ExitTest;
use crate::analysis::scev::linear_expr::offset;
use crate::analysis::scev::recurrence::Recurrences;
use crate::analysis::scev::value_range::Bounds;
use crate::analysis::scev::view::View;
use crate::analysis::scev::wrap_arc::{interval, is_signed};
use crate::fault::fault;
use cranelift_codegen::ir::{Value, ValueDef};

/// A counter of an inner loop, and how it ends.
struct Inside {
    counter: Counter,
    tests: Vec<ExitTest>,
    /// How often the back edge is taken at most.
    around: Option<u128>,
    /// How much more than the counter is passed back.
    added: i128,
}

impl Extents<'_> {
    /// Finds those of `lp`, of which these are the tests.
    pub(super) fn find_carried(&mut self, lp: Loop, tests: &[ExitTest]) {
        let View { ctx, forest } = self.view;
        let data = forest.data(lp);
        let (&[entry], &[back_edge]) = (&data.entries[..], &data.back_edges[..]) else { return };
        if forest.is_innermost(lp) {
            return;
        }
        for &param in ctx.func.dfg.block_params(data.header) {
            let ty = ctx.func.dfg.value_type(param);
            if !ty.is_int() || ty.bits() > 32 || self.counters.contains_key(&param) {
                continue;
            }
            let passed = entry.passed_for(&ctx.func, param).zip(back_edge.passed_for(&ctx.func, param));
            let Some((start, next)) = passed else { continue };
            let number = offset(&ctx.func, Some(&ctx.cfg), next);
            let Some(inside) = self.all_inside(lp, param, number) else { continue };
            let bounds = [false, true].map(|signed| {
                let start = self.passed_bounds(start, signed);
                tests.iter().find_map(|test| self.carried_bounds(&inside, start, (number, test), signed))
            });
            self.carried.insert(param, in_both(bounds, ty));
        }
    }

    /// The counters that start from `param`, in child loops of `lp`, of which one is passed back as `next`. None if there is another path to it, except past
    /// all of them.
    fn all_inside(&self, lp: Loop, param: Value, next: (Value, u128)) -> Option<Vec<Inside>> {
        /// Paths on which a number is passed back. 8: those of a loop with checks and of one without, each unrolled and not.
        const MAX_EDGES: usize = 8;
        let View { ctx, forest } = self.view;
        let func = &ctx.func;
        let (mut open, mut found) = (vec![next], Vec::new());
        for _ in 0..MAX_EDGES {
            let Some((value, added)) = open.pop() else { return Some(found) };
            if (value, added) == (param, 0) {
                continue;
            }
            let ValueDef::Param(block, _) = func.dfg.value_def(value) else { return None };
            if forest.loop_of_header(block).is_some() || forest.innermost(block) != Some(lp) {
                found.push(self.inside(lp, param, (value, added))?);
                continue;
            }
            for edge in edges_into(func, &ctx.cfg, block) {
                let (value, more) = offset(func, Some(&ctx.cfg), edge.passed_for(func, value)?);
                open.push((value, const_eval::truncate(added.wrapping_add(more), func.dfg.value_type(param))));
            }
        }
        None
    }

    /// The counter that starts from `param`, in a child loop of `lp`, and is passed back as `value` and so much more.
    fn inside(&self, lp: Loop, param: Value, (value, added): (Value, u128)) -> Option<Inside> {
        let View { ctx, forest } = self.view;
        let ValueDef::Param(block, _) = ctx.func.dfg.value_def(value) else { return None };
        let inner = forest.loop_of_header(block).filter(|&inner| forest.data(inner).parent == Some(lp))?;
        let recurrences = Recurrences::with_constant_steps(self.view, inner);
        let induction = recurrences.inductions().iter().find(|induction| induction.param == value)?;
        if offset(&ctx.func, Some(&ctx.cfg), induction.start) != (param, 0) {
            return None;
        }
        let ty = ctx.func.dfg.value_type(value);
        let step = const_eval::signed(induction.recurrence.step.as_constant()?, ty) as i64;
        let start = induction.start;
        let counter = Counter { lp: inner, param: value, start, step, bounds: [None; 2], stays: [None; 2] };
        let tests: Vec<ExitTest> = ExitTest::all(self.view, inner).collect();
        let around = exit_count::bound_by(self.view, inner, &tests, &recurrences).most();
        Some(Inside { counter, tests, around, added: const_eval::signed(added, ty) })
    }

    /// What is passed to the inner counters, if it is at first within `start`, and this test of the outer loop is of what comes back, `next`.
    fn carried_bounds(
        &mut self,
        inside: &[Inside],
        start: Bounds,
        (next, test): ((Value, u128), &ExitTest),
        signed: bool,
    ) -> Option<Bounds> {
        let func = self.view.func();
        let mut sides = test.comparison.sides();
        let side = sides.find(|side| offset(func, Some(&self.view.ctx.cfg), side.left) == next)?;
        if is_signed(side.cond) != signed {
            return None;
        }
        let limit = side.right.map_or((0, 0), |bound| self.passed_bounds(bound, signed));
        let is_up = inside.first()?.counter.step > 0;
        let bounds = match interval(side.cond) {
            (None, Some(end)) if is_up => (start.0, start.1.max(limit.1 + i128::from(end))),
            (Some(end), None) if !is_up => (start.0.min(limit.0 + i128::from(end)), start.1),
            _ => return None,
        };
        let goes_on = |it: &Inside| (it.counter.step > 0) == is_up && if is_up { it.added >= 0 } else { it.added <= 0 };
        let stays = inside.iter().all(|it| goes_on(it) && self.stays_within(it, bounds, signed));
        (fault!(SumsNeverWrap) || stays).then_some(bounds)
    }

    /// Whether a counter that starts within `bounds` does not wrap, nor what is passed back.
    fn stays_within(&mut self, inside: &Inside, bounds: Bounds, signed: bool) -> bool {
        let Inside { counter, tests, around, added } = inside;
        let ends = self.limits(counter, signed);
        let Some(within) = self.bounds_from(counter, bounds, (tests, *around), signed) else { return false };
        let moved = (within.0 + added.min(&0), within.1 + added.max(&0));
        is_within(bounds, ends) && is_within(moved, ends)
    }
}
