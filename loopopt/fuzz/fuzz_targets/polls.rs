//! Loops that look at what other threads write go on doing so.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopopt::fuzzing::Body;

fuzz_target!(|bytes: &[u8]| Body::named("polls").expect("there is such a body").run_or_panic(bytes));
