//! What an extended sum is if nothing wraps in it: a sum of extended numbers.
//!
//! ```text
//! block1(v1: i32):                 0, 1, …, 95
//!     v2 = ishl v1, 3
//!     v3 = iadd v2, 0x22000        0x22000 ..= 0x222f8: it never wraps
//!     v4 = uextend.i64 v3          so v4 is 8 · uextend(v1) + 0x22000, in 64 bits
//! ```
//!
//! The narrow sum is a sum of leaves modulo a power of two. If the same sum of what the leaves are, as exact integers, stays within
//! the numbers of the narrow type, then it is what the extension gives, whatever wraps in between. What a leaf can be follows from the
//! instruction that computes it (`crate::analysis::scev::value_range`); for a counter from how often its loop runs ([`crate::analysis::scev::exit_count`]); or
//! from the comparisons that have been passed ([`crate::analysis::facts::known`]), which are asked whether it is far enough from one end of its type. Of a counter
//! they are asked where its loop is entered: whether it starts below zero, and whether there is room for a step beyond its start and its bound.

mod carried;
mod counters;

use crate::analysis::cfg::loops::Loop;
use crate::analysis::facts::known::{Conditions, Place, Spot};
use crate::analysis::scev::const_eval;
use crate::analysis::scev::extent::bounds_of;
use crate::analysis::scev::linear_expr::{Sum, Term};
use crate::analysis::scev::value_range::{Bounds, common, limits};
use crate::analysis::scev::view::View;
use crate::fault::fault;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Type, Value};
use cranelift_codegen::{FxHashMap, FxHashSet};

/// A value of fewer than 64 bits, extended to 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Leaf {
    /// The value.
    pub value: Value,
    /// Whether by the sign.
    pub signed: bool,
}

/// A sum in 64 bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exact {
    /// What it adds up, each with a factor.
    pub terms: Vec<(Leaf, i64)>,
    /// The constant part.
    pub constant: i64,
}

/// Why an extended sum is none of extended numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MayWrap {
    /// The sum.
    pub sum: Sum,
    /// The part of it that may be too large, if it is one.
    pub value: Option<Value>,
}

/// An induction variable that steps by a constant, and what is known of its wraparound.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// Its loop.
    pub lp: Loop,
    /// The header parameter.
    pub param: Value,
    /// Its block argument on the entry edge.
    pub start: Value,
    /// What is added to it in each iteration.
    pub step: i64,
    /// What it is, read without sign and with it, if it never wraps in that reading.
    bounds: [Option<Bounds>; 2],
    /// Whether it is known for the readings that it never wraps, if that was asked.
    stays: [Option<bool>; 2],
}

/// Finds what extended sums are.
pub struct Extents<'a> {
    view: View<'a>,
    conditions: Conditions<'a>,
    /// The counters of the loops that were looked at.
    counters: FxHashMap<Value, Counter>,
    /// What other parameters of their headers are, read without sign and with it: those that a counter of an inner loop starts from, and comes back to.
    carried: FxHashMap<Value, [Option<Bounds>; 2]>,
    looked_at: FxHashSet<Loop>,
    /// The numbers that leaves are not known to be on one side of: at most the largest of these, or at least the least.
    unknown: FxHashMap<(Leaf, bool, Spot), i128>,
    /// Questions that may still be asked of what was compared.
    questions: usize,
}

/// What one leaf adds to a sum.
struct Part {
    leaf: Leaf,
    factor: i128,
    bounds: Bounds,
}

impl Part {
    /// The least and the largest number that it adds.
    fn added(&self) -> Bounds {
        let (a, b) = (self.bounds.0 * self.factor, self.bounds.1 * self.factor);
        (a.min(b), a.max(b))
    }

    fn span(&self) -> i128 {
        let (least, largest) = self.added();
        largest - least
    }
}

impl<'a> Extents<'a> {
    /// For the sums of this function.
    pub fn new(view: View<'a>) -> Self {
        let ctx = view.ctx;
        let mut conditions = Conditions::new(&ctx.func, &ctx.cfg, &ctx.domtree);
        // What is not stated directly is seldom known.
        conditions.set_thorough(false);
        Self {
            view,
            conditions,
            counters: FxHashMap::default(),
            carried: FxHashMap::default(),
            looked_at: FxHashSet::default(),
            unknown: FxHashMap::default(),
            questions: 0,
        }
    }

