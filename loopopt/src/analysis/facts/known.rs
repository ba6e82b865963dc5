//! What is known at a place: the branches and checks that have been passed on every way there.
//!
//! ```text
//! block1:
//!     v3 = icmp ult v1, v2
//!     brif v3, block2, block9
//! block2:                         entered from block1 alone: v1 < v2
//!     trapz v4                    from here on, v4 is not 0
//!     v5 = udiv v0, v6            and v6 is not 0
//!     brif v7, block3, block4
//! block3:                         all of that, and v7 is not 0
//! ```
//!
//! A fact belongs to an edge, or to what follows an instruction. It holds in each block that the edge or the instruction
//! dominates: the values that it speaks of are the same there. A header is not dominated by what its loop tests; what holds for
//! a header's parameters follows from what holds on all edges into it, which is for `implication` to find.
//!
//! # References
//!
//! R. Bodik, R. Gupta, V. Sarkar, "ABCD: eliminating array bounds checks on demand", PLDI 2000. Go's `prove` pass.

use crate::analysis::cfg::edges::{Edge, only_edge_into};
use crate::analysis::cfg::loops::def_block;
use crate::analysis::facts::prover::{Prover, Scratch};
use crate::analysis::scev::linear_expr::Sum;
use crate::analysis::scev::value_range::{Number, Numbers, Root, Term, limits};
use crate::claim::asserted;
use crate::fault::fault;
use crate::options::Options;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::{SecondaryMap, packed_option::PackedOption};
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value, ValueDef};
use smallvec::SmallVec;
use std::ops::Range;

/// Facts at one place above which those that are farther away do not count. 32: a loop inside of two others, with two checks
/// each, has as many.
const MAX_FACTS: usize = 32;

/// Facts that there is room for from the first on: those of some places.
const FIRST: usize = 8 * MAX_FACTS;

/// Conditions inside conditions.
const MAX_NESTING: usize = 4;

/// Where in a function a question is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Right before this instruction.
    Before(Inst),
    /// On this edge.
    On(Edge),
}

impl Place {
    /// Before the last instruction of `block`.
    pub fn end(func: &Function, block: Block) -> Self {
        Self::Before(func.layout.last_inst(block).expect("a block ends in a branch or a return"))
    }

    /// The block that this is in, or the source of the edge.
    fn block(self, func: &Function) -> Block {
        match self {
            Self::Before(inst) => func.layout.inst_block(inst).expect("a question is about a place in the function"),
            Self::On(edge) => edge.source(func),
        }
    }
}

/// Something that holds: `left - right` is at most `most`, or, if they `differ`, is not `most`. Nothing stands for 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::analysis) struct Fact {
    pub(in crate::analysis) left: Option<Term>,
    pub(in crate::analysis) right: Option<Term>,
    pub(in crate::analysis) most: i128,
    pub(in crate::analysis) differ: bool,
    /// The branch or the check that it is known from.
    pub(in crate::analysis) source: Inst,
}

impl Fact {
    /// Whether this says all that `other` says.
    fn says(&self, other: &Self) -> bool {
        let is_as_strong = if self.differ { self.most == other.most } else { self.most <= other.most };
        (self.left, self.right, self.differ) == (other.left, other.right, other.differ) && is_as_strong
    }
}

/// The facts of one block, as numbers in a list.
#[derive(Clone, Debug)]
struct BlockFacts {
    block: Block,
    /// What is known from the only edge into it.
    entering: Range<usize>,
    /// What is known behind its instructions, in their order.
    behind: Range<usize>,
    /// The nearest block above that has facts, once that is asked for.
    above: Option<PackedOption<Block>>,
    /// What is known at its end, the nearest first, as numbers in a list, once that is asked for.
    end: Option<Range<usize>>,
    /// The same as a spot has it.
    sorted: Option<Sorted>,
}

impl BlockFacts {
    fn is_empty(&self) -> bool {
        self.entering.is_empty() && self.behind.is_empty()
    }
}

/// What a value is, read without sign and with it.
#[derive(Clone, Copy, Debug)]
pub(in crate::analysis) struct Sides([Number; 2]);

