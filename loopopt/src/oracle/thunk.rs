//! Machine code between Rust and programs: trampolines into programs, shims out of them.
//!
//! Both exchange values through [`Slot`]s. A trampoline and a shim depend on a signature only, so each is compiled once in
//! a process. Trampolines are kept for good. A shim has a hole for the address of its [`Import`], and every program that
//! needs it gets a copy with the hole filled.

use super::code::CodeMemory;
use super::code_range::{CodeRange, codegen_error};
use super::host::Import;
use super::isa::{Target, Use};
use super::native::{self, Mapping, Slot};
use anyhow::{Context as _, Result, ensure};
use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{
    AbiParam, ArgumentPurpose, ExtFuncData, ExternalName, Function, InstBuilder, MemFlagsData, Signature,
    StackSlotData, StackSlotKind, TrapCode, Type, UserExternalName, UserFuncName, Value, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_codegen::{CompiledCode, Context};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

const SLOT: i32 = size_of::<Slot>() as i32;

/// Fails with the reason if values of this signature do not go through slots.
pub(super) fn require_slots(signature: &Signature) -> Result<()> {
    for param in signature.params.iter().chain(&signature.returns) {
        let ty = param.value_type;
        ensure!(
            matches!(param.purpose, ArgumentPurpose::Normal | ArgumentPurpose::VMContext),
            "a parameter for a special purpose ({param}) is not supported"
        );
        ensure!(
            ty.is_int() || matches!(ty, types::F32 | types::F64) || (ty.is_vector() && ty.bits() <= 128),
            "values of type {ty} are not supported"
        );
    }
    Ok(())
}

/// The address of a function `(callee, slots)` that calls a function of this signature.
pub(super) fn trampoline(signature: &Signature) -> Result<usize> {
    static CACHE: LazyLock<Mutex<HashMap<Signature, (Mapping, usize)>>> = LazyLock::new(Mutex::default);
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, address)) = cache.get(signature) {
        return Ok(*address);
    }
    require_slots(signature)?;
    let (code, hole) = compile(build_trampoline(signature)?)?;
    ensure!(hole.is_none(), "a trampoline has no holes");
    let page = CodeMemory::page(code.code_buffer())?;
    Ok(cache.entry(signature.clone()).or_insert(page).1)
}

fn build_trampoline(signature: &Signature) -> Result<Function> {
    let own = signature_of(&[types::I64, types::I64], None);
    build(own, |builder, params| {
        let (callee, slots) = (params[0], params[1]);
        let args: Vec<_> = offsets(&signature.params)
            .map(|(offset, ty)| builder.ins().load(ty, MemFlagsData::trusted(), slots, offset))
            .collect();
        let callee_signature = builder.import_signature(signature.clone());
        let call = builder.ins().call_indirect(callee_signature, callee, &args);
        let results = builder.inst_results(call).to_vec();
        for (result, (offset, _)) in results.into_iter().zip(offsets(&signature.returns)) {
            builder.ins().store(MemFlagsData::trusted(), result, slots, offset);
        }
        builder.ins().return_(&[]);
    })
}

/// Machine code that calls a host function.
#[derive(Debug)]
pub(super) struct Shim {
    code: CompiledCode,
    hole: usize,
}

impl Shim {
    /// The shim for host functions of this signature.
    pub(super) fn new(signature: &Signature) -> Result<Arc<Self>> {
        static CACHE: LazyLock<Mutex<HashMap<Signature, Arc<Shim>>>> = LazyLock::new(Mutex::default);
        let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shim) = cache.get(signature) {
            return Ok(shim.clone());
        }
        require_slots(signature)?;
        let (code, hole) = compile(build_shim(signature)?)?;
        let shim = Arc::new(Self { code, hole: hole.context("a shim has a hole")? });
        Ok(cache.entry(signature.clone()).or_insert(shim).clone())
    }

    /// The code for one host function.
    pub(super) fn code_for(&self, import: *const Import) -> Vec<u8> {
        let mut code = self.code.code_buffer().to_vec();
        code[self.hole..self.hole + 8].copy_from_slice(&import.addr().to_le_bytes());
        code
    }

    /// Where the code may trap, for the host function of this name.
    pub(super) fn range(&self, name: &str) -> CodeRange {
        CodeRange::new(name, &self.code)
    }
}

