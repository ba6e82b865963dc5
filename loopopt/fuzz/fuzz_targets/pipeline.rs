//! The pipeline does not change what a program does.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopopt::fuzzing::Body;

fuzz_target!(|bytes: &[u8]| Body::named("pipeline").expect("there is such a body").run_or_panic(bytes));