impl Sides {
    /// A number that is the same in both readings.
    fn constant(number: i128) -> Self {
        Self([Number { term: None, offset: number }; 2])
    }

    /// Read with sign or without.
    pub(in crate::analysis) fn read(self, signed: bool) -> Number {
        self.0[usize::from(signed)]
    }
}

/// The lowest block that defines one of several values that are all defined on one way down the dominator tree.
#[derive(Clone, Copy, Debug)]
pub(in crate::analysis) enum Home {
    /// There are no values.
    Nowhere,
    /// The block, and whether all values defined there are its parameters.
    At { block: Block, params: bool },
    /// One of them is defined in no block.
    Unknown,
}

impl Home {
    /// The home of the values of both.
    pub(in crate::analysis) fn lower(self, other: Self, domtree: &DominatorTree) -> Self {
        match (self, other) {
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (home, Self::Nowhere) | (Self::Nowhere, home) => home,
            (Self::At { block, params }, Self::At { block: at, params: also }) => {
                if block == at {
                    Self::At { block, params: params && also }
                } else if domtree.block_dominates(at, block) {
                    self
                } else {
                    other
                }
            }
        }
    }
}

/// A place, as far as what is known there goes: places of which the same is known are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::analysis) struct Spot(u32);

/// What tells spots apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum SpotKey {
    /// In a block, behind so many of the facts in it.
    In(Block, usize),
    /// On an edge of a branch that decides something.
    On(Edge),
}

/// Facts by what they say.
#[derive(Clone, Debug)]
struct Sorted {
    /// What is at most something, the nearest first, as numbers in a list.
    ordered: Range<usize>,
    /// What differs, the nearest first.
    differing: Range<usize>,
    /// The roots that they speak of, see [`bit_of`].
    roots: u64,
}

/// What is known of a spot.
struct SpotData {
    block: Block,
    facts: Sorted,
}

/// What is known where in a function. Asked for block by block, and kept.
pub struct Conditions<'a> {
    pub(in crate::analysis) func: &'a Function,
    pub(in crate::analysis) cfg: &'a ControlFlowGraph,
    pub(in crate::analysis) domtree: &'a DominatorTree,
    pub(in crate::analysis) numbers: Numbers<'a>,
    /// The facts of each block that was asked for, one behind the other.
    own: Vec<Fact>,
    blocks: Vec<BlockFacts>,
    /// For each block one more than its number in `blocks`.
    numbers_of_blocks: SecondaryMap<Block, u32>,
    /// The facts at the ends of blocks, one behind the other.
    ends: Vec<Fact>,
    spots: Vec<SpotData>,
    ids: FxHashMap<SpotKey, Spot>,
    /// The facts of each spot, one behind the other.
    facts: Vec<Fact>,
    /// The homes of roots that were asked for.
    homes: Vec<Option<Home>>,
    pub(in crate::analysis) sources: Vec<Inst>,
    pub(in crate::analysis) scratch: Scratch,
    /// Whether a question is worth more than a look.
    pub(in crate::analysis) thorough: bool,
}

impl<'a> Conditions<'a> {
    /// `cfg` and `domtree` must be those of `func`. Looks at nothing yet.
    pub fn new(func: &'a Function, cfg: &'a ControlFlowGraph, domtree: &'a DominatorTree) -> Self {
        Self {
            func,
            cfg,
            domtree,
            numbers: Numbers::new(func),
            own: Vec::new(),
            blocks: Vec::new(),
            numbers_of_blocks: SecondaryMap::new(),
            ends: Vec::new(),
            spots: Vec::new(),
            ids: FxHashMap::default(),
            facts: Vec::new(),
            homes: Vec::new(),
            sources: Vec::new(),
            scratch: Scratch::default(),
            thorough: true,
        }
    }

    /// The same with what the embedder knows of what is loaded.
    pub fn with_options(mut self, options: &'a Options) -> Self {
        self.numbers.set_options(options);
        self
    }

    /// From now on, looks only at what branches and checks say in so many words, or at all that follows from it.
    pub fn set_thorough(&mut self, thorough: bool) {
        self.thorough = thorough;
    }

