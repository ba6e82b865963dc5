//! `compile-time`: what loopopt costs, on one thread, and which pass costs it.

use crate::arm::{CompiledArm, Program, Setup};
use crate::cli::CompileTimeArgs;
use anyhow::{Context as _, Result, bail};
use jit_harness::command::Ending;
use jit_harness::interrupt;
use jit_harness::progress::{Progress, progress};
use jit_harness::report::made::Made;
use jit_harness::report::table::{Columns, time};
use jit_harness::report::whole::WholeFile;
use jit_harness::schedule::Arm;
use jit_harness::stats::Estimate;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

/// A module with something of everything that compiling goes through.
const WARM_UP: &str = "(module (memory 1) (func (param i32) (result i32) (loop
    (i32.store (local.get 0) (i32.load (i32.const 0))) (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 4)))))
    (local.get 0)))";

/// What is measured in a mode. In pairs, the first is without loopopt and the second with it.
#[derive(Debug, Serialize)]
struct CompileTime {
    name: String,
    mode: String,
    functions: usize,
    /// Functions with loops, those that loopopt changes, and all loops.
    with_loops: usize,
    changed: usize,
    loops: usize,
    /// Times from WebAssembly to machine code, the medians over the rounds.
    compile_ns: [f64; 2],
    /// The same in the quickest round, of which all times of parts are.
    quickest_ns: [f64; 2],
    /// The median of the ratios.
    ratio: f64,
    low: f64,
    high: f64,
    code_bytes: [usize; 2],
    /// Time in loopopt alone.
    loopopt_ns: f64,
    /// The same for each pass.
    passes: BTreeMap<&'static str, Pass>,
    /// How often loopopt made each of its analyses, and how often it went through its passes.
    made: Made,
    /// Where loopopt takes longest.
    slowest: Vec<Place>,
    /// What grows most.
    grown: Vec<Place>,
}

#[derive(Clone, Debug, Default, Serialize)]
struct Pass {
    ns: f64,
    fired: usize,
}

