//! Final values: values that are used after a loop are computed from its trip count, and a loop without effect is removed.
//!
//! ```text
//!     jump block1(0, 0)                           v9 = v8 - 1
//! block1(v1: i64, v2: i64):                       v10 = (v9 >> 1) · ((v9 - 1) | 1) + v9
//!     v3 = iadd v2, v1                  ──►       jump block2(v10)
//!     v4 = iadd v1, 1                         block2(v6: i64):
//!     v5 = icmp ult v4, v8                        return v6
//!     brif v5, block1(v4, v3), block2(v3)
//! block2(v6: i64):
//!     return v6
//! ```
//!
//! A value that grows by a constant, by something loop-invariant, or by another such value is a polynomial of the iteration
//! number ([`crate::analysis::facts::polynomial`]). If the exit test says in which iteration the loop is left, the value there is a formula of what is known
//! before the loop. The preheader computes it, and the exit edge passes that. What was only used for such values is removed from the loop; and if
//! nothing stays that anybody could notice, the whole loop is.
//!
//! # Needs
//!
//! Canonical form, and makes it if there is something to do and it was lost: all values leave a loop as arguments of its exit edges.
//!
//! # Legal when
//!
//! For a value: (L1) the exit is that of a test that each iteration makes, of a counter and something loop-invariant, so that the first
//! iteration in which it fails is a formula; (L2) what this formula rests on holds before the loop: that a first test, the guard of a rotated loop, has been
//! passed, or that the end is met by the step. (L3) The value is a polynomial of degree 3 at most. The formula is right modulo two to the bits of the value, whatever
//! wraps, since the iteration number is an integer, and the binomials are: what is divided is computed before it is reduced, or is divided exactly.
//! All that the formula is made of is defined before the loop, and no instruction of it traps.
//!
//! To remove a loop: (L4) it has one exit edge, and all that it passes is such a value, or defined outside. (L5) Nothing inside writes, calls, traps, fences or
//! stands for a place in the program, and nothing loads what others write at any time: who looks there so often waits, though not for ever. Other loads that cannot
//! trap are not noticed. (L6) The loop ends: the formula says when, or a bound does. That a loop does not end can be observed. No other cycle is inside, not even one that is no loop of
//! the forest.
//!
//! Where extensions confine accesses ([`Embedder::extension_confines`](crate::Embedder::extension_confines)), the sum that is extended has a formula of its own, if any.
//! (L7) No Spectre guard is made of the value ([`asked_by_guards`]), unless they may be dropped: where the processor leaves the loop too early, a formula is far from
//! what was counted, and the guard asks of the one and gives the other. (L8) It does not leave a [strip](crate::pass::strip_mine) by the test that counts it, as long as
//! [`fuse_exit_tests`](crate::pass::fuse_exit_tests) may let that strip end earlier.
//!
//! # Pays when
//!
//! Unless the loop is removed, (P1) an operation of the loop is removed by it, so that a value that the loop needs itself gets no formula; and (P2) the formulas are short, and
//! the loop is not known to end before the iterations have made up for them. To remove a loop is always worth it.
//!
//! # Changes
//!
//! Edges and blocks if a loop is removed, instructions and parameters otherwise. Canonical form is lost: a formula may use what an earlier loop has
//! computed. Wants `cleanup`, which divides by constants without a division and folds what is known. With claims asserted, no loop is removed, and at the exit the formula is compared with what was counted.
//!
//! # Not done
//!
//! Exits of which the count is known under a condition only (that could be asked for); steps that are not constants, which
//! would take a division; geometric series; values that are chosen, such as the last element that was found; 128 bits.
//!
//! # References
//!
//! LLVM `IndVarSimplify` (`rewriteLoopExitValues`) and `LoopDeletion`; GCC `tree-scalar-evolution.cc` (`final_value_replacement_loop`), which had to learn that
//! a formula can cost more than the loop (PR 80852).

mod dead;
mod formula;

