//! Where plain jumps lead.

use crate::analysis::inst::effects::is_constant;
use cranelift_codegen::ir::{Block, Function, InstructionData, Opcode};

/// The destination of the plain `jump` that ends `block`, if that is what ends it.
pub fn jump_target(func: &Function, block: Block) -> Option<Block> {
    let branch = func.layout.last_inst(block)?;
    match &func.dfg.insts[branch] {
        InstructionData::Jump { destination, .. } => Some(destination.block(&func.dfg.value_lists)),
        _ => None,
    }
}

/// The destination of `block` if it does nothing but jump there. Constants do not count.
pub fn only_jumps_to(func: &Function, block: Block) -> Option<Block> {
    let target = jump_target(func, block)?;
    let last = func.layout.last_inst(block);
    let is_nothing = |inst| Some(inst) == last || is_constant(func, inst);
    func.layout.block_insts(block).all(is_nothing).then_some(target)
}

/// Whether `block` ends in an unconditional trap.
pub fn ends_in_trap(func: &Function, block: Block) -> bool {
    func.layout.last_inst(block).is_some_and(|last| func.dfg.insts[last].opcode() == Opcode::Trap)
}

/// Jumps in a row that are followed to see whether a path ends in a trap. 4: funnels of canonical form, one in another.
const MAX_JUMPS: usize = 4;

/// Whether from `block` nothing is reached but a trap, or code that is cold: what a check leaves a loop for.
pub fn leads_to_failure(func: &Function, mut block: Block) -> bool {
    for _ in 0..MAX_JUMPS {
        if ends_in_trap(func, block) || func.layout.is_cold(block) {
            return true;
        }
        let Some(next) = jump_target(func, block) else { return false };
        block = next;
    }
    false
}
