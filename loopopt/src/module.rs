//! A `cranelift_module::Module` that optimizes the loops of what is defined in it.

use crate::isa::check_pair;
use crate::{LoopOptimizer, Options, Report};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::{OwnedTargetIsa, TargetIsa};
use cranelift_codegen::{CodegenError, CodegenResult, Context, ir};
use cranelift_module::{
    DataDescription, DataId, FuncId, FuncOrDataId, Linkage, Module, ModuleDeclarations, ModuleReloc, ModuleResult,
};

/// Wraps a module, `JITModule` or `ObjectModule` for example, and runs Cranelift's mid-end and the loop passes on each
/// function before the module compiles it.
///
/// The wrapped module keeps everything that `define_function` gives: relocations, unwind information, exception tables,
/// and `ctx.compiled_code()` with source locations, traps and stack maps. Functions given as bytes are left as they are.
///
/// # Examples
///
/// ```
/// use cranelift_codegen::settings::{self, Configurable};
/// use cranelift_jit::{JITBuilder, JITModule};
/// use cranelift_module::default_libcall_names;
/// use loopopt::{LoopOptModule, Options, lowering_isa};
///
/// let mut flags = settings::builder();
/// flags.set("opt_level", "speed")?;
/// let isa = cranelift_native::builder()?.finish(settings::Flags::new(flags))?;
/// let jit = JITModule::new(JITBuilder::with_isa(lowering_isa(&*isa)?, default_libcall_names()));
/// let mut module = LoopOptModule::new(jit, isa, Options::default())?;
/// // declare and define functions in `module` as in any other, then
/// module.inner_mut().finalize_definitions()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct LoopOptModule<M> {
    inner: M,
    isa: OwnedTargetIsa,
    optimizer: LoopOptimizer,
    report: Report,
}

impl<M: Module> LoopOptModule<M> {
    /// Wraps `inner`, whose ISA must be [`lowering_isa`](crate::lowering_isa) of `isa`.
    ///
    /// # Errors
    ///
    /// If the module's ISA is not `opt_level=none`, or differs from `isa` in the target or in a flag that changes code.
    pub fn new(inner: M, isa: OwnedTargetIsa, options: Options) -> CodegenResult<Self> {
        check_pair(&*isa, inner.isa()).map_err(CodegenError::Unsupported)?;
        Ok(Self { inner, isa, optimizer: LoopOptimizer::new(options), report: Report::default() })
    }

    /// What was done to the function that was defined last.
    pub fn last_report(&self) -> &Report {
        &self.report
    }

    /// The wrapped module.
    pub fn inner(&self) -> &M {
        &self.inner
    }

    /// The wrapped module, to finalize definitions for example. What is defined there directly is not optimized.
    pub fn inner_mut(&mut self) -> &mut M {
        &mut self.inner
    }

    /// Unwraps the module.
    pub fn into_inner(self) -> M {
        self.inner
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
        ctx.optimize(&*self.isa, ctrl_plane)?;
        self.report = self.optimizer.run(ctx, &*self.isa, ctrl_plane)?;
        self.inner.define_function_with_control_plane(func, ctx, ctrl_plane)
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