use crate::analysis::cfg::edges::{Edge, edges_from};
use crate::analysis::cfg::jumps::only_jumps_to;
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::cfg::must_execute::Order;
use crate::analysis::facts::known::{Conditions, Place};
use crate::analysis::facts::polynomial::{ExitIteration, ExitIterations, Polynomials};
use crate::analysis::inst::effects::Effects;
use crate::analysis::memory::spectre_guard::asked_by_guards;
use crate::analysis::scev::linear_expr::Sum;
use crate::analysis::scev::requirement::Requirement;
use crate::analysis::scev::view::View;
use crate::change::Change;
use crate::claim::{Claim, is_marked};
use crate::edit::cfg::split_edges::{funnel, set_edge};
use crate::edit::materialize::assertion::assert_equal;
use crate::edit::materialize::local_cse::reuse;
use crate::fault::fault;
use crate::options::Options;
use crate::pass::copying::{Denied, granted};
use crate::pass::{Pass, PassCx};
use crate::refusal::{Refusal, refusals};
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, Value};
use cranelift_codegen::{CodegenResult, Context, FxHashSet};
use dead::{Dead, Flow};
use formula::{Final, Formula};
use std::cell::{LazyCell, OnceCell};
use std::ops::Deref;

/// The name of this pass.
pub(crate) const NAME: &str = "final_values";

/// The pass.
pub(crate) const PASS: Pass = Pass {
    name: NAME,
    run,
    reasons: &[Decline::REASONS, Denied::REASONS],
    claims: &[Claim::FinalValue],
    ..Pass::OPTIONAL
};

/// Does it in all loops, the inner ones first.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let plans = granted(ctx, cx, NAME, plan, |plan| (plan.header, plan.operations()))?;
    if plans.is_empty() {
        return Ok(Change::Nothing);
    }
    let mut preheaders = Vec::new();
    for plan in plans {
        cx.look_again(ctx, plan.header);
        cx.retract(NAME, plan.header);
        cx.fired(&ctx.func, &PASS, plan.header, plan.describe());
        preheaders.push(plan.entry.source(&ctx.func));
        plan.apply(&mut ctx.func);
    }
    cx.invalidate_and_prune(ctx)?;
    preheaders.retain(|&block| ctx.func.layout.is_block_inserted(block));
    reuse(&mut ctx.func, &ctx.domtree, preheaders);
    cx.wants_cleanup = true;
    Ok(Change::Insts)
}

/// What to do in which loops, none inside another: what is removed from the one may be what a formula of the other is made of.
fn plan(ctx: &Context, cx: &mut PassCx<'_>) -> Vec<Plan> {
    let forest = cx.forest(ctx);
    let mut plans: Vec<Plan> = Vec::new();
    let mut around = EntitySet::new();
    let order = LazyCell::new(|| Order::of(&ctx.func, &ctx.domtree));
    let asked = OnceCell::new();
    let mut conditions = Conditions::new(&ctx.func, &ctx.cfg, &ctx.domtree).with_options(cx.options);
    for lp in forest.loops().rev() {
        let data = forest.data(lp);
        if around.contains(lp) {
            around.extend(data.parent);
            continue;
        }
        // A loop in which it is asserted stays as it is.
        let is_asserted = is_marked(&ctx.func) && cx.has_fired(NAME, data.header);
        if is_asserted || !cx.marks.has_full_effort(data.header) {
            continue;
        }
        match Plan::prove(ctx, cx, (&forest, lp), (&order, &asked), &mut conditions)
            .and_then(|plan| plan.judge(ctx, cx, lp))
        {
            Ok(plan) => {
                around.extend(data.parent);
                plans.push(plan);
            }
            // What is left is for the loop.
            Err(_) if cx.has_fired(NAME, data.header) => {}
            Err(why) => cx.declined(&ctx.func, NAME, data.header, &why),
        }
    }
    plans
}

/// What is legal in one loop.
struct Plan {
    header: Block,
    entry: Edge,
    finals: Vec<Final>,
    dead: Dead,
    /// The exit edge of a loop that is removed.
    goes: Option<Edge>,
}

