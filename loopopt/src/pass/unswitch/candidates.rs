//! Branches and selects that take the same arm in each iteration.

use super::why::Decline;
use crate::analysis::cfg::edges::{Edge, count_uses, destinations, edges_and_targets, edges_of, only_edge_into};
use crate::analysis::cfg::jumps::{ends_in_trap, jump_target};
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::facts::condition::is_truth;
use crate::analysis::inst::effects::{Effects, is_constant_value};
use crate::analysis::scev::invariant::invariant_chain;
use crate::options::Options;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, InstructionData, Opcode, Value, ValueDef};
use cranelift_codegen::{Context, FxHashMap};
use std::collections::BTreeMap;

/// Instructions that are counted for one value of a `select`. More than that are worth a loop in any case.
const MAX_SAVED: usize = 16;

/// Loops that a branch may leave at once. Each is one more to be looked at for it.
const MAX_LEVELS: usize = 8;

/// Candidates of one loop, and arms of one of them. Each is one more look at the loop.
pub(super) const MAX_CANDIDATES: usize = 16;

/// Blocks above the loop of which the branches are looked at, and jumps that are followed to a trap.
const MAX_BLOCKS: usize = 32;

/// A branch or a select on a loop-invariant condition.
pub(super) struct Candidate {
    pub(super) inst: Inst,
    pub(super) condition: Value,
    /// Instructions of the loop that compute the condition, operands first.
    pub(super) chain: Vec<Inst>,
    /// For a branch on more than the condition, what else it is on.
    pub(super) other: Option<Other>,
    /// For a `br_table`, which arm each of its destinations is: those that pass the same to the same block are one.
    pub(super) table: Option<Vec<usize>>,
    /// Whether the innermost enclosing loop has an inner loop.
    pub(super) is_beside_loop: bool,
    opcode: Opcode,
    heat: Heat,
    /// For a `select`, how many instructions of the loop serve one of its values alone.
    saved: usize,
    min_saved: usize,
}

/// The other side of `a && b` or `a || b`, where `a` is the condition and both are 0 or 1.
#[derive(Clone, Copy)]
pub(super) struct Other {
    pub(super) value: Value,
    /// The arm of the condition, and so of the branch, on which it does not matter.
    pub(super) decided: usize,
}

/// Why a branch may not be worth it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Heat {
    Normal,
    Cold,
    /// One arm leads to a trap.
    Check,
}

impl Candidate {
    /// How many arms there are.
    pub(super) fn arms(&self) -> usize {
        self.table.as_ref().map_or(2, |table| table.iter().max().map_or(0, |&last| last + 1))
    }

    pub(super) fn is_select(&self) -> bool {
        self.opcode == Opcode::Select
    }

    /// Why it is not worth it, whatever the loop.
    pub(super) fn why_not(&self) -> Option<Decline> {
        match self.heat {
            Heat::Cold => Some(Decline::Cold),
            Heat::Check => Some(Decline::Check),
            Heat::Normal if self.is_select() && self.saved < self.min_saved => {
                Some(Decline::SmallGain { insts: self.saved, min: self.min_saved })
            }
            Heat::Normal => None,
        }
    }
}

/// The candidates of one loop.
#[derive(Default)]
pub(super) struct Found {
    /// The first of them, in the order of the blocks.
    pub(super) candidates: Vec<Candidate>,
    /// How many there are besides.
    pub(super) others: usize,
}

