//! Predication: what has to hold before a loop so that something holds in each of its iterations.
//!
//! ```text
//! preheader: 0 < n,  0 < len,  n - 1 <= len - 1        enough for
//!     │
//!   header(i) ◄──┐
//!     │          │                                      i < len, each time that it is asked
//!   i < len?     │
//!     │          │
//!   i + 1 < n ───┘
//! ```
//!
//! A comparison with something loop-invariant holds for an arc of the circle of all numbers ([`crate::analysis::scev::wrap_arc::arc`]).
//! What moves upwards from a number in the arc, by no more than the room to its end, stays in it, and has not wrapped; the
//! same downwards. How far a sum moves follows from how often the loop runs (`symbolic_count`): `|step| · times`,
//! if that does not overflow, which is asked for, too. So three things are enough: the comparison holds at the start,
//! the distance does not overflow, and there is room for it.
//!
//! Inside an extension, a narrower sum moves in its own arc, that of all numbers: it must not wrap there. A product with
//! something loop-invariant moves by that times as much.
//!
//! An inner loop that starts where the outer loop is, `for j = i + 1; j < m`, comes to `m - 1` at the most, wherever it starts: there the counter is
//! taken for anything from 0 to its end, which is the same in each iteration of the outer loop.
//!
//! What varies in no known way, but is one of a few numbers, such as `x & 255`, is taken for all of them. What is shifted to the right, such as the index of a
//! word of bits, `i >> 5`, or a coordinate with a fraction, `x >> 16`, is between zero and the largest that is shifted, divided by the power of two.
//!
//! A sum of numbers that are extended without sign, such as the address of an access to the memory of WebAssembly, has bits to spare:
//! there one comparison does. From the least number on that it is in any iteration, all by which it moves is added up, in the
//! wider type; if that is at most what it is compared with, and this is no more than the narrower type can tell, nothing has
//! wrapped.
//!
//! So is the least of such a sum, where the narrower ones do not wrap.
//!
//! Starts are numbers modulo two to their bits, and distances are true integers (`integer`): what is added to them, or what they
//! are multiplied by, is required not to overflow, whatever cancels.
//!
//! What is asked for is again made of sums and comparisons, so that it can be asked for before the outer loop.
//!
//! # References
//!
//! LLVM `LoopPredication.cpp` (the condition for a start and a limit; none of the facts that the check itself would prove);
//! Graal `SpeculativeGuardMovement`; Eclipse OMR `LoopVersioner` (tests on the first and the last value); the arc takes the
//! place of the case analysis that they make by condition, direction and sign, which their bugs were in
//! (JDK-8307683, openj9#15477, golang/go#26116).

pub(in crate::analysis) mod gathered;
pub(in crate::analysis) mod indices;
mod moves;
pub mod plain;
pub(in crate::analysis) mod summands;
pub mod unwrapped;

use crate::analysis::cfg::loops::Loop;
use crate::analysis::inst::number::{least_number, mask};
use crate::analysis::scev::integer::{Integer, Needs};
use crate::analysis::scev::linear_expr::{Sum, Term};
use crate::analysis::scev::requirement::Requirement;
use crate::analysis::scev::symbolic_count::{Counted, Iterations};
use crate::analysis::scev::view::View;
use crate::analysis::scev::wrap_arc::{arc, is_signed};
use crate::fault::fault;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Block, Inst, Value};
use moves::{MIN_BITS_OF_LENGTHS, Moves, least};

/// Why nothing before a loop is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// This value varies in a way that no formula tells.
    Changes(Value),
    /// No test says how often the loop runs.
    NoCount,
    /// A sum has too many terms, or one of too many bits.
    TooLong,
}

/// Sums inside sums that are followed. A value of 32 bits in an address of 64 is one.
const MAX_DEPTH: usize = 4;

/// Values that are followed for one question. A check of a front end takes 10 at most; a value that is used twice is followed twice, on each level of shifts and
/// products, and the sums that this makes contain each other.
const MAX_FOLLOWED: usize = 64;

/// Finds what has to hold before the loops of a function.
pub struct Predication<'a> {
    view: View<'a>,
    counted: SecondaryMap<Loop, Option<Counted>>,
}

impl<'a> Predication<'a> {
    /// For the loops of this function.
    pub fn new(view: View<'a>) -> Self {
        Self { view, counted: SecondaryMap::new() }
    }

