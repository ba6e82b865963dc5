//! Passes that give loops a shape and an order are done after one run.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopopt::fuzzing::Body;

fuzz_target!(|bytes: &[u8]| Body::named("settles").expect("there is such a body").run_or_panic(bytes));
