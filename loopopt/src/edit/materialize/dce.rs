//! Remove instructions of which nothing uses the results.

use crate::analysis::inst::effects::Effects;
use crate::edit::inst::rename::each_use;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Function, Value};

/// Removes the pure instructions of which nothing uses the results, and those that only these have used.
pub(crate) fn remove_all_unused(func: &mut Function) {
    let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    let results = insts.filter_map(|inst| func.dfg.inst_results(inst).first().copied()).collect();
    remove_unused(func, results);
}

/// Removes the pure instructions that compute `values`, if nothing uses them, and those that only these have used. Linear in
/// the size of the function.
pub(crate) fn remove_unused(func: &mut Function, mut values: Vec<Value>) {
    let mut uses = SecondaryMap::<Value, u32>::new();
    uses.resize(func.dfg.num_values());
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            each_use(func, inst, |value| uses[value] += 1);
        }
    }
    while let Some(value) = values.pop() {
        let Some(inst) = func.dfg.value_def(value).inst() else { continue };
        let is_unused = func.dfg.inst_results(inst).iter().all(|&result| uses[result] == 0);
        if !is_unused || func.layout.inst_block(inst).is_none() || !Effects::of(func, inst).is_pure() {
            continue;
        }
        for &arg in func.dfg.inst_args(inst) {
            uses[arg] -= 1;
            values.push(arg);
        }
        func.layout.remove_inst(inst);
    }
}
