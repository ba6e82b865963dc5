//! What loops are interrupted by is found as often as before, and fuel is exact.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopopt::fuzzing::Body;

fuzz_target!(|bytes: &[u8]| Body::named("interrupted").expect("there is such a body").run_or_panic(bytes));
