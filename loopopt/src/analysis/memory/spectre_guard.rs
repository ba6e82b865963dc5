//! Spectre guards: what stands between a check and an access, so that the processor cannot run ahead of the check.

use crate::analysis::scev::linear_expr::constant_of;
use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode, Value};

/// A `select_spectre_guard` that gives an address, or 0, at which an access traps.
#[derive(Clone, Copy, Debug)]
pub struct Guard {
    /// What it asks.
    pub condition: Value,
    /// Whether the condition has to be true for it to give the address.
    pub holds: bool,
    /// The address.
    pub gives: Value,
}

/// Whether `func` has any. Linear in its size.
pub fn has_guards(func: &Function) -> bool {
    let mut insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    insts.any(|inst| func.dfg.insts[inst].opcode() == Opcode::SelectSpectreGuard)
}

impl Guard {
    /// The guard that `inst` is, if it is one.
    pub fn of(func: &Function, inst: Inst) -> Option<Self> {
        let InstructionData::Ternary { opcode: Opcode::SelectSpectreGuard, args: [condition, yes, no] } =
            func.dfg.insts[inst]
        else {
            return None;
        };
        let is_zero = |value| constant_of(func, value) == Some(0);
        match (is_zero(yes), is_zero(no)) {
            (true, _) => Some(Self { condition, holds: false, gives: no }),
            (_, true) => Some(Self { condition, holds: true, gives: yes }),
            _ => None,
        }
    }
}
