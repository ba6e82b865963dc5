//! Calls to machine code on x86-64 Linux.
//!
//! A program runs on a stack of its own, so that every thread gives it the same room and an address can be told to be on
//! that stack. [`enter`] saves the callee-saved registers on the caller's stack and switches over. When the processor
//! raises a signal for an instruction of the program, the handler notes where, and makes the interrupted context continue
//! in [`leave`], which restores those registers and returns from `enter`. That drops the program's frames. No frame of
//! Rust code is dropped with them: while a host function runs, signals are passed on to whoever handled them before.
//!
//! Time on the processor is limited by a timer for each thread, so that it does not matter what else the machine does. Its handler does the same, but
//! only while the program counter is in the program's own code; otherwise it waits for the next tick. What another thread writes while a program runs, it writes
//! between two instructions of the program: to the program, that is the same.

#![allow(unsafe_code, reason = "memory mappings, signal handlers, and a switch of stacks")]

use super::{Access, Ended, Entry, PAGE, STACK, Slot, Watch, Write};
use crate::oracle::host;
use anyhow::{Context as _, Result};
use std::arch::naked_asm;
use std::cell::{Cell, OnceCell};
use std::io;
use std::mem;
use std::ops::Range;
use std::ptr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Bytes of the stack that are zero when a function is called: what a program reads there before it writes is the same in all arms.
/// Cranelift deletes stores that are read, see `docs/upstream.md`.
const CLEARED: usize = 4 << 10;
/// Bytes of the stack above the first frame. What is said to be there at a distance from a stack slot is there in whatever frame it is.
const ABOVE: usize = 4 << 10;
/// Bytes below the stack whose access means that the stack is full. Frames of more than a page probe each page.
const STACK_GUARD: usize = 1 << 20;
/// Least size of the stack on which signals are handled.
const SIGNAL_STACK: usize = 64 << 10;
/// From the first tick on, the timer ticks this often.
const TICK: Duration = Duration::from_millis(1);
/// How often another thread writes. Time is that of the clock there, as that on the processor is looked at every few milliseconds only.
const WRITE_TICK: Duration = Duration::from_micros(100);

/// Fails where machine code cannot be run.
pub(in crate::oracle) fn require() -> Result<()> {
    Ok(())
}

/// Pages from the system. They are given back on drop.
#[derive(Debug)]
pub(in crate::oracle) struct Mapping {
    base: *mut u8,
    len: usize,
}

// SAFETY: the pages belong to this value alone, whichever thread has it.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Reserves addresses, without access to them.
    pub(in crate::oracle) fn reserve(len: usize) -> Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address that the kernel chooses does not touch others.
        let base = unsafe { libc::mmap(ptr::null_mut(), len, libc::PROT_NONE, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error()).context("no memory from the system");
        }
        Ok(Self { base: base.cast(), len })
    }

    /// Sets what may be done with these bytes, both of whose ends are multiples of [`PAGE`].
    pub(in crate::oracle) fn protect(&self, range: Range<usize>, access: Access) -> Result<()> {
        let whole_pages = range.start.is_multiple_of(PAGE) && range.end.is_multiple_of(PAGE);
        assert!(range.end <= self.len && whole_pages, "not whole pages of the mapping");
        let access = match access {
            Access::None => libc::PROT_NONE,
            Access::Data => libc::PROT_READ | libc::PROT_WRITE,
            Access::Code => libc::PROT_READ | libc::PROT_EXEC,
        };
        // SAFETY: the pages are of this mapping.
        let failed = unsafe { libc::mprotect(self.base.add(range.start).cast(), range.len(), access) } != 0;
        if failed && !range.is_empty() {
            return Err(io::Error::last_os_error()).context("no access to memory from the system");
        }
        Ok(())
    }

    /// The address of the first byte.
    pub(in crate::oracle) fn address(&self) -> usize {
        self.base.addr()
    }

    /// These bytes, which must be [`Access::Data`].
    pub(in crate::oracle) fn data(&mut self, range: Range<usize>) -> &mut [u8] {
        assert!(range.start <= range.end && range.end <= self.len, "outside of the mapping");
        // SAFETY: in bounds, zeroed by the kernel before the first access, and borrowed with `self`.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(range.start), range.len()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the pages of a mapping that is dropped.
        unsafe { libc::munmap(self.base.cast(), self.len) };
    }
}

