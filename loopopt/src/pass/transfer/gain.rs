//! What a loop can do without if it loses its rare part, and what it must not lose.

use crate::analysis::cfg::edges::{Edge, edges_into, only_edge_into};
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::inst::effects::{Effects, calls, is_comparison, is_constant};
use crate::analysis::memory::alias::{Access, LoopStores, PrivateSlots};
use crate::analysis::memory::exit_polls::{asked_by, settles};
use crate::analysis::scev::invariant::invariant_chain;
use crate::options::Options;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value, ValueDef};
use cranelift_codegen::{Context, FxHashSet};
use smallvec::SmallVec;

/// Accesses that are compared with all stores. More than that do not fit into registers.
const MAX_ACCESSES: usize = 64;

/// Values that are looked at for one condition.
const MAX_VALUES: usize = 64;

/// What only the rare part keeps in the loop.
#[derive(Clone, Copy)]
pub(super) struct Gain {
    /// Loads of one place each.
    pub(super) loads: usize,
    /// Stores to one place each.
    pub(super) stores: usize,
    /// What comes from calls of the rare part.
    pub(super) values: Values,
}

/// Parameters for what a rare part has made with a call, or another edge passes.
#[derive(Clone, Copy, Default)]
pub(super) struct Values {
    /// How many there are.
    pub(super) all: usize,
    /// Those for which the other edge passes what is compared there: fuel, or when a poll finds something.
    polled: usize,
}

impl Gain {
    /// What the loop can do without if it consists of the blocks `hot`.
    pub(super) fn of(
        ctx: &Context,
        (forest, lp): (&LoopForest, Loop),
        (hot, is_hot): (&[Block], &EntitySet<Block>),
        private: &PrivateSlots,
    ) -> Self {
        let func = &ctx.func;
        let mut gain = Self { loads: 0, stores: 0, values: values_of_calls(ctx, (forest, lp), (hot, is_hot)) };
        let fast = LoopStores::of(func, hot);
        if fast.fence.is_some() && private.is_empty() {
            // Nothing is its own between two calls.
            return gain;
        }
        let all = LoopStores::of(func, forest.blocks(lp));
        // A trap shows what is stored, each time.
        let mut insts = hot.iter().flat_map(|&block| func.layout.block_insts(block));
        let shows = fast.fence.is_some() || insts.any(|inst| Effects::of(func, inst).traps);
        let accesses = hot.iter().flat_map(|&block| func.layout.block_insts(block));
        for access in accesses.filter_map(|inst| Access::of(func, inst)).take(MAX_ACCESSES) {
            if !may_move(ctx, (forest, lp), &access) {
                continue;
            }
            let stays = all.clobber(func, &access, private);
            if stays.is_none() || invariant_chain(func, forest, lp, access.operand).is_none() {
                continue;
            }
            match access.stored {
                None => gain.loads += usize::from(fast.clobber(func, &access, private).is_none()),
                // A store clobbers itself: what counts is that nobody else looks.
                Some(_) => gain.stores += usize::from(all.fence.is_some() && !shows),
            }
        }
        gain
    }

    /// Whether that is not worth a copy.
    pub(super) fn is_nothing(&self, options: &Options) -> bool {
        let min_values = if options.ignore_cost { 1 } else { options.transfer_min_values };
        let Values { all, polled } = self.values;
        self.loads + self.stores == 0 && all == polled && all < min_values.max(1)
    }
}

/// How many parameters there are in `hot` blocks for what comes from one of these, or from a rare part, if that calls. Without a call, it computes what is not much
/// worse to have in the loop; and if the loop calls anyway, what that takes is all that counts. Inner loops have rare parts of their own: a nest that counts fuel has
/// as many values as polls.
fn values_of_calls(
    ctx: &Context,
    (forest, lp): (&LoopForest, Loop),
    (hot, is_hot): (&[Block], &EntitySet<Block>),
) -> Values {
    let func = &ctx.func;
    let hot = || hot.iter().copied().filter(|&block| !func.layout.is_cold(block));
    let rare_part_calls = || forest.blocks(lp).iter().any(|&block| !is_hot.contains(block) && calls(func, block));
    if !forest.is_innermost(lp) || !rare_part_calls() || hot().any(|block| calls(func, block)) {
        return Values::default();
    }
    // The edges of the loop alone: what enters the header from outside is of the outer loop.
    let header = forest.data(lp).header;
    let hot_edge = |block: Block| {
        let edges = forest.edges_into(func, &ctx.cfg, block).iter().copied();
        let edges = edges.filter(|edge| forest.contains(lp, edge.source(func)));
        let (hot, rare): (Vec<_>, Vec<_>) = edges.partition(|edge| is_hot.contains(edge.source(func)));
        <[Edge; 1]>::try_from(hot).ok().filter(|_| !rare.is_empty()).map(|[hot]| hot)
    };
    let mut values = Values::default();
    for block in hot().filter(|&block| block != header && func.dfg.num_block_params(block) > 0) {
        let Some(edge) = hot_edge(block) else { continue };
        let compared = compared_before(ctx, edge);
        values.all += func.dfg.num_block_params(block);
        values.polled += edge.args(func).filter_map(|arg| arg.as_value()).filter(|arg| compared.contains(arg)).count();
    }
    values
}

