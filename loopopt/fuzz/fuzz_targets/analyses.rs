//! The loops of a program are those that the definitions give.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopopt::fuzzing::Body;

fuzz_target!(|bytes: &[u8]| Body::named("analyses").expect("there is such a body").run_or_panic(bytes));