impl Plan {
    fn prove(
        ctx: &Context,
        cx: &mut PassCx<'_>,
        (forest, lp): (&LoopForest, Loop),
        (order, asked): (&impl Deref<Target = Order>, &OnceCell<EntitySet<Value>>),
        conditions: &mut Conditions<'_>,
    ) -> Result<Self, Decline> {
        let (view, data) = (View { ctx, forest }, forest.data(lp));
        let ([entry], [_]) = (&data.entries[..], &data.back_edges[..]) else { return Err(Decline::NothingPredictable) };
        let max = cx.options.final_values_max_loop;
        if insts_up_to(&ctx.func, forest.blocks(lp), max) > max {
            return Err(Decline::TooLarge { max });
        }
        let (leaving, may_go) = (leaving(view, lp), may_go(ctx, (forest, lp), order, cx.options));
        if !may_go && leaving.is_empty() {
            return Err(Decline::NothingPredictable);
        }
        let mut search = Search::new(view, (lp, *entry), conditions, cx.options);
        let (mut finals, mut why) = search.finals(&leaving);
        if cx.has_guards && !finals.is_empty() {
            let asked = asked.get_or_init(|| asked_by_guards(ctx, cx.options));
            let before = finals.len();
            finals.retain(|one| !asked.contains(one.param(&ctx.func)));
            why = why.or((finals.len() < before).then_some(Decline::Guarded));
        }
        if let Some(strips) = cx.marks.strips_around(forest, lp).filter(|_| !fault!(FormulaForStrip)) {
            let before = finals.len();
            finals.retain(|one| only_jumps_to(&ctx.func, one.exit.target(&ctx.func)) != Some(strips));
            why = (finals.len() < before).then_some(Decline::EndsStrip).or(why);
        }
        let why = why.unwrap_or(Decline::NothingPredictable);
        if !may_go && finals.is_empty() {
            let advises = !why.help().is_empty();
            return Err(if advises && !would_gain(&Flow::of(view, lp)) { Decline::NothingPredictable } else { why });
        }
        let only_exit = data.exits.first().filter(|_| may_go && finals.len() == leaving.len());
        let goes = only_exit.copied().filter(|exit| search.is_known(*exit) || cx.bound(ctx, lp).most().is_some());
        if goes.is_none() && only_exit.is_some() && finals.is_empty() {
            return Err(Decline::MayNotEnd);
        }
        let mut given = given(&leaving, &finals);
        let flow = Flow::of(view, lp);
        if goes.is_none() {
            keep_worthwhile(&flow, &mut given);
            finals.retain(|one| given.contains(&one.value));
        }
        let dead = Dead::without(&flow, |value| given.contains(&value));
        match goes.is_some() || dead.operations() > Dead::without(&flow, |_| false).operations() {
            true => Ok(Self { header: data.header, entry: *entry, dead, goes, finals }),
            false => Err(why),
        }
    }

    fn judge(self, ctx: &Context, cx: &mut PassCx<'_>, lp: Loop) -> Result<Self, Decline> {
        if cx.options.ignore_cost || self.goes.is_some() {
            return Ok(self);
        }
        let (operations, gain) = (self.operations(), self.dead.operations());
        if operations > cx.options.final_values_max_insts_per_gain.saturating_mul(gain) {
            return Err(Decline::TooLong { operations, gain });
        }
        let iterations = cx.bound(ctx, lp).most_iterations();
        let saved = iterations.map(|iterations| iterations.saturating_mul(gain as u128));
        match saved.filter(|&saved| saved < operations as u128) {
            Some(saved) => Err(Decline::FewIterations { operations, saved }),
            None => Ok(self),
        }
    }

    /// How many instructions all formulas are.
    fn operations(&self) -> usize {
        self.finals.iter().map(|one| one.formula.operations()).sum()
    }

    fn describe(&self) -> String {
        let values = self.finals.iter().map(|one| one.value.to_string()).collect::<Vec<_>>().join(", ");
        match (self.goes, self.finals.len()) {
            (Some(_), 0) => "the loop is deleted: it has no effect, and it ends".into(),
            (Some(_), _) => format!("the loop is deleted: a formula of how often it would run gives {values}"),
            (None, _) => format!("a formula of how often the loop runs gives {values}, which leave it"),
        }
    }

    fn apply(self, func: &mut Function) {
        let asserted = is_marked(func);
        let preheader = self.entry.source(func);
        let before = self.entry.branch;
        let mut replaced = Vec::new();
        for one in &self.finals {
            let value = one.formula.emit(func, before);
            replaced.push((one.exit, one.index, value));
        }
        for (exit, index, value) in replaced {
            let target = exit.target(func);
            let mut args: Vec<BlockArg> = exit.args(func).collect();
            if asserted {
                assert_final(func, (exit, target), index, value);
                continue;
            }
            args[index] = value.into();
            set_edge(func, exit, target, &args);
        }
        if asserted {
            return;
        }
        match self.goes {
            Some(exit) => {
                let (target, args) = (exit.target(func), exit.args(func).collect::<Vec<_>>());
                let entry = edges_from(func, preheader).next().expect("a preheader jumps to its loop");
                set_edge(func, entry, target, &args);
            }
            None => self.dead.remove(func),
        }
    }
}

/// Compares `value` with what `exit` passes, on a block of its own on this edge.
fn assert_final(func: &mut Function, (exit, target): (Edge, Block), index: usize, value: Value) {
    let block = funnel(func, &[exit], target);
    let counted = func.dfg.block_params(block)[index];
    let jump = func.layout.last_inst(block).expect("it ends in a jump");
    assert_equal(func, jump, Claim::FinalValue, [counted, value]);
}

