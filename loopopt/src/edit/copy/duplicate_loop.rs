//! A loop twice, and a branch before them that says which of the two runs.
//!
//! ```text
//! preheader              preheader
//!     │                  /       \
//!     ▼                 ▼         ▼
//!   loop ◄┐    ──►    loop ◄┐   copy ◄┐
//!     └───┘             └───┘     └───┘
//!     │                   \       /
//!     ▼                    ▼     ▼
//!    exit                    exit
//! ```
//!
//! Edges that leave the loop leave its copy for the same blocks: with closed form, that is all there is to it.

use crate::analysis::cfg::edges::Edge;
use crate::edit::inst::clone::{Copies, clone_blocks};
use cranelift_codegen::ir::{Block, BlockArg, Function, InstBuilder, Value};

/// Copies the loop of `blocks`, in dominance order with the header first. `entry`, the jump of the preheader, becomes a branch
/// to the loop if `cond` is not zero, and to its copy if it is.
pub(crate) fn duplicate_loop(func: &mut Function, blocks: &[Block], entry: Edge, cond: Value) -> Copies {
    let copies = clone_blocks(func, blocks);
    let args: Vec<BlockArg> = entry.args(func).collect();
    func.replace(entry.branch).brif(cond, blocks[0], &args, copies.block(blocks[0]), &args);
    copies
}
