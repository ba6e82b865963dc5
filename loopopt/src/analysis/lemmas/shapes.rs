//! Loops of the shapes that the engines reason about, as CLIF: a counter of one width beside a test of another, each comparison, both
//! directions, tested at the top or at the bottom, before or after the step; and something that is computed from the counters and
//! compared.
//!
//! The first choices of a shape are the digits of its number, so that all combinations of them occur; the others are random.

mod writer;

use super::dice::Dice;
use std::fmt::Write;
use writer::{Number, Writer};

/// All comparisons.
pub(super) const CONDITIONS: [&str; 10] = ["eq", "ne", "ult", "ule", "ugt", "uge", "slt", "sle", "sgt", "sge"];

/// Shapes after which all combinations of what matters most have come up: comparison, direction, place of the test, what is tested, how
/// widths are mixed, and which counter is checked.
pub(super) const COMBINATIONS: u64 = (CONDITIONS.len() * 2 * 2 * 2 * Test::ALL.len() * Checked::ALL.len()) as u64;

/// The two widths that a shape mixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Widths {
    /// Bits of the narrower type.
    pub narrow: u32,
    /// Bits of the wider type.
    pub wide: u32,
}

/// What is compared to end the loop.
#[derive(Clone, Copy)]
enum Test {
    Narrow,
    Wide,
    /// A narrow counter with a wide number.
    Extended,
    ExtendedBySign,
    /// A wide counter with a narrow number.
    Reduced,
}

impl Test {
    const ALL: [Self; 5] = [Self::Narrow, Self::Wide, Self::Extended, Self::ExtendedBySign, Self::Reduced];

    /// The bits of the counter, and of what it is compared with.
    fn types(self, Widths { narrow, wide }: Widths) -> (u32, u32) {
        match self {
            Self::Narrow => (narrow, narrow),
            Self::Wide => (wide, wide),
            Self::Extended | Self::ExtendedBySign => (narrow, wide),
            Self::Reduced => (wide, narrow),
        }
    }
}

/// Of what the check is: the counter that ends the loop, or another one.
#[derive(Clone, Copy)]
enum Checked {
    Counter,
    Narrow,
    Wide,
}

impl Checked {
    const ALL: [Self; 3] = [Self::Counter, Self::Narrow, Self::Wide];
}

/// What matters most of a shape.
struct Plan {
    cond: &'static str,
    is_down: bool,
    /// The test comes at the top of the loop, not at the bottom.
    is_top: bool,
    /// It is of the next number, not of this one.
    tests_next: bool,
    test: Test,
    checked: Checked,
    has_check: bool,
}

impl Plan {
    /// By the digits of the number of a shape: see [`COMBINATIONS`].
    fn new(number: u64, has_check: bool) -> Self {
        let mut digits = number;
        let mut digit = |base: usize| {
            let digit = (digits % base as u64) as usize;
            digits /= base as u64;
            digit
        };
        let cond = CONDITIONS[digit(CONDITIONS.len())];
        let [is_down, is_top, tests_next] = [0; 3].map(|_| digit(2) == 1);
        let (test, checked) = (Test::ALL[digit(Test::ALL.len())], Checked::ALL[digit(Checked::ALL.len())]);
        Self { cond, is_down, is_top, tests_next, test, checked, has_check }
    }
}

/// What the blocks of a loop are made of.
struct Entered {
    counter: Number,
    second: Option<Number>,
    /// What ends the loop.
    bound: Number,
    /// What may be added to an index.
    added: Number,
    /// What the check compares with.
    limit: Number,
}

/// The jump to the header with its block arguments.
fn jump_to_header(first: Number, second: Option<Number>) -> String {
    let passed = [Some(first), second].into_iter().flatten();
    let passed: Vec<String> = passed.map(|number| format!("v{}", number.value)).collect();
    format!("block1({})", passed.join(", "))
}

/// A loop.
pub(super) struct Shape {
    /// The function. Its parameters are what the counters start at, what ends the loop, and what the check compares with.
    pub(super) text: String,
    /// The bits of the parameters.
    pub(super) params: [u32; 3],
}

impl Shape {
    /// The shape of this number. Without a check the loop ends by its test alone.
    pub(super) fn new(number: u64, widths: Widths, has_check: bool) -> Self {
        let dice = Dice::new(number);
        let mut writer =
            Writer { dice, widths, text: String::new(), next: 0, has_large: false, prefers_constants: !has_check };
        writer.has_large = writer.dice.one_in(3);
        writer.shape(&Plan::new(number, has_check))
    }
}

impl Writer {
    /// The shape of which this is the plan.
    fn shape(mut self, plan: &Plan) -> Shape {
        let Widths { narrow, wide } = self.widths;
        let params = [0; 3].map(|_| if self.dice.one_in(4) { wide } else { narrow });
        let numbers = params.map(|bits| self.new_value(bits));
        let entered = self.entry(plan, numbers);
        self.iteration(plan, &entered);
        let types = params.map(|bits| format!("i{bits}"));
        let named: Vec<String> = (0..3).map(|index| format!("v{index}: {}", types[index])).collect();
        let (types, named) = (types.join(", "), named.join(", "));
        let text = format!("function %f({types}) {{\nblock0({named}):\n{}block3:\n    return\n}}\n", self.text);
        Shape { text, params }
    }

