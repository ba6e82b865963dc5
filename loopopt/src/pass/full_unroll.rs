//! Full unrolling: a loop that is known to run a few times becomes its iterations, one after the other.
//!
//! ```text
//! preheader                     preheader
//!     │ 0                           │ 0
//!     ▼                             ▼
//!   header ◄──┐                  iteration 0 ──► exit
//!     │       │                     │ 1
//!    body     │        ──►          ▼
//!     │       │                  iteration 1 ──► exit
//!   latch ────┘                     │ 2
//!     │                             ▼
//!     ▼                          iteration 2 ──► exit
//!    exit
//! ```
//!
//! The counter is a constant in each iteration, and what follows from it folds: addresses, tests of the first or the last
//! iteration, the counter itself. What is stored in one iteration and loaded in the next stays in a register.
//!
//! How often the loop runs is found out by trying ([`simulate`]): each iteration is run with what is known of the
//! header's parameters, until the back edge cannot be reached any more. Branches that are known to take one edge become
//! jumps, possibly along another edge in each iteration, and the back edge is removed. All other tests stay in each copy, so that
//! "at most" is as good as "exactly".
//!
//! Where constants say nothing, branches before the loop may: `n <= 4`, or `n & 3` ([`few`]). Then only the last test is decided.
//!
//! Inner loops come first. The outer loop of one that was unrolled is looked at again, once in closed form.
//!
//! # Needs
//!
//! Canonical form, and makes it if there is something to do and it was lost.
//!
//! # Legal when
//!
//! (L1) after a few iterations the back edge cannot be reached, as far as constants tell, or what is known before the loop; (L2) each instruction may be
//! copied, unless there is one iteration only. What a counter is in a later iteration is known before that is reached; an access at an address made of it
//! stays after the earlier tests, as one at any address that is chosen ([`pin_chosen`](crate::edit::materialize::pin::pin_chosen)).
//!
//! # Pays when
//!
//! (P1) the iterations are few, (P2) what remains of them after folding is not much, and (P3) the loop is not cold.
//! (P4) The function may not grow without limit. (P5) If each iteration calls a function, nothing grows: the call takes the time, and
//! what it returns from is predicted better in one place than in many. With its rounds unrolled, ChaCha20 from a simple
//! front end takes 1.08 of its time (`chacha20-o0` in Wasmtime), without, 0.93. (P6) Iterations that may not run are fewer, and smaller.
//!
//! # Changes
//!
//! Blocks and edges. Wants `cleanup`, to fold what has become constant.
//!
//! # Not done
//!
//! Loops that run often, or an unknown number of times: [`super::partial_unroll`] unrolls them by a factor.
//!
//! # References
//!
//! GCC `cunroll` (complete peeling: 16 times, 200 instructions, and no growth around a call that each iteration makes); V8,
//! which finds small trip counts by trying as well, since a formula has to care for overflow; WebKit PR 43470 and
//! JDK-8275330 for what goes wrong.

mod few;

use crate::analysis::cfg::edges::{Edge, code_size, copied_size};
use crate::analysis::cfg::loops::Loop;
use crate::analysis::cfg::must_execute::{Order, calls_each_time};
use crate::analysis::scev::exit_count::{Simulation, TripCount, simulate};
use crate::analysis::scev::view::View;
use crate::change::Change;
use crate::claim::Claim;
use crate::edit::cfg::split_edges::retarget;
use crate::edit::copy::copy_iterations::{clone_iterations, settle};
use crate::edit::inst::clone::Copies;
use crate::edit::materialize::assertion::assert_takes;
use crate::fault::fault;
use crate::options::Options;
use crate::pass::copying::{Denied, granted};
use crate::pass::{Form, Pass, PassCx};
use crate::refusal::refusals;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Function, Opcode};
use cranelift_codegen::{CodegenResult, Context};
use few::Few;

/// The name of this pass.
pub(crate) const NAME: &str = "full_unroll";

/// The pass.
pub(crate) const PASS: Pass = Pass {
    name: NAME,
    run,
    reasons: &[Decline::REASONS, Denied::REASONS],
    claims: &[Claim::TripCount],
    copies: true,
    ..Pass::OPTIONAL
};

/// The depth of a nest that is unrolled as a whole, from the inside. 8, as in GCC: the limits on size end it long before.
const MAX_DEPTH: usize = 8;

/// Iterations that are run to see when a loop ends, whatever the options allow. 10,000: it bounds the time, and no loop of so many would be unrolled.
const MAX_SIMULATED: usize = 10_000;

