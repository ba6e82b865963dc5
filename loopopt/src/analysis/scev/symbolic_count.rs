//! How often a loop runs, as a formula of values that are known before it, and what the formula rests on.
//!
//! ```text
//! guard: t0 - b < n                     The test compares t, which is t0 + k · b in iteration k, with n, which is loop-invariant.
//!   │                                   The loop goes on as long as t is in an arc of the circle of all numbers: 0 … n - 1
//! header ◄───┐                          for an unsigned `<`, n + 1 … n - 1 for `!=` ([`crate::analysis::scev::wrap_arc::arc`]).
//!   │        │                          If the arc holds t0, and b cannot step across what is not in it, then t advances
//!  check     │                          inside the arc, without wraparound, until it has left it: the room from t0 to the
//!   │        │                          end of the arc is by how much t can grow, and room / |b| how often.
//!  t < n ────┘
//! ```
//!
//! What the test dominates runs as often as it says "go on". What comes before it runs once more: with the number before t0,
//! `t0 - b`, in the arc too, the same formula from there gives the number of the last iteration. In a loop that tests at the
//! bottom, this is what its guard says.
//!
//! All of it is modular arithmetic: no sum has to be free of overflow, and none is taken to be. What comes out of it, how far a number
//! moves on the circle, is an integer, less than two to the bits of what is tested (`integer`). That the start is below the end is
//! not said by it: with `!=`, counting from one to the other may lead through 0.

use crate::analysis::cfg::edges::{Edge, edge_dominates};
use crate::analysis::cfg::jumps::leads_to_failure;
use crate::analysis::cfg::loops::Loop;
use crate::analysis::inst::number::{constant_of, mask};
use crate::analysis::scev::exit_test::{CountedTest, ExitTest, is_negative};
use crate::analysis::scev::integer::{Integer, Needs};
use crate::analysis::scev::linear_expr::{Sum, Term};
use crate::analysis::scev::recurrence::{Recurrence, Recurrences};
use crate::analysis::scev::requirement::Requirement;
use crate::analysis::scev::view::View;
use crate::analysis::scev::wrap_arc::{arc, interval};
use crate::fault::fault;
use cranelift_codegen::Context;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value};

/// What is known of a loop, once for all questions about it.
#[derive(Clone, Debug)]
pub(in crate::analysis) struct Counted {
    pub(in crate::analysis) recurrences: Recurrences,
    tests: Vec<CountedTest>,
}

/// How often counters step: as often as a number goes into another.
#[derive(Clone, Debug)]
pub(in crate::analysis) struct Times {
    room: Integer,
    by: u64,
    /// Whether nothing remains.
    is_exact: bool,
}

impl Times {
    /// What a counter is at least and at most while it moves no further than what is tested does, both modulo two to `bits`. If the first is not above the second, it does
    /// not wrap in between: it moves by no more than `bits` can hold.
    pub(in crate::analysis) fn ends(&self, counter: &Recurrence, bits: u32) -> Option<[Sum; 2]> {
        let (step, is_down) = magnitude(&counter.step.reduced(counter.start.bits())?);
        if !(1..=self.by).contains(&step) || self.room.most() > mask(bits) {
            return None;
        }
        let room = match self.room.sum() {
            room if room.bits() >= bits => room.reduced(bits)?,
            room => room.clone().extended(bits, false),
        };
        let start = counter.start.reduced(bits)?;
        Some(if is_down { [start.minus(&room)?, start] } else { [start.clone(), start.plus(&room, 1)?] })
    }

    /// How often that is, as an integer.
    pub(in crate::analysis) fn number(&self) -> Sum {
        self.room.clone().divided(self.by).sum().clone()
    }

    /// Two numbers, of which the product is `factor` times this.
    pub(in crate::analysis) fn multiplied(&self, factor: u64) -> (Integer, u64) {
        match self.is_exact && factor.is_multiple_of(self.by) {
            true => (self.room.clone(), factor / self.by),
            false => (self.room.clone().divided(self.by), factor),
        }
    }
}

