//! Loads that extend what they load.

use crate::fault::fault;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Function, Inst, InstBuilder, InstructionData, Opcode, Type, Value, types};

/// What `inst` extends, to 64 bits at most, and whether it is a sign extension.
pub(crate) fn extended_by(func: &Function, inst: Inst) -> Option<(Value, bool)> {
    let InstructionData::Unary { opcode, arg } = func.dfg.insts[inst] else { return None };
    let signed = match opcode {
        Opcode::Uextend => false,
        Opcode::Sextend => true,
        _ => return None,
    };
    (func.dfg.value_type(func.dfg.first_result(inst)).bits() <= 64).then_some((arg, signed))
}

/// The opcode of the load that gives what `load` does, extended, if there is one.
pub(crate) fn extending(func: &Function, load: Inst, signed: bool) -> Option<Opcode> {
    let InstructionData::Load { opcode, .. } = func.dfg.insts[load] else { return None };
    let signed = signed && !fault!(LoadedWithoutSign);
    Some(match (opcode, func.dfg.value_type(func.dfg.first_result(load)), signed) {
        (Opcode::Load, types::I32, false) => Opcode::Uload32,
        (Opcode::Load, types::I32, true) => Opcode::Sload32,
        (Opcode::Load, types::I16, false) => Opcode::Uload16,
        (Opcode::Load, types::I16, true) => Opcode::Sload16,
        (Opcode::Load, types::I8, false) => Opcode::Uload8,
        (Opcode::Load, types::I8, true) => Opcode::Sload8,
        // A zero-extended number is the same by either extension.
        (Opcode::Uload8 | Opcode::Uload16, ..) | (Opcode::Sload8 | Opcode::Sload16, _, true) => opcode,
        _ => return None,
    })
}

/// Lets `load` give a number of type `ty`, by the opcode that [`extending`] has said. What it gave is the low part of that. Gives all of it, which is
/// `wide` if that is a value: one without a definition, used after the load only.
pub(crate) fn extend_load(func: &mut Function, load: Inst, (opcode, ty): (Opcode, Type), wide: Option<Value>) -> Value {
    let narrow = func.dfg.first_result(load);
    let narrow_ty = func.dfg.value_type(narrow);
    func.dfg.detach_inst_results(load);
    if let InstructionData::Load { opcode: old, .. } = &mut func.dfg.insts[load] {
        *old = opcode;
    }
    func.dfg.make_inst_results_reusing(load, ty, std::iter::once(wide));
    let all = func.dfg.first_result(load);
    let next = func.layout.next_inst(load).expect("a load ends no block");
    let srcloc = func.srcloc(load);
    let mut cursor = FuncCursor::new(func).at_inst(next).with_srcloc(srcloc);
    cursor.ins().with_result(narrow).ireduce(narrow_ty, all);
    all
}
