//! The pipeline does not change what a program does if cost does not count.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopopt::fuzzing::Body;

fuzz_target!(|bytes: &[u8]| Body::named("pipeline_no_cost").expect("there is such a body").run_or_panic(bytes));
