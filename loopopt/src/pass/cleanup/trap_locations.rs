//! Lets a trap keep its source location when Cranelift's egraph pass makes it conditional.
//!
//! Of a branch to a block that does nothing but trap, the pass makes a `trapnz` at the location of the branch
//! (`branch_to_trap.rs`). In the program as it came in that is done already, whatever location it has given the trap. A block of which
//! passes have left only the trap, because its store was removed or moved, is new: there the trap had its own location. A branch needs none
//! for itself, as it never traps, so it takes that of the trap. If both successors do nothing but trap, the second one becomes conditional.
//! A block that does more may come to do nothing else while the egraph pass runs, so it counts where no other successor does.

use crate::analysis::cfg::edges::edges_of;
use crate::analysis::cfg::jumps::ends_in_trap;
use cranelift_codegen::ir::{Block, Function, Opcode};

/// Gives each `brif` to a block that ends in a trap the location of this trap. What accesses memory is out of sight
/// ([`Hidden`](super::hide::Hidden)).
pub(super) fn move_to_branches(func: &mut Function) {
    let mut moved = Vec::new();
    for block in func.layout.blocks() {
        let Some(branch) = func.layout.last_inst(block) else { continue };
        if func.dfg.insts[branch].opcode() == Opcode::Brif {
            let trap = edges_of(func, branch)
                .map(|edge| edge.target(func))
                .filter(|&target| ends_in_trap(func, target))
                .max_by_key(|&target| does_nothing_before_its_end(func, target))
                .and_then(|target| func.layout.last_inst(target));
            moved.extend(trap.map(|trap| (branch, func.srcloc(trap))));
        }
    }
    for (branch, srcloc) in moved {
        if func.srcloc(branch) != srcloc {
            func.set_srcloc(branch, srcloc);
        }
    }
}

/// Whether the egraph pass takes all instructions but the last one for pure (`is_pure_for_egraph` in `inst_predicates.rs`): of loads, only
/// pure ones are in sight.
fn does_nothing_before_its_end(func: &Function, block: Block) -> bool {
    let is_pure = |inst| {
        let opcode = func.dfg.insts[inst].opcode();
        let acts = opcode.is_call() || opcode.can_trap() || opcode.can_store() || opcode.other_side_effects();
        func.dfg.inst_results(inst).len() == 1 && (opcode == Opcode::Load || !acts)
    };
    func.layout.block_insts(block).rev().skip(1).all(is_pure)
}