    /// What has to hold before `lp` so that `required` holds whenever `check`, an instruction of this block in the loop, runs.
    ///
    /// This is a statement on the loop as it is, with all its checks.
    pub fn before(
        &mut self,
        required: &Requirement,
        lp: Loop,
        check: (Inst, Block),
    ) -> Result<Vec<Requirement>, Obstacle> {
        let view = self.view;
        let (Requirement::Compare { left, right, .. } | Requirement::Fits { left, right }) = required;
        let [left_stays, right_stays] = [left, right].map(|sum| view.is_invariant(lp, sum));
        if left_stays && right_stays {
            return Ok(vec![required.clone()]);
        }
        let counted = self.counted(lp);
        let mut iterations = counted.until(view.ctx, check).unwrap_or_default();
        let needs = std::mem::take(&mut iterations.needs);
        let is_branch = view.func().dfg.insts[check.0].opcode().is_branch();
        let is_value = |sum: &Sum| matches!(sum.terms(), [(Term::Value(_), 1)]) && sum.constant_part() == 0;
        let takes_all = !is_branch && !is_value(if left_stays { right } else { left });
        let mut walk = Walk {
            view,
            lp,
            counted,
            iterations,
            needs,
            products: 0,
            budget: MAX_FOLLOWED,
            may_start_at_zero: true,
            takes_all,
        };
        match required {
            Requirement::Compare { cond, left, right } if right_stays => walk.stays(*cond, left, right)?,
            Requirement::Compare { cond, left, right } if left_stays => walk.stays(cond.swap_args(), right, left)?,
            Requirement::Compare { cond, left, right } => walk.both_move(*cond, left, right)?,
            Requirement::Fits { left, right } => {
                let changes = if left_stays { right } else { left };
                return Err(walk.obstacle(changes));
            }
        }
        Ok(walk.needs.into_vec())
    }

    /// The branch of the check by which [`before`](Self::before) counts `lp` where it is asked of `check`, if no other exit says how often the loop runs.
    /// That one has to stay: if both were removed, neither check would end the loop, and what is required for each is that the other one does.
    pub fn counting_check(&mut self, lp: Loop, check: (Inst, Block)) -> Option<Inst> {
        let ctx = self.view.ctx;
        self.counted(lp).failing_exit(ctx, check).map(|exit| exit.branch)
    }

    fn counted(&mut self, lp: Loop) -> &Counted {
        self.counted[lp].get_or_insert_with(|| Counted::new(self.view, lp))
    }
}

/// Gathers what is required for one question.
struct Walk<'a> {
    view: View<'a>,
    lp: Loop,
    counted: &'a Counted,
    iterations: Iterations,
    needs: Needs,
    /// Products inside of which this is.
    products: usize,
    /// Values that may still be followed.
    budget: usize,
    /// Whether a counter may be taken for anything from 0 to the last that it is: not where it has to be between its ends.
    may_start_at_zero: bool,
    /// Whether what is one of a few numbers is taken for all of them: not where a branch or a check asks for that number itself, which
    /// may well be larger now and then.
    takes_all: bool,
}

