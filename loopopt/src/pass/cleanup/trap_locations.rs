//! Lets a trap keep its source location when Cranelift's egraph pass makes it conditional.
//!
//! Of a branch to a block that does nothing but trap, the pass makes a `trapnz` at the location of the branch
//! (`branch_to_trap.rs`). In the program as it came in that is done already, whatever location it has given the trap. A block of which
//! passes have left only the trap, because its store went or moved, is new: there the trap had its own location. A branch needs none
//! for itself, as it never traps, so it takes that of the trap. If both ways do nothing but trap, the second one becomes conditional.

use crate::analysis::cfg::edges::edges_of;
use cranelift_codegen::ir::{Function, Opcode};

/// Gives each `brif` to a block that ends in a trap the location of this trap.
pub(super) fn move_to_branches(func: &mut Function) {
    let mut moved = Vec::new();
    for block in func.layout.blocks() {
        let Some(branch) = func.layout.last_inst(block) else { continue };
        if func.dfg.insts[branch].opcode() == Opcode::Brif {
            let ends = edges_of(func, branch).filter_map(|edge| func.layout.last_inst(edge.target(func)));
            let trap = ends.into_iter().filter(|&end| func.dfg.insts[end].opcode() == Opcode::Trap).last();
            moved.extend(trap.map(|trap| (branch, func.srcloc(trap))));
        }
    }
    for (branch, srcloc) in moved {
        if func.srcloc(branch) != srcloc {
            func.set_srcloc(branch, srcloc);
        }
    }
}