    /// What is before the loop, and its header.
    fn entry(&mut self, plan: &Plan, [start, end, limit]: [Number; 3]) -> Entered {
        let Widths { narrow, wide } = self.widths;
        let (counted, compared) = plan.test.types(self.widths);
        let first = self.invariant(start, counted);
        let added = if self.dice.one_in(3) { first } else { start };
        let bound = self.invariant(end, compared);
        let other_start = self.dice.pick(&[start, first, end]);
        let other = match plan.checked {
            Checked::Counter => None,
            Checked::Narrow => Some(self.invariant(other_start, narrow)),
            Checked::Wide => Some(self.invariant(other_start, wide)),
        };
        let (counter, second) = (self.new_value(counted), other.map(|other| self.new_value(other.bits)));
        let entered = jump_to_header(first, other);
        if self.dice.one_in(3) {
            let bits = first.bits.max(bound.bits);
            let sides =
                [first, bound].map(|side| if side.bits == bits { side } else { self.op("uextend", bits, &[side]) });
            let guard = self.compare(plan.cond, sides);
            self.line(&format!("brif v{}, {entered}, block3", guard.value));
        } else {
            self.line(&format!("jump {entered}"));
        }
        let params = [Some(counter), second].into_iter().flatten();
        let params: Vec<String> = params.map(|param| format!("v{}: i{}", param.value, param.bits)).collect();
        writeln!(self.text, "block1({}):", params.join(", ")).expect("text");
        Entered { counter, second, bound, added, limit }
    }

    /// The blocks of the loop.
    fn iteration(&mut self, plan: &Plan, entered: &Entered) {
        let &Entered { counter, second, bound, .. } = entered;
        let steps: &[i64] = if self.has_large { &[1, 2, 3, 64, 127, 100] } else { &[1, 1, 1, 1, 2, 3, 4] };
        let step = self.dice.pick(steps) * if plan.is_down { -1 } else { 1 };
        let second_step = self.dice.pick(steps) * self.dice.pick(&[1, 1, 1, -1]);
        let checks_first = !plan.is_top || self.dice.one_in(4);
        if plan.has_check && checks_first {
            self.check(entered);
        }
        let next = (!plan.is_top || plan.tests_next).then(|| self.steps(counter, step));
        let tested = self.tested(plan.test, next.filter(|_| plan.tests_next).unwrap_or(counter));
        let sides = if self.dice.one_in(4) { [bound, tested] } else { [tested, bound] };
        let test = self.compare(plan.cond, sides);
        let leaves_if_true = plan.cond == "eq" || self.dice.one_in(4);
        if plan.is_top {
            let targets = if leaves_if_true { "block3, block2" } else { "block2, block3" };
            self.line(&format!("brif v{}, {targets}", test.value));
            writeln!(self.text, "block2:").expect("text");
            if plan.has_check && !checks_first {
                self.check(entered);
            }
        }
        let next = next.unwrap_or_else(|| self.steps(counter, step));
        let second_next = second.map(|second| match self.dice.one_in(6) {
            true => {
                let by = self.convert(entered.limit, second.bits);
                self.op("iadd", second.bits, &[second, by])
            }
            false => self.steps(second, second_step),
        });
        let again = jump_to_header(next, second_next);
        self.line(&match (plan.is_top, leaves_if_true) {
            (true, _) => format!("jump {again}"),
            (false, true) => format!("brif v{}, block3, {again}", test.value),
            (false, false) => format!("brif v{}, {again}, block3", test.value),
        });
    }

    /// What is compared of a counter.
    fn tested(&mut self, test: Test, counter: Number) -> Number {
        match test {
            Test::Narrow | Test::Wide => counter,
            Test::Extended => self.op("uextend", self.widths.wide, &[counter]),
            Test::ExtendedBySign => self.op("sextend", self.widths.wide, &[counter]),
            Test::Reduced => self.op("ireduce", self.widths.narrow, &[counter]),
        }
    }

    /// A check of what is computed from a counter against the limit, or a constant, or something that moves too.
    fn check(&mut self, entered: &Entered) {
        let &Entered { counter, second, added, limit, .. } = entered;
        let counter = second.unwrap_or(counter);
        let left = self.computed(counter, added);
        let right = match self.dice.throw(12) {
            0 => self.any_constant(left.bits),
            1 => {
                let limit = self.convert(limit, left.bits);
                let less = self.constant(-4, left.bits);
                self.op("iadd", left.bits, &[limit, less])
            }
            2 => {
                let moves = self.computed(counter, limit);
                self.convert(moves, left.bits)
            }
            _ => self.convert(limit, left.bits),
        };
        let cond =
            if self.dice.one_in(3) { self.dice.pick(&CONDITIONS) } else { self.dice.pick(&["ult", "ult", "ule"]) };
        let sides = if self.dice.one_in(8) { [right, left] } else { [left, right] };
        let check = self.compare(cond, sides);
        self.line(&format!("trapz v{}, user7", check.value));
    }
}
