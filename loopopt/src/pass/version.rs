//! Versioning: one test before a loop decides whether all its checks would hold. If so, a version without the checks runs, otherwise the loop as it was.
//!
//! ```text
//! preheader                     preheader
//!     │                             │
//!     ▼                             ▼
//!   header ◄──┐               all would hold? ───────────┐
//!     │       │                     │                    ▼
//!   check ──► trap                  ▼                  header' ◄──┐    slow: cold, the loop as it was
//!     │       │        ──►        header ◄──┐            │        │
//!   latch ────┘                     │       │          check ──► trap
//!     │                           latch ────┘            │        │
//!     ▼                             │                  latch' ────┘
//!    exit                           ▼                    │
//!                                  exit ◄────────────────┘
//! ```
//!
//! In the fast loop nothing traps any more that was a check, so that `licm` and `promote` move loads and stores there that the
//! checks kept in place. No exact trap is lost: where a check would fail in some iteration, that iteration, and all
//! before it, run in the slow loop.
//!
//! What has to hold before a loop for a check to hold in each iteration is found in [`crate::analysis::scev::predication`]; with the
//! same reasoning it is found for the outer loop, from what was found for the inner loop. The test goes before the
//! outermost loop at which most of the checks can be tested, and that whole nest has a fast and a slow version, not each
//! loop of it.
//!
//! The test computes without effect and in registers only: sums, products and comparisons of values that are defined before the
//! loop. No memory is read for it but lengths that only grow, and cells that say how often the loop runs or where it stores to ([`assumed`]). If an early exit leaves the loop before a check would fail, the test may say "slow"
//! where the fast loop would do; never the other way around.
//!
//! That an address of 32 bits does not wrap is tested like a check ([`extension`]): in the fast loop it is one of 64 bits, which `widen_indices`
//! gives one base for all that lies next to each other, and guards are consolidated by.
//!
//! It is tested that a cell, such as `*sum` or `s->scale`, overlaps no other access of the loop ([`overlap`]): in the fast loop, `promote` and `licm`
//! keep it in a register. And that a store is far from what several iterations load ([`reloads`]), so that `load_elimination` loads it once in an
//! unrolled loop. These passes know that from [`crate::analysis::memory::disjoint`]. One test and one slow loop are for all of these.
//!
//! # Needs
//!
//! Canonical form, and makes it if there is something to do and it was lost.
//!
//! # Legal when
//!
//! (L1) each instruction of the loop may be copied; (L2) for a check, what has to hold before the loop can be said in sums.
//!
//! A loop that polls is looked at twice. Before it runs in [strips](crate::pass::strip_mine), its address sums are tested, if there is nothing else and it counts up: one
//! test for the whole loop, often the same in each iteration of the outer one. All else waits for the strips, in which what is loaded stays the same.
//!
//! What is an address because of the test is one in the fast loop: accesses at it stay there, whatever their flags say.
//!
//! # Pays when
//!
//! (P1) most of what is checked in the nest is removed, an inner loop counting for more than the outer one, and most of that would be
//! tested again in each iteration if it were tested before an inner loop: a test that is loop-invariant is hoisted from there
//! by `licm`, and less is copied; (P2) the loop is not too
//! large, and (P3) the test is not; (P4) the loop is not cold, (P5) runs more than a few times, as far as is known: of
//! an innermost loop that something else than its count can end, such as a search, nothing is, and the test must not compare more often
//! than one iteration does; and (P6) is not a version
//! already, nor holds one: copies do not multiply. (P7) The function may not grow without limit. (P8) If guards are consolidated, fewer
//! are executed afterwards, or something else than guards is removed: of the programs of `bench-programs/wasm` that this rule changes, `as-nbody-o2` takes 0.990 of its
//! time and not 1.063, `json-o0` 0.965 and not 1.058, `radix-sort-o0` 0.856 and not 0.910. If nothing is copied for it, no more guards are executed. (P9) If nothing is removed but sums of addresses in 32 bits, these are many of the
//! instructions. (P10) A cell has a load that may leave the loop, is not likely to be one of the places that it is proved disjoint from, and
//! is proved disjoint from all of them, or from none; loads that come back are many of the instructions of a loop that is going to be unrolled.
//!
//! # Changes
//!
//! Blocks and edges. The test uses what is computed before the loop already. Canonical form has to be rebuilt: the exits are entered from both versions.
//!
//! # Not done
//!
//! A division that traps by itself stays: CLIF has no division that does not. Checks that compare two numbers of which both vary
//! in other ways than linearly. Loops that are counted by nothing but a condition on memory. Two arrays that move are proved disjoint
//! for the length of an unrolled group alone.
//!
//! # References
//!
//! Eclipse OMR `LoopVersioner` (one fast and one slow loop whatever the number of checks; block and nesting limits); Graal
//! `SpeculativeGuardMovement`; LLVM IRCE and LoopPredication; golang/go `loopbce.go`; wago PR 193 (a branch, not an early trap). LLVM
//! `LoopVersioningLICM` and GCC's loop distribution for tests of overlap.

