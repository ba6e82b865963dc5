//! Join a block with the only block that jumps to it.
//!
//! ```text
//! block1:                         block1:
//!     v2 = iadd v0, v1                v2 = iadd v0, v1
//!     jump block2(v2)      ──►        v4 = imul v2, v1
//! block2(v3: i64):                    return v4
//!     v4 = imul v3, v1
//!     return v4
//! ```
//!
//! Cranelift does not merge blocks, and rotation does not see a test in a block of its own. A cold and a hot
//! block stay separate, and a block that an instruction names stays a block ([`crate::analysis::cfg::handlers`]).

use crate::analysis::cfg::edges::Edge;
use crate::analysis::cfg::handlers::NamedBlocks;
use crate::analysis::cfg::jumps::jump_target;
use crate::edit::inst::rename::Replaced;
use crate::fault::fault;
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, BlockArg, Function};

/// Merges all that can be merged. The block arguments stand in `replaced` for the parameters. Returns whether there was any.
///
/// Afterwards `cfg` and `domtree` are those of the function before.
pub(crate) fn merge_all(
    func: &mut Function,
    (cfg, domtree): (&ControlFlowGraph, &DominatorTree),
    named: NamedBlocks,
    replaced: &mut Replaced,
) -> bool {
    let mut merged = false;
    let named = if fault!(MergedHandler) { NamedBlocks::default() } else { named };
    // In reverse postorder the first block of a chain comes first, and each instruction is moved once only.
    for &block in domtree.cfg_rpo() {
        if !func.layout.is_block_inserted(block) {
            continue;
        }
        let lonely = |func: &Function| lonely_successor(func, cfg, block).filter(|&next| !named.contains(next));
        while lonely(func).is_some_and(|next| join(func, block, next, replaced)) {
            merged = true;
        }
    }
    merged
}

/// The block that `block` alone jumps to. Merging changes no block's number of predecessors, so `cfg` still knows it.
fn lonely_successor(func: &Function, cfg: &ControlFlowGraph, block: Block) -> Option<Block> {
    let next = jump_target(func, block)?;
    (cfg.pred_iter(next).take(2).count() == 1).then_some(next)
}

/// Merges `next`, which no other block enters and nothing names, into `block` if that jumps to it and both are as hot. The block arguments stand in
/// `replaced` for its parameters. Returns whether it was merged.
pub(crate) fn join(func: &mut Function, block: Block, next: Block, replaced: &mut Replaced) -> bool {
    let same_heat = func.layout.is_cold(block) == func.layout.is_cold(next);
    let joins = jump_target(func, block) == Some(next) && same_heat && next != block;
    if joins {
        absorb(func, block, next, replaced);
    }
    joins
}

fn absorb(func: &mut Function, block: Block, next: Block, replaced: &mut Replaced) {
    let jump = func.layout.last_inst(block).expect("a block that is merged ends in a jump");
    let mut args: Vec<_> = Edge { branch: jump, slot: 0 }.args(func).collect();
    if fault!(MixedArguments) {
        args.reverse();
    }
    let params = func.dfg.detach_block_params(next);
    for (index, arg) in args.into_iter().enumerate() {
        let param = params.get(index, &func.dfg.value_lists).expect("an argument for each parameter");
        let BlockArg::Value(value) = arg else { unreachable!("a jump passes values only") };
        replaced.insert(param, value);
    }
    func.layout.remove_inst(jump);
    while let Some(inst) = func.layout.first_inst(next) {
        func.layout.remove_inst(inst);
        func.layout.append_inst(inst, block);
    }
    func.layout.remove_block(next);
}
