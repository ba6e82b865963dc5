//! Which block comes before which.

use super::outline::{End, Outline};
use cranelift_codegen::ir::Block;
use std::collections::{BTreeMap, HashMap};

/// All blocks in an order in which each comes after its immediate dominator.
#[derive(Debug)]
pub(super) struct Dominance {
    /// Reverse postorder, then what is unreachable.
    pub(super) order: Vec<Block>,
    /// Immediate dominators, of blocks that have one.
    pub(super) parents: HashMap<Block, Block>,
}

impl Dominance {
    pub(super) fn of(outline: &Outline, entry: Block) -> Self {
        let mut order = reverse_postorder(&outline.ends, entry);
        let position: HashMap<Block, usize> = order.iter().enumerate().map(|(index, &block)| (block, index)).collect();
        let mut before = vec![Vec::new(); order.len()];
        for (index, block) in order.iter().enumerate() {
            for successor in outline.ends[block].successors() {
                before[position[&successor.block]].push(index);
            }
        }
        let parents = immediate_dominators(&before);
        let parents =
            parents.iter().enumerate().skip(1).map(|(index, &parent)| (order[index], order[parent])).collect();
        order.extend(outline.ends.keys().filter(|block| !position.contains_key(block)));
        Self { order, parents }
    }
}

fn reverse_postorder(ends: &BTreeMap<Block, End>, entry: Block) -> Vec<Block> {
    let mut order = Vec::new();
    let mut seen = std::collections::HashSet::from([entry]);
    let mut stack = vec![(entry, 0)];
    while let Some((block, next)) = stack.pop() {
        match ends[&block].successors().get(next) {
            Some(successor) => {
                stack.push((block, next + 1));
                if seen.insert(successor.block) {
                    stack.push((successor.block, 0));
                }
            }
            None => order.push(block),
        }
    }
    order.reverse();
    order
}

/// For blocks numbered in reverse postorder, given their predecessors. (Cooper, Harvey, Kennedy: "A simple, fast dominance
/// algorithm".)
fn immediate_dominators(before: &[Vec<usize>]) -> Vec<usize> {
    let mut parents = vec![usize::MAX; before.len()];
    parents[0] = 0;
    loop {
        let mut changed = false;
        for block in 1..before.len() {
            let known = before[block].iter().copied().filter(|&block| parents[block] != usize::MAX);
            let parent = known.reduce(|a, b| meet(&parents, a, b)).expect("a predecessor comes first");
            changed |= parents[block] != parent;
            parents[block] = parent;
        }
        if !changed {
            return parents;
        }
    }
}

fn meet(parents: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        if a > b {
            a = parents[a];
        } else {
            b = parents[b];
        }
    }
    a
}
