//! Remove parameters of a block, with their block arguments.

use crate::analysis::cfg::edges::Edge;
use crate::edit::cfg::split_edges::set_edge;
use cranelift_codegen::ir::{Block, Function, Value};

/// What becomes of a parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Replacement {
    /// It stays.
    #[default]
    Keep,
    /// It is removed. Nothing uses it but edges that pass it for a parameter that is removed too.
    Drop,
    /// It is removed, and is another name for this value from now on: aliases have to be resolved afterwards.
    By(Value),
}

/// Does so for all parameters of `block`, in their order. `edges` are all edges into the block.
pub(crate) fn replace_params(func: &mut Function, block: Block, edges: &[Edge], by: &[Replacement]) {
    let params = func.dfg.block_params(block).to_vec();
    // All at once: to remove one takes time for all after it.
    func.dfg.detach_block_params(block);
    for (&param, replacement) in params.iter().zip(by) {
        match *replacement {
            Replacement::Keep => {
                func.dfg.attach_block_param(block, param);
            }
            Replacement::Drop => {}
            Replacement::By(value) => func.dfg.change_to_alias(param, value),
        }
    }
    for &edge in edges {
        let kept = edge.args(func).zip(by).filter(|(_, by)| **by == Replacement::Keep);
        let kept: Vec<_> = kept.map(|(arg, _)| arg).collect();
        set_edge(func, edge, block, &kept);
    }
}
