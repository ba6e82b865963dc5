//! `bench` from outside: what it prints, keeps and writes to files.

mod common;

use common::{Bench, GOOD, TRAPS, text};
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

#[test]
fn bench_writes_its_record() {
    let bench = Bench::new();
    let output = bench.measures(&["bench", "--quick", "--filter", "sum", "--json", "out.json"]);
    assert!(output.contains("geometric mean ") && output.contains("noise floor: "), "{output}");
    let record = json(&bench, "out.json");
    for key in ["geomean", "worst", "noise_geomean", "checked_geomean", "vs_unchecked_geomean", "code_growth"] {
        assert!(record[key].is_f64(), "{key}: {record}");
    }
    for part in ["code of all programs together: ", "with checks: geometric mean ", "vs unchecked"] {
        assert!(output.contains(part), "{part}: {output}");
    }
    assert!(record["cpu"].is_string() && record["complete"] == true, "{record}");
    let programs = record["programs"].as_array().expect("a list");
    let expected = bench_programs::all().iter().filter(|program| program.name.contains("sum")).count();
    assert_eq!(programs.len(), expected);
    for program in programs {
        assert_eq!(program["agree"], true, "{program}");
        assert!(program["name"].is_string() && program["tags"].is_array() && program["fired"].is_object(), "{program}");
        for key in ["baseline_ns", "loopopt_ns", "ratio", "low", "high", "noise", "best"] {
            assert!(program[key].is_f64(), "{key}: {program}");
        }
        for key in ["code_bytes", "compile_ns", "loop_insts", "loop_stack_accesses", "spread", "placements_ns"] {
            assert_eq!(program[key].as_array().map(Vec::len), Some(2), "{key}: {program}");
        }
        let is_checked = program["tags"].as_array().is_some_and(|tags| tags.contains(&"checked".into()));
        assert_eq!(program["vs_unchecked"].is_f64(), is_checked, "{program}");
        let [low, ratio, high] = ["low", "ratio", "high"].map(|key| program[key].as_f64().expect("a number"));
        assert!(low <= ratio && ratio <= high, "{program}");
    }
}

#[test]
fn bench_compares_with_what_is_rewritten_by_hand() {
    let bench = Bench::new();
    let output = bench.measures(&["bench", "--quick", "--by-hand", "--filter", "boxed", "--json", "out.json"]);
    assert!(output.starts_with("baseline: rewritten by hand, with loopopt"), "{output}");
    let record = json(&bench, "out.json");
    let programs = record["programs"].as_array().expect("a list");
    let names: Vec<_> = programs.iter().map(|program| &program["name"]).collect();
    assert_eq!(names, ["boxed-lookup", "boxed-sum"]);
    for program in programs {
        assert_eq!(program["agree"], true, "{program}");
        assert!(program["vs_unchecked"].is_null(), "{program}");
    }
}

#[test]
fn bench_times_the_calls_of_a_file() {
    let bench = Bench::new();
    let file = bench.file("good.clif", GOOD);
    bench.measures(&["bench", &file, "--quick", "--passes", "rotate,layout", "--json", "out.json"]);
    let record = json(&bench, "out.json");
    assert!(record["checked_geomean"].is_null() && record["code_growth"].is_f64(), "{record}");
    assert_eq!(record["programs"][0]["name"], "good.clif:20");
    assert_eq!(record["programs"].as_array().map(Vec::len), Some(1));
    let file = bench.file("runs.clif", GOOD.replace("; bench", "; no bench"));
    let output = bench.measures(&["bench", &file, "--quick"]);
    for line in ["runs.clif:18", "runs.clif:19", "runs.clif:28"] {
        assert!(output.contains(line), "{output}");
    }
}

#[test]
fn bench_goes_by_the_options_of_a_file() {
    let bench = Bench::new();
    let fired = |line: &str, more: &[&str]| {
        let file = bench.file("options.clif", format!("{line}\n{GOOD}"));
        bench.measures(&[&["bench", &file, "--quick", "--json", "out.json"], more].concat());
        json(&bench, "out.json")["programs"][0]["fired"].as_object().expect("an object").len()
    };
    assert!(fired("", &[]) > 1);
    assert_eq!(fired("; options: fuel=0", &[]), 0);
    assert_eq!(fired("; options: fuel=0", &["--fuel", "1"]), 1);
}