    /// Whether the comparison of these two, of which all values have to be defined at `place`, holds there: always, never, or
    /// nothing if that is not known.
    pub fn implies(&mut self, place: Place, cond: IntCC, sides: [&Sum; 2]) -> Option<bool> {
        [true, false].into_iter().find(|&truth| self.holds(place, if truth { cond } else { cond.complement() }, sides))
    }

    /// Whether the comparison always holds at `place`.
    pub fn holds(&mut self, place: Place, cond: IntCC, sides: [&Sum; 2]) -> bool {
        self.sources.clear();
        let spot = self.spot(place);
        let sides = sides.map(|sum| Sides(self.numbers.of_sum(sum.clone())));
        self.compare(spot, cond, sides)
    }

    /// Whether `value`, an integer, is never zero at `place`, or always if that is asked for.
    pub fn is(&mut self, place: Place, (value, truth): (Value, bool)) -> bool {
        self.sources.clear();
        let spot = self.spot(place);
        self.is_within(spot, (value, truth), MAX_NESTING)
    }

    /// Whether this instruction, an addition or subtraction that tells or traps if it overflows, or a multiplication that tells,
    /// never does.
    pub fn never_overflows(&mut self, inst: Inst) -> bool {
        self.sources.clear();
        let func = self.func;
        let [a, b] = *func.dfg.inst_args(inst) else { return false };
        let (Some(left), Some(right)) = (self.sides(a), self.sides(b)) else { return false };
        let spot = self.spot(Place::Before(inst));
        let bits = func.dfg.value_type(a).bits();
        let range = |sides: Sides, signed: bool| {
            let Number { term, offset } = sides.read(signed);
            let (least, largest) = self.numbers.bounds(term);
            (least + offset, largest + offset)
        };
        let ((left_range, right_range), right_signed) = ((range(left, false), range(right, false)), range(right, true));
        let most = limits(bits, false).1;
        match func.dfg.insts[inst].opcode() {
            Opcode::UaddOverflow | Opcode::UaddOverflowTrap => {
                let cond = IntCC::UnsignedLessThanOrEqual;
                self.compare(spot, cond, [left, Sides::constant(most - right_range.1)])
                    || self.compare(spot, cond, [right, Sides::constant(most - left_range.1)])
            }
            Opcode::UsubOverflow => self.compare(spot, IntCC::UnsignedLessThanOrEqual, [right, left]),
            Opcode::UmulOverflow => left_range.1.checked_mul(right_range.1).is_some_and(|product| product <= most),
            opcode @ (Opcode::SaddOverflow | Opcode::SsubOverflow) => {
                let ((least, largest), (low, high)) = (limits(bits, true), right_signed);
                let (low, high) = if opcode == Opcode::SaddOverflow { (low, high) } else { (-high, -low) };
                let cond = IntCC::SignedLessThanOrEqual;
                (high <= 0 || self.compare(spot, cond, [left, Sides::constant(largest - high)]))
                    && (low >= 0 || self.compare(spot, cond, [Sides::constant(least - low), left]))
            }
            _ => false,
        }
    }

    /// The branches and checks that the last answer follows from.
    pub fn sources(&mut self) -> &[Inst] {
        self.sources.sort_unstable();
        self.sources.dedup();
        &self.sources
    }

    /// Whether anything at all is known of `value` at `place`, besides its type. Parameters of blocks other than the first are
    /// followed, and count as known.
    pub fn knows(&mut self, place: Place, value: Value) -> bool {
        let terms = [false, true].map(|signed| self.numbers.of(value, signed).and_then(|number| number.term));
        let roots = terms.map(|term| term.map(|term| term.root));
        let entry = self.func.layout.entry_block();
        let is_followed = |root| {
            let value = self.numbers.value(root);
            value.is_some_and(|value| match self.func.dfg.value_def(value) {
                ValueDef::Param(block, _) => Some(block) != entry,
                _ => false,
            })
        };
        if roots.iter().any(|root| root.is_none_or(is_followed)) {
            return true;
        }
        let names = |term: Option<Term>| term.is_some_and(|term| roots.contains(&Some(term.root)));
        let spot = self.spot(place);
        let facts = [self.ordered(spot), self.differing(spot)];
        facts.into_iter().flatten().any(|fact| names(fact.left) || names(fact.right))
    }

