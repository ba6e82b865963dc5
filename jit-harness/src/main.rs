//! The command line: parse, run the command, say how it ended.

use jit_harness::command;
use jit_harness::entry::start;
use std::process::ExitCode;

fn main() -> ExitCode {
    start("jit-harness", command::run)
}