/// Unrolls all loops that can be and should be.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let mut parents = None;
    for _ in 0..MAX_DEPTH {
        let plans =
            granted(ctx, cx, NAME, |ctx, cx| plan(ctx, cx, parents.as_ref()), |plan| (plan.header, plan.copied))?;
        if plans.is_empty() {
            break;
        }
        let mut around = EntitySet::new();
        around.extend(plans.iter().filter_map(|plan| plan.parent));
        parents = Some(around);
        apply(ctx, cx, &plans)?;
    }
    Ok(Change::Nothing)
}

/// The loops to unroll, none inside another. Of the headers in `only`, if that is given.
fn plan(ctx: &Context, cx: &mut PassCx<'_>, only: Option<&EntitySet<Block>>) -> Vec<Plan> {
    let mut plans: Vec<Plan> = Vec::new();
    let mut around = EntitySet::new();
    let mut few = Few::new(ctx, cx.options);
    for lp in cx.forest(ctx).loops().rev() {
        let forest = cx.forest(ctx);
        let header = forest.data(lp).header;
        let parent = forest.data(lp).parent;
        if around.contains(lp) {
            around.extend(parent);
            continue;
        }
        if only.is_some_and(|only| !only.contains(header)) || !cx.marks.has_full_effort(header) {
            continue;
        }
        let options = cx.options;
        let max = options.full_unroll_max_copied;
        let mut is_too_large = || size_up_to(&ctx.func, cx.forest(ctx).blocks(lp), max) > max;
        let plan = match ctx.func.dfg.num_insts() > max && is_too_large() {
            true => Err(Decline::TooLarge { insts: max.saturating_add(1), max }),
            false => Plan::prove(ctx, (cx, &mut few), lp).and_then(|plan| plan.judge(ctx, options)),
        };
        match plan {
            Ok(plan) => {
                around.extend(parent);
                plans.push(plan);
            }
            Err(why) => cx.declined(&ctx.func, NAME, header, &why),
        }
    }
    plans
}

/// An unrolling that is legal.
struct Plan {
    header: Block,
    /// The header of the outer loop.
    parent: Option<Block>,
    back_edge: Edge,
    blocks: Vec<Block>,
    /// The headers of the inner loops.
    inner: Vec<Block>,
    simulation: Simulation,
    /// Instructions of the loop, without constants.
    size: usize,
    /// Instructions that the copies add.
    copied: usize,
}

impl Plan {
    fn prove(ctx: &Context, (cx, few): (&mut PassCx<'_>, &mut Few<'_>), lp: Loop) -> Result<Self, Decline> {
        let func = &ctx.func;
        let options = cx.options;
        let bound = cx.bound(ctx, lp);
        let forest = cx.forest(ctx);
        let data = forest.data(lp);
        let blocks = forest.blocks(lp);
        let [back_edge] = data.back_edges[..] else { return Err(Decline::NotCounted) };
        let max = options.full_unroll_max_iterations;
        if let TripCount::Exactly(count) = bound
            && count >= max as u128
        {
            return Err(Decline::TooManyIterations { count, max });
        }
        let simulation = simulate(ctx, &forest, lp, max.min(MAX_SIMULATED))
            .or_else(|| few.iterations(View { ctx, forest: &forest }, lp));
        let simulation = simulation.ok_or(Decline::NotCounted)?;
        let around = simulation.decided.len() - 1;
        let insts = || blocks.iter().flat_map(|&block| func.layout.block_insts(block));
        if let Some(inst) = insts().find(|&inst| around > 0 && !forest.is_duplicable(func, inst)) {
            return Err(Decline::NotDuplicable(func.dfg.insts[inst].opcode()));
        }
        let inner = forest.loops().filter(|&inner| inner != lp && forest.encloses(lp, inner));
        Ok(Self {
            header: data.header,
            parent: data.parent.map(|parent| forest.data(parent).header),
            back_edge,
            blocks: blocks.to_vec(),
            inner: inner.map(|inner| forest.data(inner).header).collect(),
            simulation,
            size: size_up_to(func, blocks, options.full_unroll_max_copied),
            copied: insts().map(|inst| copied_size(func, inst)).sum::<usize>().saturating_mul(around),
        })
    }

