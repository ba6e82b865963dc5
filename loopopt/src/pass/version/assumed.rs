//! Cells that say how often a loop runs, or where it stores to: the fields of an object, while the loop fills the array that one of them points to.
//!
//! ```text
//!                                              v8 = load.i64 v0
//!                                              v9 = load.i64 v0+8
//!                                              fast if v9 .. v9 + 8 * v8 is disjoint from v0 .. v0 + 16
//! header(v2: i64):                         header(v2: i64):
//!     v3 = load.i64 v0+8                       v5 = v9 + 8 * v2
//!     v5 = v3 + 8 * v2            ──►          store v1, v5
//!     store v1, v5                             v6 = iadd v2, 1
//!     v6 = iadd v2, 1                          v7 = icmp ult v6, v8
//!     v4 = load.i64 v0                         brif v7, header(v6), exit
//!     v7 = icmp ult v6, v4
//!     brif v7, header(v6), exit
//! ```
//!
//! What proves such a cell disjoint from the stores is a formula of the cell itself. So it is asked of another loop: of one that does not load these
//! cells, but is given what they hold before it.
//!
//! # Legal when
//!
//! (A1) Each of these loads may be done before the loop, by the rules of [`licm`](crate::pass::licm): it cannot trap and may move, or it runs in the first iteration
//! and nothing that can be seen comes before it. If checks come before it, as that of a tag, it is done at another place, one that has been loaded, where one of
//! them would fail in the first iteration; the versions are made only if all of these checks are removed. Nothing is believed of what is loaded there that flags or the region say of the load in the loop,
//! and no access at what it gives is done where the test has not been made. After a store, only a load at an address that the loop does not
//! load is done, and none after a check: the store may have made it another place, or one that the loop does not reach. Nothing is loaded twice that has been
//! loaded before the loop already.
//! (A2) In the loop that does not load them, no store overlaps one of the cells: that is tested before the loop, by what was loaded there. Fields of one object are
//! proved disjoint together, unless a store is known to be to another one.
//! (A3) Nothing else in the loop may write them: no call, no fence, no atomic, no others ([`Writers`](crate::Writers)); and none of the loads is a
//! [poll](crate::analysis::memory::exit_polls).
//!
//! The proof is by induction over the stores of the loop as it was: up to some store, each cell held what was loaded before the loop, so that both loops did
//! the same; so the next store is one of the fast loop, too, and by (A2) it overlaps no cell.
//!
//! All that is proved of the fast loop is proved of the loop that does not load the cells. They are not loaded there, so that what another thread writes in
//! between does not come between a check that is removed and what it confines.
//!
//! # Pays when
//!
//! a store goes to where such a load says, or the loop ends when one says so: other loads are hoisted by [`licm`](crate::pass::licm) once they are
//! [proved disjoint](super::overlap). Checks have to be removed with it, or the loads have to be many of the instructions. In an inner loop there is no second test
//! after this one: of a product of matrices that objects point to, 4 by 4 take 0.64 of Cranelift's time and not 1.05, 8 by 8 0.67 and not 0.87.
//!
//! # Not done
//!
//! Outer loops: what is before the inner loop varies there. Cells that the loop stores to itself.
//!
//! # References
//!
//! LLVM `LoopVersioningLICM` proves disjoint what does not depend on the cells; HotSpot and Graal know from types that a length is no element.

use super::finish;
use super::known::Known;
use super::overlap::count_insts;
use super::plan::Plan;
use super::preheader_loads::{Guarding, Loaded, May, PreheaderLoads};
use crate::analysis::cfg::edges::Edge;
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::cfg::must_execute::{FirstIteration, Order};
use crate::analysis::inst::effects::Effects;
use crate::analysis::memory::alias::{Access, PrivateSlots};
use crate::analysis::memory::available::available_loads;
use crate::analysis::memory::exit_polls::polls;
use crate::analysis::scev::view::View;
use crate::edit::inst::rename::rename_in;
use crate::edit::inst::stand_for::stand_for;
use crate::edit::materialize::assertion::assert_loads;
use crate::edit::materialize::pin::pin_accesses_at;
use crate::options::Options;
use crate::pass::version::lengths::Lengths;
use crate::pass::{Form, PassCx, canon};
use cranelift_codegen::ir::{Function, Inst, InstructionData, Value};
use cranelift_codegen::{CodegenResult, Context, FxHashMap, FxHashSet};