/// For each loop that is `wanted` the candidates in it, without the selects that have to stay.
pub(super) fn candidates(
    func: &Function,
    forest: &LoopForest,
    options: &Options,
    (wanted, stays): (impl Fn(Loop) -> bool, impl Fn(Inst) -> bool),
) -> BTreeMap<Loop, Found> {
    let mut all = BTreeMap::<Loop, Found>::new();
    let mut finder = Finder { func, forest, heights: forest.heights(), options, uses: None };
    for block in func.layout.blocks() {
        let Some(innermost) = forest.innermost(block) else { continue };
        for inst in func.layout.block_insts(block) {
            if !matches!(func.dfg.insts[inst].opcode(), Opcode::Brif | Opcode::BrTable | Opcode::Select) {
                continue;
            }
            let mut next = Some(innermost);
            for _ in 0..MAX_LEVELS {
                let Some(lp) = next else { break };
                let Some(candidate) = finder.candidate(lp, inst) else { break };
                if candidate.is_select() && stays(inst) {
                    break;
                }
                if wanted(lp) {
                    let found = all.entry(lp).or_default();
                    if found.candidates.len() < MAX_CANDIDATES {
                        found.candidates.push(candidate);
                    } else {
                        found.others += 1;
                    }
                }
                next = forest.data(lp).parent;
            }
        }
    }
    all
}

struct Finder<'a> {
    func: &'a Function,
    forest: &'a LoopForest,
    /// How deep the nest inside each loop is.
    heights: SecondaryMap<Loop, usize>,
    options: &'a Options,
    /// How often each value is used: made for the first `select`.
    uses: Option<SecondaryMap<Value, u32>>,
}

impl Finder<'_> {
    fn candidate(&mut self, lp: Loop, inst: Inst) -> Option<Candidate> {
        let func = self.func;
        let opcode = func.dfg.insts[inst].opcode();
        let whole = func.dfg.inst_args(inst)[0];
        let (condition, chain, other) = match invariant_chain(func, self.forest, lp, whole) {
            Some(chain) => (whole, chain, None),
            None if opcode == Opcode::Brif => self.part(lp, whole)?,
            None => return None,
        };
        let table = (opcode == Opcode::BrTable).then(|| arms_of_table(func, inst));
        if let Some(table) = &table
            && table.iter().all(|&arm| arm == 0)
        {
            return None;
        }
        let block = func.layout.inst_block(inst)?;
        let is_beside_loop = self.forest.innermost(block).is_some_and(|innermost| self.heights[innermost] > 0);
        let heat = if self.options.ignore_cost {
            Heat::Normal
        } else if func.is_effectively_cold(block) {
            Heat::Cold
        } else if opcode == Opcode::Brif
            && edges_and_targets(func, block).any(|(_, target)| leads_to_trap(func, target))
        {
            Heat::Check
        } else {
            Heat::Normal
        };
        let saved = if opcode == Opcode::Select { self.saved(lp, inst) } else { 0 };
        let min_saved = if self.options.ignore_cost { 0 } else { self.options.unswitch_min_saved };
        Some(Candidate { inst, condition, chain, other, table, is_beside_loop, opcode, heat, saved, min_saved })
    }

    /// The side of `whole` that is loop-invariant, what computes it, and the other side.
    fn part(&self, lp: Loop, whole: Value) -> Option<(Value, Vec<Inst>, Option<Other>)> {
        let func = self.func;
        let inst = func.dfg.value_def(whole).inst()?;
        let decided = match func.dfg.insts[inst].opcode() {
            Opcode::Band => 1,
            Opcode::Bor => 0,
            _ => return None,
        };
        let [a, b] = *func.dfg.inst_args(inst) else { return None };
        if !is_truth(func, a) || !is_truth(func, b) {
            return None;
        }
        let is_known = |value| is_constant_value(func, value);
        [(a, b), (b, a)].into_iter().filter(|&(side, _)| !is_known(side)).find_map(|(side, value)| {
            let chain = invariant_chain(func, self.forest, lp, side)?;
            Some((side, chain, Some(Other { value, decided })))
        })
    }

    /// The instructions that one version of the loop does without if the `select` is decided: the larger number of the two.
    fn saved(&mut self, lp: Loop, select: Inst) -> usize {
        let func = self.func;
        let uses = self.uses.get_or_insert_with(|| count_uses(func));
        let serves_one = |value: Value| {
            let inst = func.dfg.value_def(value).inst()?;
            let is_inside = func.layout.inst_block(inst).is_some_and(|block| self.forest.contains(lp, block));
            let effects = Effects::of(func, inst);
            let can_go = !(effects.traps || effects.writes || effects.fences || effects.terminates);
            let results = func.dfg.inst_results(inst);
            let is_lonely = results.iter().map(|&result| uses[result]).sum::<u32>() == 1;
            (is_inside && can_go && is_lonely).then_some(inst)
        };
        let saved = |arm: Value| {
            let (mut count, mut stack) = (0, vec![arm]);
            while let Some(value) = stack.pop() {
                if let Some(inst) = serves_one(value).filter(|_| count < MAX_SAVED) {
                    count += 1;
                    stack.extend(func.dfg.inst_args(inst));
                }
            }
            count
        };
        let args = func.dfg.inst_args(select);
        usize::max(saved(args[1]), saved(args[2]))
    }
}

