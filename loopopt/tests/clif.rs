//! Runs the files of `tests/clif/`: one idea per file, in a folder named after the pass that it is about.
//!
//! * `; remark: fired` or `; remark: <reason>` after a block says what the folder's pass remarks on the loop of
//!   that header. All of its remarks have to be written down, and no others.
//! * `; options: <name>=<value> …` sets options for the file ([`file_options`]).
//! * `; run: %f(1) == 2` as in Cranelift's own tests; `; trap: %f(1) == user7` for a call that traps; `; call: %f(mem, 3)`
//!   for a call without an expected result, with `mem` the address of a memory image of [`MEMORY`] bytes. All arms of the
//!   oracle have to agree on each call.
//! * `; stays: %f load 2` says that loops of the output hold loads of at least two places; without a number, of one. The oracle cannot see what other
//!   threads see.
//! * After `; ---- after ----` is the exact output. `LOOPOPT_BLESS=1` rewrites it, and
//!   `LOOPOPT_BLESS=rotate` in that folder only. It is made without `partial_unroll` and `final_values`, but in the folder of that name or if `passes`
//!   names it: little would be seen of the others in loops of four iterations, and nothing in loops that are removed. The calls are made with all passes.
//!
//! The calls are made once more with all [claims](loopopt::claim) asserted, and with rewrites selected at random. With `LOOPOPT_STRESS=100`, fifty
//! times with rewrites selected at random, and fifty times with some passes of some effort.
//!
//! The verifier and the check of canonical form run after each pass, and a second run must find nothing.
//!
//! The folder `bugs/` is not about a pass but about what no pass may do: bugs that other compilers had, by their number in
//! the list that they come from. Its files need calls, and no remarks.

use anyhow::{Context as _, Result, bail, ensure};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{Function, entities::AnyEntity};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::{Context, isa::OwnedTargetIsa};
use loopopt::analysis::cfg::loops::LoopForest;
use loopopt::fault::{self, Fault};
use loopopt::oracle::{Case, Compiled, Pipeline, Program, check, file_options};
use loopopt::{Effort, LoopOptimizer, Options, Report, Verdict};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const MEMORY: usize = 4096;
const MARKER: &str = "; ---- after ----";
const BUGS: &str = "bugs";
/// Passes that would hide what the others do.
const HIDING: [&str; 3] = ["thread_jumps", "partial_unroll", "final_values"];

#[test]
fn files() {
    let mut failures = Vec::new();
    for path in clif_files().expect("the folder is there") {
        let result = run_file(&path).with_context(|| path.display().to_string());
        failures.extend(result.err().map(|error| format!("{error:#}\n")));
    }
    assert!(failures.is_empty(), "{} files failed\n\n{}", failures.len(), failures.join("\n"));
}

/// Reasons that `tests/bad_input.rs` shows: for no function that runs on x86-64, and for one that is too long for a file.
const SEEN_ELSEWHERE: [(&str, &str); 2] = [("canon", "dynamic-vectors"), ("canon", "too-many-memory-flags")];

/// A reason that no file shows may be dead, or wrong.
#[test]
fn every_reason_is_seen() -> Result<()> {
    let mut seen = BTreeSet::new();
    for path in clif_files()? {
        let text = std::fs::read_to_string(&path)?;
        let pass = pass_of(&path)?;
        seen.extend(
            text.lines().filter_map(|line| Some((pass.clone(), line.split_once("; remark: ")?.1.trim().to_string()))),
        );
    }
    for (pass, reason) in loopopt::decline_reasons().filter(|of_pass| !SEEN_ELSEWHERE.contains(of_pass)) {
        ensure!(seen.contains(&(pass.into(), reason.into())), "no file in {pass}/ shows the reason {reason}");
    }
    for pass in seen.iter().map(|(pass, _)| pass).filter(|&pass| pass != BUGS).collect::<BTreeSet<_>>() {
        ensure!(loopopt::pass_names().any(|name| name == pass), "{pass} is not a pass");
    }
    Ok(())
}

