//! Where the definitions of a variable meet: on the iterated dominance frontier of their blocks.
//!
//! ```text
//!   block1 (def)   block2 (def)
//!          \       /
//!           block3               here it can be either: block3 gets a parameter
//! ```
//!
//! The frontier of a block holds the blocks that it does not dominate, but one of whose predecessors it does (Cytron et
//! al., "Efficiently computing static single assignment form and the control dependence graph", 1991; computed from the
//! blocks where ways meet, as in Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm", 2001).

use crate::edit::TooManyParams;
use crate::fault::fault;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::Block;
use std::collections::BTreeSet;

/// The dominance frontiers of blocks.
pub(crate) struct Frontier(FxHashMap<Block, Vec<Block>>);

impl Frontier {
    /// The frontiers as far as they consist of `meets`, which must not be named twice. In nests that are made to be slow
    /// they can be as large as the square of the number of blocks; fails if they are larger than `max`.
    pub(crate) fn new(
        cfg: &ControlFlowGraph,
        domtree: &DominatorTree,
        meets: impl IntoIterator<Item = Block>,
        max: usize,
    ) -> Result<Self, TooManyParams> {
        let mut frontiers = FxHashMap::<_, Vec<_>>::default();
        let mut size = 0;
        for meet in meets {
            if cfg.pred_iter(meet).take(2).count() < 2 {
                continue;
            }
            let stop = domtree.idom(meet);
            for pred in cfg.pred_iter(meet) {
                let mut runner = Some(pred.block);
                while let Some(block) = runner.filter(|_| runner != stop) {
                    let frontier = frontiers.entry(block).or_default();
                    if frontier.last() == Some(&meet) {
                        break;
                    }
                    frontier.push(meet);
                    size += 1;
                    runner = domtree.idom(block);
                }
            }
            if size > max {
                return Err(TooManyParams);
            }
        }
        Ok(Self(frontiers))
    }

    /// The live blocks where a variable that is defined in the blocks `defs` needs a parameter.
    pub(crate) fn meets(
        &self,
        defs: impl IntoIterator<Item = Block>,
        is_live: impl Fn(Block) -> bool,
    ) -> BTreeSet<Block> {
        let mut work: Vec<_> = defs.into_iter().collect();
        let mut meets = BTreeSet::new();
        while let Some(block) = work.pop() {
            for &meet in self.0.get(&block).into_iter().flatten().filter(|_| !fault!(NoMeet)) {
                if is_live(meet) && meets.insert(meet) {
                    work.push(meet);
                }
            }
        }
        meets
    }
}
