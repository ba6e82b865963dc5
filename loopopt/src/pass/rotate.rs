//! Rotation: a loop that tests at the top becomes a guard and a loop that tests at the bottom.
//!
//! ```text
//! preheader                       preheader
//!     │                               │
//!     ▼                               ▼
//!   header ◄──┐                     guard ─────────┐     the copy of the header
//!   │    │    │                       │            │
//!   │    ▼    │                       ▼            │
//!   │   body  │          ──►      new preheader    │     runs only if the body runs
//!   │    │    │                       │            │
//!   │   latch─┘                       ▼            │
//!   ▼                               entry ◄──┐     │     the new header
//!  exit                               │      │     │
//!                                    body    │     │
//!                                     │      │     │
//!                                   latch    │     │
//!                                     │      │     │
//!                                   header ──┘     │     the old header: now the latch
//!                                     │            │
//!                                  new exit    new exit
//!                                     └──► exit ◄──┘
//! ```
//!
//! What is hoisted to the new preheader runs only if the body runs, and the loop ends in one conditional branch. The path
//! that bypasses the loop has a block of its own, so that it can be placed after the loop and the guard can fall through into the loop.
//!
//! The copy runs where the header ran first, and the header runs where it ran again: every execution passes through the
//! same instructions in the same order as before. So loads, traps and calls in the header are copied like all else;
//! nothing is reordered. (LLVM moves invariant instructions and copies the rest; here those that are pure and invariant
//! are used from the copy, which is equivalent.)
//!
//! A [poll](crate::analysis::memory::exit_polls) is among them: its copy in the guard is done once, before the loop, and says nothing of what the loop
//! reads afterwards. A pass that merges loads must not merge the two.
//!
//! A value of the header that the body uses has two definitions afterwards, the header's and the copy's; the new header
//! gets a parameter for it, or [computes it](stepped) from another one. This covers the cyclic cases (a value that is tested and carried, parameters that feed each
//! other): the parameters of the old header become parameters of the new one, all at once. Uses after the loop are
//! arguments of exit edges, by closed form, and those of the copy's edges are the copy's values.
//!
//! # Needs
//!
//! Canonical form.
//!
//! # Legal when
//!
//! (L1) the header leaves the loop; (L2) and goes on inside it by one edge only, or the loop would get
//! two headers or two back edges; (L3) each of its instructions may be copied; (L4) a
//! block can have parameters for all values of the header.
//!
//! # Pays when
//!
//! (P1) the loop does not test at the bottom already, where a check, which leaves for a trap or for cold code, is no such test; (P2) the header is small enough; (P3) neither the
//! loop nor its exit is cold; (P4) the loop does not dispatch; (P5) its iterations are counted, or none of them [bypasses](bypass) the
//! inner loops.
//!
//! A loop dispatches if a `br_table` picks one of several paths through the iteration by a value of that iteration. Each path ends in a jump,
//! to the test at the top. If the test moves to the bottom, that jump stays, and the test takes a second one back: the sample `switch-loop`
//! takes 1.59 of its time. With a copy of the test on each path ([`tail_duplicate`](super::tail_duplicate)) it is one jump again, but the copies
//! cost the branch predictor more than the guard gains: 1.04. As it came, it takes 1.00.
//!
//! # Changes
//!
//! Blocks and edges. What becomes one block is joined at once: the preheader with the copy, the latch with the old header, the
//! new header with the body. A guard that always takes one edge becomes a jump. Canonical form has to be rebuilt.
//!
//! That accesses were [proved disjoint](crate::analysis::memory::disjoint) within an iteration is forgotten, if the header has one of them: it becomes
//! that of the next iteration.
//!
//! # Closed form
//!
//! What is copied keeps closed form for the loop itself, and with all edges in place no loop appears or disappears: the guard dominates what the
//! header did. Three things end closed form:
//!
//! * A guard that leaves the outer loop is an exit of that loop with values of its own.
//! * A guard that always takes one edge removes edges. An irreducible cycle that is entered at one block only from then on is a loop, with
//!   values that are not in closed form. Without such cycles no loop is made.
//! * A guard that always leaves removes the body, and with it its other exits. The outer loop gets smaller if only these exits led
//!   back to its header; values that it defines are then used outside of it.
//!
//! # Not done
//!
//! A loop that leaves in the middle only: everything before the test would have to be copied. Partial
//! peeling of that kind is `peel`'s.
//!
//! # References
//!
//! LLVM `LoopRotationUtils.cpp`; golang/go#63670 for the cyclic cases.

mod apply;
mod bypass;
mod stepped;