    fn judge(self, ctx: &Context, options: &Options) -> Result<Self, Decline> {
        if self.copied > options.full_unroll_max_copied {
            return Err(Decline::TooLarge { insts: self.copied, max: options.full_unroll_max_copied });
        }
        if options.ignore_cost {
            return Ok(self);
        }
        if ctx.func.is_effectively_cold(self.header) {
            return Err(Decline::ColdLoop);
        }
        // What does not grow is always worth it.
        let (insts, max) = (self.simulation.insts, options.full_unroll_max_insts.max(self.size));
        if insts > max {
            return Err(Decline::TooLarge { insts, max });
        }
        if insts > self.size
            && calls_each_time(&ctx.func, &ctx.domtree, (&self.blocks, self.back_edge.source(&ctx.func)))
        {
            return Err(Decline::Calls { insts, size: self.size });
        }
        Ok(self)
    }

    fn describe(&self) -> String {
        let iterations = self.simulation.decided.len();
        let most = if matches!(self.simulation.count, TripCount::Exactly(_)) { "" } else { "at most " };
        let what = match iterations {
            1 => "the back edge is never taken, and one iteration replaces the loop".into(),
            _ => format!("{most}{iterations} iterations, one after the other, replace the loop"),
        };
        format!("{what} (instructions: {} before, {} after folding)", self.size, self.simulation.insts)
    }
}

/// The instructions in `blocks` without constants and jumps, at most one more than `max`.
fn size_up_to(func: &Function, blocks: &[Block], max: usize) -> usize {
    let insts = blocks.iter().flat_map(|&block| func.layout.block_insts(block));
    let mut size = 0;
    for inst in insts {
        size += code_size(func, inst);
        if size > max {
            break;
        }
    }
    size
}

/// Unrolls the loops of `plans` and removes what cannot be reached any more.
fn apply(ctx: &mut Context, cx: &mut PassCx<'_>, plans: &[Plan]) -> CodegenResult<()> {
    let order = Order::of(&ctx.func, &ctx.domtree);
    for plan in plans {
        cx.look_again(ctx, plan.header);
        cx.retract(NAME, plan.header);
        cx.fired(&ctx.func, &PASS, plan.header, plan.describe());
        let blocks = order.sorted(&plan.blocks);
        let copies = clone_iterations(&mut ctx.func, &blocks, plan.back_edge, plan.simulation.decided.len() - 1);
        if let Some(first) = copies.first() {
            retarget(&mut ctx.func, plan.back_edge, first.block(plan.header));
        }
        for copy in &copies {
            plan.inner.iter().for_each(|&header| cx.marks.header_moved(header, copy.block(header)));
        }
        settle_all(&mut ctx.func, &plan.simulation, &copies);
    }
    cx.invalidate_and_prune(ctx)?;
    cx.keep_form(Form::Any);
    cx.wants_cleanup = true;
    Ok(())
}

/// Makes jumps of the branches that are decided, in each iteration.
fn settle_all(func: &mut Function, simulation: &Simulation, copies: &[Copies]) {
    for (index, decided) in simulation.decided.iter().enumerate().rev() {
        for (&branch, &slot) in decided {
            let slot = if fault!(InvertedExit) { 1 - slot.min(1) } else { slot };
            let home = func.layout.inst_block(branch).expect("a branch of the loop");
            let block = index.checked_sub(1).map_or(home, |copy| copies[copy].block(home));
            let branch = func.layout.last_inst(block).expect("a branch, or its copy");
            assert_takes(func, branch, Claim::TripCount, slot);
            settle(func, branch, slot);
        }
    }
}

refusals! {
    /// Why a loop is not unrolled.
    enum Decline {
        /// (L1) It is not known to end after a few iterations.
        NotCounted => "not-counted", "no test is known to end the loop after a few iterations";
        /// (P1) It runs too often.
        TooManyIterations { count: u128, max: usize }
            => "too-many-iterations", "the back edge is taken {count} times; there may be {max} iterations",
            help "raise Options::full_unroll_max_iterations if the iterations are short";
        /// (P2) The iterations are too large.
        TooLarge { insts: usize, max: usize }
            => "too-large", "the iterations hold {insts} instructions or more; there may be {max}",
            help "raise Options::full_unroll_max_insts if the loop is hot";
        /// (P5) Each iteration calls a function, and the copies would be more code than the loop.
        Calls { insts: usize, size: usize }
            => "calls", "each iteration makes a call, which takes the time, and {insts} instructions would replace {size}",
            help "let the front end inline what is called, if it is short";
    }
    shared { NotDuplicable(opcode: Opcode), ColdLoop }
}
