//! Assertions of loopopt's claims in a form that Wasmtime understands.

use cranelift_codegen::ir::{Function, InstructionData, TrapCode};
use cranelift_codegen::{CodegenError, CodegenResult};
use loopopt::claim::asserts_by_code;

/// The number of the trap as which a claim that fails shows: `wasmtime::Trap::AtomicWaitNonSharedMemory`.
pub const CLAIM_TRAP: u8 = 12;
/// What Wasmtime adds to the number of a trap.
const TRAP_OFFSET: u8 = 3;

/// Gives all assertions of claims a trap code that Wasmtime knows: [`CLAIM_TRAP`], which only `memory.atomic.wait` traps with beside them, and not
/// in generated code. Done by [`Settings`](crate::Settings) wherever `Options::assert_claims` is on.
///
/// # Errors
///
/// If the function has too many different memory flags.
pub fn translate(func: &mut Function) -> CodegenResult<()> {
    const CODE: TrapCode = TrapCode::unwrap_user(CLAIM_TRAP + TRAP_OFFSET);
    let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    let claims: Vec<_> = insts.filter(|&inst| asserts_by_code(func, inst).is_some()).collect();
    for inst in claims {
        match func.dfg.insts[inst] {
            InstructionData::CondTrap { opcode, arg, .. } => {
                func.dfg.insts[inst] = InstructionData::CondTrap { opcode, arg, code: CODE };
            }
            InstructionData::Load { opcode, flags, offset, arg } => {
                let flags = func.dfg.mem_flags[flags].with_trap_code(Some(CODE));
                let flags = func.dfg.mem_flags.insert(flags).map_err(|_| CodegenError::ImplLimitExceeded)?;
                func.dfg.insts[inst] = InstructionData::Load { opcode, flags, offset, arg };
            }
            _ => {}
        }
    }
    Ok(())
}
