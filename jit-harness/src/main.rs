//! The command line: parse, run the command, say how it ended.

use clap::Parser as _;
use clap::error::ErrorKind;
use jit_harness::cli::Cli;
use jit_harness::command;
use jit_harness::error::{guard, is_broken_pipe, one_line, silence_panics};
use std::io::{self, Write as _};
use std::process::ExitCode;

fn main() -> ExitCode {
    silence_panics();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return answer(&error),
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    let result = guard(|| command::run(&cli, &mut out)).and_then(|ending| Ok(out.flush().map(|()| ending)?));
    match result {
        Ok(ending) => ExitCode::from(ending.code()),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // What was printed so far comes before the complaint; that it may fail as well makes no difference any more.
            drop(out.flush());
            complain(&one_line(&error));
            ExitCode::from(2)
        }
    }
}

/// Help and version go to the standard output; a wrong command line is one line on the standard error.
fn answer(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        drop(error.print());
        return ExitCode::SUCCESS;
    }
    let text = error.to_string();
    let what: Vec<&str> = text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim).collect();
    let what = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => "no command".to_owned(),
        _ => what.join(" ").trim_start_matches("error: ").to_owned(),
    };
    complain(&format!("{what}; `jit-harness --help` lists what there is"));
    ExitCode::from(2)
}

fn complain(what: &str) {
    // If nobody can read the complaint, there is nobody to complain to.
    drop(writeln!(io::stderr(), "error: {what}"));
}
