//! Fewer functions and calls, fewer and smaller arguments, fewer results.

use super::draft::{Draft, Edit, constant_before, insts, integer, replace_uses, used};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::{Function, Inst, InstBuilder as _, Opcode, UserFuncName};
use loopopt::oracle::Arg;

pub(super) fn edits(draft: &Draft) -> Vec<Edit> {
    let mut edits: Vec<Edit> = Vec::new();
    for case in draft.cases.clone() {
        edits.push(Box::new(move |draft| {
            let at = draft.cases.iter().position(|other| *other == case)?;
            draft.cases.remove(at);
            Some(())
        }));
    }
    for func in &draft.functions {
        let name = func.name.clone();
        edits.push(Box::new(move |draft| drop_function(draft, &name)));
        for index in (0..func.signature.params.len()).rev() {
            for one in [false, true] {
                let name = func.name.clone();
                edits.push(Box::new(move |draft| drop_param(draft, &name, index, one)));
            }
        }
        for index in (0..func.signature.returns.len()).rev() {
            let name = func.name.clone();
            edits.push(Box::new(move |draft| drop_result(draft, &name, index)));
        }
    }
    for (number, case) in draft.cases.iter().enumerate() {
        for (index, arg) in case.call.args.iter().enumerate() {
            for smaller in smaller(arg) {
                edits.push(Box::new(move |draft| {
                    let arg = draft.cases.get_mut(number)?.call.args.get_mut(index)?;
                    *arg = smaller.clone();
                    Some(())
                }));
            }
        }
    }
    edits
}

/// Drops all calls but one.
pub(super) fn only_case(number: usize) -> Edit {
    Box::new(move |draft| {
        draft.cases = vec![draft.cases.get(number)?.clone()];
        Some(())
    })
}

/// A function that is called by others becomes a host function.
fn drop_function(draft: &mut Draft, name: &UserFuncName) -> Option<()> {
    if is_entry(draft, name) {
        return None;
    }
    let at = draft.functions.iter().position(|func| func.name == *name)?;
    draft.functions.remove(at);
    Some(())
}

/// Whether a call from outside is to this function.
fn is_entry(draft: &Draft, name: &UserFuncName) -> bool {
    let name = name.to_string();
    draft.cases.iter().any(|case| case.call.function == name.trim_start_matches('%'))
}

/// Drops a parameter of a function that no other function calls, and the argument in each call. If it is used, a zero or
/// one takes its place.
fn drop_param(draft: &mut Draft, name: &UserFuncName, index: usize, one: bool) -> Option<()> {
    if draft.is_called(name) {
        return None;
    }
    let func = draft.function(name)?;
    let entry = func.layout.entry_block()?;
    let param = *func.dfg.block_params(entry).get(index)?;
    if used(func).contains(&param) {
        let first = func.layout.first_inst(entry)?;
        let value = constant_before(func, first, func.dfg.value_type(param), one)?;
        replace_uses(func, param, value);
    }
    func.dfg.remove_block_param(param);
    func.signature.params.remove(index);
    let name = name.to_string();
    for case in draft.cases.iter_mut().filter(|case| case.call.function == name.trim_start_matches('%')) {
        case.call.args.remove(index);
    }
    Some(())
}

/// Drops a result of a function that no other function calls.
fn drop_result(draft: &mut Draft, name: &UserFuncName, index: usize) -> Option<()> {
    if draft.is_called(name) {
        return None;
    }
    let func = draft.function(name)?;
    if index >= func.signature.returns.len() {
        return None;
    }
    func.signature.returns.remove(index);
    for inst in returns(func) {
        let mut args = func.dfg.inst_args(inst).to_vec();
        args.remove(index);
        func.replace(inst).return_(&args);
    }
    Some(())
}

fn returns(func: &Function) -> Vec<Inst> {
    insts(func).into_iter().filter(|&inst| func.dfg.insts[inst].opcode() == Opcode::Return).collect()
}

/// Smaller arguments, the smallest first.
fn smaller(arg: &Arg) -> Vec<Arg> {
    match arg {
        Arg::Memory(0) => Vec::new(),
        Arg::Memory(offset) => vec![Arg::Memory(0), Arg::Memory(offset / 2), Arg::Memory(offset - 1)],
        Arg::Value(DataValue::F32(_)) => {
            [0.0, 1.0].map(|value| Arg::Value(DataValue::F32(Ieee32::with_float(value)))).to_vec()
        }
        Arg::Value(DataValue::F64(_)) => {
            [0.0, 1.0].map(|value| Arg::Value(DataValue::F64(Ieee64::with_float(value)))).to_vec()
        }
        Arg::Value(value) => {
            let Some(number) = integer(value) else { return Vec::new() };
            let numbers = [0, 1, number / 2];
            let values = numbers.iter().filter_map(|&number| DataValue::from_integer(number.into(), value.ty()).ok());
            values.map(Arg::Value).collect()
        }
    }
}
