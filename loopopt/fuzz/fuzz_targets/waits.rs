//! Loops that wait for what another thread writes end when it does.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopopt::fuzzing::Body;

fuzz_target!(|bytes: &[u8]| Body::named("waits").expect("there is such a body").run_or_panic(bytes));
