//! Where loopopt gets at what Wasmtime compiles: the hook that the patched cranelift-codegen calls after its egraph pass.
//!
//! The hook is one function for the whole process, and two arms are compiled in one process. What the hook does is up to
//! the thread it runs on: loopopt, if the thread is inside of [`compile_with`] that was given options, and nothing
//! otherwise. That is enough because Wasmtime is built without its feature `parallel-compilation` and compiles all
//! functions of a module on the thread that asked for the module. An embedder that compiles on many threads and wants
//! loopopt for all of its modules needs none of this: its hook makes a `LoopOptimizer` per thread and runs it.

use crate::placement;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{Function, InstructionData, TrapCode, UserFuncName};
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{CodegenResult, Context, set_mid_end_hook};
use loopopt::claim::asserts_by_code;
use loopopt::{LoopOptimizer, Options, Report};
use std::cell::RefCell;
use std::sync::Once;
use std::time::{Duration, Instant};
use wasmtime::Trap;

/// What went through the hook on its way to machine code.
#[derive(Debug, Default)]
pub struct Compilation {
    /// Functions of the module and trampolines, in the order in which they were compiled.
    pub functions: Vec<Compiled>,
    /// How many optional rewrites were done.
    pub rewrites: u64,
}

/// A function that went through the hook.
#[derive(Debug)]
pub struct Compiled {
    /// Its index among the functions that the module defines, if it is one of these and no trampoline.
    pub index: Option<usize>,
    /// Instructions that it had when it came, dead ones included.
    pub insts: usize,
    /// What loopopt did.
    pub report: Report,
    /// How long that took.
    pub time: Duration,
    /// The function before and after, if that was asked for.
    pub clif: Option<[String; 2]>,
}

/// What to do with the functions that come to the hook.
#[derive(Clone, Copy, Debug, Default)]
pub struct Orders<'a> {
    /// The settings of loopopt, if it is to run.
    pub options: Option<&'a Options>,
    /// Whether to keep the text of all functions.
    pub keep_clif: bool,
    /// By how many bytes to shift code, see [`placement`].
    pub shift: Option<usize>,
}

/// What compilations on this thread are for.
struct Session {
    optimizer: Option<LoopOptimizer>,
    keep_clif: bool,
    shift: Option<usize>,
    compilation: Compilation,
}

thread_local! {
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
}

/// Runs `compile`, with these orders for all functions that it compiles on this thread.
pub fn compile_with<T>(orders: Orders<'_>, compile: impl FnOnce() -> T) -> (T, Compilation) {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| set_mid_end_hook(run).expect("nobody else sets the hook"));
    let Orders { options, keep_clif, shift } = orders;
    let optimizer = options.map(|options| LoopOptimizer::new(options.clone()));
    let outer = SESSION.replace(Some(Session { optimizer, keep_clif, shift, compilation: Compilation::default() }));
    let result = compile();
    let session = SESSION.replace(outer).expect("the hook leaves the session in its place");
    let rewrites = session.optimizer.map_or(0, |optimizer| optimizer.rewrites());
    (result, Compilation { rewrites, ..session.compilation })
}

/// The hook.
fn run(ctx: &mut Context, isa: &dyn TargetIsa, ctrl_plane: &mut ControlPlane) -> CodegenResult<()> {
    SESSION.with_borrow_mut(|session| match session {
        Some(session) => session.optimize(ctx, isa, ctrl_plane),
        None => Ok(()),
    })
}

impl Session {
    fn optimize(&mut self, ctx: &mut Context, isa: &dyn TargetIsa, ctrl_plane: &mut ControlPlane) -> CodegenResult<()> {
        let insts = ctx.func.dfg.num_insts();
        let has_loops = ctx.loop_analysis.loops().len() > 0;
        let index = defined_index(&ctx.func);
        let before = self.keep_clif.then(|| ctx.func.display().to_string());
        let start = Instant::now();
        let report = match &mut self.optimizer {
            Some(optimizer) => optimizer.run(ctx, isa, ctrl_plane)?,
            None => Report::default(),
        };
        if !report.claims.is_empty() {
            translate_claims(&mut ctx.func);
        }
        let time = start.elapsed();
        let clif = before.map(|before| [before, ctx.func.display().to_string()]);
        if let Some(bytes) = self.shift.filter(|_| has_loops) {
            placement::shift(ctx, bytes);
        }
        self.compilation.functions.push(Compiled { index, insts, report, time, clif });
        Ok(())
    }
}

/// Wasmtime knows its own traps only, so a claim that fails shows as one that no program of ours has.
fn translate_claims(func: &mut Function) {
    /// What Wasmtime adds to the number of a trap.
    const TRAP_OFFSET: u8 = 3;
    let code = TrapCode::unwrap_user(Trap::AtomicWaitNonSharedMemory as u8 + TRAP_OFFSET);
    let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    let claims: Vec<_> = insts.filter(|&inst| asserts_by_code(func, inst).is_some()).collect();
    for inst in claims {
        match func.dfg.insts[inst] {
            InstructionData::CondTrap { opcode, arg, .. } => {
                func.dfg.insts[inst] = InstructionData::CondTrap { opcode, arg, code };
            }
            InstructionData::Load { opcode, flags, offset, arg } => {
                let flags = func.dfg.mem_flags[flags].with_trap_code(Some(code));
                let flags = func.dfg.mem_flags.insert(flags).expect("as many flags as there were before");
                func.dfg.insts[inst] = InstructionData::Load { opcode, flags, offset, arg };
            }
            _ => {}
        }
    }
}

/// Wasmtime names what it compiles by two numbers: the kind with the number of the module, and the index. Functions that
/// the program defines are of the kind 0.
fn defined_index(func: &Function) -> Option<usize> {
    match &func.name {
        UserFuncName::User(name) if name.namespace == 0 => Some(name.index as usize),
        _ => None,
    }
}