mod assumed;
mod check;
mod extension;
mod judge;
mod known;
mod lengths;
mod overlap;
mod plan;
mod preheader_loads;
mod reloads;
mod returning_guards;
mod why;

use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::cfg::must_execute::Order;
use crate::analysis::memory::polls::Polls;
use crate::analysis::scev::exit_count;
use crate::analysis::scev::exit_test::ExitTest;
use crate::analysis::scev::recurrence::Recurrences;
use crate::analysis::scev::view::View;
use crate::change::Change;
use crate::claim::Claim;
use crate::edit::materialize::dce::remove_unused;
use crate::edit::materialize::drop_trap_flags::GoneGuards;
use crate::edit::materialize::local_cse::reuse;
use crate::edit::materialize::offsets::Offsets;
use crate::edit::materialize::pin::pin_accesses_at;
use crate::pass::copying::{Denied, granted};
use crate::pass::{Form, Pass, PassCx, canon};
use check::Check;
use cranelift_codegen::ir::{Block, Function, Inst, Value};
use cranelift_codegen::{CodegenResult, Context};
use known::Known;
use lengths::Lengths;
use plan::Plan;
use std::rc::Rc;
use why::Decline;

/// The name of this pass.
pub(crate) const NAME: &str = "version";

/// The pass.
pub(crate) const PASS: Pass = Pass {
    name: NAME,
    run,
    reasons: &[Decline::REASONS, Denied::REASONS],
    claims: &[Claim::CheckHolds, Claim::NoWrap, Claim::NoOverlap, Claim::CellHolds],
    copies: true,
    ..Pass::OPTIONAL
};

/// The same for loops that poll, before they run in strips.
pub(crate) const OF_POLLING: Pass = Pass { run: run_of_polling, keeps: Form::Canonical, ..PASS };

/// The same for loops that [load](assumed) how often they run, or where they store to.
pub(crate) const OF_ASSUMING: Pass = Pass { run: run_assuming, keeps: Form::Canonical, ..PASS };

/// Which loops are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    All,
    /// Inner loops that poll and count up: the test of the whole loop takes the place of one for each strip.
    Polling,
}

impl Which {
    /// Whether `lp` is one of them.
    fn holds(self, ctx: &Context, cx: &PassCx<'_>, (forest, lp): (&LoopForest, Loop)) -> bool {
        /// Iterations that are one strip, whatever they take.
        const FEW: u128 = 4_096;
        let asynchronous = |load: Inst| cx.options.is_asynchronous_load(&ctx.func, load);
        let is_short = || exit_count::bound(ctx, forest, lp).most().is_some_and(|most| most < FEW);
        let is_inside = forest.data(lp).depth > 1 && forest.is_innermost(lp);
        let polls = || Polls::of(ctx, forest, lp, &asynchronous).is_some();
        self == Self::All || is_inside && polls() && counts_up(View { ctx, forest }, lp) && !is_short()
    }

    /// Whether `plan` is made now: what is loaded between polls is the same only in a strip.
    fn takes(self, plan: &Plan) -> bool {
        self == Self::All || plan.checks.iter().all(|check| check.extension().is_some()) && !plan.requires.is_empty()
    }
}

/// Whether a test that ends `lp` asks whether a number that grows is large enough.
fn counts_up(view: View<'_>, lp: Loop) -> bool {
    let recurrences = Recurrences::with_constant_steps(view, lp);
    ExitTest::all(view, lp).filter_map(|test| test.counted(view, lp, &recurrences)).any(|test| test.up)
}

/// Makes versions of all loops for which that can be and should be done.
fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    run_for(ctx, cx, Which::All)
}

fn run_of_polling(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let forest = cx.forest(ctx);
    let any_polls = forest.loops().any(|lp| Which::Polling.holds(ctx, cx, (&forest, lp)));
    if any_polls && run_for(ctx, cx, Which::Polling)? != Change::Nothing {
        canon::restore(ctx, cx)?;
    }
    Ok(Change::Nothing)
}

fn run_assuming(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    if assumed::run(ctx, cx)? {
        canon::restore(ctx, cx)?;
    }
    Ok(Change::Nothing)
}

