//! The entry point: [`LoopOptimizer`].

use crate::fuel::Fuel;
use crate::isa::LoweringIsa;
use crate::options::Options;
use crate::pass::PassCx;
use crate::pipeline::{self, make_valid};
use crate::report::Report;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::settings::OptLevel;
use cranelift_codegen::{CodegenError, CodegenResult, CompileError, CompiledCode, Context};
use std::collections::BTreeMap;

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

impl Options {
    /// Settings for small code: no pass that copies code runs, which are those for versions of loops, unrolling, peeling and the like.
    ///
    /// What an ISA with `opt_level=speed_and_size` gets in any case. `rotate` still runs where the test of the loop has 4 instructions
    /// at most: the copy of the test takes the place of a jump in each iteration, and loads and checks can leave no loop
    /// that is not rotated. `sink` moves, but makes no second copy. The samples, which are nothing but loops,
    /// take 0.616 of Cranelift's time (0.380 with the default settings, `docs/compile-time.md`).
    pub fn for_size() -> Self {
        Self::default().without_copies()
    }

    /// These settings, without what copies code.
    pub(crate) fn without_copies(mut self) -> Self {
        let small: Vec<&str> = pipeline::passes().filter(|pass| !pass.copies).map(|pass| pass.name).collect();
        self.passes = Some(small.into_iter().filter(|name| self.enables(name)).map(str::to_owned).collect());
        self.rotate_max_header_insts = self.rotate_max_header_insts.min(4);
        self.sink_max_places = self.sink_max_places.min(1);
        self
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

    /// How many optional rewrites were granted so far: the largest number worth trying as [`Options::fuel`].
    pub fn rewrites(&self) -> u64 {
        self.fuel.used()
    }

    /// The settings.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// What the last [`compile`](Self::compile) or `compile_directly` did; empty if that failed. What [`run`](Self::run) does is what it returns.
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
    /// The function is as it was then.
    ///
    /// * The verifier's, if the ISA's `enable_verifier` is on: the function is not valid, or a pass broke it.
    /// * `Unsupported`, if a branch enters the entry block, whether the verifier is on or not; and with
    ///   [`Options::assert_claims`], if a trap has the code of a claim ([`Claim::trap_code`](crate::claim::Claim::trap_code)).
    pub fn run(
        &mut self,
        ctx: &mut Context,
        isa: &dyn TargetIsa,
        ctrl_plane: &mut ControlPlane,
    ) -> CodegenResult<Report> {
        self.run_for(ctx, isa, ctrl_plane, self.options.lowers_directly)
    }

    /// Takes the place of `Context::compile`: the same with the loops rewritten between the mid-end and lowering.
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
        let optimized = self.optimize(ctx, isa, ctrl_plane, false);
        match optimized.and_then(|report| Ok((report, self.lowering.of(isa)?))) {
            Ok((report, lowering)) => {
                let code = ctx.compile(&*lowering, ctrl_plane)?;
                self.compiled = report;
                Ok(code)
            }
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
        let report = self.optimize(ctx, isa, ctrl_plane, true)?;
        let code = lower(ctx, isa, ctrl_plane)?;
        self.compiled = report;
        Ok(code)
    }

    /// All but lowering.
    fn optimize(
        &mut self,
        ctx: &mut Context,
        isa: &dyn TargetIsa,
        ctrl_plane: &mut ControlPlane,
        lowers_directly: bool,
    ) -> CodegenResult<Report> {
        require_body(&ctx.func)?;
        ctx.verify_if(isa)?;
        ctx.optimize(isa, ctrl_plane)?;
        self.run_for(ctx, isa, ctrl_plane, lowers_directly)
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

/// An error for a function without a block, for which Cranelift panics.
pub(crate) fn require_body(func: &Function) -> CodegenResult<()> {
    match func.layout.entry_block() {
        Some(_) => Ok(()),
        None => Err(CodegenError::Unsupported(format!("{} has no block", func.name))),
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
