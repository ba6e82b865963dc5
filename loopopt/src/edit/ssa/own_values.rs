//! Give a loop values of its own for what it uses from outside: parameters of its header that it passes to itself.

use crate::analysis::cfg::edges::Edge;
use crate::edit::cfg::split_edges::append_arg;
use crate::edit::inst::labels::copy_labels;
use crate::edit::inst::rename::rename_in;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::ir::{Block, Function, Value};

/// Lets the loop of `header`, which consists of `blocks`, use parameters in the place of `values`, which are defined outside of it. Returns the
/// parameters.
pub(crate) fn give_own_values(
    func: &mut Function,
    (header, blocks): (Block, &[Block]),
    [entries, back_edges]: [&[Edge]; 2],
    values: &[Value],
) -> Vec<Value> {
    let mut own = FxHashMap::default();
    for &value in values {
        let ty = func.dfg.value_type(value);
        let param = func.dfg.append_block_param(header, ty);
        copy_labels(func, value, param);
        own.insert(value, param);
    }
    rename_in(func, blocks.iter().copied(), &own);
    for value in values {
        entries.iter().for_each(|&edge| append_arg(func, edge, *value));
        back_edges.iter().for_each(|&edge| append_arg(func, edge, own[value]));
    }
    values.iter().map(|value| own[value]).collect()
}
