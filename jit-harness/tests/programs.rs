//! Every sample program does what its reference says, in all arms, and all of its while loops are rotated.

use jit_harness::agree::{Verdict, agree};
use jit_harness::arms::Arms;
use jit_harness::subject::Subject;
use loopopt::oracle::{Compiled, Expectation, Outcome, Pipeline, Settings};
use loopopt::{Options, Remark};

fn subjects() -> Vec<Subject> {
    Subject::samples().expect("the sample programs are valid")
}

#[test]
fn all_arms_agree_on_both_inputs_and_with_the_reference() {
    agree_on_both_inputs(subjects(), &Options::default());
}

#[test]
fn what_rewrites_rest_on_holds_on_both_inputs() {
    let mut options = Options::default();
    options.assert_claims = true;
    agree_on_both_inputs(subjects(), &options);
}

#[test]
fn what_is_rewritten_by_hand_does_the_same() {
    agree_on_both_inputs(rewritten(), &Options::default());
}

/// The sample programs that somebody has rewritten by hand, each to be compared with that.
fn rewritten() -> Vec<Subject> {
    Subject::all_against_hand(subjects()).expect("what is rewritten by hand is valid")
}

fn agree_on_both_inputs(subjects: Vec<Subject>, options: &Options) {
    for mut subject in subjects {
        subject.options = options.clone();
        let name = &subject.name;
        let agreed = match agree(&subject).unwrap_or_else(|error| panic!("{name}: {error:#}")) {
            Verdict::Agreed(agreed) => agreed,
            Verdict::Differs(what) | Verdict::Failed(what) => panic!("{name}: {what}"),
        };
        // Makes the large call with every arm at every placement, and compares with the reference.
        let arms = Arms::new(&agreed).unwrap_or_else(|error| panic!("{name}: {error:#}"));
        if let Err(what) = arms {
            panic!("{name}: {what}");
        }
    }
}

#[test]
fn the_reference_is_right_on_the_small_input() {
    for subject in subjects().into_iter().chain(rewritten()) {
        let name = &subject.name;
        let (values, memory) = subject.expected(false).expect("sample programs have a reference");
        let options = Options::default();
        let pipelines = [Pipeline::None, Pipeline::Speed, Pipeline::LoopOpt(&options)];
        let programs =
            [Some(&subject.program), subject.unchecked.as_ref(), subject.by_hand.as_ref()].into_iter().flatten();
        for (program, pipeline) in programs.flat_map(|program| pipelines.map(|pipeline| (program, pipeline))) {
            let mut compiled = Compiled::new(program, pipeline, Settings::default()).expect("it compiles");
            let seen = compiled.observe(&subject.small.call, &subject.small.memory).expect("it can be called");
            match seen.outcome {
                Outcome::Returned(seen) => assert!(Expectation::Equal(values.clone()).holds(&seen), "{name}: {seen:?}"),
                other => panic!("{name}: {other}"),
            }
            assert_eq!(seen.memory, memory, "{name}");
        }
    }
}

/// A loop that dispatches is as fast with its test at the top, and says so.
#[test]
fn every_while_loop_is_rotated() {
    let options = Options::default();
    let mut wrong = Vec::new();
    for subject in subjects() {
        let sample = subject.sample.expect("it is a sample program");
        let dispatching = usize::from(sample.tags.contains(&"dispatch"));
        let expected = sample.while_loops - dispatching;
        let compiled = Compiled::new(&subject.program, Pipeline::LoopOpt(&options), Settings::default())
            .unwrap_or_else(|error| panic!("{}: {error:#}", subject.name));
        let reports = || compiled.functions().iter().filter_map(|function| function.report.as_ref());
        let fired = |pass| -> usize {
            reports().map(|report| report.remarks.fired_counts().get(pass).copied().unwrap_or(0)).sum()
        };
        // After its poll, a loop that is strip-mined tests at its top, too.
        let (rotated, expected) = (fired("rotate"), expected + fired("strip_mine"));
        // So may one of which a condition was joined.
        if !(expected..=expected + fired("thread_jumps")).contains(&rotated) {
            wrong.push(format!("{}: {rotated} of {expected} while loops are rotated", subject.name));
        }
        let dispatches = |remark: &&Remark| matches!(remark.verdict, loopopt::Verdict::Declined { reason, .. } if reason == "dispatch-loop");
        let said: usize = reports().map(|report| report.remarks.iter().filter(dispatches).count()).sum();
        if said != dispatching {
            wrong.push(format!("{}: {said} of {dispatching} loops dispatch", subject.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
