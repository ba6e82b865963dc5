//! The loop forest: all natural loops of a function with their blocks, entries, latches and exits.
//!
//! ```text
//!        entering block          preheader: the only entering block, if it ends in a plain jump
//!              │ entry edge
//!              ▼
//!        ┌── header ◄──┐         dominates the loop
//!        │     │       │
//!        │    ...      │ back edge
//!        │     │       │
//!        │   latch ────┘         source of a back edge
//!        │     │
//!   exit edges │                 from an exiting block inside to an exit block outside
//!        ▼     ▼
//! ```
//!
//! Loops, their nesting and their blocks are the same as in Cranelift's `LoopAnalysis`, which works in the same way; this module adds
//! what that lacks, and looks at each edge into a block once for both. Blocks are numbered so that the blocks of each loop, those
//! of its inner loops included, are contiguous: membership is one comparison and the whole forest takes memory linear in the number
//! of blocks.
//!
//! A cycle that can be entered at more than one block has no header. Such irreducible cycles are found, named by their
//! entries, and are no loops of the forest.

use crate::analysis::cfg::edges::{Edge, EdgesByTarget, destinations, edges_and_targets, edges_between, edges_into};
use crate::analysis::cfg::handlers::NamedBlocks;
use crate::analysis::cfg::jumps::jump_target;
use crate::analysis::cfg::jumps::leads_to_failure;
use crate::analysis::inst::effects::is_marker;
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::{
    EntityRef, EntitySet, PrimaryMap, SecondaryMap, entity_impl, packed_option::PackedOption,
};
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Function, Inst, Opcode, Value, ValueDef};
use cranelift_codegen::{FxHashMap, FxHashSet};
use std::cell::OnceCell;
use std::cmp::Reverse;
use std::ops::Range;

/// A loop of a [`LoopForest`]. Dies with the forest: across an edit, remember the header block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Loop(u32);
entity_impl!(Loop, "loop");

/// What is known of one loop.
#[derive(Clone, Debug)]
pub struct LoopData {
    /// The block that dominates the loop and that all back edges enter.
    pub header: Block,
    /// The next outer loop.
    pub parent: Option<Loop>,
    /// 1 for an outermost loop, one more for each enclosing loop.
    pub depth: u32,
    /// The edges that enter the header from outside.
    pub entries: Vec<Edge>,
    /// The back edges: the edges that enter the header from inside.
    pub back_edges: Vec<Edge>,
    /// The edges that leave the loop, in the order of the blocks that they leave.
    pub exits: Vec<Edge>,
    range: Range<usize>,
}

/// Numbers of blocks, while loops are laid out.
#[derive(Clone, Copy, Default)]
struct Size {
    /// Blocks of a loop that are in no inner loop.
    own: usize,
    /// All of its blocks.
    total: usize,
    /// Where its next inner loop starts.
    next_free: usize,
}

/// The block in which `value` is defined. Values whose instruction is in no block have none.
pub fn def_block(func: &Function, value: Value) -> Option<Block> {
    match func.dfg.value_def(value) {
        ValueDef::Param(block, _) => Some(block),
        ValueDef::Result(inst, _) => func.layout.inst_block(inst),
        ValueDef::Union(..) => None,
    }
}

/// The values that `block` defines: its parameters, and the results of its instructions.
pub fn defined_in(func: &Function, block: Block) -> impl Iterator<Item = Value> + use<'_> {
    let results = func.layout.block_insts(block).flat_map(|inst| func.dfg.inst_results(inst));
    func.dfg.block_params(block).iter().chain(results).copied()
}

/// All natural loops of a function.
#[derive(Clone, Debug)]
pub struct LoopForest {
    /// Outer loops before their inner loops.
    loops: PrimaryMap<Loop, LoopData>,
    innermost: SecondaryMap<Block, PackedOption<Loop>>,
    /// The blocks inside loops, those of a loop contiguous.
    blocks: Vec<Block>,
    irreducible: Vec<Block>,
    /// Blocks between both ends of an edge that goes back to such an entry, in the traversal.
    around_irreducible: EntitySet<Block>,
    /// An entry of an irreducible cycle in each loop that holds one.
    irreducible_in: SecondaryMap<Loop, PackedOption<Block>>,
    named: NamedBlocks,
    /// All edges, once one of them is asked for.
    edges: OnceCell<EdgesByTarget>,
    /// Whether loops were left out.
    is_part: bool,
    /// The forest with them, once that is asked for.
    whole: OnceCell<Box<Self>>,
}

