//! What is seen of functions on their way through Wasmtime: how large they are, what loopopt does, how long that takes.
//!
//! Two arms are compiled in one process, so the pass is that of the thread (`loopopt_wasmtime_support::with_pass`). That is enough because
//! Wasmtime is built without its feature `parallel-compilation` and compiles all functions of a module on the thread that asked for the module.

use crate::placement;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{CodegenResult, Context};
use loopopt::{LoopOptimizer, Options, Report};
use loopopt_wasmtime_support::{InstallError, Pass, defined_function, mark_rare, translate_claims, with_pass};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

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
#[derive(Default)]
struct Session {
    optimizer: Option<LoopOptimizer>,
    keep_clif: bool,
    shift: Option<usize>,
    compilation: Compilation,
}

/// Runs `compile`, with these orders for all functions that it compiles on this thread.
pub fn compile_with<T>(orders: Orders<'_>, compile: impl FnOnce() -> T) -> Result<(T, Compilation), InstallError> {
    let Orders { options, keep_clif, shift } = orders;
    let optimizer = options.map(|options| LoopOptimizer::new(options.clone()));
    let session = Session { optimizer, keep_clif, shift, compilation: Compilation::default() };
    let session = Rc::new(RefCell::new(session));
    let result = with_pass(&session, compile)?;
    let session = session.take();
    let rewrites = session.optimizer.map_or(0, |optimizer| optimizer.rewrites());
    Ok((result, Compilation { rewrites, ..session.compilation }))
}

impl Pass for Session {
    fn run(&mut self, ctx: &mut Context, isa: &dyn TargetIsa, ctrl_plane: &mut ControlPlane) -> CodegenResult<()> {
        let insts = ctx.func.dfg.num_insts();
        let has_loops = ctx.loop_analysis.loops().len() > 0;
        let index = match defined_function(&ctx.func) {
            Some((0, index)) => Some(index as usize),
            _ => None,
        };
        let before = self.keep_clif.then(|| ctx.func.display().to_string());
        let start = Instant::now();
        let report = match &mut self.optimizer {
            Some(optimizer) => {
                mark_rare(&mut ctx.func);
                optimizer.run(ctx, isa, ctrl_plane)?
            }
            None => Report::default(),
        };
        if !report.claims.is_empty() {
            translate_claims(&mut ctx.func)?;
        }
        let time = start.elapsed();
        let clif = before.map(|before| [before, ctx.func.display().to_string()]);
        if let Some(bytes) = self.shift.filter(|_| has_loops) {
            placement::shift(ctx, bytes);
        }
        self.compilation.functions.push(Compiled { index, insts, report, time, clif });
        Ok(())
    }

    fn fingerprint(&self) -> String {
        let options = self.optimizer.as_ref().map(|optimizer| optimizer.options().fingerprint());
        format!("{options:?}, shifted by {:?}", self.shift)
    }
}