impl Walk<'_> {
    /// Requires that `left cond right` holds in all iterations, `right` being always the same.
    fn stays(&mut self, cond: IntCC, left: &Sum, right: &Sum) -> Result<(), Obstacle> {
        let already = self.needs.len();
        let as_integer = match self.stays_as_integer(cond, left, right) {
            Ok(false) => self.stays_above(cond, left, right),
            known => known,
        };
        match as_integer {
            Ok(true) => return Ok(()),
            Ok(false) | Err(Obstacle::TooLong) => self.needs.truncate(already),
            Err(why) => return Err(why),
        }
        let moves = self.moves(left, left.bits(), MAX_DEPTH)?;
        let (from, to) = arc(cond, right);
        self.needs.require(Requirement::new(cond, moves.start.clone(), right.clone()));
        self.has_room(&moves, &from, &to)
    }

    /// Requires the same of a sum of extended numbers, which is too wide to wrap, by one comparison: the largest number of each,
    /// all together, is small enough. If `right` is no larger than the narrower numbers get, these have not wrapped then.
    /// False if `left` is none of these: what has been required then is no use.
    fn stays_as_integer(&mut self, cond: IntCC, left: &Sum, right: &Sum) -> Result<bool, Obstacle> {
        if !matches!(cond, IntCC::UnsignedLessThan | IntCC::UnsignedLessThanOrEqual) || !left.never_wraps() {
            return Ok(false);
        }
        let bits = left.bits();
        let mut end = Integer::constant(left.constant_part(), bits);
        for (term, factor) in left.terms() {
            let alone = Sum::of_term(term.clone(), *factor, bits);
            let most = match term {
                // It does not wrap, as `left` does not.
                _ if self.view.is_invariant(self.lp, &alone) => Integer::of(alone),
                Term::Extended { signed: false, sum } => {
                    let most = self.largest(sum, bits, MAX_DEPTH - 1)?;
                    self.keep_narrow(&most, (sum.bits(), *factor), right);
                    most.times(*factor, &mut self.needs)
                }
                _ => return Ok(false),
            };
            end = end.plus(&most, &mut self.needs).ok_or(Obstacle::TooLong)?;
        }
        self.needs.require(Requirement::new(cond, end.sum().clone(), right.clone()));
        Ok(true)
    }

    /// Requires the same of such a sum that is to be at least `right`: the least number of each, all together, is large enough. What is
    /// narrower is required not to wrap.
    fn stays_above(&mut self, cond: IntCC, left: &Sum, right: &Sum) -> Result<bool, Obstacle> {
        if !matches!(cond, IntCC::UnsignedGreaterThan | IntCC::UnsignedGreaterThanOrEqual) || !left.never_wraps() {
            return Ok(false);
        }
        let bits = left.bits();
        let mut end = Sum::constant(left.constant_part(), bits);
        for (term, factor) in left.terms() {
            let alone = Sum::of_term(term.clone(), *factor, bits);
            let least = match term {
                _ if self.view.is_invariant(self.lp, &alone) => alone,
                Term::Extended { signed: false, sum } => {
                    let moves = self.moves(sum, bits, MAX_DEPTH - 1)?;
                    let most = self.largest_of(&moves, bits)?;
                    self.needs.require(most.at_most(Sum::constant(mask(sum.bits()), bits)));
                    least(&moves)?.extended(bits, false).times(*factor)
                }
                _ => return Ok(false),
            };
            end = end.plus(&least, 1).ok_or(Obstacle::TooLong)?;
        }
        self.needs.require(Requirement::new(cond, end, right.clone()));
        Ok(true)
    }

    /// The least number that `sum` is, extended, and all by which it moves, if it does not wrap.
    fn largest(&mut self, sum: &Sum, wide: u32, depth: usize) -> Result<Integer, Obstacle> {
        let moves = self.moves(sum, wide, depth)?;
        self.largest_of(&moves, wide)
    }

    /// The same of what moves so.
    fn largest_of(&mut self, moves: &Moves, wide: u32) -> Result<Integer, Obstacle> {
        let mut largest = Integer::of(least(moves)?).extended(wide);
        for distance in moves.up.iter().chain(&moves.down).filter(|_| !fault!(OnlyTheFirstValue)) {
            largest = largest.plus(distance, &mut self.needs).ok_or(Obstacle::TooLong)?;
        }
        Ok(largest)
    }

    /// Requires that `most`, of which a multiple is required to be at most `right`, fits into so many bits.
    fn keep_narrow(&mut self, most: &Integer, (narrow, factor): (u32, u64), right: &Sum) {
        let limit = mask(narrow);
        let bits = right.bits();
        let is_length = |all: &u64| {
            narrow >= MIN_BITS_OF_LENGTHS
                && most.sum().as_constant().is_none()
                && most.sum().constant_part() <= limit
                && most.can_be_multiplied(factor)
                && *all <= mask(bits)
                && right.as_constant().is_none_or(|right| right <= *all)
        };
        let all = limit.checked_mul(factor).filter(|all| most.most() > limit && is_length(all));
        self.needs.require(match all {
            Some(all) => Requirement::at_most(right.clone(), Sum::constant(all, bits)),
            None => most.at_most(Sum::constant(limit, bits)),
        });
    }

    /// Requires that both stay without wraparound and that the comparison holds at both ends: then it holds in between.
    fn both_move(&mut self, cond: IntCC, left: &Sum, right: &Sum) -> Result<(), Obstacle> {
        if matches!(cond, IntCC::Equal | IntCC::NotEqual) {
            return Err(self.obstacle(left));
        }
        // Only what moves by the same in each iteration is between its ends there.
        self.takes_all = false;
        self.may_start_at_zero = false;
        let least = Sum::constant(least_number(left.bits(), is_signed(cond)), left.bits());
        let most = least.clone().offset(-1);
        let mut ends = Vec::new();
        for sum in [left, right] {
            let moves = self.moves(sum, sum.bits(), MAX_DEPTH)?;
            self.has_room(&moves, &least, &most)?;
            let mut end = moves.start.clone();
            for (distances, sign) in [(&moves.up, 1), (&moves.down, u64::MAX)] {
                for distance in distances {
                    end = end.plus(distance.sum(), sign).ok_or(Obstacle::TooLong)?;
                }
            }
            ends.push((moves.start, end));
        }
        let (right, left) = (ends.pop().expect("two"), ends.pop().expect("two"));
        self.needs.require(Requirement::new(cond, left.0, right.0));
        self.needs.require(Requirement::new(cond, left.1, right.1));
        Ok(())
    }

    /// Requires that what starts between `from` and `to` stays there.
    fn has_room(&mut self, moves: &Moves, from: &Sum, to: &Sum) -> Result<(), Obstacle> {
        let directions = [(&moves.up, to.minus(&moves.start)), (&moves.down, moves.start.minus(from))];
        for (distances, room) in directions {
            if distances.is_empty() || fault!(OnlyTheFirstValue) {
                continue;
            }
            // On the circle, from a number in the arc to an end of the arc.
            let mut room = Integer::of(room.ok_or(Obstacle::TooLong)?);
            for distance in distances {
                room = room.minus(distance, &mut self.needs).ok_or(Obstacle::TooLong)?;
            }
        }
        Ok(())
    }

    /// What prevents following `sum`.
    fn obstacle(&self, sum: &Sum) -> Obstacle {
        self.view.changing(self.lp, sum).map_or(Obstacle::TooLong, Obstacle::Changes)
    }
}
