//! Strip mining: a loop that polls in each iteration becomes one that polls before each strip of iterations.
//!
//! ```text
//! header(v1, v2):  ◄───────────┐           header(v1, v2):  ◄────────────────┐
//!     v3 = load.i64 v0         │               v3 = load.i64 v0              │
//!     v4 = icmp uge v3, v1     │               v4 = icmp uge v3, v1          │
//!     brif v4, rare, body(v1)  │               brif v4, rare, body(v1)       │
//! rare cold:                   │           rare cold:                        │
//!     v5 = call f()            │    ──►        v5 = call f()                 │
//!     jump body(v5)            │               jump body(v5)                 │
//! body(v6):                    │           body(v6):                         │
//!     …                        │               jump strip(v6, v2, 100)       │
//!     jump header(v6, v7) ─────┘           strip(v8, v9, v10):  ◄──────────┐ │
//!                                              …                           │ │
//!                                              v11 = isub v10, 1           │ │
//!                                              brif v11, strip(…, v11) ────┘ │
//!                                                    else header(…) ─────────┘
//! ```
//!
//! The inner loop has no call, so that memory is loaded once, cells live in registers, checks leave it, and it is unrolled. HotSpot C2
//! strip-mines counted loops for its safepoints; its slow path leaves by deoptimization. Here the loop of strips is that path.
//!
//! [`fuse_exit_tests`](crate::pass::fuse_exit_tests) makes one test of the one that counts the strip and the one that ends the loop.
//!
//! # Needs
//!
//! Canonical form, and rebuilds it.
//!
//! # Legal when
//!
//! The loop has [polls](crate::analysis::memory::polls) at the start of each iteration, after fuel is tested [as it is passed](summed). The next one of a strip is left out if it
//! would have taken its usual edge.
//!
//! (L1) **Flags**: what others write may be seen later than it was written, by no more than the embedder allows
//! ([`Embedder::poll_latency`](crate::Embedder::poll_latency), in instructions): as many iterations as surely take no longer are in one strip. An inner loop counts
//! with the most iterations that it can have. The condition is the same until somebody else writes: nothing in an iteration writes
//! to what it is loaded from, and nothing is called (what is called polls itself). After a rare edge the strip has one iteration, after one for
//! fuel as well: what is called there may set a flag, or change what the next poll compares with, even if the poll of this iteration, after that
//! edge, still compares with what there was before. So only what others
//! write in the meantime makes a difference: as long as nobody does, a flag is found set as often as before. A loop that surely ends
//! within one strip needs no counter: it polls when it is entered, and if it finds something, it runs as it was.
//!
//! (L2) **Fuel**: the number is [enough](crate::analysis::memory::enough) after a poll, or the strip has one iteration. Each iteration takes at most `most`. Of a number that
//! counts up, `-1 - number` can be taken, and it is still below zero; of one that counts down, as much as it is above the least that is enough, without wrapping. So there
//! is enough when iteration `room / most + 1` begins, and no poll before that finds anything. Of several polls for one number, what is enough for all counts. This is exact. Instead of `most` the next power of two
//! is taken: strips are at least half as long as they could be, and there is nothing to divide. A loop of at most `n` iterations needs no counter: if there is
//! room for `(n - 1) * most` when it is entered, no poll finds anything; if not, it runs as it was. A loop, or a nest, that [waits](crate::analysis::memory::exit_polls)
//! for what it loads itself gets strips as short as flags ask for: what ends a strip is a count, so that the load may leave it.
//!
//! (L3) What the polls compute and the iteration uses is recomputed in the strip: it is pure. What they load is used by them only. What an
//! iteration gets from the polls is known at the end of the one before.
//!
//! (L4) **Nests**: where inner loops poll as well, a strip leaves their polls out too, as long as each of them asks what one of the loop asks: the same operations
//! on the same values, if no rare edge is taken, and loads of the same memory, to which nothing in an iteration writes. So none of them would have taken its rare edge
//! unless somebody else wrote, and (L1) bounds how late that is seen: inner loops count with the most iterations that they can have. If the loop's own poll
//! finds something, the iteration runs as it was, with all its polls, in a copy that comes back to the poll.
//!
//! (L5) **Nests with fuel**: what an iteration takes, all iterations of the inner loops included, is at most `most`, and each inner poll asks for the same number, of which no more is enough for
//! any of them than for the strip. If there is room for `n * most` when a strip of `n` iterations begins, no poll of these, outer or inner, finds anything. Here the last
//! iteration counts as well, which polls in inner loops. If there is not fuel for one, the iteration runs as it was.
//!
//! # Pays when
//!
//! (P1) The loop is not cold; (P2) more than one iteration fits into a strip; (P3) for flags, a recurrence may end the loop, of a constant step if there is no inner loop, as
//! [`fuse_exit_tests`](crate::pass::fuse_exit_tests) wants it, and nothing else does, or the number of iterations is known. In other loops the counter of the strip
//! takes as long as the poll did, and most of them search something near: with strips, `string-search`, `dijkstra` and `utf8` of
//! `bench-programs/wasm` take 1.05 to 1.06 of their time with epochs, and 0.89 to 1.00 without. With strips in loops that a count may end as well, `json-o1`
//! takes 1.12 and not 1.07, `string-search-o1` 1.04 and not 0.91, `slices-o1` 0.97 and not 0.90, and `base64-o1` 0.67 and not 0.72 (`report --case test --mode epochs
//! --filter=-o1 --seconds 0.04`, 44 programs together 0.99). `transfer` takes the rare part out of these. A nest (L4) has long iterations, for
//! which the counter is nothing. (P4) With fuel, the loop does not end soon, as far as its bound and what is known before it say:
//! `nests` takes 0.811 of its time and not 1.068, `life-o1` 0.589 and not 0.817 (`report --case test --mode fuel`, busy). (P5) With fuel, an iteration of a nest takes
//! little: polls of longer ones take no time, and there may never be fuel for one, such as in Wasmtime when a program yields now and then. (P6) A number that counts down is
//! used for nothing but counting: an index whose check fails into cold code is left to `version`.
//!
//! # Changes
//!
//! Blocks and edges. The rare blocks become cold. The loop of strips stays as it is from then on.
//!
//! # Not done
//!
//! Polls in the middle of an iteration: [`transfer`](crate::pass::transfer) takes their rare part out of the loop.
//!
//! # References
//!
//! Loop strip mining in HotSpot C2 (JDK-8186027).