    /// From now on asks at most so many questions of what was compared.
    pub fn allow(&mut self, questions: usize) {
        self.questions = questions;
    }

    /// What `sum` is, of fewer than 64 bits, extended to 64 at `place`.
    pub fn exact(&mut self, sum: &Sum, signed: bool, place: Place) -> Result<Exact, MayWrap> {
        let mut parts = Vec::new();
        let mut constant = i128::from(sum.constant_part());
        for (term, factor) in sum.terms() {
            let factor = const_eval::signed(u128::from(*factor), sum.ty());
            match term {
                Term::Value(value) if self.view.func().dfg.value_type(*value) == sum.ty() => {
                    parts.push(self.part(*value, factor, signed));
                }
                Term::Extended { signed, sum } => {
                    let inner = self.exact(sum, *signed, place)?;
                    constant += i128::from(inner.constant) * factor;
                    parts.extend(inner.terms.iter().map(|(leaf, own)| {
                        let bounds = self.bounds(leaf.value, leaf.signed);
                        Part { leaf: *leaf, factor: factor * i128::from(*own), bounds }
                    }));
                }
                _ => return Err(MayWrap { sum: sum.clone(), value: None }),
            }
        }
        let limits = limits(sum.bits(), signed);
        if !fits(&parts, &mut constant, limits) && !fault!(SumsNeverWrap) {
            let unknown = self.narrow_down(&mut parts, (constant, limits), place);
            if !fits(&parts, &mut constant, limits) {
                return Err(MayWrap { sum: sum.clone(), value: unknown });
            }
        }
        let number = |number: i128| i64::try_from(number).map_err(|_| MayWrap { sum: sum.clone(), value: None });
        let terms = parts.iter().map(|part| Ok((part.leaf, number(part.factor)?))).collect::<Result<_, _>>()?;
        Ok(Exact { terms, constant: number(constant)? })
    }

    /// The least and the largest of the integers that `sum` stands for, modulo two to its bits, wherever it is computed, `place` being one of many. None if it
    /// has a term that may be anything.
    pub(crate) fn everywhere(&mut self, sum: &Sum, place: Place) -> Option<Bounds> {
        // What has been compared at one place says nothing of another.
        let questions = std::mem::take(&mut self.questions);
        let bounds = bounds_of(sum, |inner, signed| {
            let all = limits(inner.bits(), signed);
            let Ok(Exact { terms, constant }) = self.exact(inner, signed, place) else { return all };
            let parts = terms.iter().map(|&(leaf, factor)| {
                let bounds = self.bounds(leaf.value, leaf.signed);
                Part { leaf, factor: factor.into(), bounds }.added()
            });
            common(total(parts, constant.into()), all)
        });
        self.questions = questions;
        bounds
    }

    /// The counter that `value` is, if it never wraps read with or without sign.
    pub fn counter(&mut self, value: Value, signed: bool) -> Option<Counter> {
        self.look_at(value)?;
        let counter = *self.counters.get(&value)?;
        let stays = match (counter.bounds[usize::from(signed)], counter.stays[usize::from(signed)]) {
            (Some(_), _) => true,
            (None, Some(stays)) => stays,
            (None, None) => {
                let stays = self.stays(&counter, signed);
                self.counters.get_mut(&value)?.stays[usize::from(signed)] = Some(stays);
                stays
            }
        };
        stays.then_some(counter)
    }

    /// Whether `value` is an induction variable that steps by a constant, be it one that wraps.
    pub fn is_counter(&mut self, value: Value) -> bool {
        self.look_at(value);
        self.counters.contains_key(&value)
    }

    /// A leaf in the reading in which more is known of it. If that is both, in that of the sum; without sign if they say the same.
    fn part(&mut self, value: Value, factor: i128, signed_sum: bool) -> Part {
        self.look_at(value);
        self.known_part(value, factor, signed_sum)
    }

    /// The same, if it is no counter of a loop that was not looked at.
    fn known_part(&mut self, value: Value, factor: i128, signed_sum: bool) -> Part {
        let [unsigned, signed] = [false, true].map(|signed| self.known_bounds(value, signed));
        let span = |(least, largest): Bounds| largest - least;
        let half = span(limits(self.view.func().dfg.value_type(value).bits(), false)) / 2;
        let is_hardly_known = span(unsigned).min(span(signed)) > half;
        let is_signed = match span(signed) == span(unsigned) || is_hardly_known {
            true => signed_sum && signed != unsigned,
            false => span(signed) < span(unsigned),
        };
        let bounds = if is_signed { signed } else { unsigned };
        Part { leaf: Leaf { value, signed: is_signed }, factor, bounds }
    }

