//! Remove parameters of blocks that nothing needs.
//!
//! ```text
//! block1(v1: i64, v2: i8):                    block1(v1: i64):
//!     …                             ──►           …
//!     brif v3, block1(v4, v5), block2             brif v3, block1(v4), block2
//! ```
//!
//! A parameter is needed if an instruction has it as an operand, or an edge passes it for one that is needed. One that only goes around a loop
//! is not, and takes a move on each edge all the same.

use crate::analysis::cfg::edges::{Edge, EdgesByTarget, own_uses};
use crate::analysis::cfg::handlers::NamedBlocks;
use crate::edit::ssa::params::keep_params;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, BlockArg, Function, Value, ValueDef};

/// Removes all of them but those of blocks that are `named`, and those that calls pass something for. Returns whether there was any. Linear in the size of the function.
pub(crate) fn remove_dead_params(func: &mut Function, named: &NamedBlocks) -> bool {
    let entry = func.layout.entry_block();
    let edges = EdgesByTarget::new(func, |block| func.dfg.num_block_params(block) > 0);
    let needed = needed(func, &edges);
    let mut dead = Vec::new();
    for block in func.layout.blocks().filter(|&block| Some(block) != entry && !named.contains(block)) {
        let entering = edges.entering(block);
        let stays = |(index, param): (usize, &Value)| {
            let is_passed_by_call = |edge: &Edge| !matches!(edge.args(func).nth(index), Some(BlockArg::Value(_)));
            needed.contains(*param) || entering.iter().any(is_passed_by_call)
        };
        let params = func.dfg.block_params(block);
        if params.iter().any(|param| !needed.contains(*param)) {
            let keeps: Vec<_> = params.iter().enumerate().map(stays).collect();
            dead.push((block, entering.to_vec(), keeps));
        }
    }
    dead.retain(|(_, _, keeps)| keeps.contains(&false));
    dead.iter().for_each(|(block, entering, keeps): &(Block, Vec<Edge>, Vec<bool>)| {
        keep_params(func, (*block, entering), keeps)
    });
    !dead.is_empty()
}

/// The values that instructions have as operands, and the parameters and values that these come from by edges.
fn needed(func: &Function, edges: &EdgesByTarget) -> EntitySet<Value> {
    let mut needed = EntitySet::with_capacity(func.dfg.num_values());
    let mut open: Vec<Value> = Vec::new();
    let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    for value in insts.flat_map(|inst| own_uses(func, inst)) {
        let value = func.dfg.resolve_aliases(value);
        if needed.insert(value) {
            open.push(value);
        }
    }
    while let Some(value) = open.pop() {
        let ValueDef::Param(block, index) = func.dfg.value_def(value) else { continue };
        let passed = edges.entering(block).iter().filter_map(|edge| edge.args(func).nth(index)?.as_value());
        for value in passed.map(|value| func.dfg.resolve_aliases(value)) {
            if needed.insert(value) {
                open.push(value);
            }
        }
    }
    needed
}
