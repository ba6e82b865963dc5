//! No pass alone changes what a program does.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopopt::fuzzing::Body;

fuzz_target!(|bytes: &[u8]| Body::named("single_pass").expect("there is such a body").run_or_panic(bytes));
