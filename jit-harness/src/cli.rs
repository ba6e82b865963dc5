//! The arguments of the command line, and nothing else.

use crate::error::in_file;
use crate::input::Input;
use crate::recorded;
use anyhow::Result;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use loopopt::oracle::{file_options, require_passes};
use loopopt::profile::Profiling;
use loopopt::{Effort, Options};
use std::path::PathBuf;
use std::sync::Arc;

/// Compiles CLIF programs with and without loopopt, checks that both do the same, and measures the native code.
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
    /// Check and time programs: Cranelift alone against Cranelift with loopopt.
    Bench(BenchArgs),
    /// Write pages for a browser: the figures of `bench`, and for each program what was done and its code before and after.
    Report(ReportArgs),
    /// Record a profile of loops, compile again with it, and time loopopt with and without the profile.
    Profile(ProfileArgs),
    /// Compile with loopopt, and check the `; run:` and `; trap:` lines.
    Run(RunArgs),
    /// Print what loopopt does to each loop, and what it does not do and why.
    Explain(ExplainArgs),
    /// Show CLIF and machine code before and after loopopt.
    Show(ShowArgs),
    /// Find the one rewrite that breaks a program.
    Bisect(BisectArgs),
    /// Make a program that fails smaller, as long as it fails in the same way.
    Reduce(ReduceArgs),
    /// List the sample programs, the passes and the options.
    List,
}

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// CLIF files, `-` for the standard input, or names of sample programs. Each `; bench:` line of a file is a program; if there is none, each `; run:` line.
    /// Without files: all samples.
    pub files: Vec<PathBuf>,
    /// Only programs whose name contains this, or with this tag; with `--scaling`, only directions whose name contains this.
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Fewer samples: all sample programs in one to two minutes.
    #[arg(long)]
    pub quick: bool,
    /// Write the figures to this file. It is rewritten after each program, is valid JSON at any time, and says whether it is `complete`.
    #[arg(long, value_name = "PATH")]
    pub json: Option<PathBuf>,
    /// Write the figures to this file, as a table for spreadsheets.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["compile_time", "scaling"])]
    pub csv: Option<PathBuf>,
    /// Write the table to this file, as a page in Markdown.
    #[arg(long, visible_alias = "markdown", value_name = "PATH", conflicts_with_all = ["compile_time", "scaling"])]
    pub page: Option<PathBuf>,
    /// Save the run for `--compare`: in `target/loopopt-bench/NAME.json`, or at the path NAME if it has a `/` or ends in `.json`.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new(), conflicts_with_all = ["compile_time", "scaling"])]
    pub save: Option<String>,
    /// Compare with a run on this machine that `--save` has saved.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new(), conflicts_with_all = ["compile_time", "scaling"])]
    pub compare: Option<String>,
    /// Time the programs' C kernels as well, compiled by `cc -O2` without vectorization.
    #[arg(long, conflicts_with_all = ["compile_time", "scaling"])]
    pub native: bool,
    /// Compare with the same programs rewritten by hand, both with loopopt. Of the samples, those that somebody has rewritten.
    #[arg(long, conflicts_with_all = ["files", "native", "page", "compile_time", "scaling"])]
    pub by_hand: bool,
    /// Measure the compiler instead: time per pass, growth with size, peak memory. With files: for each file, all its functions together.
    #[arg(long, conflicts_with_all = ["filter"])]
    pub compile_time: bool,
    /// Measure whether compile time grows faster than the function, in each direction in which it can grow.
    #[arg(long, conflicts_with_all = ["files", "compile_time"])]
    pub scaling: bool,
    /// The optimizer's settings.
    #[command(flatten)]
    pub optimizer: OptimizerArgs,
}

impl BenchArgs {
    /// The options on which figures depend, as they are given.
    pub fn settings(&self) -> String {
        settings(&[("--quick", self.quick), ("--by-hand", self.by_hand)], &self.optimizer)
    }
}

/// Those of the switches that are on, and the optimizer's settings.
fn settings(switches: &[(&str, bool)], optimizer: &OptimizerArgs) -> String {
    let on = switches.iter().filter(|(_, is_on)| *is_on).map(|&(switch, _)| switch.to_owned());
    let given: Vec<String> = on.chain(optimizer.settings()).collect();
    if given.is_empty() { "none".to_owned() } else { given.join(" ") }
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// CLIF files, `-` for the standard input, or names of sample programs. Without files: all samples.
    pub files: Vec<PathBuf>,
    /// Write the pages into this folder; the first is `index.html`.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Also write the table of the figures to this file, as `bench --page` does.
    #[arg(long, value_name = "PATH", conflicts_with = "no_time")]
    pub page: Option<PathBuf>,
    /// Only programs with this in their name, or with this tag.
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Fewer samples: all sample programs in one to two minutes.
    #[arg(long)]
    pub quick: bool,
    /// Measure nothing: the pages have remarks and code, but no figures.
    #[arg(long, conflicts_with = "quick")]
    pub no_time: bool,
    /// The optimizer's settings.
    #[command(flatten)]
    pub optimizer: OptimizerArgs,
}

