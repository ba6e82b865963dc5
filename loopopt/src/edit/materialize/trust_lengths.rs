//! Lengths that never shrink, such as that of a memory, may be loaded wherever their addresses are known: the embedder says so
//! ([`never_shrinks`](crate::Embedder::never_shrinks)).
//!
//! ```text
//! v1 = load.i64 notrap region0 v0+8        ──►    v1 = load.i64 notrap can_move region0 v0+8
//! ```
//!
//! Said before all passes, of the addresses that the program itself has. From then on it is known of these loads as of others that may move: one at an
//! address that is chosen, or that a pass makes another one, loses the permission ([`pin`](crate::edit::materialize::pin)). Of a constant nobody says
//! that it is an address: it may be what a branch has found one to be equal to.

use crate::analysis::memory::effects::all_mem_flags;
use crate::analysis::scev::linear_expr::constant_of;
use crate::options::Options;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::ir::{Function, Inst, InstructionData, MemFlags, Opcode};

/// Lets these loads move. Linear in the size of the function if it may load a length, and nothing if not.
pub(crate) fn trust_lengths(func: &mut Function, options: &Options) {
    if !all_mem_flags(func).any(|flags| options.never_shrinks(func, func.dfg.mem_flags[flags])) {
        return;
    }
    let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    let found: Vec<_> = insts.filter_map(|inst| Some((inst, length_flags(func, inst, options)?))).collect();
    let mut trusted = FxHashMap::<MemFlags, Option<MemFlags>>::default();
    for (inst, flags) in found {
        let new = *trusted.entry(flags).or_insert_with(|| {
            let new = func.dfg.mem_flags[flags].with_can_move();
            func.dfg.mem_flags.insert(new).ok()
        });
        if let Some(new) = new {
            *func.dfg.insts[inst].memflags_mut().expect("a load has flags") = new;
        }
    }
}

/// The flags of `inst` if it loads a length from an address that is no constant.
fn length_flags(func: &Function, inst: Inst, options: &Options) -> Option<MemFlags> {
    let InstructionData::Load { opcode: Opcode::Load, arg, flags, .. } = func.dfg.insts[inst] else { return None };
    (options.never_shrinks(func, func.dfg.mem_flags[flags]) && constant_of(func, arg).is_none()).then_some(flags)
}