/// Which arm each destination of a `br_table` is.
fn arms_of_table(func: &Function, branch: Inst) -> Vec<usize> {
    let mut arms = BTreeMap::<(Block, Vec<Value>), usize>::new();
    let key = |edge: Edge| {
        let args = edge.args(func).map(|arg| match arg {
            BlockArg::Value(value) => value,
            BlockArg::TryCallRet(_) | BlockArg::TryCallExn(_) => unreachable!("a br_table passes values only"),
        });
        (edge.target(func), args.collect())
    };
    let number = |edge| {
        let next = arms.len();
        *arms.entry(key(edge)).or_insert(next)
    };
    edges_of(func, branch).map(number).collect()
}

/// For each arm of a `br_table`, which destination it decides in `branch`. Nothing if that is none on the same index, or one arm
/// does not decide it.
fn slots_of_table(func: &Function, branch: Inst, (candidate, table): (&Candidate, &[usize])) -> Option<Vec<usize>> {
    let InstructionData::BranchTable { arg, .. } = func.dfg.insts[branch] else { return None };
    if !is_same(func, arg, candidate.condition) || destinations(func, branch).len() != table.len() {
        return None;
    }
    let other = arms_of_table(func, branch);
    let mut slots = vec![None; candidate.arms()];
    for (slot, &arm) in table.iter().enumerate() {
        let decided = *slots[arm].get_or_insert(slot);
        if other[decided] != other[slot] {
            return None;
        }
    }
    slots.into_iter().collect()
}

/// Whether `block` does nothing but trap in the end, without a choice.
fn leads_to_trap(func: &Function, block: Block) -> bool {
    let mut next = Some(block);
    for _ in 0..MAX_BLOCKS {
        let Some(block) = next else { return false };
        if ends_in_trap(func, block) {
            return true;
        }
        next = jump_target(func, block);
    }
    false
}

/// The branches and selects in loops by what decides them, so that those on one condition are found without a look at all others.
#[derive(Default)]
pub(super) struct Deciders(FxHashMap<Key, Vec<Inst>>);

impl Deciders {
    /// Those of all loops, without the selects that have to stay. Linear in the size of the function.
    pub(super) fn of(func: &Function, forest: &LoopForest, stays: impl Fn(Inst) -> bool) -> Self {
        let mut deciders = FxHashMap::<Key, Vec<Inst>>::default();
        for block in func.layout.blocks().filter(|&block| forest.innermost(block).is_some()) {
            for inst in func.layout.block_insts(block) {
                let is_decided = match func.dfg.insts[inst].opcode() {
                    Opcode::Brif | Opcode::BrTable => true,
                    Opcode::Select => !stays(inst),
                    _ => false,
                };
                if is_decided {
                    deciders.entry(Key::of(func, func.dfg.inst_args(inst)[0])).or_default().push(inst);
                }
            }
        }
        Self(deciders)
    }

    /// Those that may be on this condition.
    fn on(&self, func: &Function, condition: Value) -> &[Inst] {
        self.0.get(&Key::of(func, condition)).map_or(&[], Vec::as_slice)
    }
}

/// What is equal for values that [`is_same`] takes for the same.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Computed(InstructionData),
    Other(Value),
}