    /// Whether the comparison always holds.
    fn compare(&mut self, spot: Spot, cond: IntCC, sides: [Sides; 2]) -> bool {
        let mut prover = Prover::new(self);
        let holds = prover.holds(spot, cond, sides);
        prover.finish();
        holds
    }

    /// What a value is, if it is an integer of at most 64 bits.
    fn sides(&mut self, value: Value) -> Option<Sides> {
        Some(Sides([self.numbers.of(value, false)?, self.numbers.of(value, true)?]))
    }

    fn is_within(&mut self, spot: Spot, (value, truth): (Value, bool), depth: usize) -> bool {
        let func = self.func;
        let inst = func.dfg.value_def(value).inst().filter(|_| depth > 0);
        let args = inst.map_or(&[][..], |inst| func.dfg.inst_args(inst));
        if let Some((inner, is_true)) = self.negation(value).filter(|_| depth > 0) {
            return self.is_within(spot, (inner, truth == is_true), depth - 1);
        }
        match inst.map(|inst| func.dfg.insts[inst]) {
            Some(InstructionData::IntCompare { cond, .. }) => {
                let (Some(left), Some(right)) = (self.sides(args[0]), self.sides(args[1])) else { return false };
                self.compare(spot, if truth { cond } else { cond.complement() }, [left, right])
            }
            Some(InstructionData::Unary { opcode: Opcode::Uextend | Opcode::Sextend, .. }) => {
                self.is_within(spot, (args[0], truth), depth - 1)
            }
            // Of two numbers that are not 0, no bit need be common to both.
            Some(InstructionData::Binary { opcode: Opcode::Band, .. })
                if !truth || args.iter().all(|&arg| self.numbers.is_bool(arg)) =>
            {
                self.are_within(spot, [args[0], args[1]], (truth, truth), depth)
            }
            Some(InstructionData::Binary { opcode: Opcode::Bor, .. }) => {
                self.are_within(spot, [args[0], args[1]], (truth, !truth), depth)
            }
            _ => {
                let Some(sides) = self.sides(value) else { return false };
                let cond = if truth { IntCC::NotEqual } else { IntCC::Equal };
                self.compare(spot, cond, [sides, Sides::constant(0)])
            }
        }
    }

    /// Whether both of two values are not zero, or are, or only one of them if not `both`.
    fn are_within(&mut self, spot: Spot, values: [Value; 2], (truth, both): (bool, bool), depth: usize) -> bool {
        let mut is = |value| self.is_within(spot, (value, truth), depth - 1);
        if both { is(values[0]) && is(values[1]) } else { is(values[0]) || is(values[1]) }
    }

    /// `value` as the negation of a truth value, or as that itself: the other value, and what `value` being true says of it.
    fn negation(&mut self, value: Value) -> Option<(Value, bool)> {
        let func = self.func;
        let inst = func.dfg.value_def(value).inst()?;
        let [a, b] = *func.dfg.inst_args(inst) else { return None };
        let constant = self.numbers.of(b, false).filter(|number| number.term.is_none())?.offset;
        match (func.dfg.insts[inst], constant) {
            (InstructionData::IntCompare { cond: IntCC::Equal, .. }, 0) if self.is_condition(a) => Some((a, false)),
            (InstructionData::IntCompare { cond: IntCC::NotEqual, .. }, 0) if self.is_condition(a) => Some((a, true)),
            (InstructionData::Binary { opcode: Opcode::Bxor, .. }, 1) if self.numbers.is_bool(a) => Some((a, false)),
            _ => None,
        }
    }

    /// Whether `value` is made of comparisons.
    fn is_condition(&mut self, value: Value) -> bool {
        let func = self.func;
        let Some(inst) = func.dfg.value_def(value).inst() else { return false };
        match func.dfg.insts[inst].opcode() {
            Opcode::Icmp => true,
            Opcode::Band | Opcode::Bor | Opcode::Bxor | Opcode::Uextend => self.numbers.is_bool(value),
            _ => false,
        }
    }

