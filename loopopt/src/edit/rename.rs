//! Replace uses of values, in operands and in the arguments of edges.

use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, Value};
use std::collections::HashMap;

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

/// Replaces each value that the edges of `branch` pass by what `rename` says.
pub(crate) fn rename_edge_args(func: &mut Function, branch: Inst, mut rename: impl FnMut(Value) -> Value) {
    let dfg = &mut func.dfg;
    let calls = dfg.insts[branch].branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables);
    for call in calls {
        call.update_args(&mut dfg.value_lists, |arg| match arg {
            BlockArg::Value(value) => BlockArg::Value(rename(value)),
            BlockArg::TryCallRet(_) | BlockArg::TryCallExn(_) => arg,
        });
    }
}

/// Replaces the values of `renames` in all blocks but those that define them.
pub(crate) fn rename_elsewhere(func: &mut Function, renames: &HashMap<Value, Value>) {
    let homes: HashMap<_, _> = renames.keys().map(|&value| (value, def_block(func, value))).collect();
    rename_where(func, renames, |value, block| homes[&value] != Some(block));
}

/// Replaces the values of `renames` in the blocks for which `applies` says so.
pub(crate) fn rename_where(
    func: &mut Function,
    renames: &HashMap<Value, Value>,
    applies: impl Fn(Value, Block) -> bool,
) {
    let mut cursor = func.layout.entry_block();
    while let Some(block) = cursor {
        let mut next = func.layout.first_inst(block);
        while let Some(inst) = next {
            rename_uses(func, inst, |value| match renames.get(&value) {
                Some(&renamed) if applies(value, block) => renamed,
                _ => value,
            });
            next = func.layout.next_inst(inst);
        }
        cursor = func.layout.next_block(block);
    }
}