impl Key {
    fn of(func: &Function, value: Value) -> Self {
        match func.dfg.value_def(value) {
            ValueDef::Result(inst, 0) => Self::Computed(func.dfg.insts[inst]),
            _ => Self::Other(value),
        }
    }
}

/// What is settled in a loop once the arm of a candidate is known.
pub(super) struct Decision {
    /// Branches, with the number of their destination for each arm, if that is decided.
    pub(super) branches: BTreeMap<Inst, Vec<Option<usize>>>,
    /// Each takes its first value if the arm is the first.
    pub(super) selects: Vec<Inst>,
}

impl Decision {
    /// What `candidate` decides in the loop.
    pub(super) fn of(
        func: &Function,
        deciders: &Deciders,
        candidate: &Candidate,
        is_inside: impl Fn(Block) -> bool,
    ) -> Self {
        let mut decision = Self { branches: BTreeMap::new(), selects: Vec::new() };
        if let Some(Other { decided, .. }) = candidate.other {
            decision.branches.insert(candidate.inst, [0, 1].map(|arm| (arm == decided).then_some(arm)).to_vec());
        }
        for &inst in deciders.on(func, candidate.condition) {
            if !func.layout.inst_block(inst).is_some_and(&is_inside) {
                continue;
            }
            let is_on_it = is_same(func, func.dfg.inst_args(inst)[0], candidate.condition);
            match (func.dfg.insts[inst].opcode(), &candidate.table) {
                (Opcode::BrTable, Some(table)) => {
                    decision.branches.extend(
                        slots_of_table(func, inst, (candidate, table))
                            .map(|slots| (inst, slots.into_iter().map(Some).collect())),
                    );
                }
                (Opcode::Brif, None) if is_on_it => {
                    decision.branches.insert(inst, vec![Some(0), Some(1)]);
                }
                (Opcode::Select, None) if is_on_it => decision.selects.push(inst),
                _ => {}
            }
        }
        decision
    }

    /// Calls `visit` with the blocks that `block` goes on to if the candidate takes `arm`.
    pub(super) fn successors_in_arm(&self, func: &Function, block: Block, arm: usize, mut visit: impl FnMut(Block)) {
        let Some(last) = func.layout.last_inst(block) else { return };
        let slot = self.branches.get(&last).and_then(|slots| slots[arm]);
        for (index, call) in destinations(func, last).iter().enumerate() {
            if slot.is_none_or(|slot| slot == index) {
                visit(call.block(&func.dfg.value_lists));
            }
        }
    }
}

/// Whether the two are the same value, or computed in the same way from the same values.
fn is_same(func: &Function, a: Value, b: Value) -> bool {
    let dfg = &func.dfg;
    match (dfg.value_def(a), dfg.value_def(b)) {
        _ if a == b => true,
        (ValueDef::Result(one, 0), ValueDef::Result(other, 0)) => {
            dfg.insts[one] == dfg.insts[other]
                && dfg.ctrl_typevar(one) == dfg.ctrl_typevar(other)
                && Effects::of(func, one).is_pure()
        }
        _ => false,
    }
}

/// The arm that the candidate takes, if a branch on the same condition above `block` tells: its edge is the only one into a block
/// that dominates `block`.
pub(super) fn known_arm(ctx: &Context, candidate: &Candidate, block: Block) -> Option<usize> {
    let Context { func, cfg, domtree, .. } = ctx;
    if candidate.table.is_some() {
        return None;
    }
    let mut below = block;
    for _ in 0..MAX_BLOCKS {
        let above = domtree.idom(below)?;
        let last = func.layout.last_inst(above)?;
        if let InstructionData::Brif { arg, .. } = func.dfg.insts[last]
            && is_same(func, arg, candidate.condition)
            && let Some(edge) = only_edge_into(func, cfg, below).filter(|edge| edge.branch == last)
        {
            return Some(edge.slot);
        }
        below = above;
    }
    None
}
