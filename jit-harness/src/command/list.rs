//! `list`: the sample programs, the passes and the options.

use super::Ending;
use crate::report::table::Columns;
use anyhow::Result;
use loopopt::Options;
use loopopt::oracle::option_values;
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
    writeln!(out, "\noptions for --set, with their defaults or what they can be:")?;
    for (name, value) in option_values(&Options::default()) {
        writeln!(out, "    {name}={value}")?;
    }
    Ok(Ending::Fine)
}
