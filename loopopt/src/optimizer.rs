//! The way in: [`LoopOptimizer`] and the [`Report`] that it gives.

use crate::claim::Claim;
use crate::fuel::Fuel;
use crate::isa::LoweringIsa;
use crate::options::Options;
use crate::pass::PassCx;
use crate::pipeline;
use crate::remark::Remarks;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::{OwnedTargetIsa, TargetIsa};
use cranelift_codegen::settings::OptLevel;
use cranelift_codegen::{CodegenResult, CompileError, CompiledCode, Context};
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
    /// The same for ISAs at `opt_level=speed_and_size` or not, and for large functions or not, as far as these were seen.
    derived: BTreeMap<(bool, bool), Options>,
    fuel: Fuel,
    lowering: LoweringIsa,
    compiled: Report,
}

impl LoopOptimizer {
    /// An optimizer with these settings.
    pub fn new(options: Options) -> Self {
        Self { fuel: Fuel::new(&options), options, ..Self::default() }
    }

    /// How many optional rewrites were done so far: the largest number worth trying as [`Options::fuel`].
    pub fn rewrites(&self) -> u64 {
        self.fuel.used()
    }

    /// The settings.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// What the last [`compile`](Self::compile) did. What [`run`](Self::run) does is what it returns.
    pub fn last_report(&self) -> &Report {
        &self.compiled
    }

    /// Rewrites the loops of `ctx.func`, and its stack slots, in place.
    ///
    /// The context should be fresh from `Context::optimize`: a control-flow graph and a dominator tree that are there are taken for those
    /// of the function. Afterwards `ctx.cfg`, `ctx.domtree` and `ctx.loop_analysis` are
    /// valid, and no value is an alias. The same function and options give the same result, whatever the optimizer did before, as long as
    /// [fuel](Options::fuel) is not limited. Costs time linear in the size of the function; a function without loops
    /// and stack slots costs one look at each branch.
    ///
    /// `isa` is the one that `Context::optimize` got, and its `opt_level` counts: at `none` nothing is done, at `speed_and_size` nothing
    /// that copies code, as with [`Options::for_size`]. A function with more than [`Options::full_effort_max_insts`] instructions gets the passes
    /// of [`Effort::Quick`](crate::Effort::Quick) only.
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
        let level = isa.flags().opt_level();
        if level == OptLevel::None {
            make_valid(ctx);
            return Ok(Report::default());
        }
        let for_size = level == OptLevel::SpeedAndSize;
        let is_large = self.options.too_many_insts(&ctx.func).is_some();
        let options = match (for_size, is_large) {
            (false, false) => &self.options,
            which => self.derived.entry(which).or_insert_with(|| {
                let options = self.options.clone();
                let options = if for_size { options.without_copies() } else { options };
                if is_large { options.quick() } else { options }
            }),
        };
        pipeline::run(ctx, &mut PassCx::new(options, &mut self.fuel, isa, ctrl_plane))
    }

    /// Stands in the place of `Context::compile`: the same with the loops rewritten between the mid-end and lowering.
    ///
    /// Like there, the code is in `ctx` afterwards (`Context::compiled_code`, `Context::take_compiled_code`), unwind information is made of
    /// it, the code is not relocated, and `ctx.func` is the function as it was lowered. [`last_report`](Self::last_report) says what was done.
    ///
    /// Only `Context::compile` can leave code in a context, and it removes block parameters that are always the same value, at
    /// all levels. So what the passes `split_live_ranges` and `split_latch` do for lowering is lost, here and in
    /// [`LoopOptModule`](crate::LoopOptModule). `Context::optimize`, [`run`](Self::run) and `TargetIsa::compile_function`, one after the other,
    /// keep it.
    ///
    /// # Errors
    ///
    /// Those of `Context::compile`, and of [`run`](Self::run).
    ///
    /// # Examples
    ///
    /// ```
    /// use cranelift_codegen::control::ControlPlane;
    /// use cranelift_codegen::settings::{self, Configurable};
    /// use cranelift_codegen::Context;
    /// use loopopt::{LoopOptimizer, Options};
    ///
    /// # let func = cranelift_reader::parse_functions("function %f() { block0: return }")?.remove(0);
    /// let mut flags = settings::builder();
    /// flags.set("opt_level", "speed")?;
    /// let isa = cranelift_native::builder()?.finish(settings::Flags::new(flags))?;
    ///
    /// let mut loops = LoopOptimizer::new(Options::default());
    /// let mut ctx = Context::for_function(func);
    /// let code = loops.compile(&mut ctx, &*isa, &mut ControlPlane::default()).map_err(|error| error.inner)?;
    /// assert!(!code.code_buffer().is_empty());
    /// assert!(ctx.compiled_code().is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compile<'a>(
        &mut self,
        ctx: &'a mut Context,
        isa: &dyn TargetIsa,
        ctrl_plane: &mut ControlPlane,
    ) -> Result<&'a CompiledCode, CompileError<'a>> {
        self.compiled = Report::default();
        if isa.flags().opt_level() == OptLevel::None {
            return ctx.compile(isa, ctrl_plane);
        }
        match self.optimize(ctx, isa, ctrl_plane) {
            Ok(lowering) => ctx.compile(&*lowering, ctrl_plane),
            Err(inner) => Err(CompileError { inner, func: &ctx.func }),
        }
    }

    /// All but lowering. Returns the ISA that does that.
    fn optimize(
        &mut self,
        ctx: &mut Context,
        isa: &dyn TargetIsa,
        ctrl_plane: &mut ControlPlane,
    ) -> CodegenResult<OwnedTargetIsa> {
        ctx.verify_if(isa)?;
        ctx.optimize(isa, ctrl_plane)?;
        self.compiled = self.run(ctx, isa, ctrl_plane)?;
        self.lowering.of(isa)
    }
}

/// Makes the flow graph, the dominator tree and the loops, as far as they are missing.
pub(crate) fn make_valid(ctx: &mut Context) {
    if !ctx.cfg.is_valid() || !ctx.domtree.is_valid() {
        ctx.flowgraph();
    }
    if !ctx.loop_analysis.is_valid() {
        ctx.compute_loop_analysis();
    }
}
