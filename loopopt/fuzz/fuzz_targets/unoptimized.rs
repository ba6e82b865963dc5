//! The pipeline does not change what a program does that Cranelift has not optimized.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopopt::fuzzing::Body;

fuzz_target!(|bytes: &[u8]| Body::named("unoptimized").expect("there is such a body").run_or_panic(bytes));
