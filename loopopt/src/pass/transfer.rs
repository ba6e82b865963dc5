//! Loop transfer: a rare part of a loop is moved out of it, so that its effects no longer prevent optimizations of the rest.
//!
//! ```text
//! header:                              outer:              ◄── what is loop-invariant is loaded here
//!     v1 = load v0     invariant?          jump header
//!     brif v2, rare, next              header:
//! rare cold:                               brif v2, rare', next
//!     call f(v3)       it may write    next:
//!     jump next             ──►            brif v5, header, exit
//! next:
//!     brif v5, header, exit            rare' cold:
//!                                          call f(v3)
//!                                          jump next'
//!                                      next' cold:
//!                                          brif v5', outer, exit
//! ```
//!
//! A call in a cold block may write any memory, so that nothing can be loaded once before the loop, and no cell can stay in a
//! register. Without it, the loop is fast. An iteration that needs the rare part leaves the fast loop, is finished in a copy
//! of the remainder, and enters the loop again: [`crate::edit::copy::reroute_cold_path`].
//!
//! OMR ("loop transfer") goes to a slow copy of the loop and stays there until that is left. Its header dispatches by a
//! number to where the fast loop was left, since an edge into the middle would make a cycle with two entries. Here only inner loops of the
//! one that is made fast have such a header in the copy. The loop itself needs none: its copy goes back to the fast loop,
//! which is entered at its header like at first. That is legal for the same reason, takes less code, and one rare call in a thousand iterations
//! costs one iteration, not all that follow.
//!
//! # Needs
//!
//! Canonical form, and makes it if there is something to do and it was lost.
//!
//! # Legal when
//!
//! (L1) Each instruction that is in both may be copied: what may not is a fence, and with one there is nothing to win. (L2) The loop does not wait for memory that others write: a load that
//! decides alone whether a rare part is reached ([`waits`]), or whether the loop ends ([`polls`](crate::analysis::memory::exit_polls)),
//! is kept in the loop by the call in it, and has to stay. So that rare part stays as well, while others leave; and what decides whether the loop ends needs
//! a call that stays with it. A load of a region that others write ([`Writers::Others`](crate::Writers)) stays
//! without one: no pass moves it. So the fast loop polls in each iteration, as the loop did. Where something else that varies decides as well, in the
//! same condition or in one after it, the loop does not wait: it reaches the rare part or its end without anybody's help. Such a load may leave the
//! fast loop, and then what others write is seen when that is entered again. Who has to see it earlier says so of its region, or loads atomically. (L3) The loop has no cycle inside
//! that can be entered at two blocks. Apart from that each execution passes through the same instructions in the same order.
//!
//! # Pays when
//!
//! (P1) An edge leads to a cold block, and (P2) the back edge can be taken without; (P3) there is a load or a store of one place
//! that nothing but the cold blocks keeps in the loop, or a value that a call in them may give: an operation of a dynamic language gives what its instruction
//! gives or what a call gives, and what is known of the first (its tag) is not known of both; (P4) what is copied is not too large; (P5) the loop is not cold itself.
//! (P6) If the rare part is in an inner loop, that one runs a few times only: if not, it is the one to be made fast.
//! (P7) The function may not grow without limit.
//!
//! # Changes
//!
//! Blocks and edges. Wants another round, so that `licm` sees the fast loop before `peel` does. The outer loop of the fast one is marked slow: it
//! is the original one.
//!
//! # Not done
//!
//! Handlers of exceptions do not leave the loop: the call that throws is in it anyway.
//!
//! # References
//!
//! OMR `LoopVersioner` ("loop transfer"), where jumps into the middle were a mistake at first.

mod gain;
mod why;