/// What is compared to decide whether `edge` is taken.
fn compared_before(ctx: &Context, edge: Edge) -> SmallVec<[Value; 2]> {
    let func = &ctx.func;
    let is_brif = |edge: &Edge| func.dfg.insts[edge.branch].opcode() == Opcode::Brif;
    let edge = Some(edge).filter(is_brif).or_else(|| only_edge_into(func, &ctx.cfg, edge.source(func)).filter(is_brif));
    let Some(edge) = edge else { return SmallVec::new() };
    let condition = func.dfg.inst_args(edge.branch)[0];
    let compares = func.dfg.value_def(condition).inst().filter(|&inst| is_comparison(func, inst));
    compares.map_or(SmallVec::from_slice(&[condition]), |inst| func.dfg.inst_args(inst).into())
}

/// Whether the access may run before the loop, or runs in each iteration.
fn may_move(ctx: &Context, (forest, lp): (&LoopForest, Loop), access: &Access) -> bool {
    let func = &ctx.func;
    let home = func.layout.inst_block(access.inst);
    let is_certain = || home.is_some_and(|home| forest.is_in_each_iteration(func, &ctx.domtree, lp, home));
    (access.flags.notrap() && access.flags.can_move()) || is_certain()
}

/// Whether `inst` loads what others write at any time, so that it stays in the loop whatever else is there.
pub(super) fn is_asynchronous(func: &Function, options: &Options, inst: Inst) -> bool {
    let flags = func.dfg.insts[inst].memflags();
    flags.is_some_and(|flags| options.is_asynchronous(func, func.dfg.mem_flags[flags]))
}

/// A value for which the loop may be waiting on `edge`: loads that could leave it decide alone whether the edge is taken, as long as it is not.
///
/// "Alone" is with values that are the same in each iteration of the `hot` blocks, or become so: a parameter that only the rare part
/// changes is one, and what is made of itself by an instruction that [`settles`]. What else is computed from what it was in the iteration before, a counter or what is loaded by one, decides as well,
/// and then the loop does not wait. If that takes too long to find out, it waits.
pub(super) fn waits(
    ctx: &Context,
    (forest, lp): (&LoopForest, Loop),
    (hot, options): (&EntitySet<Block>, &Options),
    edge: Edge,
) -> Option<Value> {
    let asked = asked_by(&ctx.func, edge)?;
    asked.iter().find_map(|&value| waits_for(ctx, (forest, lp), (hot, options), value))
}

/// The same, if `asked` is a value that has to change for the edge to be taken.
fn waits_for(
    ctx: &Context,
    (forest, lp): (&LoopForest, Loop),
    (hot, options): (&EntitySet<Block>, &Options),
    asked: Value,
) -> Option<Value> {
    let func = &ctx.func;
    let header = forest.data(lp).header;
    let mut load = None;
    let mut seen = FxHashSet::default();
    let mut stack = vec![Trail { value: asked, from: None, is_computed: false }];
    while let Some(trail) = stack.pop() {
        if !seen.insert(trail) {
            continue;
        }
        if seen.len() > MAX_VALUES {
            return Some(asked);
        }
        let inst = match func.dfg.value_def(trail.value) {
            ValueDef::Param(block, index) if forest.contains(lp, block) => {
                if trail.from == Some(trail.value) && trail.is_computed {
                    return None;
                }
                stack.extend(passed(ctx, (hot, header), (block, index), trail));
                continue;
            }
            ValueDef::Result(inst, _) => inst,
            ValueDef::Param(..) | ValueDef::Union(..) => continue,
        };
        if !func.layout.inst_block(inst).is_some_and(|block| forest.contains(lp, block)) || is_constant(func, inst) {
            continue;
        }
        match func.dfg.insts[inst] {
            InstructionData::Load { .. } if is_asynchronous(func, options, inst) => {}
            InstructionData::Load { .. } => load = Some(trail.value),
            _ if !Effects::of(func, inst).is_pure() => return None,
            _ => {}
        }
        let is_computed = trail.is_computed || !settles(func.dfg.insts[inst].opcode());
        let operands = func.dfg.inst_args(inst).iter();
        stack.extend(operands.map(|&value| Trail { value, is_computed, ..trail }));
    }
    load
}

/// A value on the path from a condition to what it is made of.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Trail {
    value: Value,
    /// The parameter of a header that the path went through last, and back to the iteration before.
    from: Option<Value>,
    /// Whether the value was changed since, by more than what [`settles`].
    is_computed: bool,
}

/// The block arguments that the edges from `hot` blocks pass for a parameter.
fn passed<'a>(
    ctx: &'a Context,
    (hot, header): (&'a EntitySet<Block>, Block),
    (block, index): (Block, usize),
    trail: Trail,
) -> impl Iterator<Item = Trail> + use<'a> {
    let Context { func, cfg, domtree, .. } = ctx;
    let edges = edges_into(func, cfg, block).filter(|edge| hot.contains(edge.source(func)));
    edges.filter_map(move |edge| {
        let value = edge.args(func).nth(index)?.as_value()?;
        // An inner loop starts again.
        let goes_back = block == header && domtree.block_dominates(block, edge.source(func));
        let back = Trail { value, from: Some(trail.value), is_computed: false };
        Some(if goes_back { back } else { Trail { value, ..trail } })
    })
}
