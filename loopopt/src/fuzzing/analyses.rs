//! The analyses against their definitions, taken literally.
//!
//! * A block dominates another if the other cannot be reached without it.
//! * A back edge is one whose target dominates its source. The blocks of a loop are its header and those from which a back
//!   edge to the header can be reached without passing the header.
//! * Entries, back edges and exits of a loop are the edges that enter its header from outside and from inside, and those
//!   that leave its blocks.
//! * The cycles of a function that remain without all back edges are irreducible: strongly connected components, each of
//!   which has at least two blocks that can be entered from outside of it.

use super::generate::TestCase;
use crate::analysis::cfg::edges::{Edge, edges_from};
use crate::analysis::cfg::loops::{Loop, LoopForest, may_have_cycle};
use anyhow::{Result, ensure};
use cranelift_codegen::Context;
use cranelift_codegen::ir::{Block, Function};
use std::collections::{BTreeMap, BTreeSet};

/// Compares the analyses of all functions with the definitions.
pub(super) fn check(case: &TestCase) -> Result<()> {
    case.program.functions().iter().try_for_each(check_function)
}

fn check_function(func: &Function) -> Result<()> {
    let graph = Graph::of(func);
    let has_cycle = graph.blocks.iter().any(|&block| graph.reached(&graph.after(block), None).contains(&block));
    ensure!(may_have_cycle(func) || !has_cycle, "may_have_cycle misses a cycle");

    let mut ctx = Context::for_function(func.clone());
    ctx.flowgraph();
    let all: Vec<Block> = func.layout.blocks().filter(|block| !graph.blocks.contains(block)).collect();
    all.into_iter().for_each(|block| ctx.func.layout.remove_block_and_insts(block));
    ctx.flowgraph();
    let forest = LoopForest::new(&ctx.func, &ctx.cfg, &ctx.domtree);
    let headers: BTreeSet<Block> = graph.back_edges().map(|edge| edge.target(func)).collect();
    let found: BTreeSet<Block> = forest.loops().map(|lp| forest.data(lp).header).collect();
    ensure!(found == headers && forest.len() == headers.len(), "the headers are {headers:?}, not {found:?}");
    let natural: BTreeMap<Block, BTreeSet<Block>> =
        headers.iter().map(|&header| (header, graph.natural_loop(header))).collect();
    for lp in forest.loops() {
        check_loop(&graph, &forest, lp, &natural)?;
    }
    check_irreducible(&graph, &forest)
}

/// The graph of a function.
struct Graph<'f> {
    func: &'f Function,
    entry: Block,
    /// All blocks that can be reached.
    blocks: BTreeSet<Block>,
    /// Their edges.
    edges: Vec<Edge>,
    /// For each block, those that it dominates.
    dominated: BTreeMap<Block, BTreeSet<Block>>,
}

impl<'f> Graph<'f> {
    fn of(func: &'f Function) -> Self {
        let entry = func.layout.entry_block().expect("a function has a block");
        let (blocks, edges, dominated) = (BTreeSet::new(), Vec::new(), BTreeMap::new());
        let mut graph = Self { func, entry, blocks, edges, dominated };
        graph.blocks = graph.reached(&[entry], None);
        graph.edges = graph.blocks.iter().flat_map(|&block| edges_from(func, block)).collect();
        for &block in &graph.blocks {
            let others = graph.reached(&[entry], Some(block));
            graph.dominated.insert(block, graph.blocks.difference(&others).copied().collect());
        }
        graph
    }

    fn after(&self, block: Block) -> Vec<Block> {
        edges_from(self.func, block).map(|edge| edge.target(self.func)).collect()
    }

    /// What can be reached from these blocks, them included, without passing that one.
    fn reached(&self, from: &[Block], without: Option<Block>) -> BTreeSet<Block> {
        let mut reached = BTreeSet::new();
        let mut stack = from.to_vec();
        while let Some(block) = stack.pop() {
            if Some(block) != without && reached.insert(block) {
                stack.extend(self.after(block));
            }
        }
        reached
    }

    fn back_edges(&self) -> impl Iterator<Item = Edge> {
        let is_back = |edge: &&Edge| self.dominated[&edge.target(self.func)].contains(&edge.source(self.func));
        self.edges.iter().filter(is_back).copied()
    }

