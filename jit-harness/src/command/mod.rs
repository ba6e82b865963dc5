//! The commands, one file each.

mod bench;
mod bisect;
mod compile_time;
pub mod explain;
mod list;
mod profile;
mod reduce;
mod report;
mod run;
mod scaling;
mod show;

use crate::cli::{Cli, Command};
use crate::interrupt;
use crate::report::json::Bench;
use anyhow::Result;
use std::io::Write;

/// How a command ended that could do its work. If it could not, that is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All is well.
    Fine,
    /// A program does not do what it should.
    Differs,
    /// A program that was run did not return.
    Trapped,
    /// Somebody pressed Ctrl-C, and got what there was.
    Interrupted,
}

impl Ending {
    /// How a command ends that has measured this.
    fn of(bench: &Bench) -> Self {
        match (bench.complete, bench.programs.iter().all(|record| record.agree)) {
            (false, _) => Self::Interrupted,
            (true, true) => Self::Fine,
            (true, false) => Self::Differs,
        }
    }

    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Differs => 1,
            Self::Trapped => 2,
            Self::Interrupted => interrupt::EXIT_CODE,
        }
    }
}

/// Runs a command.
pub fn run(cli: &Cli, out: &mut dyn Write) -> Result<Ending> {
    match &cli.command {
        Command::Bench(args) if args.compile_time => compile_time::run(args, out),
        Command::Bench(args) if args.scaling => scaling::run(args, out),
        Command::Bench(args) => bench::run(args, out),
        Command::Report(args) => report::run(args, out),
        Command::Profile(args) => profile::run(args, out),
        Command::Run(args) => run::run(args, out),
        Command::Explain(args) => explain::run(args, out),
        Command::Show(args) => show::run(args, out),
        Command::Bisect(args) => bisect::run(args, out),
        Command::Reduce(args) => reduce::run(args, out),
        Command::List => list::run(out),
    }
}
