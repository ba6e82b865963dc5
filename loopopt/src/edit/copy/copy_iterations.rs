//! Copy the blocks of a loop, one iteration after the other.
//!
//! ```text
//!   header ◄─┐              header'         header''
//!     │      │                │   ┌────────►  │   ◄─┐
//!    ...     │     ──►       ...  │          ...    │      and the loop itself, as it was
//!     │      │                │   │           │     │
//!   latch ───┘              latch'┘        latch''──┘
//! ```
//!
//! The back edge of each copy enters the next one; where the first copy is entered from, and where the back edge of the last
//! one goes, is up to the caller. Edges that leave the loop leave the copies for the same blocks: with closed form, that is
//! all there is to it.

use crate::analysis::cfg::edges::Edge;
use crate::edit::cfg::split_edges::retarget;
use crate::edit::inst::clone::{Copies, clone_blocks};
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, InstBuilder};

/// Makes `count` copies of `blocks`, which are those of a loop with this back edge, in dominance order, the header first.
pub(crate) fn clone_iterations(func: &mut Function, blocks: &[Block], back_edge: Edge, count: usize) -> Vec<Copies> {
    let copies: Vec<_> = (0..count).map(|_| clone_blocks(func, blocks)).collect();
    for pair in copies.windows(2) {
        let edge = copied_edge(func, &pair[0], back_edge);
        retarget(func, edge, pair[1].block(blocks[0]));
    }
    copies
}

/// The copy of an edge of the loop.
pub(crate) fn copied_edge(func: &Function, copies: &Copies, edge: Edge) -> Edge {
    let block = copies.block(edge.source(func));
    let branch = func.layout.last_inst(block).expect("a copy of a terminator");
    Edge { branch, slot: edge.slot }
}

/// Replaces a branch that passes values only by a jump along its edge number `slot`.
pub(crate) fn settle(func: &mut Function, branch: Inst, slot: usize) {
    let edge = Edge { branch, slot };
    let target = edge.target(func);
    let args: Vec<BlockArg> = edge.args(func).collect();
    func.replace(branch).jump(target, &args);
}
