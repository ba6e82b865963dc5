//! Calls to compiled programs.

use super::arena::{self, Arena};
use super::compile::{Compiled, CompiledFunction};
use super::host::{Log, lock};
use super::native::{self, Ended, Entry, Slot, Watch, Write};
use super::thunk;
use super::{Arg, Call, ConcurrentWrite, HostCall, Observation, Outcome};
use anyhow::{Context as _, Result, bail, ensure};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{Signature, SourceLoc, TrapCode, Type, types};
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// A call with its arguments and its memory image, ready to be made many times, by any arm of the same program.
#[derive(Clone, Debug)]
pub struct Prepared<'m> {
    function: usize,
    trampoline: usize,
    /// The arguments, with offsets into the memory image in the place of addresses.
    args: Vec<Slot>,
    /// Which arguments are addresses.
    addresses: Vec<(usize, usize)>,
    memory: &'m [u8],
    /// Arguments before, results after the call.
    slots: Vec<Slot>,
}

/// An access faulted where no trap is possible by the CLIF of the function. The error of [`Compiled::observe`] if there was one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The function.
    pub function: String,
    /// The place in its code, in bytes.
    pub offset: usize,
    /// The address that was accessed.
    pub address: usize,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { function, offset, address } = self;
        write!(f, "%{function} faults at +{offset:#x}, address {address:#x}, where no trap is possible by its CLIF")
    }
}

impl Error for Fault {}

impl Compiled {
    /// Makes a call on a copy of this memory image, and says all about it.
    ///
    /// Observations can be compared if they are of the same thread: the image is at the same address for all of them.
    /// Bytes on the stack that a program reads before it writes them can be anything.
    ///
    /// Fails if the call does not fit the program, and if an instruction faults that may not trap, for example a load that
    /// is flagged `notrap`, outside of the memory image.
    pub fn observe(&mut self, call: &Call, memory: &[u8]) -> Result<Observation> {
        self.observe_timed(call, memory).map(|(observation, _)| observation)
    }

    /// Like [`Self::observe`], and how long the call took.
    pub(super) fn observe_timed(&mut self, call: &Call, memory: &[u8]) -> Result<(Observation, Duration)> {
        let mut prepared = self.prepare(call, memory)?;
        arena::with(|arena| {
            let (outcome, calls, time) = self.run(&mut prepared, arena, (true, self.limit, None))?;
            let memory = arena.image(memory.len()).to_vec();
            Ok((Observation { outcome, memory, calls }, time))
        })
    }

    /// How a call ends while another thread writes to its memory image, ten times in each millisecond. Such a call may take `limit`, by the
    /// clock, whatever the [`Settings`](super::Settings) say.
    ///
    /// Fails as [`Self::observe`] does, and if it accesses what is outside of the image.
    pub fn observe_beside(
        &mut self,
        call: &Call,
        memory: &[u8],
        write: ConcurrentWrite<'_>,
        limit: Duration,
    ) -> Result<Outcome> {
        let end = write.offset.saturating_add(write.bytes.len());
        let looks = write.answers.is_none_or(|at| at < memory.len());
        ensure!(end <= memory.len() && looks, "the other thread accesses what is outside of the image");
        let mut prepared = self.prepare(call, memory)?;
        arena::with(|arena| Ok(self.run(&mut prepared, arena, (false, limit, Some(write)))?.0))
    }