use crate::analysis::cfg::edges::{Edge, code_size, copied_size, edges_and_targets, edges_from};
use crate::analysis::cfg::jumps::jump_target;
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::cfg::must_execute::Order;
use crate::analysis::inst::effects::calls;
use crate::analysis::memory::alias::{Access, LoopStores, PrivateSlots};
use crate::analysis::memory::loop_polls::LoopPolls;
use crate::analysis::scev::exit_count;
use crate::change::Change;
use crate::edit::TooManyParams;
use crate::edit::copy::reroute_cold_path::{ColdPath, RareEdge, Rerouted, repair, reroute};
use crate::edit::ssa::params::remove_redundant_params;
use crate::options::Options;
use crate::pass::copying::{Denied, granted};
use crate::pass::{Form, Pass, PassCx};
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Function, Inst, Opcode};
use cranelift_codegen::{CodegenResult, Context, FxHashSet};
use gain::{Gain, Values, is_asynchronous, waits};
use why::Decline;

/// Rare edges of one loop. 32: each gets blocks of its own, and later passes look at each exit: a table with 100 cold entries takes 5.9 times as long as
/// Cranelift alone, one with 2,000 34 times as long.
const MAX_COLD_EDGES: usize = 32;

/// The name of this pass.
pub(crate) const NAME: &str = "transfer";

/// The pass.
pub(crate) const PASS: Pass = Pass {
    name: NAME,
    run,
    reasons: &[Decline::REASONS, Denied::REASONS],
    claims: &[],
    copies: true,
    ..Pass::OPTIONAL
};

/// Jumps that are followed to a cold block.
const MAX_JUMPS: usize = 8;

/// Takes rare parts out of all loops in which they are an obstacle.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let plans = granted(ctx, cx, NAME, plan, |plan| (plan.header, plan.copied))?;
    if plans.is_empty() {
        return Ok(Change::Nothing);
    }
    apply(ctx, cx, &plans)?;
    Ok(Change::Insts)
}

/// The loops to be made fast, none inside another.
fn plan(ctx: &Context, cx: &mut PassCx<'_>) -> Vec<Plan> {
    let mut plans = Vec::new();
    let forest = cx.forest(ctx);
    let mut facts = None;
    let mut done = EntitySet::new();
    for lp in forest.loops() {
        let data = forest.data(lp);
        if data.parent.is_some_and(|parent| done.contains(parent)) {
            done.insert(lp);
            continue;
        }
        if !cx.marks.has_full_effort(data.header) {
            continue;
        }
        let look = Look { ctx, forest: &forest, lp, options: cx.options };
        let shape = look.shape();
        let plan = shape.and_then(|shape| look.prove(shape, facts.get_or_insert_with(|| Facts::of(ctx))));
        match plan.and_then(|plan| look.judge(plan)) {
            Ok(plan) => {
                done.insert(lp);
                plans.push(plan);
            }
            Err(why) if !cx.has_fired(NAME, data.header) => cx.declined(&ctx.func, NAME, data.header, &why),
            Err(_) => {}
        }
    }
    plans
}

/// A loop without its rare edges.
struct Shape {
    entry: Edge,
    rare: Vec<RareEdge>,
    /// What the fast loop consists of.
    hot: Vec<Block>,
    is_hot: EntitySet<Block>,
}

/// What is found out once for all loops of a function.
struct Facts {
    private: PrivateSlots,
    order: Order,
    polls: LoopPolls,
}

impl Facts {
    fn of(ctx: &Context) -> Self {
        let Context { func, domtree, .. } = ctx;
        Self { private: PrivateSlots::of(func, domtree), order: Order::of(func, domtree), polls: LoopPolls::default() }
    }
}

/// A loop, and what decides about it.
struct Look<'a> {
    ctx: &'a Context,
    forest: &'a LoopForest,
    lp: Loop,
    options: &'a Options,
}

