//! The effects of instructions are those of a table.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopopt::fuzzing::Body;

fuzz_target!(|bytes: &[u8]| Body::named("effects").expect("there is such a body").run_or_panic(bytes));