/// Makes versions of the innermost loops for which that can be done if cells are assumed to hold what they hold before the loop. Returns whether there are any.
pub(super) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<bool> {
    let mut loops = candidates(ctx, cx);
    if !loops.is_empty() && cx.form < Form::Canonical {
        canon::restore(ctx, cx)?;
        loops = candidates(ctx, cx);
    }
    if loops.is_empty() {
        return Ok(false);
    }
    let forest = cx.forest(ctx);
    let order = Order::of(&ctx.func, &ctx.domtree);
    let mut room = cx.room(&ctx.func);
    let mut found = Vec::new();
    for lp in loops {
        let Some(assumed) = Assumed::load_in_preheader(ctx, cx, &forest, (lp, &order)) else { continue };
        match assumed.plan(ctx, cx, &forest).filter(|plan| plan.copied <= room && cx.fuel.take()) {
            Some(plan) => {
                room -= plan.copied;
                found.push((assumed, plan));
            }
            None => assumed.forget(&mut ctx.func),
        }
    }
    if found.is_empty() {
        return Ok(false);
    }
    for (assumed, plan) in &found {
        let what = format!("{}; loads once, before the loop: {}", plan.describe(&ctx.func), assumed.given.len());
        plan.make(ctx, cx, &order, (what, forest.data(assumed.lp).parent.is_none()));
    }
    // The slow versions load for themselves.
    for &(load, value) in found.iter().flat_map(|(assumed, _)| &assumed.given) {
        let next = ctx.func.layout.next_inst(load).expect("a block ends in a branch");
        assert_loads(&mut ctx.func, next, load, value);
        stand_for(&mut ctx.func, load, value);
    }
    ctx.func.dfg.resolve_all_aliases();
    // After checks, an address is the one that is meant only in the fast loop.
    let after_checks = found.iter().filter(|(assumed, _)| !assumed.guards.is_empty());
    pin_accesses_at(&mut ctx.func, after_checks.flat_map(|(assumed, _)| &assumed.given).map(|&(_, value)| value));
    for &load in found.iter().flat_map(|(assumed, _)| &assumed.made) {
        put_uses_at(&mut ctx.func, load);
    }
    let plans: Vec<_> = found.into_iter().map(|(_, plan)| plan).collect();
    finish(ctx, cx, &plans)?;
    Ok(true)
}

/// The innermost loops that store to where one of their loads says, or end when one of them says.
fn candidates(ctx: &Context, cx: &mut PassCx<'_>) -> Vec<Loop> {
    /// Loops of one function. Each is looked at with analyses of the function as it would be.
    const MAX_LOOPS: usize = 32;
    let forest = cx.forest(ctx);
    let may_be = |&lp: &Loop| {
        let header = forest.data(lp).header;
        forest.is_innermost(lp)
            && forest.irreducible_in(lp).is_none()
            && cx.marks.has_full_effort(header)
            && cx.marks.may_get_versions(header)
            && !cx.marks.is_left_alone(header)
            && needs(&ctx.func, (&forest, lp), cx.options, |_| true)
    };
    forest.loops().filter(may_be).take(MAX_LOOPS).collect()
}

/// Whether one of these loads of `lp` says where the loop stores, or when it ends. Not if the loop is long, or does more about memory than to load and store.
fn needs(func: &Function, (forest, lp): (&LoopForest, Loop), options: &Options, is_one: impl Fn(Inst) -> bool) -> bool {
    let (mut loaded, mut stores, mut is_needed) = (FxHashSet::<Value>::default(), 0, false);
    let insts = || forest.blocks(lp).iter().flat_map(|&block| func.layout.block_insts(block));
    if insts().nth(options.version_max_insts).is_some() {
        return false;
    }
    // Often enough: what is made of a load is after it, in the order of most layouts.
    for inst in insts() {
        let is_loaded = |value: &Value| loaded.contains(value);
        match func.dfg.insts[inst] {
            InstructionData::Load { .. } if is_one(inst) => loaded.extend(func.dfg.inst_results(inst)),
            InstructionData::Load { .. } => {}
            InstructionData::Store { args: [_, address], .. } => {
                stores += 1;
                is_needed |= is_loaded(&address);
            }
            InstructionData::Brif { arg, .. } => {
                let mut ends = forest.data(lp).exits.iter().filter(|exit| exit.branch == inst);
                is_needed |= is_loaded(&arg) && ends.any(|exit| !forest.fails_at(func, exit.target(func)));
            }
            _ if touches_memory(func, inst) => return false,
            _ if func.dfg.inst_args(inst).iter().any(is_loaded) => loaded.extend(func.dfg.inst_results(inst)),
            _ => {}
        }
    }
    is_needed && stores > 0
}

