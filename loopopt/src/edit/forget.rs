//! Forget instructions that are not in the layout.
//!
//! An instruction that was replaced stays in the data-flow graph, and can share the argument lists of its branch with the
//! instruction that replaced it: Cranelift's egraph pass makes a `jump` of a `brif` like that. Once the list of the one
//! grows or shrinks, that of the other is gone, and `resolve_all_aliases`, which looks at all instructions, panics.

use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode};

/// Makes each instruction that is not in the layout a `nop`.
pub(crate) fn forget_removed_insts(func: &mut Function) {
    for index in 0..func.dfg.num_insts() {
        let inst = Inst::from_u32(u32::try_from(index).expect("instructions are numbered with 32 bits"));
        if func.layout.inst_block(inst).is_none() {
            func.dfg.insts[inst] = InstructionData::NullAry { opcode: Opcode::Nop };
        }
    }
}