    /// What `value` can be anywhere.
    fn bounds(&mut self, value: Value, signed: bool) -> Bounds {
        self.look_at(value);
        self.known_bounds(value, signed)
    }

    /// The same, if it is no counter of a loop that was not looked at.
    fn known_bounds(&mut self, value: Value, signed: bool) -> Bounds {
        let all = limits(self.view.func().dfg.value_type(value).bits(), signed);
        let counted = self.counters.get(&value).map(|counter| counter.bounds);
        let counted = counted.or_else(|| self.carried.get(&value).copied());
        let counted = counted.and_then(|bounds| bounds[usize::from(signed)]);
        let number = self.conditions.numbers.of(value, signed);
        let computed = number.map_or(all, |number| self.conditions.numbers.bounds_of(number));
        counted.map_or(computed, |counted| common(counted, computed))
    }

    /// The same of what `value` is another name for: what is passed to a loop goes through block parameters.
    fn passed_bounds(&mut self, value: Value, signed: bool) -> Bounds {
        let Some(sum) = self.view.sum(value) else { return self.known_bounds(value, signed) };
        match (sum.terms(), sum.constant_part()) {
            ([(Term::Value(origin), 1)], 0) if self.view.func().dfg.value_type(*origin) == sum.ty() => {
                self.known_bounds(*origin, signed)
            }
            _ => {
                let added = self.added_bounds(&sum, signed);
                let number = self.conditions.numbers.of_sum(sum)[usize::from(signed)];
                let computed = self.conditions.numbers.bounds_of(number);
                added.map_or(computed, |added| common(added, computed))
            }
        }
    }

    /// What `sum` can be for what its terms can be: the distance of the counter of an enclosing loop from a number, as in `j < n - i`. None if it may wrap.
    fn added_bounds(&mut self, sum: &Sum, signed: bool) -> Option<Bounds> {
        let mut parts = Vec::new();
        for (term, factor) in sum.terms() {
            let Term::Value(value) = term else { return None };
            if self.view.func().dfg.value_type(*value) != sum.ty() {
                return None;
            }
            parts.push(self.known_part(*value, const_eval::signed(u128::from(*factor), sum.ty()), signed));
        }
        let mut constant = i128::from(sum.constant_part());
        fits(&parts, &mut constant, limits(sum.bits(), signed)).then(|| total(parts.iter().map(Part::added), constant))
    }

    /// Makes the largest parts smaller, if comparisons say that they are. Gives one that may be too large.
    ///
    /// With `constant`, the sum is not below the lower limit. So either no part is so large that it passes the upper one, or, with a constant that is less by
    /// all numbers of the type, none is so small that it passes the lower one: `i - 1` where `i` is not zero.
    fn narrow_down(&mut self, parts: &mut [Part], (constant, limits): (i128, Bounds), place: Place) -> Option<Value> {
        let all = limits.1 - limits.0;
        let (mut large, small): (Vec<_>, Vec<_>) = parts.iter_mut().partition(|part| part.span() > all / 4);
        let rest = total(small.iter().map(|part| part.added()), 0);
        let most = (limits.1 - rest.1 - constant) / large.len().max(1) as i128;
        let mut unknown = None;
        for part in &mut large {
            if !self.is_limited(part, (true, most), place) {
                unknown = Some(part.leaf.value);
            }
        }
        if let ([part], Some(_)) = (&mut large[..], unknown) {
            let least = limits.0 - rest.0 - (constant - all - 1);
            if self.is_limited(part, (false, least), place) {
                unknown = None;
            }
        }
        unknown
    }

    /// Whether comparisons say that what `part` adds is at most `limit`, or at least that. Its bounds become those.
    fn is_limited(&mut self, part: &mut Part, (is_most, limit): (bool, i128), place: Place) -> bool {
        let factor = part.factor.abs();
        let added = if is_most { limit.div_euclid(factor) } else { -(-limit).div_euclid(factor) };
        let (is_most, number) = if part.factor > 0 { (is_most, added) } else { (!is_most, -added) };
        let (least, largest) = part.bounds;
        let is_inside = if is_most { least < number && number <= largest } else { least <= number && number < largest };
        if !is_inside || !self.is_on_side(part.leaf, (is_most, number), place) {
            return false;
        }
        part.bounds = if is_most { (least, number) } else { (number, largest) };
        true
    }

