//! loopopt as the pass of a thread.

use crate::claims;
use crate::hook::Pass;
use crate::rare::mark_rare;
use crate::settings::{Compiled, Settings};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{CodegenResult, Context};
use loopopt::LoopOptimizer;
use std::time::Instant;

/// loopopt with these settings.
pub(crate) struct Loops {
    settings: Settings,
    optimizer: LoopOptimizer,
}

impl Loops {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self { settings: settings.clone(), optimizer: LoopOptimizer::new(settings.options_of_pass()) }
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
        self.settings.fingerprint()
    }
}