#[test]
fn bench_times_nothing_that_returns_another_value() {
    let bench = Bench::new();
    for text in [GOOD.replace("== 10", "== 11"), GOOD.replace("== 10", "== 11").replace("; bench", "; no bench")] {
        let file = bench.file("wrong.clif", text);
        let output = bench.run(&["bench", &file, "--quick"]);
        assert_eq!(output.status.code(), Some(1));
        let output = self::text(&output.stdout);
        assert!(output.contains("FAILED: line 18: %sum(mem, 5): 10 (i64), expected 11"), "{output}");
    }
}

/// With a C compiler there is another column, without one there is a line that says so.
#[test]
fn bench_times_c_kernels() {
    let bench = Bench::new();
    let output = bench.measures(&["bench", "--quick", "--filter", "rare-call", "--native", "--json", "out.json"]);
    let native = &json(&bench, "out.json")["programs"][0]["native_ns"];
    assert!(native.as_f64().is_some_and(|ns| ns > 0.0) || output.contains("no C compiler"), "{output}");
}

#[test]
fn bench_measures_the_compiler() {
    let bench = Bench::new();
    let output = bench.measures(&["bench", "--compile-time", "--quick", "--json", "out.json"]);
    assert!(output.contains("enable_verifier=false") && output.contains("peak memory"), "{output}");
    assert!(output.contains("loop forests"), "{output}");
    let record = json(&bench, "out.json");
    assert_eq!(record["loop_free"]["loops"], 0);
    let growth = record["growth"].as_array().expect("a list");
    let blocks: Vec<_> = growth.iter().map(|row| row["blocks"].as_u64().expect("a number")).collect();
    assert!(blocks[0] >= 5_000 && blocks[1] >= 15_000 && blocks[2] >= 50_000, "{blocks:?}");
    for row in growth.iter().chain([&record["loop_free"], &record["samples"]]) {
        assert!(row["baseline_ns"].is_f64() && row["loopopt_ns"].is_f64() && row["run_ns"].is_f64(), "{row}");
        assert_eq!(row["peak_bytes"].as_array().map(Vec::len), Some(2), "{row}");
    }
}

fn json(bench: &Bench, name: &str) -> Value {
    let text = fs::read_to_string(bench.path(name)).expect("the record was written");
    serde_json::from_str(&text).expect("the record is JSON")
}

#[test]
fn scaling_shows_each_direction() {
    let bench = Bench::new();
    let output = bench.measures(&["bench", "--scaling", "--quick", "--filter", "depth", "--json", "scaling.json"]);
    assert_eq!(output.lines().filter(|line| line.contains(" %, ")).count(), 4, "{output}");
    let record = json(&bench, "scaling.json");
    assert_eq!(record["directions"][0]["name"], "depth");
    assert_eq!(record["directions"][0]["rows"].as_array().map(Vec::len), Some(4));
    bench.complains(&["bench", "--scaling", "--filter", "width"], &["depth", "parameters"]);
}

#[test]
fn programs_that_trap_cannot_be_timed() {
    let bench = Bench::new();
    let file = bench.file("traps.clif", TRAPS);
    bench.complains(&["bench", &file, "--quick"], &["traps.clif:6: ", "heap_oob", "%check"]);
}

/// A folder with a run of %sum of `good.clif` that is kept as `first`.
fn with_a_run() -> (Bench, String) {
    let bench = Bench::new();
    let file = bench.file("good.clif", GOOD);
    bench.measures(&["bench", &file, "--quick", "--passes", "layout", "--save", "first"]);
    (bench, file)
}

#[test]
fn bench_compares_with_a_run_that_was_kept() {
    let (bench, file) = with_a_run();
    assert!(bench.path("target/loopopt-bench/first.json").exists());
    let output = bench.measures(&["bench", &file, "--quick", "--compare", "first", "--save", "./second.json"]);
    assert!(output.contains("compared with first") && output.contains("1 program in both runs: "), "{output}");
    assert!(output.contains("options of first: --quick --passes layout; of this run: --quick\n"), "{output}");
    let row = output
        .lines()
        .filter(|line| line.trim_start().starts_with("good.clif:20 "))
        .nth(1)
        .expect("a row of the comparison");
    assert!(row.contains(" %") && ["≈", "faster", "slower"].iter().any(|mark| row.ends_with(mark)), "{row}");

    let other = bench.file("other.clif", GOOD);
    let output = bench.measures(&["bench", &file, &other, "--quick", "--compare", "second.json"]);
    assert!(output.contains("only in this run: other.clif:20") && !output.contains("options of"), "{output}");
    let output = bench.measures(&["bench", &other, "--quick", "--compare", "second.json"]);
    assert!(output.contains("no program is in both runs"), "{output}");
    assert!(output.contains("only in second.json: good.clif:20"), "{output}");
}

