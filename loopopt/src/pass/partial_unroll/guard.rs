//! The test at the end of each iteration, and what it is for all iterations of the unrolled loop.

use super::why::Decline;
use crate::analysis::cfg::edges::Edge;
use crate::analysis::cfg::loops::Loop;
use crate::analysis::facts::known::{Conditions, Place};
use crate::analysis::inst::number::mask;
use crate::analysis::scev::exit_count::TripCount;
use crate::analysis::scev::exit_test::{CountedTest, ExitTest};
use crate::analysis::scev::linear_expr::{Sum, Term};
use crate::analysis::scev::recurrence::Recurrences;
use crate::analysis::scev::requirement::Requirement;
use crate::analysis::scev::value_range::source::limits_of;
use crate::analysis::scev::view::View;
use crate::analysis::scev::wrap_arc::{interval, is_signed};
use crate::fault::fault;
use crate::options::Options;
use cranelift_codegen::Context;
use cranelift_codegen::cursor::FuncCursor;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Function, InstBuilder, Value};

/// The test at the end of each iteration.
pub(super) struct Test {
    /// The loop goes on if `tested cond bound`.
    cond: IntCC,
    pub(super) tested: Value,
    pub(super) bound: Sum,
    /// The bound once more: the value alone, if it is defined before the loop.
    end: Sum,
    /// What `tested` is in the first iteration.
    first: Sum,
    up: bool,
    /// By how much it moves in each iteration.
    distance: u64,
}

/// When there are enough iterations for the unrolled loop.
pub(super) struct Guard {
    /// What has to hold in the preheader, for the first time.
    pub(super) requires: Vec<Requirement>,
    pub(super) again: Again,
}

/// When there are enough after an iteration.
pub(super) enum Again {
    /// If the number is not this one, which it is at the end of the last time.
    Until(Sum),
    /// If the number compares with this one as it does with the bound for one more iteration.
    Limit(Sum),
    /// If more than this is left to the bound.
    Left(u64),
}

impl Test {
    /// The test that the back edge of the loop comes from.
    pub(super) fn find(view: View<'_>, lp: Loop, recurrences: &Recurrences) -> Option<Self> {
        let func = view.func();
        let [back_edge] = view.forest.data(lp).back_edges[..] else { return None };
        let exit = view.forest.data(lp).exits.iter().find(|exit| exit.branch == back_edge.branch)?;
        let test = ExitTest::of(func, *exit)?.counted(view, lp, recurrences)?;
        let distance = test.distance().as_constant().filter(|_| test.requires.is_none())?;
        let CountedTest { tested, cond, first, bound, up, .. } = test;
        let stands = |&right: &Value| bound.as_constant().is_none() && view.is_from_outside(lp, right);
        let end = tested.right.filter(stands).map_or(bound.clone(), |right| Sum::of_leaf(func, right));
        let leads_there = match interval(cond) {
            (None, Some(_)) => up,
            (Some(_), None) => !up,
            _ => cond == IntCC::NotEqual,
        };
        leads_there.then_some(Self { cond, tested: tested.left, bound, end, first, up, distance })
    }

    /// When there are at least so many iterations, if that can be said.
    ///
    /// If the loop is entered only with `s = first - distance` on this side of the bound `n`, `n - s` is no remainder modulo a power of two, but how far it is. With more
    /// than `w`, the whole distance, `s + w` is on this side too, and no sum on the way wraps, nor does `n - w`: one comparison says all.
    fn guard(&self, factor: u64, is_entered_if: &mut dyn FnMut(IntCC, [&Sum; 2]) -> bool) -> Option<Guard> {
        let bits = self.bound.bits();
        let is_signed = is_signed(self.cond);
        let largest = if is_signed { mask(bits - 1) } else { mask(bits) };
        let less = factor - 1 - u64::from(fault!(BatchTooLarge));
        let distance = self.distance.checked_mul(less).filter(|&distance| distance <= largest)?;
        let first_distance = self.distance.checked_mul(less.saturating_sub(1))?;
        if self.cond == IntCC::NotEqual {
            let left = if self.up { self.bound.minus(&self.first)? } else { self.first.minus(&self.bound)? };
            let requires =
                vec![Requirement::new(IntCC::UnsignedGreaterThan, left, Sum::constant(first_distance, bits))];
            return Some(Guard { requires, again: Again::Left(distance) });
        }
        // From `nearest` on the whole distance can be subtracted without leaving the type.
        let least = if is_signed { mask(bits) ^ largest } else { 0 };
        let (nearest, back) = if self.up {
            (least.wrapping_add(distance), distance.wrapping_neg())
        } else {
            (largest - distance, distance)
        };
        let stays =
            Requirement::new(self.cond.without_equal().complement(), self.bound.clone(), Sum::constant(nearest, bits));
        // How far it is from the first number back to where numbers begin, and on to where they end.
        let above = self.first.as_constant().map(|first| first.wrapping_sub(least) & mask(bits));
        let (passed, room) = match above {
            Some(above) if self.up => (above, mask(bits) - above),
            Some(above) => (mask(bits) - above, above),
            None => (0, 0),
        };
        let far = if self.up { first_distance } else { first_distance.wrapping_neg() }.cast_signed();
        let (first, bound) = match room >= first_distance {
            true => (self.first.clone().offset(far), self.bound.clone()),
            false => (self.first.clone(), self.bound.clone().offset(far.wrapping_neg())),
        };
        let again = Again::Limit(self.end.clone().offset(back.cast_signed()));
        // One step back and the first distance are the whole distance: a bound after it is far enough from the beginning.
        let is_implied = room >= first_distance && passed >= self.distance;
        let mut requires = vec![Requirement::new(self.cond, first, bound)];
        if !is_implied && let Some(far) = self.far_from_start(is_entered_if) {
            let cond = if self.cond == self.cond.without_equal() {
                IntCC::UnsignedGreaterThan
            } else {
                IntCC::UnsignedGreaterThanOrEqual
            };
            requires = vec![Requirement::new(cond, far, Sum::constant(distance, bits))];
        } else if !is_implied && !fault!(BatchWraps) {
            requires.push(stays);
        }
        Some(Guard { requires, again })
    }

