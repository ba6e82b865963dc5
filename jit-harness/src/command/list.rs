//! `list`: the sample programs and the passes.

use super::Ending;
use crate::report::table::Columns;
use anyhow::Result;
use std::io::Write;

pub(super) fn run(out: &mut dyn Write) -> Result<Ending> {
    let mut programs = Columns::new(&["program", "while loops", "tags:", "about:"]);
    for program in bench_programs::all() {
        let tags = program.tags.join(", ");
        let cells = [program.name.to_owned(), program.while_loops.to_string(), tags, program.about.to_owned()];
        programs.add(&cells);
    }
    writeln!(out, "{programs}")?;
    let passes: Vec<&str> = loopopt::pass_names().collect();
    writeln!(out, "\npasses, in the order in which they run: {}", passes.join(", "))?;
    Ok(Ending::Fine)
}