/// The instructions in `blocks`, at most one more than `max`.
fn insts_up_to(func: &Function, blocks: &[Block], max: usize) -> usize {
    let insts = blocks.iter().flat_map(|&block| func.layout.block_insts(block));
    insts.take(max.saturating_add(1)).count()
}

/// The values of `lp` that its exit edges pass, with their places.
fn leaving(view: View<'_>, lp: Loop) -> Vec<(Edge, usize, Value)> {
    let func = view.func();
    let mut found = Vec::new();
    for &exit in &view.forest.data(lp).exits {
        let values = exit.args(func).enumerate().filter_map(|(index, arg)| Some((index, arg.as_value()?)));
        let inside = values.filter(|(_, value)| !view.is_from_outside(lp, *value));
        found.extend(inside.map(|(index, value)| (exit, index, value)));
    }
    found
}

/// Whether something of a loop would be removed if no exit needed any of the values that leave it.
fn would_gain(flow: &Flow<'_>) -> bool {
    let [now, at_best] = [Dead::without(flow, |_| false), Dead::without(flow, |_| true)];
    at_best.operations() > now.operations()
}

/// The values of which formulas give all that leaves the loop.
fn given(leaving: &[(Edge, usize, Value)], finals: &[Final]) -> FxHashSet<Value> {
    let places: FxHashSet<_> = finals.iter().map(|one| (one.exit, one.index)).collect();
    let mut given: FxHashSet<_> = finals.iter().map(|one| one.value).collect();
    for (exit, index, value) in leaving {
        if !places.contains(&(*exit, *index)) {
            given.remove(value);
        }
    }
    given
}

/// Keeps only those of the `given` values that are computed from an operation that is removed with them.
fn keep_worthwhile(flow: &Flow<'_>, given: &mut FxHashSet<Value>) {
    // A value that is kept keeps the operations that it is computed from. If none of the removed operations is among them, giving its formula removes nothing; and
    // as keeping it makes no removed operation needed, the other values are judged as before.
    let keeping = Dead::without(flow, |value| given.contains(&value)).what_needs_it(flow);
    given.retain(|value| keeping.contains(value));
}

/// Whether nobody would notice if `lp`, which ends, did not run, but for what leaves it by its one exit.
fn may_go(
    ctx: &Context,
    (forest, lp): (&LoopForest, Loop),
    order: &impl Deref<Target = Order>,
    options: &Options,
) -> bool {
    let (func, data) = (&ctx.func, forest.data(lp));
    let ([exit], true) = (&data.exits[..], forest.is_innermost(lp)) else { return false };
    let is_silent = |inst: Inst| {
        let effects = Effects::of(func, inst);
        let is_seen = effects.traps || effects.writes || effects.fences || effects.diverges;
        // Looking at what others write is an effect: the loop waits for them, though not for ever.
        !(is_seen || options.is_asynchronous_load(func, inst)) || fault!(EffectsForgotten)
    };
    let blocks = forest.blocks(lp);
    let passes_values = exit.args(func).all(|arg| arg.as_value().is_some());
    passes_values
        && blocks.iter().flat_map(|&block| func.layout.block_insts(block)).all(is_silent)
        && !has_cycle(&ctx.func, (forest, lp), order)
}

/// Whether there is a cycle in `lp` that does not lead through its header.
fn has_cycle(func: &Function, (forest, lp): (&LoopForest, Loop), order: &impl Deref<Target = Order>) -> bool {
    let (blocks, header) = (forest.blocks(lp), forest.data(lp).header);
    if let [_] = blocks {
        return false;
    }
    let mut seen = EntitySet::<Block>::new();
    // In reverse postorder, each cycle has an edge to a block that was seen before.
    order.sorted(blocks).into_iter().any(|block| {
        seen.insert(block);
        edges_from(func, block).map(|edge| edge.target(func)).any(|target| target != header && seen.contains(target))
    })
}

/// Looks for formulas in one loop.
struct Search<'a, 'b> {
    view: View<'a>,
    lp: Loop,
    entry: Edge,
    conditions: &'a mut Conditions<'b>,
    polynomials: Polynomials<'a>,
    exits: ExitIterations<'a>,
    ignores_cost: bool,
    /// What was found for exits.
    found: Vec<(Edge, Result<Sum, Decline>)>,
}

