//! The command line: parse, run the command, say how it ended.

use jit_harness::entry::start;
use loopopt_wasmtime::command;
use std::process::ExitCode;

fn main() -> ExitCode {
    start("loopopt-wasmtime", command::run)
}