use crate::analysis::cfg::edges::{Edge, edges_and_targets, edges_from, edges_into};
use crate::analysis::cfg::jumps::{leads_to_failure, only_jumps_to};
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::inst::effects::{Effects, is_constant};
use crate::analysis::memory::alias::has_one_address;
use crate::analysis::scev::exit_count::first_edge;
use crate::analysis::scev::view::View;
use crate::change::Change;
use crate::claim::Claim;
use crate::edit::MAX_PARAMS;
use crate::fault::fault;
use crate::options::Options;
use crate::pass::{Form, Pass, PassCx};
use crate::refusal::refusals;
use apply::apply;
use bypass::{is_bypassed, is_counted};
use cranelift_codegen::ir::{Block, Function, Inst, Opcode, Value};
use cranelift_codegen::{CodegenResult, Context};
use std::collections::BTreeSet;
use std::rc::Rc;
use stepped::{Stepped, stepped};

/// The name of this pass.
pub(crate) const NAME: &str = "rotate";

/// The pass.
pub(crate) const PASS: Pass = Pass {
    name: NAME,
    run,
    reasons: &[Decline::REASONS],
    claims: &[Claim::BranchTaken],
    needs: Form::Canonical,
    keeps: Form::Closed,
    ..Pass::OPTIONAL
};

/// Rotates all loops that can be and should be. All are planned first and rotated together, so that time is linear in
/// the size of the function. What one rotation makes possible for the outer loop is found when the pass runs again.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let mut plans = Vec::new();
    for lp in cx.forest(ctx).loops() {
        let header = cx.forest(ctx).data(lp).header;
        if cx.marks.is_left_alone(header) {
            continue;
        }
        let options = cx.options;
        let forest = cx.forest(ctx);
        let plan = Rotation::prove(ctx, &forest, lp, cx.marks.strips_around(&forest, lp))
            .and_then(|plan| plan.judge(ctx, options));
        match plan {
            Ok(plan) if cx.fuel.take() => plans.push(plan),
            Ok(_) => cx.declined(&ctx.func, NAME, header, &Decline::Withheld),
            Err(Decline::TestsAtBottom) if cx.marks.is_new_header(header) => {}
            Err(why) => cx.declined(&ctx.func, NAME, header, &why),
        }
    }
    if plans.is_empty() {
        return Ok(Change::Nothing);
    }
    for plan in &plans {
        cx.retract(NAME, plan.header);
        cx.fired(&ctx.func, &PASS, plan.header, plan.describe(&ctx.func));
    }
    let leaves_parent = plans.iter().any(|plan| plan.guard_leaves_parent);
    let is_settled = plans.iter().any(|plan| plan.guard.is_some());
    let may_make_loop = is_settled && !cx.forest(ctx).irreducible().is_empty();
    let never_runs = |plan: &Rotation| plan.guard.is_some_and(|slot| slot != plan.into_body.slot);
    let may_shrink_parent = plans.iter().any(|plan| plan.is_inner && never_runs(plan));
    // The outer loop of one that never runs may be small enough then.
    for plan in plans.iter().filter(|plan| plan.guard_leaves_parent || never_runs(plan)) {
        cx.look_again(ctx, plan.header);
    }
    plans.iter().for_each(|plan| plan.shift(ctx, cx));
    if leaves_parent || ((may_make_loop || may_shrink_parent) && !fault!(FormOutlivesEdges)) {
        cx.keep_form(Form::Any);
    }
    for (plan, new_header) in plans.iter().zip(apply(&mut ctx.func, &plans)) {
        cx.marks.header_moved(plan.header, new_header);
    }
    if !is_settled {
        return Ok(Change::Cfg);
    }
    cx.invalidate_and_prune(ctx)?;
    Ok(Change::Nothing)
}

/// A rotation that is legal.
struct Rotation {
    lp: Loop,
    header: Block,
    preheader: Block,
    latch: Block,
    /// The edge by which the header goes on inside the loop.
    into_body: Edge,
    /// The block that it enters.
    body: Block,
    /// No other edge enters that block, and nothing names it.
    body_is_lonely: bool,
    /// For each block that the header leaves the loop to: all edges of the loop that enter it.
    exits: Vec<(Block, Vec<Edge>)>,
    /// Results of the header's instructions that are pure and invariant: the copy's results serve the body too.
    invariant: BTreeSet<Value>,
    /// Results of the header's instructions that are a counter plus a constant.
    stepped: Vec<Stepped>,
    /// Instructions to copy, without the branch and constants.
    size: usize,
    /// How many edges enter the latch, if a `br_table` of the loop picks the path through the iteration.
    dispatched: Option<usize>,
    /// Iterations bypass the inner loops, and are not counted.
    is_bypassed: bool,
    /// Which edge the copy takes, if that is known.
    guard: Option<usize>,
    /// There is an outer loop.
    is_inner: bool,
    /// The guard leaves the outer loop, too, which may make that one a loop that tests at the top.
    guard_leaves_parent: bool,
}

