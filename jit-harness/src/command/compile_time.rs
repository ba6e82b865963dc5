//! `bench --compile-time`: what the optimizer costs.
//!
//! Three questions: what does a function without a loop pay, does the time grow with the size of the function and not
//! faster, and what do the sample programs pay all together. Cranelift's verifier is off, as embedders have it.
//!
//! What is paid has two parts: the time of the loop passes, a second run of Cranelift's egraph pass among them, and the
//! time that it takes longer, or less long, to lower the code that they made.

use super::Ending;
use crate::cli::BenchArgs;
use crate::generate;
use crate::heap;
use crate::input::Input;
use crate::progress::{Progress, progress};
use crate::report::made::Made;
use crate::report::table::{self, Columns};
use crate::report::whole::WholeFile;
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

/// What is measured of files.
#[derive(Debug, Serialize)]
struct OfFiles {
    files: Vec<Row>,
    /// The processor.
    cpu: String,
}

/// One function, or several of them together, compiled one after the other: a compiler that sees one function over and over
/// again runs from caches and branch predictors that know it by heart, which the larger of two compilers profits from more.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    name: String,
    blocks: usize,
    loops: usize,
    /// Optimizing at `opt_level=speed` and lowering.
    pub(super) baseline_ns: f64,
    /// The same with loopopt between.
    pub(super) loopopt_ns: f64,
    /// `Context::optimize` alone.
    optimize_ns: f64,
    /// `LoopOptimizer::run` alone.
    pub(super) run_ns: f64,
    /// Lowering, register allocation and emission alone, without and with loopopt.
    pub(super) lower_ns: [f64; 2],
    /// The most memory in use, without and with loopopt.
    peak_bytes: [usize; 2],
    /// How often loopopt made what its passes look at.
    made: Made,
    /// Time in each pass.
    pub(super) passes: Vec<(&'static str, f64)>,
}

/// What one compilation costs.
#[derive(Clone, Debug, Default)]
struct Cost {
    total: Duration,
    optimize: Duration,
    run: Duration,
    lower: Duration,
    loops: usize,
    made: Made,
    passes: Vec<(&'static str, Duration)>,
}

pub(super) fn run(args: &BenchArgs, out: &mut dyn Write) -> Result<Ending> {
    if !args.files.is_empty() {
        return run_files(args, out);
    }
    let options = args.optimizer.options()?;
    let isa = target::host()?;
    let file = args.json.as_deref().map(WholeFile::new).transpose()?;
    let effort = if args.quick { 2 } else { 5 };
    let loop_free = Work::of_one("no loops", generate::diamonds(DIAMONDS, &*isa)?, 20 * effort);
    let growth: Vec<Work> = LOOPS
        .into_iter()
        .map(|count| Ok(Work::of_one(&format!("{count} loops"), generate::loops(count, &*isa)?, effort)))
        .collect::<Result<_>>()?;
    let samples = bench_programs::all().iter().map(|sample| Ok((sample.name.to_owned(), sample_function(sample)?)));
    let samples = Work { name: "samples".to_owned(), functions: samples.collect::<Result<_>>()?, repeat: 10 * effort };
    let all = [&loop_free, &samples].into_iter().chain(&growth);
    let meter = Meter { isa: &*isa, options: &options, progress: &progress(all.map(Work::size).sum()) };
    let loop_free = meter.row(&loop_free)?;
    let growth = growth.iter().map(|work| meter.row(work)).collect::<Result<_>>()?;
    let samples = meter.sum("all samples", &samples)?;
    meter.progress.finish_and_clear();
    let result = CompileTime { loop_free, growth, samples, cpu: target::cpu() };
    let CompileTime { loop_free, growth, samples, .. } = &result;
    print(&[loop_free].into_iter().chain(growth).chain([samples]).collect::<Vec<_>>(), out)?;
    if let Some(file) = file {
        file.finish(&result)?;
    }
    Ok(Ending::Fine)
}

/// The same for files: all functions of each together, with the settings of the file.
fn run_files(args: &BenchArgs, out: &mut dyn Write) -> Result<Ending> {
    let json = args.json.as_deref().map(WholeFile::new).transpose()?;
    let repeat = if args.quick { 20 } else { 50 };
    let (mut rows, isa) = (Vec::new(), target::host()?);
    for path in &args.files {
        let input = Input::open(path)?;
        let options = args.optimizer.options_for(&input)?;
        let functions = input.function_names().into_iter().zip(input.program.functions().iter().cloned()).collect();
        let work = Work { name: input.name.clone(), functions, repeat };
        let meter = Meter { isa: &*isa, options: &options, progress: &progress(work.size()) };
        rows.push(meter.sum(&input.name, &work)?);
        meter.progress.finish_and_clear();
    }
    let result = OfFiles { files: rows, cpu: target::cpu() };
    print(&result.files.iter().collect::<Vec<_>>(), out)?;
    if let Some(json) = json {
        json.finish(&result)?;
    }
    Ok(Ending::Fine)
}

/// Functions to be compiled in turn, and how often.
pub(super) struct Work {
    name: String,
    functions: Vec<(String, Function)>,
    repeat: usize,
}

impl Work {
    /// One function.
    pub(super) fn of_one(name: &str, function: Function, repeat: usize) -> Self {
        Self { name: name.to_owned(), functions: vec![(name.to_owned(), function)], repeat }
    }

