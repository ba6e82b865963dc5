//! Modules by chance, from seeds: they are valid, and that is all that is known of them.

use crate::arm::{CompiledArm, Program, Setup};
use crate::guest::{Call, Guest};
use crate::mode::Mode;
use crate::observation::Outcome;
use crate::trial::Pair;
use anyhow::{Context as _, Result, anyhow};
use arbitrary::Unstructured;
use jit_harness::error::guard;
use jit_harness::schedule::Arm;
use loopopt::Options;
use rand::rngs::StdRng;
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use wasm_smith::Config;
use wasmtime::{FuncType, ValType};

/// Bytes that modules are made of.
const BYTES: Range<usize> = 256..8_192;
/// The most functions of a module that are called.
const MAX_CALLS: usize = 4;
/// Fuel that a call may use. Those that need more are made in a module that counts for itself.
const FUEL: u64 = 20_000;
/// Loop iterations and calls after which such a module traps.
const STEPS: u32 = 1_000;

/// A module with calls of it.
pub struct Smith {
    seed: u64,
    /// As it was made, with calls that end by themselves.
    free: (Program, Vec<Call>),
    /// The same, but it traps after some iterations and calls, with the other calls.
    bounded: (Program, Vec<Call>),
}

/// What came of a module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Modules.
    pub modules: u64,
    /// Calls that were compared.
    pub calls: u64,
    /// Calls that used up the stack, which are not compared.
    pub exhausted: u64,
    /// Calls that trapped at another offset, in an access that became a part of another instruction.
    pub moved: u64,
    /// Loops that loopopt saw.
    pub loops: u64,
    /// Optional rewrites that it did.
    pub rewrites: u64,
}

impl Tally {
    /// Adds what came of another one.
    pub fn add(&mut self, other: Self) {
        self.modules += other.modules;
        self.calls += other.calls;
        self.exhausted += other.exhausted;
        self.moved += other.moved;
        self.loops += other.loops;
        self.rewrites += other.rewrites;
    }
}

impl Smith {
    /// The module of a seed.
    pub fn new(seed: u64) -> Result<Self> {
        let mut random = StdRng::seed_from_u64(seed);
        let mut bytes = vec![0; random.random_range(BYTES)];
        random.fill_bytes(&mut bytes);
        let mut module = wasm_smith::Module::new(config(&mut random), &mut Unstructured::new(&bytes))?;
        let program = |name, bytes| Program { name: format!("{name} module of seed {seed}"), bytes };
        let free = program("free", module.to_bytes());
        module.ensure_termination(STEPS)?;
        let bounded = program("bounded", module.to_bytes());
        let setup = setup("fuel".parse()?, Options::default());
        let arm = CompiledArm::new(&free, &setup, Arm::Baseline)?;
        let calls = calls(&arm, &mut random);
        let ends = |call: &Call| -> Result<bool> {
            let outcome = Guest::new(&arm, &Call { fuel: Some(FUEL), ..call.clone() })?.run();
            Ok(!matches!(outcome.outcome(), Outcome::Trapped { code, .. } if code == "out-of-fuel"))
        };
        let (mut ending, mut endless) = (Vec::new(), Vec::new());
        for call in calls {
            if ends(&call)? { ending.push(call) } else { endless.push(call) }
        }
        Ok(Self { seed, free: (free, ending), bounded: (bounded, endless) })
    }

