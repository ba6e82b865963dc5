//! How sums move in a loop: where they start, and how far they go up and down.

use super::{Obstacle, Walk};
use crate::analysis::inst::number::{constant_of, least_number, mask};
use crate::analysis::scev::integer::Integer;
use crate::analysis::scev::linear_expr::{Sum, Term};
use crate::analysis::scev::requirement::Requirement;
use crate::analysis::scev::symbolic_count::magnitude;
use crate::analysis::scev::value_range::source::limits_of;
use crate::fault::fault;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstructionData, Opcode, Value, ValueDef};

/// Products inside products that are followed: `(i * n + j) * m + k` has one.
const MAX_PRODUCTS: usize = 3;

/// The largest table for which each number that the index may be is required to pass the check. 65,536: a table with an entry for all numbers of
/// 16 bits; what has more is seldom indexed by what is masked or loaded without a further test.
const MAX_TABLE: u64 = 1 << 16;

/// The same where a formula might say that fewer numbers occur: the formula requires that what the index is computed from does not wrap.
/// 255: what picks an entry by the highest bits of a number, as of a hash, mostly has no more.
const MAX_SMALL_TABLE: u64 = 255;

/// Bits of an index for which it is taken for granted that what it indexes has no more elements than it has numbers. 32: the
/// memory of WebAssembly.
pub(in crate::analysis) const MIN_BITS_OF_LENGTHS: u32 = 32;

/// How a sum moves in a loop: modulo two to its bits it is `start`, and an integer that is at most all of `up`, less one that is at most all of
/// `down`.
pub(super) struct Moves {
    pub(super) start: Sum,
    pub(super) up: Vec<Integer>,
    pub(super) down: Vec<Integer>,
}