fn build_shim(signature: &Signature) -> Result<Function> {
    build(signature.clone(), |builder, params| {
        let slots = |builder: &mut FunctionBuilder<'_>, count: usize| {
            let size = u32::try_from(count.max(1) * size_of::<Slot>()).expect("not many parameters");
            let slot = builder.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, size, 4));
            builder.ins().stack_addr(types::I64, slot, 0)
        };
        let args = slots(builder, signature.params.len());
        let results = slots(builder, signature.returns.len());
        for (&param, (offset, _)) in params.iter().zip(offsets(&signature.params)) {
            builder.ins().store(MemFlagsData::trusted(), param, args, offset);
        }
        let import = hole(builder);
        let host = builder.ins().iconst(types::I64, native::host_entry as *const () as i64);
        let host_signature = builder.import_signature(signature_of(&[types::I64; 3], Some(types::I8)));
        let call = builder.ins().call_indirect(host_signature, host, &[import, args, results]);
        let stop = builder.inst_results(call)[0];
        builder.ins().trapnz(stop, TrapCode::STACK_OVERFLOW);
        let results: Vec<_> = offsets(&signature.returns)
            .map(|(offset, ty)| builder.ins().load(ty, MemFlagsData::trusted(), results, offset))
            .collect();
        builder.ins().return_(&results);
    })
}

/// An address that is not known yet.
fn hole(builder: &mut FunctionBuilder<'_>) -> Value {
    let name = builder.func.declare_imported_user_function(UserExternalName::new(0, 0));
    let signature = builder.import_signature(signature_of(&[], None));
    let function = builder.import_function(ExtFuncData {
        name: ExternalName::user(name),
        signature,
        colocated: false,
        patchable: false,
    });
    builder.ins().func_addr(types::I64, function)
}

fn signature_of(params: &[Type], result: Option<Type>) -> Signature {
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params.extend(params.iter().copied().map(AbiParam::new));
    signature.returns.extend(result.map(AbiParam::new));
    signature
}

/// Where the slot of each value is, and its type.
fn offsets(params: &[AbiParam]) -> impl Iterator<Item = (i32, Type)> {
    params.iter().zip(0..).map(|(param, index)| (index * SLOT, param.value_type))
}

fn build(signature: Signature, body: impl FnOnce(&mut FunctionBuilder<'_>, &[Value])) -> Result<Function> {
    let mut function = Function::with_name_signature(UserFuncName::default(), signature);
    let mut context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut function, &mut context);
    let block = builder.create_block();
    builder.append_block_params_for_function_params(block);
    builder.switch_to_block(block);
    builder.seal_block(block);
    let params = builder.block_params(block).to_vec();
    body(&mut builder, &params);
    builder.finalize(Target::host().isa(Use::Lower, true)?.frontend_config());
    Ok(function)
}

/// The machine code, and where in it the address of a hole goes.
fn compile(function: Function) -> Result<(CompiledCode, Option<usize>)> {
    let isa = Target::host().isa(Use::Lower, true)?;
    let signature = function.signature.clone();
    let mut context = Context::for_function(function);
    context
        .compile(&*isa, &mut ControlPlane::default())
        .map_err(|error| codegen_error(&error.inner))
        .with_context(|| format!("calls with the signature {signature} are not supported"))?;
    let code = context.take_compiled_code().expect("the function was compiled just now");
    let mut hole = None;
    for reloc in code.buffer.relocs() {
        ensure!(reloc.kind == Reloc::Abs8 && reloc.addend == 0 && hole.is_none(), "unexpected relocation {reloc:?}");
        hole = Some(usize::try_from(reloc.offset)?);
    }
    Ok((code, hole))
}
