//! A naive compiler in miniature: what programs are built with.
//!
//! It emits what simple front ends emit: locals are frontend variables, loops test in their header, every access to an
//! array computes its address again and checks its index first, and nothing is ever reused. All optimization is left
//! to others, which is the point.

mod checks;
mod control;
mod memory;

pub(crate) use memory::{Array, Heap};

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F64, I64};
use cranelift_codegen::ir::{
    AbiParam, Block, ExtFuncData, ExternalName, FuncRef, Function, InstBuilder, Opcode, Signature, SourceLoc, Type,
    UserFuncName, Value,
};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_frontend::{FuncInstBuilder, FunctionBuilder, FunctionBuilderContext, Variable};
use target_lexicon::PointerWidth;

use checks::Failure;
use control::LoopBlocks;

use crate::Checks;

/// A local variable of the program.
#[derive(Clone, Copy)]
pub(crate) struct Local {
    variable: Variable,
    ty: Type,
}

/// What an instruction works on. Constants take the type that the other operand, or the place they go to, has.
#[derive(Clone, Copy)]
pub(crate) enum Operand {
    Local(Local),
    Value(Value),
    Int(i64),
    Float(f64),
}

macro_rules! operand_from {
    ($($ty:ty => $variant:ident),*) => {$(
        impl From<$ty> for Operand {
            fn from(it: $ty) -> Self {
                Self::$variant(it)
            }
        }
    )*};
}

operand_from!(Local => Local, Value => Value, i64 => Int, f64 => Float);

/// Emits one function.
pub(crate) struct Emitter<'a> {
    builder: FunctionBuilder<'a>,
    /// Whether the current block still needs its terminator.
    is_open: bool,
    loops: Vec<LoopBlocks>,
    /// Whether checks are emitted.
    checks: Checks,
    /// Where failed branching checks go: blocks that are still empty.
    failures: Vec<Failure>,
    /// The source location of the instruction emitted last: each has its own.
    location: u32,
}

