//! What a cell holds at each place of one iteration: the access that has read or written it last.
//!
//! ```text
//! header(v9: i64):
//!     v1 = load.i32 v9+4
//!     brif v2, block1, block2
//! block1:                       from here on what v1 has read,
//!     store v3, v9+4            from here on what is stored
//!     jump block3
//! block2:
//!     jump block3
//! block3:                       one or the other: they are joined
//! ```
//!
//! The address is made of values of the iteration, so that it is the same throughout. Inner loops may not write the cell, and leave it as it is.

use super::Here;
use crate::fault::fault;
use cranelift_codegen::ir::{Block, Inst};
use cranelift_codegen::{FxHashMap, FxHashSet};

/// What a cell holds at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// What it held when the iteration began.
    AtStart,
    /// What this access has read or written.
    Accessed(Inst),
    /// One of several, by the path on which this block was reached.
    Joined(Block),
    /// This store may have changed it.
    Overwritten(Inst),
}

/// What one cell holds in an iteration.
pub(super) struct Flow {
    /// At the end of each block of the loop.
    at_end: FxHashMap<Block, Holds>,
    /// Before the accesses that were asked about.
    pub(super) at_entry: Holds,
}

/// What is to be followed.
pub(super) struct Followed<'a> {
    /// The accesses to the cell that say what it holds, in blocks of the loop itself.
    pub(super) sources: &'a FxHashSet<Inst>,
    /// The other stores that may write it.
    pub(super) writers: &'a FxHashSet<Inst>,
    /// The access before which it is asked for.
    pub(super) at: Inst,
}

impl Flow {
    /// Linear in the size of the loop.
    pub(super) fn of(here: &Here<'_>, followed: &Followed<'_>) -> Self {
        let mut flow = Self { at_end: FxHashMap::default(), at_entry: Holds::AtStart };
        let header = here.forest.data(here.lp).header;
        for &block in here.blocks {
            let mut holds = if block == header { Holds::AtStart } else { flow.at_start(here, block) };
            for inst in here.func.layout.block_insts(block) {
                if inst == followed.at {
                    flow.at_entry = holds;
                }
                if followed.sources.contains(&inst) {
                    holds = Holds::Accessed(inst);
                } else if followed.writers.contains(&inst) {
                    holds = Holds::Overwritten(inst);
                }
            }
            flow.at_end.insert(block, holds);
        }
        flow
    }

    /// What it holds where the edges into `block` meet. What comes back in an inner loop is what went into it.
    fn at_start(&self, here: &Here<'_>, block: Block) -> Holds {
        let ends = here.cfg.pred_iter(block).filter_map(|pred| self.at_end.get(&pred.block));
        let joined = ends.copied().reduce(|a, b| match (a, b) {
            _ if a == b || fault!(OneWayForAll) => a,
            (Holds::Overwritten(_), _) => a,
            (_, Holds::Overwritten(_)) => b,
            _ => Holds::Joined(block),
        });
        joined.unwrap_or(Holds::AtStart)
    }

    /// What it holds at the end of `block`. Nothing is known of a block that is never reached.
    pub(super) fn at_end(&self, block: Block) -> Holds {
        self.at_end.get(&block).copied().unwrap_or(Holds::AtStart)
    }

    /// All that `block` may have at its end: the joins on the paths to it, and what is joined. The joins first come first.
    pub(super) fn reaching(&self, here: &Here<'_>, block: Block) -> (Vec<Block>, Vec<Holds>) {
        let (mut joins, mut found) = (Vec::new(), Vec::new());
        let mut stack = vec![self.at_end(block)];
        while let Some(holds) = stack.pop() {
            match holds {
                Holds::Joined(block) if joins.contains(&block) => {}
                Holds::Joined(block) => {
                    joins.push(block);
                    stack.extend(here.cfg.pred_iter(block).map(|pred| self.at_end(pred.block)));
                }
                _ if found.contains(&holds) => {}
                _ => found.push(holds),
            }
        }
        (joins, found)
    }
}