/// No call shows that a loop has forgotten to poll. The output does.
#[test]
fn a_forgotten_poll_is_seen() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clif/bugs");
    for name in
        ["async-poll-after-unrolled-loop.clif", "async-poll-without-region.clif", "async-poll-stored-now-and-then.clif"]
    {
        let text = std::fs::read_to_string(root.join(name))?;
        let input = text.split(MARKER).next().context("split gives at least one part")?;
        let options = options(input)?;
        let output = || -> Result<Vec<Function>> {
            let functions = cranelift_reader::parse_functions(input)?.into_iter();
            functions.map(|func| Ok(optimize(func, &options)?.0)).collect()
        };
        check_what_stays(input, &output()?)?;
        let wrong = fault::with(Fault::PollsForgotten, output)?;
        ensure!(check_what_stays(input, &wrong).is_err(), "{name} does not show it");
    }
    Ok(())
}

/// Faults that generated programs show seldom or not at all, each by a file.
#[test]
fn what_the_generator_hardly_makes_is_seen() -> Result<()> {
    for (name, fault) in [
        ("forward_select_load/declines-nothing-selected.clif", Fault::SelectedAcrossStore),
        ("bugs/address-that-is-chosen.clif", Fault::ChosenAddressMoves),
        ("load_elimination/fires-kept-away.clif", Fault::NextIterationForgotten),
        ("bugs/region-of-a-variant-that-never-runs.clif", Fault::RegionOfOneVariant),
        ("bugs/store-beyond-a-slot-for-a-load-that-moved.clif", Fault::MovedLoadProvesSlot),
        ("consolidate_guards/fires-two-lengths-of-one-base.clif", Fault::OneMemoryForAll),
        ("strip_mine/fires-other-flag-inside.clif", Fault::OtherFlagInside),
        ("bugs/load-sunk-after-the-outer-loop.clif", Fault::SunkTwoLoops),
        ("version/fires-from-below-zero.clif", Fault::CountsFromZero),
        ("version/fires-i8-and-two.clif", Fault::AddedTwice),
        ("widen_indices/declines-may-wrap-inclusive-i8.clif", Fault::RoomUnasked),
        ("bugs/object-at-another-place-bounds.clif", Fault::FlagsOfAnotherPlace),
        ("promote/fires-recurrence-after-a-load-that-traps.clif", Fault::FirstTrapForgotten),
        ("bugs/load-that-traps-where-it-is-chosen.clif", Fault::TrapAtTheChoice),
        ("bugs/cell-of-the-iteration-before.clif", Fault::ToldOfEachIteration),
        ("bugs/formula-of-a-strip-that-ends-early.clif", Fault::FormulaForStrip),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clif").join(name);
        let text = std::fs::read_to_string(path)?;
        let input = text.split(MARKER).next().context("split gives at least one part")?;
        let options = options(input)?;
        compare_calls(input, &options)?;
        ensure!(fault::with(fault, || compare_calls(input, &options)).is_err(), "no call of {name} shows it");
    }
    Ok(())
}

fn clif_files() -> Result<Vec<PathBuf>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clif");
    let mut files = Vec::new();
    for folder in std::fs::read_dir(root)? {
        for file in std::fs::read_dir(folder?.path())? {
            files.push(file?.path());
        }
    }
    files.sort();
    Ok(files)
}

/// The name of the folder.
fn pass_of(path: &Path) -> Result<String> {
    let folder = path.parent().and_then(Path::file_name).context("a file is in a folder")?;
    Ok(folder.to_string_lossy().into_owned())
}