impl ReportArgs {
    /// The options on which figures depend, as they are given.
    pub fn settings(&self) -> String {
        settings(&[("--quick", self.quick)], &self.optimizer)
    }
}

/// Arguments of `profile`.
#[derive(Debug, Args)]
pub struct ProfileArgs {
    /// CLIF files, `-` for the standard input, or names of sample programs. Each `; bench:` line is recorded; if there is none, each `; run:` line. Without
    /// files: all samples.
    pub files: Vec<PathBuf>,
    /// Only programs with this in their name, or with this tag.
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Write the profile to this file, for `--profile`.
    #[arg(long, value_name = "PATH")]
    pub out: Option<PathBuf>,
    /// Fewer samples: all sample programs in one to two minutes.
    #[arg(long)]
    pub quick: bool,
    /// Only record, and measure nothing.
    #[arg(long, conflicts_with = "quick")]
    pub no_time: bool,
    /// Time the code that records the profile against the code of Cranelift alone.
    #[arg(long, conflicts_with = "no_time")]
    pub recording: bool,
    /// The optimizer's settings.
    #[command(flatten)]
    pub optimizer: OptimizerArgs,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// A CLIF file, `-` for the standard input, or the name of a sample program.
    pub file: PathBuf,
    /// Only the `; run:` lines that call this function. A sample program has a built-in call instead of such lines.
    #[arg(long, value_name = "NAME", conflicts_with = "invoke")]
    pub function: Option<String>,
    /// Make this call instead: `f(1, 0x1.8p0, mem+16)`, where `mem` is the address of 64 KiB of memory.
    #[arg(long, value_name = "CALL")]
    pub invoke: Option<String>,
    /// The optimizer's settings.
    #[command(flatten)]
    pub optimizer: OptimizerArgs,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A CLIF file, `-` for the standard input, or the name of a sample program.
    pub file: PathBuf,
    /// Only this function.
    #[arg(long, value_name = "NAME")]
    pub function: Option<String>,
    /// What is said.
    #[command(flatten)]
    pub shown: ShownArgs,
    /// Optimize for another target, without counting its machine instructions: `x86_64`, `aarch64`, `riscv64`, `s390x`, `pulley32`, `pulley64`, or a triple of these.
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    /// The optimizer's settings.
    #[command(flatten)]
    pub optimizer: OptimizerArgs,
}

/// What `explain` says.
#[derive(Clone, Debug, Default, Args)]
pub struct ShownArgs {
    /// Show all refusals, not only those about which something can be done.
    #[arg(long)]
    pub all: bool,
    /// Only remarks of these passes, separated by commas.
    #[arg(long, value_name = "PASS", value_delimiter = ',')]
    pub filter: Vec<String>,
    /// As JSON, with all refusals.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// A CLIF file, `-` for the standard input, or the name of a sample program.
    pub file: PathBuf,
    /// Only this function.
    #[arg(long, value_name = "NAME")]
    pub function: Option<String>,
    /// Only CLIF.
    #[arg(long)]
    pub clif: bool,
    /// Only machine code.
    #[arg(long)]
    pub asm: bool,
    /// As a unified diff.
    #[arg(long)]
    pub diff: bool,
    /// The flow graphs, as text for Graphviz: `show FILE --dot | dot -Tsvg`.
    #[arg(long, conflicts_with_all = ["clif", "asm", "diff"])]
    pub dot: bool,
    /// Show the code for another target, which is not run: `x86_64`, `aarch64`, `riscv64`, `s390x`, `pulley32`, `pulley64`, or a triple of these.
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    /// The optimizer's settings.
    #[command(flatten)]
    pub optimizer: OptimizerArgs,
}

/// Arguments of `bisect`.
#[derive(Debug, Args)]
pub struct BisectArgs {
    /// What is compared.
    #[command(flatten)]
    pub calls: CallArgs,
    /// Also show the whole function before and after the rewrite, and not only the diff.
    #[arg(long)]
    pub clif: bool,
    /// The optimizer's settings.
    #[command(flatten)]
    pub optimizer: OptimizerArgs,
}

/// Arguments of `reduce`.
#[derive(Debug, Args)]
pub struct ReduceArgs {
    /// What is compared.
    #[command(flatten)]
    pub calls: CallArgs,
    /// Write the program to this file.
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Stop after this many seconds.
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub seconds: u64,
    /// The optimizer's settings.
    #[command(flatten)]
    pub optimizer: OptimizerArgs,
}

