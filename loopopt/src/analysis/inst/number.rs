//! Numbers of so many bits.

use cranelift_codegen::ir::{Function, InstructionData, Opcode, Value};

/// The constant that `value` is, if it is one.
pub fn constant_of(func: &Function, value: Value) -> Option<u64> {
    match func.dfg.insts[func.dfg.value_def(value).inst()?] {
        InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => {
            Some(imm.bits() as u64 & mask(func.dfg.value_type(value).bits()))
        }
        _ => None,
    }
}

/// The largest unsigned number of so many bits.
pub fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// A number of so many bits with its sign.
pub fn signed(number: u64, bits: u32) -> i64 {
    let unused = 64 - bits.min(64);
    (number << unused).cast_signed() >> unused
}
