//! The way in: [`LoopOptimizer`] and the [`Report`] that it gives.

use crate::fuel::Fuel;
use crate::options::Options;
use crate::pass::PassCx;
use crate::pipeline;
use crate::remark::Remarks;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{CodegenResult, CompiledCode, Context};
use std::time::Duration;

/// What a run did.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Loops that the function had before the run, irreducible cycles not counted.
    pub loops: usize,
    /// Whether the function is another than before. If not, it is the same to the letter.
    pub changed: bool,
    /// What was done, and what was not.
    pub remarks: Remarks,
    /// Time that each pass took, in the order in which they ran.
    pub timings: Vec<(&'static str, Duration)>,
    /// If [`Options::dumps`] is on: `("input", text)`, then one entry for each pass that changed the function.
    pub dumps: Vec<(&'static str, String)>,
}

/// Runs the loop passes.
#[derive(Clone, Debug, Default)]
pub struct LoopOptimizer {
    options: Options,
    fuel: Fuel,
}

impl LoopOptimizer {
    /// An optimizer with these settings.
    pub fn new(options: Options) -> Self {
        let fuel = Fuel::new(options.fuel);
        Self { options, fuel }
    }

    /// How many optional rewrites were done so far: the largest number worth trying as [`Options::fuel`].
    pub fn rewrites(&self) -> u64 {
        self.fuel.used()
    }

    /// The settings.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Rewrites the loops of `ctx.func` in place.
    pub fn run(
        &mut self,
        ctx: &mut Context,
        isa: &dyn TargetIsa,
        ctrl_plane: &mut ControlPlane,
    ) -> CodegenResult<Report> {
        pipeline::run(ctx, &mut PassCx::new(&self.options, &mut self.fuel, isa, ctrl_plane))
    }

    /// Optimizes with Cranelift's own mid-end, rewrites the loops, and compiles.
    pub fn compile(
        &mut self,
        ctx: &mut Context,
        isa: &dyn TargetIsa,
        ctrl_plane: &mut ControlPlane,
    ) -> CodegenResult<CompiledCode> {
        ctx.optimize(isa, ctrl_plane)?;
        self.run(ctx, isa, ctrl_plane)?;
        let stencil =
            isa.compile_function(&ctx.func, &ctx.domtree, &mut Default::default(), ctx.want_disasm, ctrl_plane)?;
        Ok(stencil.apply_params(&ctx.func.params))
    }
}
