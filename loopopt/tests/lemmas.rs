//! The engines say nothing of small loops that a run of them does not show: `LOOPOPT_LEMMAS=<shapes>` tries more of them.

use loopopt::analysis::lemmas::{Effort, check};
use loopopt::fault::{self, Fault};
use std::env;

#[test]
fn the_engines_are_right_about_small_loops() {
    let shapes = env::var("LOOPOPT_LEMMAS").ok().map(|count| count.parse().expect("LOOPOPT_LEMMAS is a number"));
    let effort = Effort { shapes: shapes.unwrap_or(Effort::SHORT.shapes), ..Effort::SHORT };
    let tallies = check(effort);
    tallies.iter().for_each(|tally| println!("{tally}"));
    assert_eq!(tallies.len(), 8, "each engine is asked");
    for tally in &tallies {
        // An engine that says nothing is right, and not tested.
        assert!(tally.answered * 20 > tally.asked && tally.held * 20 > tally.cases, "too few answers: {tally}");
        for (shape, why, text) in tally.failures.iter().take(3) {
            println!("; {}\n; shape {shape}: {why}\n{text}", tally.name);
        }
    }
    assert!(tallies.iter().all(|tally| tally.failures.is_empty()), "an engine is wrong");
}

#[test]
fn a_quotient_of_what_wraps_is_seen() {
    let effort = Effort { shapes: Effort::SHORT.shapes / 2, ..Effort::SHORT };
    let tallies = fault::with(Fault::QuotientOfAnything, || check(effort));
    let wrong: Vec<_> = tallies.iter().filter(|tally| !tally.failures.is_empty()).map(|tally| tally.name).collect();
    assert_eq!(wrong, ["predication: what is required before a loop is enough"]);
}

#[test]
fn a_way_that_is_no_way_is_seen() {
    let effort = Effort { shapes: Effort::SHORT.shapes * 2, ..Effort::SHORT };
    let tallies = fault::with(Fault::ClampedEitherWay, || check(effort));
    let wrong: Vec<_> = tallies.iter().filter(|tally| !tally.failures.is_empty()).map(|tally| tally.name).collect();
    assert!(wrong.contains(&"prover: a comparison holds where it is said to"), "{wrong:?}");
}
