//! From CLIF to machine code: one arm of a comparison.
//!
//! All arms are lowered for the same target. What one arm has more than another happens before that: Cranelift's own
//! optimizations, and loopopt. Cranelift looks at `opt_level` nowhere else, so this is the same as to compile with it. What was
//! optimized is lowered as it is, as with [`Options::lowers_directly`](crate::Options::lowers_directly).

use super::code::CodeMemory;
use super::code_range::{CodeRange, codegen_error};
use super::host::{Import, Session, lock};
use super::isa::Use;
use super::library;
use super::native;
use super::thunk::Shim;
use super::{Pipeline, Program, Rewrite, Settings, rewrite};
use crate::Report;
use crate::module::define_lowered;
use crate::optimizer::lower;
use anyhow::{Context as _, Error, Result, anyhow, bail, ensure};
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{ExternalName, FuncRef, Function, GlobalValueData, Signature, UserExternalName};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa, TargetIsa};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, ModuleError, default_libcall_names};
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A function as it was compiled.
#[derive(Debug)]
pub struct CompiledFunction {
    /// Its name.
    pub name: String,
    /// The CLIF that was lowered.
    pub clif: Function,
    /// The machine code, before relocation.
    pub code: Vec<u8>,
    /// What loopopt did, with [`Pipeline::LoopOpt`].
    pub report: Option<Report>,
    /// How long it took from CLIF to machine code.
    pub compile_time: Duration,
}

/// A program in machine code, ready to be called.
///
/// Its memory is given back on drop.
pub struct Compiled {
    functions: Vec<CompiledFunction>,
    pub(super) limit: Duration,
    /// How many bytes of stack a call gets.
    pub(super) stack: usize,
    pub(super) session: Arc<Mutex<Session>>,
    /// In the order of `functions`, then the shims.
    pub(super) code: Vec<CodeRange>,
    /// From the first to the last byte of code.
    pub(super) span: Range<usize>,
    /// Keeps what the shims refer to.
    _imports: Vec<Arc<Import>>,
    /// Keeps the code.
    _module: JITModule,
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled").field("functions", &self.functions).finish_non_exhaustive()
    }
}

impl Compiled {
    /// Compiles a program.
    ///
    /// Fails if the host is not x86-64 Linux, if a function uses what the oracle does not provide (data, thread-local
    /// storage, floats other than `f32` and `f64` in the signature of a host function), or if a pass fails.
    pub fn new(program: &Program, pipeline: Pipeline<'_>, settings: Settings) -> Result<Self> {
        match pipeline {
            Pipeline::None => {
                let lowering = program.target().isa(Use::Lower, settings.verifier)?;
                Self::build(program, settings, &mut |context, _| {
                    optimize(context, &*lowering)?;
                    Ok(None)
                })
            }
            Pipeline::Speed => Self::build(program, settings, &mut |context, isa| {
                optimize(context, isa)?;
                Ok(None)
            }),
            Pipeline::LoopOpt(options) => Self::with_rewrite(program, settings, &mut rewrite(options)),
        }
    }

    /// Compiles a program as with [`Pipeline::LoopOpt`], but with this in the place of loopopt.
    pub fn with_rewrite(program: &Program, settings: Settings, rewrite: &mut Rewrite<'_>) -> Result<Self> {
        Self::build(program, settings, &mut |context, isa| {
            optimize(context, isa)?;
            run_rewrite(context, isa, rewrite).map(Some)
        })
    }

    pub(super) fn build(program: &Program, settings: Settings, midend: &mut Midend<'_>) -> Result<Self> {
        let mut builder = Builder::new(program, settings)?;
        let mut context = Context::new();
        let mut functions = Vec::with_capacity(program.functions().len());
        for function in program.functions() {
            let name = Program::name_of(function);
            context.clear();
            context.func.clone_from(function);
            let compiled =
                builder.compile(&name, &mut context, midend).with_context(|| format!("cannot compile %{name}"))?;
            functions.push(compiled);
        }
        builder.finish(functions, settings.limit)
    }

    /// The functions, in the order of the program.
    pub fn functions(&self) -> &[CompiledFunction] {
        &self.functions
    }

