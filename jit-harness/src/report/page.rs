//! The results of `bench` as a page in Markdown: what a README links to.

use super::json::{Bench, Record};
use super::table::{self, time};
use std::io::{self, Write};

/// Writes the page: a line of what it is, a table of all programs, and the means.
pub fn write(bench: &Bench, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# Sample loops, with and without loopopt\n")?;
    writeln!(
        out,
        "Written by `jit-harness bench --page`, or by `report --page` with the pages for a browser, on {}. Both arms at `opt_level=speed`; what is timed does the same in both.\n",
        bench.cpu
    )?;
    if !bench.complete {
        writeln!(out, "Interrupted: these are the figures of what was measured until then.\n")?;
    }
    writeln!(
        out,
        "| program | Cranelift | with loopopt | ratio | 95 % interval | at the best places | instructions of all loops |"
    )?;
    writeln!(out, "|---|---:|---:|---:|---:|---:|---:|")?;
    for record in &bench.programs {
        writeln!(out, "{}", row(record))?;
    }
    let mut means = Vec::new();
    table::print_means(bench, &mut means)?;
    writeln!(out, "\n```text\n{}\n```\n", String::from_utf8_lossy(&means).trim())?;
    writeln!(out, "{NOTES}")
}

/// What is to be known to read the table.
const NOTES: &str = "\
Times are of one call: without loopopt the median over the rounds, with loopopt that times the ratio, which is the median of the rounds' ratios.
≈: it may be noise. \"At the best places\" is the ratio of the times at each build's best place in a cache line. Instructions are those of all
innermost loops together, of remainder loops and slow versions too; `jit-harness explain` says how many an iteration has.";

fn row(record: &Record) -> String {
    let Some(measured) = &record.measured else {
        let word = record.wrong().map_or("", |(word, _)| word);
        return format!("| {} | | | {word} | | | |", record.name);
    };
    let sign = if measured.no_gain { "≈ " } else { "" };
    let [before, after] = measured.loop_insts;
    format!(
        "| {} | {} | {} | {sign}{:.3} | {:.3} – {:.3} | {:.3} | {before} → {after} |",
        record.name,
        time(measured.baseline_ns),
        time(measured.loopopt_ns),
        measured.ratio,
        measured.low,
        measured.high,
        measured.best,
    )
}