mod apply;
mod judge;
mod nest;
mod prove;
mod summed;
mod why;

use crate::analysis::cfg::edges::Edge;
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::cfg::must_execute::Order;
use crate::analysis::memory::alias::PrivateSlots;
use crate::analysis::memory::fuel::Fuel;
use crate::analysis::memory::polls::Polls;
use crate::analysis::scev::view::View;
use crate::change::Change;
use crate::claim::Claim;
use crate::pass::{Form, Pass, PassCx, canon};
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Value};
use cranelift_codegen::{CodegenResult, Context, FxHashMap, FxHashSet};
use prove::Look;
use why::Decline;

/// The name of this pass.
pub(crate) const NAME: &str = "strip_mine";

/// The pass.
pub(crate) const PASS: Pass = Pass {
    name: NAME,
    run,
    reasons: &[Decline::REASONS],
    claims: &[Claim::BranchTaken, Claim::TripCount],
    needs: Form::Canonical,
    keeps: Form::Canonical,
    ..Pass::OPTIONAL
};

/// Strip-mines all loops that poll, from the inside out: one of a nest in each round.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    if summed::run(ctx, cx) {
        cx.invalidate(ctx, Change::Insts);
    }
    let plans = plan(ctx, cx);
    if plans.is_empty() {
        return Ok(Change::Nothing);
    }
    let questions = apply::questions_inside(&ctx.func, &plans);
    for plan in &plans {
        let header = plan.header();
        cx.retract(NAME, header);
        cx.fired(&ctx.func, &PASS, header, plan.describe());
        let (strip, slow) = apply::apply(&mut ctx.func, plan);
        cx.marks.header_moved(header, strip);
        if let Strip::Counted { .. } = plan.strip {
            cx.marks.add_strips(header, true);
        }
        if let Some(slow) = slow {
            for &header in &plan.slow_headers() {
                cx.marks.header_moved(header, slow.block(header));
                cx.marks.add_slow(slow.block(header));
            }
        }
    }
    cx.keep_form(Form::Any);
    cx.invalidate_and_prune(ctx)?;
    apply::remove_questions(&mut ctx.func, questions);
    canon::restore(ctx, cx)?;
    Ok(Change::Nothing)
}

fn plan(ctx: &Context, cx: &mut PassCx<'_>) -> Vec<Plan> {
    let forest = cx.forest(ctx);
    let view = View { ctx, forest: &forest };
    let mut shared = Shared::default();
    let (mut plans, why_no_nest) = plan_nests(ctx, cx, &mut shared);
    for lp in forest.loops().rev() {
        let header = forest.data(lp).header;
        if cx.marks.is_left_alone(header) {
            continue;
        }
        if plans.around.contains(lp) || plans.copied.contains(header) {
            cx.look_again(ctx, header);
            continue;
        }
        let mut look = Look { ctx, forest: &forest, lp, shared: &mut shared };
        match look.prove(cx).and_then(|plan| plan.runs_often((view, lp), cx)) {
            Ok(plan) if cx.fuel.take() => plans.add(&forest, plan),
            Ok(_) => cx.declined(&ctx.func, NAME, header, &Decline::Withheld),
            Err(_) if cx.has_fired(NAME, header) => {}
            Err(why) => cx.declined(&ctx.func, NAME, header, why_no_nest.get(&lp).unwrap_or(&why)),
        }
    }
    plans.all
}