    pub(super) fn into_functions(self) -> Vec<CompiledFunction> {
        self.functions
    }

    /// The function of this name, without `%`.
    pub fn function(&self, name: &str) -> Option<&CompiledFunction> {
        self.functions.iter().find(|function| function.name == name)
    }

    /// The address of the machine code of this function.
    pub fn address(&self, name: &str) -> Option<usize> {
        self.code[..self.functions.len()].iter().find(|code| code.name == name).map(|code| code.address)
    }
}

/// What happens to a function before it is lowered. The target is the one for optimization.
pub(super) type Midend<'a> = dyn FnMut(&mut Context, &dyn TargetIsa) -> Result<Option<Report>> + 'a;

/// Runs Cranelift's own optimizations.
pub(super) fn optimize(context: &mut Context, isa: &dyn TargetIsa) -> Result<()> {
    let name = context.func.name.to_string();
    let optimized = named(
        || format!("Cranelift panics when it optimizes {name}"),
        || context.optimize(isa, &mut ControlPlane::default()),
    );
    optimized.map_err(|error| codegen_error(&error))
}

/// Runs loopopt, or what is in its place.
pub(super) fn run_rewrite(context: &mut Context, isa: &dyn TargetIsa, rewrite: &mut Rewrite<'_>) -> Result<Report> {
    let name = context.func.name.to_string();
    let report = named(|| format!("loopopt panics on {name}"), || rewrite(context, isa));
    report.map_err(|error| codegen_error(&error)).context("loopopt fails")
}

/// Runs a step. If it panics, the panic says whose step it was, and the reason.
fn named<T>(who: impl FnOnce() -> String, step: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(step)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let reason = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
        resume_unwind(Box::new(format!("{}: {reason}", who())))
    })
}

fn module_error(error: ModuleError) -> Error {
    match error {
        ModuleError::Compilation(error) => codegen_error(&error),
        other => other.into(),
    }
}

/// A program on its way to machine code.
struct Builder {
    module: JITModule,
    optimizing: OwnedTargetIsa,
    /// The functions of the program, by name.
    defined: HashMap<String, (FuncId, Signature)>,
    /// The host functions, in the order in which they were met.
    imported: Vec<(FuncId, Arc<Import>)>,
    session: Arc<Mutex<Session>>,
    /// What is compiled so far. The addresses come at the end.
    code: Vec<(FuncId, CodeRange)>,
}

impl Builder {
    fn new(program: &Program, settings: Settings) -> Result<Self> {
        native::require()?;
        let lowering = program.target().isa(Use::Lower, settings.verifier)?;
        let mut builder = JITBuilder::with_isa(lowering, default_libcall_names());

        builder.symbols(library::symbols());
        builder.memory_provider(Box::new(CodeMemory::new(settings.placement.offset())?));
        let mut module = JITModule::new(builder);
        let mut defined = HashMap::new();
        for function in program.functions() {
            let name = Program::name_of(function);
            let id = module.declare_function(&name, Linkage::Local, &function.signature)?;
            defined.insert(name, (id, function.signature.clone()));
        }
        Ok(Self {
            module,
            optimizing: program.target().isa(Use::Optimize, settings.verifier)?,
            defined,
            imported: Vec::new(),
            session: Arc::default(),
            code: Vec::new(),
        })
    }

    fn compile(&mut self, name: &str, context: &mut Context, midend: &mut Midend<'_>) -> Result<CompiledFunction> {
        let (id, _) = self.defined[name];
        let start = Instant::now();
        let report = midend(context, &*self.optimizing)?;
        let mut compile_time = start.elapsed();
        let clif = context.func.clone();
        self.link(&mut context.func)?;
        let start = Instant::now();
        let is_changed = report.as_ref().is_some_and(|report| report.changed);
        let input = if is_changed { " as loopopt leaves it" } else { "" };
        let code = named(
            || format!("Cranelift panics when it lowers %{name}{input}"),
            || {
                context.verify_if(self.module.isa())?;
                lower(context, self.module.isa(), &mut ControlPlane::default())
            },
        );
        let code = code.map_err(|error| codegen_error(&error))?;
        define_lowered(&mut self.module, id, &context.func, &code).map_err(module_error)?;
        compile_time += start.elapsed();
        let mut range = CodeRange::new(name, &code);
        if !are_clobbered(&context.func) {
            range.calls.iter_mut().for_each(|(_, site)| site.forget_handlers());
        }
        self.code.push((id, range));
        Ok(CompiledFunction { name: name.to_owned(), clif, code: code.code_buffer().to_vec(), report, compile_time })
    }

