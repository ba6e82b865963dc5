//! What is known at the places of a function, as lists of facts that are made when they are asked for.

use super::fact::Fact;
use super::{Conditions, Place};
use crate::analysis::cfg::edges::{Edge, only_edge_into};
use crate::analysis::scev::value_range::Root;
use cranelift_codegen::entity::packed_option::PackedOption;
use cranelift_codegen::ir::{Block, InstructionData};
use smallvec::SmallVec;
use std::ops::Range;

/// Facts at one place above which those that are farther away do not count. 32: a loop inside of two others, with two checks
/// each, has as many.
const MAX_FACTS: usize = 32;

/// Facts that there is room for at the start: those of some places.
const FIRST: usize = 8 * MAX_FACTS;

/// The facts of one block, as numbers in a list.
#[derive(Clone, Debug)]
pub(super) struct BlockFacts {
    block: Block,
    /// What is known from the only edge into it.
    entering: Range<usize>,
    /// What is known after its instructions, in their order.
    after: Range<usize>,
    /// The nearest block above that has facts, once that is asked for.
    above: Option<PackedOption<Block>>,
    /// What is known at its end, the nearest first, as numbers in a list, once that is asked for.
    end: Option<Range<usize>>,
    /// The same as a spot has it.
    sorted: Option<Sorted>,
}

impl BlockFacts {
    fn is_empty(&self) -> bool {
        self.entering.is_empty() && self.after.is_empty()
    }
}

/// A place, as far as what is known there goes: places of which the same is known are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::analysis) struct Spot(u32);

/// What distinguishes spots.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum SpotKey {
    /// In a block, after so many of the facts in it.
    In(Block, usize),
    /// On an edge of a branch that decides something.
    On(Edge),
}

/// Facts by what they say.
#[derive(Clone, Debug)]
pub(super) struct Sorted {
    /// What is at most something, the nearest first, as numbers in a list.
    ordered: Range<usize>,
    /// What differs, the nearest first.
    differing: Range<usize>,
    /// The roots that they speak of, see [`bit_of`].
    roots: u64,
}

/// What is known of a spot.
pub(super) struct SpotData {
    block: Block,
    facts: Sorted,
}