/// By how much something moves while the loop runs, up to a certain place in its last iteration.
#[derive(Clone, Debug, Default)]
pub(in crate::analysis) struct Iterations {
    /// How often the counters step, if that is known.
    pub(in crate::analysis) times: Option<Times>,
    /// A counter that steps by a number that is not known, by how much it moves in all, and whether upwards.
    pub(in crate::analysis) moved: Option<(Value, Integer, bool)>,
    /// What that rests on.
    pub(in crate::analysis) needs: Needs,
}

impl Counted {
    pub(in crate::analysis) fn new(view: View<'_>, lp: Loop) -> Self {
        let recurrences = Recurrences::of(view, lp);
        let mut tests = Vec::new();
        if !recurrences.inductions().is_empty() {
            tests.extend(ExitTest::all(view, lp).filter_map(|test| test.counted(view, lp, &recurrences)));
        }
        // A number of iterations that is a constant says most, and a check is not what ends a loop.
        tests.sort_by_key(|test: &CountedTest| {
            let is_check = leads_to_failure(view.func(), test.exit.exit.target(view.func()));
            (is_check, test.room(false).and_then(|room| room.as_constant()).is_none())
        });
        Self { recurrences, tests }
    }

    /// How far the loop comes until it is at `inst`, in `block`, for the last time, if a test says so. `inst` itself is not taken for a test.
    pub(in crate::analysis) fn until(&self, ctx: &Context, (inst, block): (Inst, Block)) -> Option<Iterations> {
        self.counting(ctx, (inst, block)).map(|(_, iterations)| iterations)
    }

    /// The exit of the test that says that, if it is a failing one: then the loop is counted by what a check tests.
    pub(in crate::analysis) fn failing_exit(&self, ctx: &Context, check: (Inst, Block)) -> Option<Edge> {
        let (test, _) = self.counting(ctx, check)?;
        Some(test.exit.exit).filter(|exit| leads_to_failure(&ctx.func, exit.target(&ctx.func)))
    }

    fn counting(&self, ctx: &Context, (inst, block): (Inst, Block)) -> Option<(&CountedTest, Iterations)> {
        let func = &ctx.func;
        let is_dominated = |test: &CountedTest| edge_dominates(ctx, test.exit.stay, block);
        let mut others = self.tests.iter().filter(|test| test.exit.exit.branch != inst);
        others.find_map(|test| {
            let iterations = test.iterations(func, is_dominated(test) || fault!(OneIterationLess))?;
            Some((test, iterations))
        })
    }

    /// How often the back edge has been taken when the loop is left by `exit`, if the test there says so.
    pub(in crate::analysis) fn at_exit(&self, func: &Function, exit: Edge) -> Option<Iterations> {
        let test = self.tests.iter().find(|test| test.exit.exit == exit)?;
        let mut iterations = test.iterations(func, false)?;
        if test.cond == IntCC::NotEqual && test.distance().as_constant() == Some(1) {
            // All numbers are met, so that the one that ends the loop is: in the first iteration, or after all others.
            iterations.needs = Needs::default();
            iterations.needs.extend(test.requires.iter().cloned());
        }
        Some(iterations)
    }
}

