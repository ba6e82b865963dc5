//! The way in: [`LoopOptimizer`] and the [`Report`] that it gives.

use crate::claim::Claim;
use crate::fuel::Fuel;
use crate::options::Options;
use crate::pass::PassCx;
use crate::pipeline;
use crate::remark::Remarks;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{CodegenResult, CompiledCode, Context};
use std::collections::BTreeMap;
use std::time::Duration;

/// How often a run made each of its analyses, and what takes as long as one. Those that an edit keeps up to date do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Analyses {
    /// The control-flow graph, the dominator tree with it.
    pub flow_graphs: usize,
    /// The dominator tree alone.
    pub dominator_trees: usize,
    /// The loops.
    pub loop_forests: usize,
    /// Cranelift's egraph pass.
    pub egraph_runs: usize,
}

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
    /// How many assertions of each claim the function holds, if [`Options::assert_claims`] is on.
    pub claims: BTreeMap<Claim, usize>,
    /// How often what passes look at was made.
    pub analyses: Analyses,
    /// How often the passes that make something possible for each other ran. 0 if there was nothing to look at.
    pub rounds: usize,
    /// Time that each pass took, in the order in which they ran.
    pub timings: Vec<(&'static str, Duration)>,
    /// If [`Options::dumps`] is on: `("input", text)`, then one entry for each pass that changed the function.
    pub dumps: Vec<(&'static str, String)>,
}

/// Runs the loop passes. Can be used for any number of functions, one after the other, on any thread.
#[derive(Clone, Debug, Default)]
pub struct LoopOptimizer {
    options: Options,
    fuel: Fuel,
}

impl LoopOptimizer {
    /// An optimizer with these settings.
    pub fn new(options: Options) -> Self {
        let fuel = Fuel::new(&options);
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

    /// Rewrites the loops of `ctx.func`, and its stack slots, in place.
    ///
    /// The context should be fresh from `Context::optimize`: a control-flow graph and a dominator tree that are there are taken for those
    /// of the function. Afterwards `ctx.cfg`, `ctx.domtree` and `ctx.loop_analysis` are
    /// valid, and no value is an alias. The same function and options give the same result, whatever the optimizer did before, as long as
    /// [fuel](Options::fuel) is not limited. Costs time linear in the size of the function; a function without loops
    /// and stack slots costs one look at each branch.
    ///
    /// # Errors
    ///
    /// If the ISA's `enable_verifier` is on and the function is not valid, or if a pass broke it. The function is then as
    /// it was.
    pub fn run(
        &mut self,
        ctx: &mut Context,
        isa: &dyn TargetIsa,
        ctrl_plane: &mut ControlPlane,
    ) -> CodegenResult<Report> {
        pipeline::run(ctx, &mut PassCx::new(&self.options, &mut self.fuel, isa, ctrl_plane))
    }

    /// Optimizes with Cranelift's own mid-end at the level of `isa`, rewrites the loops, and compiles.
    ///
    /// Like `Context::compile`, but the code is returned and not kept in `ctx`. The code is not relocated;
    /// [`LoopOptModule`](crate::LoopOptModule) is for those who want that done.
    ///
    /// # Errors
    ///
    /// Those of `Context::optimize`, of [`run`](Self::run) and of lowering.
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
