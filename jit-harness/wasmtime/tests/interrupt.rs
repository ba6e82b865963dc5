//! Endless loops are stopped, in both arms and at the right time, whatever loopopt has made of them.

use loopopt::Options;
use loopopt_wasmtime::arm::{CompiledArm, Program, Setup};
use loopopt_wasmtime::guest::{Call, Guest};
use loopopt_wasmtime::mode::Mode;
use loopopt_wasmtime::observation::{Observation, Outcome};
use loopopt_wasmtime::programs::{Programs, Size};
use loopopt_wasmtime::trial::Pair;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// How long an endless loop runs before time is up.
const RUNS: Duration = Duration::from_millis(15);
/// Within which time it has to have stopped then.
const STOPS: Duration = Duration::from_secs(10);

/// Functions `f` that never return.
const ENDLESS: &[(&str, &str)] = &[
    ("nothing", "(func (export \"f\") (loop $l (br $l)))"),
    (
        "counter",
        "(func (export \"f\") (local $i i32)
           (loop $l (local.set $i (i32.add (local.get $i) (i32.const 1))) (br_if $l (i32.ge_s (i32.const 0) (i32.const -1)))
             (br $l)))",
    ),
    (
        "spin on a load",
        "(memory 1) (func (export \"f\") (loop $l (br_if $l (i32.eqz (i32.load (i32.const 64))))))",
    ),
    (
        "spin on a global",
        "(global $g (mut i32) (i32.const 0)) (func (export \"f\") (loop $l (br_if $l (i32.eqz (global.get $g)))))
         (func (export \"set\") (global.set $g (i32.const 1)))",
    ),
    (
        "spin on an atomic load",
        "(memory 1 1 shared) (func (export \"f\") (loop $l (br_if $l (i32.eqz (i32.atomic.load (i32.const 64))))))",
    ),
    (
        "nest",
        "(memory 1) (func (export \"f\") (local $i i32) (local $j i32)
           (loop $outer
             (local.set $i (i32.const 0))
             (loop $inner
               (i32.store (i32.shl (local.get $i) (i32.const 2)) (i32.add (local.get $i) (local.get $j)))
               (br_if $inner (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 1000))))
             (local.set $j (i32.add (local.get $j) (i32.load (i32.const 40))))
             (br $outer)))",
    ),
    (
        "invariant branch",
        "(memory 1) (global $g (mut i32) (i32.const 0)) (func (export \"f\") (local $i i32) (local $s i32)
           (loop $l
             (if (i32.eqz (global.get $g))
               (then (local.set $s (i32.add (local.get $s) (i32.load (i32.and (local.get $i) (i32.const 0xfff))))))
               (else (local.set $s (i32.xor (local.get $s) (local.get $i)))))
             (local.set $i (i32.add (local.get $i) (i32.const 4)))
             (i32.store (i32.const 8) (local.get $s))
             (br $l)))",
    ),
    (
        "call",
        "(memory 1) (func $g (param i32) (result i32) (i32.load (i32.and (local.get 0) (i32.const 0xffc))))
         (func (export \"f\") (local $i i32)
           (loop $l (local.set $i (i32.add (call $g (local.get $i)) (i32.add (local.get $i) (i32.const 1)))) (br $l)))",
    ),
];

fn settings() -> Vec<(String, Options)> {
    let mut ignore_cost = Options::default();
    ignore_cost.ignore_cost = true;
    ignore_cost.verify_each_pass = true;
    let mut all = vec![("by default".to_owned(), Options::default()), ("whatever it costs".to_owned(), ignore_cost)];
    all.extend((0..6).map(|seed| (format!("at random, seed {seed}"), Options::stress(seed))));
    all
}

/// The functions above, and the endless programs of `bench-programs/wasm/`.
fn endless() -> Vec<(Program, Call)> {
    let own = ENDLESS.iter().map(|&(name, source)| (program(name, source), call("f", &[])));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench-programs/wasm/programs.toml");
    let programs = Programs::open(&path).expect("the list is right");
    let listed = programs.listed.iter().filter(|listed| listed.endless);
    let listed = listed.map(|listed| (programs.program(listed).expect("it is there"), listed.call(1)));
    own.chain(listed).collect()
}

fn program(name: &str, source: &str) -> Program {
    Program::new(name.to_owned(), format!("(module {source})").as_bytes()).expect("the text is right")
}

fn pair(program: &Program, mode: &str, options: &Options) -> Pair {
    let mode: Mode = mode.parse().expect("the mode exists");
    Pair::new(program, &Setup::new(mode, options.clone())).expect("it compiles")
}

fn call(name: &str, args: &[&str]) -> Call {
    let args = args.iter().map(|&arg| arg.to_owned()).collect();
    Call { invoke: Some((name.to_owned(), args)), ..Call::default() }
}

fn is_trap(seen: &Observation, wanted: &str) -> bool {
    matches!(&seen.outcome, Outcome::Trapped { code, .. } if code == wanted)
}

/// A program that never returns is stopped soon after the epoch ends, and not before. If it is not stopped, the test can't
/// end by itself: the process is.
#[test]
fn epochs_stop_endless_loops() {
    for (program, call) in endless() {
        for mode in ["epochs", "explicit+epochs", "epochs+fuel"] {
            for (how, options) in settings() {
                let pair = pair(&program, mode, &options);
                let name = format!("{}, {how} ({mode})", program.name);
                for arm in [&pair.baseline, &pair.loopopt] {
                    check_epochs(arm, &call, &name);
                }
            }
        }
    }
}

