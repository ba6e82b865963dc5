//! A run of a module: everything is created again for each.

use crate::arm::{CompiledArm, in_words};
use crate::observation::{Digest, Observation, Outcome};
use crate::values;
use crate::world::{Output, World};
use anyhow::{Context as _, Result, anyhow, bail};
use rustix::time::{ClockId, clock_gettime};
use std::hash::{DefaultHasher, Hasher as _};
use std::time::Duration;
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
    /// An exported function without arguments that is called afterwards, in the same instance.
    pub then: Option<String>,
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
    then: Option<String>,
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
    then: Option<String>,
    /// The time of the call, as far as a processor was at it.
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
        Ok(Self { arm, store, output, instance, then: call.then.clone(), start })
    }

    /// Makes the call.
    pub fn run(self) -> Ended<'a> {
        let Self { arm, mut store, output, instance, then, start } = self;
        let mut time = Duration::ZERO;
        let outcome = match start {
            Ok((function, args)) => {
                let start = processor_time();
                let result = make(&mut store, function, &args);
                time = processor_time().saturating_sub(start);
                ending(&store, result)
            }
            Err(error) => failure(&error),
        };
        Ended { arm, store, output, instance, outcome, then, time }
    }
}

/// Time that this thread has had on a processor: what others do in the meantime is not in it.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("the time is not negative")
}

fn make(store: &mut Store<WasiP1Ctx>, function: Func, args: &[Val]) -> wasmtime::Result<Vec<Val>> {
    let mut results = vec![Val::I32(0); function.ty(&*store).results().len()];
    function.call(store, args, &mut results).map(|()| results)
}

/// How a call ended.
fn ending(store: &Store<WasiP1Ctx>, result: wasmtime::Result<Vec<Val>>) -> Outcome {
    match result {
        Ok(values) => Outcome::Returned(values.iter().map(|value| values::show(store, value)).collect()),
        Err(error) => failure(&error),
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
            Outcome::Trapped { code: kebab(&format!("{trap:?}")), frames }
        }
        None => Outcome::Failed(error.root_cause().to_string()),
    }
}

/// `SomeName` as `some-name`.
fn kebab(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push('-');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
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
        self.refill()?;
        let then = self.then_call()?;
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
            then,
        })
    }

    /// Readies the store for more calls, however the last one ended.
    fn refill(&mut self) -> Result<()> {
        self.store.take_pending_exception();
        if self.arm.mode.has("fuel") {
            self.store.set_fuel(FUEL).map_err(|error| in_words(&error))?;
        }
        self.store.set_epoch_deadline(EPOCHS);
        Ok(())
    }

    fn then_call(&mut self) -> Result<Option<Outcome>> {
        let (Some(name), Some(instance)) = (&self.then, self.instance) else { return Ok(None) };
        let function = instance.get_func(&mut self.store, name).with_context(|| format!("no function `{name}`"))?;
        let result = make(&mut self.store, function, &[]);
        Ok(Some(ending(&self.store, result)))
    }

    /// All memories and globals, exported or not. A store gives them away in the dump that comes with a trap, so one more
    /// module is run in it, which traps.
    fn everything(&mut self) -> Result<WasmCoreDump> {
        self.refill()?;
        let error =
            Instance::new(&mut self.store, &self.arm.trap, &[]).err().context("the module that traps does not")?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_traps_are_in_small_letters() {
        assert_eq!(kebab("MemoryOutOfBounds"), "memory-out-of-bounds");
    }
}