fn run_for(ctx: &mut Context, cx: &mut PassCx<'_>, which: Which) -> CodegenResult<Change> {
    let forest = cx.forest(ctx);
    let lengths = Lengths::read(&mut ctx.func, &forest, cx.options);
    let plans = granted(ctx, cx, NAME, |ctx, cx| plan(ctx, cx, &lengths, which), |plan| (plan.header, plan.copied))?;
    lengths.forget_unused(&mut ctx.func, plans.iter().flat_map(|plan| &plan.requires));
    if plans.is_empty() {
        return Ok(Change::Nothing);
    }
    let order = Order::of(&ctx.func, &ctx.domtree);
    for plan in &plans {
        plan.make(ctx, cx, &order, (plan.describe(&ctx.func), plan.overlaps().next().is_some()));
        plan.note_disjoint(Rc::make_mut(&mut cx.disjoint));
    }
    finish(ctx, cx, &plans)?;
    Ok(Change::Insts)
}

/// Takes the checks out of the fast versions.
fn finish(ctx: &mut Context, cx: &mut PassCx<'_>, plans: &[Plan]) -> CodegenResult<()> {
    let (mut unused, mut guards) = (Vec::new(), GoneGuards::default());
    let changed = changed(&ctx.func, plans);
    pin_accesses_at(&mut ctx.func, changed);
    for plan in plans {
        for check in &plan.checks {
            unused.extend_from_slice(ctx.func.dfg.inst_args(check.inst));
            check.remove(&mut ctx.func, &mut guards);
        }
    }
    guards.trust(&mut ctx.func, cx.options);
    if plans.iter().flat_map(|plan| &plan.checks).any(Check::leaves_alias) {
        unused.iter_mut().for_each(|value| *value = ctx.func.dfg.resolve_aliases(*value));
        ctx.func.dfg.resolve_all_aliases();
    }
    let tests: Vec<_> = plans.iter().map(|plan| plan.entry.source(&ctx.func)).collect();
    cx.invalidate_and_prune(ctx)?;
    // What one plan settles can be the path to the loop of another.
    let stays = |block: &Block| ctx.func.layout.is_block_inserted(*block);
    let mut blocks: Vec<_> = plans.iter().flat_map(|plan| plan.blocks.iter().copied()).filter(stays).collect();
    let tests: Vec<_> = tests.into_iter().filter(stays).collect();
    unused.extend(Offsets::of(&ctx.func, blocks.iter().copied()).fold(&mut ctx.func));
    blocks.extend(tests);
    reuse(&mut ctx.func, &ctx.domtree, blocks);
    remove_unused(&mut ctx.func, unused);
    // What is used again may have left its loop.
    cx.keep_form(Form::Any);
    Ok(())
}

/// What an extension is only where nothing wraps, and a guard where its condition holds: in the fast loops, but not before their tests.
fn changed(func: &Function, plans: &[Plan]) -> Vec<Value> {
    let checks = plans.iter().flat_map(|plan| &plan.checks).filter(|check| check.leaves_alias());
    checks.map(|check| func.dfg.first_result(check.inst)).collect()
}

/// The loops to make versions of, none inside another.
fn plan(ctx: &Context, cx: &mut PassCx<'_>, lengths: &Lengths, which: Which) -> Vec<Plan> {
    let forest = cx.forest(ctx);
    let view = View { ctx, forest: &forest };
    let mut known = Known::new(view, cx, lengths);
    let mut plans: Vec<Plan> = Vec::new();
    for lp in forest.loops() {
        if !plans.is_empty() && cx.form < Form::Canonical {
            // All are rebuilt once there is canonical form.
            break;
        }
        let header = forest.data(lp).header;
        let has_plan = |plan: &Plan| forest.loop_of_header(plan.header).is_some_and(|done| forest.encloses(done, lp));
        let is_done = !cx.marks.has_full_effort(header) || !cx.marks.may_get_versions(header);
        if is_done
            || !which.holds(ctx, cx, (&forest, lp))
            || plans.iter().any(has_plan)
            || holds_left_alone(cx, &forest, lp)
        {
            continue;
        }
        let found = Plan::prove(view, lp, &mut known, cx.options)
            .and_then(|plan| plan.judge(view, known.guards()))
            .and_then(|plan| plan.runs_often(view, cx));
        match found {
            Ok(plan) if which.takes(&plan) => plans.push(plan),
            Err(why) if which == Which::All && !cx.has_fired(NAME, header) => {
                cx.declined(&ctx.func, NAME, header, &why)
            }
            _ => {}
        }
    }
    plans
}

/// Whether passes leave one of the inner loops unchanged.
fn holds_left_alone(cx: &PassCx<'_>, forest: &LoopForest, lp: Loop) -> bool {
    cx.marks.has_left_alone() && forest.blocks(lp).iter().any(|&block| cx.marks.is_left_alone(block))
}