fn check_epochs(arm: &CompiledArm, call: &Call, name: &str) {
    let guest = Guest::new(arm, &Call { epochs: Some(1), ..call.clone() }).expect("it instantiates");
    let stopped = AtomicBool::new(false);
    let (seen, ran) = thread::scope(|scope| {
        let start = Instant::now();
        scope.spawn(|| end_epoch_soon(arm.module.engine(), &stopped, name));
        let ended = guest.run();
        stopped.store(true, Relaxed);
        (ended.observe().expect("it can be seen"), start.elapsed())
    });
    assert!(is_trap(&seen, "interrupt"), "{name}: it {}", seen.outcome);
    assert!(ran >= RUNS, "{name}: stopped after {ran:?}");
}

fn end_epoch_soon(engine: &wasmtime::Engine, stopped: &AtomicBool, name: &str) {
    thread::sleep(RUNS);
    engine.increment_epoch();
    let since = Instant::now();
    while !stopped.load(Relaxed) {
        if since.elapsed() > STOPS {
            eprintln!("{name}: not stopped");
            std::process::abort();
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Running out of fuel is seen at the same place, with the same memory, and with the same fuel left.
#[test]
fn fuel_stops_endless_loops() {
    for (program, call) in endless() {
        for mode in ["fuel", "explicit+fuel"] {
            for (how, options) in settings() {
                let pair = pair(&program, mode, &options);
                for fuel in [1, 2, 3, 7, 10, 100, 1_001, 100_000] {
                    let name = format!("{}, {how} ({mode}), fuel {fuel}", program.name);
                    let compared =
                        pair.compare(&Call { fuel: Some(fuel), ..call.clone() }).expect("it can be compared");
                    assert!(is_trap(&compared.seen, "out-of-fuel"), "{name}: it {}", compared.seen.outcome);
                    assert_eq!(compared.difference, None, "{name}");
                }
            }
        }
    }
}

/// Programs that end.
const ENDING: &[&str] = &[
    "(memory 1) (func (export \"f\") (param $n i32) (result i32) (local $i i32) (local $s i32)
       (block $done (loop $l
         (br_if $done (i32.ge_u (local.get $i) (local.get $n)))
         (local.set $s (i32.add (local.get $s) (i32.load (i32.shl (local.get $i) (i32.const 2)))))
         (i32.store (i32.const 128) (local.get $s))
         (local.set $i (i32.add (local.get $i) (i32.const 1)))
         (br $l)))
       (local.get $s))",
    "(memory 1) (func (export \"f\") (param $n i32) (result i32) (local $i i32) (local $j i32) (local $s i32)
       (loop $outer
         (local.set $j (i32.const 0))
         (loop $inner
           (if (i32.and (local.get $n) (i32.const 1))
             (then (local.set $s (i32.add (local.get $s) (local.get $j))))
             (else (local.set $s (i32.xor (local.get $s) (i32.load (i32.mul (local.get $j) (i32.const 8)))))))
           (br_if $inner (i32.lt_u (local.tee $j (i32.add (local.get $j) (i32.const 1))) (i32.const 5))))
         (br_if $outer (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
       (local.get $s))",
];

/// What a program that ends uses up is the same, and so is the fuel with which it just does not end.
#[test]
fn fuel_left_is_the_same() {
    for source in ENDING {
        for mode in ["fuel", "explicit+fuel", "epochs+fuel"] {
            for (how, options) in settings() {
                let pair = pair(&program("ending", source), mode, &options);
                for n in ["0", "1", "2", "3", "8", "100", "1001"] {
                    let whole = pair.compare(&call("f", &[n])).expect("it can be compared");
                    assert!(matches!(whole.seen.outcome, Outcome::Returned(_)), "{}", whole.seen.outcome);
                    assert_eq!(whole.difference, None, "{how} ({mode}), {n}");
                    let used = loopopt_wasmtime::guest::FUEL - whole.seen.fuel.expect("it is counted");
                    for fuel in [used / 2, used - 1, used, used + 1] {
                        let compared =
                            pair.compare(&Call { fuel: Some(fuel), ..call("f", &[n]) }).expect("it can be compared");
                        assert_eq!(compared.difference, None, "{how} ({mode}), {n}, fuel {fuel}");
                    }
                }
            }
        }
    }
}

/// Programs that run out of fuel at many places.
const RATIONED: [&str; 10] = [
    "matmul-o0",
    "matmul-o2",
    "base64-o1",
    "crc32-o2",
    "sieve-o0",
    "stencil2d-o2",
    "radix-sort-o1",
    "lu-o2",
    "json-o2",
    "string-search-o2",
];

/// Wherever fuel runs out, it is at the same place, with the same memory.
#[test]
fn fuel_runs_out_at_the_same_place() {
    const LIMITS: u64 = 1_000;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench-programs/wasm/programs.toml");
    let programs = Programs::open(&path).expect("the list is right");
    let mut seed = 1_u64;
    for name in RATIONED {
        let listed = programs.listed.iter().find(|listed| listed.name == name).expect("it is listed");
        let case = listed.case(Size::Test).expect("it has a test");
        let pair = pair(&programs.program(listed).expect("it is there"), "fuel", &Options::default());
        let mut ran_out = 0;
        for _ in 0..LIMITS {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Numbers of any length, so that most runs are short.
            let fuel = (seed >> 11) >> (32 + seed % 20);
            let compared = pair.compare(&Call { fuel: Some(fuel), ..case.call(listed) }).expect("it can be compared");
            assert_eq!(compared.difference, None, "{name}, fuel {fuel}");
            ran_out += u64::from(is_trap(&compared.seen, "out-of-fuel"));
        }
        assert!(ran_out > LIMITS / 2, "{name} ran out of fuel {ran_out} times only");
    }
}
