//! Host functions: what a program calls that it does not define.
//!
//! All of them do the same, whatever their name and signature. An integer result is the wrapping sum of all integer
//! arguments, cut off or sign-extended to the result's type; a float result is the sum of all float arguments of its type,
//! from the first to the last; a vector result is zero. Frames differ from arm to arm: of an integer that is an address on the program's stack, only that it is one
//! counts, and its place in a word.
//!
//! Three kinds do more, by the beginning of their names. If the sum of the integer arguments of a function `throw…` is odd, it throws an exception to the nearest
//! handler among its callers: the tag is half of the sum, modulo 4, and the payload the sum and its complement. Without a handler it returns. Handlers of functions
//! that `try_call` functions with other calling conventions than `tail` are left out: they would need registers restored.
//! If the first argument of a function `write…` is the address of eight bytes of the memory image or of the program's stack, the sum of the other arguments and
//! one is added to the number there. For a function `read…`, the number there counts as the first argument, and is logged: so a slot whose address has escaped is
//! seen.
//!
//! For each of them the program has a shim, machine code that puts the arguments into slots and calls [`host_call`].

#![allow(unsafe_code, reason = "slots and imports come from machine code as pointers")]

use super::HostCall;
use super::native::{self, Slot};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::{Signature, Type, types};
use cranelift_codegen::{FinalizedMachCallSite, FinalizedMachExceptionHandler};
use std::cell::Cell;
use std::collections::HashMap;
use std::slice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Stack that a host function needs. With less, the call is a stack overflow of the program.
const NEEDED_STACK: usize = 64 << 10;
/// What counts for an address on the program's stack, and how far it is into a word, which all stack slots begin with. Not zero: an address is not null.
const ON_STACK: i64 = 64;
/// The most calls that are logged. A program with more of them is stopped.
const MAX_CALLS: usize = 100_000;

thread_local! {
    static RUNNING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread runs a host function.
#[cfg_attr(not(all(target_arch = "x86_64", target_os = "linux")), allow(dead_code, reason = "for signal handlers"))]
pub(super) fn is_running() -> bool {
    RUNNING.get()
}

/// What the host functions of a compiled program share.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// Address and size of the memory image.
    pub(super) image: (usize, usize),
    /// What is logged, if anything.
    pub(super) log: Option<Log>,
    /// The calls of the program, by the addresses to which they return.
    pub(super) sites: HashMap<usize, CallSite>,
}

/// Where a program calls.
#[derive(Clone, Debug)]
pub(super) struct CallSite {
    /// From the stack pointer up to the frame pointer.
    frame: usize,
    /// The handlers' addresses, in the order in which they are asked, with the tag for which each is; one without is for any.
    handlers: Vec<(Option<u32>, usize)>,
}

impl CallSite {
    /// One of code that starts at `start`, with its return address.
    pub(super) fn new(site: &FinalizedMachCallSite<'_>) -> (usize, Self) {
        let handlers = site.exception_handlers.iter().filter_map(|handler| match handler {
            FinalizedMachExceptionHandler::Tag(tag, offset) => Some((Some(tag.as_u32()), *offset as usize)),
            FinalizedMachExceptionHandler::Default(offset) => Some((None, *offset as usize)),
            FinalizedMachExceptionHandler::Context(_) => None,
        });
        let frame = site.frame_offset.unwrap_or(0) as usize;
        (site.ret_addr as usize, Self { frame, handlers: handlers.collect() })
    }

    /// Lets exceptions go on to callers.
    pub(super) fn forget_handlers(&mut self) {
        self.handlers.clear();
    }

    /// The same once the code has an address.
    pub(super) fn at(&self, start: usize) -> Self {
        let handlers = self.handlers.iter().map(|&(tag, offset)| (tag, start + offset)).collect();
        Self { frame: self.frame, handlers }
    }
}

/// A handler, and what it goes on with.
#[derive(Clone, Copy, Debug)]
struct Thrown {
    handler: usize,
    frame: usize,
    stack: usize,
    payload: [i64; 2],
}

