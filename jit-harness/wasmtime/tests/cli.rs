//! The binary: what it prints, and its exit codes.

use std::io::Write as _;
use std::process::{Command, Output};

/// Sums a memory; traps if it is asked for too much.
const SUM: &str = r#"(module (memory 1) (func (export "sum") (param $n i32) (result i32) (local $i i32) (local $s i32)
    (block $done (loop $l
      (br_if $done (i32.ge_u (local.get $i) (local.get $n)))
      (local.set $s (i32.add (local.get $s) (i32.load (i32.shl (local.get $i) (i32.const 2)))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br $l)))
    (local.get $s)))"#;

fn run(args: &[&str]) -> Output {
    let mut file = tempfile::Builder::new().suffix(".wat").tempfile().expect("there is room");
    file.write_all(SUM.as_bytes()).expect("there is room");
    let path = file.path().to_str().expect("the path is text");
    let args = args.iter().map(|&arg| if arg == "FILE" { path } else { arg });
    Command::new(env!("CARGO_BIN_EXE_loopopt-wasmtime")).args(args).output().expect("it starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a command that ends well.
fn fine(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{}{}", stdout(&output), String::from_utf8_lossy(&output.stderr));
    stdout(&output)
}

/// Runs a command that fails with one line.
fn fails(args: &[&str]) -> String {
    let output = run(args);
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn both_arms_agree() {
    let text = fine(&["run", "FILE", "--invoke", "sum", "100", "--mode", "all"]);
    assert_eq!(text.matches(" yes ").count(), 9, "{text}");
    assert!(text.contains("returned 0"), "{text}");
}

#[test]
fn a_trap_is_an_exit_code() {
    let output = run(&["run", "FILE", "--invoke", "sum", "20000"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stdout(&output).contains("trapped: memory-out-of-bounds in function 0 at 0x"), "{}", stdout(&output));
}

#[test]
fn what_cannot_be_done_is_one_line() {
    assert!(fails(&["run", "FILE", "--invoke", "product"]).contains("give one of these to --invoke: sum"));
    assert!(fails(&["run", "FILE", "--invoke", "sum"]).contains("the function takes 1 arguments, 0 are given"));
    assert!(fails(&["run", "FILE", "--invoke", "sum", "x"]).contains("argument `x`"));
    assert!(fails(&["run", "FILE", "--mode", "speed"]).contains("unknown mode `speed`"));
    assert!(fails(&["run", "nosuch.wasm"]).contains("nosuch.wasm"));
    assert!(fails(&["explain", "FILE", "--passes", "rotat"]).contains("unknown pass `rotat`"));
    assert!(fails(&[]).contains("no command"));
}

#[test]
fn figures_are_json() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("figures.json");
    let json = path.to_str().expect("the path is text");
    let text = fine(&["bench", "FILE", "--invoke", "sum", "16000", "--seconds", "0.01", "--json", json]);
    assert!(text.contains("geometric mean"), "{text}");
    let text = std::fs::read_to_string(&path).expect("it is written");
    assert!(text.contains("\"ratio\"") && text.contains("\"agree\": true"), "{text}");
    assert!(
        fine(&["bench", "FILE", "--record", "--invoke", "sum", "16000", "--seconds", "0.01", "--json", json])
            .contains("mean")
    );
    assert!(std::fs::read_to_string(&path).expect("it is written").contains("apply_profile"));
    let text = fine(&["compile-time", "FILE", "--rounds", "1", "--top", "1", "--json", json]);
    assert!(text.contains("all of loopopt") && text.contains("what grows most"), "{text}");
    assert!(text.contains("loop forests") && text.contains("several rounds"), "{text}");
    assert!(std::fs::read_to_string(&path).expect("it is written").contains("\"passes\""));
}

#[test]
fn loops_are_explained() {
    let text = fine(&["explain", "FILE"]);
    assert!(text.contains("function 0") && text.contains("rotate: done"), "{text}");
    assert!(text.contains("--all shows them") && !text.contains("(nothing-selected)"), "{text}");
    assert!(fine(&["explain", "FILE", "--all"]).contains("(nothing-selected)"));
    let text = fine(&["explain", "FILE", "--filter", "rotate", "--json"]);
    assert!(text.contains("\"pass\": \"rotate\"") && !text.contains("\"pass\": \"licm\""), "{text}");
    assert!(fails(&["explain", "FILE", "--filter", "rotat"]).contains("unknown pass `rotat`"));
    assert!(fine(&["bisect", "FILE", "--invoke", "sum", "3"]).contains("both arms agree"));
    assert!(fine(&["modes"]).contains("no-spectre"));
}
