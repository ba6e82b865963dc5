//! The effects of instructions against a table, by opcode.
//!
//! The table is written from what the instructions do, not from the properties that Cranelift has for them. It is
//! compared in one direction: an effect of the table has to be among those that the passes know of. Beyond it, an
//! instruction that the table calls pure has to be pure, or passes would do less than they could. Whether a division by something
//! that is no constant may trap follows from how that is computed: the bodies that run programs look at it.

use super::generate::TestCase;
use crate::analysis::inst::effects::Effects;
use crate::ir::all_insts;
use anyhow::{Result, ensure};
use cranelift_codegen::ir::immediates::Imm64;
use cranelift_codegen::ir::{Function, Inst, InstructionData, MemFlagsData, Opcode};

/// Compares the effects of all instructions with the table.
pub(super) fn check(case: &TestCase) -> Result<()> {
    for func in case.program.functions() {
        for inst in all_insts(func) {
            let Some(expected) = table(func, inst) else { continue };
            let found = Effects::of(func, inst);
            let text = func.dfg.display_inst(inst);
            ensure!(covers(found, expected), "{text}: {found:?} does not cover {expected:?}");
            ensure!(!expected.is_pure() || found.is_pure(), "{text} is pure, but has {found:?}");
        }
    }
    Ok(())
}

fn covers(found: Effects, expected: Effects) -> bool {
    let pairs = [
        (found.traps, expected.traps),
        (found.reads, expected.reads),
        (found.writes, expected.writes),
        (found.fences, expected.fences),
        (found.diverges, expected.diverges),
        (found.terminates, expected.terminates),
    ];
    pairs.into_iter().all(|(found, expected)| found || !expected)
}

/// What `inst` does, if its opcode and constants say.
fn table(func: &Function, inst: Inst) -> Option<Effects> {
    let data = &func.dfg.insts[inst];
    let flags = data.memflags().map_or(MemFlagsData::new(), |flags| func.dfg.mem_flags[flags]);
    let may_fault = flags.trap_code().is_some();
    let none = Effects::default();
    Some(match data.opcode() {
        Opcode::Jump | Opcode::Brif | Opcode::BrTable | Opcode::Return => Effects { terminates: true, ..none },
        Opcode::Trap => Effects { traps: true, terminates: true, ..none },
        Opcode::Trapz | Opcode::Trapnz | Opcode::UaddOverflowTrap => Effects { traps: true, ..none },
        Opcode::Udiv | Opcode::Sdiv | Opcode::Urem | Opcode::Srem => {
            Effects { traps: divisor_may_trap(func, inst)?, ..none }
        }
        Opcode::FcvtToSint | Opcode::FcvtToUint => Effects { traps: true, ..none },
        Opcode::Load
        | Opcode::Uload8
        | Opcode::Sload8
        | Opcode::Uload16
        | Opcode::Sload16
        | Opcode::Uload32
        | Opcode::Sload32 => Effects { traps: may_fault, reads: true, ..none },
        Opcode::Store | Opcode::Istore8 | Opcode::Istore16 | Opcode::Istore32 => {
            Effects { traps: may_fault, writes: true, ..none }
        }
        Opcode::AtomicLoad => Effects { traps: may_fault, reads: true, fences: true, ..none },
        Opcode::AtomicStore => Effects { traps: may_fault, writes: true, fences: true, ..none },
        Opcode::AtomicRmw | Opcode::AtomicCas => {
            Effects { traps: may_fault, reads: true, writes: true, fences: true, ..none }
        }
        Opcode::Fence | Opcode::SequencePoint => Effects { fences: true, ..none },
        Opcode::Call | Opcode::CallIndirect => everything_of_a_call(false),
        Opcode::TryCall => everything_of_a_call(true),
        _ => none,
    })
}

/// Whether a division traps by what it divides by: 0 does. Of -1 where signs count, and of what is no constant, nothing is said.
fn divisor_may_trap(func: &Function, inst: Inst) -> Option<bool> {
    let divisor = func.dfg.inst_args(inst)[1];
    let InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } =
        func.dfg.insts[func.dfg.value_def(divisor).inst()?]
    else {
        return None;
    };
    let bits = func.dfg.value_type(divisor).bits();
    let [zero, minus_one] = [0, -1].map(|value: i64| Imm64::new(value).sign_extend_from_width(bits));
    let is_signed = matches!(func.dfg.insts[inst].opcode(), Opcode::Sdiv | Opcode::Srem);
    let divisor = imm.sign_extend_from_width(bits);
    let depends = is_signed && divisor == minus_one;
    (!depends).then_some(divisor == zero)
}

fn everything_of_a_call(terminates: bool) -> Effects {
    Effects { traps: true, reads: true, writes: true, fences: true, diverges: true, terminates, asserts: false }
}
