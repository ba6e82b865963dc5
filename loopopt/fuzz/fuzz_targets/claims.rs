//! Any selection of rewrites leaves what a program does as it is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopopt::fuzzing::Body;

fuzz_target!(|bytes: &[u8]| Body::named("claims").expect("there is such a body").run_or_panic(bytes));
