//! A trap in iteration k is the same with loopopt: its code, its place, and the memory that it leaves.
//!
//! Each checked program says which of its inputs make its small call trap, and with which values: a length of `k` makes a walk
//! trap when it reaches the element `k`. So there is a trap in the first iteration, the second, the last, and none in a loop
//! that just fits.

use bench_programs::{Input, Limit, Program, Source, all};
use jit_harness::subject::{Subject, case};
use loopopt::Options;
use loopopt::oracle::{Case, Compiled, Outcome, Pipeline, Settings, check};

/// Programs whose checks cannot fail: the loop's own test is against the same length.
const NEVER_TRAP: &[&str] =
    &["sum-checked", "fnv-hash", "crc32-bitwise", "atoi", "invariant-branch", "struct-fields", "binary-search"];

/// The checked programs with their limits.
fn checked() -> impl Iterator<Item = (&'static Program, &'static [Limit])> {
    all().iter().filter_map(|program| match program.source {
        Source::Checked { limits, .. } => Some((program, limits)),
        _ => None,
    })
}

/// The small call with this value in the place of the limit.
fn limited(program: &Program, limit: &Limit, value: i64) -> Case {
    case(program, limit.set((program.small)(), value))
}

/// How the call ends without loopopt.
fn outcome(subject: &Subject, pipeline: Pipeline<'_>, case: &Case) -> Outcome {
    let mut compiled =
        Compiled::new(&subject.program, pipeline, Settings::default()).expect("the program can be compiled");
    compiled.observe(&case.call, &case.memory).expect("it can be called").outcome
}

#[test]
fn every_check_that_can_fail_has_a_limit() {
    for (program, limits) in checked() {
        assert_eq!(limits.is_empty(), NEVER_TRAP.contains(&program.name), "{}", program.name);
    }
}

/// The baseline traps where it is said to, and nowhere else. Optimized or not, it does so at the same place: only then does the
/// oracle compare places.
#[test]
fn limits_are_where_they_are_said_to_be() {
    for (program, limits) in checked() {
        let subject = Subject::of_sample(program).expect("the sample is valid");
        for limit in limits {
            for value in limit.traps.clone() {
                let case = limited(program, limit, value);
                let plain = outcome(&subject, Pipeline::None, &case);
                let outcome = outcome(&subject, Pipeline::Speed, &case);
                assert_eq!(plain, outcome, "{}: {:?} = {value}", program.name, limit.place);
                let Outcome::Trapped { srcloc, .. } = outcome else {
                    panic!("{}: {:?} = {value}: {outcome}", program.name, limit.place)
                };
                assert!(!srcloc.is_default(), "{}: {:?} = {value}: no location", program.name, limit.place);
            }
            let outcome = outcome(&subject, Pipeline::Speed, &limited(program, limit, limit.passes));
            assert!(matches!(outcome, Outcome::Returned(_)), "{}: {:?}: {outcome}", program.name, limit.place);
        }
    }
}

/// All arms do the same on each of the calls: those that trap and those that just do not.
#[test]
fn traps_are_the_same_in_every_iteration() {
    let mut regardless = Options::default();
    regardless.ignore_cost = true;
    let settings: Vec<Options> =
        [Options::default(), regardless].into_iter().chain((0..3).map(Options::stress)).collect();
    for (program, limits) in checked() {
        let subject = Subject::of_sample(program).expect("the sample is valid");
        let cases: Vec<Case> = limits
            .iter()
            .flat_map(|limit| limit.traps.clone().chain([limit.passes]).map(|value| limited(program, limit, value)))
            .collect();
        for options in &settings {
            let agreement =
                check(&subject.program, &cases, options).unwrap_or_else(|error| panic!("{}: {error:#}", program.name));
            assert_eq!(agreement.compared, cases.len(), "{}", program.name);
        }
    }
}

/// Traps come in more than one iteration, and the calls leave more than one memory: otherwise not much would be tested.
#[test]
fn traps_come_in_several_iterations() {
    let writes = |input: &Input, program: &Program| {
        let mut memory = input.memory.clone();
        (program.reference)(input, &mut memory);
        memory != input.memory
    };
    let mut several = 0;
    for (program, limits) in checked() {
        let subject = Subject::of_sample(program).expect("the sample is valid");
        let mut compiled =
            Compiled::new(&subject.program, Pipeline::Speed, Settings::default()).expect("the program can be compiled");
        if !writes(&(program.small)(), program) {
            continue;
        }
        for limit in limits {
            let memories = limit.traps.clone().map(|value| {
                let Case { call, memory } = limited(program, limit, value);
                compiled.observe(&call, &memory).expect("it can be called").memory
            });
            let memories: std::collections::HashSet<Vec<u8>> = memories.collect();
            several += usize::from(memories.len() > 2);
        }
    }
    assert!(several >= 8, "{several} programs only");
}
