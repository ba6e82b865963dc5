//! loopopt as the pass of a thread.

use crate::claims;
use crate::hook::Pass;
use crate::rare::mark_rare;
use crate::settings::{Compiled, Settings};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{CodegenResult, Context};
use loopopt::LoopOptimizer;
use std::cell::OnceCell;
use std::time::Instant;

/// loopopt with these settings.
pub(crate) struct Loops {
    settings: Settings,
    optimizer: LoopOptimizer,
    /// That of the settings, which is asked for each function.
    fingerprint: OnceCell<String>,
}

impl Loops {
    pub(crate) fn new(settings: &Settings) -> Self {
        let optimizer = LoopOptimizer::new(settings.options_of_pass());
        Self { settings: settings.clone(), optimizer, fingerprint: OnceCell::new() }
    }
}

impl Pass for Loops {
    fn run(&mut self, ctx: &mut Context, isa: &dyn TargetIsa, ctrl_plane: &mut ControlPlane) -> CodegenResult<()> {
        let start = Instant::now();
        mark_rare(&mut ctx.func);
        let report = self.optimizer.run(ctx, isa, ctrl_plane)?;
        if !report.claims.is_empty() {
            claims::translate(&mut ctx.func)?;
        }
        self.settings.report(&Compiled { func: &ctx.func, report: &report, time: start.elapsed() });
        Ok(())
    }

    fn fingerprint(&self) -> String {
        self.fingerprint.get_or_init(|| self.settings.fingerprint()).clone()
    }
}
