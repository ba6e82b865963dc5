//! Remove parameters of blocks that nothing needs.
//!
//! ```text
//! block1(v1: i64, v2: i8):                    block1(v1: i64):
//!     …                             ──►           …
//!     brif v3, block1(v4, v5), block2             brif v3, block1(v4), block2
//! ```
//!
//! A parameter is needed if an instruction has it as an operand, or an edge passes it for one that is needed. One that only circulates in a loop
//! is not, and takes a move on each edge all the same.

use crate::analysis::cfg::edges::{EdgesByTarget, own_uses};
use crate::analysis::cfg::handlers::NamedBlocks;
use crate::edit::ssa::params::keep_params;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{BlockArg, Function, Value};
use smallvec::SmallVec;

/// Removes all of them but those of blocks that are `named`, and those that calls pass something for: these count as needed. Returns whether there was
/// any. Linear in the size of the function.
pub(crate) fn remove_dead_params(func: &mut Function, named: &NamedBlocks) -> bool {
    let mut needed = Needed::by_insts(func, named);
    let others = || func.layout.blocks().skip(1);
    let is_dead = |needed: &Needed, block| func.dfg.block_params(block).iter().any(|&param| !needed.0.contains(param));
    // In nearly all functions an instruction has each parameter as an operand.
    if !others().any(|block| is_dead(&needed, block)) {
        return false;
    }
    let edges = EdgesByTarget::new(func, |block| func.dfg.num_block_params(block) > 0);
    needed.follow(func, &edges);
    let dying: Vec<_> = others()
        .filter(|&block| is_dead(&needed, block))
        .map(|block| {
            let params = func.dfg.block_params(block).iter();
            let keeps: Vec<_> = params.map(|&param| needed.0.contains(param)).collect();
            (block, edges.entering(block).to_vec(), keeps)
        })
        .collect();
    for (block, entering, keeps) in &dying {
        keep_params(func, (*block, entering), keeps);
    }
    !dying.is_empty()
}

/// The parameters that are needed, beside other values.
struct Needed(EntitySet<Value>);

impl Needed {
    /// The values that instructions have as operands, and the parameters of blocks that are `named`.
    fn by_insts(func: &Function, named: &NamedBlocks) -> Self {
        let mut needed = Self(EntitySet::with_capacity(func.dfg.num_values()));
        for block in func.layout.blocks() {
            if named.contains(block) {
                func.dfg.block_params(block).iter().for_each(|&param| _ = needed.insert(func, param));
            }
            for inst in func.layout.block_insts(block) {
                own_uses(func, inst).for_each(|value| _ = needed.insert(func, value));
            }
        }
        needed
    }

    /// Adds what they come from by edges, and the parameters that calls pass something for.
    fn follow(&mut self, func: &Function, edges: &EdgesByTarget) {
        // The block arguments for parameters that are not needed as far as is known.
        let mut passed = FxHashMap::<Value, SmallVec<[Value; 2]>>::default();
        let mut open = Vec::new();
        for block in func.layout.blocks() {
            for edge in edges.entering(block) {
                for (&param, arg) in func.dfg.block_params(block).iter().zip(edge.args(func)) {
                    let value = match arg {
                        BlockArg::Value(value) if !self.0.contains(param) => {
                            passed.entry(param).or_default().push(value);
                            continue;
                        }
                        BlockArg::Value(value) => value,
                        _ => param,
                    };
                    open.extend(self.insert(func, value));
                }
            }
        }
        while let Some(param) = open.pop() {
            for value in passed.remove(&param).into_iter().flatten() {
                open.extend(self.insert(func, value));
            }
        }
    }

    /// Adds `value`, and gives it without aliases if it is new.
    fn insert(&mut self, func: &Function, value: Value) -> Option<Value> {
        if !self.0.insert(value) {
            return None;
        }
        let original = func.dfg.resolve_aliases(value);
        (original == value || self.0.insert(original)).then_some(original)
    }
}
