//! A `cranelift_module::Module` that optimizes the loops of what is defined in it.

use crate::isa::{check_pair, optimizing_isa};
use crate::optimizer::{lower, require_body};
use crate::{LoopOptimizer, Options, Report, Totals};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::{OwnedTargetIsa, TargetIsa};
use cranelift_codegen::settings::OptLevel;
use cranelift_codegen::{CodegenError, CodegenResult, CompiledCode, Context, ir};
use cranelift_module::{
    DataDescription, DataId, FuncId, FuncOrDataId, Linkage, Module, ModuleDeclarations, ModuleReloc, ModuleResult,
};
use std::ops::{Deref, DerefMut};

/// Wraps a module, `JITModule` or `ObjectModule` for example, and runs Cranelift's mid-end and the loop passes on each
/// function before the module compiles it.
///
/// The wrapped module keeps everything that `define_function` gives: relocations, unwind information, exception tables,
/// and `ctx.compiled_code()` with source locations, traps and stack maps. Functions given as bytes are left as they are.
///
/// With [`Options::lowers_directly`], functions are lowered here and given to the wrapped module as bytes, which makes faster code in less
/// time ([`LoopOptimizer::compile_directly`]). `ctx.compiled_code()` is not there then, [`last_code`](Self::last_code) is, and the wrapped
/// module does not register unwind information. Functions with exception tables are compiled by the module nevertheless.
///
/// It is the wrapped module in all other respects, by `Deref`: `finalize_definitions` or `get_finalized_function` are called on it like
/// before. What takes the module itself, such as `finish`, needs [`into_inner`](Self::into_inner) first (but see the feature `object`).
/// `define_function` and the other methods of [`Module`] are those of the wrapper, which optimizes. **Not so where a
/// reference to the wrapped module itself is asked for**: a function that takes `&mut JITModule` can be given `&mut module`,
/// and defines functions that are not optimized. Let it take `&mut impl Module`.
///
/// # Examples
///
/// One set of flags, and one line more than without loopopt. The module only lowers, so it is left at `opt_level=none`, and the level is said where it
/// is wrapped:
///
/// ```
/// use cranelift_codegen::settings::OptLevel;
/// use cranelift_jit::{JITBuilder, JITModule};
/// use cranelift_module::{Module, default_libcall_names};
/// use loopopt::{LoopOptModule, Options};
///
/// let jit = JITModule::new(JITBuilder::with_flags(&[("enable_verifier", "false")], default_libcall_names())?);
/// let mut module = LoopOptModule::with_opt_level(jit, OptLevel::Speed, Options::default())?;
/// assert_eq!(module.isa().flags().opt_level(), OptLevel::Speed);
/// assert!(!module.isa().flags().use_colocated_libcalls(), "what `JITBuilder` asks for is still asked for");
/// // declare and define functions in `module` as in any other, then
/// module.finalize_definitions()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// With an ISA that is there already:
///
/// ```
/// use cranelift_codegen::settings::{self, Configurable};
/// use cranelift_jit::{JITBuilder, JITModule};
/// use cranelift_module::default_libcall_names;
/// use loopopt::{LoopOptModule, Options, lowering_isa};
///
/// let mut flags = settings::builder();
/// flags.set("opt_level", "speed")?;
/// flags.set("use_colocated_libcalls", "false")?;
/// let isa = cranelift_native::builder()?.finish(settings::Flags::new(flags))?;
/// let jit = JITModule::new(JITBuilder::with_isa(lowering_isa(&*isa)?, default_libcall_names()));
/// let module = LoopOptModule::new(jit, isa, Options::default())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct LoopOptModule<M> {
    inner: M,
    isa: OwnedTargetIsa,
    optimizer: LoopOptimizer,
    report: Report,
    code: Option<CompiledCode>,
    totals: Totals,
    on_report: Option<OnReport>,
}

/// What is called for each function.
type OnReport = Box<dyn FnMut(FuncId, &str, &Report) + Send>;

impl<M: Module> LoopOptModule<M> {
    /// Wraps `inner`, whose ISA must be [`lowering_isa`](crate::lowering_isa) of `isa`.
    ///
    /// # Errors
    ///
    /// If the module's ISA is not `opt_level=none`, or differs from `isa` in the target or in a flag that changes code.
    pub fn new(inner: M, isa: OwnedTargetIsa, options: Options) -> CodegenResult<Self> {
        check_pair(&*isa, inner.isa()).map_err(CodegenError::Unsupported)?;
        Ok(Self {
            inner,
            isa,
            optimizer: LoopOptimizer::new(options),
            report: Report::default(),
            code: None,
            totals: Totals::default(),
            on_report: None,
        })
    }

