//! `report`: all programs in all modes, as a page.

use crate::arm::Setup;
use crate::cli::ReportArgs;
use crate::figures::Samples;
use crate::page::{self, Line};
use crate::programs::{Listed, Programs};
use crate::report::{Record, Report};
use crate::trial::Pair;
use anyhow::{Context as _, Result, anyhow};
use jit_harness::command::Ending;
use jit_harness::interrupt;
use jit_harness::progress::progress;
use jit_harness::report::whole::WholeFile;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// What is before and after the report in a file that it is put into.
const MARKS: [&str; 2] = ["<!-- report -->\n", "<!-- end of report -->\n"];

pub(super) fn run(args: &ReportArgs, out: &mut dyn Write) -> Result<Ending> {
    let programs = Programs::open(&args.programs)?;
    let filter = args.filter.as_deref().unwrap_or_default();
    let listed: Vec<&Listed> = programs
        .listed
        .iter()
        .filter(|listed| listed.name.contains(filter) && listed.case(args.case).is_some())
        .collect();
    let setups = args.setup.setups()?;
    let file = args.json.as_deref().map(WholeFile::new).transpose()?;
    let target = args.into.as_deref().map(Target::open).transpose()?;
    interrupt::listen()?;
    let bar = progress(listed.len() * setups.len());
    let mut lines: Vec<Line> = Vec::new();
    let known = |lines: &[Line]| Report::new(lines.iter().flat_map(|line| line.records.clone()).collect());
    for listed in listed.into_iter().take_while(|_| !interrupt::is_asked()) {
        bar.set_message(listed.name.clone());
        let mut records = Vec::new();
        for setup in &setups {
            records.push(measure(&programs, listed, setup, args).with_context(|| listed.name.clone())?);
            bar.inc(1);
        }
        lines.push(Line { name: listed.name.clone(), level: listed.level.clone(), records });
        file.as_ref().map_or(Ok(()), |file| file.write(&known(&lines)))?;
    }
    bar.finish_and_clear();
    let page = page::write(&lines);
    match target {
        // A page of some programs does not take the place of one of all.
        Some(target) if !interrupt::is_asked() => target.write(&page)?,
        _ => out.write_all(page.as_bytes())?,
    }
    let report = known(&lines);
    if let Some(file) = file {
        file.finish(&report)?;
    }
    report.ending(out)
}

fn measure(programs: &Programs, listed: &Listed, setup: &Setup, args: &ReportArgs) -> Result<Record> {
    let program = programs.program(listed)?;
    let case = listed.case(args.case).context("the program has no such call")?;
    let call = case.call(listed);
    let pair = Pair::new(&program, setup)?;
    let compared = pair.compare(&call)?;
    let mut record = Record::new(&program.name, &pair, &compared);
    if let Err(error) = case.check(&compared.seen) {
        record.agree = false;
        record.difference = Some(format!("{error:#}"));
    }
    if record.agree {
        let samples = Samples::of(&program, setup, (&call, &compared.seen), Duration::from_secs_f64(args.seconds))?;
        record.measure(&samples.figures());
    }
    Ok(record)
}

/// A file that the report is put into.
struct Target<'a> {
    path: &'a Path,
    before: String,
    after: String,
}

impl<'a> Target<'a> {
    /// Reads the file early, so that a wrong path does not cost a measurement.
    fn open(path: &'a Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let [start, end] = MARKS;
        let split = text.split_once(start).and_then(|(before, rest)| Some((before, rest.split_once(end)?.1)));
        let (before, after) =
            split.ok_or_else(|| anyhow!("{}: no lines {} and {}", path.display(), start.trim(), end.trim()))?;
        Ok(Self { path, before: before.to_owned(), after: after.to_owned() })
    }

    fn write(&self, page: &str) -> Result<()> {
        let [start, end] = MARKS;
        let text = format!("{}{start}\n{page}\n{end}{}", self.before, self.after);
        std::fs::write(self.path, text).with_context(|| self.path.display().to_string())
    }
}