impl Look<'_> {
    fn shape(&self) -> Result<Shape, Decline> {
        let Self { ctx, forest, lp, .. } = *self;
        let func = &ctx.func;
        let data = forest.data(lp);
        let blocks = forest.blocks(lp);
        if !blocks.iter().any(|&block| func.layout.is_cold(block)) {
            let stays = |edge: &Edge| forest.contains(lp, edge.target(func)) && edge.target(func) != data.header;
            let forks = |&block: &Block| edges_from(func, block).filter(stays).count() > 1;
            let has_call = || blocks.iter().any(|&block| calls(func, block));
            return Err(match blocks.iter().any(forks) {
                true if has_call() => Decline::NoColdEdge,
                true => Decline::NoCall,
                false => Decline::OnePath,
            });
        }
        if func.is_effectively_cold(data.header) {
            return Err(Decline::ColdLoop);
        }
        let rare = self.rare_edges();
        let ([entry], false) = (&data.entries[..], rare.is_empty()) else { return Err(Decline::NoColdEdge) };
        if rare.len() > MAX_COLD_EDGES {
            return Err(Decline::ManyColdEdges { edges: rare.len(), max: MAX_COLD_EDGES });
        }
        let shape = self.without(*entry, rare);
        let comes_back = data.back_edges.iter().any(|edge| shape.is_hot.contains(edge.source(func)));
        if comes_back { Ok(shape) } else { Err(Decline::AlwaysRare) }
    }

    /// The loop that `rare` edges leave.
    fn without(&self, entry: Edge, rare: Vec<RareEdge>) -> Shape {
        let Self { forest, lp, .. } = *self;
        let edges: FxHashSet<_> = rare.iter().map(|rare| rare.edge).collect();
        let is_hot = self.reach(&[forest.data(lp).header], |edge| !edges.contains(&edge));
        let hot = forest.blocks(lp).iter().copied().filter(|&block| is_hot.contains(block)).collect();
        Shape { entry, rare, hot, is_hot }
    }

    /// (L2) The loop that only those edges leave for which it does not wait.
    fn without_awaited(&self, mut shape: Shape) -> Result<Shape, Decline> {
        let Self { ctx, forest, lp, options } = *self;
        loop {
            let mut awaited = None;
            shape.rare.retain(|rare| {
                let value = waits(ctx, (forest, lp), (&shape.is_hot, options), rare.edge);
                awaited = awaited.or(value);
                value.is_none()
            });
            match awaited {
                None => return Ok(shape),
                Some(value) if shape.rare.is_empty() => return Err(Decline::Polls(value)),
                // With an edge that stays, there are more blocks in which something may change.
                Some(_) => shape = self.without(shape.entry, shape.rare),
            }
        }
    }

    /// The edges from a block that is not cold to one that is, or only leads to one, inside the loop.
    fn rare_edges(&self) -> Vec<RareEdge> {
        let Self { ctx, forest, lp, .. } = *self;
        let func = &ctx.func;
        let mut rare = Vec::new();
        for &block in forest.blocks(lp).iter().filter(|&&block| !func.layout.is_cold(block)) {
            let last = func.layout.last_inst(block).map(|last| func.dfg.insts[last].opcode());
            if !matches!(last, Some(Opcode::Brif | Opcode::BrTable)) {
                continue;
            }
            for (edge, target) in edges_and_targets(func, block) {
                let header = forest.loop_of_header(target);
                let goes_back = header.is_some_and(|header| forest.contains(header, block));
                if forest.contains(lp, target) && !goes_back && leads_to_cold(func, target) {
                    rare.push(RareEdge { edge, around: self.around(block, target) });
                }
            }
        }
        rare
    }

    /// The headers of the inner loops that hold both blocks, from the outside in.
    fn around(&self, source: Block, target: Block) -> Vec<Block> {
        let mut headers = Vec::new();
        let mut next = self.forest.innermost(source);
        while let Some(lp) = next.filter(|&lp| lp != self.lp) {
            if self.forest.contains(lp, target) {
                headers.push(self.forest.data(lp).header);
            }
            next = self.forest.data(lp).parent;
        }
        headers.reverse();
        headers
    }

    /// The blocks of the loop that can be reached from `starts` in the same iteration by edges that are `allowed`.
    fn reach(&self, starts: &[Block], allowed: impl Fn(Edge) -> bool) -> EntitySet<Block> {
        let header = self.forest.data(self.lp).header;
        let mut reached = EntitySet::new();
        reached.extend(starts.iter().copied());
        let mut stack = starts.to_vec();
        while let Some(block) = stack.pop() {
            for (edge, target) in edges_and_targets(&self.ctx.func, block) {
                let goes_on = target != header && self.forest.contains(self.lp, target) && allowed(edge);
                if goes_on && reached.insert(target) {
                    stack.push(target);
                }
            }
        }
        reached
    }

    fn prove(&self, shape: Shape, facts: &mut Facts) -> Result<Plan, Decline> {
        let Self { ctx, forest, lp, options } = *self;
        let func = &ctx.func;
        let blocks = forest.blocks(lp);
        if forest.irreducible_in(lp).is_some() {
            return Err(Decline::Irreducible);
        }
        // With more in the loop, there is no more to win. That is asked first, as it takes less time.
        let (gain, edges) = (self.gain_of(&shape, facts)?, shape.rare.len());
        let shape = self.without_awaited(shape)?;
        let gain = if shape.rare.len() == edges { gain } else { self.gain_of(&shape, facts)? };
        let starts: Vec<_> = shape.rare.iter().map(|rare| rare.edge.target(func)).collect();
        let rest = self.reach(&starts, |_| true);
        let rest: Vec<_> = blocks.iter().copied().filter(|&block| rest.contains(block)).collect();
        let twice = rest.iter().filter(|&&block| shape.is_hot.contains(block));
        // What must not be copied is a fence, or a call: with it in the loop, there is nothing to win in any case. A block that
        // is named does not move either.
        let mut insts = twice.flat_map(|&block| func.layout.block_insts(block));
        if insts.any(|inst| !forest.is_duplicable(func, inst)) || rest.iter().any(|&block| forest.is_named(block)) {
            return Err(Decline::NothingToWin);
        }
        let insts = || rest.iter().flat_map(|&block| func.layout.block_insts(block));
        let max = if options.ignore_cost { options.transfer_max_copied } else { options.transfer_max_insts };
        let size = insts().map(|inst| code_size(func, inst)).sum();
        if size > max {
            return Err(Decline::TooLarge { insts: size, max });
        }
        self.prove_patience(&shape, facts)?;
        let inner = blocks.iter().filter_map(|&block| forest.loop_of_header(block)).filter(|&inner| inner != lp);
        Ok(Plan {
            header: forest.data(lp).header,
            entry: shape.entry,
            inner: inner.map(|inner| forest.data(inner).header).collect(),
            copied: insts().map(|inst| copied_size(func, inst)).sum(),
            rest: facts.order.sorted(&rest),
            rare: shape.rare,
            hot: shape.hot,
            gain,
            size,
        })
    }

    fn gain_of(&self, shape: &Shape, facts: &Facts) -> Result<Gain, Decline> {
        let Self { ctx, forest, lp, options } = *self;
        let gain = Gain::of(ctx, (forest, lp), (&shape.hot, &shape.is_hot), &facts.private);
        if gain.is_nothing(options) { Err(Decline::NothingToWin) } else { Ok(gain) }
    }

    /// (L2) No load that decides whether the loop ends, or an inner one, loses what keeps it there.
    fn prove_patience(&self, shape: &Shape, facts: &mut Facts) -> Result<(), Decline> {
        let Self { ctx, forest, lp, options } = *self;
        let func = &ctx.func;
        let flow = (&ctx.cfg, &ctx.domtree);
        for inner in forest.blocks(lp).iter().filter_map(|&block| forest.loop_of_header(block)) {
            let polls = facts.polls.of(func, flow, (forest, inner));
            let mut polls = polls.iter().filter(|&&load| !is_asynchronous(func, options, load)).peekable();
            if polls.peek().is_none() {
                continue;
            }
            let stays = |block: &Block| shape.is_hot.contains(*block);
            let blocks: Vec<_> = forest.blocks(inner).iter().copied().filter(stays).collect();
            let stores = LoopStores::of(func, &blocks);
            let is_kept = |load: Inst| {
                Access::of(func, load).is_some_and(|Access { operand, flags, .. }| {
                    let writers = options.writers(func, flags);
                    stores.fence_for((operand, flags), writers, &facts.private).is_some()
                })
            };
            if let Some(&load) = polls.find(|&&load| !is_kept(load)) {
                return Err(Decline::Polls(func.dfg.first_result(load)));
            }
        }
        Ok(())
    }

    fn judge(&self, plan: Plan) -> Result<Plan, Decline> {
        let Self { ctx, forest, options, .. } = *self;
        if options.ignore_cost {
            return Ok(plan);
        }
        let max = options.transfer_max_inner_iterations;
        for &header in plan.rare.iter().flat_map(|rare| &rare.around) {
            let inner = forest.loop_of_header(header).expect("the header of a loop");
            let most = exit_count::bound(ctx, forest, inner).most();
            if most.is_none_or(|most| most > max as u128) {
                return Err(Decline::LongInnerLoop { header, max });
            }
        }
        Ok(plan)
    }
}