    /// Wraps `inner`, which was made with `opt_level=none`, to optimize at this level: with a copy of its ISA, all other flags the
    /// same.
    ///
    /// # Errors
    ///
    /// If the module's ISA is not `opt_level=none`, or one that this Cranelift was built without.
    pub fn with_opt_level(inner: M, level: OptLevel, options: Options) -> CodegenResult<Self> {
        let isa = optimizing_isa(inner.isa(), level)?;
        Self::new(inner, isa, options)
    }

    /// What optimizes: its settings, and how many rewrites it has done ([`LoopOptimizer::rewrites`]).
    pub fn optimizer(&self) -> &LoopOptimizer {
        &self.optimizer
    }

    /// Optimizes the functions that are defined from now on with these settings: a profile, or another effort for a function that is known to be hot. Rewrites are counted
    /// from 0.
    pub fn set_options(&mut self, options: Options) {
        self.optimizer = LoopOptimizer::new(options);
    }

    /// What was done to the function that was defined last: nothing if that failed.
    pub fn last_report(&self) -> &Report {
        &self.report
    }

    /// The code of the function that was defined last, if it was lowered here ([`Options::lowers_directly`]): with its traps, source
    /// locations, stack maps and unwind information (`CompiledCode::create_unwind_info`).
    pub fn last_code(&self) -> Option<&CompiledCode> {
        self.code.as_ref()
    }

    /// What was done to all functions so far.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Calls this for each function that is defined from now on, with its name and with what was done to it. It is called once the
    /// function was rewritten, before it is lowered.
    ///
    /// ```
    /// # fn print_remarks<M: cranelift_module::Module>(module: &mut loopopt::LoopOptModule<M>) {
    /// module.on_report(|_, name, report| {
    ///     for remark in &report.remarks {
    ///         eprintln!("{name}: {remark}");
    ///     }
    /// });
    /// # }
    /// ```
    pub fn on_report(&mut self, callback: impl FnMut(FuncId, &str, &Report) + Send + 'static) {
        self.on_report = Some(Box::new(callback));
    }

    /// The wrapped module.
    pub fn inner(&self) -> &M {
        &self.inner
    }

    /// The wrapped module. What is defined there directly is not optimized.
    pub fn inner_mut(&mut self) -> &mut M {
        &mut self.inner
    }

    /// Unwraps the module, for what takes it by value.
    pub fn into_inner(self) -> M {
        self.inner
    }
}

#[cfg(feature = "object")]
impl LoopOptModule<cranelift_object::ObjectModule> {
    /// As `ObjectModule::finish`.
    ///
    /// # Examples
    ///
    /// ```
    /// use cranelift_codegen::settings::{self, Configurable};
    /// use cranelift_codegen::Context;
    /// use cranelift_module::{Linkage, Module, default_libcall_names};
    /// use cranelift_object::{ObjectBuilder, ObjectModule};
    /// use loopopt::{LoopOptModule, Options, lowering_isa};
    ///
    /// let mut flags = settings::builder();
    /// flags.set("opt_level", "speed")?;
    /// let isa = cranelift_native::builder()?.finish(settings::Flags::new(flags))?;
    /// let object = ObjectModule::new(ObjectBuilder::new(lowering_isa(&*isa)?, "loops", default_libcall_names())?);
    /// let mut module = LoopOptModule::new(object, isa, Options::default())?;
    /// let text = "function u0:0(i64) system_v {
    /// block0(v0: i64):
    ///     v1 = iconst.i64 0
    ///     jump block1(v1)
    /// block1(v2: i64):
    ///     v3 = icmp ult v2, v0
    ///     brif v3, block2, block3
    /// block2:
    ///     v4 = iconst.i64 1
    ///     v5 = iadd v2, v4
    ///     jump block1(v5)
    /// block3:
    ///     return
    /// }";
    /// let mut ctx = Context::for_function(cranelift_reader::parse_functions(text)?.remove(0));
    /// let id = module.declare_function("wait", Linkage::Export, &ctx.func.signature)?;
    /// module.define_function(id, &mut ctx)?;
    /// assert!(module.last_report().changed);
    /// let file: Vec<u8> = module.finish().emit()?;
    /// assert!(!file.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn finish(self) -> cranelift_object::ObjectProduct {
        self.inner.finish()
    }
}

impl<M> Deref for LoopOptModule<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.inner
    }
}

impl<M> DerefMut for LoopOptModule<M> {
    fn deref_mut(&mut self) -> &mut M {
        &mut self.inner
    }
}