impl Conditions<'_> {
    /// The spot that `place` is.
    pub(in crate::analysis) fn spot(&mut self, place: Place) -> Spot {
        let block = place.block(self.func);
        let number = self.block_facts(block);
        let after = self.blocks[number].after.clone();
        let (before, key) = match place {
            Place::On(edge) if !matches!(self.func.dfg.insts[edge.branch], InstructionData::Jump { .. }) => {
                (after.len(), SpotKey::On(edge))
            }
            Place::On(_) => (after.len(), SpotKey::In(block, after.len())),
            Place::Before(inst) => {
                let comes_first = |fact: &Fact| self.func.layout.pp_cmp(fact.source, inst).is_lt();
                let before = self.own[after.clone()].partition_point(comes_first);
                (before, SpotKey::In(block, before))
            }
        };
        if let Some(&spot) = self.ids.get(&key) {
            return spot;
        }
        self.facts.reserve(if self.facts.is_empty() { FIRST } else { MAX_FACTS });
        let facts = match key {
            SpotKey::In(..) if before == after.len() => self.sorted_end(number),
            SpotKey::In(..) => {
                let start = self.facts.len();
                self.gather(number, before);
                self.sorted(start)
            }
            SpotKey::On(edge) => {
                let start = self.facts.len();
                let mut facts = std::mem::take(&mut self.facts);
                self.add_edge(edge, &mut facts);
                self.facts = facts;
                let newer = start..self.facts.len();
                for index in self.end_of(number) {
                    add(&mut self.facts, newer.clone(), &self.ends[index]);
                }
                self.sorted(start)
            }
        };
        let spot = Spot(u32::try_from(self.spots.len()).expect("as many spots as edges and facts at most"));
        self.spots.push(SpotData { block, facts });
        self.ids.insert(key, spot);
        spot
    }

    /// Sorts the facts from `start` on.
    fn sorted(&mut self, start: usize) -> Sorted {
        self.facts[start..].sort_by_key(|fact| fact.differ);
        let middle = start + self.facts[start..].partition_point(|fact| !fact.differ);
        let terms = self.facts[start..].iter().flat_map(|fact| [fact.left, fact.right]).flatten();
        let roots = terms.fold(0, |roots, term| roots | bit_of(term.root));
        Sorted { ordered: start..middle, differing: middle..self.facts.len(), roots }
    }

    /// What is known at the end of a block, as a spot has it. Blocks without facts have those of the block above.
    fn sorted_end(&mut self, number: usize) -> Sorted {
        let nowhere = Sorted { ordered: 0..0, differing: 0..0, roots: 0 };
        let Some(number) = self.with_facts(number) else { return nowhere };
        if let Some(sorted) = &self.blocks[number].sorted {
            return sorted.clone();
        }
        let end = self.end_of(number);
        let start = self.facts.len();
        self.facts.extend_from_slice(&self.ends[end]);
        let sorted = self.sorted(start);
        self.blocks[number].sorted = Some(sorted.clone());
        sorted
    }

    /// The block itself if it has facts, or the nearest one above that has.
    fn with_facts(&mut self, number: usize) -> Option<usize> {
        if self.blocks[number].is_empty() { self.above(number) } else { Some(number) }
    }

    /// Adds what is known in a block, after the first `before` facts in it, to the list.
    fn gather(&mut self, number: usize, before: usize) {
        let above = self.above(number).map_or(0..0, |above| self.end_of(above));
        let BlockFacts { entering, after, .. } = self.blocks[number].clone();
        let own = self.own[after][..before].iter().rev().chain(&self.own[entering]);
        let newer = add_nearest(&mut self.facts, own);
        self.ends[above].iter().for_each(|fact| add(&mut self.facts, newer.clone(), fact));
    }

    /// What is known at the end of a block, as numbers in a list.
    fn end_of(&mut self, number: usize) -> Range<usize> {
        let mut chain = SmallVec::<[usize; 8]>::new();
        let mut next = self.with_facts(number);
        let mut end = loop {
            let Some(number) = next else { break 0..0 };
            if let Some(end) = &self.blocks[number].end {
                break end.clone();
            }
            chain.push(number);
            next = self.above(number);
        };
        self.ends.reserve(if self.ends.is_empty() { FIRST } else { 0 }.max(chain.len() * MAX_FACTS));
        for number in chain.into_iter().rev() {
            let BlockFacts { entering, after, .. } = self.blocks[number].clone();
            let own = self.own[after].iter().rev().chain(&self.own[entering]);
            let newer = add_nearest(&mut self.ends, own);
            for index in end {
                let fact = self.ends[index];
                add(&mut self.ends, newer.clone(), &fact);
            }
            end = newer.start..self.ends.len();
            self.blocks[number].end = Some(end.clone());
        }
        end
    }

    /// The nearest block above this one in the dominator tree that has facts.
    fn above(&mut self, number: usize) -> Option<usize> {
        let mut passed = SmallVec::<[usize; 8]>::from_slice(&[number]);
        let mut here = number;
        let above = loop {
            if let Some(known) = self.blocks[here].above {
                break known.expand();
            }
            let Some(idom) = self.domtree.idom(self.blocks[here].block) else { break None };
            here = self.block_facts(idom);
            if !self.blocks[here].is_empty() {
                break Some(idom);
            }
            passed.push(here);
        };
        for number in passed {
            self.blocks[number].above = Some(above.into());
        }
        above.map(|block| self.block_facts(block))
    }

    /// The facts of a spot that say that something is at most something, the nearest first.
    pub(in crate::analysis) fn ordered(&self, spot: Spot) -> &[Fact] {
        &self.facts[self.spots[spot.0 as usize].facts.ordered.clone()]
    }

    /// The facts of a spot that say that something differs.
    pub(in crate::analysis) fn differing(&self, spot: Spot) -> &[Fact] {
        &self.facts[self.spots[spot.0 as usize].facts.differing.clone()]
    }

    /// Whether a fact of the spot may speak of a root. If not, none does.
    pub(in crate::analysis) fn may_speak_of(&self, spot: Spot, root: Root) -> bool {
        self.spots[spot.0 as usize].facts.roots & bit_of(root) != 0
    }

    /// The block that a spot is in, or the source of its edge.
    pub(in crate::analysis) fn block_of(&self, spot: Spot) -> Block {
        self.spots[spot.0 as usize].block
    }

    /// The number of a block whose facts are known then.
    fn block_facts(&mut self, block: Block) -> usize {
        if let Some(number) = self.numbers_of_blocks[block].checked_sub(1) {
            return number as usize;
        }
        let mut facts = std::mem::take(&mut self.own);
        let start = facts.len();
        if let Some(edge) = only_edge_into(self.func, self.cfg, block) {
            self.add_edge(edge, &mut facts);
        }
        let middle = facts.len();
        for inst in self.func.layout.block_insts(block) {
            self.add_check(inst, &mut facts);
        }
        let end = facts.len();
        self.own = facts;
        self.blocks.push(BlockFacts {
            block,
            entering: start..middle,
            after: middle..end,
            above: None,
            end: None,
            sorted: None,
        });
        self.numbers_of_blocks[block] = u32::try_from(self.blocks.len()).expect("as many as blocks");
        self.blocks.len() - 1
    }
}

/// The bit for a root in a set of roots, in which some of them share one.
fn bit_of(root: Root) -> u64 {
    1 << (root.index() % 64)
}

/// Adds the first of these facts, as many as count. Gives where they are.
fn add_nearest<'f>(list: &mut Vec<Fact>, facts: impl Iterator<Item = &'f Fact>) -> Range<usize> {
    let start = list.len();
    for fact in facts {
        if list.len() - start >= MAX_FACTS {
            break;
        }
        add(list, start..usize::MAX, fact);
    }
    start..list.len()
}

/// Adds `fact` to the list that starts where `newer` does, unless one of those newer says as much: guards of one loop after another
/// say the same again and again.
fn add(list: &mut Vec<Fact>, newer: Range<usize>, fact: &Fact) {
    if list.len() - newer.start >= MAX_FACTS {
        return;
    }
    let end = newer.end.min(list.len());
    if !list[newer.start..end].iter().any(|other| other.says(fact)) {
        list.push(*fact);
    }
}