/// A log of calls.
#[derive(Debug)]
pub(super) struct Log {
    /// The calls so far.
    pub(super) calls: Vec<HostCall>,
    /// Address and size of the memory image.
    pub(super) image: (usize, usize),
    /// Until when the program may run, in [time on the processor](native::processor_time).
    pub(super) deadline: Duration,
    /// Whether the program was stopped.
    pub(super) stopped: bool,
}

impl Log {
    /// An empty log.
    pub(super) fn new(image: (usize, usize), deadline: Duration) -> Self {
        Self { calls: Vec::new(), image, deadline, stopped: false }
    }
}

/// A host function of a compiled program. Its address is part of the shim.
#[derive(Debug)]
pub(super) struct Import {
    /// The name, without `%`.
    pub(super) name: String,
    pub(super) signature: Signature,
    pub(super) session: Arc<Mutex<Session>>,
}

/// Locks a session. What a panic left of it is good enough: it is reset before each call.
pub(super) fn lock(session: &Mutex<Session>) -> MutexGuard<'_, Session> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a host function. Gives 0, or 1 if the program must stop. Does not return if it throws and somebody handles that.
///
/// # Safety
///
/// `import` must live, the slots must be enough for its signature, and `frame` be the frame pointer of its shim, which the program has called.
pub(super) unsafe extern "C" fn host_call(
    import: *const Import,
    args: *const Slot,
    results: *mut Slot,
    frame: usize,
) -> u8 {
    if native::program_stack_left() < NEEDED_STACK {
        return 1;
    }
    RUNNING.set(true);
    // SAFETY: the shim passes the import that it was made for, and slots for its signature.
    let (go_on, thrown) = unsafe { run(&*import, args, results, frame) };
    RUNNING.set(false);
    if let Some(Thrown { handler, frame, stack, payload: [first, second] }) = thrown.filter(|_| go_on) {
        // SAFETY: the handler is that of a call whose frame this is. Here nothing is left to do, nor in the shim.
        unsafe { native::resume(handler, frame, stack, first, second) }
    }
    u8::from(!go_on)
}

/// Whether the program may go on, and where, if it does not return.
///
/// # Safety
///
/// As of [`host_call`].
unsafe fn run(import: &Import, args: *const Slot, results: *mut Slot, frame: usize) -> (bool, Option<Thrown>) {
    // SAFETY: the slots are enough for the signature.
    let (args, results) = unsafe {
        let args = slice::from_raw_parts(args, import.signature.params.len());
        (args, slice::from_raw_parts_mut(results, import.signature.returns.len()))
    };
    let address = pointed_to(import, args);
    let mut args: Vec<DataValue> =
        args.iter().zip(&import.signature.params).map(|(slot, param)| argument(slot, param.value_type)).collect();
    if let Some(address) = address {
        touch(&import.name, address, &mut args);
    }
    for (slot, result) in results.iter_mut().zip(&import.signature.returns) {
        meaning(&args, result.value_type).write_to_slice_ne(&mut slot.0);
    }
    let thrown = if import.name.starts_with("throw") {
        // SAFETY: the shim was called by the program, with frames up to where it was entered.
        unsafe { thrown(&lock(&import.session).sites, &args, frame) }
    } else {
        None
    };
    let go_on = lock(&import.session).log.as_mut().is_none_or(|log| record(log, &import.name, args, thrown.is_some()));
    (go_on, thrown)
}

/// Who handles what is thrown for these arguments, if it is.
///
/// # Safety
///
/// `frame` is the frame pointer of a function that the program has called, and so are those that are stored there, up to the first that returns to no call of
/// the program.
unsafe fn thrown(sites: &HashMap<usize, CallSite>, args: &[DataValue], mut frame: usize) -> Option<Thrown> {
    let sum = args.iter().filter_map(integer).fold(0, i128::wrapping_add) as i64;
    let tag = (sum >> 1) as u32 % 4;
    if sum % 2 == 0 {
        return None;
    }
    loop {
        // SAFETY: a frame starts with the frame pointer of the caller, and where it is returned to.
        let [caller, returns_to] = unsafe { *(frame as *const [usize; 2]) };
        let site = sites.get(&returns_to)?;
        if let Some(&(_, handler)) = site.handlers.iter().find(|(of, _)| of.is_none_or(|of| of == tag)) {
            return Some(Thrown { handler, frame: caller, stack: caller - site.frame, payload: [sum, !sum] });
        }
        frame = caller;
    }
}

