//! The figures of programs in modes, as records for machines and as a table for people.

use crate::figures::Figures;
use crate::trial::{Compared, Pair};
use anyhow::Result;
use jit_harness::command::Ending;
use jit_harness::interrupt;
use jit_harness::report::table::{Columns, time};
use jit_harness::stats::geomean;
use jit_harness::target::cpu;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// A program in a mode. In pairs, the first is without loopopt and the second with it.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    /// The name of the program.
    pub name: String,
    /// The mode.
    pub mode: String,
    /// Whether both arms do the same. If not, nothing was timed.
    pub agree: bool,
    /// What is not the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<String>,
    /// How it ended.
    pub outcome: String,
    /// Bytes of machine code.
    pub code_bytes: [usize; 2],
    /// Time from WebAssembly to machine code.
    pub compile_ns: [u128; 2],
    /// How often each pass fired.
    pub fired: BTreeMap<&'static str, usize>,
    /// What was measured.
    #[serde(flatten)]
    pub measured: Option<Measured>,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Time of the call: the median over the turns, of the samples that the ratio is made of.
    pub ns: [f64; 2],
    /// The median of the ratios.
    pub ratio: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The ratio of the baseline to itself.
    pub noise: f64,
    /// Whether the ratio may be noise.
    pub no_gain: bool,
    /// How many turns the medians are of.
    pub turns: usize,
}

/// A whole run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// One record for each program and mode.
    pub records: Vec<Record>,
    /// The geometric mean of the ratios, `null` if there are none.
    pub geomean: Option<f64>,
    /// The model name of the processor.
    pub cpu: String,
}

impl Record {
    /// A program that was compared, and of which nothing is measured yet.
    pub fn new(name: &str, pair: &Pair, compared: &Compared) -> Self {
        let mut fired = BTreeMap::new();
        for function in &pair.loopopt.compilation.functions {
            for (pass, count) in function.report.remarks.fired_counts() {
                *fired.entry(pass).or_default() += count;
            }
        }
        Self {
            name: name.to_owned(),
            mode: pair.baseline.mode.to_string(),
            agree: compared.difference.is_none(),
            difference: compared.difference.clone(),
            outcome: compared.seen.outcome.to_string(),
            code_bytes: pair.code_bytes(),
            compile_ns: [&pair.baseline, &pair.loopopt].map(|arm| arm.time.as_nanos()),
            fired,
            measured: None,
        }
    }

    /// Adds what was measured.
    pub fn measure(&mut self, figures: &Figures) {
        self.measured = Some(Measured {
            ns: figures.ns,
            ratio: figures.ratio.median,
            low: figures.ratio.low,
            high: figures.ratio.high,
            noise: figures.noise.median,
            no_gain: figures.is_noise(),
            turns: figures.turns,
        });
    }
}

impl Report {
    /// Adds the mean to the records.
    pub fn new(records: Vec<Record>) -> Self {
        let ratios: Vec<f64> = records.iter().filter_map(|record| Some(record.measured.as_ref()?.ratio)).collect();
        let mean = (!ratios.is_empty()).then(|| geomean(ratios));
        Self { records, geomean: mean, cpu: cpu() }
    }

    /// How a command ends that has measured this. Says so if it was interrupted.
    pub fn ending(&self, out: &mut dyn Write) -> Result<Ending> {
        if interrupt::is_asked() {
            writeln!(out, "{}", interrupt::NOTICE)?;
            return Ok(Ending::Interrupted);
        }
        Ok(if self.records.iter().all(|record| record.agree) { Ending::Fine } else { Ending::Differs })
    }
}

/// Prints the table, the mean, and what does not agree.
pub fn print(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut table = Columns::new(&[
        "program",
        "mode:",
        "without",
        "with",
        "ratio",
        "95 % interval",
        "",
        "code",
        "compile time",
        "outcome:",
    ]);
    for record in &report.records {
        table.add(&row(record));
    }
    writeln!(out, "{table}")?;
    if let Some(mean) = report.geomean {
        writeln!(out, "\ngeometric mean {mean:.4}")?;
    }
    for record in &report.records {
        if let Some(difference) = &record.difference {
            writeln!(out, "DIFFERS: {} ({}): {difference}", record.name, record.mode)?;
        }
    }
    Ok(())
}

fn row(record: &Record) -> Vec<String> {
    let mut cells = vec![record.name.clone(), record.mode.clone()];
    match &record.measured {
        Some(measured) => cells.extend([
            time(measured.ns[0]),
            time(measured.ns[1]),
            format!("{:.3}", measured.ratio),
            format!("{:.3} - {:.3}", measured.low, measured.high),
            if measured.no_gain { "≈" } else { "" }.to_owned(),
        ]),
        None => cells.extend(["-", "-", if record.agree { "-" } else { "DIFFERS" }, "", ""].map(str::to_owned)),
    }
    let [bytes, bytes_with] = record.code_bytes.map(|bytes| bytes as f64);
    let [compile, compile_with] = record.compile_ns.map(|ns| ns as f64);
    cells.push(format!("{:.3}", bytes_with / bytes));
    cells.push(format!("{:.3}", compile_with / compile));
    cells.push(record.outcome.clone());
    cells
}