#[test]
fn runs_that_cannot_be_compared_with() {
    let (bench, file) = with_a_run();
    let kept = fs::read_to_string(bench.path("target/loopopt-bench/first.json")).expect("it was kept");
    let complains = |text: &str, words: &[&str]| {
        bench.file("run.json", text);
        bench.complains(&["bench", &file, "--quick", "--compare", "run.json"], words);
    };
    complains(&kept[..kept.len() / 2], &["run.json: ", "damaged"]);
    complains("", &["run.json: ", "damaged"]);
    complains(&kept.replace("\"version\": 1", "\"version\": 2"), &["run.json: ", "version 2"]);
    complains(&kept.replace("\"cpu\": \"", "\"cpu\": \"Another "), &["run.json: ", "another machine, Another "]);
    bench.complains(&["bench", &file, "--compare", "nobody"], &["target/loopopt-bench/nobody.json: ", "--save"]);
    bench.complains(&["bench", &file, "--save", "missing/run.json"], &["missing/run.json: "]);
    bench.complains(&["bench", "--scaling", "--save", "first"], &["--scaling", "--save"]);
}

#[test]
fn bench_writes_a_table_for_spreadsheets() {
    let bench = Bench::new();
    let file = bench.file("good.clif", GOOD.replace("; bench: %sum(mem, 20000)", ""));
    bench.measures(&["bench", &file, "--quick", "--csv", "out.csv", "--json", "out.json"]);
    let record = json(&bench, "out.json");
    let mut table = csv::Reader::from_path(bench.path("out.csv")).expect("it was written");
    let titles = table.headers().expect("it has titles").clone();
    let column = |title: &str| titles.iter().position(|other| other == title).expect("there is this column");
    let rows: Vec<_> = table.records().map(|row| row.expect("as long as the titles")).collect();
    let programs = record["programs"].as_array().expect("a list");
    assert_eq!(rows.len(), programs.len());
    for (row, program) in rows.iter().zip(programs) {
        assert_eq!(row[column("name")], *program["name"].as_str().expect("a name"));
        for title in ["baseline_ns", "loopopt_ns", "ratio", "low", "high", "noise", "best"] {
            assert_eq!(row[column(title)].parse().ok(), program[title].as_f64(), "{title}: {program}");
        }
        assert_eq!(row[column("loopopt_code_bytes")].parse().ok(), program["code_bytes"][1].as_u64(), "{program}");
    }
}

#[test]
fn bench_prints_what_it_has_when_it_is_interrupted() {
    let bench = Bench::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_jit-harness"));
    let args = ["bench", "--quick", "--json", "out.json", "--csv", "out.csv", "--save", "kept"];
    command.current_dir(bench.path(".")).args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary is there");
    let mut progress = BufReader::new(child.stderr.take().expect("it is a pipe")).lines();
    let first = progress.next().expect("it is long enough for a line").expect("it is text");
    assert!(first.contains(" %, ") && !first.starts_with("100"), "{first}");
    let so_far = json(&bench, "out.json");
    assert!(so_far["complete"] == false && so_far["programs"][0]["ratio"].is_f64(), "{so_far}");

    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().expect("there is a shell").success());
    let rest: Vec<_> = progress.collect();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{rest:?}");
    let output = text(&output.stdout);
    assert!(output.contains("geometric mean ") && output.contains("interrupted: these are "), "{output}");
    assert!(output.contains("the run is not saved") && !bench.path("target/loopopt-bench/kept.json").exists());
    let record = json(&bench, "out.json");
    let programs = record["programs"].as_array().map_or(0, Vec::len);
    assert!(record["complete"] == false && (1..bench_programs::all().len()).contains(&programs), "{record}");
    let table = fs::read_to_string(bench.path("out.csv")).expect("it was written");
    assert_eq!(table.lines().count(), programs + 1);
}
