//! The first page: the means, the plots, and a table of all programs.

use super::bar::bar;
use super::parts::{page as whole, quotient, tile};
use super::plots::{self, Point};
use super::program::Program;
use crate::cli::ReportArgs;
use crate::listing::count;
use crate::report::json::{Bench, Measured, Record};
use crate::report::table::time;
use anyhow::Result;
use maud::{Markup, html};
use std::collections::BTreeMap;

/// The page.
pub(super) fn page(bench: &Bench, programs: &[Program<'_>], args: &ReportArgs) -> Result<String> {
    let rows = rows(programs);
    let is_timed = !args.no_time;
    let body = html! {
        h1 { "Loops with and without loopopt" }
        p.lead {
            (count(programs.len(), "program")) ", each compiled by Cranelift at " code { "opt_level=speed" }
            ", and by the same with loopopt. Each name leads to what was done to its loops and to its code."
        }
        @if is_timed {
            p { "On " (bench.cpu) ", options: " (args.settings()) ". What is timed gave the same results in both arms before." }
            @if !bench.complete { p.differs { "Interrupted: these are the figures of what was measured until then." } }
            div.tiles { (means(bench)) }
            (pictures(&rows)?)
        } @else {
            p { "Nothing was timed. Options: " (args.settings()) "." }
        }
        h2 { "All programs" }
        @if is_timed {
            p.key {
                "A bar is the time with loopopt by the time without, with the 95 % interval of the median. The line is 1. "
                span.noise { "Grey" } " with ≈: it may be noise. Instructions are those of an iteration, of each innermost loop."
            }
        }
        (filters(&rows))
        div.box tabindex="0" { (table(&rows, is_timed)) }
    };
    Ok(whole("loopopt report", &body))
}

/// A program in the table. A file without anything to time has a row without figures.
struct Row<'a, 'b> {
    program: &'b Program<'a>,
    record: Option<&'a Record>,
}

impl<'a> Row<'a, '_> {
    fn name(&self) -> &'a str {
        self.record.map_or(&self.program.source.input.name, |record| &record.name)
    }

    fn measured(&self) -> Option<&'a Measured> {
        self.record?.measured.as_ref()
    }

    /// The tags of the program.
    fn tags(&self) -> impl Iterator<Item = &str> {
        let subjects = &self.program.source.subjects;
        let subject = subjects.iter().find(|subject| subject.name == self.name()).or(subjects.first());
        subject.into_iter().flat_map(|subject| &subject.tags).map(String::as_str)
    }

    fn point(&self) -> Option<Point<'a>> {
        Some(Point { name: self.name(), page: &self.program.source.page, measured: self.measured()? })
    }
}

/// The best first, and those without figures at the end.
fn rows<'a, 'b>(programs: &'b [Program<'a>]) -> Vec<Row<'a, 'b>> {
    let mut rows = Vec::new();
    for program in programs {
        match &program.records[..] {
            [] => rows.push(Row { program, record: None }),
            records => rows.extend(records.iter().map(|&record| Row { program, record: Some(record) })),
        }
    }
    rows.sort_by(|a, b| {
        let ratio = |row: &Row<'_, '_>| row.measured().map_or(f64::INFINITY, |measured| measured.ratio);
        ratio(a).total_cmp(&ratio(b))
    });
    rows
}

/// Links to the programs with a tag. What a link leads to is selected, and the style sheet below hides the other programs: no script is needed.
fn filters(rows: &[Row<'_, '_>]) -> Markup {
    let mut counts = BTreeMap::<&str, usize>::new();
    for tag in rows.iter().flat_map(Row::tags) {
        *counts.entry(tag).or_default() += 1;
    }
    let hide = |tag: &&str| format!("#{tag}:target ~ .box tbody tr:not(.t-{tag}) {{ display: none; }}");
    let hide: Vec<String> = counts.keys().map(hide).collect();
    html! {
        @if !counts.is_empty() {
            style { (hide.join("\n")) }
            @for tag in counts.keys() { i id=(tag) {} }
            p.filters { "Only " @for (tag, count) in &counts { a href={ "#" (tag) } { (tag) " " small { (count) } } " " } a href="index.html" { "all" } }
        }
    }
}

