//! A program while it is made smaller, and how large it is.

use anyhow::Result;
use cranelift_codegen::cursor::{Cursor as _, FuncCursor};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{
    Block, BlockArg, ConstantData, ExternalName, Function, Inst, InstBuilder as _, InstructionData, MemFlagsData,
    Opcode, SourceLoc, Type, UserFuncName, Value, ValueDef, types,
};
use loopopt::oracle::{Arg, Case, Program};
use std::collections::HashSet;

/// A change to a draft. `None` if there is nothing any more that it could change.
///
/// Edits are made for one draft and tried on those that come after it: blocks, instructions and values keep their names.
pub(super) type Edit = Box<dyn Fn(&mut Draft) -> Option<()>>;

/// A program and its calls.
#[derive(Clone)]
pub(super) struct Draft {
    pub(super) functions: Vec<Function>,
    pub(super) cases: Vec<Case>,
    /// What the functions come from, which knows the target.
    original: Program,
}

/// What the structure takes, then what numbers and flags take. An edit that makes neither smaller is no step forward.
pub(super) type Size = (usize, usize);

impl Draft {
    pub(super) fn new(original: &Program, cases: &[Case]) -> Self {
        let mut functions = original.functions().to_vec();
        for func in &mut functions {
            func.dfg.resolve_all_aliases();
        }
        Self { functions, cases: cases.to_vec(), original: original.clone() }
    }

    /// The functions as a program.
    pub(super) fn program(&self) -> Result<Program> {
        self.original.with_functions(self.functions.clone())
    }

    /// The lines of a file that ask for its target.
    pub(super) fn target_lines(&self) -> &str {
        self.original.target_lines()
    }

    pub(super) fn function(&mut self, name: &UserFuncName) -> Option<&mut Function> {
        self.functions.iter_mut().find(|func| func.name == *name)
    }

    /// Whether a function of the program refers to this one.
    pub(super) fn is_called(&self, name: &UserFuncName) -> bool {
        let UserFuncName::Testcase(name) = name else { return true };
        self.functions.iter().flat_map(|func| func.dfg.ext_funcs.values()).any(|callee| match &callee.name {
            ExternalName::TestCase(callee) => callee == name,
            _ => false,
        })
    }

    pub(super) fn size(&self) -> Size {
        let (mut structure, mut detail) = (0, 0);
        for func in &self.functions {
            structure += 10 + 2 * (func.signature.params.len() + func.signature.returns.len());
            for block in func.layout.blocks() {
                structure += 3 + 3 * func.dfg.num_block_params(block);
                for inst in func.layout.block_insts(block) {
                    structure += inst_size(func, inst);
                    detail += inst_detail(func, inst);
                }
            }
        }
        for case in &self.cases {
            structure += 1;
            detail += case.call.args.iter().map(arg_detail).sum::<usize>();
        }
        (structure, detail)
    }
}

fn inst_size(func: &Function, inst: Inst) -> usize {
    let destinations = destinations(func, inst);
    let passed: usize = destinations.iter().map(|(_, args)| args.len()).sum();
    let is_more_than_constant = !is_constant(func, inst);
    2 + usize::from(is_more_than_constant) + func.dfg.inst_args(inst).len() + destinations.len() + passed
}

fn inst_detail(func: &Function, inst: Inst) -> usize {
    let data = &func.dfg.insts[inst];
    let constant = match *data {
        InstructionData::UnaryImm { imm, .. } => bits(signed(imm.bits(), func.dfg.ctrl_typevar(inst).bits())),
        InstructionData::UnaryIeee32 { imm, .. } => float_detail(imm.as_f32().into()),
        InstructionData::UnaryIeee64 { imm, .. } => float_detail(imm.as_f64()),
        _ => 0,
    };
    let flags = data.memflags_data(&func.dfg).is_some_and(|flags| flags != MemFlagsData::new());
    let srcloc = func.srcloc(inst) != SourceLoc::default();
    constant + bits(data.load_store_offset().unwrap_or(0).into()) + usize::from(flags) + usize::from(srcloc)
}

fn arg_detail(arg: &Arg) -> usize {
    match arg {
        Arg::Memory(offset) => 1 + bits(i64::try_from(*offset).unwrap_or(i64::MAX)),
        Arg::Value(DataValue::F32(value)) => float_detail(value.as_f32().into()),
        Arg::Value(DataValue::F64(value)) => float_detail(value.as_f64()),
        Arg::Value(value) => integer(value).map_or(0, bits),
    }
}

