//! Addresses of exception handlers go on naming them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopopt::fuzzing::Body;

fuzz_target!(|bytes: &[u8]| Body::named("handlers").expect("there is such a body").run_or_panic(bytes));
