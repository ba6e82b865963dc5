//! Lengths that never shrink, such as that of a memory, may be loaded wherever their addresses are known: the embedder says so
//! ([`never_shrinks`](crate::Embedder::never_shrinks)).
//!
//! ```text
//! v1 = load.i64 notrap region0 v0+8        ──►    v1 = load.i64 notrap can_move region0 v0+8
//! ```
//!
//! This is said before all passes, of the addresses that the program itself has. From then on it is known of these loads as of others that may move: one at an
//! address that is chosen, or that a pass makes another one, loses the permission ([`pin`](crate::edit::materialize::pin)). Of a constant nobody says
//! that it is an address: it may be what a branch has found one to be equal to.

use crate::analysis::inst::number::constant_of;
use crate::edit::materialize::pin::let_move;
use crate::ir::{all_insts, all_mem_flags};
use crate::options::Options;
use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode};

/// Lets these loads move. Linear in the size of the function if it may load a length, and nothing if not.
pub(crate) fn trust_lengths(func: &mut Function, options: &Options) {
    if !all_mem_flags(func).any(|flags| options.never_shrinks(func, func.dfg.mem_flags[flags])) {
        return;
    }
    let insts = all_insts(func);
    let found = insts.filter(|&inst| is_length(func, inst, options)).collect();
    let_move(func, found);
}

/// Whether `inst` loads a length from an address that is no constant.
fn is_length(func: &Function, inst: Inst, options: &Options) -> bool {
    let InstructionData::Load { opcode: Opcode::Load, arg, flags, .. } = func.dfg.insts[inst] else { return false };
    options.never_shrinks(func, func.dfg.mem_flags[flags]) && constant_of(func, arg).is_none()
}