impl LoopForest {
    /// Finds the loops of a function without unreachable blocks. `cfg` and `domtree` must be those of `func`.
    ///
    /// Time is linear in the edges, times the nesting depth for those that leave loops.
    pub fn new(func: &Function, cfg: &ControlFlowGraph, domtree: &DominatorTree) -> Self {
        Self::without(func, (cfg, domtree), NamedBlocks::of(func), &FxHashSet::default())
    }

    /// The same without the loops of the headers `skipped` that are in no other loop, if it is known which blocks are named.
    pub(crate) fn without(
        func: &Function,
        (cfg, domtree): (&ControlFlowGraph, &DominatorTree),
        named: NamedBlocks,
        skipped: &FxHashSet<Block>,
    ) -> Self {
        let mut forest = Self::with_headers(func, (cfg, domtree), named.clone(), skipped);
        forest.find_members(func, cfg);
        // If a cycle with two entries has lost one of them, it is a loop, and no analysis may overlook a loop that was skipped inside of it.
        if skipped.iter().any(|&header| forest.innermost(header).is_some()) {
            let rest = skipped.iter().copied().filter(|&header| forest.innermost(header).is_none()).collect();
            forest = Self::with_headers(func, (cfg, domtree), named, &rest);
            forest.find_members(func, cfg);
        }
        forest.lay_out(domtree);
        forest.find_exits(func);
        forest.find_irreducible();
        forest.is_part = !skipped.is_empty();
        forest
    }

    /// All loops, also those that were left out of this forest: the program may wait in one of them. The graphs must still be those of `func`.
    pub fn whole(&self, func: &Function, (cfg, domtree): (&ControlFlowGraph, &DominatorTree)) -> &Self {
        if !self.is_part {
            return self;
        }
        let make = || Box::new(Self::without(func, (cfg, domtree), self.named.clone(), &FxHashSet::default()));
        self.whole.get_or_init(make)
    }

    /// One loop for each block that a back edge enters and that is not skipped, outer loops first, with no other block yet. And the
    /// irreducible cycles: targets of edges that go backwards in the traversal to a block that does not dominate their source.
    fn with_headers(
        func: &Function,
        (cfg, domtree): (&ControlFlowGraph, &DominatorTree),
        named: NamedBlocks,
        skipped: &FxHashSet<Block>,
    ) -> Self {
        let mut seen = EntitySet::<Block>::with_capacity(func.dfg.num_blocks());
        let (mut headers, mut irreducible) = (EntitySet::<Block>::with_capacity(func.dfg.num_blocks()), Vec::new());
        for &block in domtree.cfg_rpo() {
            seen.insert(block);
            let Some(branch) = func.layout.last_inst(block) else { continue };
            for call in destinations(func, branch) {
                let target = call.block(&func.dfg.value_lists);
                if !seen.contains(target) {
                    continue;
                }
                if !domtree.block_dominates(target, block) {
                    irreducible.push((target, block));
                } else if !skipped.contains(&target) {
                    headers.insert(target);
                }
            }
        }
        let around_irreducible = between(domtree, &irreducible);
        let mut irreducible: Vec<_> = irreducible.into_iter().map(|(target, _)| target).collect();
        irreducible.sort_unstable();
        irreducible.dedup();

        let mut loops = PrimaryMap::<Loop, LoopData>::new();
        let mut innermost = SecondaryMap::<Block, PackedOption<Loop>>::new();
        innermost.resize(func.dfg.num_blocks());
        for &header in domtree.cfg_rpo().filter(|&&block| headers.contains(block)) {
            let (mut back_edges, mut entries) = (Vec::with_capacity(1), Vec::with_capacity(1));
            for pred in cfg.pred_iter(header) {
                let comes_back = domtree.block_dominates(header, pred.block);
                let edges = if comes_back { &mut back_edges } else { &mut entries };
                edges.extend(edges_between(func, pred.inst, header));
            }
            let (parent, depth, exits, range) = (None, 1, Vec::new(), 0..0);
            innermost[header] =
                loops.push(LoopData { header, parent, depth, entries, back_edges, exits, range }).into();
        }
        Self {
            loops,
            innermost,
            blocks: Vec::new(),
            irreducible,
            around_irreducible,
            irreducible_in: SecondaryMap::new(),
            named,
            edges: OnceCell::new(),
            is_part: false,
            whole: OnceCell::new(),
        }
    }