impl Walk<'_> {
    /// How `sum` moves, the distances being numbers of `wide` bits, at least as many as it has.
    pub(super) fn moves(&mut self, sum: &Sum, wide: u32, depth: usize) -> Result<Moves, Obstacle> {
        let bits = sum.bits();
        if let Some(moves) = self.moves_from_zero(sum, wide) {
            return Ok(moves);
        }
        let (start, moving) = self.view.split(self.lp, sum);
        let mut moves = Moves { start, up: Vec::new(), down: Vec::new() };
        let mut step = Sum::constant(0, bits);
        for (term, factor) in moving {
            match term {
                Term::Value(value) => self.follow((*value, factor), (wide, depth), &mut moves, &mut step)?,
                Term::Extended { signed, sum: inner } if depth > 0 => {
                    let inner = self.extended(inner, *signed, depth)?;
                    moves.add(&inner.start.extended(bits, *signed), factor)?;
                    self.scale((inner.up, inner.down), factor, wide, &mut moves)?;
                }
                _ => return Err(self.obstacle(&Sum::of_term(term.clone(), factor, bits))),
            }
        }
        match step.as_constant() {
            Some(0) => {}
            Some(_) => {
                let (factor, is_down) = magnitude(&step);
                let times = self.iterations.times.as_ref().ok_or(Obstacle::NoCount)?;
                let (times, factor) = times.multiplied(factor);
                let distance = self.fitted(times, wide)?.times(factor, &mut self.needs);
                if is_down { moves.down.push(distance) } else { moves.up.push(distance) }
            }
            None => return Err(self.obstacle(sum)),
        }
        Ok(moves)
    }

    /// How a sum of one counter and of what is loop-invariant moves, if that is best said from 0 on: the least number of the counter, read without
    /// sign, varies in an enclosing loop, the largest does not, and it is known that the one is not above the other.
    fn moves_from_zero(&mut self, sum: &Sum, wide: u32) -> Option<Moves> {
        if !self.may_start_at_zero || self.view.forest.data(self.lp).parent.is_none() {
            return None;
        }
        let bits = sum.bits();
        let (rest, moving) = self.view.split(self.lp, sum);
        let [(Term::Value(value), factor)] = moving[..] else { return None };
        let counter = self.counted.recurrences.get(*value)?;
        let [least, largest] = self.iterations.times.as_ref()?.ends(counter, bits)?;
        let begins_below = rest.as_constant().is_some_and(|rest| rest > mask(bits) / 2);
        let is_negative = factor > mask(bits) / 2;
        let cancels = rest.plus(&least, factor)?.terms().len() < rest.terms().len() + least.terms().len();
        if begins_below || is_negative || cancels || !self.changes_further_out(&least, &largest) {
            return None;
        }
        if !self.needs.imply(&Requirement::at_most(least.clone(), largest.clone())) {
            let with_sign = Requirement::new(IntCC::SignedLessThanOrEqual, least.clone(), largest.clone());
            let zero = Sum::constant(0, bits);
            self.needs.imply(&with_sign).then_some(())?;
            self.needs.require(Requirement::new(IntCC::SignedGreaterThanOrEqual, least, zero));
        }
        let up = Integer::of(largest).extended(wide).times(factor, &mut self.needs);
        Some(Moves { start: rest, up: vec![up], down: Vec::new() })
    }

    /// Whether the innermost enclosing loop in which `least` varies is one in which `largest` does not.
    fn changes_further_out(&self, least: &Sum, largest: &Sum) -> bool {
        let forest = self.view.forest;
        let around = std::iter::successors(forest.data(self.lp).parent, |&lp| forest.data(lp).parent);
        let mut changing = around.filter(|&lp| !self.view.is_invariant(lp, least));
        changing.next().is_some_and(|lp| self.view.is_invariant(lp, largest))
    }

    /// How `inner`, which must not wrap, moves.
    pub(super) fn extended(&mut self, inner: &Sum, signed: bool, depth: usize) -> Result<Moves, Obstacle> {
        let moves = self.moves(inner, inner.bits(), depth - 1)?;
        let least = Sum::constant(least_number(inner.bits(), signed), inner.bits());
        self.has_room(&moves, &least, &least.clone().offset(-1))?;
        Ok(moves)
    }

    /// Adds `factor` times `value`, which varies, to `moves`, or to what it grows by in each iteration.
    fn follow(
        &mut self,
        (value, factor): (Value, u64),
        (wide, depth): (u32, usize),
        moves: &mut Moves,
        step: &mut Sum,
    ) -> Result<(), Obstacle> {
        let bits = step.bits();
        self.budget = self.budget.checked_sub(1).ok_or(Obstacle::TooLong)?;
        let Some(counter) = self.counted.recurrences.get(value) else {
            let within = self.within(value, bits);
            if within.is_none_or(|(_, distance)| distance > MAX_SMALL_TABLE)
                && let Some(most) = self.quotient(value, (bits, wide, depth))
            {
                return self.scale((vec![most], Vec::new()), factor, wide, moves);
            }
            if let Some((least, distance)) = within {
                moves.add(&Sum::constant(least, bits), factor)?;
                let distance = Integer::constant(distance, bits);
                return self.scale((vec![distance], Vec::new()), factor, wide, moves);
            }
            return match self.masked(value, bits).filter(|_| depth > 0 && bits < wide) {
                Some(masked) => {
                    let most = self.largest(&masked, wide, depth - 1)?;
                    self.needs.require(most.at_most(Sum::constant(mask(bits), wide)));
                    self.scale((vec![most], Vec::new()), factor, wide, moves)
                }
                None => self.follow_product((value, factor), wide, moves),
            };
        };
        let start = counter.start.reduced(bits).ok_or(Obstacle::TooLong)?;
        if counter.step.as_constant().is_some() {
            let own = counter.step.reduced(bits).ok_or(Obstacle::TooLong)?;
            *step = step.plus(&own, factor).ok_or(Obstacle::TooLong)?;
            return moves.add(&start, factor);
        }
        match &self.iterations.moved {
            Some((param, distance, up)) if *param == value && distance.sum().bits() == bits => {
                let (distance, up) = (vec![distance.clone()], *up);
                moves.add(&start, factor)?;
                let (up, down) = if up { (distance, Vec::new()) } else { (Vec::new(), distance) };
                self.scale((up, down), factor, wide, moves)
            }
            _ => match self.iterations.times.clone() {
                Some(times) => {
                    // A step that is negative is a very large one: one of it fits, which leads to the same point on the circle, and no multiple does.
                    let own = Integer::of(counter.step.reduced(bits).ok_or(Obstacle::TooLong)?).extended(wide);
                    let (times, by) = times.multiplied(1);
                    let times = self.fitted(times, wide)?.times(by, &mut self.needs);
                    moves.add(&start, factor)?;
                    let distance = times.product(&own, &mut self.needs);
                    self.scale((vec![distance], Vec::new()), factor, wide, moves)
                }
                None if self.iterations.moved.is_none() => Err(Obstacle::NoCount),
                None => Err(Obstacle::Changes(value)),
            },
        }
    }

    /// The least that `value`, whatever it is, can be, and by how much more at most, if it is to be taken for an index of a table.
    fn within(&self, value: Value, bits: u32) -> Option<(u64, u64)> {
        let (least, largest) = limits_of(self.view.func(), value, bits)?;
        let distance = largest - least;
        (distance < MAX_TABLE && self.takes_all).then_some((least, distance))
    }

    /// The largest that `value`, of so many bits, is as the quotient of a number and a power of two, in `wide` bits: `i >> 5`, or `x >> 16` of a number with a
    /// fraction. The number must not wrap, or get below zero where it is shifted with its sign.
    fn quotient(&mut self, value: Value, (bits, wide, depth): (u32, u32, usize)) -> Option<Integer> {
        let func = self.view.func();
        let InstructionData::Binary { opcode, args: [number, by] } =
            func.dfg.insts[func.dfg.value_def(value).inst()?]
        else {
            return None;
        };
        let limit = match opcode {
            Opcode::Ushr => mask(bits),
            Opcode::Sshr => mask(bits) / 2,
            _ => return None,
        };
        let number = self.view.sum(number).filter(|number| number.bits() == bits)?;
        let by = constant_of(func, by)? & u64::from(bits - 1);
        if depth == 0 || !self.may_start_at_zero {
            return None;
        }
        let already = self.needs.len();
        match self.largest(&number, wide, depth - 1) {
            Ok(most) => {
                if !fault!(QuotientOfAnything) {
                    self.needs.require(most.at_most(Sum::constant(limit, wide)));
                }
                Some(most.divided(1 << by))
            }
            Err(_) => {
                self.needs.truncate(already);
                None
            }
        }
    }

    /// What `value`, of so many bits, is with some bits cleared, so that it is not more than that.
    fn masked(&self, value: Value, bits: u32) -> Option<Sum> {
        let func = self.view.func();
        let InstructionData::Binary { opcode: Opcode::Band, args } =
            func.dfg.insts[func.dfg.value_def(value).inst()?]
        else {
            return None;
        };
        let [a, b] = args.map(|arg| self.view.sum(arg));
        let masked = if a.as_ref()?.as_constant().is_some() { b } else { a };
        masked.filter(|masked| masked.bits() == bits)
    }

    /// Adds `factor` times `value`, a product of something that varies and something loop-invariant.
    fn follow_product(&mut self, (value, factor): (Value, u64), wide: u32, moves: &mut Moves) -> Result<(), Obstacle> {
        let func = self.view.func();
        let ValueDef::Result(inst, 0) = func.dfg.value_def(value) else { return Err(Obstacle::Changes(value)) };
        let InstructionData::Binary { opcode: Opcode::Imul, args } = func.dfg.insts[inst] else {
            return Err(Obstacle::Changes(value));
        };
        let [Some(a), Some(b)] = args.map(|arg| self.view.sum(arg)) else { return Err(Obstacle::Changes(value)) };
        let (changes, stays) = match self.view.is_invariant(self.lp, &b) {
            true => (a, b),
            false => (b, a),
        };
        let is_leaf = changes == Sum::of_leaf(func, value);
        if is_leaf || !self.view.is_invariant(self.lp, &stays) || stays.bits() != moves.start.bits() {
            return Err(Obstacle::Changes(value));
        }
        // Each factor makes a sum longer, and a sum can have two products for each of one inside.
        if self.products >= MAX_PRODUCTS {
            return Err(Obstacle::TooLong);
        }
        self.products += 1;
        let inner = self.moves(&changes, wide, 0);
        self.products -= 1;
        let inner = inner?;
        moves.add(&inner.start.product(&stays), factor)?;
        let stays = Integer::of(stays).extended(wide);
        let [up, down] = [inner.up, inner.down].map(|distances| {
            let products = distances.into_iter().map(|distance| distance.product(&stays, &mut self.needs));
            products.collect()
        });
        self.scale((up, down), factor, wide, moves)
    }

    /// Adds `factor` times these distances, upwards and downwards.
    fn scale(
        &mut self,
        (up, down): (Vec<Integer>, Vec<Integer>),
        factor: u64,
        wide: u32,
        moves: &mut Moves,
    ) -> Result<(), Obstacle> {
        let (factor, swaps) = magnitude(&Sum::constant(factor, moves.start.bits()));
        for (distances, is_down) in [(up, false), (down, true)] {
            for distance in distances {
                let distance = self.fitted(distance, wide)?.times(factor, &mut self.needs);
                if is_down == swaps { moves.up.push(distance) } else { moves.down.push(distance) }
            }
        }
        Ok(())
    }

    /// An integer in so many bits, which it has to fit into.
    fn fitted(&mut self, number: Integer, bits: u32) -> Result<Integer, Obstacle> {
        number.fitted(bits, &mut self.needs).ok_or(Obstacle::TooLong)
    }
}

/// The least number of what moves so, if it does not wrap.
pub(super) fn least(moves: &Moves) -> Result<Sum, Obstacle> {
    let mut least = moves.start.clone();
    for distance in moves.down.iter().filter(|_| !fault!(OnlyTheFirstValue)) {
        let distance = distance.sum().reduced(least.bits()).ok_or(Obstacle::TooLong)?;
        least = least.minus(&distance).ok_or(Obstacle::TooLong)?;
    }
    Ok(least)
}

impl Moves {
    /// Adds `factor` times `sum`, which is loop-invariant.
    fn add(&mut self, sum: &Sum, factor: u64) -> Result<(), Obstacle> {
        self.start = self.start.plus(sum, factor).ok_or(Obstacle::TooLong)?;
        Ok(())
    }
}