    /// The spot that `place` is.
    pub(in crate::analysis) fn spot(&mut self, place: Place) -> Spot {
        let block = place.block(self.func);
        let number = self.block_facts(block);
        let behind = self.blocks[number].behind.clone();
        let (before, key) = match place {
            Place::On(edge) if !matches!(self.func.dfg.insts[edge.branch], InstructionData::Jump { .. }) => {
                (behind.len(), SpotKey::On(edge))
            }
            Place::On(_) => (behind.len(), SpotKey::In(block, behind.len())),
            Place::Before(inst) => {
                let comes_first = |fact: &Fact| self.func.layout.pp_cmp(fact.source, inst).is_lt();
                let before = self.own[behind.clone()].partition_point(comes_first);
                (before, SpotKey::In(block, before))
            }
        };
        if let Some(&spot) = self.ids.get(&key) {
            return spot;
        }
        self.facts.reserve(if self.facts.is_empty() { FIRST } else { MAX_FACTS });
        let facts = match key {
            SpotKey::In(..) if before == behind.len() => self.sorted_end(number),
            SpotKey::In(..) => {
                let start = self.facts.len();
                self.gather(number, before, start);
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

    /// Adds what is known in a block, behind the first `before` facts in it, to the list from `start` on.
    fn gather(&mut self, number: usize, before: usize, start: usize) {
        let above = self.above(number).map_or(0..0, |above| self.end_of(above));
        let BlockFacts { entering, behind, .. } = self.blocks[number].clone();
        let own = self.own[behind][..before].iter().rev().chain(&self.own[entering]);
        // What is farther away does not count in any case.
        for fact in own {
            if self.facts.len() - start >= MAX_FACTS {
                break;
            }
            add(&mut self.facts, start..usize::MAX, fact);
        }
        let inherited = start..self.facts.len();
        self.ends[above].iter().for_each(|fact| add(&mut self.facts, inherited.clone(), fact));
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
            let start = self.ends.len();
            let BlockFacts { entering, behind, .. } = self.blocks[number].clone();
            for fact in self.own[behind].iter().rev().chain(&self.own[entering]) {
                if self.ends.len() - start >= MAX_FACTS {
                    break;
                }
                add(&mut self.ends, start..usize::MAX, fact);
            }
            let inherited = start..self.ends.len();
            for index in end {
                let fact = self.ends[index];
                add(&mut self.ends, inherited.clone(), &fact);
            }
            end = start..self.ends.len();
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

    /// Where the values of a root are defined.
    pub(in crate::analysis) fn home(&mut self, root: Root) -> Home {
        if let Some(Some(home)) = self.homes.get(root.index()) {
            return *home;
        }
        let Self { func, domtree, numbers, .. } = &*self;
        let mut home = Home::Nowhere;
        numbers.sum(root).each_value(&mut |value| {
            let params = matches!(func.dfg.value_def(value), ValueDef::Param(..));
            let own = def_block(func, value).map_or(Home::Unknown, |block| Home::At { block, params });
            home = home.lower(own, domtree);
        });
        if self.homes.len() <= root.index() {
            self.homes.resize(root.index() + 1, None);
        }
        self.homes[root.index()] = Some(home);
        home
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
            self.add_behind(inst, &mut facts);
        }
        let end = facts.len();
        self.own = facts;
        self.blocks.push(BlockFacts {
            block,
            entering: start..middle,
            behind: middle..end,
            above: None,
            end: None,
            sorted: None,
        });
        self.numbers_of_blocks[block] = u32::try_from(self.blocks.len()).expect("as many as blocks");
        self.blocks.len() - 1
    }

    /// What taking this edge says.
    fn add_edge(&mut self, edge: Edge, facts: &mut Vec<Fact>) {
        let source = edge.branch;
        match self.func.dfg.insts[source] {
            InstructionData::Brif { arg, .. } => {
                self.add_truth((arg, edge.slot == 0), source, MAX_NESTING, facts);
            }
            InstructionData::BranchTable { arg, table, .. } => {
                let entries = self.func.dfg.jump_tables[table].as_slice().len() as i128;
                let Some(Number { term, offset }) = self.numbers.of(arg, false) else { return };
                // The default comes first.
                match edge.slot {
                    0 => facts.push(at_most((None, term), offset - entries, source)),
                    slot => {
                        let number = slot as i128 - 1;
                        facts.push(at_most((term, None), number - offset, source));
                        facts.push(at_most((None, term), offset - number, source));
                    }
                }
            }
            _ => {}
        }
    }

    /// What is known once `inst` has run.
    fn add_behind(&mut self, inst: Inst, facts: &mut Vec<Fact>) {
        let func = self.func;
        let opcode = func.dfg.insts[inst].opcode();
        use Opcode::{Sdiv, Srem, Trapnz, Trapz, UaddOverflowTrap, Udiv, Urem};
        if !matches!(opcode, Trapz | Trapnz | Udiv | Urem | Sdiv | Srem | UaddOverflowTrap)
            || asserted(func, inst).is_some()
        {
            return;
        }
        let args = func.dfg.inst_args(inst);
        match opcode {
            Opcode::Trapz => self.add_truth((args[0], true), inst, MAX_NESTING, facts),
            Opcode::Trapnz => self.add_truth((args[0], false), inst, MAX_NESTING, facts),
            Opcode::Udiv | Opcode::Urem | Opcode::Sdiv | Opcode::Srem => {
                self.add_value((args[1], true), inst, facts);
            }
            Opcode::UaddOverflowTrap => {
                let sum = func.dfg.first_result(inst);
                for (added, other) in [(args[0], args[1]), (args[1], args[0])] {
                    let numbers = [sum, added, other].map(|value| self.numbers.of(value, false));
                    let [Some(sum), Some(added), Some(other)] = numbers else { return };
                    // As integers, the sum is above each of them by the other.
                    let (least, largest) = self.numbers.bounds(other.term);
                    let above = added.offset - sum.offset;
                    facts.push(at_most((sum.term, added.term), above + other.offset + largest, inst));
                    facts.push(at_most((added.term, sum.term), -above - other.offset - least, inst));
                }
            }
            _ => {}
        }
    }

    /// What it says that `value` is zero or not, as `(value, is not zero)`.
    fn add_truth(&mut self, (value, truth): (Value, bool), source: Inst, depth: usize, facts: &mut Vec<Fact>) {
        let func = self.func;
        let inst = func.dfg.value_def(value).inst().filter(|_| depth > 0);
        let args = inst.map_or(&[][..], |inst| func.dfg.inst_args(inst));
        if let Some((inner, is_true)) = self.negation(value).filter(|_| depth > 0) {
            return self.add_truth((inner, truth == is_true), source, depth - 1, facts);
        }
        match (inst.map(|inst| func.dfg.insts[inst]), truth) {
            (Some(InstructionData::IntCompare { cond, .. }), _) => {
                let cond = if truth { cond } else { cond.complement() };
                self.add_comparison(cond, [args[0], args[1]], source, facts);
            }
            (Some(InstructionData::Unary { opcode: Opcode::Uextend | Opcode::Sextend, .. }), _) => {
                self.add_truth((args[0], truth), source, depth - 1, facts);
            }
            (Some(InstructionData::Binary { opcode: Opcode::Band, .. }), true)
            | (Some(InstructionData::Binary { opcode: Opcode::Bor, .. }), false) => {
                args.iter().for_each(|&arg| self.add_truth((arg, truth), source, depth - 1, facts));
            }
            _ => {}
        }
        // A comparison inside of another condition is no value of its own that anybody would ask for.
        if depth == MAX_NESTING || !inst.is_some_and(|inst| func.dfg.insts[inst].opcode() == Opcode::Icmp) {
            self.add_value((value, truth), source, facts);
        }
    }

    /// That `value` is zero or not.
    fn add_value(&mut self, (value, truth): (Value, bool), source: Inst, facts: &mut Vec<Fact>) {
        let Some(Number { term, offset }) = self.numbers.of(value, false) else { return };
        match truth {
            true => facts.push(at_most((None, term), offset - 1, source)),
            false => facts.push(at_most((term, None), -offset, source)),
        }
    }

    fn add_comparison(&mut self, cond: IntCC, [left, right]: [Value; 2], source: Inst, facts: &mut Vec<Fact>) {
        for signed in [false, true] {
            let (Some(left), Some(right)) = (self.numbers.of(left, signed), self.numbers.of(right, signed)) else {
                return;
            };
            let difference = right.offset - left.offset;
            let below = |most| at_most((left.term, right.term), difference + most, source);
            let above = |most| at_most((right.term, left.term), most - difference, source);
            match order(cond) {
                Order::Equal => facts.extend([below(0), above(0)]),
                Order::NotEqual => facts.push(Fact { differ: true, ..below(0) }),
                Order::Less { with_sign, most } if with_sign == signed => self.add_order(below(most), facts),
                Order::Greater { with_sign, most } if with_sign == signed => self.add_order(above(most), facts),
                Order::Less { .. } | Order::Greater { .. } => {}
            }
        }
    }

    /// That one integer is at most another. If that is the smaller of two, it is at most both; if it is the larger of two, both
    /// are.
    fn add_order(&mut self, fact: Fact, facts: &mut Vec<Fact>) {
        facts.push(fact);
        for (term, is_left) in [(fact.left, true), (fact.right, false)] {
            let Some((args, signed)) = term.and_then(|term| self.choice(term, is_left)) else { continue };
            for number in args.into_iter().filter_map(|arg| self.numbers.of(arg, signed)) {
                facts.push(match is_left {
                    true => Fact { left: number.term, most: fact.most - number.offset, ..fact },
                    false => Fact { right: number.term, most: fact.most + number.offset, ..fact },
                });
            }
        }
    }

    /// What a term is the larger of, or the smaller of, and whether that is with sign.
    fn choice(&self, term: Term, larger: bool) -> Option<([Value; 2], bool)> {
        let value = self.numbers.value(term.root).filter(|_| term.constant == 0)?;
        let inst = self.func.dfg.value_def(value).inst()?;
        let signed = match (self.func.dfg.insts[inst].opcode(), larger) {
            (Opcode::Umax, true) | (Opcode::Umin, false) => false,
            (Opcode::Smax, true) | (Opcode::Smin, false) => true,
            _ => return None,
        };
        let is_read_so = signed == term.signed || (!term.signed && self.numbers.is_never_negative(term));
        let [a, b] = *self.func.dfg.inst_args(inst) else { return None };
        is_read_so.then_some(([a, b], signed))
    }
}

/// The bit for a root in a set of roots, in which some of them share one.
fn bit_of(root: Root) -> u64 {
    1 << (root.index() % 64)
}

/// Adds `fact` to the list that starts where `newer` does, unless one of those newer says as much. Guards of one loop behind the
/// other say the same again and again.
fn add(list: &mut Vec<Fact>, newer: Range<usize>, fact: &Fact) {
    if list.len() - newer.start >= MAX_FACTS {
        return;
    }
    let end = newer.end.min(list.len());
    if !list[newer.start..end].iter().any(|other| other.says(fact)) {
        list.push(*fact);
    }
}

fn at_most((left, right): (Option<Term>, Option<Term>), most: i128, source: Inst) -> Fact {
    Fact { left, right, most, differ: false, source }
}

/// What a condition says of its operands as integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::analysis) enum Order {
    Equal,
    NotEqual,
    /// Left minus right is at most `most`.
    Less {
        with_sign: bool,
        most: i128,
    },
    /// Right minus left is at most `most`.
    Greater {
        with_sign: bool,
        most: i128,
    },
}

/// What `cond` says.
pub(in crate::analysis) fn order(cond: IntCC) -> Order {
    let with_sign = cond != cond.unsigned();
    match cond.unsigned() {
        IntCC::Equal => Order::Equal,
        IntCC::NotEqual => Order::NotEqual,
        IntCC::UnsignedLessThan => Order::Less { with_sign, most: -1 },
        IntCC::UnsignedLessThanOrEqual if fault!(OrEqual) => Order::Less { with_sign, most: -1 },
        IntCC::UnsignedLessThanOrEqual => Order::Less { with_sign, most: 0 },
        IntCC::UnsignedGreaterThan => Order::Greater { with_sign, most: -1 },
        IntCC::UnsignedGreaterThanOrEqual => Order::Greater { with_sign, most: 0 },
        _ => unreachable!("no signed condition is unsigned"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{block, context};
    use cranelift_codegen::Context;

    /// Asks whether `cond` holds between two values at the end of a block.
    fn ask(ctx: &Context, at: u32, cond: IntCC, [left, right]: [u32; 2]) -> Option<bool> {
        let mut conditions = Conditions::new(&ctx.func, &ctx.cfg, &ctx.domtree);
        let sums = [left, right].map(|number| Sum::of(&ctx.func, Value::from_u32(number)));
        conditions.implies(Place::end(&ctx.func, block(at)), cond, [&sums[0], &sums[1]])
    }

    #[test]
    fn facts_of_one_way() {
        let ctx = context(
            "function %f(i32, i32, i32) {
            block0(v0: i32, v1: i32, v2: i32):
                v3 = icmp ult v0, v1
                v4 = icmp ule v1, v2
                v5 = band v3, v4
                brif v5, block1, block2
            block1:
                v6 = iconst.i32 1
                v7 = iadd v0, v6
                jump block3
            block2:
                jump block3
            block3:
                return
            }",
        );
        assert_eq!(ask(&ctx, 1, IntCC::UnsignedLessThan, [0, 2]), Some(true), "through v1");
        assert_eq!(ask(&ctx, 1, IntCC::UnsignedGreaterThanOrEqual, [0, 2]), Some(false));
        assert_eq!(ask(&ctx, 1, IntCC::UnsignedLessThanOrEqual, [7, 2]), Some(true), "it cannot wrap");
        assert_eq!(ask(&ctx, 1, IntCC::UnsignedLessThan, [7, 2]), None);
        assert_eq!(ask(&ctx, 1, IntCC::SignedLessThan, [0, 2]), None);
        assert_eq!(ask(&ctx, 1, IntCC::NotEqual, [0, 1]), Some(true));
        assert_eq!(ask(&ctx, 2, IntCC::UnsignedLessThan, [0, 2]), None);
        assert_eq!(ask(&ctx, 3, IntCC::UnsignedLessThan, [0, 2]), None);
    }

    #[test]
    fn what_is_rounded_down() {
        let ctx = context(
            "function %f(i32) {
            block0(v0: i32):
                v1 = iconst.i32 -4
                v2 = iconst.i32 4
                v3 = iconst.i32 5
                v4 = band v0, v1
                v5 = icmp ult v0, v2
                brif v5, block1, block2
            block1:
                return
            block2:
                return
            }",
        );
        assert_eq!(ask(&ctx, 2, IntCC::UnsignedLessThanOrEqual, [2, 4]), Some(true));
        assert_eq!(ask(&ctx, 2, IntCC::UnsignedLessThanOrEqual, [3, 4]), None, "it would have to be 8");
        assert_eq!(ask(&ctx, 1, IntCC::UnsignedLessThanOrEqual, [2, 4]), Some(false));
        assert_eq!(ask(&ctx, 0, IntCC::UnsignedLessThanOrEqual, [4, 0]), Some(true));
    }

    #[test]
    fn counters_and_the_header() {
        let ctx = context(
            "function %f(i32) {
            block0(v0: i32):
                v1 = iconst.i32 0
                jump block1(v1)
            block1(v2: i32):
                v3 = icmp slt v2, v0
                brif v3, block2, block3
            block2:
                v4 = iconst.i32 1
                v5 = iadd v2, v4
                jump block1(v5)
            block3:
                return
            }",
        );
        assert_eq!(ask(&ctx, 1, IntCC::SignedGreaterThanOrEqual, [2, 1]), Some(true), "it counts up");
        assert_eq!(ask(&ctx, 1, IntCC::UnsignedLessThan, [2, 0]), None, "not before the test");
        assert_eq!(ask(&ctx, 2, IntCC::UnsignedLessThan, [2, 0]), Some(true));
        assert_eq!(ask(&ctx, 2, IntCC::UnsignedLessThanOrEqual, [5, 0]), Some(true));
        assert_eq!(ask(&ctx, 3, IntCC::SignedGreaterThanOrEqual, [2, 0]), Some(true));
    }
}