/// A call that runs, as the signal handlers see it.
#[derive(Debug)]
struct Activation<'a> {
    /// The stack pointer of `enter`, with the saved registers above it.
    caller_stack: Cell<usize>,
    code: Range<usize>,
    stack: Range<usize>,
    ended: Cell<Ended>,
    /// What is written at each tick.
    write: Option<Write<'a>>,
    /// How many ticks are left.
    left: Cell<u128>,
}

thread_local! {
    /// The call that runs on this thread.
    static ACTIVE: Cell<*const Activation<'static>> = const { Cell::new(ptr::null()) };
    /// What calls need on this thread.
    static THREAD: OnceCell<Thread> = const { OnceCell::new() };
}

/// Whether this address is on the stack of the program that runs on this thread.
pub(in crate::oracle) fn on_program_stack(address: usize) -> bool {
    // SAFETY: `ACTIVE` points to a local of `call`, which resets it before it returns.
    unsafe { ACTIVE.get().as_ref() }.is_some_and(|active| active.stack.contains(&address))
}

/// How many bytes of stack a host function may use that the program called.
pub(in crate::oracle) fn program_stack_left() -> usize {
    let here = 0u8;
    let here = (&raw const here).addr();
    // SAFETY: as in `on_program_stack`.
    unsafe { ACTIVE.get().as_ref() }.map_or(0, |active| here.saturating_sub(active.stack.start))
}

/// How long this thread has been on the processor.
pub(in crate::oracle) fn processor_time() -> Duration {
    // SAFETY: `timespec` is plain data, and the kernel only writes to it.
    let time = unsafe {
        let mut time: libc::timespec = mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time);
        time
    };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Calls a function. The slots hold its arguments before and its results after, if it returned. Also gives the time from
/// entry to exit.
pub(in crate::oracle) fn call(entry: &Entry, slots: &mut [Slot], watch: Watch<'_>) -> Result<(Ended, Duration)> {
    install_handlers()?;
    THREAD.with(|thread| {
        if thread.get().is_none() {
            thread.set(Thread::new()?).expect("no thread state was there");
        }
        let thread = thread.get().expect("thread state was made");
        let stack = thread.stack.address() + STACK_GUARD..thread.stack.address() + STACK_GUARD + STACK;
        let active = Activation {
            caller_stack: Cell::new(0),
            code: entry.code.clone(),
            stack: stack.clone(),
            ended: Cell::new(Ended::Returned),
            write: watch.write,
            left: Cell::new(watch.write.map_or(0, |_| watch.limit.as_micros() / WRITE_TICK.as_micros())),
        };
        let top = stack.end - ABOVE - (STACK - entry.stack.clamp(ABOVE + CLEARED, STACK));
        // SAFETY: the stack is mapped and larger, and nobody uses it now.
        unsafe { ptr::write_bytes((top - CLEARED) as *mut u8, 0, CLEARED) };
        let (timer, first, tick) = match watch.write {
            None => (thread.timer, watch.limit, TICK),
            Some(_) => (thread.write_timer, WRITE_TICK, WRITE_TICK),
        };
        set_timer(timer, first, tick);
        ACTIVE.set((&raw const active).cast());
        let start = Instant::now();
        // SAFETY: `entry` is code that Cranelift made, for a signature for which the slots are enough. It uses the
        // program's stack, which nobody else uses: only host functions run meanwhile, and they call no programs.
        unsafe { enter(active.caller_stack.as_ptr(), top, entry.trampoline, entry.callee, slots.as_mut_ptr()) };
        let time = start.elapsed();
        ACTIVE.set(ptr::null());
        set_timer(timer, Duration::ZERO, tick);
        Ok((active.ended.get(), time))
    })
}

/// Passes a call of a shim to [`host::host_call`], with the shim's frame pointer.
#[unsafe(naked)]
pub(in crate::oracle) unsafe extern "C" fn host_entry(
    import: *const host::Import,
    args: *const Slot,
    results: *mut Slot,
) -> u8 {
    naked_asm!("mov rcx, rbp", "jmp {call}", call = sym host::host_call)
}

/// Goes on in a handler with these payload values. That drops the frames of the program's stack below it.
///
/// # Safety
///
/// The handler is one of Cranelift's, and these are its frame pointer and stack pointer. Nothing may be left to do in the frames that are dropped.
#[unsafe(naked)]
pub(in crate::oracle) unsafe extern "C" fn resume(
    handler: usize,
    frame: usize,
    stack: usize,
    first: i64,
    second: i64,
) -> ! {
    naked_asm!("mov rbp, rsi", "mov rsp, rdx", "mov rax, rcx", "mov rdx, r8", "jmp rdi")
}

