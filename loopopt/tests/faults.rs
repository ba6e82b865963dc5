//! Does the oracle find what is wrong? Each fault is a mistake made on purpose in one pass (`loopopt::fault`); the generator
//! and the oracle have to find it within as many programs as the short fuzz run has.

use loopopt::fault::{self, Fault};
use loopopt::fuzzing::{Body, Statistics};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Programs in the short run.
const PROGRAMS: u64 = 20_000;

#[test]
fn every_fault_is_found() {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(&fault) = Fault::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let programs = programs_until_found(fault);
                    found.lock().expect("no thread panics").push((fault, programs));
                }
            });
        }
    });
    let mut found = found.into_inner().expect("no thread panics");
    found.sort_by_key(|&(fault, _)| Fault::ALL.iter().position(|&other| other == fault));
    for (fault, programs) in &found {
        match programs {
            Some(programs) => println!("{fault:?}: found by program {programs}"),
            None => println!("{fault:?}: not found in {PROGRAMS} programs"),
        }
    }
    let missed: Vec<_> = found.iter().filter(|(_, programs)| programs.is_none()).collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
}

/// How many programs it takes to find `fault`.
fn programs_until_found(fault: Fault) -> Option<u64> {
    let body = Body::named("pipeline").expect("the pipeline has a body");
    // The panics of broken passes are findings, not news.
    let mut statistics = Statistics::default();
    (0..PROGRAMS)
        .find(|&seed| fault::with(fault, || body.run_seed(seed, &mut statistics)).is_err())
        .map(|seed| seed + 1)
}