    /// How far it is from one step before the first number to the bound, if that number is known to be on this side of it.
    fn far_from_start(&self, is_entered_if: &mut dyn FnMut(IntCC, [&Sum; 2]) -> bool) -> Option<Sum> {
        let back = if self.up { self.distance.wrapping_neg() } else { self.distance }.cast_signed();
        let start = self.first.clone().offset(back);
        if !is_entered_if(self.cond, [&start, &self.bound]) && !fault!(EnteredAnyhow) {
            return None;
        }
        if self.up { self.bound.minus(&start) } else { start.minus(&self.bound) }
    }

    /// The same if it is known how often the unrolled loop runs, at least once.
    fn known_guard(&self, times: u64, factor: u64) -> Option<Guard> {
        let iterations = times.checked_mul(factor).filter(|&iterations| iterations > 0)?;
        let distance = self.distance.wrapping_mul(iterations - 1);
        let distance = if self.up { distance } else { distance.wrapping_neg() };
        Some(Guard { requires: Vec::new(), again: Again::Until(self.first.clone().offset(distance.cast_signed())) })
    }

    /// The most iterations, if it is known how far it is from the first number to the bound, or how far at most.
    pub(super) fn most(&self, func: &Function) -> Option<u64> {
        let (from, to) = if self.up { (&self.first, &self.bound) } else { (&self.bound, &self.first) };
        let left = to.minus(from)?.offset(self.distance.cast_signed());
        let most = match left.terms() {
            [] => left.constant_part(),
            [(Term::Value(value), 1)] if left.constant_part() == 0 => limits_of(func, *value, left.bits())?.1,
            _ => return None,
        };
        Some(most / self.distance)
    }
}

impl Again {
    /// What the number is compared with, or what is taken from it for that.
    pub(super) fn limit(&self, test: &Test) -> Sum {
        match self {
            Self::Until(limit) | Self::Limit(limit) => limit.clone(),
            // With one more taken away, what remains upwards is less than nothing, and smaller the more it is.
            Self::Left(_) => test.end.clone().offset(test.up.into()),
        }
    }

    /// Whether it does, when `test` has reached the number `now`.
    pub(super) fn holds(
        &self,
        cursor: &mut FuncCursor<'_>,
        test: &Test,
        now: Value,
        limit: Result<u64, Value>,
    ) -> Value {
        let ty = test.bound.ty();
        let number = |cursor: &mut FuncCursor<'_>, number: u64| {
            cursor.ins().iconst(ty, (number & mask(ty.bits())).cast_signed())
        };
        let Self::Left(distance) = *self else {
            let cond = if let Self::Until(_) = self { IntCC::NotEqual } else { test.cond };
            let limit = limit.map_or_else(|value| value, |limit| number(cursor, limit));
            return cursor.ins().icmp(cond, now, limit);
        };
        let left = match limit {
            Ok(0) => now,
            // Taken away and not added, so that lowering does not compute it from the old value of the counter.
            Ok(constant) => {
                let constant = number(cursor, constant);
                cursor.ins().isub(now, constant)
            }
            Err(limit) => cursor.ins().isub(now, limit),
        };
        let (cond, distance) = match test.up {
            true => (IntCC::UnsignedLessThan, number(cursor, !distance)),
            false => (IntCC::UnsignedGreaterThan, number(cursor, distance)),
        };
        cursor.ins().icmp(cond, left, distance)
    }
}

/// What is known where loops are entered.
pub(super) struct Entries<'a> {
    ctx: &'a Context,
    options: &'a Options,
    /// Once it was asked for.
    conditions: Option<Conditions<'a>>,
}

impl<'a> Entries<'a> {
    pub(super) fn new(ctx: &'a Context, options: &'a Options) -> Self {
        Self { ctx, options, conditions: None }
    }

    /// Whether a comparison always holds where `entry` is taken.
    pub(super) fn hold(&mut self, entry: Edge, cond: IntCC, sides: [&Sum; 2]) -> bool {
        let Self { ctx, options, .. } = *self;
        let make = || Conditions::new(&ctx.func, &ctx.cfg, &ctx.domtree).with_options(options);
        self.conditions.get_or_insert_with(make).holds(Place::Before(entry.branch), cond, sides)
    }
}

/// When there are at least so many iterations; nothing if no remainder is left.
pub(super) fn guard(
    test: &Test,
    (count, factor): (TripCount, usize),
    is_entered_if: &mut dyn FnMut(IntCC, [&Sum; 2]) -> bool,
) -> Result<Option<Guard>, Decline> {
    let guard = match count {
        TripCount::Exactly(around) => {
            let iterations = around.checked_add(1).ok_or(Decline::NotCounted)?;
            if iterations.is_multiple_of(factor as u128) {
                return Ok(None);
            }
            let whole = u64::try_from(iterations / factor as u128).map_err(|_| Decline::NotCounted)?;
            let few = Decline::FewIterations { most: iterations, factor };
            test.known_guard(whole, factor as u64).ok_or(few)?
        }
        _ => test.guard(factor as u64, is_entered_if).ok_or(Decline::NotCounted)?,
    };
    match guard.requires.iter().any(|required| required.known() == Some(false)) {
        true => Err(Decline::NeverEnough { factor }),
        false => Ok(Some(guard)),
    }
}
