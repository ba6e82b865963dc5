//! Remove instructions of which nothing uses the results, and results that nothing uses.

use crate::analysis::cfg::edges::count_uses;
use crate::analysis::inst::effects::Effects;
use crate::edit::inst::plain::make_plain;
use crate::ir::all_insts;
use cranelift_codegen::ir::{Function, Inst, Value};

/// Removes the pure instructions of which nothing uses the results, and those that only these have used.
pub(crate) fn remove_all_unused(func: &mut Function) {
    let insts = all_insts(func);
    let results = insts.filter_map(|inst| func.dfg.inst_results(inst).last().copied()).collect();
    remove_unused(func, results);
}

/// Removes the pure instructions that compute `values`, if nothing uses them, and those that only these have used. An operation of which nothing
/// asks whether it overflows does not tell any more. Linear in the size of the function.
pub(crate) fn remove_unused(func: &mut Function, mut values: Vec<Value>) {
    values.retain(|&value| pure_definition(func, value).is_some());
    if values.is_empty() {
        return;
    }
    let mut uses = count_uses(func);
    while let Some(value) = values.pop() {
        let Some(inst) = pure_definition(func, value) else { continue };
        if func.dfg.inst_results(inst).iter().any(|&result| uses[result] > 0) {
            if uses[value] == 0 && func.dfg.inst_results(inst).last() == Some(&value) {
                make_plain(func, inst);
            }
            continue;
        }
        for &arg in func.dfg.inst_args(inst) {
            uses[arg] -= 1;
            values.push(arg);
        }
        func.layout.remove_inst(inst);
    }
}

/// The pure instruction that computes `value`.
fn pure_definition(func: &Function, value: Value) -> Option<Inst> {
    let inst = func.dfg.value_def(value).inst()?;
    (func.layout.inst_block(inst).is_some() && Effects::of(func, inst).is_pure()).then_some(inst)
}
