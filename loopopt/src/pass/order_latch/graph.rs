//! What has to come before what in a latch, and the order that follows from it.

use super::{Latch, is_small_sum};
use crate::analysis::cfg::edges::edges_of;
use crate::analysis::inst::effects::Effects;
use crate::fault::fault;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::ir::{Block, Function, Inst, Opcode, Value, ValueDef};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// One place in the new order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// This instruction.
    Keep(Inst),
    /// A copy of this instruction, for the branch.
    Again(Inst),
}

/// Stands for the branch among the readers of a value.
const BRANCH: usize = usize::MAX;

/// What has to come before what in a latch.
pub(super) struct Graph {
    nodes: Vec<Node>,
    index: FxHashMap<Value, usize>,
    /// For each value, the nodes that read it, in their own operands or in an addressing mode, or [`BRANCH`]. Some of them may be in
    /// it more than once.
    readers: FxHashMap<Value, Vec<usize>>,
    /// The comparison that is folded into the branch.
    compare: Option<usize>,
    /// For each parameter in order, the node that makes the value that the branch passes for it.
    last: FxHashMap<Value, usize>,
}

struct Node {
    item: Item,
    /// Nodes that come first. Some of them may be in it more than once.
    after: Vec<usize>,
    /// Where the node is in the old order.
    rank: usize,
}

impl Graph {
    pub(super) fn of(func: &Function, latch: &Latch) -> Self {
        let mut graph = Self {
            nodes: Vec::new(),
            index: FxHashMap::default(),
            readers: FxHashMap::default(),
            compare: None,
            last: FxHashMap::default(),
        };
        let mut last_effect = None;
        for (position, &inst) in latch.insts.iter().enumerate() {
            let mut after = graph.operands_of(func, inst);
            if is_in_order(Effects::of(func, inst)) {
                after.extend(last_effect.replace(position));
            }
            each_read(func, latch.block, inst, |value| graph.readers.entry(value).or_default().push(position));
            graph.index.extend(func.dfg.inst_results(inst).iter().map(|&result| (result, position)));
            graph.nodes.push(Node { item: Item::Keep(inst), after, rank: position });
        }
        let compare = latch.compare(func);
        graph.compare = compare.and_then(|compare| latch.insts.iter().position(|&inst| inst == compare));
        // What the comparison reads is read at the branch.
        for &value in compare.iter().flat_map(|&compare| func.dfg.inst_args(compare)) {
            for value in [Some(value), whole(func, value)].into_iter().flatten() {
                graph.readers.entry(value).or_default().push(BRANCH);
            }
        }
        for value in edges_of(func, latch.branch).flat_map(|edge| edge.args(func)).filter_map(|arg| arg.as_value()) {
            graph.readers.entry(value).or_default().push(BRANCH);
        }
        graph
    }

