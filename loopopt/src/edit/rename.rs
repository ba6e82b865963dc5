//! Replace uses of values, in operands and in the arguments of edges.

use cranelift_codegen::ir::{Block, Function, Inst, Value};

/// Calls `visit` with each value that `inst` uses, once for each use.
pub(crate) fn each_use(func: &Function, inst: Inst, visit: impl FnMut(Value)) {
    func.dfg.inst_values(inst).for_each(visit);
}

/// Replaces each value that `inst` uses by what `rename` says.
pub(crate) fn rename_uses(func: &mut Function, inst: Inst, rename: impl FnMut(Value) -> Value) {
    func.dfg.map_inst_values(inst, rename);
}

/// The block in which `value` is defined. Values whose instruction is in no block have none.
pub(crate) fn def_block(func: &Function, value: Value) -> Option<Block> {
    use cranelift_codegen::ir::ValueDef;
    match func.dfg.value_def(value) {
        ValueDef::Param(block, _) => Some(block),
        ValueDef::Result(inst, _) => func.layout.inst_block(inst),
        ValueDef::Union(..) => None,
    }
}
