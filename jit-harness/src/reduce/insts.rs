//! Fewer instructions.

use super::draft::{Draft, Edit, constant_before, in_function, insts, is_constant, replace_uses, used};
use cranelift_codegen::ir::{Function, Inst, Value};

pub(super) fn edits(draft: &Draft) -> Vec<Edit> {
    let mut edits = Vec::new();
    for func in &draft.functions {
        let removable = insts(func).into_iter().filter(|&inst| !func.dfg.insts[inst].opcode().is_terminator());
        // Uses come before what they use.
        let removable: Vec<Inst> = removable.rev().collect();
        edits.extend(removable.iter().map(|&inst| in_function(func, move |func| drop_unused(func, inst))));
        let (constants, others): (Vec<Inst>, Vec<Inst>) =
            removable.into_iter().filter(|&inst| func.dfg.has_results(inst)).partition(|&inst| is_constant(func, inst));
        for (at, &inst) in constants.iter().enumerate() {
            let earlier = constants[at + 1..].iter().copied();
            edits.extend(earlier.map(|other| in_function(func, move |func| replace_by_result(func, inst, other))));
        }
        for inst in others {
            edits.push(in_function(func, move |func| replace_by_constants(func, inst, false)));
            edits.push(in_function(func, move |func| replace_by_constants(func, inst, true)));
            for index in 0..func.dfg.inst_args(inst).len() {
                edits.push(in_function(func, move |func| replace_by_operand(func, inst, index)));
            }
        }
    }
    edits
}

fn drop_unused(func: &mut Function, inst: Inst) -> Option<()> {
    func.layout.inst_block(inst)?;
    let used = used(func);
    if func.dfg.inst_results(inst).iter().any(|result| used.contains(result)) {
        return None;
    }
    func.layout.remove_inst(inst);
    Some(())
}

/// Puts a zero or one in the place of each result.
fn replace_by_constants(func: &mut Function, inst: Inst, one: bool) -> Option<()> {
    func.layout.inst_block(inst)?;
    for result in func.dfg.inst_results(inst).to_vec() {
        let constant = constant_before(func, inst, func.dfg.value_type(result), one)?;
        replace_uses(func, result, constant);
    }
    func.layout.remove_inst(inst);
    Some(())
}

/// Puts an operand in the place of the only result.
fn replace_by_operand(func: &mut Function, inst: Inst, index: usize) -> Option<()> {
    func.layout.inst_block(inst)?;
    let operand = *func.dfg.inst_args(inst).get(index)?;
    replace_by(func, inst, operand)
}

/// Puts the result of another instruction in the place of the only result.
fn replace_by_result(func: &mut Function, inst: Inst, other: Inst) -> Option<()> {
    func.layout.inst_block(inst)?;
    func.layout.inst_block(other)?;
    replace_by(func, inst, func.dfg.first_result(other))
}

fn replace_by(func: &mut Function, inst: Inst, value: Value) -> Option<()> {
    let &[result] = func.dfg.inst_results(inst) else { return None };
    if func.dfg.value_type(result) != func.dfg.value_type(value) {
        return None;
    }
    replace_uses(func, result, value);
    func.layout.remove_inst(inst);
    Some(())
}
