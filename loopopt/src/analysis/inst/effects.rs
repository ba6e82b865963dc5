//! What an instruction does besides computing its results.
//!
//! `Opcode::can_trap` is false for loads, stores and calls: whether those trap is in their memory flags, or cannot
//! be known. This module asks both, so that passes need not.

use crate::analysis::inst::known_bits::KnownBits;
use crate::claim::asserted;
use crate::fault::fault;
use cranelift_codegen::ir::{Block, Function, Inst, Opcode, Value};
use std::sync::LazyLock;

/// The effects of one instruction. Each flag may be set although the effect does not happen, never the other way round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// It may trap, and a trap observes all memory.
    pub traps: bool,
    /// It reads memory, or a register that others may write.
    pub reads: bool,
    /// It writes memory, or a register that others may read.
    pub writes: bool,
    /// Nothing that touches memory may pass it in either direction: calls, atomics, fences, `sequence_point`.
    pub fences: bool,
    /// It may not return: calls.
    pub diverges: bool,
    /// It ends its block.
    pub terminates: bool,
    /// It asserts a [claim](crate::claim), or loads for one. Nobody sees it, it stays in its block, and it is no check of the
    /// program. Such a load stays where it is among the stores.
    pub asserts: bool,
}

impl Effects {
    /// The effects of `inst`.
    pub fn of(func: &Function, inst: Inst) -> Self {
        let data = &func.dfg.insts[inst];
        let kind = &KINDS[data.opcode() as usize];
        if kind.is_pure {
            return Self::default();
        }
        let Kind { mut effects, accesses_memory, divides, .. } = *kind;
        if (effects.traps || accesses_memory) && asserted(func, inst).is_some() {
            return Self { asserts: true, ..Self::default() };
        }
        if accesses_memory {
            // An access without flags is one that nothing is known about.
            let flags = data.memflags().map(|flags| func.dfg.mem_flags[flags]);
            effects.traps |= flags.is_none_or(|flags| flags.trap_code().is_some());
        } else if divides {
            effects.traps = !divides_well(func, inst);
        }
        effects
    }

    /// Whether instructions of this opcode may have to do with memory, whatever their flags are.
    pub fn may_touch_memory(opcode: Opcode) -> bool {
        KINDS[opcode as usize].may_touch_memory
    }

    /// Nobody can tell whether it runs, nor when: it only computes its results from its operands.
    pub fn is_pure(self) -> bool {
        self == Self::default()
    }
}

/// What is known of an opcode, whatever its operands and flags are.
#[derive(Clone, Copy, Debug, Default)]
struct Kind {
    effects: Effects,
    /// Whether it loads, stores, calls, or has an effect of its own.
    may_touch_memory: bool,
    /// Whether its flags say if it traps.
    accesses_memory: bool,
    /// Whether its divisor says if it traps.
    divides: bool,
    /// Whether it has no effects, whatever its operands and flags are.
    is_pure: bool,
}

impl Kind {
    fn of(opcode: Opcode) -> Self {
        let is_call = opcode.is_call();
        let effects = Effects {
            traps: opcode.can_trap() || is_call,
            reads: opcode.can_load() || is_call || opcode == Opcode::GetPinnedReg,
            writes: opcode.can_store() || is_call || opcode == Opcode::SetPinnedReg,
            fences: is_call || (opcode.other_side_effects() && !accesses_pinned_register(opcode)),
            diverges: is_call,
            terminates: opcode.is_terminator(),
            asserts: false,
        };
        let accesses_memory = opcode.can_load() || opcode.can_store();
        let divides = matches!(opcode, Opcode::Udiv | Opcode::Urem | Opcode::Sdiv | Opcode::Srem);
        Self {
            effects,
            may_touch_memory: accesses_memory || is_call || opcode.other_side_effects(),
            accesses_memory,
            divides,
            is_pure: effects.is_pure() && !accesses_memory && !divides,
        }
    }
}

/// The kinds of all opcodes, by their numbers: passes ask for the effects of each instruction again and again.
static KINDS: LazyLock<[Kind; 256]> = LazyLock::new(|| {
    let mut kinds = [Kind::default(); 256];
    for &opcode in Opcode::all() {
        kinds[opcode as usize] = Kind::of(opcode);
    }
    kinds
});

/// Whether `inst` is a division that does not trap: not by 0, and not the smallest number by -1, as the bits of its operands tell.
fn divides_well(func: &Function, inst: Inst) -> bool {
    let [dividend, divisor] = *func.dfg.inst_args(inst) else { return false };
    let bits = func.dfg.value_type(divisor).bits();
    let Some(by) = KnownBits::of(func, divisor) else { return false };
    if fault!(DivisorsUnknown) {
        return true;
    }
    let is_signed = matches!(func.dfg.insts[inst].opcode(), Opcode::Sdiv | Opcode::Srem);
    by.is_never_zero()
        && (!is_signed
            || by.is_never_minus_one(bits)
            || KnownBits::of(func, dividend).is_some_and(|dividend| dividend.is_never_smallest(bits)))
}

/// Whether `inst` is a marker that stands for one place in the program.
pub fn is_marker(func: &Function, inst: Inst) -> bool {
    matches!(func.dfg.insts[inst].opcode(), Opcode::SequencePoint | Opcode::Debugtrap)
}

/// Whether `inst` is a constant, which costs next to nothing wherever it is.
pub fn is_constant(func: &Function, inst: Inst) -> bool {
    use Opcode::{F16const, F32const, F64const, F128const, Iconst, Vconst};
    matches!(func.dfg.insts[inst].opcode(), Iconst | F16const | F32const | F64const | F128const | Vconst)
}

/// Whether `inst` is a constant that the egraph pass would rematerialize. Vector constants are loaded from memory and stay where
/// they are.
pub(crate) fn is_rematerialized(func: &Function, inst: Inst) -> bool {
    matches!(func.dfg.insts[inst].opcode(), Opcode::Iconst | Opcode::F32const | Opcode::F64const)
}

/// Whether `value` is what [`is_constant`] says of the instruction that makes it.
pub fn is_constant_value(func: &Function, value: Value) -> bool {
    func.dfg.value_def(value).inst().is_some_and(|inst| is_constant(func, inst))
}

/// Whether `inst` compares two numbers.
pub(crate) fn is_comparison(func: &Function, inst: Inst) -> bool {
    matches!(func.dfg.insts[inst].opcode(), Opcode::Icmp | Opcode::Fcmp)
}

/// Whether `inst` counts for the size of code: a constant is an operand mostly, and most jumps are removed by the order of blocks.
pub fn counts_as_code(func: &Function, inst: Inst) -> bool {
    !is_constant(func, inst) && func.dfg.insts[inst].opcode() != Opcode::Jump
}

/// Whether something in `block` calls.
pub(crate) fn calls(func: &Function, block: Block) -> bool {
    func.layout.block_insts(block).any(|inst| func.dfg.insts[inst].opcode().is_call())
}

fn accesses_pinned_register(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::GetPinnedReg | Opcode::SetPinnedReg)
}
