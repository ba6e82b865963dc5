//! Holds the engines to runs of many small loops, or prints what they rest on as formulas for a solver.
//!
//! `lemmas [shapes] [first shape] [numbers for each parameter] [one shape in so many with all numbers]`, or `lemmas formulas`.

use loopopt::analysis::lemmas::{Effort, check, formulas};
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "formulas") {
        formulas().iter().for_each(|formula| print!("{formula}"));
        return ExitCode::SUCCESS;
    }
    let number = |index: usize, default: u64| args.get(index).map_or(default, |arg| arg.parse().expect("a number"));
    let effort = Effort {
        shapes: number(0, 12_000),
        first: number(1, 0),
        inputs: number(2, 16) as usize,
        one_in: number(3, 150),
    };
    let tallies = check(effort);
    for tally in &tallies {
        for (shape, why, text) in tally.failures.iter().take(8) {
            println!("; {}\n; shape {shape}: {why}\n{text}", tally.name);
        }
    }
    tallies.iter().for_each(|tally| println!("{tally}"));
    ExitCode::from(u8::from(tallies.iter().any(|tally| !tally.failures.is_empty())))
}