    /// Replaces the names of the functions that this one calls by those that the module gave them.
    fn link(&mut self, function: &mut Function) -> Result<()> {
        for global in function.global_values.values() {
            ensure!(!matches!(global, GlobalValueData::Symbol { .. }), "data symbols are not supported");
        }
        let callees: Vec<FuncRef> = function.dfg.ext_funcs.keys().collect();
        for callee in callees {
            let data = &function.dfg.ext_funcs[callee];
            // Cranelift's reader fills gaps between the numbers of functions with what has no signature.
            let Some(signature) = function.dfg.signatures.get(data.signature) else { continue };
            let id = match &data.name {
                ExternalName::LibCall(_) => None,
                ExternalName::KnownSymbol(symbol) => bail!("the symbol {symbol} is not supported"),
                name => {
                    let name = name.display(Some(&function.params)).to_string();
                    Some(self.callee(name.trim_start_matches('%'), signature)?)
                }
            };
            match id {
                Some(id) => {
                    let name = function.declare_imported_user_function(UserExternalName::new(0, id.as_u32()));
                    function.dfg.ext_funcs[callee].name = ExternalName::user(name);
                }
                None => function.dfg.ext_funcs[callee].colocated = false,
            }
        }
        Ok(())
    }

    fn callee(&mut self, name: &str, signature: &Signature) -> Result<FuncId> {
        if let Some((id, own)) = self.defined.get(name) {
            ensure!(own == signature, "%{name} is called as {signature}, but is {own}");
            return Ok(*id);
        }
        let known = self.imported.iter().find(|(_, import)| import.name == name && import.signature == *signature);
        if let Some((id, _)) = known {
            return Ok(*id);
        }
        let id = self.module.declare_function(&format!("{name}{signature}"), Linkage::Local, signature)?;
        let import = Import { name: name.to_owned(), signature: signature.clone(), session: self.session.clone() };
        self.imported.push((id, Arc::new(import)));
        Ok(id)
    }

    fn finish(mut self, functions: Vec<CompiledFunction>, limit: Duration) -> Result<Compiled> {
        for (id, import) in &self.imported {
            let shim = Shim::new(&import.signature).with_context(|| format!("host function %{}", import.name))?;
            self.module
                .define_function_bytes(*id, 1, &shim.code_for(Arc::as_ptr(import)), &[])
                .map_err(module_error)?;
            self.code.push((*id, shim.range(&import.name)));
        }
        // A name that nobody knows is a panic there.
        catch_unwind(AssertUnwindSafe(|| self.module.finalize_definitions().map_err(module_error)))
            .map_err(|_| anyhow!("a library function that the program needs is missing"))??;
        let mut code = Vec::with_capacity(self.code.len());
        for (id, mut range) in self.code {
            range.address = self.module.get_finalized_function(id).addr();
            let sites = range.calls.iter().map(|(offset, site)| (range.address + offset, site.at(range.address)));
            lock(&self.session).sites.extend(sites);
            code.push(range);
        }
        let start = code.iter().map(|range| range.address).min().unwrap_or(0);
        let end = code.iter().map(|range| range.address + range.size).max().unwrap_or(0);
        Ok(Compiled {
            functions,
            limit,
            stack: native::STACK,
            session: self.session,
            code,
            span: start..end,
            _imports: self.imported.into_iter().map(|(_, import)| import).collect(),
            _module: self.module,
        })
    }
}

/// Whether the handlers of a function expect nothing in registers, so that exceptions can be thrown without restoring any. It is so for calls of `tail`
/// functions, and for no handler of others.
fn are_clobbered(func: &Function) -> bool {
    func.dfg.exception_tables.values().all(|table| func.dfg.signatures[table.signature()].call_conv == CallConv::Tail)
}
