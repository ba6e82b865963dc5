//! The arguments of the command line, and nothing else.

use crate::arm::{Program, Setup};
use crate::guest::Call;
use crate::mode::Mode;
use crate::programs::Size;
use crate::world::World;
use anyhow::{Context as _, Result};
use clap::{Args, Parser, Subcommand};
use jit_harness::cli::{OptimizerArgs, ShownArgs};
use std::path::PathBuf;

/// Runs WebAssembly in Wasmtime with and without loopopt, checks that both do the same, and measures both.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a program with and without loopopt, and compare all that can be observed.
    Run(RunArgs),
    /// Run and compare a program, then time it with and without loopopt.
    Bench(BenchArgs),
    /// Compile with and without loopopt: time, code size, and the cost of each pass.
    CompileTime(CompileTimeArgs),
    /// Print what loopopt does to each loop, and what it does not do and why.
    Explain(ExplainArgs),
    /// Find the one rewrite that breaks a program.
    Bisect(RunArgs),
    /// Run, compare and time all programs of a list, and write a page about it.
    Report(ReportArgs),
    /// Compare runs with and without loopopt on random modules.
    Smith(SmithArgs),
    /// List the settings that modes are made of.
    Modes,
}

/// Arguments of `run` and `bisect`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The program and the call.
    #[command(flatten)]
    pub call: CallArgs,
    /// How to compile.
    #[command(flatten)]
    pub setup: SetupArgs,
}

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// The program and the call.
    #[command(flatten)]
    pub call: CallArgs,
    /// How to compile.
    #[command(flatten)]
    pub setup: SetupArgs,
    /// Time for the samples of each mode.
    #[arg(long, value_name = "N", default_value_t = 3.0)]
    pub seconds: f64,
    /// Make the call once before, record a profile of the loops, and let loopopt use it.
    #[arg(long)]
    pub record: bool,
    /// Write the figures to this file.
    #[arg(long, value_name = "PATH")]
    pub json: Option<PathBuf>,
}

/// Arguments of `compile-time`.
#[derive(Debug, Args)]
pub struct CompileTimeArgs {
    /// A module, binary or text; `-` for the standard input.
    pub file: PathBuf,
    /// How to compile.
    #[command(flatten)]
    pub setup: SetupArgs,
    /// How often each arm compiles the module.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub rounds: usize,
    /// List this many functions: those in which loopopt takes longest, and those that grow most.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub top: usize,
    /// Write the figures to this file.
    #[arg(long, value_name = "PATH")]
    pub json: Option<PathBuf>,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The list of programs.
    #[arg(long, value_name = "PATH", default_value = "bench-programs/wasm/programs.toml")]
    pub programs: PathBuf,
    /// Only programs with this in their name.
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Which of a program's calls.
    #[arg(long, value_enum, default_value_t = Size::Bench)]
    pub case: Size,
    /// How to compile.
    #[command(flatten)]
    pub setup: SetupArgs,
    /// Time for the samples of each program in each mode.
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    pub seconds: f64,
    /// Put the page into this file, between its lines `<!-- report -->` and `<!-- end of report -->`.
    #[arg(long, value_name = "PATH")]
    pub into: Option<PathBuf>,
    /// Write the figures to this file.
    #[arg(long, value_name = "PATH")]
    pub json: Option<PathBuf>,
}

/// Arguments of `smith`.
#[derive(Debug, Args)]
pub struct SmithArgs {
    /// The first seed.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// How many modules.
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub count: u64,
    /// How many to run in parallel. By default, as many as there are processors.
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// The modes.
    #[arg(long, value_name = "MODE", default_value = "all")]
    pub mode: Vec<String>,
    /// Write modules on which the arms differ to this folder.
    #[arg(long, value_name = "FOLDER")]
    pub keep: Option<PathBuf>,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A module, binary or text; `-` for the standard input.
    pub file: PathBuf,
    /// Only the function of this name, or of this number among those that the module defines.
    #[arg(long, value_name = "NAME")]
    pub function: Option<String>,
    /// Write CLIF and machine code of each function with loops to this folder, without and with loopopt.
    #[arg(long, value_name = "FOLDER")]
    pub code: Option<PathBuf>,
    /// What is said.
    #[command(flatten)]
    pub shown: ShownArgs,
    /// How to compile.
    #[command(flatten)]
    pub setup: SetupArgs,
}

/// A program and a call.
#[derive(Debug, Args)]
pub struct CallArgs {
    /// A module, binary or text; `-` for the standard input.
    pub file: PathBuf,
    /// Call this exported function with these arguments, and not `_start`.
    #[arg(long, value_names = ["FUNCTION", "ARGUMENT"], num_args = 1.., allow_negative_numbers = true)]
    pub invoke: Vec<String>,
    /// A folder that the program may read, as `HOST` or `HOST::GUEST`.
    #[arg(long, value_name = "FOLDER")]
    pub dir: Vec<String>,
    /// A file for the standard input, which is empty otherwise.
    #[arg(long, value_name = "PATH")]
    pub stdin: Option<PathBuf>,
    /// Arguments of the program, for WASI.
    #[arg(last = true, value_name = "WASI ARGUMENT")]
    pub args: Vec<String>,
}

/// How to compile.
#[derive(Debug, Args)]
pub struct SetupArgs {
    /// The mode: one of those that `modes` lists, some of them with `+` between, or `all`. Can be given more than once.
    #[arg(long, value_name = "MODE", default_value = "guard")]
    pub mode: Vec<String>,
    /// The optimizer's settings.
    #[command(flatten)]
    pub optimizer: OptimizerArgs,
    /// Choose at random, with this seed, whether to do each legal rewrite, whatever it costs.
    #[arg(long, value_name = "SEED")]
    pub stress: Option<u64>,
}

impl CallArgs {
    /// The program.
    pub fn program(&self) -> Result<Program> {
        Program::open(&self.file)
    }

    /// The call.
    pub fn call(&self) -> Result<Call> {
        let name = self.file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let folders = self.dir.iter().map(|dir| match dir.split_once("::") {
            Some((host, guest)) => (PathBuf::from(host), guest.to_owned()),
            None => (PathBuf::from(dir), dir.clone()),
        });
        let stdin = match &self.stdin {
            Some(path) => std::fs::read(path).with_context(|| path.display().to_string())?,
            None => Vec::new(),
        };
        let world = World {
            args: std::iter::once(name).chain(self.args.iter().cloned()).collect(),
            folders: folders.collect(),
            stdin,
        };
        let invoke = self.invoke.split_first().map(|(name, args)| (name.clone(), args.to_vec()));
        Ok(Call { invoke, world, ..Call::default() })
    }
}

impl SetupArgs {
    /// One setup for each mode.
    pub fn setups(&self) -> Result<Vec<Setup>> {
        let mut options = self.optimizer.options()?;
        if let Some(seed) = self.stress {
            options.stress_seed = Some(seed);
            options.ignore_cost = true;
        }
        let modes = Mode::parse_all(&self.mode)?;
        Ok(modes.into_iter().map(|mode| Setup::new(mode, options.clone())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invocation_ends_where_the_next_option_begins() {
        let cli = Cli::try_parse_from([
            "x", "run", "a.wat", "--invoke", "f", "-1", "2.5", "--mode", "fuel", "--mode", "guard", "--", "-v",
        ]);
        let Ok(Cli { command: Command::Run(args) }) = cli else { panic!("{cli:?}") };
        assert_eq!(args.call.invoke, ["f", "-1", "2.5"]);
        assert_eq!(args.call.args, ["-v"]);
        assert_eq!(args.setup.setups().expect("the modes exist").len(), 2);
    }
}
