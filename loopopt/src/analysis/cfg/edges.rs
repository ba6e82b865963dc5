//! Edges of the control-flow graph, one for each branch destination.
//!
//! Cranelift's `ControlFlowGraph` counts a `brif` with both arms to one block, or a `br_table` with five equal entries,
//! as one predecessor. A rewrite must see each destination, because each carries arguments of its own.

use crate::analysis::inst::effects::counts_as_code;
use crate::fault::fault;
use cranelift_codegen::Context;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, BlockArg, BlockCall, ExceptionTableItem, Function, Inst, Opcode, Value, ValueDef};

/// One destination of one branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// The terminator that the edge belongs to.
    pub branch: Inst,
    /// Which of its destinations: then before else, the default of a `br_table` first, the normal return of a
    /// `try_call` last.
    pub slot: usize,
}

impl Edge {
    /// The block that the edge leaves.
    pub fn source(self, func: &Function) -> Block {
        func.layout.inst_block(self.branch).expect("a branch with edges is in the layout")
    }

    /// The block that the edge enters.
    pub fn target(self, func: &Function) -> Block {
        self.block_call(func).block(&func.dfg.value_lists)
    }

    /// The arguments that the edge passes.
    pub fn args(self, func: &Function) -> impl ExactSizeIterator<Item = BlockArg> + use<'_> {
        self.block_call(func).args(&func.dfg.value_lists)
    }

    /// The block argument for `value`, if that is a parameter of the edge's target.
    pub fn passed_for(self, func: &Function, value: Value) -> Option<Value> {
        let ValueDef::Param(block, index) = func.dfg.value_def(value) else { return None };
        self.args(func).nth(index).filter(|_| block == self.target(func))?.as_value()
    }

    fn block_call(self, func: &Function) -> BlockCall {
        destinations(func, self.branch)[self.slot]
    }
}

/// The destinations of an instruction, none if it is not a branch.
pub fn destinations(func: &Function, inst: Inst) -> &[BlockCall] {
    let data = &func.dfg.insts[inst];
    if !data.opcode().is_branch() {
        return &[];
    }
    data.branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables)
}

/// How large a copy of `inst` is, in instructions: each target of a `br_table` beyond two counts as one.
pub fn copied_size(func: &Function, inst: Inst) -> usize {
    match func.dfg.insts[inst].opcode() {
        Opcode::BrTable => 1 + destinations(func, inst).len().saturating_sub(2),
        _ => 1,
    }
}

/// The same for what [counts as code](counts_as_code), and nothing for the rest.
pub fn code_size(func: &Function, inst: Inst) -> usize {
    if counts_as_code(func, inst) { copied_size(func, inst) } else { 0 }
}

/// Calls `visit` with each value that `inst` uses, once for each use: what `inst_values` gives, which asks each instruction
/// whether it branches and whether it catches exceptions.
#[inline]
pub fn each_use(func: &Function, inst: Inst, mut visit: impl FnMut(Value)) {
    let dfg = &func.dfg;
    let data = &dfg.insts[inst];
    if !data.opcode().is_branch() {
        data.arguments(&dfg.value_lists).iter().for_each(|&value| visit(value));
    } else if data.exception_table().is_some() {
        dfg.inst_values(inst).for_each(visit);
    } else {
        data.arguments(&dfg.value_lists).iter().for_each(|&value| visit(value));
        for call in data.branch_destination(&dfg.jump_tables, &dfg.exception_tables) {
            call.args(&dfg.value_lists).filter_map(|arg| arg.as_value()).for_each(&mut visit);
        }
    }
}

/// What `inst` uses besides its block arguments: its operands, and the contexts in which its exceptions are looked up.
pub fn own_uses(func: &Function, inst: Inst) -> impl Iterator<Item = Value> + use<'_> {
    let dfg = &func.dfg;
    let items = dfg.insts[inst].exception_table().into_iter().flat_map(|table| dfg.exception_tables[table].items());
    let contexts = items.filter_map(|item| match item {
        ExceptionTableItem::Context(value) => Some(value),
        ExceptionTableItem::Tag(..) | ExceptionTableItem::Default(_) => None,
    });
    dfg.inst_args(inst).iter().copied().chain(contexts)
}

/// How often each value is used in the function. Linear in its size.
pub fn count_uses(func: &Function) -> SecondaryMap<Value, u32> {
    let mut uses = SecondaryMap::new();
    uses.resize(func.dfg.num_values());
    for block in &func.layout {
        for inst in func.layout.block_insts(block) {
            each_use(func, inst, |value| uses[value] += 1);
        }
    }
    uses
}

/// The edges that leave `block`.
pub fn edges_from(func: &Function, block: Block) -> impl Iterator<Item = Edge> + use<'_> {
    let branch = func.layout.last_inst(block);
    branch.into_iter().flat_map(|branch| edges_of(func, branch))
}