impl CountedTest {
    /// The iterations up to what the test dominates, or up to what comes before it.
    fn iterations(&self, func: &Function, after: bool) -> Option<Iterations> {
        let bits = self.first.bits();
        let is_late = !after && self.begins_late();
        let after = after || is_late;
        let start = self.start(after)?;
        let (from, to) = arc(self.cond, &self.bound);
        let mut needs = Needs::default();
        needs.extend(self.requires.iter().cloned());
        let distance = self.distance();
        let mut room = self.room(after)?;
        let mut is_exact = distance.as_constant() == Some(1);
        if self.cond == IntCC::NotEqual && distance.as_constant() != Some(1) {
            // The only number that ends the loop has to be met. If that is where it starts, it is met again after all others.
            let by = distance.as_constant()?;
            room = room.offset(1).minus(&Sum::constant(by, bits))?;
            is_exact = true;
            if !is_multiple(func, &room, by) {
                let whole = room.clone().divided(by).times(by);
                needs.require(Requirement::new(IntCC::Equal, room.clone(), whole));
            }
        } else {
            needs.require(Requirement::new(self.cond, start, self.bound.clone()));
            let gap = from.minus(&to)?.offset(-1);
            if !(distance.as_constant() == Some(1) && self.leaves_a_gap()) {
                needs.require(Requirement::at_most(distance.clone(), gap));
            }
        }
        if is_late {
            // One iteration more than the test says from the first number on.
            let (room_is, by) = (room.as_constant()?, distance.as_constant()?);
            let whole = (room_is / by).checked_add(1)?.checked_mul(by).filter(|whole| *whole <= mask(bits))?;
            (room, is_exact) = (Sum::constant(whole, bits), true);
        }
        // On the circle, from a number in the arc to the end of the arc: less than one turn.
        let room = Integer::of(room);
        Some(match (self.counter, distance.as_constant()) {
            (None, Some(by)) => Iterations { times: Some(Times { room, by, is_exact }), moved: None, needs },
            (Some(param), _) => Iterations { times: None, moved: Some((param, room, self.up)), needs },
            (None, None) => return None,
        })
    }

    /// Whether the number before the first is sure not to be in the arc: a counter that starts at 0 and is tested before it steps by
    /// more than 1.
    fn begins_late(&self) -> bool {
        let is_in_arc = self.start(false).map(|start| Requirement::new(self.cond, start, self.bound.clone()));
        self.cond != IntCC::NotEqual && is_in_arc.is_some_and(|is_in_arc| is_in_arc.known() == Some(false))
    }

    /// Whether the arc, if it holds anything, does not hold everything.
    fn leaves_a_gap(&self) -> bool {
        !matches!(interval(self.cond), (None, Some(0)) | (Some(0), None))
    }

    /// The number from which on the formula counts.
    fn start(&self, after: bool) -> Option<Sum> {
        if after { Some(self.first.clone()) } else { self.first.minus(&self.step) }
    }

    /// By how much the number can grow, or shrink, inside the arc.
    fn room(&self, after: bool) -> Option<Sum> {
        let start = self.start(after)?;
        let (from, to) = arc(self.cond, &self.bound);
        if self.up { to.minus(&start) } else { start.minus(&from) }
    }
}

/// Whether `sum` is a multiple of `by`, whatever its values are.
fn is_multiple(func: &Function, sum: &Sum, by: u64) -> bool {
    let is_one = |number: u64| number.is_multiple_of(by);
    let is_rounded = |value: Value| {
        let inst = func.dfg.value_def(value).inst().map(|inst| func.dfg.insts[inst]);
        match inst {
            Some(InstructionData::Binary { opcode: Opcode::Band, args }) => {
                args.iter().any(|&arg| constant_of(func, arg).is_some_and(is_one))
            }
            _ => false,
        }
    };
    let is_one_of_terms =
        |(term, factor): &(Term, u64)| is_one(*factor) || matches!(term, Term::Value(value) if is_rounded(*value));
    by.is_power_of_two() && is_one(sum.constant_part()) && sum.terms().iter().all(is_one_of_terms)
}

/// A constant without its sign, and whether it is negative. 0 if it is not a constant.
pub(in crate::analysis) fn magnitude(number: &Sum) -> (u64, bool) {
    let is_down = is_negative(number);
    let number = if is_down { number.times(u64::MAX) } else { number.clone() };
    (number.as_constant().unwrap_or(0), is_down)
}
