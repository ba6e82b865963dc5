//! The records of `bench`, as they are written with `--json`.

use crate::arms::{PLACES, Static};
use crate::sample::Figures;
use crate::stats::geomean;
use crate::subject::Subject;
use anyhow::{Context as _, Result, anyhow};
use loopopt::Report;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// A whole run.
#[derive(Clone, Debug, Serialize)]
pub struct Bench {
    /// One record for each program, in the order in which they ran.
    pub programs: Vec<Record>,
    /// The geometric mean of the ratios, `null` if there are none.
    pub geomean: Option<f64>,
    /// The largest ratio, `null` if there are none.
    pub worst: Option<f64>,
    /// The geometric mean of the baseline against itself.
    pub noise_geomean: Option<f64>,
    /// The geometric mean of the ratios of programs that can be built without their checks.
    pub checked_geomean: Option<f64>,
    /// The geometric mean of what such a program takes, divided by what it takes without checks, both with loopopt.
    pub vs_unchecked_geomean: Option<f64>,
    /// Bytes of machine code of all programs together, loopopt by baseline.
    pub code_growth: Option<f64>,
    /// The model name of the processor.
    pub cpu: String,
    /// Whether all programs were measured to the end.
    pub complete: bool,
}

/// A program.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    /// The name of the sample, or the file and line.
    pub name: String,
    /// The sample's tags.
    pub tags: Vec<String>,
    /// Whether all arms do the same, and what the file says. If not, nothing was timed.
    pub agree: bool,
    /// What is not the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<String>,
    /// Which line of the file is wrong, if all arms do the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// How often each pass fired.
    pub fired: BTreeMap<&'static str, usize>,
    /// What was measured.
    #[serde(flatten)]
    pub measured: Option<Measured>,
    /// The time of the C kernel in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_ns: Option<f64>,
}

/// What was measured. In pairs, the first is of the baseline and the second of loopopt.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Time of a call: the median over the rounds, of the samples that the ratio is made of.
    pub baseline_ns: f64,
    /// That times the ratio.
    pub loopopt_ns: f64,
    /// The median of the ratios of time, loopopt by baseline.
    pub ratio: f64,
    /// The lower end of the median's 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The ratio of the baseline to itself.
    pub noise: f64,
    /// The largest change that may be noise.
    pub margin: f64,
    /// Whether the ratio may be noise.
    pub no_gain: bool,
    /// Time with loopopt divided by the time of the same program without its checks, also with loopopt; nothing if it has
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vs_unchecked: Option<f64>,
    /// How many rounds the medians are of.
    pub rounds: usize,
    /// The shortest time of a call at each placement.
    pub placements_ns: [[f64; PLACES]; 2],
    /// The time at loopopt's best placement divided by that at the baseline's best.
    pub best: f64,
    /// The slowest placement divided by the fastest.
    pub spread: [f64; 2],
    /// Bytes of machine code.
    pub code_bytes: [usize; 2],
    /// Time from CLIF to machine code.
    pub compile_ns: [u128; 2],
    /// Instructions of all innermost loops together, those of remainder loops and slow versions included.
    pub loop_insts: [usize; 2],
    /// How many of them read or write the stack frame: spilled values, and stack slots of the program.
    pub loop_stack_accesses: [usize; 2],
}

impl Record {
    /// A program of which nothing is known yet.
    pub fn new(subject: &Subject) -> Self {
        Self {
            name: subject.name.clone(),
            tags: subject.tags.clone(),
            agree: false,
            difference: None,
            failure: None,
            fired: BTreeMap::new(),
            measured: None,
            native_ns: None,
        }
    }

    /// Whether anything is known of the program: that it is wrong, or how fast it is.
    pub fn is_known(&self) -> bool {
        self.wrong().is_some() || self.measured.is_some()
    }

    /// Why the program was not timed: in one word, and in a line.
    pub fn wrong(&self) -> Option<(&'static str, &str)> {
        let difference = self.difference.as_deref().map(|what| ("DIFFERS", what));
        difference.or_else(|| self.failure.as_deref().map(|what| ("FAILED", what)))
    }

    /// Counts what was done to all functions of the program.
    pub fn count_fired(&mut self, reports: &[(String, Report)]) {
        for (pass, count) in reports.iter().flat_map(|(_, report)| report.remarks.fired_counts()) {
            *self.fired.entry(pass).or_default() += count;
        }
    }
}

impl Measured {
    /// The mean over the placements of the shortest times, without and with loopopt.
    pub fn shortest_ns(&self) -> [f64; 2] {
        self.placements_ns.map(|times| times.iter().sum::<f64>() / PLACES as f64)
    }

    /// Puts together what was measured of a program.
    pub fn new(figures: &Figures, rounds: usize, arms: [Static; 2]) -> Self {
        Self {
            baseline_ns: figures.ns[0],
            loopopt_ns: figures.ns[1],
            ratio: figures.ratio.median,
            low: figures.ratio.low,
            high: figures.ratio.high,
            noise: figures.noise.median,
            margin: figures.margin(),
            no_gain: figures.is_noise(),
            vs_unchecked: figures.unchecked.map(|ratio| ratio.median),
            rounds,
            placements_ns: figures.placements,
            best: figures.best(),
            spread: figures.spread(),
            code_bytes: arms.map(|arm| arm.code_bytes),
            compile_ns: arms.map(|arm| arm.compile_time.as_nanos()),
            loop_insts: arms.map(|arm| arm.loop_insts),
            loop_stack_accesses: arms.map(|arm| arm.loop_stack_accesses),
        }
    }
}

impl Bench {
    /// Adds the means to the records.
    pub fn new(programs: Vec<Record>, cpu: String, complete: bool) -> Self {
        let measured = || programs.iter().filter_map(|record| record.measured.as_ref());
        let checked = || measured().filter_map(|measured| Some((measured.ratio, measured.vs_unchecked?)));
        let any = measured().next().is_some();
        let any_checked = checked().next().is_some();
        let bytes = |arm: usize| measured().map(|measured| measured.code_bytes[arm]).sum::<usize>() as f64;
        Self {
            geomean: any.then(|| geomean(measured().map(|measured| measured.ratio))),
            worst: measured().map(|measured| measured.ratio).reduce(f64::max),
            noise_geomean: any.then(|| geomean(measured().map(|measured| measured.noise))),
            checked_geomean: any_checked.then(|| geomean(checked().map(|(ratio, _)| ratio))),
            vs_unchecked_geomean: any_checked.then(|| geomean(checked().map(|(_, ratio)| ratio))),
            code_growth: any.then(|| bytes(1) / bytes(0)),
            programs,
            cpu,
            complete,
        }
    }

    /// The range of the baseline against itself.
    pub fn noise_range(&self) -> Option<(f64, f64)> {
        let noises = || self.programs.iter().filter_map(|record| Some(record.measured.as_ref()?.noise));
        noises().reduce(f64::min).zip(noises().reduce(f64::max))
    }
}

/// Creates the file early, so that a wrong path does not cost a measurement.
pub fn create(path: &Path) -> Result<File> {
    File::create(path).map_err(|error| anyhow!("{}: {error}; give a path that can be written", path.display()))
}

/// Writes a record.
pub fn write_json(to: impl Write, record: &impl Serialize) -> Result<()> {
    let mut file = BufWriter::new(to);
    serde_json::to_writer_pretty(&mut file, record).context("cannot write the record")?;
    writeln!(file)?;
    file.flush().context("cannot write the record")
}