    /// Checks a call against the program and gets it ready to be timed.
    pub fn prepare<'m>(&self, call: &Call, memory: &'m [u8]) -> Result<Prepared<'m>> {
        let name = &call.function;
        let function = self.functions().iter().position(|function| function.name == *name);
        let function = function.with_context(|| format!("there is no function %{name}"))?;
        let signature = &self.functions()[function].clif.signature;
        let trampoline = thunk::trampoline(signature).with_context(|| format!("cannot call %{name}"))?;
        require_args(call, signature)?;
        let mut args = vec![Slot::default(); call.args.len()];
        let mut addresses = Vec::new();
        for (index, arg) in call.args.iter().enumerate() {
            match arg {
                Arg::Value(value) => value.write_to_slice_ne(&mut args[index].0),
                Arg::Memory(offset) => addresses.push((index, *offset)),
            }
        }
        let slots = vec![Slot::default(); args.len().max(signature.returns.len())];
        Ok(Prepared { function, trampoline, args, addresses, memory, slots })
    }

    /// Makes a prepared call once, on a fresh copy of its memory image, and says how long it took from entry to exit.
    ///
    /// Nothing else is in that time: neither copying the image nor setting up the arguments. Host functions log nothing.
    pub fn time(&mut self, prepared: &mut Prepared<'_>) -> Result<(Duration, Outcome)> {
        let (outcome, _, time) = arena::with(|arena| self.run(prepared, arena, (false, self.limit, None)))?;
        Ok((time, outcome))
    }

    fn run(
        &self,
        prepared: &mut Prepared<'_>,
        arena: &mut Arena,
        (log, limit, write): (bool, Duration, Option<ConcurrentWrite<'_>>),
    ) -> Result<(Outcome, Vec<HostCall>, Duration)> {
        let image = arena.load(prepared.memory)?;
        prepared.set_slots(image);
        lock(&self.session).image = (image, prepared.memory.len());
        lock(&self.session).log =
            log.then(|| Log::new((image, prepared.memory.len()), native::processor_time() + limit));
        let entry = Entry {
            trampoline: prepared.trampoline,
            callee: self.code[prepared.function].address,
            code: self.span.clone(),
            stack: self.stack,
        };
        let write = write.map(|ConcurrentWrite { offset, bytes, answers }| {
            let unless = answers.map(|at| (image + at, prepared.memory[at]));
            Write { address: image + offset, bytes, unless }
        });
        let (ended, time) = native::call(&entry, &mut prepared.slots, Watch { limit, write })?;
        let log = lock(&self.session).log.take();
        let outcome = match ended {
            Ended::Returned => Outcome::Returned(prepared.results(&self.functions()[prepared.function])),
            Ended::TimedOut => Outcome::TimedOut,
            Ended::Fault { .. } if log.as_ref().is_some_and(|log| log.stopped) => Outcome::TimedOut,
            Ended::Fault { pc, address, stack_guard } => self.trap(pc, address, stack_guard)?,
        };
        Ok((outcome, log.map_or_else(Vec::new, |log| log.calls), time))
    }

    /// The trap that an instruction stands for.
    fn trap(&self, pc: usize, address: usize, stack_guard: bool) -> Result<Outcome> {
        let code = self.code.iter().find(|code| (code.address..code.address + code.size).contains(&pc));
        let trap = code.and_then(|code| code.trap(pc - code.address));
        let function = code.map_or("", |code| &code.name).to_owned();
        if stack_guard {
            let srcloc = trap.map_or_else(SourceLoc::default, |(_, srcloc)| srcloc);
            return Ok(Outcome::Trapped { code: TrapCode::STACK_OVERFLOW, function, srcloc });
        }
        match (code, trap) {
            (Some(_), Some((code, srcloc))) => Ok(Outcome::Trapped { code, function, srcloc }),
            (Some(code), None) => Err(Fault { function, offset: pc - code.address, address }.into()),
            (None, _) => {
                bail!("a library function that the program calls faults, address {address:#x}")
            }
        }
    }
}

impl Prepared<'_> {
    fn set_slots(&mut self, image: usize) {
        self.slots[..self.args.len()].copy_from_slice(&self.args);
        for &(index, offset) in &self.addresses {
            self.slots[index].0[..8].copy_from_slice(&image.wrapping_add(offset).to_ne_bytes());
        }
    }

    fn results(&self, function: &CompiledFunction) -> Vec<DataValue> {
        let returns = &function.clif.signature.returns;
        self.slots
            .iter()
            .zip(returns)
            .map(|(slot, ret)| DataValue::read_from_slice_ne(&slot.0, ret.value_type))
            .collect()
    }
}

/// Fails if there are more or fewer arguments than parameters.
pub(super) fn require_count(name: &str, given: usize, signature: &Signature) -> Result<()> {
    let count = signature.params.len();
    let s = if count == 1 { "" } else { "s" };
    ensure!(given == count, "%{name} takes {count} argument{s}, not {given}");
    Ok(())
}

/// Fails if the arguments are not of the parameters' types.
pub(super) fn require_args(call: &Call, signature: &Signature) -> Result<()> {
    let name = &call.function;
    require_count(name, call.args.len(), signature)?;
    for (index, (arg, param)) in call.args.iter().zip(&signature.params).enumerate() {
        let ty = param.value_type;
        let fits = match arg {
            Arg::Value(value) => value.ty() == ty || same_vector_size(value, ty),
            Arg::Memory(_) => ty == types::I64,
        };
        ensure!(fits, "argument {index} of %{name} is of type {ty}, which {arg} does not fit");
    }
    Ok(())
}

fn same_vector_size(value: &DataValue, ty: Type) -> bool {
    value.is_vector() && ty.is_vector() && value.ty().bits() == ty.bits()
}