    /// How much is compiled, in instructions.
    pub(super) fn size(&self) -> usize {
        let functions = self.functions.iter();
        2 * (self.repeat + 1) * functions.map(|(_, function)| function.dfg.num_insts()).sum::<usize>()
    }
}

/// These options, but for what only `explain` reads.
fn as_measured(options: &Options) -> Options {
    let mut options = options.clone();
    options.refusals = false;
    options
}

/// Compiles with both arms.
pub(super) struct Meter<'a> {
    pub(super) isa: &'a dyn TargetIsa,
    pub(super) options: &'a Options,
    /// In [`Work::size`].
    pub(super) progress: &'a Progress,
}

impl Meter<'_> {
    /// Compiles one function with both arms in turn and keeps the shortest times.
    pub(super) fn row(&self, work: &Work) -> Result<Row> {
        let mut rows = self.rows(work)?;
        Ok(rows.remove(0))
    }

    /// The same of all functions together.
    fn sum(&self, name: &str, work: &Work) -> Result<Row> {
        let mut sum = Row::new(name);
        self.rows(work)?.into_iter().for_each(|row| sum.add(row));
        Ok(sum)
    }

    /// Compiles all functions, one after the other, with both arms in turn, and keeps the shortest time of each.
    fn rows(&self, Work { name, functions, repeat }: &Work) -> Result<Vec<Row>> {
        let mut optimizer = LoopOptimizer::new(as_measured(self.options));
        let mut compile = |(name, function): &(String, Function), with_loopopt: bool| {
            self.compile(function, with_loopopt.then_some(&mut optimizer))
                .map_err(|error| anyhow!("{name}: cannot be compiled: {error}"))
        };
        let count = |function: &(String, Function)| self.progress.inc(function.1.dfg.num_insts());
        self.progress.set_message(name);
        let (mut peaks, mut costs) = (Vec::new(), Vec::new());
        for function in functions {
            let [(baseline, peak), (loopopt, peak_with)] =
                [false, true].map(|arm| heap::peak(|| compile(function, arm)));
            peaks.push([peak, peak_with]);
            costs.push([baseline?, loopopt?]);
            count(function);
            count(function);
        }
        for turn in 0..*repeat {
            for arm in [turn % 2, 1 - turn % 2] {
                for (function, costs) in functions.iter().zip(&mut costs) {
                    costs[arm].improve(compile(function, arm == 1)?);
                    count(function);
                }
            }
        }
        let rows = functions.iter().zip(costs.iter().zip(peaks));
        Ok(rows.map(|((name, function), (costs, peaks))| Row::of(name, function, costs, peaks)).collect())
    }

    /// Compiles a function as an embedder does, who has the ISA and an optimizer for all functions.
    fn compile(&self, function: &Function, optimizer: Option<&mut LoopOptimizer>) -> CodegenResult<Cost> {
        let mut ctx = Context::for_function(function.clone());
        let mut cost = Cost::default();
        let plane = &mut ControlPlane::default();
        let start = Instant::now();
        ctx.optimize(self.isa, plane)?;
        cost.optimize = start.elapsed();
        if let Some(optimizer) = optimizer {
            let report = optimizer.run(&mut ctx, self.isa, plane)?;
            cost.run = start.elapsed() - cost.optimize;
            cost.loops = report.loops;
            cost.made = Made::of(&report);
            cost.passes = report.timings;
        }
        self.isa.compile_function(&ctx.func, &ctx.domtree, &mut Default::default(), false, plane)?;
        cost.total = start.elapsed();
        cost.lower = cost.total - cost.optimize - cost.run;
        Ok(cost)
    }
}

impl Cost {
    /// Keeps the shorter time of each part.
    fn improve(&mut self, other: Self) {
        self.total = self.total.min(other.total);
        self.optimize = self.optimize.min(other.optimize);
        self.run = self.run.min(other.run);
        self.lower = self.lower.min(other.lower);
        for ((_, own), (_, other)) in self.passes.iter_mut().zip(other.passes) {
            *own = other.min(*own);
        }
    }
}

impl Row {
    fn of(name: &str, function: &Function, [baseline, loopopt]: &[Cost; 2], peak_bytes: [usize; 2]) -> Self {
        let ns = |time: Duration| time.as_nanos() as f64;
        Self {
            name: name.to_owned(),
            blocks: function.layout.blocks().count(),
            loops: loopopt.loops,
            baseline_ns: ns(baseline.total),
            loopopt_ns: ns(loopopt.total),
            optimize_ns: ns(baseline.optimize),
            run_ns: ns(loopopt.run),
            lower_ns: [baseline.lower, loopopt.lower].map(ns),
            peak_bytes,
            made: loopopt.made.clone(),
            passes: loopopt.passes.iter().map(|&(pass, time)| (pass, ns(time))).collect(),
        }
    }

