//! What is demanded of the passes for each program: the bodies of the fuzz targets.

use super::generate::{Shape, TestCase, generate, guarded_code, random_words};
use super::guarded::{Guarding, guard_program};
use super::halves::halve;
use super::polled::{Interrupting, interrupt};
use super::profiles::distort;
use super::statistics::Statistics;
use super::unoptimized::rewrite_unoptimized;
use crate::oracle::{Arm, Compiled, Difference, Pipeline, Rewrite, Settings, check_with, optimizing_isa, rewrite};
use crate::profile::{Profile, Profiling, Recorder};
use crate::{Embedder, LoopOptimizer, Options, SpectreGuards, Writers};
use anyhow::{Result, anyhow, ensure};
use arbitrary::Unstructured;
use cranelift_codegen::Context;
use cranelift_codegen::ir::{AliasRegionData, TrapCode};
use cranelift_codegen::isa::TargetIsa;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// How long a call may take that is known to end. It takes microseconds.
const LIMIT: Duration = Duration::from_secs(5);
/// How long a call may take that need not end.
const ENDLESS_LIMIT: Duration = Duration::from_millis(2);

/// A demand on the passes.
#[derive(Clone, Copy, Debug)]
pub struct Body {
    /// Its name, which is also that of its fuzz target.
    pub name: &'static str,
    /// Fails if the demand is not met.
    pub run: fn(&TestCase, &mut Statistics) -> Result<()>,
}

/// All of them.
pub static BODIES: &[Body] = &[
    Body { name: "pipeline", run: pipeline },
    Body { name: "pipeline_no_cost", run: pipeline_no_cost },
    Body { name: "single_pass", run: single_pass },
    Body { name: "unoptimized", run: unoptimized },
    Body { name: "analyses", run: analyses },
    Body { name: "effects", run: effects },
    Body { name: "polls", run: polls },
    Body { name: "waits", run: waits },
    Body { name: "interrupted", run: interrupted },
    Body { name: "halves", run: halves },
    Body { name: "guarded", run: guarded },
    Body { name: "profiled", run: profiled },
    Body { name: "handlers", run: handlers },
    Body { name: "settles", run: settles },
    Body { name: "fuel", run: fuel },
    Body { name: "stress", run: stress },
    Body { name: "claims", run: claims },
];

impl Body {
    /// The body of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        BODIES.iter().find(|body| body.name == name)
    }

    /// Runs the body on the program that these bytes make. The error has the program, and the calls, in its text.
    pub fn run_bytes(&self, bytes: &[u8], statistics: &mut Statistics) -> Result<()> {
        let case = generate(&mut Unstructured::new(bytes))?;
        let result = catch_unwind(AssertUnwindSafe(|| (self.run)(&case, statistics)));
        result
            .unwrap_or_else(|panic| Err(anyhow!("a panic: {}", message(&*panic))))
            .map_err(|error| anyhow!("{}: {error:#}\n\n{case}", self.name))
    }

    /// Runs the body on the program of this seed. The error has the seed and the program in its text.
    pub fn run_seed(&self, seed: u64, statistics: &mut Statistics) -> Result<()> {
        self.run_bytes(&bytes_of(seed), statistics).map_err(|error| error.context(format!("seed {seed}")))
    }

    /// Runs the body and panics if it fails: for fuzz targets.
    pub fn run_or_panic(&self, bytes: &[u8]) {
        if let Err(error) = self.run_bytes(bytes, &mut Statistics::default()) {
            panic!("{error:#}");
        }
    }
}

/// What a panic says.
fn message(panic: &dyn Any) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// The bytes that a seed stands for: a few to some thousand.
pub fn bytes_of(seed: u64) -> Vec<u8> {
    let mut random = random_words(seed);
    let words = 16 + random.next().map_or(0, |word| word as usize % 256);
    random.take(words).flat_map(u64::to_le_bytes).collect()
}

/// Each pass is checked, and looks at all loops: those that call, too.
fn strict() -> Options {
    Options { verify_each_pass: true, select_max_insts_per_call: 0, lowers_directly: true, ..Options::default() }
}

/// Who made the programs: guards may be removed, and of the accesses that they check it is known. No other thread is there, and a part of the memory that has a
/// region has it in all accesses.
#[derive(Debug)]
struct Trusting;

impl Embedder for Trusting {
    fn writers(&self, _region: &AliasRegionData) -> Writers {
        Writers::Calls
    }

    fn is_checked(&self, _region: &AliasRegionData, code: TrapCode) -> bool {
        code == guarded_code()
    }

    fn spectre_guards(&self) -> SpectreGuards {
        SpectreGuards::Drop
    }
}

/// The whole pipeline does not change what a program does. For half of the programs, guards may be removed; from most, no loop without effect is.
fn pipeline(case: &TestCase, statistics: &mut Statistics) -> Result<()> {
    let mut options = strict();
    if case.seed.is_multiple_of(2) {
        options.embedder = Arc::new(Trusting);
    }
    if case.seed % 4 < 3 && !case.shapes.contains(&Shape::Sum) {
        // Many a loop has no effect, and would be deleted before another pass has seen it.
        options.passes = Some(crate::pass_names().filter(|&name| name != "final_values").map(String::from).collect());
    }
    compare(case, &mut rewrite(&options), statistics)
}