/// A function that is listed.
#[derive(Clone, Debug, Serialize)]
struct Place {
    name: String,
    index: usize,
    insts: usize,
    loops: usize,
    loopopt_ns: f64,
    code_bytes: [usize; 2],
    /// The passes that take most of the time.
    passes: Vec<(&'static str, f64)>,
}

pub(super) fn run(args: &CompileTimeArgs, out: &mut dyn Write) -> Result<Ending> {
    if args.rounds == 0 {
        bail!("without a round there is nothing to measure; give at least 1 to --rounds");
    }
    let file = args.json.as_deref().map(WholeFile::new).transpose()?;
    let program = Program::open(&args.file)?;
    let mut setups = args.setup.setups()?;
    // Only `explain` reads why a loop is left unchanged.
    setups.iter_mut().for_each(|setup| setup.options.refusals = false);
    interrupt::listen()?;
    let progress = progress(setups.len() * args.rounds);
    let mut all = Vec::new();
    for setup in setups.iter().take_while(|_| !interrupt::is_asked()) {
        progress.set_message(setup.mode.to_string());
        let measured = measure(&program, setup, args, &progress)?;
        print(&measured, out)?;
        out.flush()?;
        all.push(measured);
        file.as_ref().map_or(Ok(()), |file| file.write(&all))?;
    }
    progress.finish_and_clear();
    if let Some(file) = file {
        file.finish(&all)?;
    }
    if interrupt::is_asked() {
        writeln!(out, "{}", interrupt::NOTICE)?;
        return Ok(Ending::Interrupted);
    }
    Ok(Ending::Fine)
}

fn measure(program: &Program, setup: &Setup, args: &CompileTimeArgs, progress: &Progress) -> Result<CompileTime> {
    // The first compilation of a process takes longer, which counts in a small module.
    CompiledArm::new(&Program::new("warm-up".to_owned(), WARM_UP.as_bytes())?, setup, Arm::LoopOpt)?;
    let mut quickest: Option<[CompiledArm; 2]> = None;
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..args.rounds {
        if interrupt::is_asked() && round > 0 {
            break;
        }
        let compile = |arm| CompiledArm::new(program, setup, arm);
        // The order changes from round to round.
        let arms = if round % 2 == 0 {
            let baseline = compile(Arm::Baseline)?;
            [baseline, compile(Arm::LoopOpt)?]
        } else {
            let loopopt = compile(Arm::LoopOpt)?;
            [compile(Arm::Baseline)?, loopopt]
        };
        progress.inc(1);
        for (times, arm) in times.iter_mut().zip(&arms) {
            times.push(arm.time.as_nanos() as f64);
        }
        if quickest.as_ref().is_none_or(|quickest| total(&arms) < total(quickest)) {
            quickest = Some(arms);
        }
    }
    let quickest = quickest.context("no round was done")?;
    Ok(CompileTime::new(program, quickest.each_ref(), &times, args.top))
}

fn total(arms: &[CompiledArm; 2]) -> Duration {
    arms.iter().map(|arm| arm.time).sum()
}

impl CompileTime {
    /// What is known of the arms of the quickest round, and the times of all rounds.
    fn new(program: &Program, arms: [&CompiledArm; 2], times: &[Vec<f64>; 2], top: usize) -> Self {
        let ratios: Vec<f64> = times[1].iter().zip(&times[0]).map(|(loopopt, baseline)| loopopt / baseline).collect();
        let ratio = Estimate::of(&ratios);
        let functions = &arms[1].compilation.functions;
        let mut passes: BTreeMap<&'static str, Pass> = BTreeMap::new();
        let mut made = Made::default();
        for function in functions {
            made.add(&Made::of(&function.report));
            for (name, time) in &function.report.timings {
                passes.entry(name).or_default().ns += time.as_nanos() as f64;
            }
            for (name, count) in function.report.remarks.fired_counts() {
                passes.entry(name).or_default().fired += count;
            }
        }
        let mut places = places(arms);
        let mut list = |key: fn(&Place) -> f64| {
            places.sort_by(|a, b| key(b).total_cmp(&key(a)));
            places.iter().take(top).cloned().collect()
        };
        let slowest = list(|place| place.loopopt_ns);
        let grown = list(|place| place.code_bytes[1] as f64 - place.code_bytes[0] as f64);
        Self {
            name: program.name.clone(),
            mode: arms[0].mode.to_string(),
            functions: functions.len(),
            with_loops: functions.iter().filter(|function| function.report.loops > 0).count(),
            changed: functions.iter().filter(|function| function.report.changed).count(),
            loops: functions.iter().map(|function| function.report.loops).sum(),
            compile_ns: times.each_ref().map(|times| Estimate::of(times).median),
            quickest_ns: arms.map(|arm| arm.time.as_nanos() as f64),
            ratio: ratio.median,
            low: ratio.low,
            high: ratio.high,
            code_bytes: arms.map(CompiledArm::code_bytes),
            loopopt_ns: functions.iter().map(|function| function.time.as_nanos() as f64).sum(),
            passes,
            made,
            slowest,
            grown,
        }
    }
}

/// The functions of the module.
fn places([baseline, loopopt]: [&CompiledArm; 2]) -> Vec<Place> {
    let sizes = |arm: &CompiledArm| arm.module.functions().map(|function| function.len).collect::<Vec<_>>();
    let sizes = [sizes(baseline), sizes(loopopt)];
    let functions = loopopt.compilation.functions.iter();
    let places = functions.filter_map(|function| {
        let index = function.index?;
        let mut passes: Vec<_> =
            function.report.timings.iter().map(|(name, time)| (*name, time.as_nanos() as f64)).collect();
        passes.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        passes.truncate(3);
        Some(Place {
            name: loopopt.function_name(index),
            index,
            insts: function.insts,
            loops: function.report.loops,
            loopopt_ns: function.time.as_nanos() as f64,
            code_bytes: [sizes[0][index], sizes[1][index]],
            passes,
        })
    });
    places.collect()
}

fn print(measured: &CompileTime, out: &mut dyn Write) -> io::Result<()> {
    let CompileTime { name, mode, functions, with_loops, changed, loops, .. } = measured;
    let [before, after] = measured.compile_ns;
    let [bytes, bytes_with] = measured.code_bytes;
    writeln!(out, "{name} ({mode}): {functions} functions, {with_loops} with {loops} loops, {changed} changed\n")?;
    writeln!(
        out,
        "compile time {} -> {}, ratio {:.3} ({:.3} - {:.3})",
        time(before),
        time(after),
        measured.ratio,
        measured.low,
        measured.high
    )?;
    writeln!(out, "code size    {bytes} -> {bytes_with}, ratio {:.3}\n", bytes_with as f64 / bytes as f64)?;
    let [before, after] = measured.quickest_ns;
    let mut table = Columns::new(&["pass", "time", "of compile time", "fired"]);
    let share = |ns: f64| format!("{:.2} %", 100.0 * ns / before);
    let mut passes: Vec<_> = measured.passes.iter().collect();
    passes.sort_by(|(_, a), (_, b)| b.ns.total_cmp(&a.ns));
    for (name, pass) in &passes {
        table.add(&[(**name).to_owned(), time(pass.ns), share(pass.ns), pass.fired.to_string()]);
    }
    let inside: f64 = passes.iter().map(|(_, pass)| pass.ns).sum();
    let rest = measured.loopopt_ns - inside;
    let lowering = after - before - measured.loopopt_ns;
    table.add(&["before and between".to_owned(), time(rest), share(rest), String::new()]);
    table.add(&["all of loopopt".to_owned(), time(measured.loopopt_ns), share(measured.loopopt_ns), String::new()]);
    let sign = if lowering < 0.0 { "-" } else { "" };
    table.add(&[
        "lowering, more".to_owned(),
        format!("{sign}{}", time(lowering.abs())),
        share(lowering),
        String::new(),
    ]);
    writeln!(out, "{table}\n")?;
    let mut table = Columns::new(&["made", "times"]);
    for (what, count) in measured.made.list() {
        table.add(&[what.to_owned(), count.to_string()]);
    }
    writeln!(out, "{table}\n")?;
    print_places("where loopopt takes longest", &measured.slowest, out)?;
    print_places("what grows most", &measured.grown, out)
}

fn print_places(title: &str, places: &[Place], out: &mut dyn Write) -> io::Result<()> {
    if places.is_empty() {
        return Ok(());
    }
    let mut table = Columns::new(&[title, "index", "instructions", "loops", "loopopt", "code", "passes:"]);
    for place in places {
        let passes: Vec<String> = place.passes.iter().map(|(name, ns)| format!("{name} {}", time(*ns))).collect();
        table.add(&[
            place.name.chars().take(40).collect(),
            place.index.to_string(),
            place.insts.to_string(),
            place.loops.to_string(),
            time(place.loopopt_ns),
            format!("{} -> {}", place.code_bytes[0], place.code_bytes[1]),
            passes.join(", "),
        ]);
    }
    writeln!(out, "{table}\n")
}
