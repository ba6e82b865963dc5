//! `profile`: what is recorded, and what becomes of it.

mod common;

use common::{Bench, text};

/// A division by what is nearly always 10.
const QUOTIENTS: &str = "function %quotients(i64, i64, i64) -> i64 {
block0(v0: i64, v1: i64, v2: i64):
    v3 = iconst.i64 0
    v4 = iconst.i64 1
    jump block1(v3, v3)
block1(v5: i64, v6: i64):
    v7 = icmp ult v5, v1
    brif v7, block2, block3
block2:
    v8 = udiv v5, v2
    v9 = iadd v6, v8
    v10 = iadd v5, v4
    jump block1(v10, v9)
block3:
    return v6
}
; run: %quotients(mem, 30, 10) == 30
; bench: %quotients(mem, 5000, 10)
";

#[test]
fn what_is_recorded_is_used() {
    let bench = Bench::new();
    let file = bench.file("quotients.clif", QUOTIENTS);
    let output = bench.prints(&["profile", &file, "--no-time", "--out", "profile.json"]);
    assert_eq!(output, "recorded loops: 1, of functions: 1\n");
    let explained = bench.prints(&["explain", &file, "--profile", "profile.json"]);
    assert!(explained.contains("specialize: done: a version for v2 == 10"), "{explained}");
    assert!(!bench.prints(&["explain", &file]).contains("specialize"));
    let ran = bench.prints(&["run", &file, "--profile", "profile.json", "--assert-claims"]);
    assert_eq!(ran, "line 17: %quotients(mem, 30, 10): ok\n");
}

#[test]
fn loopopt_is_timed_with_the_profile_and_without() {
    let bench = Bench::new();
    let file = bench.file("quotients.clif", QUOTIENTS);
    for (given, what) in [
        (&[][..], "baseline: loopopt without the profile"),
        (&["--recording"], "baseline: Cranelift; loopopt: code that"),
    ] {
        let args = [&["profile", "--quick", &file], given].concat();
        let output = bench.measures(&args);
        assert!(output.contains(what) && output.contains("quotients.clif:18"), "{output}");
    }
}

#[test]
fn a_profile_that_is_none_is_an_error_in_one_line() {
    let bench = Bench::new();
    let file = bench.file("quotients.clif", QUOTIENTS);
    bench.file("other.json", "{\"version\":9,\"functions\":{}}");
    for (profile, what) in
        [("none.json", "No such file"), ("other.json", "a profile of version 9, and not 1"), (&*file, "not a profile")]
    {
        let output = bench.run(&["run", &file, "--profile", profile]);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2));
        assert!(error.contains(what) && error.contains("profile --out") && error.lines().count() == 1, "{error}");
    }
}