/// Calls `trampoline(callee, slots)` on the stack that ends at `stack`. The caller's stack pointer is stored in
/// `caller_stack`.
#[unsafe(naked)]
unsafe extern "C" fn enter(caller_stack: *mut usize, stack: usize, trampoline: usize, callee: usize, slots: *mut Slot) {
    naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov [rdi], rsp",
        "mov rbx, rsp",
        "mov rsp, rsi",
        "mov rdi, rcx",
        "mov rsi, r8",
        "call rdx",
        "mov rsp, rbx",
        "jmp {leave}",
        leave = sym leave,
    )
}

/// The end of [`enter`], to which signal handlers jump with the stack pointer that it noted.
#[unsafe(naked)]
unsafe extern "C" fn leave() {
    naked_asm!("pop r15", "pop r14", "pop r13", "pop r12", "pop rbx", "pop rbp", "ret")
}

/// Stacks and timer of a thread.
#[derive(Debug)]
struct Thread {
    /// The stack on which programs run, with its guard below.
    stack: Mapping,
    /// Keeps the stack for signals, if the thread had none or a small one.
    signal_stack: Option<Mapping>,
    /// Ends a call.
    timer: libc::timer_t,
    /// Writes what another thread writes, and ends a call beside which it does.
    write_timer: libc::timer_t,
}

impl Thread {
    fn new() -> Result<Self> {
        let stack = Mapping::reserve(STACK_GUARD + STACK)?;
        stack.protect(STACK_GUARD..STACK_GUARD + STACK, Access::Data)?;
        Ok(Self {
            stack,
            signal_stack: ensure_signal_stack()?,
            timer: make_timer(libc::CLOCK_THREAD_CPUTIME_ID)?,
            write_timer: make_timer(libc::CLOCK_MONOTONIC)?,
        })
    }
}

/// Sets a timer to this time from now on, and to ticks after it, or stops it if the time is zero.
fn set_timer(timer: libc::timer_t, first: Duration, tick: Duration) {
    let time = |time: Duration| libc::timespec {
        tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: time.subsec_nanos().into(),
    };
    let value = libc::itimerspec { it_interval: time(tick), it_value: time(first) };
    // SAFETY: the timer is this thread's, and lives as long as its `Thread`.
    unsafe { libc::timer_settime(timer, 0, &value, ptr::null_mut()) };
}

impl Drop for Thread {
    fn drop(&mut self) {
        // SAFETY: the timer is ours, and the thread ends: it needs no stack for signals any more. If that stack is
        // not ours, it is left unchanged.
        unsafe {
            libc::timer_delete(self.timer);
            libc::timer_delete(self.write_timer);
            if self.signal_stack.is_some() {
                let mut none: libc::stack_t = mem::zeroed();
                none.ss_flags = libc::SS_DISABLE;
                libc::sigaltstack(&none, ptr::null_mut());
            }
        }
    }
}

fn ensure_signal_stack() -> Result<Option<Mapping>> {
    // SAFETY: `stack_t` is plain data, and a null pointer asks for the present stack only.
    let now = unsafe {
        let mut now: libc::stack_t = mem::zeroed();
        libc::sigaltstack(ptr::null(), &mut now);
        now
    };
    if now.ss_flags & libc::SS_DISABLE == 0 && now.ss_size >= SIGNAL_STACK {
        return Ok(None);
    }
    let stack = Mapping::reserve(PAGE + SIGNAL_STACK)?;
    stack.protect(PAGE..PAGE + SIGNAL_STACK, Access::Data)?;
    let new = libc::stack_t { ss_sp: stack.base.wrapping_add(PAGE).cast(), ss_flags: 0, ss_size: SIGNAL_STACK };
    // SAFETY: the memory stays until the thread ends.
    if unsafe { libc::sigaltstack(&new, ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error()).context("no stack for signals");
    }
    Ok(Some(stack))
}

fn make_timer(clock: libc::clockid_t) -> Result<libc::timer_t> {
    // SAFETY: `sigevent` is plain data, and the kernel only writes to `timer`.
    unsafe {
        let mut event: libc::sigevent = mem::zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = timer_signal();
        event.sigev_notify_thread_id = libc::gettid();
        let mut timer: libc::timer_t = ptr::null_mut();
        if libc::timer_create(clock, &mut event, &mut timer) != 0 {
            return Err(io::Error::last_os_error()).context("no timer");
        }
        Ok(timer)
    }
}

/// The signal of the timers: a real-time signal that nobody is known to use.
fn timer_signal() -> libc::c_int {
    libc::SIGRTMIN() + 5
}