/// Whether `block` is cold, or does nothing but jump to one that is.
fn leads_to_cold(func: &Function, block: Block) -> bool {
    let mut next = Some(block);
    for _ in 0..MAX_JUMPS {
        let Some(block) = next else { return false };
        if func.layout.is_cold(block) {
            return true;
        }
        next = jump_target(func, block);
    }
    false
}

/// A transfer that is legal.
struct Plan {
    header: Block,
    entry: Edge,
    rare: Vec<RareEdge>,
    /// What the fast loop consists of.
    hot: Vec<Block>,
    /// What is copied, in reverse postorder.
    rest: Vec<Block>,
    /// The headers of the inner loops.
    inner: Vec<Block>,
    gain: Gain,
    /// Instructions in the copy, without constants and jumps.
    size: usize,
    /// All instructions in the copy.
    copied: usize,
}

impl Plan {
    fn describe(&self) -> String {
        let Gain { loads, stores, values: Values { all: values, .. } } = self.gain;
        let edges = self.rare.len();
        let depth = self.rare.iter().map(|rare| rare.around.len()).max().unwrap_or(0);
        let through = if depth == 0 { String::new() } else { format!(", through {depth} headers of slow loops") };
        format!(
            "cold edges: {edges}{through}; they leave the loop, which can do without loads: {loads}, stores: {stores}, \
             values that meet others there: {values} (instructions in the copy: {})",
            self.size
        )
    }
}

