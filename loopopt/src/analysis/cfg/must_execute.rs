//! What can happen between the entry of a loop and an instruction in the first iteration.
//!
//! ```text
//! preheader
//!     │
//!   header ◄─┐   certain
//!   /    \   │
//!  x      y  │   not certain; what they do may come before z
//!   \    /   │
//!     z ─────┘   certain: dominates the back edge, and each block that leaves the loop
//!     │
//!    exit
//! ```
//!
//! An instruction that is certain runs on each entry of the loop. If nothing before it can be observed, then it may as well run
//! in the preheader, even if it traps: it is the first thing that anyone notices. (The first-trap rule: WebKit's B3 LICM.)
//!
//! Blocks are visited in reverse postorder, so that all that can come before a block has been seen when it is its turn.

use crate::analysis::cfg::edges::Edge;
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::inst::effects::{Effects, calls};
use crate::fault::fault;
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, Function, Inst};

/// A walk through the first iteration of a loop.
pub struct FirstIteration<'a> {
    forest: &'a LoopForest,
    domtree: &'a DominatorTree,
    lp: Loop,
    /// The nearest block that dominates the back edges and all blocks that leave.
    last_certain: Block,
    /// The first instruction on the path that can be observed.
    observable: Option<Inst>,
    /// The first thing on the path after which the rest may not run.
    interruption: Option<Interruption>,
}

/// Why what follows may not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// The instruction may trap, or not return.
    Inst(Inst),
    /// The loop of this header may not end.
    Loop(Block),
}

impl<'a> FirstIteration<'a> {
    /// At the start of the header of `lp`.
    pub fn new(func: &Function, forest: &'a LoopForest, domtree: &'a DominatorTree, lp: Loop) -> Self {
        Self::leaving_by(func, (forest, domtree), lp, |_| true)
    }

    /// The same if no exit is ever taken but those of which `leaves` is true.
    pub fn leaving_by(
        func: &Function,
        (forest, domtree): (&'a LoopForest, &'a DominatorTree),
        lp: Loop,
        leaves: impl Fn(Edge) -> bool,
    ) -> Self {
        let data = forest.data(lp);
        // In an irreducible cycle no order of the blocks is the order in which they run.
        let mut last_certain = forest.irreducible_in(lp).map(|_| data.header);
        for edge in data.back_edges.iter().chain(data.exits.iter().filter(|&&exit| leaves(exit))) {
            let source = edge.source(func);
            last_certain = Some(last_certain.map_or(source, |last| common_dominator(domtree, last, source)));
        }
        let last_certain = last_certain.unwrap_or(data.header);
        Self { forest, domtree, lp, last_certain, observable: None, interruption: None }
    }

    /// Advances to `block`. Blocks have to come in reverse postorder.
    pub fn enter(&mut self, block: Block) {
        let inner = self.forest.loop_of_header(block).filter(|&inner| inner != self.lp);
        if inner.is_some() && self.interruption.is_none() {
            self.interruption = Some(Interruption::Loop(block));
        }
    }

    /// Advances past `inst`, which stays where it is.
    pub fn pass(&mut self, func: &Function, inst: Inst) {
        self.pass_effects(inst, Effects::of(func, inst));
    }

    /// The same, with the effects of `inst`.
    pub fn pass_effects(&mut self, inst: Inst, effects: Effects) {
        let seen = effects.traps || effects.writes || effects.fences || effects.diverges;
        if seen && !fault!(NothingObserves) {
            self.observable.get_or_insert(inst);
        }
        if effects.traps || effects.diverges {
            self.interruption.get_or_insert(Interruption::Inst(inst));
        }
    }

    /// Whether `block` runs on each entry of the loop, unless what came before traps or does not end.
    pub fn reaches(&self, block: Block) -> bool {
        fault!(EveryBlockRuns) || self.domtree.block_dominates(block, self.last_certain)
    }

    /// What came before, since the entry of the loop, that can be observed.
    pub fn observable(&self) -> Option<Inst> {
        self.observable
    }

    /// What came before, since the entry of the loop, after which the rest may not run.
    pub fn interruption(&self) -> Option<Interruption> {
        self.interruption
    }
}

/// Whether each iteration that ends in `latch` calls a function in one of `blocks`.
pub(crate) fn calls_each_time(func: &Function, domtree: &DominatorTree, (blocks, latch): (&[Block], Block)) -> bool {
    blocks.iter().any(|&block| calls(func, block) && domtree.block_dominates(block, latch))
}

/// The nearest block that dominates both.
fn common_dominator(domtree: &DominatorTree, mut a: Block, b: Block) -> Block {
    while !domtree.block_dominates(a, b) {
        a = domtree.idom(a).expect("the entry block dominates all");
    }
    a
}

/// Where each block of a function is in reverse postorder.
#[derive(Clone, Debug)]
pub struct Order(SecondaryMap<Block, u32>);

impl Order {
    /// The order of all blocks. Linear in their number.
    pub fn of(func: &Function, domtree: &DominatorTree) -> Self {
        let mut positions = SecondaryMap::new();
        positions.resize(func.dfg.num_blocks());
        for (index, &block) in (0..).zip(domtree.cfg_rpo()) {
            positions[block] = index;
        }
        Self(positions)
    }

    /// The place of `block`.
    pub fn position(&self, block: Block) -> u32 {
        self.0[block]
    }

    /// The same blocks in this order.
    pub fn sorted(&self, blocks: &[Block]) -> Vec<Block> {
        let mut blocks = blocks.to_vec();
        blocks.sort_unstable_by_key(|&block| self.0[block]);
        blocks
    }
}
