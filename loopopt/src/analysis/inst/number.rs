//! Numbers of so many bits.

use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode, Value};

/// The constant that `value` is, if it is one.
pub fn constant_of(func: &Function, value: Value) -> Option<u64> {
    match func.dfg.insts[func.dfg.value_def(value).inst()?] {
        InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => {
            Some(imm.bits() as u64 & mask(func.dfg.value_type(value).bits()))
        }
        _ => None,
    }
}

/// What `inst` adds a constant to, and the constant, if it is such a sum. A constant that is subtracted is added with the other sign, modulo the type's numbers.
pub fn added_constant(func: &Function, inst: Inst) -> Option<(Value, u64)> {
    let opcode = func.dfg.insts[inst].opcode();
    if !matches!(opcode, Opcode::Iadd | Opcode::Isub) {
        return None;
    }
    let [a, b] = *func.dfg.inst_args(inst) else { return None };
    match (constant_of(func, a), constant_of(func, b)) {
        (None, Some(number)) if opcode == Opcode::Iadd => Some((a, number)),
        (None, Some(number)) => Some((a, number.wrapping_neg() & mask(func.dfg.value_type(b).bits()))),
        (Some(number), None) if opcode == Opcode::Iadd => Some((b, number)),
        _ => None,
    }
}

/// The largest unsigned number of so many bits.
pub fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// The least number of so many bits, up to 64, as its bits.
pub fn least_number(bits: u32, is_signed: bool) -> u64 {
    if is_signed { 1 << (bits - 1) } else { 0 }
}

/// A number of so many bits with its sign.
pub fn signed(number: u64, bits: u32) -> i64 {
    let unused = 64 - bits.min(64);
    (number << unused).cast_signed() >> unused
}