fn means(bench: &Bench) -> Markup {
    let optional = |what: &str, figure: Option<f64>, more: &str| {
        html! { @if let Some(figure) = figure { (tile(what, &format!("{figure:.3}"), more)) } }
    };
    let measured = || bench.programs.iter().filter(|record| record.measured.is_some());
    let count = format!("of {}", count(measured().count(), "program"));
    let noise = bench.noise_range().map_or(String::new(), |(low, high)| format!("{low:.3} to {high:.3}"));
    let ratio = |record: &Record| record.measured.as_ref().map_or(0.0, |measured| measured.ratio);
    let worst = measured().max_by(|a, b| ratio(a).total_cmp(&ratio(b))).map_or("", |record| &record.name);
    html! {
        (optional("geometric mean of time", bench.geomean, &count))
        (optional("worst", bench.worst, worst))
        (optional("with checks", bench.checked_geomean, "those that can be built without"))
        (optional("by the same without checks", bench.vs_unchecked_geomean, "both with loopopt"))
        (optional("code size", bench.code_growth, "of all together"))
        (optional("noise: Cranelift by itself", bench.noise_geomean, &noise))
    }
}

fn pictures(rows: &[Row<'_, '_>]) -> Result<Markup> {
    let points: Vec<Point<'_>> = rows.iter().filter_map(Row::point).collect();
    if points.is_empty() {
        return Ok(html! {});
    }
    let ratios = plots::ratios(&points)?;
    let compile = plots::scatter(&points, "compile time by Cranelift's", compile_ratio)?;
    let size = plots::scatter(&points, "code size by Cranelift's", size_ratio)?;
    Ok(html! {
        h2 { "What they gain" }
        (ratios)
        h2 { "What it costs" }
        div.pair { div.side { (compile) } div.side { (size) } }
    })
}

fn compile_ratio(measured: &Measured) -> Option<f64> {
    let [before, after] = measured.compile_ns.map(|ns| ns as f64);
    quotient(before, after)
}

fn size_ratio(measured: &Measured) -> Option<f64> {
    let [before, after] = measured.code_bytes.map(|bytes| bytes as f64);
    quotient(before, after)
}

fn table(rows: &[Row<'_, '_>], is_timed: bool) -> Markup {
    html! {
        table {
            thead { tr {
                th { "program" }
                @if is_timed { th { } th.n { "ratio" } th.n { "95 % interval" } th.n { "Cranelift" } th.n { "with loopopt" } }
                th.n { "instructions" } th.n { "code" }
                @if is_timed { th.n { "compile time" } }
                th { "passes that fired" }
            } }
            tbody { @for row in rows { (line(row, is_timed)) } }
        }
    }
}

fn line(row: &Row<'_, '_>, is_timed: bool) -> Markup {
    let iterations = row.program.iterations();
    let shown = iterations.get(..2).map_or_else(
        || iterations.join(", "),
        |first| format!("{}{}", first.join(", "), if iterations.len() > 2 { ", …" } else { "" }),
    );
    let size = row.program.bytes().and_then(|[before, after]| quotient(before as f64, after as f64));
    html! {
        tr class=(row.tags().map(|tag| format!("t-{tag}")).collect::<Vec<_>>().join(" ")) {
            td { a href=(row.program.source.page) { (row.name()) } }
            @if is_timed { (figures(row)) }
            td.n { (shown) }
            td.n { @if let Some(size) = size { (format!("{size:.2}")) } }
            @if is_timed { td.n { @if let Some(ratio) = row.measured().and_then(compile_ratio) { (format!("{ratio:.2}")) } } }
            td.passes { (row.program.fired()) }
        }
    }
}

fn figures(row: &Row<'_, '_>) -> Markup {
    let Some(measured) = row.measured() else {
        let wrong = row.record.and_then(Record::wrong);
        return html! { td.differs colspan="5" { @if let Some((word, what)) = wrong { (word) ": " (what) } } };
    };
    html! {
        td { (bar(measured)) }
        td.n { @if measured.no_gain { "≈ " } strong { (format!("{:.3}", measured.ratio)) } }
        td.n { (format!("{:.3} – {:.3}", measured.low, measured.high)) }
        td.n { (time(measured.baseline_ns)) }
        td.n { (time(measured.loopopt_ns)) }
    }
}
