//! The commands, one file each.

mod bench;
mod bisect;
mod compile_time;
mod explain;
mod modes;
mod report;
mod run;
mod smith;

use crate::cli::{Cli, Command};
use anyhow::Result;
use jit_harness::command::Ending;
use std::io::Write;

/// Runs a command.
pub fn run(cli: &Cli, out: &mut dyn Write) -> Result<Ending> {
    match &cli.command {
        Command::Run(args) => run::run(args, out),
        Command::Bench(args) => bench::run(args, out),
        Command::CompileTime(args) => compile_time::run(args, out),
        Command::Explain(args) => explain::run(args, out),
        Command::Bisect(args) => bisect::run(args, out),
        Command::Report(args) => report::run(args, out),
        Command::Smith(args) => smith::run(args, out),
        Command::Modes => modes::run(out),
    }
}