    /// Finds the blocks of each loop, backwards from its back edges, and which loop is in which. Inner loops come first, and a loop
    /// that is complete is passed in one step, from its header on.
    fn find_members(&mut self, func: &Function, cfg: &ControlFlowGraph) {
        let mut stack = Vec::with_capacity(16);
        for lp in self.loops.keys().rev() {
            stack.extend(self.loops[lp].back_edges.iter().map(|edge| edge.source(func)));
            while let Some(block) = stack.pop() {
                let next = match self.innermost[block].expand() {
                    None => {
                        self.innermost[block] = lp.into();
                        block
                    }
                    Some(inner) => {
                        let outermost = self.outermost(inner);
                        if outermost == lp {
                            continue;
                        }
                        self.loops[outermost].parent = Some(lp);
                        self.loops[outermost].header
                    }
                };
                stack.extend(cfg.pred_iter(next).map(|pred| pred.block));
            }
        }
        for lp in self.loops.keys() {
            if let Some(parent) = self.loops[lp].parent {
                self.loops[lp].depth = self.loops[parent].depth + 1;
            }
        }
    }

    /// The outermost of the enclosing loops of `lp` that are known by now, itself if there is none.
    pub fn outermost(&self, lp: Loop) -> Loop {
        let mut outermost = lp;
        while let Some(parent) = self.loops[outermost].parent {
            outermost = parent;
        }
        outermost
    }

    /// Lays out the blocks so that each loop is contiguous.
    fn lay_out(&mut self, domtree: &DominatorTree) {
        let Self { loops, innermost, .. } = self;
        let mut sizes = vec![Size::default(); loops.len()];
        for &block in domtree.cfg_rpo() {
            if let Some(lp) = innermost[block].expand() {
                sizes[lp.index()].own += 1;
            }
        }
        for lp in loops.keys().rev() {
            sizes[lp.index()].total += sizes[lp.index()].own;
            if let Some(parent) = loops[lp].parent {
                sizes[parent.index()].total += sizes[lp.index()].total;
            }
        }

        // A loop's range starts with its own blocks, then those of its inner loops follow.
        let mut next_root = 0;
        for lp in loops.keys() {
            let Size { own, total, .. } = sizes[lp.index()];
            let cursor = loops[lp].parent.map_or(&mut next_root, |parent| &mut sizes[parent.index()].next_free);
            let range = *cursor..*cursor + total;
            *cursor = range.end;
            sizes[lp.index()].next_free = range.start + own;
            loops[lp].range = range;
        }
        let mut blocks = vec![Block::from_u32(0); next_root];
        for &block in domtree.cfg_postorder() {
            if let Some(lp) = innermost[block].expand() {
                let own = &mut sizes[lp.index()].own;
                *own -= 1;
                blocks[loops[lp].range.start + *own] = block;
            }
        }
        self.blocks = blocks;
    }

    fn find_exits(&mut self, func: &Function) {
        for index in 0..self.blocks.len() {
            let innermost = self.innermost(self.blocks[index]);
            for (edge, target) in edges_and_targets(func, self.blocks[index]) {
                let mut lp = innermost;
                while let Some(left) = lp.filter(|&lp| !self.contains(lp, target)) {
                    self.loops[left].exits.push(edge);
                    lp = self.loops[left].parent;
                }
            }
        }
    }

    fn find_irreducible(&mut self) {
        for &entry in &self.irreducible {
            let mut around = self.innermost(entry);
            while let Some(lp) = around.filter(|&lp| self.irreducible_in[lp].is_none()) {
                self.irreducible_in[lp] = entry.into();
                around = self.loops[lp].parent;
            }
        }
    }

    /// An entry of an irreducible cycle in the loop, if it holds one.
    pub fn irreducible_in(&self, lp: Loop) -> Option<Block> {
        self.irreducible_in[lp].expand()
    }

    /// All loops, outer loops before their inner loops.
    pub fn loops(&self) -> impl DoubleEndedIterator<Item = Loop> + ExactSizeIterator + use<> {
        self.loops.keys()
    }

