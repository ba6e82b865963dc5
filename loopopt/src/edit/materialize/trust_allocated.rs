//! Accesses at constant distances from memory that the embedder says is always there: [`dereferenceable_bytes`](crate::Embedder::dereferenceable_bytes).
//!
//! ```text
//! v1 = load.i64 notrap readonly can_move region0 v0+56      64 KiB start at what `region0` gives
//! v2 = iconst.i64 0x1980
//! v3 = iadd v1, v2
//! v4 = load.f32 little v3                           ──►    v4 = load.f32 notrap can_move little v3
//! ```
//!
//! A variable of a program in WebAssembly is at such a place, and may be carried in a register then, whether each iteration executes it or not.
//!
//! The load has to be `readonly`: memory that moves may be gone after a call, and its old address with it.

use crate::analysis::inst::number::constant_of;
use crate::analysis::memory::alias::memory_type;
use crate::edit::materialize::pin::let_move;
use crate::ir::{all_insts, all_mem_flags};
use crate::options::Options;
use cranelift_codegen::ir::{Function, Inst, InstructionData, MemFlagsData, Opcode, types};

/// Says of these accesses that they do not trap, and may be done wherever their address is available. Linear in the size of the function if it loads such an
/// address, and nothing if not.
pub(crate) fn trust_allocated(func: &mut Function, options: &Options) {
    if !all_mem_flags(func).any(|flags| options.dereferenceable_bytes(func, func.dfg.mem_flags[flags]) > 0) {
        return;
    }
    let insts = all_insts(func);
    let found = insts.filter(|&inst| is_allocated(func, inst, options)).collect();
    let_move(func, found);
}

/// Whether all bytes of an access are after what a load gives.
fn is_allocated(func: &Function, inst: Inst, options: &Options) -> bool {
    let Some((flags, distance)) = fixed_address(func, inst) else { return false };
    let end = memory_type(func, inst).and_then(|ty| distance.checked_add(ty.bytes().into()));
    flags.readonly() && end.is_some_and(|end| end <= options.dereferenceable_bytes(func, flags))
}

/// The flags of a load of 64 bits, and how far after what it gives an access is, if that is a constant.
fn fixed_address(func: &Function, inst: Inst) -> Option<(MemFlagsData, u64)> {
    /// Additions that are looked through.
    const MAX_ADDITIONS: usize = 3;
    let (mut address, offset) = match func.dfg.insts[inst] {
        InstructionData::Load { arg, offset, .. } | InstructionData::Store { args: [_, arg], offset, .. } => {
            (arg, offset)
        }
        _ => return None,
    };
    let mut distance = i64::from(i32::from(offset)).cast_unsigned();
    for _ in 0..=MAX_ADDITIONS {
        let def = func.dfg.value_def(address).inst()?;
        match (func.dfg.insts[def], func.dfg.inst_args(def)) {
            (InstructionData::Load { opcode: Opcode::Load, flags, .. }, _) => {
                return (func.dfg.value_type(address) == types::I64).then(|| (func.dfg.mem_flags[flags], distance));
            }
            (InstructionData::Binary { opcode: Opcode::Iadd, .. }, &[a, b]) => {
                let (rest, more) = match (constant_of(func, b), constant_of(func, a)) {
                    (Some(more), _) => (a, more),
                    (None, Some(more)) => (b, more),
                    (None, None) => return None,
                };
                (address, distance) = (rest, distance.wrapping_add(more));
            }
            _ => return None,
        }
    }
    None
}