impl<'a, 'b> Search<'a, 'b> {
    fn new(view: View<'a>, (lp, entry): (Loop, Edge), conditions: &'a mut Conditions<'b>, options: &Options) -> Self {
        let confines = options.has_confining(view.func());
        Self {
            view,
            lp,
            entry,
            conditions,
            polynomials: Polynomials::new(view, lp).keeping_extensions(confines),
            exits: ExitIterations::new(view, lp),
            ignores_cost: options.ignore_cost,
            found: Vec::new(),
        }
    }

    /// The values of `leaving` that have formulas, and why the first of the others has none.
    fn finals(&mut self, leaving: &[(Edge, usize, Value)]) -> (Vec<Final>, Option<Decline>) {
        let (mut finals, mut why) = (Vec::new(), None);
        for &(exit, index, value) in leaving {
            match self.formula(exit, value) {
                Ok(formula) => finals.push(Final { exit, index, value, formula }),
                Err(decline) => why = why.or(Some(decline)),
            }
        }
        (finals, why)
    }

    /// The formula of `value`, which leaves the loop by `exit`.
    fn formula(&mut self, exit: Edge, value: Value) -> Result<Formula, Decline> {
        let polynomial = self.polynomials.of(value).ok_or(Decline::NoFormula(value))?;
        Ok(Formula::new(polynomial, &self.iteration(exit)?, self.ignores_cost))
    }

    /// Whether it is known in which iteration the loop is left by `exit`.
    fn is_known(&mut self, exit: Edge) -> bool {
        self.iteration(exit).is_ok()
    }

    /// (L1) and (L2)
    fn iteration(&mut self, exit: Edge) -> Result<Sum, Decline> {
        if let Some((_, found)) = self.found.iter().find(|(other, _)| *other == exit) {
            return found.clone();
        }
        let found = match self.exits.at(exit) {
            None => Err(Decline::NotCounted),
            Some(ExitIteration { number, requires }) => {
                match requires.into_iter().find(|one| !self.holds(one) && !fault!(CountAssumed)) {
                    Some(requirement) => Err(Decline::NotKnownBefore { requirement: requirement.to_string() }),
                    None => Ok(number),
                }
            }
        };
        debug_assert!(found.as_ref().is_ok_and(|number| self.view.is_invariant(self.lp, number)) || found.is_err());
        self.found.push((exit, found.clone()));
        found
    }

    fn holds(&mut self, requirement: &Requirement) -> bool {
        requirement.known().unwrap_or_else(|| match requirement {
            Requirement::Compare { cond, left, right } => {
                self.conditions.holds(Place::Before(self.entry.branch), *cond, [left, right])
            }
            Requirement::Fits { .. } => false,
        })
    }
}

refusals! {
    /// Why a loop keeps what it computes.
    #[derive(Clone)]
    enum Decline {
        /// (P1) Nothing of the loop is computed for its exits alone.
        NothingPredictable => "nothing-predictable",
            "no value that only the code after the loop uses can be computed by a formula";
        /// (L1) No test says how often it runs.
        NotCounted => "not-counted", "no test of a counter says in which iteration the loop is left",
            help "let the only exit be the test of a number that grows by a constant; no formula says where a search ends";
        /// (L2) The formula holds under a condition.
        NotKnownBefore { requirement: String } => "not-known-before",
            "how often the loop runs is known only if {requirement}, which nothing before it says",
            help "test that before the loop";
        /// (L3) It is no polynomial.
        NoFormula(value: Value) => "no-formula", "{value}, which leaves the loop, is no sum of what a counter or a constant adds";
        /// (L7) A guard is made of it.
        Guarded => "guarded", "a Spectre guard is made of what leaves the loop";
        /// (L8) A strip may come to end earlier.
        EndsStrip => "ends-strip", "what leaves the loop where its strip ends is counted, so that the strip may end anywhere";
        /// (L6) It has no effect, but may be endless.
        MayNotEnd => "may-not-end", "the loop has no effect but that it ends, and it is not known to end";
        /// (P2) The formulas are long.
        TooLong { operations: usize, gain: usize } => "too-long",
            "the formulas are {operations} instructions, and an iteration would be shorter by {gain}",
            help "raise Options::final_values_max_insts_per_gain if the loop runs often";
        /// (P2) The loop ends before it pays.
        FewIterations { operations: usize, saved: u128 } => "few-iterations",
            "the formulas are {operations} instructions, and all iterations together would save {saved}";
        /// The loop is large.
        TooLarge { max: usize } => "too-large", "the loop has more than {max} instructions",
            help "raise Options::final_values_max_loop";
    }
}
