//! Fewer block parameters.

use super::draft::{
    Draft, Edit, constant_before, destinations, in_function, insts, param_position, replace_uses, set_destination, used,
};
use cranelift_codegen::ir::{Function, Value};
use std::collections::HashSet;

pub(super) fn edits(draft: &Draft) -> Vec<Edit> {
    let mut edits = Vec::new();
    for func in &draft.functions {
        let entry = func.layout.entry_block();
        for block in func.layout.blocks().filter(|&block| Some(block) != entry) {
            for &param in func.dfg.block_params(block) {
                edits.push(in_function(func, move |func| drop_unused(func, param)));
                for arg in passed(func, param) {
                    edits.push(in_function(func, move |func| replace(func, param, arg)));
                }
                edits.push(in_function(func, move |func| replace_by_constant(func, param, false)));
                edits.push(in_function(func, move |func| replace_by_constant(func, param, true)));
            }
        }
    }
    edits
}

/// The values that branches pass for a parameter.
fn passed(func: &Function, param: Value) -> HashSet<Value> {
    let Some((block, index)) = param_position(func, param) else { return HashSet::new() };
    let to_block = insts(func).into_iter().flat_map(|inst| destinations(func, inst)).filter(|(to, _)| *to == block);
    to_block.filter_map(|(_, args)| args.get(index)?.as_value()).filter(|&arg| arg != param).collect()
}

fn drop_unused(func: &mut Function, param: Value) -> Option<()> {
    if used(func).contains(&param) { None } else { drop_param(func, param) }
}

fn replace(func: &mut Function, param: Value, arg: Value) -> Option<()> {
    param_position(func, param)?;
    drop_param(func, param)?;
    replace_uses(func, param, arg);
    Some(())
}

fn replace_by_constant(func: &mut Function, param: Value, one: bool) -> Option<()> {
    let (block, _) = param_position(func, param)?;
    let first = func.layout.first_inst(block)?;
    let constant = constant_before(func, first, func.dfg.value_type(param), one)?;
    replace(func, param, constant)
}

/// Removes a parameter and what branches pass for it.
fn drop_param(func: &mut Function, param: Value) -> Option<()> {
    let (block, index) = param_position(func, param)?;
    for inst in insts(func) {
        for (number, (to, mut args)) in destinations(func, inst).into_iter().enumerate() {
            if to == block {
                args.remove(index);
                set_destination(func, inst, number, block, &args);
            }
        }
    }
    func.dfg.remove_block_param(param);
    Some(())
}
