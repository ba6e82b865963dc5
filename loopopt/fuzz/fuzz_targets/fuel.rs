//! The pipeline can stop after any rewrite.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopopt::fuzzing::Body;

fuzz_target!(|bytes: &[u8]| Body::named("fuel").expect("there is such a body").run_or_panic(bytes));