/// The number, if it is one of at most 64 bits.
pub(super) fn integer(value: &DataValue) -> Option<i64> {
    Some(match *value {
        DataValue::I8(value) => value.into(),
        DataValue::I16(value) => value.into(),
        DataValue::I32(value) => value.into(),
        DataValue::I64(value) => value,
        _ => return None,
    })
}

/// How far a number is from zero.
fn bits(value: i64) -> usize {
    let magnitude = u64::BITS - value.unsigned_abs().leading_zeros();
    magnitude as usize + usize::from(value < 0)
}

fn float_detail(value: f64) -> usize {
    if value.to_bits() == 0 { 0 } else { 1 + usize::from(value != 1.0) }
}

/// The number that the lowest bits are.
pub(super) fn signed(value: i64, width: u32) -> i64 {
    let unused = 64 - width.clamp(1, 64);
    (value << unused) >> unused
}

pub(super) fn is_constant(func: &Function, inst: Inst) -> bool {
    matches!(func.dfg.insts[inst].opcode(), Opcode::Iconst | Opcode::F32const | Opcode::F64const | Opcode::Vconst)
}

/// An edit of one function.
pub(super) fn in_function(func: &Function, edit: impl Fn(&mut Function) -> Option<()> + 'static) -> Edit {
    let name = func.name.clone();
    Box::new(move |draft| edit(draft.function(&name)?))
}

/// All instructions, in the order of the layout.
pub(super) fn insts(func: &Function) -> Vec<Inst> {
    func.layout.blocks().flat_map(|block| func.layout.block_insts(block)).collect()
}

/// Where a branch can go, and what it passes.
pub(super) fn destinations(func: &Function, inst: Inst) -> Vec<(Block, Vec<BlockArg>)> {
    let dfg = &func.dfg;
    let calls = dfg.insts[inst].branch_destination(&dfg.jump_tables, &dfg.exception_tables).iter();
    calls.map(|call| (call.block(&dfg.value_lists), call.args(&dfg.value_lists).collect())).collect()
}

/// Makes the destination of this number another one.
pub(super) fn set_destination(func: &mut Function, inst: Inst, number: usize, block: Block, args: &[BlockArg]) {
    let dfg = &mut func.dfg;
    let call = dfg.block_call(block, args);
    dfg.insts[inst].branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables)[number] = call;
}

/// The values that something uses.
pub(super) fn used(func: &Function) -> HashSet<Value> {
    insts(func).into_iter().flat_map(|inst| func.dfg.inst_values(inst)).collect()
}

pub(super) fn replace_uses(func: &mut Function, old: Value, new: Value) {
    for inst in insts(func) {
        func.dfg.map_inst_values(inst, |value| if value == old { new } else { value });
    }
}

/// The block and the position of a block parameter that is still there.
pub(super) fn param_position(func: &Function, param: Value) -> Option<(Block, usize)> {
    let ValueDef::Param(block, index) = func.dfg.value_def(param) else { return None };
    let is_there = func.layout.is_block_inserted(block) && func.dfg.block_params(block).get(index) == Some(&param);
    is_there.then_some((block, index))
}

/// A zero or one before an instruction, if the type has constants.
pub(super) fn constant_before(func: &mut Function, inst: Inst, ty: Type, one: bool) -> Option<Value> {
    let mut pos = FuncCursor::new(func).at_inst(inst);
    Some(match ty {
        types::I128 => {
            let low = pos.ins().iconst(types::I64, i64::from(one));
            pos.ins().uextend(types::I128, low)
        }
        types::F32 => pos.ins().f32const(if one { 1.0 } else { 0.0 }),
        types::F64 => pos.ins().f64const(if one { 1.0 } else { 0.0 }),
        ty if ty.is_int() => pos.ins().iconst(ty, i64::from(one)),
        ty if ty.is_vector() && !one => {
            let zero = pos.func.dfg.constants.insert(ConstantData::from(vec![0; ty.bytes() as usize]));
            pos.ins().vconst(ty, zero)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_smaller_than_one_and_than_minus_one() {
        assert!(bits(0) < bits(1) && bits(1) < bits(-1) && bits(-1) < bits(5) && bits(i64::MAX) < bits(i64::MIN));
        assert!(float_detail(0.0) < float_detail(1.0) && float_detail(1.0) < float_detail(f64::NAN));
        assert!(float_detail(0.0) < float_detail(-0.0));
    }

    #[test]
    fn narrow_numbers_have_a_sign() {
        assert_eq!((signed(0xFF, 8), signed(0x7F, 8), signed(-1, 64)), (-1, 127, -1));
    }
}
