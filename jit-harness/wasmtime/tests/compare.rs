//! The comparison sees what differs: here the two arms are two programs.

use loopopt::Options;
use loopopt_wasmtime::arm::{CompiledArm, Program, Setup};
use loopopt_wasmtime::guest::Call;
use loopopt_wasmtime::trial::{Compared, Pair};
use loopopt_wasmtime::world::World;

fn compare(mode: &str, call: &Call, sources: [&str; 2]) -> Compared {
    let setup = Setup::new(mode.parse().expect("it exists"), Options::default());
    let [baseline, loopopt] = sources.map(|source| {
        let program = Program::new("test".to_owned(), format!("(module {source})").as_bytes()).expect("it is right");
        CompiledArm::new(&program, &setup, jit_harness::schedule::Arm::LoopOpt).expect("it compiles")
    });
    Pair { baseline, loopopt }.compare(call).expect("it can be compared")
}

fn difference(mode: &str, sources: [&str; 2]) -> String {
    let call = Call { invoke: Some(("f".to_owned(), Vec::new())), ..Call::default() };
    compare(mode, &call, sources).difference.expect("they differ")
}

#[test]
fn results() {
    let what = difference(
        "guard",
        [r#"(func (export "f") (result i32) (i32.const 1))"#, r#"(func (export "f") (result i32) (i32.const 2))"#],
    );
    assert_eq!(what, "it returned 1 without loopopt, and returned 2 with it");
}

#[test]
fn memories_that_nobody_exports() {
    let what = difference(
        "guard",
        [
            r#"(memory 1) (func (export "f") (i32.store (i32.const 65532) (i32.const 1)))"#,
            r#"(memory 1) (func (export "f") (i32.store (i32.const 65532) (i32.const 2)))"#,
        ],
    );
    assert_eq!(what, "memory 0 is another with loopopt");
}

#[test]
fn memories_at_a_trap() {
    let what = difference(
        "explicit",
        [
            r#"(memory 1) (func (export "f") (i32.store (i32.const 8) (i32.const 1)) unreachable)"#,
            r#"(memory 1) (func (export "f") (i32.store (i32.const 9) (i32.const 1)) unreachable)"#,
        ],
    );
    assert_eq!(what, "memory 0 is another with loopopt");
}

#[test]
fn shared_memories() {
    let what = difference(
        "guard",
        [
            r#"(memory (export "m") 1 1 shared) (func (export "f") (i32.store (i32.const 8) (i32.const 1)))"#,
            r#"(memory (export "m") 1 1 shared) (func (export "f") (i32.store (i32.const 8) (i32.const 3)))"#,
        ],
    );
    assert_eq!(what, "memory 0 is another with loopopt");
}

#[test]
fn globals_that_nobody_exports() {
    let what = difference(
        "guard",
        [
            r#"(global $g (mut f64) (f64.const 0)) (func (export "f") (global.set $g (f64.const 0)))"#,
            r#"(global $g (mut f64) (f64.const 0)) (func (export "f") (global.set $g (f64.const -0)))"#,
        ],
    );
    assert_eq!(what, "global 0 is 0.0 without loopopt, and -0.0 with it");
}

#[test]
fn fuel() {
    let what = difference("fuel", [r#"(func (export "f") nop)"#, r#"(func (export "f") (drop (i32.const 1)))"#]);
    assert!(what.starts_with("fuel left is "), "{what}");
}

#[test]
fn traps() {
    let what = difference(
        "guard",
        [r#"(func (export "f") unreachable)"#, r#"(func (export "f") (drop (i32.div_s (i32.const 1) (i32.const 0))))"#],
    );
    assert!(what.contains("unreachable") && what.contains("integer-division-by-zero"), "{what}");
}

#[test]
fn exit_codes_and_output() {
    let program = |code, text| {
        format!(
            r#"(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
               (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
               (memory (export "memory") 1) (data (i32.const 64) "{text}") (data (i32.const 0) "\40\00\00\00\02\00\00\00")
               (func (export "_start")
                 (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 32))) (call $exit (i32.const {code})))"#
        )
    };
    let call = Call { world: World { args: vec!["test".to_owned()], ..World::default() }, ..Call::default() };
    let compared = compare("guard", &call, [&program(3, "ab"), &program(4, "ab")]);
    assert_eq!(compared.seen.stdout, b"ab");
    assert_eq!(
        compared.difference.expect("they differ"),
        "it exited with 3 without loopopt, and exited with 4 with it"
    );
    let compared = compare("guard", &call, [&program(3, "ab"), &program(3, "aa")]);
    assert_eq!(compared.difference.expect("they differ"), "its standard output differs from byte 1 on");
}

#[test]
fn a_used_up_stack_is_not_compared() {
    let call = Call { invoke: Some(("f".to_owned(), Vec::new())), ..Call::default() };
    let endless = r#"(memory 1) (func $f (export "f") (i32.store (i32.const 0) (i32.const 1)) (call $f) (call $f))"#;
    let other = r#"(memory 1) (func $f (export "f") (i32.store (i32.const 0) (i32.const 2)) (call $f) (call $f))"#;
    let compared = compare("guard", &call, [endless, other]);
    assert!(compared.difference.is_none() && !compared.is_comparable());
}
