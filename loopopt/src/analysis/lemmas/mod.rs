//! The engines against the definitions of what they say, for small numbers of mixed widths.
//!
//! * [`Predication`](crate::analysis::scev::predication::Predication): if all that it asks for before a loop holds, the check holds in each iteration.
//! * [`trip_count`](crate::analysis::scev::exit_count::trip_count) and [`bound`](crate::analysis::scev::exit_count::bound): the back edge is taken so often.
//! * [`Conditions`](crate::analysis::facts::known::Conditions): a comparison that follows from what is known holds.
//! * Ranges (`value_range`), sums ([`crate::analysis::scev::linear_expr`]), what extended sums are ([`crate::analysis::facts::nowrap`]), steps ([`crate::analysis::scev::recurrence`]).
//!
//! Each is asked about loops of 8 and 16 bits (the module `shapes`), and held to runs of them (`machine`). What they rest on, and what
//! the rules for sums and requirements answer, is written for a solver, at all widths ([`formulas`](formulas())).

mod answers;
mod dice;
mod formulas;
mod logic;
mod loops;
mod machine;
mod meaning;
mod shapes;

pub use formulas::{Formula, formulas};
pub use shapes::Widths;
use std::fmt;
use std::time::Duration;

/// One lemma, and what came out when it was checked.
#[derive(Clone, Debug)]
pub struct Tally {
    /// What it says.
    pub name: &'static str,
    /// The bits of the numbers in it.
    pub widths: Widths,
    /// Questions that were asked of the engine.
    pub asked: u64,
    /// Questions that it answered with more than "unknown".
    pub answered: u64,
    /// Combinations of numbers that were tried.
    pub cases: u64,
    /// How often it was seen to be true.
    pub held: u64,
    /// How long that took.
    pub time: Duration,
    /// Where it was not true: the number of the shape, why, and the function.
    pub failures: Vec<(u64, String, String)>,
}

impl Tally {
    fn new(name: &'static str, widths: Widths) -> Self {
        let time = Duration::ZERO;
        Self { name, widths, asked: 0, answered: 0, cases: 0, held: 0, time, failures: Vec::new() }
    }

    /// The tally of this name, which is there then.
    fn of<'t>(tallies: &'t mut Vec<Self>, name: &'static str, widths: Widths) -> &'t mut Self {
        let at = tallies.iter().position(|tally| tally.name == name).unwrap_or_else(|| {
            tallies.push(Self::new(name, widths));
            tallies.len() - 1
        });
        &mut tallies[at]
    }

    fn fails(&mut self, number: u64, why: &str, text: &str) {
        self.failures.push((number, why.to_owned(), text.to_owned()));
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, widths, asked, answered, cases, held, time, failures } = self;
        write!(
            f,
            "{name}: {} and {} bits, {answered} answers to {asked} questions, {cases} cases, true {held} times, {} times false, {:.1} s",
            widths.narrow,
            widths.wide,
            failures.len(),
            time.as_secs_f64()
        )
    }
}

/// How much to check.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The numbers of the shapes.
    pub first: u64,
    /// How many shapes.
    pub shapes: u64,
    /// Numbers for each parameter of a shape.
    pub inputs: usize,
    /// One shape in so many is tried with all numbers of a narrow type for two of its parameters.
    pub one_in: u64,
}

impl Effort {
    /// What is part of the tests: each combination of what matters most twice, with numbers at the edges.
    pub const SHORT: Self = Self { first: 0, shapes: 2 * shapes::COMBINATIONS, inputs: 12, one_in: 300 };
}

/// Checks the engines.
pub fn check(effort: Effort) -> Vec<Tally> {
    let widths = Widths { narrow: 8, wide: 16 };
    let mut tallies = Vec::new();
    let Effort { first, shapes, inputs, one_in } = effort;
    let few = [inputs / 2, inputs / 2, inputs / 5].map(|count| count.max(1));
    let many = [1 << widths.narrow, 1 << widths.narrow, inputs / 2];
    for number in first..first + shapes {
        let tally = Tally::of(&mut tallies, "predication: what is required before a loop is enough", widths);
        let counts = if number.is_multiple_of(one_in) { many } else { [inputs; 3] };
        loops::enough_is_enough(number, widths, counts, tally);
        let tally = Tally::of(&mut tallies, "trip_count: a back edge is taken as often as is said", widths);
        loops::counts_are_right(number, widths, [inputs, inputs, 1], tally);
        loops::answers_hold(number, widths, few, &mut tallies);
    }
    tallies
}