/// Whether `inst`, which is no plain access, is seen by those.
fn touches_memory(func: &Function, inst: Inst) -> bool {
    let effects = Effects::of(func, inst);
    effects.fences || effects.writes
}

/// A loop, and what its loads are assumed to give in each iteration.
struct Assumed {
    lp: Loop,
    given: Vec<(Inst, Value)>,
    /// The checks without which not all of that may be loaded before the loop.
    guards: Vec<Inst>,
    /// What was computed and loaded before the loop.
    made: Vec<Inst>,
}

/// What of a loop may be a load of a cell.
struct Loads<'a> {
    options: &'a Options,
    polls: Vec<Inst>,
    stores: Vec<Access>,
}

impl<'a> Loads<'a> {
    /// Those of `lp`.
    fn of(ctx: &Context, options: &'a Options, forest: &LoopForest, lp: Loop) -> Self {
        let func = &ctx.func;
        let insts = forest.blocks(lp).iter().flat_map(|&block| func.layout.block_insts(block));
        let accesses = insts.filter_map(|inst| Access::of(func, inst));
        let stores = accesses.filter(|access| access.stored.is_some()).collect();
        Self { options, polls: polls(func, (&ctx.cfg, &ctx.domtree), forest, lp), stores }
    }

    /// (A3) The load that `inst` is, unless the loop waits for it, stores to that very place, or others do.
    fn load(&self, func: &Function, inst: Inst) -> Option<Access> {
        let load = Access::of(func, inst).filter(|access| access.stored.is_none())?;
        let is_cold = func.layout.inst_block(inst).is_none_or(|home| func.is_effectively_cold(home));
        let is_stored = self.stores.iter().any(|store| is_same_place(store, &load));
        let is_one = !is_cold
            && !is_stored
            && !Effects::of(func, inst).asserts
            && !self.options.is_asynchronous(func, load.flags)
            && self.polls.binary_search(&inst).is_err();
        is_one.then_some(load)
    }
}

/// What has been loaded on the path to `lp`.
fn loaded_before(ctx: &Context, cx: &PassCx<'_>, forest: &LoopForest, lp: Loop) -> Vec<Loaded> {
    let Context { func, cfg, domtree, .. } = ctx;
    let Some(preheader) = forest.preheader(func, lp) else { return Vec::new() };
    let private = PrivateSlots::of(func, domtree).with(cx.disjoint.clone());
    let loads = available_loads(func, cfg, (forest, lp), preheader, &private);
    loads.into_iter().filter_map(|load| Loaded::of(func, load)).collect()
}

impl Assumed {
    /// (A1) Loads the cells of `lp` before it. Nothing if there are none.
    fn load_in_preheader(
        ctx: &mut Context,
        cx: &PassCx<'_>,
        forest: &LoopForest,
        (lp, order): (Loop, &Order),
    ) -> Option<Self> {
        /// Loads of one loop. The cell of each is compared with each store.
        const MAX_LOADS: usize = 16;
        let there = loaded_before(ctx, cx, forest, lp);
        let loads = Loads::of(ctx, cx.options, forest, lp);
        let blocks = order.sorted(forest.blocks(lp));
        let Context { func, domtree, .. } = ctx;
        let jump = forest.preheader(func, lp).and_then(|preheader| func.layout.last_inst(preheader))?;
        let insts: Vec<_> =
            blocks.iter().flat_map(|&block| func.layout.block_insts(block).map(move |inst| (block, inst))).collect();
        let ends = |exit: Edge| !forest.fails_at(func, exit.target(func));
        let mut first = FirstIteration::leaving_by(func, (forest, domtree), lp, ends);
        let mut front = PreheaderLoads::new(func, forest, (lp, jump), (&cx.memories, there));
        let mut given = Vec::new();
        for (block, inst) in insts {
            if front.func.layout.first_inst(block) == Some(inst) {
                first.enter(block);
            }
            let is_certain = first.reaches(block) && first.interruption().is_none();
            match front.guard(inst, is_certain) {
                Guarding::No => {}
                Guarding::Yes => continue,
                Guarding::InTheWay => break,
            }
            let load = loads.load(front.func, inst).filter(|_| given.len() < MAX_LOADS);
            let value = load.and_then(|load| {
                let is_seen = !load.flags.notrap() && first.observable().is_some();
                let anywhere = load.flags.notrap() && load.flags.can_move();
                front.load(&load, May { anywhere, at_first: is_certain && !is_seen })
            });
            match value {
                Some(value) => given.push((inst, value)),
                None => {
                    let effects = Effects::of(front.func, inst);
                    front.is_written |= effects.writes;
                    first.pass_effects(inst, effects);
                }
            }
        }
        let (made, guards) = front.finish();
        let assumed = Self { lp, given, guards, made };
        let is_given = |inst| assumed.given.iter().any(|&(load, _)| load == inst);
        let is_needed = needs(&ctx.func, (forest, lp), cx.options, is_given);
        if !is_needed {
            assumed.forget(&mut ctx.func);
        }
        is_needed.then_some(assumed)
    }