/// What the loops of a run share, once it was asked for.
#[derive(Default)]
struct Shared {
    private: Option<PrivateSlots>,
    order: Option<Order>,
    room: Option<usize>,
}

/// The plans so far.
#[derive(Default)]
struct Plans {
    all: Vec<Plan>,
    /// The blocks that they copy.
    copied: EntitySet<Block>,
    /// Their loops, and the enclosing ones.
    around: EntitySet<Loop>,
}

impl Plans {
    fn add(&mut self, forest: &LoopForest, plan: Plan) {
        self.copied.extend(plan.copied.iter().copied());
        let mut next = forest.loop_of_header(plan.header());
        while let Some(lp) = next.filter(|&lp| self.around.insert(lp)) {
            next = forest.data(lp).parent;
        }
        self.all.push(plan);
    }
}

/// Plans for the outermost loops that can be strips of which the inner loops do not poll, and why others cannot.
fn plan_nests(ctx: &Context, cx: &mut PassCx<'_>, shared: &mut Shared) -> (Plans, FxHashMap<Loop, Decline>) {
    let forest = cx.forest(ctx);
    let view = View { ctx, forest: &forest };
    let (mut plans, mut refused) = (Plans::default(), FxHashMap::default());
    for lp in forest.loops() {
        let header = forest.data(lp).header;
        if forest.is_innermost(lp) || cx.marks.is_left_alone(header) || plans.copied.contains(header) {
            continue;
        }
        let mut look = Look { ctx, forest: &forest, lp, shared };
        let Some(found) = look.prove_nest(cx) else { continue };
        match found.and_then(|plan| plan.runs_often((view, lp), cx)) {
            Ok(plan) if cx.fuel.take() => plans.add(&forest, plan),
            Ok(_) => drop(refused.insert(lp, Decline::Withheld)),
            Err(why) => drop(refused.insert(lp, why)),
        }
    }
    (plans, refused)
}

/// The most iterations of a loop that is one strip: more than any loop that ends within the delay of a poll has, and so few that what they
/// add to fuel does not overflow.
const MAX_WHOLE: u64 = 1 << 24;

/// How many iterations are in a strip.
#[derive(Clone, Copy, Debug)]
enum Strip {
    /// All: no more than this many, if there is fuel for them.
    Whole { most: u64, fuel: Option<Fuel> },
    /// This many, if that is known, and no more than there is fuel for.
    Counted { most: Option<u32>, fuel: Option<Fuel> },
}

/// A loop to be strip-mined.
struct Plan {
    polls: Polls,
    /// The polls of inner loops, which strips leave out too.
    inner: Vec<Polls>,
    back_edge: Edge,
    /// The blocks of the loop in an order in which they can be copied, if they are to be.
    copied: Vec<Block>,
    /// The headers among these.
    headers: Vec<Block>,
    /// The blocks of an iteration without those of the polls.
    body: Vec<Block>,
    /// What the iteration uses of what it gets from the polls or these compute, and what that is made of.
    used: FxHashSet<Value>,
    strip: Strip,
}

impl Plan {
    fn header(&self) -> Block {
        self.polls.all[0].block
    }

    /// The headers of which the copies are those of loops that run when a poll has found something. For a loop of strips, only an iteration is copied.
    fn slow_headers(&self) -> Vec<Block> {
        let is_iterated = matches!(self.strip, Strip::Whole { .. });
        self.headers.iter().copied().filter(|&header| is_iterated || header != self.header()).collect()
    }

    /// (P4) A loop of strips is not for one that ends soon, as far as a profile or an estimate says.
    fn runs_often(self, (view, lp): (View<'_>, Loop), cx: &PassCx<'_>) -> Result<Self, Decline> {
        let min = if matches!(self.strip, Strip::Counted { .. }) { cx.options.strip_mine_min_iterations } else { 0 };
        match cx.usually_short(view, lp, min) {
            Some(usual) => Err(Decline::UsuallyShort(usual, min)),
            None => Ok(self),
        }
    }

    fn describe(&self) -> String {
        let polls = self.describe_strip();
        match self.inner.len() {
            0 => polls,
            inner => format!("{polls}, and not in the inner loops, {inner} of which did"),
        }
    }

    fn describe_strip(&self) -> String {
        match self.strip {
            Strip::Whole { most, .. } => format!("polls before the loop only, of at most {most} iterations"),
            Strip::Counted { most: Some(most), fuel: None } => format!("polls before each strip of {most} iterations"),
            Strip::Counted { most: Some(most), fuel: Some(fuel) } => {
                format!(
                    "polls before each strip of {most} iterations, or as many as there is fuel for, {} each",
                    fuel.most
                )
            }
            Strip::Counted { fuel, .. } => {
                let each = fuel.map_or(0, |fuel| fuel.most);
                format!("polls before each strip of as many iterations as there is fuel for, {each} each")
            }
        }
    }
}