    fn new(name: &str) -> Self {
        let (name, peak_bytes) = (name.to_owned(), [0; 2]);
        let [baseline_ns, loopopt_ns, optimize_ns, run_ns] = [0.0; 4];
        let (lower_ns, made, passes) = ([0.0; 2], Made::default(), Vec::new());
        let (blocks, loops) = (0, 0);
        Self { name, blocks, loops, baseline_ns, loopopt_ns, optimize_ns, run_ns, lower_ns, peak_bytes, made, passes }
    }

    /// Adds another function: times are added, of memory the larger counts.
    fn add(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.loops += other.loops;
        self.baseline_ns += other.baseline_ns;
        self.loopopt_ns += other.loopopt_ns;
        self.optimize_ns += other.optimize_ns;
        self.run_ns += other.run_ns;
        self.lower_ns = [0, 1].map(|arm| self.lower_ns[arm] + other.lower_ns[arm]);
        self.peak_bytes = [0, 1].map(|arm| self.peak_bytes[arm].max(other.peak_bytes[arm]));
        self.made.add(&other.made);
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

fn print(rows: &[&Row], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "compile time, opt_level=speed and enable_verifier=false; ns per block are in brackets\n")?;
    let header = [
        "function",
        "blocks",
        "loops",
        "baseline",
        "loopopt",
        "ratio",
        "optimize",
        "loop passes",
        "lower",
        "peak memory",
    ];
    let mut summary = Columns::new(&header);
    for row in rows {
        let [peak, peak_with] = row.peak_bytes.map(|bytes| bytes as f64);
        let timed = |ns: f64| format!("{} ({})", table::time(ns), row.per_block(ns));
        summary.add(&[
            row.name.clone(),
            row.blocks.to_string(),
            row.loops.to_string(),
            timed(row.baseline_ns),
            timed(row.loopopt_ns),
            format!("{:.3}", row.loopopt_ns / row.baseline_ns),
            share(row.optimize_ns, row),
            share(row.run_ns, row),
            format!("{} -> {}", share(row.lower_ns[0], row), share(row.lower_ns[1], row)),
            format!("{:.1} -> {:.1} MB ({:.3})", peak / 1e6, peak_with / 1e6, peak_with / peak),
        ]);
    }
    writeln!(out, "{summary}\n")?;
    print_passes(rows, out)?;
    print_made(rows, out)?;
    writeln!(out, "\nin percent of the baseline's compile time; cleanup is the second run of Cranelift's egraph pass")?;
    writeln!(out, "times are the shortest of several, of each part by itself")
}

/// How often was made what passes look at, which should not grow with the function.
fn print_made(rows: &[&Row], out: &mut dyn Write) -> io::Result<()> {
    let mut header = vec!["made, times"];
    header.extend(rows.iter().map(|row| &row.name[..]));
    let mut table = Columns::new(&header);
    let lists: Vec<_> = rows.iter().map(|row| row.made.list()).collect();
    for (index, (what, _)) in Made::default().list().iter().enumerate() {
        let counts = lists.iter().map(|list| list[index].1.to_string()).collect();
        table.add(&[vec![(*what).to_owned()], counts].concat());
    }
    writeln!(out, "\n{table}")
}

/// A time in percent of the baseline's.
fn share(ns: f64, row: &Row) -> String {
    format!("{:.1} %", 100.0 * ns / row.baseline_ns)
}

/// Nanoseconds per block of each pass, which should not grow from one size to the next, and what they come to.
fn print_passes(rows: &[&Row], out: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<_> = rows.iter().filter(|row| !row.passes.is_empty()).collect();
    let Some(longest) = rows.iter().max_by_key(|row| row.passes.len()) else { return Ok(()) };
    let mut header = vec!["pass, ns per block"];
    header.extend(rows.iter().map(|row| &row.name[..]));
    let mut passes = Columns::new(&header);
    let cell = |time: f64, row: &Row| format!("{:.1} ({})", time / row.blocks as f64, share(time, row));
    for (pass, _) in &longest.passes {
        let time = |row: &Row| row.passes.iter().find(|(name, _)| name == pass).map_or(0.0, |(_, time)| *time);
        passes.add(&[vec![(*pass).to_owned()], rows.iter().map(|row| cell(time(row), row)).collect()].concat());
    }
    let rest = |row: &Row| row.run_ns - row.passes.iter().map(|(_, time)| time).sum::<f64>();
    passes.add(&[vec!["all else".to_owned()], rows.iter().map(|row| cell(rest(row), row)).collect()].concat());
    writeln!(out, "{passes}")
}
