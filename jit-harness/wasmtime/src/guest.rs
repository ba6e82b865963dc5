//! A run of a module: everything is made anew for each.

use crate::arm::{CompiledArm, in_words};
use crate::observation::{Digest, Observation, Outcome};
use crate::values;
use crate::world::{Output, World};
use anyhow::{Context as _, Result, anyhow, bail};
use std::hash::{DefaultHasher, Hasher as _};
use std::time::{Duration, Instant};
use wasmtime::{
    Extern, Func, Instance, Linker, Mutability, SharedMemory, Store, Trap, Val, WasmBacktrace, WasmCoreDump,
};
use wasmtime_wasi::I32Exit;
use wasmtime_wasi::p1::{WasiP1Ctx, add_to_linker_sync};

/// Fuel that a program is given if nothing else is said: more than it uses up in a day.
pub const FUEL: u64 = 1 << 50;
/// Epochs that may go by: more than there are.
const EPOCHS: u64 = 1 << 60;

/// What is called, and in which world.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// The exported function with its arguments; `_start` if there is none.
    pub invoke: Option<(String, Vec<String>)>,
    /// What the program sees.
    pub world: World,
    /// Fuel to start with in modes that count it, [`FUEL`] if not given.
    pub fuel: Option<u64>,
    /// Epochs until the program is stopped, in modes that look. Any number if not given.
    pub epochs: Option<u64>,
}

/// A module that is instantiated and not yet run.
pub struct Guest<'a> {
    arm: &'a CompiledArm,
    store: Store<WasiP1Ctx>,
    output: Output,
    instance: Option<Instance>,
    /// What to call, or what went wrong on the way there.
    start: wasmtime::Result<(Func, Vec<Val>)>,
}

/// A run that has ended.
pub struct Ended<'a> {
    arm: &'a CompiledArm,
    store: Store<WasiP1Ctx>,
    output: Output,
    instance: Option<Instance>,
    outcome: Outcome,
    /// The time of the call.
    pub time: Duration,
}

impl<'a> Guest<'a> {
    /// Instantiates a module. If that traps, it is what there is to see. The error is for calls that cannot be made.
    pub fn new(arm: &'a CompiledArm, call: &Call) -> Result<Self> {
        let engine = arm.module.engine();
        let (world, output) = call.world.create()?;
        let mut store = Store::new(engine, world);
        if arm.mode.has("fuel") {
            store.set_fuel(call.fuel.unwrap_or(FUEL)).map_err(|error| in_words(&error))?;
        }
        store.set_epoch_deadline(call.epochs.unwrap_or(EPOCHS));
        let mut linker = Linker::new(engine);
        add_to_linker_sync(&mut linker, |world| world).map_err(|error| in_words(&error))?;
        linker.define_unknown_imports_as_traps(&arm.module).map_err(|error| in_words(&error))?;
        let (instance, start) = match linker.instantiate(&mut store, &arm.module) {
            Ok(instance) => (Some(instance), start(arm, &mut store, instance, call)?),
            Err(error) => (None, Err(error)),
        };
        Ok(Self { arm, store, output, instance, start })
    }

    /// Makes the call.
    pub fn run(self) -> Ended<'a> {
        let Self { arm, mut store, output, instance, start } = self;
        let mut time = Duration::ZERO;
        let result = start.and_then(|(function, args)| {
            let mut results = vec![Val::I32(0); function.ty(&store).results().len()];
            let start = Instant::now();
            let result = function.call(&mut store, &args, &mut results);
            time = start.elapsed();
            result.map(|()| results)
        });
        let outcome = match result {
            Ok(values) => Outcome::Returned(values.iter().map(|value| values::show(&store, value)).collect()),
            Err(error) => failure(&error),
        };
        Ended { arm, store, output, instance, outcome, time }
    }
}

