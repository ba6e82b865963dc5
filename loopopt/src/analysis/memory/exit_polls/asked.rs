//! What is asked before a loop is left: the parts of conditions.

use super::Operands;
use crate::analysis::cfg::edges::Edge;
use crate::analysis::inst::number::constant_of;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode, Value};

/// What is asked for an edge: all of these have to be zero, or not, for it to be taken.
pub fn asked_by(func: &Function, edge: Edge) -> Option<Operands> {
    let condition = condition(func, edge.branch)?;
    Some(match func.dfg.insts[edge.branch] {
        InstructionData::Brif { .. } => conjuncts(func, condition, edge.slot == 0),
        _ => Operands::from_slice(&[condition]),
    })
}

/// What is asked for an edge, once for each thing that alone is enough for it to be taken: `a || b` leaves a loop as two branches would.
pub(super) fn alternatives(func: &Function, edge: Edge) -> Vec<Operands> {
    let Some(condition) = condition(func, edge.branch) else { return Vec::new() };
    if !matches!(func.dfg.insts[edge.branch], InstructionData::Brif { .. }) {
        return vec![Operands::from_slice(&[condition])];
    }
    /// What people write in one condition.
    const MAX_PARTS: usize = 8;
    let (mut found, mut open) = (Vec::new(), vec![(condition, edge.slot == 0)]);
    while let Some((value, truth)) = open.pop() {
        let inst = func.dfg.value_def(value).inst().filter(|_| found.len() + open.len() < MAX_PARTS);
        let is = |value, number: u64| constant_of(func, value) == Some(number);
        let parts = inst.and_then(|inst| match (func.dfg.insts[inst].opcode(), func.dfg.inst_args(inst)) {
            (Opcode::Bor, &[a, b]) if truth => Some(vec![(a, true), (b, true)]),
            // A bit of it is asked for.
            (Opcode::Band, &[a, b]) if constant_of(func, b).is_some() => Some(vec![(a, truth)]),
            (Opcode::Bxor, &[a, b]) if is(b, 1) => Some(vec![(a, !truth)]),
            (Opcode::Band, &[a, b]) if !truth => Some(vec![(a, false), (b, false)]),
            (Opcode::Umax, &[a, b]) if truth => Some(vec![(a, true), (b, true)]),
            (Opcode::Uextend | Opcode::Sextend, &[a]) => Some(vec![(a, truth)]),
            (Opcode::Select, &[c, a, b]) if truth && is(a, 1) => Some(vec![(c, true), (b, true)]),
            (Opcode::Select, &[c, a, b]) if truth && is(b, 1) => Some(vec![(c, false), (a, true)]),
            (Opcode::Select, &[c, a, b]) if !truth && is(b, 0) => Some(vec![(c, false), (a, false)]),
            (Opcode::Select, &[c, a, b]) if !truth && is(a, 0) => Some(vec![(c, true), (b, false)]),
            (Opcode::Icmp, &[a, b]) if is(b, 0) || is(b, 1) => match func.dfg.insts[inst].cond_code() {
                Some(IntCC::Equal) => Some(vec![(a, truth == is(b, 1))]),
                Some(IntCC::NotEqual) => Some(vec![(a, truth == is(b, 0))]),
                _ => None,
            },
            _ => None,
        });
        match parts {
            Some(parts) => open.extend(parts),
            None => found.push(conjuncts(func, value, truth)),
        }
    }
    found
}

/// Values that all have to be zero, or not zero, for `condition` to be `true`, or not: it alone, or what it is put together from.
pub(super) fn conjuncts(func: &Function, condition: Value, truth: bool) -> Operands {
    /// What people write in one condition.
    const MAX_PARTS: usize = 8;
    let (mut parts, mut open) = (Operands::new(), vec![(condition, truth)]);
    while let Some((value, truth)) = open.pop() {
        let taken_apart = func.dfg.value_def(value).inst().filter(|_| parts.len() + open.len() < MAX_PARTS);
        let zero = |value| constant_of(func, value) == Some(0);
        let found = taken_apart.and_then(|inst| match (func.dfg.insts[inst].opcode(), func.dfg.inst_args(inst)) {
            (Opcode::Band, &[a, b]) if truth => Some(vec![(a, true), (b, true)]),
            (Opcode::Bor, &[a, b]) if !truth => Some(vec![(a, false), (b, false)]),
            (Opcode::Uextend | Opcode::Sextend, &[a]) => Some(vec![(a, truth)]),
            (Opcode::Select, &[c, a, b]) if truth && zero(b) => Some(vec![(c, true), (a, true)]),
            (Opcode::Select, &[c, a, b]) if truth && zero(a) => Some(vec![(c, false), (b, true)]),
            (Opcode::Icmp, &[a, b]) if zero(b) => match func.dfg.insts[inst].cond_code() {
                Some(IntCC::Equal) => Some(vec![(a, !truth)]),
                Some(IntCC::NotEqual) => Some(vec![(a, truth)]),
                _ => None,
            },
            _ => None,
        });
        match found {
            Some(found) => open.extend(found),
            None => parts.push(value),
        }
    }
    parts
}

/// What a branch on a value tests.
pub(super) fn condition(func: &Function, branch: Inst) -> Option<Value> {
    match func.dfg.insts[branch] {
        InstructionData::Brif { arg, .. } | InstructionData::BranchTable { arg, .. } => Some(arg),
        _ => None,
    }
}