fn run_file(path: &Path) -> Result<()> {
    let text = std::fs::read_to_string(path)?;
    let input = text.split(MARKER).next().context("split gives at least one part")?;
    let options = options(input)?;
    let mut shown = options.clone();
    let folder = pass_of(path)?;
    if options.passes.is_none() {
        let is_shown = |name: &&str| *name == folder || !HIDING.contains(name);
        shown.passes = Some(loopopt::pass_names().filter(is_shown).map(String::from).collect());
    }
    let (mut after, mut output) = (String::new(), Vec::new());
    let mut expected = expected_remarks(input)?;
    let mut found = BTreeSet::new();
    for func in cranelift_reader::parse_functions(input)? {
        let name = func.name.to_string();
        let (func, report) = optimize(func, &shown)?;
        for remark in report.remarks.iter().filter(|remark| folder == remark.pass) {
            let what = match &remark.verdict {
                Verdict::Fired => "fired",
                Verdict::Declined { reason, .. } => reason,
            };
            found.insert((name.clone(), remark.header.to_string(), what.to_string()));
        }
        after.push_str(&format!("\n{}", func.display()));
        output.push(func);
    }
    check_what_stays(input, &output)?;
    let common: Vec<_> = found.intersection(&expected).cloned().collect();
    for remark in common {
        found.remove(&remark);
        expected.remove(&remark);
    }
    ensure!(expected.is_empty(), "expected, but not remarked: {expected:?}; remarked: {found:?}");
    ensure!(found.is_empty(), "remarked, but not expected: {found:?}");
    let calls = compare_calls(input, &options)?;
    ensure!(calls > 0 || folder != BUGS, "there is no call");
    compare_output(path, &text, input, &after)
}

fn optimize(func: Function, options: &Options) -> Result<(Function, Report)> {
    let mut ctx = Context::for_function(func);
    let (isa, ctrl_plane) = (isa()?, &mut ControlPlane::default());
    ctx.optimize(&*isa, ctrl_plane)?;
    let report = LoopOptimizer::new(options.clone()).run(&mut ctx, &*isa, ctrl_plane)?;
    Ok((ctx.func, report))
}

fn isa() -> Result<OwnedTargetIsa> {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed")?;
    let builder = cranelift_native::builder().map_err(anyhow::Error::msg)?;
    Ok(builder.finish(settings::Flags::new(flags))?)
}

fn options(input: &str) -> Result<Options> {
    let mut options = Options::default();
    options.verify_each_pass = true;
    // Most tests are about one pass, whatever its loop calls.
    options.select_max_insts_per_call = 0;
    file_options(input, &[], options)
}

/// `(function, block, remark)` of each `; remark:` comment.
fn expected_remarks(input: &str) -> Result<BTreeSet<(String, String, String)>> {
    let mut remarks = BTreeSet::new();
    let test = cranelift_reader::parse_test(input, Default::default())?;
    for (func, details) in &test.functions {
        for comment in &details.comments {
            let Some(remark) = comment.text.strip_prefix("; remark: ") else { continue };
            let AnyEntity::Block(block) = comment.entity else { bail!("{remark} does not stand behind a block") };
            remarks.insert((func.name.to_string(), block.to_string(), remark.trim().to_string()));
        }
    }
    Ok(remarks)
}

/// What `; stays:` comments say about the output.
fn check_what_stays(input: &str, output: &[Function]) -> Result<()> {
    for line in input.lines().filter_map(|line| line.strip_prefix("; stays: ")) {
        let (name, rest) = line.split_once(' ').context("`; stays:` names a function and an opcode")?;
        let (opcode, least) = rest.split_once(' ').unwrap_or((rest, "1"));
        let func = output.iter().find(|func| func.name.to_string() == name).context("there is no such function")?;
        let mut ctx = Context::for_function(func.clone());
        ctx.flowgraph();
        let forest = LoopForest::new(func, &ctx.cfg, &ctx.domtree);
        let insts = forest.loops().flat_map(|lp| forest.blocks(lp)).flat_map(|&block| func.layout.block_insts(block));
        let staying = insts.filter(|&inst| func.dfg.insts[inst].opcode().to_string() == opcode);
        let places: BTreeSet<_> = staying
            .map(|inst| {
                let data = func.dfg.insts[inst];
                (func.dfg.inst_args(inst).to_vec(), data.load_store_offset())
            })
            .collect();
        ensure!(places.len() >= least.parse()?, "loops of {name} hold {opcode} at {} places", places.len());
    }
    Ok(())
}