    /// Whether comparisons say that a leaf is at most `number`, or at least that. One question.
    fn is_on_side(&mut self, leaf: Leaf, (is_most, number): (bool, i128), place: Place) -> bool {
        if self.questions == 0 {
            return false;
        }
        let key = (leaf, is_most, self.conditions.spot(place));
        let is_beyond = |&unknown: &i128| if is_most { number <= unknown } else { number >= unknown };
        if self.unknown.get(&key).is_some_and(is_beyond) {
            return false;
        }
        self.questions -= 1;
        let is_near = self.is_near_the_end(leaf, (is_most, number));
        if !is_near && !self.conditions.knows(place, leaf.value) {
            return false;
        }
        let cond = not_beyond(is_most, leaf.signed);
        let sum = Sum::of_leaf(self.view.func(), leaf.value);
        let number_sum = Sum::constant(number as u64, sum.bits());
        // A guard says it of the first iteration, and the test of the others.
        self.conditions.set_thorough(is_near);
        let holds = self.conditions.holds(place, cond, [&sum, &number_sum]);
        self.conditions.set_thorough(false);
        if !holds {
            self.unknown.insert(key, number);
        }
        holds
    }

    /// Whether a counter that is a step or more away from the end of its type is on one side of `number`: a test and a guard say that much.
    fn is_near_the_end(&self, leaf: Leaf, (is_most, number): (bool, i128)) -> bool {
        self.counters.get(&leaf.value).is_some_and(|counter| {
            let ((least, largest), step) = (self.limits(counter, leaf.signed), i128::from(counter.step.abs()));
            if is_most { number >= largest - step } else { number <= least + step }
        })
    }

    /// Whether comparisons say that the first number is not past the second one in the direction of a counter. One question.
    fn is_not_beyond(&mut self, place: Place, counter: &Counter, sides: [&Sum; 2], signed: bool) -> bool {
        self.ask(place, not_beyond(counter.step > 0, signed), sides)
    }

    /// Whether comparisons say that this holds at `place`. One question.
    fn ask(&mut self, place: Place, cond: IntCC, sides: [&Sum; 2]) -> bool {
        if self.questions == 0 {
            return false;
        }
        self.questions -= 1;
        self.conditions.holds(place, cond, sides)
    }
}

/// That one number is at most another, or at least that.
fn not_beyond(is_most: bool, signed: bool) -> IntCC {
    match (is_most, signed) {
        (true, false) => IntCC::UnsignedLessThanOrEqual,
        (true, true) => IntCC::SignedLessThanOrEqual,
        (false, false) => IntCC::UnsignedGreaterThanOrEqual,
        (false, true) => IntCC::SignedGreaterThanOrEqual,
    }
}

/// Bounds in both readings: those of one hold in the other, too, if they are never negative.
fn in_both(bounds: [Option<Bounds>; 2], ty: Type) -> [Option<Bounds>; 2] {
    let positive = |bounds: &Bounds| is_within(*bounds, (0, limits(ty.bits(), true).1));
    let both = bounds.into_iter().flatten().filter(positive).reduce(common);
    bounds.map(|bounds| both.or(bounds))
}

fn is_within(bounds: Bounds, limits: Bounds) -> bool {
    bounds.0 >= limits.0 && bounds.1 <= limits.1
}

/// The least and the largest number that all these and a constant add up to.
fn total(added: impl Iterator<Item = Bounds>, constant: i128) -> Bounds {
    added.fold((constant, constant), |sum, added| (sum.0 + added.0, sum.1 + added.1))
}

/// Whether a sum of parts and a constant, modulo two to the power of the width, stays within `limits`. The constant becomes the one
/// with which it does.
fn fits(parts: &[Part], constant: &mut i128, limits: Bounds) -> bool {
    let all = limits.1 - limits.0 + 1;
    let (least, largest) = total(parts.iter().map(Part::added), 0);
    *constant -= (least + *constant - limits.0).div_euclid(all) * all;
    largest + *constant <= limits.1
}
