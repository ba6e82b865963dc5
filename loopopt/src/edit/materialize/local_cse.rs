//! Use what is computed already.
//!
//! ```text
//!     v2 = uextend.i64 v1              v2 = uextend.i64 v1
//!     ...                              ...
//!     v8 = uextend.i64 v1      ──►
//!     v9 = icmp ult v8, v3             v9 = icmp ult v2, v3
//! ```
//!
//! A test before a loop repeats what the program has computed, and once a check is removed, computations before and after it
//! can be shared. Cranelift's egraph pass would find that too, and look at the whole function for it.

use crate::analysis::inst::effects::{Effects, is_constant};
use crate::edit::inst::rename::Replaced;
use crate::edit::materialize::neighbours::is_repeatable;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Type};
use std::collections::hash_map::Entry;

/// Lets the pure instructions in `blocks` be those that computed the same before, in a block that dominates. `domtree` must be that
/// of `func`. Constants and what has to be [beside its use](crate::edit::materialize::neighbours) stay where they are. Linear in the size of the
/// function.
pub(crate) fn reuse(func: &mut Function, domtree: &DominatorTree, mut blocks: Vec<Block>) {
    blocks.sort_unstable();
    let mut numbers = Numbers { func, same: Replaced::default(), first: FxHashMap::default() };
    let mut replaced = Replaced::default();
    let mut removed = Vec::new();
    for &block in domtree.cfg_rpo() {
        for inst in numbers.func.layout.block_insts(block) {
            let Some(first) = numbers.find(domtree, block, inst) else { continue };
            let stays = is_constant(numbers.func, inst) || is_repeatable(numbers.func, inst);
            if !stays && blocks.binary_search(&block).is_ok() {
                let results = |inst| numbers.func.dfg.inst_results(inst);
                results(inst).iter().zip(results(first)).for_each(|(&value, &same)| replaced.insert(value, same));
                removed.push(inst);
            }
        }
    }
    for inst in removed {
        func.layout.remove_inst(inst);
    }
    replaced.apply(func);
}

/// What computes the same, whatever it is called.
struct Numbers<'f> {
    func: &'f Function,
    /// Values that are the same as another one.
    same: Replaced,
    /// The last instruction that was the first to compute something.
    first: FxHashMap<(Type, InstructionData), Inst>,
}

impl Numbers<'_> {
    /// The instruction that computes the same as `inst`, the next one of `block`, and dominates it.
    fn find(&mut self, domtree: &DominatorTree, block: Block, inst: Inst) -> Option<Inst> {
        let func = self.func;
        let results = func.dfg.inst_results(inst);
        if results.is_empty() || !Effects::of(func, inst).is_pure() {
            return None;
        }
        let mut data = func.dfg.insts[inst];
        for arg in data.arguments_mut(&mut Default::default()) {
            *arg = self.same.resolve(*arg);
        }
        match self.first.entry((func.dfg.value_type(results[0]), data)) {
            Entry::Vacant(entry) => {
                entry.insert(inst);
                None
            }
            Entry::Occupied(mut entry) => {
                let first = *entry.get();
                let home = func.layout.inst_block(first)?;
                // A constant is one number everywhere.
                if !is_constant(func, inst) && !domtree.block_dominates(home, block) {
                    entry.insert(inst);
                    return None;
                }
                let values = results.iter().zip(func.dfg.inst_results(first));
                values.for_each(|(&value, &same)| self.same.insert(value, same));
                Some(first)
            }
        }
    }
}
