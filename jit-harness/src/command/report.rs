//! `report`: pages to read in a browser, of what was measured and of what was done to each program.
//!
//! ```text
//! report    the programs, the measurement, the files
//! index     the first page: figures and plots           plots, bar
//! program   the page of a file: for each function       remarks, source, graph, code
//! passes    the page of what passes are good for
//! parts     what all pages have
//! ```

mod bar;
mod code;
mod graph;
mod index;
mod parts;
mod passes;
mod plots;
mod program;
mod remarks;
mod source;

use super::{Ending, bench, explain};
use crate::cli::ReportArgs;
use crate::error::in_file;
use crate::input::Input;
use crate::report::json::{Bench, create};
use crate::report::page;
use crate::sample::Effort;
use crate::subject::Subject;
use crate::target::cpu;
use crate::traced::Traced;
use anyhow::{Result, anyhow, bail};
use bench_programs as samples;
use loopopt::Options;
use loopopt::analysis::inst::num_insts;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;

/// How all pages look.
const STYLE: &str = include_str!("report/report.css");

/// The most instructions of a function whose code is shown.
const MAX_SHOWN: usize = 5_000;

pub(super) fn run(args: &ReportArgs, out: &mut dyn Write) -> Result<Ending> {
    let sources = sources(args)?;
    let folder = &args.out;
    let table = args.page.as_deref().map(create).transpose()?;
    write(folder, "report.css", STYLE)?;
    let effort = if args.quick { Effort::QUICK } else { Effort::FULL };
    let subjects: Vec<&Subject> = sources.iter().flat_map(|source| &source.subjects).collect();
    let bench = match args.no_time {
        true => Bench::new(Vec::new(), cpu(), true),
        false => bench::measured(&subjects, effort)?,
    };
    let mut programs = Vec::with_capacity(sources.len());
    for source in &sources {
        programs.push(program::Program::new(source, &bench)?);
    }
    for (place, program) in programs.iter().enumerate() {
        let beside =
            [place.checked_sub(1), Some(place + 1)].map(|place| programs.get(place?).map(|other| other.source));
        write(folder, &program.source.page, &program::page(program, beside))?;
    }
    write(folder, "passes.html", &passes::page())?;
    write(folder, "index.html", &index::page(&bench, &programs, args)?)?;
    if let Some(mut table) = table {
        page::write(&bench, &mut table)?;
    }
    writeln!(out, "{}", folder.join("index.html").display())?;
    Ok(Ending::of(&bench))
}

/// A file or a sample program, which has a page.
struct Source {
    input: Input,
    /// The name of the page.
    page: String,
    /// What is timed of it.
    subjects: Vec<Subject>,
    /// What loopopt has been told, by the command line and by the file.
    options: Options,
}

/// What there is a page for.
fn sources(args: &ReportArgs) -> Result<Vec<Source>> {
    let inputs: Result<Vec<Input>> = match args.files.is_empty() {
        true => samples::all().iter().map(|sample| Input::of_sample(sample.name)).collect(),
        false => args.files.iter().map(|path| Input::open(path)).collect(),
    };
    let filter = args.filter.as_deref();
    let mut pages = BTreeSet::from(["index.html".to_owned(), "passes.html".to_owned()]);
    let mut sources = Vec::new();
    for input in inputs? {
        let options = args.optimizer.options_for(&input)?;
        let mut subjects = Subject::of_input(&input, &options)?;
        let is_meant = filter.is_none_or(|filter| input.name.contains(filter));
        subjects.retain(|subject| subject.matches(filter));
        if subjects.is_empty() && !args.no_time && is_meant {
            bail!(
                "{}: there is nothing to time; add a line like `; bench: %f(mem, 1000)`, or ask for --no-time",
                input.name
            );
        }
        if is_meant || !subjects.is_empty() {
            sources.push(Source { page: page_name(&input.name, &mut pages), input, subjects, options });
        }
    }
    if sources.is_empty() {
        let filter = filter.unwrap_or_default();
        bail!("no program has `{filter}` in its name or as a tag; `list` names them all");
    }
    Ok(sources)
}

/// The name of the page of a program, which no other page has.
fn page_name(program: &str, known: &mut BTreeSet<String>) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let plain: String = program.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    let plain = plain.trim_matches('-');
    let names =
        (1..).map(|number| if number == 1 { format!("{plain}.html") } else { format!("{plain}-{number}.html") });
    let mut names = names.filter(|name| known.insert(name.clone()));
    names.next().expect("there are more numbers than pages")
}

fn write(folder: &Path, name: &str, text: &str) -> Result<()> {
    let path = folder.join(name);
    fs::create_dir_all(folder).and_then(|()| fs::write(&path, text)).map_err(|error| {
        anyhow!("{}: cannot be written: {error}; give a folder that can be written with --out", path.display())
    })
}

/// What is done to the functions of a file.
fn functions(Source { input, options, .. }: &Source) -> Result<Vec<program::Function>> {
    let shown = explain::Shown::ALL;
    let records = explain::records(input, &input.function_names(), options, shown)?;
    let isa = input.program.isa()?;
    let traced =
        input.program.functions().iter().map(|function| {
            (num_insts(function) <= MAX_SHOWN).then(|| Traced::new(function, &*isa, options)).transpose()
        });
    let advice = "the function cannot be compiled for this host";
    let traced: Result<Vec<_>> = traced.collect();
    let traced = traced.map_err(|error| in_file(&input.name, &error, advice))?;
    Ok(records.into_iter().zip(traced).map(|(record, traced)| program::Function { record, traced }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_has_a_name_of_its_own() {
        let mut known = BTreeSet::from(["index.html".to_owned()]);
        let names = ["sum", "a/b.clif", "a-b.clif", "index", "../<x>&\"y\""].map(|name| page_name(name, &mut known));
        assert_eq!(names, ["sum.html", "a-b-clif.html", "a-b-clif-2.html", "index-2.html", "x---y.html"]);
    }
}
