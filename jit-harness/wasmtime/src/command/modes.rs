//! `modes`: the settings that modes are made of.

use crate::mode::Mode;
use anyhow::Result;
use jit_harness::command::Ending;
use std::io::Write;

pub(super) fn run(out: &mut dyn Write) -> Result<Ending> {
    for (name, what) in Mode::describe() {
        writeln!(out, "{name:<12} {what}")?;
    }
    let all: Vec<String> = Mode::all().iter().map(Mode::to_string).collect();
    writeln!(out, "\n`all` is: {}", all.join(", "))?;
    Ok(Ending::Fine)
}