/// Nor does it if cost does not count.
fn pipeline_no_cost(case: &TestCase, statistics: &mut Statistics) -> Result<()> {
    compare(case, &mut rewrite(&Options { ignore_cost: true, ..strict() }), statistics)
}

/// Nor does each pass alone.
fn single_pass(case: &TestCase, statistics: &mut Statistics) -> Result<()> {
    for pass in crate::pass_names() {
        let options = Options { passes: Some(vec![pass.to_owned()]), ignore_cost: true, ..strict() };
        compare(case, &mut rewrite(&options), statistics)
            .map_err(|error| error.context(format!("with {pass} alone")))?;
    }
    Ok(())
}

/// The pipeline does not change what a program does that Cranelift's own optimizations have not been through, with all that
/// they would have folded, merged and removed.
fn unoptimized(case: &TestCase, statistics: &mut Statistics) -> Result<()> {
    let mut loops = LoopOptimizer::new(strict());
    let program = case.program.located();
    let mut fresh = program.functions().iter();
    let mut rewrite = |context: &mut Context, isa: &dyn TargetIsa| {
        let original = fresh.next().expect("the functions come in order");
        rewrite_unoptimized(&mut loops, original, context, isa)
    };
    compare(case, &mut rewrite, statistics)
}

/// The loops are those that the definitions give.
fn analyses(case: &TestCase, statistics: &mut Statistics) -> Result<()> {
    statistics.add_program();
    super::analyses::check(case)
}

/// The effects of instructions are those of a table.
fn effects(case: &TestCase, statistics: &mut Statistics) -> Result<()> {
    statistics.add_program();
    super::effects::check(case)
}

/// Loops that look at what other threads write go on doing so.
fn polls(case: &TestCase, statistics: &mut Statistics) -> Result<()> {
    statistics.add_program();
    super::marked::check_polls(case, &optimizing_isa()?, statistics)
}

/// Loops that wait for what another thread writes end when it does.
fn waits(case: &TestCase, statistics: &mut Statistics) -> Result<()> {
    statistics.add_program();
    super::waits::check(case.seed, statistics)
}

/// Loops that ask for flags and for fuel do so as often as it makes a difference.
fn interrupted(case: &TestCase, statistics: &mut Statistics) -> Result<()> {
    let mut functions = case.program.functions().to_vec();
    let has_countdowns = case.shapes.contains(&Shape::Countdown);
    // Most of them ask for flags alone.
    let kinds = if has_countdowns && !(case.seed >> 6).is_multiple_of(4) { case.seed & !3 } else { case.seed };
    let seeds = [0, 3, 7, 11, 19].map(|by| kinds.rotate_left(by));
    // Loops that count down in an iteration do not ask, so that one of them may be in the place of a strip.
    let outermost_only = has_countdowns && !(case.seed >> 4).is_multiple_of(4);
    functions.iter_mut().zip(seeds.iter().cycle()).for_each(|(func, &seed)| interrupt(func, seed, outermost_only));
    let case = TestCase { program: case.program.with_functions(functions)?, ..case.clone() };
    let mut options = match case.seed % 4 {
        0 => Options::stress(case.seed),
        _ => Options::default(),
    };
    (options.verify_each_pass, options.assert_claims) = (true, case.seed % 8 < 5);
    let late = if has_countdowns { [100, 1024, 4096, 4096] } else { [0, 16, 100, 4096] };
    let latency = late[(case.seed >> 8) as usize % 4];
    options.embedder = Arc::new(Interrupting { latency });
    compare(&case, &mut rewrite(&options), statistics)
}

/// Loops of which the iterations differ from some number on do the same when they are split there.
fn halves(case: &TestCase, statistics: &mut Statistics) -> Result<()> {
    let mut functions = case.program.functions().to_vec();
    let seeds = [0, 3, 7, 11, 19].map(|by| case.seed.rotate_left(by));
    functions.iter_mut().zip(seeds.iter().cycle()).for_each(|(func, &seed)| halve(func, seed));
    let case = TestCase { program: case.program.with_functions(functions)?, ..case.clone() };
    let mut options = match case.seed % 4 {
        0 => Options::stress(case.seed),
        1 => Options { ignore_cost: true, ..Options::default() },
        _ => Options::default(),
    };
    (options.verify_each_pass, options.assert_claims) = (true, case.seed % 8 < 5);
    compare(&case, &mut rewrite(&options), statistics)
}

/// Accesses at what Spectre guards give go on trapping where they did, and are guarded in the end unless guards may be removed.
fn guarded(case: &TestCase, statistics: &mut Statistics) -> Result<()> {
    let case = guard_program(case)?;
    let mut options = match case.seed % 4 {
        0 => Options::stress(case.seed),
        1 => Options { ignore_cost: true, ..Options::default() },
        _ => Options::default(),
    };
    (options.verify_each_pass, options.assert_claims) = (true, (case.seed >> 24) % 8 < 5);
    let guards = match (case.seed >> 32) % 8 {
        0 => SpectreGuards::Keep,
        1 => SpectreGuards::Drop,
        _ => SpectreGuards::Consolidate,
    };
    options.embedder = Arc::new(Guarding(guards));
    compare(&case, &mut rewrite(&options), statistics).map_err(|error| error.context(format!("{guards:?}\n\n{case}")))
}

