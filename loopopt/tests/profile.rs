//! Profiles: what is recorded is what happened, and what is recorded elsewhere is ignored.

use anyhow::{Context as _, Result, ensure};
use loopopt::oracle::{Case, Pipeline, Program, Settings, check};
use loopopt::profile::{LoopProfile, Profile, Profiling, Recorder};
use loopopt::{Options, oracle::Compiled};
use std::sync::Arc;

/// For each `i` below `v0`: if `i` is below `v1`, a call, and then a loop of `v2` iterations that divides by `v2`.
const NEST: &str = "function %f(i64, i64, i64) -> i64 {
        fn0 = %host(i64) -> i64 system_v
    block0(v0: i64, v1: i64, v2: i64):
        v3 = iconst.i64 0
        v4 = iconst.i64 1
        jump block1(v3, v3)
    block1(v5: i64, v6: i64):
        v7 = icmp ult v5, v1
        brif v7, block2, block3(v6)
    block2:
        v8 = call fn0(v6)
        jump block3(v8)
    block3(v9: i64):
        jump block4(v3, v9)
    block4(v10: i64, v11: i64):
        v12 = udiv v11, v2
        v13 = iadd v12, v10
        v14 = iadd v10, v4
        v15 = icmp ult v14, v2
        brif v15, block4(v14, v13), block5
    block5:
        v16 = iadd v5, v4
        v17 = icmp ult v16, v0
        brif v17, block1(v16, v13), block6
    block6:
        return v13
    }";

fn with(profiling: Profiling) -> Options {
    let mut options = Options::default();
    options.verify_each_pass = true;
    options.select_max_insts_per_call = 0;
    options.profiling = profiling;
    options
}

/// What is recorded of these calls.
fn record(text: &str, calls: &[&str]) -> Result<Profile> {
    let recorder = Arc::new(Recorder::new());
    let program = Program::parse(text)?;
    let options = with(Profiling::Record(recorder.clone()));
    let mut compiled = Compiled::new(&program, Pipeline::LoopOpt(&options), Settings::default())?;
    for call in calls {
        compiled.observe(&program.parse_call(call)?, &[0; 64])?;
    }
    Ok(recorder.profile())
}

fn loops(profile: &Profile) -> Result<&[LoopProfile]> {
    Ok(&profile.functions.get("%f").context("%f was recorded")?.loops)
}

#[test]
fn counts_are_those_of_the_run() -> Result<()> {
    let profile = record(NEST, &["f(10, 2, 3)", "f(1, 0, 3)", "f(100, 5, 40)"])?;
    let [outer, inner] = loops(&profile)? else { panic!("a nest has two loops: {profile:?}") };
    assert_eq!(outer.back_edges, 9 + 99);
    // Never, 8 to 15 times, 64 to 127 times.
    let counted: Vec<_> = outer.exit_counts.iter().enumerate().filter(|&(_, &count)| count > 0).collect();
    assert_eq!(counted, [(0, &1), (4, &1), (7, &1)]);
    assert_eq!(outer.blocks, [2 + 5], "the block that calls");
    assert_eq!(inner.back_edges, 11 * 2 + 100 * 39);
    assert_eq!(inner.entries(), 111);
    assert_eq!(inner.usual_back_edges(), Some(35));
    let divisors: Vec<_> = outer.values.iter().filter(|value| value.dominant() == Some((3, 2))).collect();
    assert_eq!(divisors.len(), 1, "{outer:?}");
    assert_eq!(divisors[0].total, 3);
    assert!(inner.values.is_empty(), "the nest as a whole does not change what it divides by");
    Ok(())
}

/// Four places, of which the last one is for newcomers.
#[test]
fn the_most_frequent_values_stay_in_the_table() -> Result<()> {
    let others: Vec<String> = (20..60).map(|divisor| format!("f(2, 0, {divisor})")).collect();
    let mut calls = vec!["f(2, 0, 9)", "f(2, 0, 8)", "f(2, 0, 7)"];
    for other in &others {
        calls.extend([other.as_str(), "f(2, 0, 8)"]);
    }
    let profile = record(NEST, &calls)?;
    let value = loops(&profile)?[0].values.iter().find(|value| value.top.iter().any(|&(number, _)| number == 8));
    let value = value.context("the divisor was recorded")?;
    assert_eq!(value.dominant(), Some((8, 41)));
    assert_eq!(value.total, 83);
    Ok(())
}

/// The same results with what was recorded, with nothing, and with what was recorded of another function of the name.
#[test]
fn any_profile_leaves_the_results() -> Result<()> {
    let other = NEST.replace("iadd v12, v10", "isub v12, v10");
    let program = Program::parse(NEST)?;
    let calls = ["f(10, 2, 3)", "f(1, 0, 3)", "f(100, 5, 40)", "f(7, 7, 1)", "f(3, 1, 0)"];
    let case = |call: &&str| Ok(Case { call: program.parse_call(call)?, memory: vec![0; 64] });
    let cases: Vec<Case> = calls.iter().map(case).collect::<Result<_>>()?;
    for (profile, fires) in [
        (record(NEST, &["f(100, 2, 3)"])?, true),
        (Profile::default(), false),
        (record(&other, &["f(100, 2, 3)"])?, false),
    ] {
        let options = with(Profiling::Use(Arc::new(profile)));
        let agreement = check(&program, &cases, &options)?;
        ensure!(agreement.compared == calls.len(), "all calls end");
        let fired = agreement.reports[0].1.remarks.fired_counts();
        assert_eq!(fired.contains_key("specialize"), fires, "{fired:?}");
    }
    Ok(())
}

/// Two compilations of a function are one function for the profile.
#[test]
fn compilations_are_added_up() -> Result<()> {
    let recorder = Arc::new(Recorder::new());
    let program = Program::parse(NEST)?;
    for _ in 0..2 {
        let options = with(Profiling::Record(recorder.clone()));
        let mut compiled = Compiled::new(&program, Pipeline::LoopOpt(&options), Settings::default())?;
        compiled.observe(&program.parse_call("f(10, 2, 3)")?, &[0; 64])?;
    }
    let profile = recorder.profile();
    assert_eq!(loops(&profile)?[0].back_edges, 18);
    assert_eq!(Profile::from_json(&profile.to_json())?, profile);
    for text in ["", "{}", "[]", r#"{"version":2,"functions":{}}"#, r#"{"version":1,"functions":{"f":{"loops":[7]}}}"#]
    {
        assert!(Profile::from_json(text).is_err(), "{text}");
    }
    Ok(())
}

/// The lines of the guide are those of the module's example, which is a test. Not in a package of the library alone, which is without the guide.
#[test]
fn the_guide_has_lines_of_the_example() {
    let Ok(guide) = std::fs::read_to_string("../docs/guide.md") else { return };
    let example = include_str!("../src/profile/mod.rs");
    let (_, profiles) = guide.split_once("## Profiles").expect("it speaks of profiles");
    let snippet =
        profiles.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).expect("it has a snippet");
    for line in snippet.lines().filter(|line| !line.is_empty() && !line.starts_with("//")) {
        assert!(example.contains(&format!("//! {line}\n")), "the example has no line `{line}`");
    }
}
