//! `explain` from outside: what it says can be found in the file.

mod common;

use common::{Bench, text};
use serde_json::Value;
use std::collections::HashSet;

/// Numbers with gaps, comments, a check, a reduction, a loop-invariant value, a search.
const SPARSE: &str = "; two functions

function %checked(i64, i64, i64, i64) -> i64 {
block0(v0: i64, v1: i64, v2: i64, v77: i64): ; data, how many, length, cell
    v50 = iconst.i64 0
    v51 = iconst.i64 3

    v52 = iconst.i64 1
    jump block10(v50, v50)
block10(v600: i64, v61: i64):
    v62 = icmp ult v600, v1 ; goes on?
    brif v62, block20, block90
block20:
    ; the check
    v163 = icmp uge v600, v2
    trapnz v163, user1
    v164 = ishl v600, v51
    v165 = iadd v0, v164
    v166 = load.i64 v165 ; the element
    v170 = load.i64 v77
    v167 = imul v166, v61
    v172 = iadd v167, v170
    store v172, v77+8
    v168 = iadd v600, v52
    jump block10(v168, v172)
block90:
    return v61
}

function %find(i64, i64, i8) -> i64 {
block10(v100: i64, v101: i64, v102: i8):
    v110 = iconst.i64 0
    v111 = iconst.i64 1
    jump block20(v110)
block20(v200: i64):
    v201 = icmp ult v200, v101
    brif v201, block30, block90(v101)
block30:
    v300 = iadd v100, v200
    v301 = load.i8 v300
    v302 = icmp eq v301, v102
    brif v302, block90(v200), block40
block40:
    v401 = iadd v200, v111
    jump block20(v401)
block90(v900: i64):
    return v900
}
";

/// The names of values and blocks.
fn names(text: &str) -> HashSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let is_name = |word: &&str| {
        let number = word.strip_prefix("block").or_else(|| word.strip_prefix('v'));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    words.filter(is_name).collect()
}

#[test]
fn all_names_are_in_the_file() {
    let bench = Bench::new();
    let file = bench.file("sparse.clif", SPARSE);
    for args in [&["explain", &file][..], &["explain", &file, "--all"], &["explain", &file, "--json"]] {
        let output = bench.prints(args);
        let (known, shown) = (names(SPARSE), names(&output));
        assert!(shown.len() > 5 && shown.is_subset(&known), "{:?}: {output}", shown.difference(&known));
    }
    let output = bench.prints(&["explain", &file, "--passes", "rotate,elide_checks"]);
    assert!(output.contains("`trapnz` of `v600 uge v2` stays"), "the new header's parameter has a name: {output}");
}

#[test]
fn the_lines_of_values_are_shown() {
    let bench = Bench::new();
    let file = bench.file("sparse.clif", SPARSE);
    let output = bench.prints(&["explain", &file]);
    let lines: Vec<&str> = SPARSE.lines().collect();
    let mut places = 0;
    for line in output.lines().filter_map(|line| line.trim_start().strip_prefix("line ")) {
        let (number, shown) = line.split_once(": ").expect("a number and a text");
        let number: usize = number.parse().expect("a number");
        assert_eq!(shown, lines[number - 1].split(';').next().unwrap_or_default().trim());
        places += 1;
    }
    assert!(places > 3, "{output}");
    let json = bench.prints(&["explain", &file, "--json", "--passes", "rotate,elide_checks"]);
    let record: Value = serde_json::from_str(&json).expect("it is JSON");
    let remarks = record["functions"][0]["loops"][0]["remarks"].as_array().expect("a list").clone();
    let check = remarks.iter().find(|remark| remark["pass"] == "elide_checks").expect("it says something");
    let expected = serde_json::json!([{ "line": 10, "text": "block10(v600: i64, v61: i64):" }]);
    assert_eq!(check["places"], expected, "{check}");
}

#[test]
fn a_search_gets_advice() {
    let bench = Bench::new();
    let explain = |text: &str| {
        let file = bench.file("sparse.clif", text);
        let output = bench.prints(&["explain", &file, "--function", "find"]);
        output.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let words = explain(SPARSE);
    assert!(
        words.contains("partial_unroll: done: 4 iterations at a time, of 7 instructions each, with their tests"),
        "{words}"
    );
    // A large iteration does more with each element.
    let more: String = (500..520).map(|value| format!("    v{value} = rotl v{}, v200\n", value.max(501) - 1)).collect();
    let more = more.replacen("v500 = rotl v500", "v500 = uextend.i64 v301\n    v499 = rotl v500", 1);
    let large = SPARSE.replace("block40:\n", &format!("block40:\n{more}    store v519, v300+512\n"));
    let words = explain(&large);
    assert!(
        words.contains("partial_unroll: not done: ") && words.contains("(ends-early) what would help: "),
        "{words}"
    );
    // The advice is right: a search that ends in a cold block hardly ever ends early.
    let cold = SPARSE.replace("brif v302, block90(v200), block40", "brif v302, block50, block40");
    let cold = cold.replace("block90(v900: i64):", "block50 cold:\n    jump block90(v200)\nblock90(v900: i64):");
    let words = explain(&cold);
    assert!(words.contains("partial_unroll: done: ") && !words.contains("with their tests"), "{words}");
}

#[test]
fn the_samples_are_explained_too() {
    let bench = Bench::new();
    for program in bench_programs::all() {
        let output = bench.run(&["explain", program.name, "--all"]);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{}", program.name);
    }
}