/// The signals that the processor raises, and for each of them who handled it before.
static FAULTS: [(libc::c_int, OnceLock<libc::sigaction>); 5] = [
    (libc::SIGILL, OnceLock::new()),
    (libc::SIGFPE, OnceLock::new()),
    (libc::SIGSEGV, OnceLock::new()),
    (libc::SIGBUS, OnceLock::new()),
    (libc::SIGTRAP, OnceLock::new()),
];

type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

fn install_handlers() -> Result<()> {
    static INSTALLED: OnceLock<Result<(), io::ErrorKind>> = OnceLock::new();
    let installed = INSTALLED.get_or_init(|| {
        for (signal, before) in &FAULTS {
            // First what is there, so that the handler finds it.
            // SAFETY: `sigaction` is plain data, and a null pointer asks for the present one only.
            let old = unsafe {
                let mut old: libc::sigaction = mem::zeroed();
                libc::sigaction(*signal, ptr::null(), &mut old);
                old
            };
            before.set(old).expect("handlers are installed once");
            set_handler(*signal, on_fault, libc::SA_NODEFER)?;
        }
        set_handler(timer_signal(), on_timer, libc::SA_RESTART)
    });
    installed.map_err(io::Error::from).context("no signal handlers")
}

fn set_handler(signal: libc::c_int, handler: Handler, flags: libc::c_int) -> Result<(), io::ErrorKind> {
    // SAFETY: `sigaction` is plain data, and both handlers do only what a handler may do.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | flags;
        match libc::sigaction(signal, &action, ptr::null_mut()) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error().kind()),
        }
    }
}

/// Makes the interrupted program end like this.
fn end_program(active: &Activation<'_>, ended: Ended, context: &mut libc::ucontext_t) {
    active.ended.set(ended);
    let registers = &mut context.uc_mcontext.gregs;
    registers[libc::REG_RSP as usize] = active.caller_stack.get() as i64;
    registers[libc::REG_RIP as usize] = leave as *const () as i64;
}

extern "C" fn on_timer(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel gives a context, and `ACTIVE` is as in `on_program_stack`. Who asks for a write says that there is memory, and
    // no Rust code refers to it while the program runs.
    unsafe {
        let context = &mut *context.cast::<libc::ucontext_t>();
        let pc = context.uc_mcontext.gregs[libc::REG_RIP as usize] as usize;
        if let Some(active) = ACTIVE.get().as_ref()
            && active.code.contains(&pc)
        {
            if let Some(Write { address, bytes, unless }) = active.write
                && unless.is_none_or(|(byte, was)| ptr::read_volatile(byte as *const u8) != was)
            {
                ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len());
            }
            match active.left.get().checked_sub(1) {
                Some(left) => active.left.set(left),
                None => end_program(active, Ended::TimedOut, context),
            }
        }
    }
}

extern "C" fn on_fault(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: as in `on_timer`. A positive code means that the processor raised the signal.
    let handled = unsafe {
        let context = &mut *context.cast::<libc::ucontext_t>();
        let pc = context.uc_mcontext.gregs[libc::REG_RIP as usize] as usize;
        match ACTIVE.get().as_ref() {
            Some(active) if (*info).si_code > 0 && !host::is_running() => {
                // `debugtrap` goes on after it.
                if signal != libc::SIGTRAP {
                    let about_memory = signal == libc::SIGSEGV || signal == libc::SIGBUS;
                    let address = if about_memory { (*info).si_addr().addr() } else { 0 };
                    let stack_guard = (active.stack.start - STACK_GUARD..active.stack.start).contains(&address);
                    end_program(active, Ended::Fault { pc, address, stack_guard }, context);
                }
                true
            }
            _ => false,
        }
    };
    if !handled {
        pass_on(signal, info, context);
    }
}

/// Lets who handled the signal before handle it.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let before = FAULTS.iter().find(|(fault, _)| *fault == signal).and_then(|(_, before)| before.get());
    // SAFETY: `sa_sigaction` is a handler of the kind that the flags say, or one of the two special values.
    unsafe {
        match before {
            Some(before) if before.sa_sigaction != libc::SIG_DFL && before.sa_sigaction != libc::SIG_IGN => {
                if before.sa_flags & libc::SA_SIGINFO != 0 {
                    mem::transmute::<usize, Handler>(before.sa_sigaction)(signal, info, context);
                } else {
                    mem::transmute::<usize, extern "C" fn(libc::c_int)>(before.sa_sigaction)(signal);
                }
            }
            _ => {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
        }
    }
}