    /// How many loops there are.
    pub fn len(&self) -> usize {
        self.loops.len()
    }

    /// Whether there is no loop.
    pub fn is_empty(&self) -> bool {
        self.loops.is_empty()
    }

    /// What is known of a loop.
    pub fn data(&self, lp: Loop) -> &LoopData {
        &self.loops[lp]
    }

    /// The innermost loop that holds `block`.
    pub fn innermost(&self, block: Block) -> Option<Loop> {
        self.innermost[block].expand()
    }

    /// For each loop, how many loops deep the deepest nest inside it is: 0 if there is none.
    pub fn heights(&self) -> SecondaryMap<Loop, usize> {
        let mut heights = SecondaryMap::<_, usize>::with_capacity(self.loops.len());
        for lp in self.loops.keys().rev() {
            if let Some(parent) = self.loops[lp].parent {
                heights[parent] = heights[parent].max(heights[lp] + 1);
            }
        }
        heights
    }

    /// The loop of which `block` is the header.
    pub fn loop_of_header(&self, block: Block) -> Option<Loop> {
        self.innermost(block).filter(|&lp| self.loops[lp].header == block)
    }

    /// Whether `block` is in `lp` or in one of its inner loops.
    pub fn contains(&self, lp: Loop, block: Block) -> bool {
        self.innermost(block).is_some_and(|inner| self.encloses(lp, inner))
    }

    /// Whether `inner` is `outer` or inside it.
    pub fn encloses(&self, outer: Loop, inner: Loop) -> bool {
        self.loops[outer].range.contains(&self.loops[inner].range.start)
    }

    /// Whether `value` is defined in `lp`, or in one of its inner loops.
    pub fn defines(&self, func: &Function, lp: Loop, value: Value) -> bool {
        def_block(func, value).is_some_and(|home| self.contains(lp, home))
    }

    /// Whether `value` is defined outside of `lp`, so that it is the same in each iteration.
    pub fn is_from_outside(&self, func: &Function, lp: Loop, value: Value) -> bool {
        def_block(func, value).is_some_and(|home| !self.contains(lp, home))
    }

    /// The blocks of a loop and of its inner loops. The header comes first.
    pub fn blocks(&self, lp: Loop) -> &[Block] {
        &self.blocks[self.loops[lp].range.clone()]
    }