/// Builds a function; `body` gets the parameters and has to end in a return.
pub(crate) fn function<const N: usize>(
    name: &str,
    params: [Type; N],
    result: Option<Type>,
    body: impl FnOnce(&mut Emitter<'_>, [Value; N]),
) -> Function {
    checked_function(Checks::On, name, (params, result), body)
}

/// Builds a function with checks or without them.
pub(crate) fn checked_function<const N: usize>(
    checks: Checks,
    name: &str,
    (params, result): ([Type; N], Option<Type>),
    body: impl FnOnce(&mut Emitter<'_>, [Value; N]),
) -> Function {
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params.extend(params.map(AbiParam::new));
    signature.returns.extend(result.map(AbiParam::new));
    let mut func = Function::with_name_signature(UserFuncName::testcase(name), signature);
    let mut context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut func, &mut context);
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    let values = std::array::from_fn(|index| builder.block_params(entry)[index]);
    let mut emitter = Emitter { builder, is_open: true, loops: Vec::new(), checks, failures: Vec::new(), location: 0 };
    body(&mut emitter, values);
    emitter.finish();
    func
}

impl<'a> Emitter<'a> {
    /// The next instruction, at the next source location.
    fn ins(&mut self) -> FuncInstBuilder<'_, 'a> {
        self.location += 1;
        self.builder.set_srcloc(SourceLoc::new(self.location));
        self.builder.ins()
    }

    fn finish(mut self) {
        self.emit_failures();
        self.builder.seal_all_blocks();
        self.builder.finalize(TargetFrontendConfig {
            default_call_conv: CallConv::SystemV,
            pointer_width: PointerWidth::U64,
            page_size_align_log2: 12,
        });
    }

    fn switch_to(&mut self, block: Block) {
        self.builder.switch_to_block(block);
        self.is_open = true;
    }

    /// Ends the current block with a jump, unless it has ended already.
    fn jump(&mut self, block: Block) {
        if self.is_open {
            self.ins().jump(block, &[]);
            self.is_open = false;
        }
    }

    fn branch(&mut self, condition: Value, then: Block, otherwise: Block) {
        self.ins().brif(condition, then, &[], otherwise, &[]);
        self.is_open = false;
    }
}

/// Values.
impl Emitter<'_> {
    fn type_of(&mut self, operand: Operand) -> Option<Type> {
        match operand {
            Operand::Local(local) => Some(local.ty),
            Operand::Value(value) => Some(self.builder.func.dfg.value_type(value)),
            Operand::Int(_) => None,
            Operand::Float(_) => Some(F64),
        }
    }

    fn value(&mut self, operand: Operand, ty: Type) -> Value {
        match operand {
            Operand::Local(local) => self.builder.use_var(local.variable),
            Operand::Value(value) => value,
            Operand::Int(number) => self.ins().iconst(ty, number),
            Operand::Float(number) => self.ins().f64const(number),
        }
    }

    fn pair(&mut self, x: Operand, y: Operand) -> (Value, Value) {
        let ty = self.type_of(x).or_else(|| self.type_of(y)).unwrap_or(I64);
        (self.value(x, ty), self.value(y, ty))
    }

    /// A new local variable with its first value.
    pub(crate) fn local(&mut self, ty: Type, init: impl Into<Operand>) -> Local {
        let local = Local { variable: self.builder.declare_var(ty), ty };
        self.set(local, init);
        local
    }

    /// The value that a local variable has here.
    pub(crate) fn get(&mut self, local: Local) -> Value {
        self.builder.use_var(local.variable)
    }

    /// Assigns to a local variable.
    pub(crate) fn set(&mut self, local: Local, operand: impl Into<Operand>) {
        let value = self.value(operand.into(), local.ty);
        self.builder.def_var(local.variable, value);
    }

    /// `local += operand`.
    pub(crate) fn increase(&mut self, local: Local, operand: impl Into<Operand>) {
        let sum = self.add(local, operand);
        self.set(local, sum);
    }

    /// Any instruction with two operands.
    pub(crate) fn op(&mut self, opcode: Opcode, x: impl Into<Operand>, y: impl Into<Operand>) -> Value {
        let (x, y) = self.pair(x.into(), y.into());
        let ty = self.builder.func.dfg.value_type(x);
        let (inst, dfg) = self.ins().Binary(opcode, ty, x, y);
        dfg.first_result(inst)
    }

    fn arithmetic(&mut self, opcodes: (Opcode, Opcode), x: Operand, y: Operand) -> Value {
        let is_float = self.type_of(x).or_else(|| self.type_of(y)) == Some(F64);
        self.op(if is_float { opcodes.1 } else { opcodes.0 }, x, y)
    }

    /// `x + y`, integer or float.
    pub(crate) fn add(&mut self, x: impl Into<Operand>, y: impl Into<Operand>) -> Value {
        self.arithmetic((Opcode::Iadd, Opcode::Fadd), x.into(), y.into())
    }

    /// `x - y`, integer or float.
    pub(crate) fn sub(&mut self, x: impl Into<Operand>, y: impl Into<Operand>) -> Value {
        self.arithmetic((Opcode::Isub, Opcode::Fsub), x.into(), y.into())
    }

    /// `x * y`, integer or float.
    pub(crate) fn mul(&mut self, x: impl Into<Operand>, y: impl Into<Operand>) -> Value {
        self.arithmetic((Opcode::Imul, Opcode::Fmul), x.into(), y.into())
    }

    /// Compares integers.
    pub(crate) fn icmp(&mut self, condition: IntCC, x: impl Into<Operand>, y: impl Into<Operand>) -> Value {
        let (x, y) = self.pair(x.into(), y.into());
        self.ins().icmp(condition, x, y)
    }

    /// Compares floats.
    pub(crate) fn fcmp(&mut self, condition: FloatCC, x: impl Into<Operand>, y: impl Into<Operand>) -> Value {
        let (x, y) = self.pair(x.into(), y.into());
        self.ins().fcmp(condition, x, y)
    }

    /// `x < y`, signed.
    pub(crate) fn less(&mut self, x: impl Into<Operand>, y: impl Into<Operand>) -> Value {
        self.icmp(IntCC::SignedLessThan, x, y)
    }

    /// `x == y`.
    pub(crate) fn equal(&mut self, x: impl Into<Operand>, y: impl Into<Operand>) -> Value {
        self.icmp(IntCC::Equal, x, y)
    }

    /// Zero-extends to 64 bits.
    pub(crate) fn widen(&mut self, x: Value) -> Value {
        self.ins().uextend(I64, x)
    }

    /// The low bits of a 64-bit integer.
    pub(crate) fn narrow(&mut self, ty: Type, x: impl Into<Operand>) -> Value {
        let x = self.value(x.into(), I64);
        self.ins().ireduce(ty, x)
    }

    /// A signed 64-bit integer as a float.
    pub(crate) fn int_to_float(&mut self, x: impl Into<Operand>) -> Value {
        let x = self.value(x.into(), I64);
        self.ins().fcvt_from_sint(F64, x)
    }

    /// The host function `name`, which takes so many integers of 64 bits and gives one.
    fn host(&mut self, name: &str, count: usize) -> FuncRef {
        let name = ExternalName::testcase(name);
        let mut known = self.builder.func.dfg.ext_funcs.iter();
        if let Some((callee, _)) = known.find(|(_, data)| data.name == name) {
            return callee;
        }
        let mut signature = Signature::new(CallConv::SystemV);
        signature.params.extend(std::iter::repeat_n(AbiParam::new(I64), count));
        signature.returns.push(AbiParam::new(I64));
        let signature = self.builder.import_signature(signature);
        self.builder.import_function(ExtFuncData { name, signature, colocated: false, patchable: false })
    }

    /// Calls the host function `name`, which takes and gives 64-bit integers.
    pub(crate) fn call_host(&mut self, name: &str, args: &[Value]) -> Value {
        let callee = self.host(name, args.len());
        let call = self.ins().call(callee, args);
        self.builder.inst_results(call)[0]
    }
}