/// Makes all calls of the file in all arms. Returns how many there are.
fn compare_calls(input: &str, options: &Options) -> Result<usize> {
    let program = Program::parse(input)?;
    let memory: Vec<u8> = (0..MEMORY).map(|at| (at * 7 + at / 64) as u8).collect();
    let mut calls = Vec::new();
    for line in input.lines().filter_map(|line| line.strip_prefix("; call: ")) {
        calls.push(program.parse_call(line)?);
    }
    let runs = program.runs(input)?;
    calls.extend(runs.iter().map(|run| run.call.clone()));
    let cases: Vec<_> = calls.into_iter().map(|call| Case { call, memory: memory.clone() }).collect();
    let agreement = check(&program, &cases, options)?;
    ensure!(agreement.timed_out + agreement.overflowed == 0, "a call did not end in time, or within the stack");
    let mut asserted = options.clone();
    asserted.assert_claims = true;
    check(&program, &cases, &asserted).context("with claims asserted")?;
    for seed in 0..stress_seeds()? {
        let mut chosen = if seed % 2 == 0 { Options::stress(seed) } else { selection(seed, options) };
        chosen.embedder = options.embedder.clone();
        (chosen.assert_claims, chosen.verify_each_pass) = (true, true);
        let passes = chosen.passes.as_ref().map_or("all".into(), |passes| passes.join(","));
        check(&program, &cases, &chosen)
            .with_context(|| format!("with stress seed {seed}, these passes and claims asserted: {passes}"))?;
    }
    let mut compiled = Compiled::new(&program, Pipeline::None, Default::default())?;
    for run in &runs {
        let seen = compiled.observe(&run.call, &memory)?;
        ensure!(run.expectation.is_met(&seen.outcome), "line {}: {} gives {}", run.line, run.call, seen.outcome);
    }
    Ok(cases.len())
}

/// An effort, and some of its passes, with or without an eye on what they cost.
fn selection(seed: u64, options: &Options) -> Options {
    let mut bits = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits ^= bits >> 32;
    let mut take = |count: u64| {
        bits = bits.wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(27);
        (bits >> 33) % count
    };
    let mut chosen = match take(3) {
        0 => options.clone(),
        1 => Options::effort(Effort::Quick),
        _ => Options::effort(Effort::Full),
    };
    chosen.select_max_insts_per_call = 0;
    chosen.ignore_cost = take(2) == 1;
    let share = take(8);
    let passes = loopopt::pass_names().filter(|_| take(8) <= share).map(String::from);
    chosen.passes = Some(passes.collect());
    chosen
}

/// How many selections of rewrites, and of passes, each file is tried with, beside all of them: `LOOPOPT_STRESS=100` for more than one.
fn stress_seeds() -> Result<u64> {
    std::env::var("LOOPOPT_STRESS").map_or(Ok(1), |count| count.parse().context("LOOPOPT_STRESS is a number"))
}

fn compare_output(path: &Path, text: &str, input: &str, after: &str) -> Result<()> {
    let commented: String =
        after.lines().map(|line| if line.is_empty() { ";\n".into() } else { format!("; {line}\n") }).collect();
    let expected = format!("{input}{MARKER}\n{commented}");
    let blessed = std::env::var("LOOPOPT_BLESS").unwrap_or_default();
    if blessed == "1" || !blessed.is_empty() && pass_of(path)? == blessed {
        std::fs::write(path, expected)?;
        return Ok(());
    }
    ensure!(text == expected, "the output is another now; if it is right, set LOOPOPT_BLESS=1\n{after}");
    Ok(())
}