    /// The blocks of a loop that are in no inner loop.
    pub fn own_blocks(&self, lp: Loop) -> impl Iterator<Item = Block> + '_ {
        self.blocks(lp).iter().copied().take_while(move |&block| self.innermost(block) == Some(lp))
    }

    /// Whether there is no inner loop.
    pub fn is_innermost(&self, lp: Loop) -> bool {
        // Those of inner loops come after its own.
        self.blocks(lp).last().is_none_or(|&block| self.innermost(block) == Some(lp))
    }

    /// Whether an edge to `block` leaves all loops for a trap or for cold code, as that of a check does. A rare path back to an enclosing loop does not.
    pub fn fails_at(&self, func: &Function, block: Block) -> bool {
        self.innermost(block).is_none() && leads_to_failure(func, block)
    }

    /// Whether the loop is left at two places that are no failures: its count says nothing of one of them.
    pub fn may_end_early(&self, func: &Function, lp: Loop) -> bool {
        let exits = self.data(lp).exits.iter().filter(|edge| !leads_to_failure(func, edge.target(func)));
        let mut branches = exits.map(|edge| edge.branch);
        let first = branches.next();
        branches.any(|branch| Some(branch) != first)
    }

    /// The edges that enter `block`, in the order of [`edges_into`]. The first call looks at each edge; from then on, it does
    /// not matter how many targets a branch has.
    pub fn edges_into(&self, func: &Function, cfg: &ControlFlowGraph, block: Block) -> &[Edge] {
        let edges = self.edges.get_or_init(|| EdgesByTarget::new(func, |_| true)).entering(block);
        debug_assert!(
            edges.iter().copied().eq(edges_into(func, cfg, block)),
            "the edges are those of another function"
        );
        edges
    }

    /// The block from which alone the loop is entered, by a plain jump: code put there runs once before the loop, and
    /// only if the loop runs.
    pub fn preheader(&self, func: &Function, lp: Loop) -> Option<Block> {
        let [entry] = self.loops[lp].entries[..] else {
            return None;
        };
        let block = entry.source(func);
        jump_target(func, block).map(|_| block)
    }

    /// The source of the back edge, if there is one only.
    pub fn latch(&self, func: &Function, lp: Loop) -> Option<Block> {
        let [back_edge] = self.loops[lp].back_edges[..] else {
            return None;
        };
        Some(back_edge.source(func))
    }

    /// Whether each iteration of `lp` that comes to its end runs through `block`.
    pub fn is_in_each_iteration(&self, func: &Function, domtree: &DominatorTree, lp: Loop, block: Block) -> bool {
        let mut latches = self.data(lp).back_edges.iter().map(|edge| edge.source(func));
        latches.all(|latch| domtree.block_dominates(block, latch))
    }

    /// Whether `block` ends in a `br_table` on what `lp` computes.
    pub fn dispatches_at(&self, func: &Function, lp: Loop, block: Block) -> bool {
        func.layout.last_inst(block).is_some_and(|branch| {
            func.dfg.insts[branch].opcode() == Opcode::BrTable && self.defines(func, lp, func.dfg.inst_args(branch)[0])
        })
    }

    /// Whether an instruction names `block`, which then has to stay where it is.
    pub fn is_named(&self, block: Block) -> bool {
        self.named.contains(block)
    }

    /// Whether a second copy of `inst` elsewhere is the same to everyone as running `inst` twice. Not so for markers that
    /// stand for one place in the program, and for calls with a handler whose address is taken.
    pub fn is_duplicable(&self, func: &Function, inst: Inst) -> bool {
        let ends_named = || {
            let is_try_call = func.dfg.insts[inst].exception_table().is_some();
            is_try_call && func.layout.inst_block(inst).is_some_and(|block| self.is_named(block))
        };
        !is_marker(func, inst) && !ends_named()
    }

    /// Whether a cycle without a header may go through `block`. One that a loop of the forest contains as a whole is [in that](Self::irreducible_in).
    ///
    /// For each block of a cycle, an edge of it goes back in the traversal past the block, or to it. If the target of one of these dominates its source, the
    /// cycle is in the loop of that edge. So it is in a loop, or each block is between both ends of an edge that enters an irreducible cycle.
    pub fn may_be_in_irreducible(&self, block: Block) -> bool {
        self.around_irreducible.contains(block)
    }

    /// The entries of irreducible cycles: blocks that a cycle goes through and that do not dominate it.
    pub fn irreducible(&self) -> &[Block] {
        &self.irreducible
    }
}

/// The blocks between both ends of edges that go back to a `target` from a `source` after it in the traversal, these ends included.
fn between(domtree: &DominatorTree, edges: &[(Block, Block)]) -> EntitySet<Block> {
    let mut found = EntitySet::new();
    if edges.is_empty() {
        return found;
    }
    let places: FxHashMap<Block, usize> = domtree.cfg_rpo().enumerate().map(|(place, &block)| (block, place)).collect();
    let mut first = FxHashMap::<Block, usize>::default();
    for (target, source) in edges {
        let first = first.entry(*source).or_insert(usize::MAX);
        *first = places[target].min(*first);
    }
    let mut until = usize::MAX;
    for block in domtree.cfg_postorder() {
        until = first.get(block).copied().unwrap_or(until).min(until);
        if places[block] >= until {
            found.insert(*block);
        }
    }
    found
}

/// The back edges of all loops with the headers that they enter, inner loops before outer ones. Needs no forest.
pub fn back_edges(func: &Function, domtree: &DominatorTree) -> Vec<(Block, Edge)> {
    let mut places = SecondaryMap::<Block, u32>::with_capacity(func.dfg.num_blocks());
    let mut found = Vec::new();
    for (place, &block) in (1..).zip(domtree.cfg_rpo()) {
        places[block] = place;
        for (edge, target) in edges_and_targets(func, block) {
            // What has no place yet comes later.
            if places[target] != 0 && domtree.block_dominates(target, block) {
                found.push((target, edge));
            }
        }
    }
    found.sort_unstable_by_key(|&(header, edge)| (Reverse(places[header]), edge));
    found
}

/// The headers and back edges of all loops, one for each block that ends one: that of the inner loop, if it ends two.
pub fn latches(func: &Function, domtree: &DominatorTree) -> Vec<(Block, Edge)> {
    let mut seen = EntitySet::with_capacity(func.dfg.num_blocks());
    let mut latches = back_edges(func, domtree);
    latches.retain(|(_, edge)| seen.insert(edge.source(func)));
    latches
}