/// Code that is recorded does what it did, and so does code that uses what was recorded, or something else in its place.
fn profiled(case: &TestCase, statistics: &mut Statistics) -> Result<()> {
    let mut options = match case.seed % 4 {
        0 => Options::stress(case.seed),
        1 => Options { ignore_cost: true, ..Options::default() },
        _ => Options { specialize_min_gain: 0, specialize_max_insts_per_gain: u64::MAX, ..strict() },
    };
    (options.verify_each_pass, options.assert_claims) = (true, (case.seed >> 24) % 8 < 5);
    if (case.seed >> 32).is_multiple_of(2) {
        options.embedder = Arc::new(Trusting);
    }
    let recorder = Arc::new(Recorder::new());
    let recording = Options { profiling: Profiling::Record(recorder.clone()), ..options.clone() };
    compare(case, &mut rewrite(&recording), statistics).map_err(|error| error.context("recording"))?;
    let mut profile = recorder.profile();
    distort(&mut profile, case.seed);
    let text = profile.to_json();
    let read = Profile::from_json(&text)?;
    ensure!(read == profile, "the profile is another once it was written: {text}");
    options.profiling = Profiling::Use(Arc::new(profile));
    compare(case, &mut rewrite(&options), statistics).map_err(|error| anyhow!("{error:#}\n{text}"))
}

/// Addresses of exception handlers go on naming them.
fn handlers(case: &TestCase, statistics: &mut Statistics) -> Result<()> {
    statistics.add_program();
    super::marked::check_handlers(case, &optimizing_isa()?, statistics)
}

/// Passes that give loops a shape and an order are done after one run.
fn settles(case: &TestCase, statistics: &mut Statistics) -> Result<()> {
    let passes = ["rotate", "tail_duplicate", "layout", "order_latch"].map(str::to_owned);
    let options = Options { passes: Some(passes.into()), ..strict() };
    let settings = Settings { settles: true, ..Settings::default() };
    compare_under(case, settings, &mut rewrite(&options), statistics)
}

/// The pipeline stops wherever fuel ends, and what it has done until then changes nothing.
fn fuel(case: &TestCase, statistics: &mut Statistics) -> Result<()> {
    for amount in [1, 3] {
        compare(case, &mut rewrite(&Options { fuel: Some(amount), ..strict() }), statistics)
            .map_err(|error| error.context(format!("with fuel for {amount}")))?;
    }
    Ok(())
}

/// Any selection of legal rewrites changes nothing.
fn stress(case: &TestCase, statistics: &mut Statistics) -> Result<()> {
    compare(case, &mut rewrite(&Options { verify_each_pass: true, ..Options::stress(case.seed) }), statistics)
}

/// What rewrites rest on holds whenever they run, with and without cost, and for any selection of them.
fn claims(case: &TestCase, statistics: &mut Statistics) -> Result<()> {
    let mut options = match case.seed % 4 {
        0 => Options::stress(case.seed),
        1 => Options { ignore_cost: true, ..Options::default() },
        2 => strict(),
        _ => Options::default(),
    };
    (options.verify_each_pass, options.assert_claims) = (true, true);
    if case.seed % 8 < 4 {
        options.embedder = Arc::new(Trusting);
    }
    compare(case, &mut rewrite(&options), statistics)
}

fn compare(case: &TestCase, rewrite: &mut Rewrite<'_>, statistics: &mut Statistics) -> Result<()> {
    compare_under(case, Settings::default(), rewrite, statistics)
}

fn compare_under(
    case: &TestCase,
    settings: Settings,
    rewrite: &mut Rewrite<'_>,
    statistics: &mut Statistics,
) -> Result<()> {
    let settings = Settings { limit: if case.endless { ENDLESS_LIMIT } else { LIMIT }, ..settings };
    let mut result = check_with(&case.program, &case.cases, settings, rewrite);
    if case.endless && result.is_err() {
        // Time is real time: one arm may have had less of it than the others.
        result = check_with(&case.program, &case.cases, Settings { limit: LIMIT, ..settings }, rewrite);
    }
    match result {
        Ok(agreement) => statistics.add(case, &agreement),
        Err(error) if is_upstream(&error, case) => statistics.add_upstream(format!("{error:#}\n\n{case}")),
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Whether loopopt has no part in what went wrong.
fn is_upstream(error: &anyhow::Error, case: &TestCase) -> bool {
    match error.downcast_ref() {
        Some(Difference::Behavior { arms, .. }) => !arms.contains(&Arm::LoopOpt),
        Some(_) => false,
        None => Compiled::new(&case.program, Pipeline::Speed, Settings::default()).is_err(),
    }
}