/// A program, and the calls on which it is compared with itself.
#[derive(Debug, Args)]
pub struct CallArgs {
    /// A CLIF file with `; run:`, `; call:` or `; bench:` lines, `-` for the standard input, or the name of a sample program.
    pub file: PathBuf,
    /// Only the calls to this function.
    #[arg(long, value_name = "NAME", conflicts_with = "invoke")]
    pub function: Option<String>,
    /// Make this call instead of those in the file, such as `f(1, 0x1.8p0, mem+16)`. Can be given more than once.
    #[arg(long, value_name = "CALL")]
    pub invoke: Vec<String>,
}

/// A named set of the optimizer's settings.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum EffortArg {
    /// One round of the cheap passes.
    Quick,
    /// All passes.
    #[default]
    Default,
    /// All passes, with larger copies and longer tests.
    Full,
    /// All passes that copy no code.
    Size,
}

impl From<EffortArg> for Options {
    fn from(effort: EffortArg) -> Self {
        match effort {
            EffortArg::Quick => Self::effort(Effort::Quick),
            EffortArg::Default => Self::effort(Effort::Default),
            EffortArg::Full => Self::effort(Effort::Full),
            EffortArg::Size => Self::for_size(),
        }
    }
}

/// The optimizer's settings.
#[derive(Debug, Args)]
pub struct OptimizerArgs {
    /// How much compile time may be spent.
    #[arg(long, value_enum, default_value_t)]
    pub effort: EffortArg,
    /// Only these passes, separated by commas, whatever `--effort` selects. `list` prints their names.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub passes: Option<Vec<String>>,
    /// At most this many optional rewrites in the whole program (`explain`: in each function). `bisect` finds the one
    /// that breaks a program.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub fuel: Option<u64>,
    /// Set a field of the library's `Options`, or an answer of the embedder, as a line `; options: NAME=VALUE` of the file does. Can be given more than once.
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Verify the function after each pass.
    #[arg(long)]
    pub verify: bool,
    /// Assert at run time what each rewrite rests on: a claim that fails is reported as a difference.
    #[arg(long)]
    pub assert_claims: bool,
    /// Use the profile that `profile --out` has written.
    #[arg(long, value_name = "PATH")]
    pub profile: Option<PathBuf>,
}

impl OptimizerArgs {
    /// Those that are given, but for `--verify`, which changes nothing.
    fn settings(&self) -> Vec<String> {
        let mut given = Vec::new();
        if let Some(effort) = self.effort.to_possible_value().filter(|_| !matches!(self.effort, EffortArg::Default)) {
            given.push(format!("--effort {}", effort.get_name()));
        }
        given.extend(self.passes.iter().map(|passes| format!("--passes {}", passes.join(","))));
        given.extend(self.fuel.map(|fuel| format!("--fuel {fuel}")));
        given.extend(self.set.iter().map(|setting| format!("--set {setting}")));
        given.extend(self.assert_claims.then(|| "--assert-claims".to_owned()));
        given.extend(self.profile.as_ref().map(|path| format!("--profile {}", path.display())));
        given
    }

    /// The settings, if all passes are known. The harness lowers what the passes leave.
    pub fn options(&self) -> Result<Options> {
        self.over(self.given()?)
    }

    /// Those of `--effort` and `--set`.
    fn given(&self) -> Result<Options> {
        let given = file_options("", &self.set, Options::from(self.effort));
        given.map_err(|error| in_file("--set", &error, "write it as in `--set fuel=3 --set poll_latency=8`"))
    }

    /// The settings for the functions of a file: what is given here counts more than the `; options:` lines there.
    pub fn options_for(&self, input: &Input) -> Result<Options> {
        self.options_of(&input.name, &input.text)
    }

    /// The same for a file of this name that holds this text.
    pub fn options_of(&self, name: &str, text: &str) -> Result<Options> {
        let of_file = file_options(text, &self.set, Options::from(self.effort));
        self.over(of_file.map_err(|error| match self.given() {
            Ok(_) => in_file(name, &error, "write it as in `; options: passes=rotate,licm fuel=3`"),
            Err(of_set) => of_set,
        })?)
    }

    fn over(&self, mut options: Options) -> Result<Options> {
        if let Some(names) = &self.passes {
            let names: Vec<String> = names.iter().map(|name| name.trim().to_owned()).collect();
            require_passes(names.iter().map(String::as_str))?;
            options.passes = Some(names);
        }
        options.fuel = self.fuel.or(options.fuel);
        options.lowers_directly = true;
        options.verify_each_pass |= self.verify;
        options.assert_claims |= self.assert_claims;
        if let Some(path) = &self.profile {
            options.profiling = Profiling::Use(Arc::new(recorded::read(path)?));
        }
        Ok(options)
    }
}