    /// Removes what was made before the loop.
    fn forget(&self, func: &mut Function) {
        self.made.iter().rev().for_each(|&inst| func.layout.remove_inst(inst));
    }

    /// (A2) The versions of the loop that does not load its cells, if there can and should be.
    fn plan(&self, ctx: &mut Context, cx: &PassCx<'_>, forest: &LoopForest) -> Option<Plan> {
        let loaded = self.give(&mut ctx.func, forest);
        let loads: Vec<_> = self.given.iter().map(|&(load, _)| load).collect();
        let (view, lengths) = (View { ctx, forest }, Lengths::default());
        let mut known = Known::new(view, cx, &lengths);
        let plan = known.assume(self.lp, &loads).and_then(|cells| {
            let mut plan = Plan::prove(view, self.lp, &mut known, cx.options).ok()?;
            // That their addresses are guarded is no check of a loop that does not load them.
            plan.checks.retain(|check| !loads.contains(&check.inst));
            let plan = plan.judge(view, known.guards()).and_then(|plan| plan.runs_often(view, cx)).ok()?;
            let has = |guard: &Inst| plan.checks.iter().any(|check| check.inst == *guard);
            let is_legal = plan.overlaps().count() == cells && self.guards.iter().all(has);
            (is_legal && (cx.options.ignore_cost || self.pays(&ctx.func, &plan, cx.options))).then_some(plan)
        });
        for (inst, before) in loaded {
            ctx.func.dfg.overwrite_inst_values(inst, before.into_iter());
        }
        plan
    }

    /// Gives the loop what its loads give before it. Returns what was used in their place, and by which instructions.
    fn give(&self, func: &mut Function, forest: &LoopForest) -> Vec<(Inst, Vec<Value>)> {
        let given: FxHashMap<_, _> =
            self.given.iter().map(|&(load, value)| (func.dfg.first_result(load), value)).collect();
        let mut loaded = Vec::new();
        for inst in forest.blocks(self.lp).iter().flat_map(|&block| func.layout.block_insts(block)) {
            let before: Vec<_> = func.dfg.inst_values(inst).collect();
            if before.iter().any(|value| given.contains_key(value)) {
                loaded.push((inst, before));
            }
        }
        rename_in(func, forest.blocks(self.lp).iter().copied(), &given);
        loaded
    }

    /// Whether checks are removed, or the loads that are removed are many of the instructions of the loop.
    fn pays(&self, func: &Function, plan: &Plan, options: &Options) -> bool {
        let others = plan.extensions().count() + plan.overlaps().count();
        let max = self.given.len().saturating_mul(options.version_max_insts_per_cell_access);
        others < plan.checks.len() || count_insts(func, &plan.blocks) <= max
    }
}

/// Lets what uses a load that may trap, before the loop, have its source location: where lowering makes one instruction of both, the trap is seen there.
fn put_uses_at(func: &mut Function, load: Inst) {
    let Some(access) = Access::of(func, load).filter(|access| !access.flags.notrap()) else { return };
    let (srcloc, value) = (func.srcloc(load), func.dfg.first_result(access.inst));
    let Some(block) = func.layout.inst_block(load) else { return };
    let uses = |inst: &Inst| Effects::of(func, *inst).is_pure() && func.dfg.inst_args(*inst).contains(&value);
    let uses: Vec<_> = func.layout.block_insts(block).filter(uses).collect();
    uses.into_iter().for_each(|inst| func.set_srcloc(inst, srcloc));
}

/// Whether the two are known to touch the same byte.
fn is_same_place(store: &Access, load: &Access) -> bool {
    let distance = store.address.minus(&load.address).and_then(|distance| distance.as_constant());
    distance.is_some_and(|ahead| ahead < u64::from(load.size) || ahead.wrapping_neg() < u64::from(store.size))
}