impl Rotation {
    fn prove(ctx: &Context, forest: &LoopForest, lp: Loop, strips: Option<Block>) -> Result<Self, Decline> {
        let func = &ctx.func;
        let data = forest.data(lp);
        let header = data.header;
        if data.exits.is_empty() {
            return Err(Decline::NeverLeaves);
        }
        if tests_at_bottom(ctx, forest, lp, strips) {
            return Err(Decline::TestsAtBottom);
        }
        let (inside, outside): (Vec<_>, Vec<_>) =
            edges_from(func, header).partition(|edge| forest.contains(lp, edge.target(func)));
        if outside.is_empty() {
            return Err(Decline::HeaderStays);
        }
        let [into_body] = inside[..] else {
            return Err(Decline::SeveralSuccessors(inside.len()));
        };
        if let Some(inst) = func.layout.block_insts(header).find(|&inst| !forest.is_duplicable(func, inst)) {
            return Err(Decline::NotDuplicable(func.dfg.insts[inst].opcode()));
        }

        let values: usize = func.layout.block_insts(header).map(|inst| func.dfg.inst_results(inst).len()).sum();
        let params = [header, into_body.target(func)].map(|block| func.dfg.num_block_params(block));
        if values + params[0] + params[1] > MAX_PARAMS {
            return Err(Decline::TooManyValues);
        }

        let mut exits: Vec<_> = outside.iter().map(|edge| (edge.target(func), Vec::new())).collect();
        exits.sort_unstable();
        exits.dedup();
        for (target, edges) in &mut exits {
            edges.extend_from_slice(forest.edges_into(func, &ctx.cfg, *target));
        }
        let insts = || func.layout.block_insts(header).filter(|&inst| !Effects::of(func, inst).terminates);
        let preheader = forest.preheader(func, lp).expect("canonical form");
        let body = into_body.target(func);
        Ok(Self {
            lp,
            header,
            preheader,
            latch: forest.latch(func, lp).expect("canonical form"),
            guard_leaves_parent: data
                .parent
                .is_some_and(|parent| exits.iter().any(|&(exit, _)| !forest.contains(parent, exit))),
            is_bypassed: is_bypassed(ctx, forest, lp) && !is_counted(View { ctx, forest }, lp),
            guard: first_edge(ctx, forest, lp),
            is_inner: data.parent.is_some(),
            into_body,
            body,
            body_is_lonely: edges_into(func, &ctx.cfg, body).nth(1).is_none() && !forest.is_named(body),
            exits,
            invariant: invariant_results(func, forest, lp, insts()),
            stepped: stepped(View { ctx, forest }, lp),
            size: insts().filter(|&inst| !is_constant(func, inst)).count(),
            dispatched: forest
                .own_blocks(lp)
                .any(|block| forest.dispatches_at(func, lp, block))
                .then(|| latches(ctx, forest, lp)),
        })
    }

    fn judge(self, ctx: &Context, options: &Options) -> Result<Self, Decline> {
        if options.ignore_cost {
            return Ok(self);
        }
        let is_cold = |block| ctx.func.is_effectively_cold(block);
        if self.size > options.rotate_max_header_insts {
            return Err(Decline::TooLarge { insts: self.size, max: options.rotate_max_header_insts });
        }
        if is_cold(self.header) || is_cold(self.into_body.target(&ctx.func)) {
            return Err(Decline::ColdLoop);
        }
        if self.exits.iter().all(|&(exit, _)| leads_to_failure(&ctx.func, exit)) {
            return Err(Decline::ColdExit);
        }
        let max = options.rotate_max_dispatched;
        if let Some(paths) = self.dispatched.filter(|&paths| paths > max) {
            return Err(Decline::DispatchLoop { paths, max });
        }
        if self.is_bypassed {
            return Err(Decline::Bypassed);
        }
        Ok(self)
    }

    /// Forgets which accesses are proved disjoint within an iteration, if they will be in two.
    fn shift(&self, ctx: &Context, cx: &mut PassCx<'_>) {
        let func = &ctx.func;
        let is_member = |inst| cx.disjoint.is_member(inst);
        if fault!(ToldOfEachIteration) || !func.layout.block_insts(self.header).any(is_member) {
            return;
        }
        let forest = cx.forest(ctx);
        let view = View { ctx, forest: &forest };
        let is_first = |inst| {
            let block = func.layout.inst_block(inst).filter(|&block| forest.contains(self.lp, block))?;
            Some(block == self.header)
        };
        Rc::make_mut(&mut cx.disjoint).shift(is_first, |inst| has_one_address(view, self.lp, inst));
    }

