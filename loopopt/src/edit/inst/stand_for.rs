//! A value in the place of an instruction.

use cranelift_codegen::ir::{Function, Inst, Value};

/// Lets `value` stand for the one result of `inst`, which is removed. The result is an alias from then on, until all are resolved.
pub(crate) fn stand_for(func: &mut Function, inst: Inst, value: Value) {
    let result = func.dfg.first_result(inst);
    func.dfg.detach_inst_results(inst);
    func.dfg.change_to_alias(result, value);
    func.layout.remove_inst(inst);
}
