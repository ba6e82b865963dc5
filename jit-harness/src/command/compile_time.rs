//! `bench --compile-time`: what the optimizer costs.
//!
//! Three questions: what does a function without a loop pay, does the time grow with the size of the function and not
//! faster, and what do the sample programs pay all together. Cranelift's verifier is off, as embedders have it.

use super::Ending;
use super::bench::{create, write_json};
use crate::cli::BenchArgs;
use crate::generate;
use crate::heap;
use crate::report::table::{self, Columns};
use crate::subject::sample_function;
use crate::target;
use anyhow::{Result, anyhow};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{CodegenResult, Context};
use loopopt::{LoopOptimizer, Options};
use serde::Serialize;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// Diamonds in the function without loops: about as many blocks as a large function of a real program has.
const DIAMONDS: usize = 100;
/// Loops in the functions that grow.
const LOOPS: [usize; 3] = [500, 1_500, 5_000];

/// All that is measured.
#[derive(Debug, Serialize)]
struct CompileTime {
    /// The function without loops.
    loop_free: Row,
    /// The functions that grow.
    growth: Vec<Row>,
    /// All sample programs.
    samples: Row,
    /// The processor.
    cpu: String,
}

/// One function, or several of them together.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    blocks: usize,
    loops: usize,
    /// Optimizing at `opt_level=speed` and lowering.
    baseline_ns: f64,
    /// The same with loopopt between.
    loopopt_ns: f64,
    /// `LoopOptimizer::run` alone.
    run_ns: f64,
    /// The most memory in use, without and with loopopt.
    peak_bytes: [usize; 2],
    /// Time in each pass.
    passes: Vec<(&'static str, f64)>,
}

/// What one compilation costs.
#[derive(Clone, Debug, Default)]
struct Cost {
    total: Duration,
    run: Duration,
    peak: usize,
    loops: usize,
    passes: Vec<(&'static str, Duration)>,
}

pub(super) fn run(args: &BenchArgs, out: &mut dyn Write) -> Result<Ending> {
    let options = args.optimizer.options()?;
    let isa = target::host()?;
    let file = args.json.as_deref().map(create).transpose()?;
    let effort = if args.quick { 2 } else { 5 };
    let meter = Meter { isa: &*isa, options: &options };
    let loop_free = meter.row("no loops", &generate::diamonds(DIAMONDS, &*isa)?, 20 * effort)?;
    let mut growth = Vec::new();
    for count in LOOPS {
        let function = generate::loops(count, &*isa)?;
        growth.push(meter.row(&format!("{count} loops"), &function, effort)?);
    }
    let mut samples = Row::new("all samples");
    for sample in bench_programs::all() {
        samples.add(meter.row(sample.name, &sample_function(sample)?, 5 * effort)?);
    }
    let result = CompileTime { loop_free, growth, samples, cpu: target::cpu() };
    print(&result, out)?;
    if let Some(file) = file {
        write_json(file, &result)?;
    }
    Ok(Ending::Fine)
}

struct Meter<'a> {
    isa: &'a dyn TargetIsa,
    options: &'a Options,
}

impl Meter<'_> {
    /// Compiles with both arms in turn and keeps the shortest times.
    fn row(&self, name: &str, function: &Function, repeat: usize) -> Result<Row> {
        let compile = |with_loopopt| {
            self.compile(function, with_loopopt).map_err(|error| anyhow!("{name}: cannot be compiled: {error}"))
        };
        let (mut baseline, mut loopopt) = (compile(false)?, compile(true)?);
        for turn in 1..repeat {
            for with_loopopt in [turn % 2 == 0, turn % 2 == 1] {
                let best = if with_loopopt { &mut loopopt } else { &mut baseline };
                best.improve(compile(with_loopopt)?);
            }
        }
        let ns = |time: Duration| time.as_nanos() as f64;
        Ok(Row {
            name: name.to_owned(),
            blocks: function.layout.blocks().count(),
            loops: loopopt.loops,
            baseline_ns: ns(baseline.total),
            loopopt_ns: ns(loopopt.total),
            run_ns: ns(loopopt.run),
            peak_bytes: [baseline.peak, loopopt.peak],
            passes: loopopt.passes.iter().map(|&(pass, time)| (pass, ns(time))).collect(),
        })
    }

    fn compile(&self, function: &Function, with_loopopt: bool) -> CodegenResult<Cost> {
        let mut ctx = Context::for_function(function.clone());
        let mut optimizer = LoopOptimizer::new(self.options.clone());
        let mut cost = Cost::default();
        let (result, peak) = heap::peak(|| {
            let plane = &mut ControlPlane::default();
            let start = Instant::now();
            ctx.optimize(self.isa, plane)?;
            if with_loopopt {
                let before = Instant::now();
                let report = optimizer.run(&mut ctx, self.isa, plane)?;
                cost.run = before.elapsed();
                cost.loops = report.loops;
                cost.passes = report.timings;
            }
            self.isa.compile_function(&ctx.func, &ctx.domtree, &mut Default::default(), false, plane)?;
            cost.total = start.elapsed();
            Ok(())
        });
        cost.peak = peak;
        result.map(|()| cost)
    }
}

