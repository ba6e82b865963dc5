//! Modules by chance agree in all modes.

use loopopt_wasmtime::mode::Mode;
use loopopt_wasmtime::smith::{Smith, campaign};
use std::thread;

/// How many modules: more is for `loopopt-wasmtime smith --count N`.
const MODULES: u64 = 200;

/// Seeds of modules that went wrong once. 10605: an operand of `snarrow` became the parameter of a block, which lowering cannot do.
const ONCE_WRONG: [u64; 1] = [10_605];

#[test]
fn modules_by_chance_agree_in_all_modes() {
    let modes = Mode::all();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let (tally, wrong) = campaign(0..MODULES, threads, |seed| Smith::new(seed)?.check_all(&modes));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tally.calls > 4 * MODULES && tally.rewrites > MODULES, "too little to compare: {tally:?}");
}

#[test]
fn what_was_wrong_once_agrees() {
    for seed in ONCE_WRONG {
        let smith = Smith::new(seed).expect("the module is valid");
        if let Err(error) = smith.check_all(&Mode::all()) {
            panic!("seed {seed}: {error:#}");
        }
    }
}