    fn natural_loop(&self, header: Block) -> BTreeSet<Block> {
        let latches: Vec<Block> = self
            .back_edges()
            .filter(|edge| edge.target(self.func) == header)
            .map(|edge| edge.source(self.func))
            .collect();
        let reaches_latch = |&&block: &&Block| {
            let reached = self.reached(&[block], Some(header));
            latches.iter().any(|latch| reached.contains(latch))
        };
        self.blocks.iter().filter(reaches_latch).copied().chain([header]).collect()
    }
}

fn check_loop(
    graph: &Graph<'_>,
    forest: &LoopForest,
    lp: Loop,
    natural: &BTreeMap<Block, BTreeSet<Block>>,
) -> Result<()> {
    let data = forest.data(lp);
    let blocks = &natural[&data.header];
    let name = format!("the loop of {}", data.header);
    let found: BTreeSet<Block> = forest.blocks(lp).iter().copied().collect();
    ensure!(found == *blocks && forest.blocks(lp).len() == blocks.len(), "{name} is {blocks:?}, not {found:?}");
    ensure!(forest.blocks(lp)[0] == data.header, "{name} does not begin with its header");
    ensure!(
        graph.blocks.iter().all(|&block| forest.contains(lp, block) == blocks.contains(&block)),
        "contains: {name}"
    );

    let inside = |block| blocks.contains(&block);
    let ends = |edge: &Edge| (edge.source(graph.func), edge.target(graph.func));
    let expect = |what: &str, found: &[Edge], expected: &dyn Fn(Block, Block) -> bool| {
        let expected: BTreeSet<Edge> =
            graph.edges.iter().filter(|edge| expected(ends(edge).0, ends(edge).1)).copied().collect();
        let is_same = expected.len() == found.len() && found.iter().all(|edge| expected.contains(edge));
        ensure!(is_same, "the {what} of {name} are {expected:?}, not {found:?}");
        Ok(())
    };
    expect("entries", &data.entries, &|from, to| to == data.header && !inside(from))?;
    expect("back edges", &data.back_edges, &|from, to| to == data.header && inside(from))?;
    expect("exits", &data.exits, &|from, to| inside(from) && !inside(to))?;

    let around = natural.values().filter(|other| other.contains(&data.header)).count();
    ensure!(data.depth as usize == around, "{name} is in {around} loops, not {}", data.depth);
    let parent = natural.iter().filter(|(header, other)| **header != data.header && other.contains(&data.header));
    let parent = parent.min_by_key(|(_, other)| other.len()).map(|(&header, _)| header);
    let found = data.parent.map(|parent| forest.data(parent).header);
    ensure!(found == parent, "the loop around {name} is {parent:?}, not {found:?}");
    Ok(())
}

/// Each irreducible cycle is named by an entry, and nothing else is.
fn check_irreducible(graph: &Graph<'_>, forest: &LoopForest) -> Result<()> {
    let back: BTreeSet<Edge> = graph.back_edges().collect();
    let forward: Vec<(Block, Block)> = graph
        .edges
        .iter()
        .filter(|edge| !back.contains(edge))
        .map(|edge| (edge.source(graph.func), edge.target(graph.func)))
        .collect();
    let reached = |from: Block| {
        let mut reached = BTreeSet::new();
        let mut stack = vec![from];
        while let Some(block) = stack.pop() {
            let next = forward.iter().filter(|(source, _)| *source == block).map(|(_, target)| *target);
            stack.extend(next.filter(|&target| reached.insert(target)));
        }
        reached
    };
    let after: BTreeMap<Block, BTreeSet<Block>> = graph.blocks.iter().map(|&block| (block, reached(block))).collect();
    let named: BTreeSet<Block> = forest.irreducible().iter().copied().collect();
    for &block in &graph.blocks {
        let cycle: BTreeSet<Block> =
            after[&block].iter().copied().filter(|other| after[other].contains(&block)).collect();
        let is_entry =
            block == graph.entry || forward.iter().any(|&(source, target)| target == block && !cycle.contains(&source));
        ensure!(!named.contains(&block) || !cycle.is_empty(), "{block} is in no irreducible cycle");
        ensure!(cycle.is_empty() || !named.is_disjoint(&cycle), "the cycle {cycle:?} has no name");
        let entries = cycle
            .iter()
            .filter(|&&inner| forward.iter().any(|&(source, target)| target == inner && !cycle.contains(&source)));
        ensure!(cycle.is_empty() || entries.count() > 1, "{cycle:?} is entered once, at {is_entry}");
    }
    Ok(())
}