/// The first argument, if a function of this name may access eight bytes there.
fn pointed_to(import: &Import, args: &[Slot]) -> Option<usize> {
    let accesses = import.name.starts_with("read") || import.name.starts_with("write");
    let is_number = import.signature.params.first().is_some_and(|param| param.value_type == types::I64);
    let slot = args.first().filter(|_| accesses && is_number)?;
    let DataValue::I64(address) = DataValue::read_from_slice_ne(&slot.0, types::I64) else { return None };
    let (first, last) = (address as usize, (address as usize).checked_add(7)?);
    let (start, len) = lock(&import.session).image;
    let in_image = first >= start && last < start.saturating_add(len);
    let on_stack = native::on_program_stack(first) && native::on_program_stack(last);
    (in_image || on_stack).then_some(first)
}

/// Reads or writes the number at an address that [`pointed_to`] gives.
fn touch(name: &str, address: usize, args: &mut [DataValue]) {
    // SAFETY: the eight bytes are of the memory image or of the program's stack, and the program is not running meanwhile.
    let number = unsafe { &mut *(address as *mut [u8; 8]) };
    let old = i64::from_ne_bytes(*number);
    if name.starts_with("read") {
        args[0] = DataValue::I64(old);
    } else {
        let sum = args[1..].iter().filter_map(integer).fold(1, i128::wrapping_add);
        *number = old.wrapping_add(sum as i64).to_ne_bytes();
    }
}

/// Logs a call, and says whether the program may go on.
fn record(log: &mut Log, name: &str, args: Vec<DataValue>, thrown: bool) -> bool {
    let (address, len) = log.image;
    // SAFETY: the image was loaded before the call and stays until its end; the program is not running meanwhile.
    let image = unsafe { slice::from_raw_parts(address as *const u8, len) };
    log.calls.push(HostCall { name: name.to_owned(), args, memory: hash(image), thrown });
    log.stopped = log.calls.len() >= MAX_CALLS || native::processor_time() > log.deadline;
    !log.stopped
}

fn argument(slot: &Slot, ty: Type) -> DataValue {
    let value = DataValue::read_from_slice_ne(&slot.0, ty);
    match value {
        DataValue::I64(address) if native::on_program_stack(address as usize) => DataValue::I64(ON_STACK + address % 8),
        _ => value,
    }
}

/// A result of this type, for these arguments.
fn meaning(args: &[DataValue], ty: Type) -> DataValue {
    match ty {
        types::F32 => {
            let floats =
                args.iter().filter_map(|arg| if let DataValue::F32(x) = arg { Some(x.as_f32()) } else { None });
            DataValue::F32(Ieee32::with_float(floats.sum::<f32>()))
        }
        types::F64 => {
            let floats =
                args.iter().filter_map(|arg| if let DataValue::F64(x) = arg { Some(x.as_f64()) } else { None });
            DataValue::F64(Ieee64::with_float(floats.sum::<f64>()))
        }
        _ if ty.is_int() => {
            let sum = args.iter().filter_map(integer).fold(0, i128::wrapping_add);
            DataValue::from_integer(sum, ty).expect("integer types up to i128 are known")
        }
        _ => DataValue::read_from_slice_ne(&Slot::default().0, ty),
    }
}

fn integer(value: &DataValue) -> Option<i128> {
    match *value {
        DataValue::I8(x) => Some(x.into()),
        DataValue::I16(x) => Some(x.into()),
        DataValue::I32(x) => Some(x.into()),
        DataValue::I64(x) => Some(x.into()),
        DataValue::I128(x) => Some(x),
        _ => None,
    }
}

/// A hash that distinguishes memory images that a wrong optimization makes, and is fast on small ones.
fn hash(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    words.fold(bytes.len() as u64, |hash, word| (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95))
}
