//! The way in: [`LoopOptimizer`] and the [`Report`] that it gives.

use crate::claim::Claim;
use crate::fuel::Fuel;
use crate::isa::LoweringIsa;
use crate::options::Options;
use crate::pass::PassCx;
use crate::pipeline;
use crate::remark::Remarks;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::TargetIsa;
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

/// What settings depend on, besides those that were given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Situation {
    /// Whether the ISA is at `opt_level=speed_and_size`.
    for_size: bool,
    /// Whether the function is too large for all passes.
    is_large: bool,
    /// Whether what the passes leave is lowered as it is.
    lowers_directly: bool,
}

impl Situation {
    fn options(self, given: &Options) -> Options {
        let mut options = given.clone();
        if self.for_size {
            options = options.without_copies();
        }
        if self.is_large {
            options = options.quick();
        }
        Options { lowers_directly: self.lowers_directly, ..options }
    }
}

/// Runs the loop passes. Can be used for any number of functions, one after the other, on any thread.
#[derive(Clone, Debug, Default)]
pub struct LoopOptimizer {
    options: Options,
    /// The same for other functions and ways to be lowered, as far as these were seen.
    derived: BTreeMap<Situation, Options>,
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
    /// neither [fuel](Options::fuel) is limited nor rewrites are [chosen at random](Options::stress). Costs time linear in the size of the function; a function without loops
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
        self.run_for(ctx, isa, ctrl_plane, self.options.lowers_directly)
    }

    /// Stands in the place of `Context::compile`: the same with the loops rewritten between the mid-end and lowering.
    ///
    /// Like there, the code is in `ctx` afterwards (`Context::compiled_code`, `Context::take_compiled_code`), unwind information is made of
    /// it, the code is not relocated, and `ctx.func` is the function as it was lowered. [`last_report`](Self::last_report) says what was done.
    ///
    /// Only `Context::compile` can leave code in a context, and it removes block parameters that are always the same value, at
    /// all levels. So what the passes `split_live_ranges` and `split_latch` do for lowering is lost: [`compile_directly`](Self::compile_directly)
    /// keeps it.
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
        match self.optimize(ctx, isa, ctrl_plane, false).and_then(|()| self.lowering.of(isa)) {
            Ok(lowering) => ctx.compile(&*lowering, ctrl_plane),
            Err(inner) => Err(CompileError { inner, func: &ctx.func }),
        }
    }

    /// As [`compile`](Self::compile), but the code is returned and not left in the context.
    ///
    /// The function is lowered as the passes leave it, which makes faster code (loads are operands of additions, see `split_latch`), and
    /// is not looked at once more, which makes less work. At `opt_level=none` it is lowered as Cranelift leaves it.
    /// With [`Options::lowers_directly`], [`LoopOptModule`](crate::LoopOptModule) compiles like this.
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
    /// let code = loops.compile_directly(&mut Context::for_function(func), &*isa, &mut ControlPlane::default())?;
    /// let unwind_info = code.create_unwind_info(&*isa)?;
    /// # assert!(!code.code_buffer().is_empty() && unwind_info.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compile_directly(
        &mut self,
        ctx: &mut Context,
        isa: &dyn TargetIsa,
        ctrl_plane: &mut ControlPlane,
    ) -> CodegenResult<CompiledCode> {
        self.compiled = Report::default();
        self.optimize(ctx, isa, ctrl_plane, true)?;
        lower(ctx, isa, ctrl_plane)
    }

    /// All but lowering.
    fn optimize(
        &mut self,
        ctx: &mut Context,
        isa: &dyn TargetIsa,
        ctrl_plane: &mut ControlPlane,
        lowers_directly: bool,
    ) -> CodegenResult<()> {
        ctx.verify_if(isa)?;
        ctx.optimize(isa, ctrl_plane)?;
        self.compiled = self.run_for(ctx, isa, ctrl_plane, lowers_directly)?;
        Ok(())
    }

    /// As [`run`](Self::run), for a function that is lowered like this.
    pub(crate) fn run_for(
        &mut self,
        ctx: &mut Context,
        isa: &dyn TargetIsa,
        ctrl_plane: &mut ControlPlane,
        lowers_directly: bool,
    ) -> CodegenResult<Report> {
        let level = isa.flags().opt_level();
        if level == OptLevel::None {
            make_valid(ctx);
            return Ok(Report::default());
        }
        let for_size = level == OptLevel::SpeedAndSize;
        let is_large = self.options.too_many_insts(&ctx.func).is_some();
        let options = if !for_size && !is_large && lowers_directly == self.options.lowers_directly {
            &self.options
        } else {
            let situation = Situation { for_size, is_large, lowers_directly };
            self.derived.entry(situation).or_insert_with(|| situation.options(&self.options))
        };
        pipeline::run(ctx, &mut PassCx::new(options, &mut self.fuel, isa, ctrl_plane))
    }
}

/// Lowers the function as it is, whose flow graph and dominator tree are those of the function, and which has no aliases.
pub(crate) fn lower(
    ctx: &mut Context,
    isa: &dyn TargetIsa,
    ctrl_plane: &mut ControlPlane,
) -> CodegenResult<CompiledCode> {
    let (func, registers) = (&ctx.func, &mut Default::default());
    let code = isa.compile_function(func, &ctx.domtree, registers, ctx.want_disasm, ctrl_plane)?;
    Ok(code.apply_params(&func.params))
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