/// Everything but the definition of functions goes to the wrapped module. [`Module::isa`] is the ISA that optimizes, so
/// that a front end that asks for it sees the level that it chose.
impl<M: Module> Module for LoopOptModule<M> {
    fn isa(&self) -> &dyn TargetIsa {
        &*self.isa
    }

    fn declarations(&self) -> &ModuleDeclarations {
        self.inner.declarations()
    }

    fn get_name(&self, name: &str) -> Option<FuncOrDataId> {
        self.inner.get_name(name)
    }

    fn declare_function(&mut self, name: &str, linkage: Linkage, signature: &ir::Signature) -> ModuleResult<FuncId> {
        self.inner.declare_function(name, linkage, signature)
    }

    fn declare_anonymous_function(&mut self, signature: &ir::Signature) -> ModuleResult<FuncId> {
        self.inner.declare_anonymous_function(signature)
    }

    fn declare_data(&mut self, name: &str, linkage: Linkage, writable: bool, tls: bool) -> ModuleResult<DataId> {
        self.inner.declare_data(name, linkage, writable, tls)
    }

    fn declare_anonymous_data(&mut self, writable: bool, tls: bool) -> ModuleResult<DataId> {
        self.inner.declare_anonymous_data(writable, tls)
    }

    fn declare_func_in_func(&mut self, func_id: FuncId, func: &mut ir::Function) -> ir::FuncRef {
        self.inner.declare_func_in_func(func_id, func)
    }

    fn declare_data_in_func(&self, data: DataId, func: &mut ir::Function) -> ir::GlobalValue {
        self.inner.declare_data_in_func(data, func)
    }

    fn declare_func_in_data(&self, func_id: FuncId, data: &mut DataDescription) -> ir::FuncRef {
        self.inner.declare_func_in_data(func_id, data)
    }

    fn declare_data_in_data(&self, data_id: DataId, data: &mut DataDescription) -> ir::GlobalValue {
        self.inner.declare_data_in_data(data_id, data)
    }

    fn define_function_with_control_plane(
        &mut self,
        func: FuncId,
        ctx: &mut Context,
        ctrl_plane: &mut ControlPlane,
    ) -> ModuleResult<()> {
        // What fails leaves nothing there of the function before.
        (self.code, self.report) = (None, Report::default());
        // Nor does what is lowered directly leave that in the context.
        ctx.take_compiled_code();
        require_body(&ctx.func)?;
        let lowers_directly = self.optimizer.options().lowers_directly && ctx.func.dfg.exception_tables.is_empty();
        if lowers_directly && self.inner.isa().flags().enable_nan_canonicalization() {
            ctx.canonicalize_nans(self.inner.isa())?;
        }
        ctx.optimize(&*self.isa, ctrl_plane)?;
        let report = self.optimizer.run_for(ctx, &*self.isa, ctrl_plane, lowers_directly)?;
        if lowers_directly {
            let code = lower(ctx, &*self.isa, ctrl_plane)?;
            define_lowered(&mut self.inner, func, &ctx.func, &code)?;
            self.code = Some(code);
        } else {
            self.inner.define_function_with_control_plane(func, ctx, ctrl_plane)?;
        }
        self.report = report;
        self.totals.add(&self.report);
        if let Some(callback) = &mut self.on_report {
            let name = self.inner.declarations().get_function_decl(func).linkage_name(func);
            callback(func, &name, &self.report);
        }
        Ok(())
    }

    fn define_function_bytes(
        &mut self,
        func_id: FuncId,
        alignment: u64,
        bytes: &[u8],
        relocs: &[ModuleReloc],
    ) -> ModuleResult<()> {
        self.inner.define_function_bytes(func_id, alignment, bytes, relocs)
    }

    fn define_data(&mut self, data_id: DataId, data: &DataDescription) -> ModuleResult<()> {
        self.inner.define_data(data_id, data)
    }
}

/// Defines `id` in `module` as `code`, which `func` was lowered to.
#[expect(clippy::result_large_err, reason = "it is the error of all modules")]
pub(crate) fn define_lowered(
    module: &mut impl Module,
    id: FuncId,
    func: &ir::Function,
    code: &CompiledCode,
) -> ModuleResult<()> {
    let relocs = code.buffer.relocs().iter();
    let relocs: Vec<_> = relocs.map(|reloc| ModuleReloc::from_mach_reloc(reloc, func, id)).collect();
    module.define_function_bytes(id, code.buffer.alignment.into(), code.code_buffer(), &relocs)
}
