//! The results of `bench` as a table for spreadsheets: one line for each program.

use super::json::{Measured, Record};
use anyhow::{Context as _, Result};
use serde::Serialize;
use std::io::Write;

/// The first columns of a line.
#[derive(Serialize)]
struct Program<'a> {
    name: &'a str,
    tags: String,
    agree: bool,
    difference: Option<&'a str>,
    failure: Option<&'a str>,
    fired: String,
}

/// The other columns, which are empty if the program was not timed.
#[derive(Default, Serialize)]
struct Figures {
    baseline_ns: Option<f64>,
    loopopt_ns: Option<f64>,
    ratio: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    noise: Option<f64>,
    margin: Option<f64>,
    no_gain: Option<bool>,
    vs_unchecked: Option<f64>,
    rounds: Option<usize>,
    best: Option<f64>,
    baseline_spread: Option<f64>,
    loopopt_spread: Option<f64>,
    baseline_code_bytes: Option<usize>,
    loopopt_code_bytes: Option<usize>,
    baseline_compile_ns: Option<u128>,
    loopopt_compile_ns: Option<u128>,
    baseline_loop_insts: Option<usize>,
    loopopt_loop_insts: Option<usize>,
    baseline_loop_stack_accesses: Option<usize>,
    loopopt_loop_stack_accesses: Option<usize>,
}

/// Writes a line of titles, and one for each program.
pub fn write(programs: &[Record], out: impl Write) -> Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    for record in programs {
        let figures = record.measured.as_ref().map(Figures::of).unwrap_or_default();
        writer.serialize((Program::of(record), figures, Native { native_ns: record.native_ns }))?;
    }
    writer.flush().context("cannot write the table")
}

/// The last column, which is empty without `--native`.
#[derive(Serialize)]
struct Native {
    native_ns: Option<f64>,
}

impl<'a> Program<'a> {
    fn of(record: &'a Record) -> Self {
        let fired: Vec<String> = record.fired.iter().map(|(pass, count)| format!("{pass} {count}")).collect();
        Self {
            name: &record.name,
            tags: record.tags.join(" "),
            agree: record.agree,
            difference: record.difference.as_deref(),
            failure: record.failure.as_deref(),
            fired: fired.join("; "),
        }
    }
}

impl Figures {
    fn of(measured: &Measured) -> Self {
        let [baseline_spread, loopopt_spread] = measured.spread.map(Some);
        let [baseline_code_bytes, loopopt_code_bytes] = measured.code_bytes.map(Some);
        let [baseline_compile_ns, loopopt_compile_ns] = measured.compile_ns.map(Some);
        let [baseline_loop_insts, loopopt_loop_insts] = measured.loop_insts.map(Some);
        let [baseline_loop_stack_accesses, loopopt_loop_stack_accesses] = measured.loop_stack_accesses.map(Some);
        Self {
            baseline_ns: Some(measured.baseline_ns),
            loopopt_ns: Some(measured.loopopt_ns),
            ratio: Some(measured.ratio),
            low: Some(measured.low),
            high: Some(measured.high),
            noise: Some(measured.noise),
            margin: Some(measured.margin),
            no_gain: Some(measured.no_gain),
            vs_unchecked: measured.vs_unchecked,
            rounds: Some(measured.rounds),
            best: Some(measured.best),
            baseline_spread,
            loopopt_spread,
            baseline_code_bytes,
            loopopt_code_bytes,
            baseline_compile_ns,
            loopopt_compile_ns,
            baseline_loop_insts,
            loopopt_loop_insts,
            baseline_loop_stack_accesses,
            loopopt_loop_stack_accesses,
        }
    }
}