    /// The modules as bytes, with a name for each.
    pub fn modules(&self) -> [(&'static str, &[u8]); 2] {
        [("free", &self.free.0.bytes), ("bounded", &self.bounded.0.bytes)]
    }

    /// Compares both arms in these modes.
    pub fn check_all(&self, modes: &[Mode]) -> Result<Tally> {
        let mut tally = Tally { modules: 1, ..Tally::default() };
        for mode in modes {
            tally.add(guard(|| self.check(mode))?);
        }
        Ok(tally)
    }

    /// Compares both arms in a mode. Every other seed does rewrites at random. The error says what differs.
    fn check(&self, mode: &Mode) -> Result<Tally> {
        let mut options = if self.seed.is_multiple_of(2) { Options::default() } else { Options::stress(self.seed) };
        options.verify_each_pass = true;
        let setup = setup(mode.clone(), options);
        let mut tally = Tally::default();
        for (program, calls) in [&self.free, &self.bounded] {
            if calls.is_empty() {
                continue;
            }
            let pair = Pair::new(program, &setup)?;
            let compilation = &pair.loopopt.compilation;
            tally.loops += compilation.functions.iter().map(|function| function.report.loops as u64).sum::<u64>();
            tally.rewrites += compilation.rewrites;
            for call in calls {
                let compared = pair.compare(call)?;
                let (name, args) = call.invoke.as_ref().context("a function is called")?;
                if let Some(what) = compared.difference {
                    let call = format!("{name:?} with {}", args.join(" "));
                    return Err(anyhow!("{} ({mode}), {call}: {what}", program.name));
                }
                tally.calls += 1;
                tally.moved += u64::from(compared.moved);
                tally.exhausted += u64::from(!compared.is_comparable());
            }
        }
        Ok(tally)
    }
}

/// Checks the modules of these seeds, several at a time. Returns what came of those that agree, and what is wrong with others.
pub fn campaign(
    seeds: Range<u64>,
    threads: usize,
    check: impl Fn(u64) -> Result<Tally> + Sync,
) -> (Tally, Vec<String>) {
    let next = AtomicU64::new(seeds.start);
    let work = || {
        let (mut tally, mut wrong) = (Tally::default(), Vec::new());
        loop {
            let seed = next.fetch_add(1, Relaxed);
            if seed >= seeds.end {
                return (tally, wrong);
            }
            match guard(|| check(seed)) {
                Ok(found) => tally.add(found),
                Err(error) => wrong.push(format!("seed {seed}: {error:#}")),
            }
        }
    };
    let (mut tally, mut wrong) = (Tally::default(), Vec::new());
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            let (more, also) = worker.join().expect("panics are caught");
            tally.add(more);
            wrong.extend(also);
        }
    });
    (tally, wrong)
}

fn setup(mode: Mode, options: Options) -> Setup {
    Setup::new(mode, options)
}

/// What modules may be like. Nothing is imported, all is exported, and NaNs are the same whoever computes them.
fn config(random: &mut StdRng) -> Config {
    let mut config = Config {
        canonicalize_nans: true,
        export_everything: true,
        max_imports: 0,
        min_funcs: 1,
        max_funcs: 8,
        max_instructions: random.random_range(50..400),
        min_memories: 1,
        max_memories: 2,
        max_memory32_bytes: 4 << 16,
        max_memory64_bytes: 4 << 16,
        max_table_elements: 1_000,
        memory_max_size_required: true,
        table_max_size_required: true,
        threads_enabled: random.random_bool(0.2),
        tail_call_enabled: true,
        memory64_enabled: random.random_bool(0.3),
        simd_enabled: random.random_bool(0.5),
        gc_enabled: random.random_bool(0.3),
        exceptions_enabled: random.random_bool(0.5),
        ..Config::default()
    };
    config.relaxed_simd_enabled = false;
    // Most addresses are within the memory then.
    config.memory_offset_choices = wasm_smith::MemoryOffsetChoices(90, 9, 1);
    config
}

/// Some of the functions, with arguments.
fn calls(arm: &CompiledArm, random: &mut StdRng) -> Vec<Call> {
    let functions =
        arm.module.exports().filter_map(|export| Some((export.name().to_owned(), export.ty().func()?.clone())));
    let calls = functions.filter_map(|(name, ty)| {
        let args = arguments(&ty, random)?;
        Some(Call { invoke: Some((name, args)), ..Call::default() })
    });
    calls.take(MAX_CALLS).collect()
}

/// Arguments of this type, if they can be given as text.
fn arguments(ty: &FuncType, random: &mut StdRng) -> Option<Vec<String>> {
    let arguments = ty.params().map(|ty| {
        Some(match ty {
            ValType::I32 => (integer(random) as i32).to_string(),
            ValType::I64 => integer(random).to_string(),
            ValType::F32 => (random.random_range(-1_000..1_000) as f32 / 4.0).to_string(),
            ValType::F64 => (random.random_range(-1_000_000..1_000_000) as f64 / 16.0).to_string(),
            ValType::V128 => format!("{:#x}", random.random::<u128>()),
            ValType::Ref(ty) if ty.is_nullable() => "null".to_owned(),
            ValType::Ref(_) => return None,
        })
    });
    arguments.collect()
}

/// Small ones most of the time, and those at which things change.
fn integer(random: &mut StdRng) -> i64 {
    match random.random_range(0..8) {
        0..4 => random.random_range(0..100),
        4 => random.random_range(0..1 << 20),
        5 => *[-1, i64::from(i32::MIN), i64::from(i32::MAX), i64::MIN, i64::MAX]
            .get(random.random_range(0..5))
            .unwrap_or(&0),
        _ => random.random(),
    }
}
