//! Accesses at what Spectre guards give trap where they did, and are profiled in the end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopopt::fuzzing::Body;

fuzz_target!(|bytes: &[u8]| Body::named("profiled").expect("there is such a body").run_or_panic(bytes));