/// The edges that leave `block` with the blocks that they enter.
pub fn edges_and_targets(func: &Function, block: Block) -> impl Iterator<Item = (Edge, Block)> + use<'_> {
    let branch = func.layout.last_inst(block);
    branch.into_iter().flat_map(move |branch| {
        let edges = destinations(func, branch).iter().enumerate();
        edges.map(move |(slot, call)| (Edge { branch, slot }, call.block(&func.dfg.value_lists)))
    })
}

/// The edges of the branch `branch`.
pub fn edges_of(func: &Function, branch: Inst) -> impl Iterator<Item = Edge> + use<> {
    (0..destinations(func, branch).len()).map(move |slot| Edge { branch, slot })
}

/// The edges that enter `block`, in a fixed order.
pub fn edges_into<'a>(
    func: &'a Function,
    cfg: &'a ControlFlowGraph,
    block: Block,
) -> impl Iterator<Item = Edge> + use<'a> {
    cfg.pred_iter(block).flat_map(move |pred| edges_between(func, pred.inst, block))
}

/// Edges by the block that they enter, in the order of [`edges_into`]. Making it takes one look at each edge, where [`edges_into`] looks at each destination of
/// each branch into a block: of a `br_table`, for each of the blocks that it goes to.
#[derive(Clone, Debug)]
pub struct EdgesByTarget {
    /// Where the edges into a block start and end.
    ranges: SecondaryMap<Block, (u32, u32)>,
    edges: Vec<Edge>,
}

impl EdgesByTarget {
    /// The edges of `func` that enter blocks that are `wanted`.
    pub fn new(func: &Function, wanted: impl Fn(Block) -> bool) -> Self {
        let mut ranges = SecondaryMap::<Block, (u32, u32)>::new();
        ranges.resize(func.dfg.num_blocks());
        let edges =
            || func.layout.blocks().flat_map(|block| edges_and_targets(func, block)).filter(|&(_, to)| wanted(to));
        let mut found = Vec::with_capacity(func.dfg.num_blocks());
        for (edge, target) in edges() {
            ranges[target].1 += 1;
            found.push((edge, target));
        }
        let mut next = 0;
        for range in ranges.values_mut() {
            let count = range.1;
            *range = (next, next);
            next += count;
        }
        let mut edges = vec![Edge { branch: Inst::from_u32(0), slot: 0 }; found.len()];
        for (edge, target) in found {
            let end = &mut ranges[target].1;
            edges[*end as usize] = edge;
            *end += 1;
        }
        for &(start, end) in ranges.values() {
            // A flow graph lists predecessors by the numbers of their branches.
            edges[start as usize..end as usize].sort_unstable();
        }
        Self { ranges, edges }
    }

    /// The edges that enter `block`.
    pub fn entering(&self, block: Block) -> &[Edge] {
        let (start, end) = self.ranges[block];
        &self.edges[start as usize..end as usize]
    }
}

/// The edge that enters `block`, if there is one only.
pub fn only_edge_into(func: &Function, cfg: &ControlFlowGraph, block: Block) -> Option<Edge> {
    let mut preds = cfg.pred_iter(block);
    let (pred, None) = (preds.next()?, preds.next()) else { return None };
    let mut edges = edges_between(func, pred.inst, block);
    let (edge, None) = (edges.next()?, edges.next()) else { return None };
    Some(edge)
}

/// The block argument for `value` on the only edge into its block, if it is a parameter.
pub(crate) fn passed_alone(func: &Function, cfg: &ControlFlowGraph, value: Value) -> Option<Value> {
    let ValueDef::Param(block, _) = func.dfg.value_def(value) else { return None };
    only_edge_into(func, cfg, block)?.passed_for(func, value)
}

/// Whether each path to `block` takes `edge`: nothing else enters its target, which dominates the block.
pub fn edge_dominates(ctx: &Context, edge: Edge, block: Block) -> bool {
    let target = edge.target(&ctx.func);
    ctx.domtree.block_dominates(target, block) && only_edge_into(&ctx.func, &ctx.cfg, target) == Some(edge)
}

/// The edges of `branch` that enter `block`.
pub(in crate::analysis) fn edges_between(
    func: &Function,
    branch: Inst,
    block: Block,
) -> impl Iterator<Item = Edge> + use<'_> {
    let most = if fault!(OneEdgePerBranch) { 1 } else { usize::MAX };
    let enters = move |(_, call): &(usize, &BlockCall)| call.block(&func.dfg.value_lists) == block;
    let edges = destinations(func, branch).iter().enumerate().filter(enters);
    edges.map(move |(slot, _)| Edge { branch, slot }).take(most)
}