    fn describe(&self, func: &Function) -> String {
        let params = func.dfg.num_block_params(self.header);
        let mut message = format!(
            "the test of {} (instructions copied: {}, parameters: {params}) now ends the loop; the exit leads to {}",
            self.header,
            self.size,
            target(func, self.exits[0].0),
        );
        for (exit, _) in &self.exits[1..] {
            message += &format!(", {}", target(func, *exit));
        }
        message
    }
}

/// Where an exit leads to: not the block that canonical form has put on the path.
fn target(func: &Function, exit: Block) -> Block {
    only_jumps_to(func, exit).unwrap_or(exit)
}

/// The loop leaves at its back edge already, and not for a check alone. A latch that only gathers several back edges, or counts a strip, stands for what comes before it.
fn tests_at_bottom(ctx: &Context, forest: &LoopForest, lp: Loop, strips: Option<Block>) -> bool {
    let func = &ctx.func;
    let ends_strip = |target| strips.is_some() && only_jumps_to(func, target) == strips;
    let outside = |block| edges_and_targets(func, block).filter(|&(_, target)| !forest.contains(lp, target));
    // A check at the bottom is no test that ends the loop, unless the header has nothing but checks either.
    let has_checks_only = outside(forest.data(lp).header).all(|(_, target)| forest.fails_at(func, target));
    let leaves = |block| {
        let mut outside = outside(block);
        outside.any(|(_, target)| !ends_strip(target) && (has_checks_only || !forest.fails_at(func, target)))
    };
    let latch = forest.latch(func, lp).expect("canonical form");
    // The counter of a strip is counted and tested, and nothing else.
    let counts_strip = || {
        let insts = func.layout.block_insts(latch).filter(|&inst| !is_constant(func, inst));
        insts.count() <= 2 && edges_and_targets(func, latch).any(|(_, target)| ends_strip(target))
    };
    let only_gathers = || only_jumps_to(func, latch).is_some() || counts_strip();
    leaves(latch)
        || (latch != forest.data(lp).header
            && only_gathers()
            && ctx.cfg.pred_iter(latch).all(|pred| leaves(pred.block)))
}

/// How many edges lead back to the header: those that enter a latch that only gathers them, which are not cold.
fn latches(ctx: &Context, forest: &LoopForest, lp: Loop) -> usize {
    let func = &ctx.func;
    let latch = forest.latch(func, lp).expect("canonical form");
    if only_jumps_to(func, latch).is_none() {
        return 1;
    }
    edges_into(func, &ctx.cfg, latch).filter(|edge| !func.layout.is_cold(edge.source(func))).count()
}

/// Results among `insts`, instructions of the header, that are the same in each iteration and that anyone may compute at
/// any time.
fn invariant_results(
    func: &Function,
    forest: &LoopForest,
    lp: Loop,
    insts: impl Iterator<Item = Inst>,
) -> BTreeSet<Value> {
    let mut invariant = BTreeSet::<Value>::new();
    for inst in insts {
        let is_invariant = |value: &Value| invariant.contains(value) || forest.is_from_outside(func, lp, *value);
        if Effects::of(func, inst).is_pure() && func.dfg.inst_args(inst).iter().all(is_invariant) {
            invariant.extend(func.dfg.inst_results(inst));
        }
    }
    invariant
}

refusals! {
    /// Why a loop is not rotated.
    enum Decline {
        /// No edge leaves the loop.
        NeverLeaves => "never-leaves", "no edge leaves the loop";
        /// (P1) The loop leaves at its back edge already.
        TestsAtBottom => "tests-at-bottom", "the loop tests at the bottom already";
        /// (L1) The header does not leave the loop.
        HeaderStays => "header-stays", "the header does not leave the loop",
            help "test at the start or at the end of an iteration, not in its middle";
        /// (L2) The header goes on inside the loop by several edges.
        SeveralSuccessors(edges: usize) => "several-successors", "{edges} edges lead from the header into the loop",
            help "test the condition of the loop first and branch on in a block of its own";
        /// (L4) The new header would need too many parameters.
        TooManyValues => "too-large", "the new header would need too many parameters";
        /// (P2) The copy would be too large.
        TooLarge { insts: usize, max: usize } => "too-large", "the header holds {insts} instructions, more than {max}",
            help "do less before the test, or raise Options::rotate_max_header_insts";
        /// (P3) All that the header leaves to is cold.
        ColdExit => "cold-exit", "the header leaves to cold code only";
        /// (P4) A table picks the path through the iteration.
        DispatchLoop { paths: usize, max: usize }
            => "dispatch-loop", "a table picks one of {paths} paths back to the test, more than {max}",
            help "raise Options::rotate_max_dispatched if one path is taken nearly always";
        /// (P5) Short iterations would take a jump more.
        Bypassed => "bypassed", "an iteration can bypass the inner loops, and would take a second jump";
    }
    shared { NotDuplicable(opcode: Opcode), ColdLoop, Withheld }
}