/// Finds what is to be called, and readies the instance for it.
fn start(
    arm: &CompiledArm,
    store: &mut Store<WasiP1Ctx>,
    instance: Instance,
    call: &Call,
) -> Result<wasmtime::Result<(Func, Vec<Val>)>> {
    let (name, args) = match &call.invoke {
        Some((name, args)) => (name.as_str(), args.as_slice()),
        None => ("_start", &[][..]),
    };
    let Some(function) = instance.get_func(&mut *store, name) else {
        let functions = arm.module.exports().filter(|export| export.ty().func().is_some());
        let known: Vec<&str> = functions.map(|export| export.name()).take(20).collect();
        bail!("no function `{name}` is exported; give one of these to --invoke: {}", known.join(", "));
    };
    let ty = function.ty(&*store);
    let args = values::parse(&ty, args).with_context(|| format!("{name}: {ty}"))?;
    // What a library exports in the place of `_start`.
    let initialized = match instance.get_func(&mut *store, "_initialize") {
        Some(initialize) if name != "_initialize" => initialize.call(store, &[], &mut []),
        _ => Ok(()),
    };
    Ok(initialized.map(|()| (function, args)))
}

/// How a call ended that did not return.
fn failure(error: &wasmtime::Error) -> Outcome {
    if let Some(exit) = error.downcast_ref::<I32Exit>() {
        return Outcome::Exited(exit.0);
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => Outcome::StackExhausted,
        Some(trap) => {
            let frames = error.downcast_ref::<WasmBacktrace>().map_or(&[][..], WasmBacktrace::frames);
            let frames = frames.iter().map(|frame| (frame.func_index(), frame.module_offset())).collect();
            Outcome::Trapped { code: trap.to_string(), frames }
        }
        None => Outcome::Failed(error.root_cause().to_string()),
    }
}

impl Ended<'_> {
    /// How it ended.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// What was written to the standard output.
    pub fn stdout(&self) -> Vec<u8> {
        self.output.stdout.contents().to_vec()
    }

    /// All that can be seen.
    pub fn observe(mut self) -> Result<Observation> {
        let fuel = self.arm.mode.has("fuel").then(|| self.store.get_fuel().map_err(|error| in_words(&error)));
        let fuel = fuel.transpose()?;
        let mut memories = self.exported_shared_memories();
        let everything = self.everything()?;
        for memory in everything.memories() {
            memories.push(digest(memory.data(&self.store)));
        }
        let mut globals = Vec::new();
        for global in everything.globals() {
            if global.ty(&self.store).mutability() == Mutability::Var {
                let value = global.get(&mut self.store);
                globals.push(values::show(&self.store, &value));
            }
        }
        Ok(Observation {
            stdout: self.stdout(),
            stderr: self.output.stderr.contents().to_vec(),
            outcome: self.outcome,
            memories,
            globals,
            fuel,
        })
    }

    /// All memories and globals, exported or not. A store gives them away in the dump that comes with a trap, so one more
    /// module is run in it, which traps.
    fn everything(&mut self) -> Result<WasmCoreDump> {
        let store = &mut self.store;
        store.take_pending_exception();
        if self.arm.mode.has("fuel") {
            store.set_fuel(FUEL).map_err(|error| in_words(&error))?;
        }
        store.set_epoch_deadline(EPOCHS);
        let error = Instance::new(&mut *store, &self.arm.trap, &[]).err().context("the module that traps does not")?;
        error.downcast::<WasmCoreDump>().map_err(|error| anyhow!("no core dump came with a trap: {error:#}"))
    }

    /// The core dump is without shared memories.
    fn exported_shared_memories(&mut self) -> Vec<Digest> {
        let Some(instance) = self.instance else { return Vec::new() };
        let exports: Vec<Extern> = instance.exports(&mut self.store).map(wasmtime::Export::into_extern).collect();
        exports.into_iter().filter_map(Extern::into_shared_memory).map(|memory| digest_shared(&memory)).collect()
    }
}

fn digest(bytes: &[u8]) -> Digest {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    Digest { size: bytes.len(), hash: hasher.finish() }
}

#[allow(unsafe_code, reason = "a shared memory can only be read as if others wrote to it")]
fn digest_shared(memory: &SharedMemory) -> Digest {
    let bytes = memory.data();
    // SAFETY: the program has ended and has started no thread, so nobody writes.
    digest(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) })
}
