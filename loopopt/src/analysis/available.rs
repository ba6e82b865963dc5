//! Loads of which the value is still what memory holds at the end of a block.
//!
//! ```text
//! block1:
//!     v1 = load.i64 v0       available
//!     v2 = load.i64 v3       not: the store may be to it
//!     store v4, v3
//!     brif v5, block2, block9
//! block2:                    entered from block1 alone
//!     jump block3            ◄── the end
//! ```
//!
//! The guard of a rotated loop has often done the first load of the loop.

use crate::analysis::effects::Effects;
use crate::analysis::memory::{Access, PrivateSlots};
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Function, Inst};

/// Instructions that are looked at. A guard and the code before it that computes what it compares have fewer.
const MAX_INSTS: usize = 64;

/// The loads that are available at the end of `block`, found on the way up as long as each block has one predecessor.
pub fn available_loads(func: &Function, cfg: &ControlFlowGraph, block: Block, private: &PrivateSlots) -> Vec<Inst> {
    let (mut loads, mut stores) = (Vec::new(), Vec::<Access>::new());
    let mut seen = 0;
    let mut here = Some(block);
    while let Some(block) = here {
        for inst in func.layout.block_insts(block).rev() {
            seen += 1;
            if seen > MAX_INSTS || Effects::of(func, inst).fences {
                return loads;
            }
            match Access::of(func, inst) {
                Some(store) if store.stored.is_some() => stores.push(store),
                Some(load) if !stores.iter().any(|store| store.may_alias(&load, private)) => loads.push(inst),
                _ => {}
            }
        }
        let mut preds = cfg.pred_iter(block);
        here = match (preds.next(), preds.next()) {
            (Some(pred), None) => Some(pred.block),
            _ => None,
        };
    }
    loads
}
