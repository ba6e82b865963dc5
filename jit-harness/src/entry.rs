//! What a program of the harness does first and last: parse the command line, run the command, say how it ended.

use crate::command::Ending;
use crate::error::{guard, is_broken_pipe, one_line, silence_panics};
use anyhow::Result;
use clap::Parser;
use clap::error::{ContextKind, ErrorKind};
use std::io::{self, Write};
use std::process::ExitCode;

/// Parses the command line and runs what it asks for. Complaints are one line; `program` is the name to give in them.
pub fn start<C: Parser>(program: &str, run: impl FnOnce(&C, &mut dyn Write) -> Result<Ending>) -> ExitCode {
    silence_panics();
    let cli = match C::try_parse() {
        Ok(cli) => cli,
        Err(error) => return answer(program, &error),
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    let result = guard(|| run(&cli, &mut out)).and_then(|ending| Ok(out.flush().map(|()| ending)?));
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
fn answer(program: &str, error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        drop(error.print());
        return ExitCode::SUCCESS;
    }
    let text = error.to_string();
    // The usage names the command whose options are wrong.
    let usage = text.lines().find_map(|line| line.trim().strip_prefix("Usage: "));
    let command = usage.and_then(|usage| usage.split(' ').nth(1));
    let command = command.filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase()));
    let command = command.map_or(String::new(), |command| format!(" {command}"));
    let what: Vec<&str> = text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim).collect();
    let what = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => "no command".to_owned(),
        _ => what.join(" ").trim_start_matches("error: ").to_owned(),
    };
    let near = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue];
    let near = near.into_iter().find_map(|kind| error.get(kind));
    let near = near.map_or(String::new(), |name| format!("is `{name}` meant? "));
    complain(&format!("{what}; {near}`{program}{command} --help` lists what there is"));
    ExitCode::from(2)
}

fn complain(what: &str) {
    say("error", what);
}

/// One line on the standard error. If nobody can read it, there is nobody to complain to.
fn say(kind: &str, what: &str) {
    drop(writeln!(io::stderr(), "{kind}: {what}"));
}

/// Says what is probably a mistake, and goes on.
pub(crate) fn warn(what: &str) {
    say("warning", what);
}
