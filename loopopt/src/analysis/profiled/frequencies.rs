//! How often blocks ran.

use crate::analysis::cfg::loops::LoopForest;
use crate::profile::{LoopProfile, LoopSites};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::Block;

/// How often each block of a loop ran when the profile was recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frequencies(SecondaryMap<Block, u64>);

impl Frequencies {
    /// As was recorded of these loops.
    pub(crate) fn of(forest: &LoopForest, recorded: &[(LoopSites, LoopProfile)]) -> Self {
        let mut counts = SecondaryMap::new();
        for (sites, recorded) in recorded {
            let lp = forest.loop_of_header(sites.header).expect("the header of a loop");
            let iterations = recorded.back_edges.saturating_add(recorded.entries());
            forest.own_blocks(lp).for_each(|block| counts[block] = iterations);
            sites.blocks.iter().zip(&recorded.blocks).for_each(|(&block, &count)| counts[block] = count);
        }
        Self(counts)
    }

    /// How often a block of a loop ran.
    pub(crate) fn of_block(&self, block: Block) -> u64 {
        self.0[block]
    }
}
