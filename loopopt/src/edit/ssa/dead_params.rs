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

use crate::analysis::cfg::edges::{EdgesByTarget, own_uses};
use crate::analysis::cfg::handlers::NamedBlocks;
use crate::edit::ssa::params::keep_params;
use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::ir::{BlockArg, Function, Value};
use smallvec::SmallVec;

/// Removes all of them but those of blocks that are `named`, and those that calls pass something for: these count as needed. Returns whether there was
/// any. Linear in the size of the function.
pub(crate) fn remove_dead_params(func: &mut Function, named: &NamedBlocks) -> bool {
    let entry = func.layout.entry_block();
    let edges = EdgesByTarget::new(func, |block| func.dfg.num_block_params(block) > 0);
    let needed = needed(func, named, &edges);
    let is_dead = |param: &Value| !needed.contains(*param);
    let blocks = func.layout.blocks().filter(|&block| Some(block) != entry);
    let dying = blocks.filter(|&block| func.dfg.block_params(block).iter().any(is_dead));
    let dying: Vec<_> = dying
        .map(|block| {
            let keeps: Vec<_> = func.dfg.block_params(block).iter().map(|param| !is_dead(param)).collect();
            (block, edges.entering(block).to_vec(), keeps)
        })
        .collect();
    for (block, entering, keeps) in &dying {
        keep_params(func, (*block, entering), keeps);
    }
    !dying.is_empty()
}

/// The values that instructions have as operands, the parameters that stay in any case, and what all of these come from by edges.
fn needed(func: &Function, named: &NamedBlocks, edges: &EdgesByTarget) -> EntitySet<Value> {
    let mut needed = EntitySet::with_capacity(func.dfg.num_values());
    let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    let mut open: Vec<Value> = insts.flat_map(|inst| own_uses(func, inst)).collect();
    let mut passed = SecondaryMap::<Value, SmallVec<[Value; 2]>>::new();
    for block in func.layout.blocks() {
        let params = func.dfg.block_params(block);
        if named.contains(block) {
            open.extend_from_slice(params);
        }
        for edge in edges.entering(block) {
            for (&param, arg) in params.iter().zip(edge.args(func)) {
                match arg {
                    BlockArg::Value(value) => passed[param].push(value),
                    _ => open.push(param),
                }
            }
        }
    }
    while let Some(value) = open.pop() {
        let value = func.dfg.resolve_aliases(value);
        if needed.insert(value) {
            open.extend_from_slice(&passed[value]);
        }
    }
    needed
}
