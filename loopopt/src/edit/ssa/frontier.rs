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
//! blocks where paths meet, as in Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm", 2001).
//!
//! For one variable, [`meets_of_one`] finds the iterated frontier without the frontiers of all blocks, which in a nest are as large as the square of its
//! depth (Sreedhar and Gao, "A linear time algorithm for placing phi-nodes", 1995).

use crate::edit::TooManyParams;
use crate::fault::fault;
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::Block;
use cranelift_codegen::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::{BTreeSet, BinaryHeap};

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

/// How deep blocks are in a dominator tree, as far as that was asked for.
#[derive(Default)]
pub(crate) struct Levels(FxHashMap<Block, usize>);

impl Levels {
    fn of(&mut self, domtree: &DominatorTree, block: Block) -> usize {
        let (mut path, mut next) = (Vec::new(), Some(block));
        let mut level = 0;
        while let Some(block) = next {
            if let Some(&found) = self.0.get(&block) {
                level = found + 1;
                break;
            }
            path.push(block);
            next = domtree.idom(block);
        }
        for block in path.into_iter().rev() {
            self.0.insert(block, level);
            level += 1;
        }
        level.saturating_sub(1)
    }
}

/// The blocks of `live` where one variable, defined at the starts of the blocks `defs`, needs a parameter. In `live` are all blocks at whose start
/// the variable is used later, back to the definitions. Linear in these blocks and the edges into them, once the levels of the definitions are known.
pub(crate) fn meets_of_one(
    (cfg, domtree): (&ControlFlowGraph, &DominatorTree),
    levels: &mut Levels,
    defs: impl IntoIterator<Item = Block>,
    live: &FxHashSet<Block>,
) -> BTreeSet<Block> {
    // What is not live may be much more: the targets of a `br_table` that do not use the variable.
    let mut nexts = FxHashMap::<Block, SmallVec<[Block; 2]>>::default();
    let mut children = nexts.clone();
    for &block in live {
        cfg.pred_iter(block).for_each(|pred| nexts.entry(pred.block).or_default().push(block));
        domtree.idom(block).into_iter().for_each(|above| children.entry(above).or_default().push(block));
    }
    let mut roots: BinaryHeap<_> = defs.into_iter().map(|def| (levels.of(domtree, def), def)).collect();
    let (mut meets, mut visited) = (BTreeSet::new(), FxHashSet::default());
    // What is deepest in the dominator tree comes first, so that each block is visited once: what meets after it is found for the nearest root above it.
    while let Some((_, root)) = roots.pop() {
        let mut open = vec![root];
        while let Some(block) = open.pop().filter(|_| !fault!(NoMeet)) {
            if !visited.insert(block) {
                continue;
            }
            for &next in nexts.get(&block).into_iter().flatten() {
                let is_met = next == root || !domtree.block_dominates(root, next);
                if is_met && meets.insert(next) {
                    roots.push((levels.of(domtree, next), next));
                }
            }
            open.extend(children.get(&block).into_iter().flatten());
        }
    }
    meets
}
