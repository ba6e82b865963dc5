//! Keep together what lowering only knows together.
//!
//! x86-64 has no instruction that narrows 64-bit lanes. Cranelift lowers `snarrow` and `uunarrow` of them only if it sees the
//! conversion from floats that makes the first operand and the `vconst` that is the second one, and fails if one of them is
//! the parameter of a block. Passes make parameters of values that leave a loop or come from two copies of one. What is
//! in one block is copied and stays together.

use crate::edit::inst::clone::repeat_before;
use crate::edit::inst::rename::rename_uses;
use cranelift_codegen::ir::{Function, Inst, Opcode, types};

/// Whether `inst` is lowered only with what makes its operands.
pub(crate) fn needs_neighbours(func: &Function, inst: Inst) -> bool {
    matches!(func.dfg.insts[inst].opcode(), Opcode::Snarrow | Opcode::Unarrow | Opcode::Uunarrow)
        && func.dfg.inst_args(inst).iter().any(|&arg| func.dfg.value_type(arg) == types::I64X2)
}

/// Recomputes the operands of such instructions right before them.
pub(crate) fn keep_neighbours(func: &mut Function) {
    // Without a constant of the function, none of them can be lowered anyway.
    if func.dfg.constants.iter().next().is_none() {
        return;
    }
    let mut blocks = func.layout.entry_block();
    while let Some(block) = blocks {
        let mut insts = func.layout.first_inst(block);
        while let Some(inst) = insts {
            if needs_neighbours(func, inst) {
                repeat_operands(func, inst);
            }
            insts = func.layout.next_inst(inst);
        }
        blocks = func.layout.next_block(block);
    }
}

fn repeat_operands(func: &mut Function, inst: Inst) {
    for operand in func.dfg.inst_args(inst).to_vec() {
        let def = func.dfg.value_def(operand).inst();
        let def = def.filter(|&def| func.layout.inst_block(def) != func.layout.inst_block(inst));
        if let Some(def) = def.filter(|&def| is_repeatable(func, def)) {
            let repeated = repeat_before(func, def, inst);
            rename_uses(func, inst, |value| if value == operand { repeated } else { value });
        }
    }
}

/// Whether it may be the operand of such an instruction.
pub(crate) fn is_repeatable(func: &Function, inst: Inst) -> bool {
    use Opcode::{FcvtToSintSat, FcvtToUintSat, Vconst, X86Cvtt2dq};
    matches!(func.dfg.insts[inst].opcode(), FcvtToSintSat | FcvtToUintSat | Vconst | X86Cvtt2dq)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::context;

    #[test]
    fn operands_are_in_the_block_of_what_needs_them() {
        let mut ctx = context(
            "function %f(f64x2, i32) -> i32x4 {
                const0 = 0x00000000000000000000000000000000
            block0(v0: f64x2, v1: i32):
                v2 = vconst.i64x2 const0
                v3 = fcvt_to_sint_sat.i64x2 v0
                brif v1, block1, block2
            block1:
                v4 = snarrow v3, v2
                return v4
            block2:
                v5 = snarrow v3, v2
                return v5
            }",
        );
        keep_neighbours(&mut ctx.func);
        let func = &ctx.func;
        for block in func.layout.blocks().skip(1) {
            let opcodes: Vec<_> = func.layout.block_insts(block).map(|inst| func.dfg.insts[inst].opcode()).collect();
            assert_eq!(opcodes, [Opcode::FcvtToSintSat, Opcode::Vconst, Opcode::Snarrow, Opcode::Return]);
        }
        let before = func.display().to_string();
        keep_neighbours(&mut ctx.func);
        assert_eq!(ctx.func.display().to_string(), before);
    }
}