/// Rewrites the loops of `plans` and removes what cannot be reached any more.
fn apply(ctx: &mut Context, cx: &mut PassCx<'_>, plans: &[Plan]) -> CodegenResult<()> {
    let mut all = Vec::new();
    for plan in plans {
        // For `licm`, which needs no copy; `peel` waits for it.
        cx.look_again(ctx, plan.header);
        // A branch before which the rare part came back, and that asked again, follows now from the one that leads there.
        cx.reopen_checks(&ctx.func, &plan.hot);
        cx.retract(NAME, plan.header);
        cx.fired(&ctx.func, &PASS, plan.header, plan.describe());
        let Plan { header, entry, rest, rare, .. } = plan;
        let cold_path = ColdPath { header: *header, entry: *entry, rest, edges: rare };
        let rerouted = reroute(&mut ctx.func, &cold_path);
        mark_slow(cx, plan, &rerouted);
        all.push(rerouted);
    }
    cx.flowgraph(ctx);
    if repair(ctx, &all, cx.options.max_closing_args) == Err(TooManyParams) {
        cx.gave_up = true;
        return Ok(());
    }
    cx.invalidate_and_prune(ctx)?;
    // What only the rare part changed is loop-invariant in the fast loop.
    remove_redundant_params(ctx);
    cx.keep_form(Form::Any);
    Ok(())
}

/// Marks the outer loop of the fast one, and the loops in the copy.
fn mark_slow(cx: &mut PassCx<'_>, plan: &Plan, rerouted: &Rerouted) {
    cx.marks.header_moved(plan.header, rerouted.outer);
    cx.marks.add_around(rerouted.outer);
    for &header in &plan.inner {
        let copy = rerouted.copies.block(header);
        if copy != header {
            cx.marks.header_moved(header, copy);
            cx.marks.add_slow(copy);
        }
    }
    for &(header, head) in &rerouted.heads {
        cx.marks.header_moved(header, head);
        cx.marks.add_slow(head);
    }
}