    fn readers(&self, param: Value) -> impl Iterator<Item = usize> + use<'_> {
        self.readers.get(&param).into_iter().flatten().copied()
    }

    /// Whether a reader of `param` comes after its next value, and none is the branch.
    pub(super) fn is_late(&self, param: Value, next: Value) -> bool {
        let comes_after = |reader| self.index.get(&next).is_none_or(|&def| reader > def);
        self.readers(param).all(|reader| reader != BRANCH) && self.readers(param).any(comes_after)
    }

    /// Demands that `next` comes after all readers of `param`. Returns whether that can be; if not, demands nothing. A sum that many
    /// of them would have to come before is recomputed instead, if it can be: `max_early` says how many are not.
    pub(super) fn put_last(&mut self, func: &Function, (param, next): (Value, Value), max_early: usize) -> bool {
        let def = self.index.get(&next).copied();
        let readers: Vec<_> = self.readers(param).filter(|&reader| Some(reader) != def && reader != BRANCH).collect();
        let def = def.filter(|&def| !readers.iter().any(|&reader| self.needs(reader, def)));
        let is_early = def.is_some_and(|def| self.early(func, def, &readers) <= max_early);
        if !is_early && self.repeat(func, (param, next), &readers) {
            return true;
        }
        let Some(def) = def else { return false };
        self.nodes[def].after.extend(readers);
        self.last.insert(param, def);
        true
    }

    /// How many of `readers` would come before a load, store or the like that is before them now, if they came before `def`.
    fn early(&self, func: &Function, def: usize, readers: &[usize]) -> usize {
        let mut needs_def = vec![false; self.nodes.len()];
        for node in def + 1..self.nodes.len() {
            let Node { item, after, .. } = &self.nodes[node];
            needs_def[node] = after.iter().any(|&before| before == def || needs_def[before]);
            if let Item::Keep(inst) = *item
                && needs_def[node]
                && is_in_order(Effects::of(func, inst))
            {
                return readers.iter().filter(|&&reader| reader > node).count();
            }
        }
        0
    }

    /// Lets the branch have a `next` of its own, which comes after `readers`, those of `param`. Returns whether that can be.
    fn repeat(&mut self, func: &Function, (param, next): (Value, Value), readers: &[usize]) -> bool {
        let ValueDef::Result(sum, _) = func.dfg.value_def(next) else { return false };
        let compare = self.compare.filter(|&compare| match self.nodes[compare].item {
            Item::Keep(inst) => func.dfg.inst_args(inst).contains(&next),
            Item::Again(_) => false,
        });
        let needs_compare = |reader, compare| reader == compare || self.needs(reader, compare);
        let compare_is_needed =
            compare.is_some_and(|compare| readers.iter().any(|&reader| needs_compare(reader, compare)));
        if compare_is_needed || !is_small_sum(func, sum) {
            return false;
        }
        let mut after = self.operands_of(func, sum);
        after.extend_from_slice(readers);
        self.nodes.push(Node { item: Item::Again(sum), after, rank: self.nodes.len() });
        let again = self.nodes.len() - 1;
        if let Some(compare) = compare {
            self.nodes[compare].after.push(again);
        }
        self.last.insert(param, again);
        self.add_reader(func, sum, again);
        true
    }

    /// Lets `again`, a copy of `sum`, be a reader of what that reads: for parameters that are in order already, and for
    /// those to come.
    fn add_reader(&mut self, func: &Function, sum: Inst, again: usize) {
        for &operand in func.dfg.inst_args(sum) {
            self.readers.entry(operand).or_default().push(again);
            if let Some(&last) = self.last.get(&operand)
                && last != again
                && !self.needs(again, last)
            {
                self.nodes[last].after.push(again);
            }
        }
    }

    fn operands_of(&self, func: &Function, inst: Inst) -> Vec<usize> {
        func.dfg.inst_args(inst).iter().filter_map(|arg| self.index.get(arg).copied()).collect()
    }

    /// Whether `node` has to come after `other`.
    fn needs(&self, node: usize, other: usize) -> bool {
        let mut seen = vec![false; self.nodes.len()];
        let mut stack = vec![node];
        while let Some(node) = stack.pop() {
            if self.nodes[node].after.contains(&other) {
                return true;
            }
            let unseen = |&before: &usize| !std::mem::replace(&mut seen[before], true);
            stack.extend(self.nodes[node].after.iter().copied().filter(unseen));
        }
        false
    }

    /// The order that keeps closest to the old one.
    pub(super) fn sorted(&self) -> Vec<Item> {
        let mut missing: Vec<_> = self.nodes.iter().map(|node| node.after.len()).collect();
        let next = |node: usize| Reverse((self.nodes[node].rank, node));
        let mut ready: BinaryHeap<_> = (0..self.nodes.len()).filter(|&node| missing[node] == 0).map(next).collect();
        let mut followers = vec![Vec::new(); self.nodes.len()];
        for (node, data) in self.nodes.iter().enumerate() {
            for &before in &data.after {
                followers[before].push(node);
            }
        }
        let mut order = Vec::new();
        while let Some(Reverse((_, node))) = ready.pop() {
            order.push(self.nodes[node].item);
            for &follower in &followers[node] {
                missing[follower] -= 1;
                if missing[follower] == 0 {
                    ready.push(next(follower));
                }
            }
        }
        order
    }
}

/// Whether an instruction with these effects keeps its place among the others that do.
fn is_in_order(effects: Effects) -> bool {
    let is_ignored = (fault!(IgnoredAlias) && effects.reads && !effects.fences)
        || (fault!(IgnoredTrap) && effects.traps && !effects.writes && !effects.fences);
    !effects.is_pure() && !is_ignored
}

/// Calls `visit` with the values that `inst` reads where it is: its operands, what they are the low halves of, and, for a load or
/// a store, what its address is summed up from in this block.
pub(super) fn each_read(func: &Function, block: Block, inst: Inst, mut visit: impl FnMut(Value)) {
    /// x86-64 addressing modes are sums of two registers, one of them shifted, and a constant: no deeper than this.
    const DEPTH: usize = 4;
    let args = func.dfg.inst_args(inst);
    args.iter().for_each(|&arg| visit(arg));
    args.iter().filter_map(|&arg| whole(func, arg)).for_each(&mut visit);
    let Some(address) = address_index(func, inst) else { return };
    let mut frontier = vec![args[address]];
    for _ in 0..DEPTH {
        let parts = frontier.iter().filter_map(|&value| func.dfg.value_def(value).inst()).filter(|&inst| {
            let folds = matches!(func.dfg.insts[inst].opcode(), Opcode::Iadd | Opcode::Ishl | Opcode::Uextend);
            folds && func.layout.inst_block(inst) == Some(block)
        });
        frontier = parts.flat_map(|inst| func.dfg.inst_args(inst).to_vec()).collect();
        frontier.iter().for_each(|&value| visit(value));
    }
}

/// What `value` is the low half of, in the same register.
fn whole(func: &Function, value: Value) -> Option<Value> {
    let inst = func.dfg.value_def(value).inst()?;
    let is_low = func.dfg.insts[inst].opcode() == Opcode::Ireduce;
    is_low.then(|| func.dfg.inst_args(inst)[0])
}

/// Which operand of a plain load or store is the address.
fn address_index(func: &Function, inst: Inst) -> Option<usize> {
    use cranelift_codegen::ir::InstructionData::{Load, Store};
    match func.dfg.insts[inst] {
        Load { .. } => Some(0),
        Store { .. } => Some(1),
        _ => None,
    }
}