impl Cost {
    /// Keeps the shorter time of each part.
    fn improve(&mut self, other: Self) {
        self.total = self.total.min(other.total);
        self.run = self.run.min(other.run);
        for ((_, own), (_, other)) in self.passes.iter_mut().zip(other.passes) {
            *own = other.min(*own);
        }
    }
}

impl Row {
    fn new(name: &str) -> Self {
        let (name, peak_bytes) = (name.to_owned(), [0; 2]);
        let [baseline_ns, loopopt_ns, run_ns] = [0.0; 3];
        Self { name, blocks: 0, loops: 0, baseline_ns, loopopt_ns, run_ns, peak_bytes, passes: Vec::new() }
    }

    /// Adds another function: times are added, of memory the larger counts.
    fn add(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.loops += other.loops;
        self.baseline_ns += other.baseline_ns;
        self.loopopt_ns += other.loopopt_ns;
        self.run_ns += other.run_ns;
        self.peak_bytes = [0, 1].map(|arm| self.peak_bytes[arm].max(other.peak_bytes[arm]));
        for (pass, time) in other.passes {
            match self.passes.iter_mut().find(|(name, _)| *name == pass) {
                Some((_, total)) => *total += time,
                None => self.passes.push((pass, time)),
            }
        }
    }

    fn per_block(&self, ns: f64) -> String {
        format!("{:.0}", ns / self.blocks as f64)
    }
}

fn print(result: &CompileTime, out: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<&Row> =
        std::iter::once(&result.loop_free).chain(&result.growth).chain(std::iter::once(&result.samples)).collect();
    writeln!(out, "compile time, opt_level=speed and enable_verifier=false; ns per block are in brackets\n")?;
    let header =
        ["function", "blocks", "loops", "baseline", "loopopt", "ratio", "run alone", "share", "peak memory", "ratio"];
    let mut summary = Columns::new(&header);
    for row in &rows {
        let [peak, peak_with] = row.peak_bytes.map(|bytes| bytes as f64);
        let timed = |ns: f64| format!("{} ({})", table::time(ns), row.per_block(ns));
        summary.add(&[
            row.name.clone(),
            row.blocks.to_string(),
            row.loops.to_string(),
            timed(row.baseline_ns),
            timed(row.loopopt_ns),
            format!("{:.3}", row.loopopt_ns / row.baseline_ns),
            timed(row.run_ns),
            format!("{:.2} %", 100.0 * row.run_ns / row.baseline_ns),
            format!("{:.1} -> {:.1} MB", peak / 1e6, peak_with / 1e6),
            format!("{:.3}", peak_with / peak),
        ]);
    }
    writeln!(out, "{summary}\n")?;
    print_passes(&rows, out)?;
    writeln!(out, "\nshare: LoopOptimizer::run by the baseline's compile time; times are the shortest of several")
}

/// Nanoseconds per block of each pass, which should not grow from one size to the next.
fn print_passes(rows: &[&Row], out: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<_> = rows.iter().filter(|row| !row.passes.is_empty()).collect();
    let Some(longest) = rows.iter().max_by_key(|row| row.passes.len()) else { return Ok(()) };
    let mut header = vec!["pass, ns per block"];
    header.extend(rows.iter().map(|row| &row.name[..]));
    let mut passes = Columns::new(&header);
    for (pass, _) in &longest.passes {
        let mut cells = vec![(*pass).to_owned()];
        for row in &rows {
            let time = row.passes.iter().find(|(name, _)| name == pass).map_or(0.0, |(_, time)| *time);
            cells.push(format!("{:.1}", time / row.blocks as f64));
        }
        passes.add(&cells);
    }
    writeln!(out, "{passes}")
}
