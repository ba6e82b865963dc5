//! Loops that are split where a branch changes do the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopopt::fuzzing::Body;

fuzz_target!(|bytes: &[u8]| Body::named("halves").expect("there is such a body").run_or_panic(bytes));