/// Whether `func` may have a cycle: false only if it has none. One look at each branch, no other analysis needed.
///
/// In any order of the blocks, a cycle has an edge that goes to an earlier block or to its own.
pub fn may_have_cycle(func: &Function) -> bool {
    let mut seen = EntitySet::<Block>::with_capacity(func.dfg.num_blocks());
    for block in &func.layout {
        seen.insert(block);
        if edges_and_targets(func, block).any(|(_, target)| seen.contains(target)) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{block, context, forest};

    fn loop_at(forest: &LoopForest, header: u32) -> Loop {
        forest.loop_of_header(block(header)).expect("a loop with this header")
    }

    #[test]
    fn nest_with_exits_that_leave_two_loops() {
        let ctx = context(
            "function %f(i64) {
            block0(v0: i64):
                jump block1
            block1:
                brif v0, block2, block9
            block2:
                brif v0, block3, block4
            block3:
                brif v0, block2, block9
            block4:
                jump block1
            block9:
                return
            }",
        );
        let forest = forest(&ctx);
        let (outer, inner) = (loop_at(&forest, 1), loop_at(&forest, 2));
        assert_eq!(forest.len(), 2);
        assert_eq!(forest.data(inner).parent, Some(outer));
        assert_eq!((forest.data(outer).depth, forest.data(inner).depth), (1, 2));
        assert_eq!(forest.blocks(outer)[0], block(1));
        assert_eq!(forest.blocks(outer).len(), 4);
        assert_eq!(forest.blocks(inner), [block(2), block(3)]);
        assert!(forest.contains(outer, block(3)) && !forest.contains(inner, block(4)));
        assert!(!forest.contains(outer, block(9)));
        let targets = |lp| forest.data(lp).exits.iter().map(|edge| edge.target(&ctx.func)).collect::<Vec<_>>();
        assert_eq!(targets(inner), [block(4), block(9)]);
        assert_eq!(targets(outer), [block(9), block(9)]);
        assert_eq!(forest.preheader(&ctx.func, outer), Some(block(0)));
        assert_eq!(forest.preheader(&ctx.func, inner), None, "block1 branches");
        assert_eq!(forest.latch(&ctx.func, outer), Some(block(4)));
    }

    #[test]
    fn each_destination_is_an_edge() {
        let ctx = context(
            "function %f(i32) {
            block0(v0: i32):
                jump block1
            block1:
                br_table v0, block2, [block1, block1, block3, block2]
            block2:
                return
            block3:
                return
            }",
        );
        let forest = forest(&ctx);
        let data = forest.data(loop_at(&forest, 1));
        assert_eq!(data.back_edges.len(), 2);
        assert_eq!(data.exits.len(), 3);
        assert_eq!(forest.latch(&ctx.func, loop_at(&forest, 1)), None);
    }

    #[test]
    fn exits_of_try_call() {
        let ctx = context(
            "function %f(i64) {
                sig0 = (i64) -> i64 system_v
                fn0 = %g(i64) -> i64 system_v
            block0(v0: i64):
                jump block1
            block1:
                try_call fn0(v0), sig0, block1, [ tag0: block2(exn0), default: block2(exn0) ]
            block2(v1: i64):
                return
            }",
        );
        let forest = forest(&ctx);
        let data = forest.data(loop_at(&forest, 1));
        assert_eq!((data.back_edges.len(), data.exits.len()), (1, 2));
    }

    #[test]
    fn irreducible_cycles_are_no_loops() {
        let ctx = context(
            "function %f(i64) {
            block0(v0: i64):
                brif v0, block1, block2
            block1:
                jump block2
            block2:
                brif v0, block1, block3
            block3:
                return
            }",
        );
        let forest = forest(&ctx);
        assert!(forest.is_empty());
        assert_eq!(forest.irreducible().len(), 1);
        assert!(may_have_cycle(&ctx.func));
    }

    #[test]
    fn straight_code_has_no_cycle() {
        let ctx =
            context("function %f(i64) { block0(v0: i64): brif v0, block1, block2 block1: jump block2 block2: return }");
        assert!(!may_have_cycle(&ctx.func));
        assert!(forest(&ctx).is_empty());
    }
}
