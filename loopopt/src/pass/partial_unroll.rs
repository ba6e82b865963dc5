//! Unrolling by a factor: a loop with many iterations does several of them for each test of its count.
//!
//! ```text
//! preheader                     preheader
//!     │                             │
//!     ▼                             ▼
//!   header ◄──┐               4 iterations left? ────────┐
//!     │       │                     │                    │
//!    body     │        ──►          ▼                    │
//!     │       │                  iteration  ◄─────┐      │
//!   more? ────┘                  iteration        │      │
//!     │                          iteration        │      │
//!     ▼                          iteration        │      │
//!    exit                        4 left? ─────────┘      │
//!                                   │                    │
//!                                   ▼                    ▼
//!                                 more? ──────────►   header ◄──┐   the remainder loop: as it was
//!                                   │                    │      │
//!                                   ▼                    ▼      │
//!                                  exit ◄──────────── more? ────┘
//! ```
//!
//! The unrolled loop has one test, one jump, and one step of each counter: the numbers of its later iterations are those of its first and a
//! constant, which addresses take as their offset ([`crate::edit::materialize::stride`]). Other exits stay in each iteration.
//!
//! If the number of iterations is known and the factor divides it, there is no remainder loop.
//!
//! # Needs
//!
//! Canonical form, and makes it if there is something to do and it was lost.
//!
//! # Legal when
//!
//! (L1) each iteration ends in a test that compares a number, which grows by the same constant each time, with a loop-invariant one, and
//! that goes on as long as the number has not reached that bound; (L2) each instruction may be copied.
//!
//! With `t` for the number in the last test, step `b` and factor `f`, the next `f - 1` tests go on if `t + (f - 1) · b` has not come
//! to the bound `n` and no sum on the way there wraps. In the preheader, the first number stands for `t + b`. For an order, that is
//! `t < n - (f - 1) · b`, where the right side is computed in the preheader, and has been found there not to wrap. For `!=`, it is
//! `n - t > (f - 1) · b`, unsigned: a distance on the circle of all numbers that is larger than that is not 0 after any of these steps.
//! All of it holds with the signs changed for steps downwards. So the tests that are removed would have gone on, and the iterations and all that
//! can be observed of them stay the same, in the same order.
//!
//! A loop that no such test counts, or that something else may end, such as a search, keeps all its tests, and there is no remainder: (L2) is enough then.
//! The counters step once, and so does the jump.
//!
//! # Pays when
//!
//! (P1) an iteration is small, without its cold blocks: the test, the jump and the counters are a large part of it; (P2) it calls nothing there, and in its cold blocks once at most, divides nothing but what
//! only the end needs, and has no `br_table`, which take the time; (P3) there is no inner loop; (P4) the loop is not cold, and (P5) runs more than a few times, as
//! far as is known: of a loop that something else than its count can end, such as a search, nothing is. (P6) The function may not grow
//! without limit. (P7) Where the tests stay, the loop has a counter, an iteration does not wait for the one before, as in a walk along a list, and no more than two exits depend on what it loads.
//! (P8) It does not [exchange](sorting) what later iterations compare.
//!
//! # Changes
//!
//! Blocks and edges. Canonical form has to be rebuilt.
//!
//! # Not done
//!
//! Searches that run long could make one test of their count for several iterations, too, once they have run for a while. Tests elsewhere than at the end: `rotate` has put them there, or said why not.
//! Remainder loops are not known to be short: a second run over the same function unrolls them.
//!
//! # References
//!
//! LLVM `LoopUnrollRuntime` (the remainder loop after it, and the test that is known not to wrap); V8 (`kMaxLoopSizeForPartialUnrolling`, 80
//! operations of WebAssembly, at most 4 iterations); llvm#51012 and OMR 472a9b3b7 for what goes wrong.

mod guard;
mod judge;
mod sorting;
mod uncounted;
mod why;

use crate::analysis::cfg::edges::Edge;
use crate::analysis::cfg::loops::Loop;
use crate::analysis::cfg::must_execute::Order;
use crate::analysis::inst::effects::{counts_as_code, is_comparison};
use crate::analysis::inst::number::mask;
use crate::analysis::memory::alias::{address_operand, has_one_address};
use crate::analysis::memory::disjoint::Disjoint;
use crate::analysis::scev::exit_count::TripCount;
use crate::analysis::scev::linear_expr::Sum;
use crate::analysis::scev::recurrence::{Recurrences, Steps};
use crate::analysis::scev::view::View;
use crate::change::Change;
use crate::claim::Claim;
use crate::edit::cfg::split_edges::{funnel, retarget, set_edge};
use crate::edit::copy::copy_iterations::{clone_iterations, copied_edge, settle};
use crate::edit::inst::clone::{Copies, clone_blocks, repeat_before};
use crate::edit::inst::rename::{Replaced, rename_uses};
use crate::edit::materialize::assertion::assert_takes;
use crate::edit::materialize::dce::remove_unused;
use crate::edit::materialize::emit::{emit, emit_all};
use crate::edit::materialize::stride::{Base, stride};
use crate::edit::ssa::params::keep_params;
use crate::options::Options;
use crate::pass::copying::{Denied, granted};
use crate::pass::{Pass, PassCx};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, InstBuilder, Value, ValueDef};
use cranelift_codegen::{CodegenResult, Context, FxHashSet};
use guard::{Again, Entries, Guard, Test, guard};
pub(crate) use judge::most_iterations;
use judge::{factor, judge, leaving, usual_insts};
use std::rc::Rc;
use why::Decline;

/// The name of this pass.
pub(crate) const NAME: &str = "partial_unroll";

/// The pass.
pub(crate) const PASS: Pass = Pass {
    name: NAME,
    run,
    reasons: &[Decline::REASONS, Denied::REASONS],
    claims: &[Claim::TripCount, Claim::Recurrence, Claim::SamePlace],
    copies: true,
    ..Pass::OPTIONAL
};

/// Unrolls all loops for which that can be and should be done.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let plans = granted(ctx, cx, NAME, plan, |plan| (plan.header, plan.copied))?;
    if plans.is_empty() {
        return Ok(Change::Nothing);
    }
    let order = Order::of(&ctx.func, &ctx.domtree);
    let mut unused = Vec::new();
    for plan in &plans {
        cx.retract(NAME, plan.header);
        cx.fired(&ctx.func, &PASS, plan.header, plan.describe());
        let blocks = order.sorted(&plan.blocks);
        unused.extend(plan.apply(ctx, cx, &blocks));
        cx.marks.unrolled.insert(plan.header);
    }
    remove_unused(&mut ctx.func, unused);
    Ok(Change::Cfg)
}

/// The loops to do it to, all innermost.
fn plan(ctx: &Context, cx: &mut PassCx<'_>) -> Vec<Plan> {
    let mut plans = Vec::new();
    let mut entries = Entries::new(ctx, cx.options);
    for lp in cx.forest(ctx).loops() {
        let header = cx.forest(ctx).data(lp).header;
        if cx.marks.is_left_alone(header) {
            continue;
        }
        let count = cx.bound(ctx, lp);
        let options = cx.options;
        let view = View { ctx, forest: &cx.forest(ctx) };
        let found = Plan::prove(view, lp, count, (options, &cx.disjoint, &mut entries));
        let found = found.and_then(|plan| plan.runs_often((view, lp), cx));
        match found {
            Ok(plan) => plans.push(plan),
            Err(why) => cx.declined(&ctx.func, NAME, header, &why),
        }
    }
    plans
}

/// A loop that can do several iterations at a time.
struct Plan {
    header: Block,
    entry: Edge,
    back_edge: Edge,
    exits: Vec<Edge>,
    blocks: Vec<Block>,
    /// Nothing if each iteration keeps its tests.
    counted: Option<Counted>,
    steps: Steps,
    /// The accesses that are proved disjoint from others, and whose address is the same in each iteration.
    fixed: FxHashSet<Inst>,
    factor: usize,
    /// Divisions that only the end of the loop needs, of the last iteration.
    leaving: Vec<Value>,
    /// Instructions of an iteration, without constants.
    size: usize,
    /// Instructions that the copies add.
    copied: usize,
}

/// What counts a loop that makes one test for several iterations.
struct Counted {
    test: Test,
    /// When there are enough iterations for the unrolled loop; nothing if there is no remainder.
    guard: Option<Guard>,
}

impl Counted {
    fn prove(
        view: View<'_>,
        lp: Loop,
        (count, factor): (TripCount, usize),
        (options, recurrences, entries): (&Options, &Recurrences, &mut Entries<'_>),
    ) -> Result<Self, Decline> {
        if !options.ignore_cost && view.forest.may_end_early(view.func(), lp) {
            return Err(Decline::EndsEarly);
        }
        let test = Test::find(view, lp, recurrences).ok_or(Decline::NotCounted)?;
        let most = [count.most_iterations(), test.most(view.func()).map(u128::from)].into_iter().flatten().min();
        let is_few = |most: &u128| !options.ignore_cost && *most < options.partial_unroll_min_iterations as u128;
        if let Some(most) = most.filter(is_few) {
            return Err(Decline::FewIterations { most, factor });
        }
        let [entry] = view.forest.data(lp).entries[..] else { return Err(Decline::NotCounted) };
        let mut is_entered_if = |cond, sides: [&Sum; 2]| entries.hold(entry, cond, sides);
        let guard = guard(&test, (count, factor), &mut is_entered_if)?;
        Ok(Self { test, guard })
    }
}

impl Plan {
    /// (P5) The unrolled loop is executed, as far as a profile or an estimate says. Once is enough: `polynomials` with 4 iterations in each takes 0.39 of Cranelift's
    /// time if they are unrolled, and 0.58 if they are not (`jit-harness bench --filter polynomials`).
    fn runs_often(self, (view, lp): (View<'_>, Loop), cx: &PassCx<'_>) -> Result<Self, Decline> {
        let min = self.factor;
        match cx.usually_short(view, lp, min) {
            Some(usual) => Err(Decline::UsuallyShort(usual, min)),
            None => Ok(self),
        }
    }

    fn prove(
        view: View<'_>,
        lp: Loop,
        count: TripCount,
        (options, disjoint, entries): (&Options, &Disjoint, &mut Entries<'_>),
    ) -> Result<Self, Decline> {
        let (func, forest) = (view.func(), view.forest);
        let data = forest.data(lp);
        let blocks = forest.blocks(lp);
        let (&[entry], &[back_edge]) = (&data.entries[..], &data.back_edges[..]) else {
            return Err(Decline::NotCounted);
        };
        if blocks.iter().any(|&block| block != data.header && forest.loop_of_header(block).is_some()) {
            return Err(Decline::NotInnermost);
        }
        let insts = || blocks.iter().flat_map(|&block| func.layout.block_insts(block));
        if let Some(inst) = insts().find(|&inst| !forest.is_duplicable(func, inst)) {
            return Err(Decline::NotDuplicable(func.dfg.insts[inst].opcode()));
        }
        let size = usual_insts(view, lp).filter(|&inst| counts_as_code(func, inst)).count();
        // What an iteration passes to another parameter is moved, by an instruction for each.
        let params = func.dfg.block_params(data.header).iter().zip(back_edge.args(func));
        let is_of_header = |arg| matches!(func.dfg.value_def(arg), ValueDef::Param(block, _) if block == data.header);
        let moved = params.filter(|(param, arg)| arg.as_value().is_some_and(|arg| arg != **param && is_of_header(arg)));
        let all = insts().count() + moved.count();
        let factor = factor((size, all), options)?;
        let leaving = leaving(view, lp);
        if !options.ignore_cost {
            judge(view, lp, &leaving)?;
        }
        let recurrences = Recurrences::with_constant_steps(view, lp);
        if !options.ignore_cost {
            sorting::judge(view, lp, &recurrences)?;
        }
        let (counted, (factor, steps)) =
            match Counted::prove(view, lp, (count, factor), (options, &recurrences, entries)) {
                Ok(counted) => (Some(counted), (factor, recurrences.steps(view))),
                Err(why @ (Decline::NotCounted | Decline::EndsEarly)) => {
                    (None, uncounted::prove(view, lp, ((size, all), options), &recurrences, why)?)
                }
                Err(why) => return Err(why),
            };
        let is_fixed = |&inst: &Inst| disjoint.is_member(inst) && has_one_address(view, lp, inst);
        Ok(Self {
            leaving,
            fixed: insts().filter(is_fixed).collect(),
            header: data.header,
            entry,
            back_edge,
            exits: data.exits.clone(),
            blocks: blocks.to_vec(),
            steps,
            factor,
            copied: all.saturating_mul(factor - usize::from(counted.as_ref().is_none_or(|one| one.guard.is_none()))),
            counted,
            size,
        })
    }

    fn describe(&self) -> String {
        let rest = match &self.counted {
            None => ", with their tests",
            Some(Counted { guard: None, .. }) => ", and nothing remains",
            Some(_) => "",
        };
        format!("{} iterations at a time, of {} instructions each{rest}", self.factor, self.size)
    }

    /// Unrolls the loop. `blocks` are those of the loop in dominance order. Gives what may not be needed any longer.
    fn apply(&self, ctx: &mut Context, cx: &mut PassCx<'_>, blocks: &[Block]) -> Vec<Value> {
        let func = &mut ctx.func;
        let guarded = self.counted.as_ref().and_then(|Counted { test, guard }| Some((test, guard.as_ref()?)));
        let rest = guarded.map(|guarded| (guarded, clone_blocks(func, blocks)));
        let copies = clone_iterations(func, blocks, self.back_edge, self.factor - 1);
        let latch = self.back_edge.source(func);
        self.note_disjoint(func, cx, blocks, &copies);
        let always = |block| ctx.domtree.block_dominates(block, latch);
        let mut unused = stride(func, (blocks, self.back_edge), &copies, &self.steps, always);
        let (last, others) = copies.split_last().expect("a factor of two or more");
        unused.extend_from_slice(&self.leaving);
        unused.extend(others.iter().flat_map(|copy| self.leaving.iter().map(|&value| copy.value(value))));
        retarget(func, self.back_edge, copies[0].block(self.header));
        let again = copied_edge(func, last, self.back_edge);
        retarget(func, again, self.header);
        if self.counted.is_none() {
            self.split_exits(func, &copies);
            self.name_values(func, blocks, &copies);
            return unused;
        }
        let between = others.iter().map(|copy| copied_edge(func, copy, self.back_edge));
        let between: Vec<_> = between.chain([self.back_edge]).collect();
        for edge in between {
            unused.extend_from_slice(func.dfg.inst_args(edge.branch));
            assert_takes(func, edge.branch, Claim::TripCount, edge.slot);
            settle(func, edge.branch, edge.slot);
        }
        if let Some((guarded, rest)) = rest {
            cx.marks.header_moved(self.header, rest.block(self.header));
            unused.extend_from_slice(func.dfg.inst_args(again.branch));
            self.enter(func, guarded.1, rest.block(self.header));
            self.leave(func, (again, last), guarded, rest.block(self.header));
        }
        unused
    }

    /// Lets a later iteration use what the one before has computed by its name, and not through parameters without any other argument: then it is
    /// seen what the exits alone use.
    fn name_values(&self, func: &mut Function, blocks: &[Block], copies: &[Copies]) {
        let mut replaced = Replaced::default();
        let mut edge = self.back_edge;
        for copy in copies {
            let header = copy.block(self.header);
            let passed = func.dfg.block_params(header).iter().zip(edge.args(func));
            let values: Vec<_> = passed.map(|(&param, arg)| Some((param, arg.as_value()?))).collect();
            values.iter().flatten().for_each(|&(param, value)| replaced.insert(param, value));
            let keeps: Vec<_> = values.iter().map(Option::is_none).collect();
            keep_params(func, (header, &[edge]), &keeps);
            edge = copied_edge(func, copy, self.back_edge);
        }
        replaced.shorten();
        for copy in copies {
            blocks.iter().for_each(|&block| replaced.apply_in(func, copy.block(block)));
        }
    }

    /// Lets each iteration leave for blocks of its own, so that what leaves the loop can be computed there.
    fn split_exits(&self, func: &mut Function, copies: &[Copies]) {
        let copied = copies.iter().flat_map(|copy| self.exits.iter().map(move |&edge| (copy, edge)));
        let copied: Vec<_> = copied.map(|(copy, edge)| copied_edge(func, copy, edge)).collect();
        for edge in self.exits.iter().copied().chain(copied) {
            let target = edge.target(func);
            funnel(func, &[edge], target);
        }
    }

    /// Remembers which accesses of the copies are proved disjoint, as those of the loop are.
    fn note_disjoint(&self, func: &Function, cx: &mut PassCx<'_>, blocks: &[Block], copies: &[Copies]) {
        let insts_of = |copy: &dyn Fn(Block) -> Block| -> Vec<Inst> {
            blocks.iter().flat_map(|&block| func.layout.block_insts(copy(block))).collect()
        };
        let copies: Vec<_> = copies.iter().map(|copy| insts_of(&|block| copy.block(block))).collect();
        let step = |inst| match self.fixed.contains(&inst) {
            true => Some(0),
            false => Some(self.steps.get(address_operand(func, inst)?)?.cast_signed()),
        };
        Rc::make_mut(&mut cx.disjoint).add_iterations(&insts_of(&|block| block), &copies, step);
    }

    /// Lets the unrolled loop be entered if there are enough iterations, and `rest` otherwise.
    fn enter(&self, func: &mut Function, guard: &Guard, rest: Block) {
        let required: Vec<_> = guard.requires.iter().filter(|one| one.known().is_none()).cloned().collect();
        if !required.is_empty() {
            let whole = emit_all(func, self.entry.branch, &required);
            let args: Vec<BlockArg> = self.entry.args(func).collect();
            func.replace(self.entry.branch).brif(whole, self.header, &args, rest, &args);
        }
    }

    /// Lets the unrolled loop run again if there are enough iterations, and `rest` otherwise. `again` is its last edge,
    /// in the copy `last`.
    fn leave(&self, func: &mut Function, (again, last): (Edge, &Copies), (test, guard): (&Test, &Guard), rest: Block) {
        let (latch, srcloc) = (again.source(func), func.srcloc(again.branch));
        let args: Vec<BlockArg> = again.args(func).collect();
        let now = self.now(func, (last, test.tested), &args, &guard.again);
        let remains = func.dfg.make_block();
        func.layout.insert_block_after(remains, latch);
        if func.layout.is_cold(latch) {
            func.layout.set_cold(remains);
        }
        func.layout.remove_inst(again.branch);
        func.layout.append_inst(again.branch, remains);
        set_edge(func, again, rest, &args);
        test_once_more(func, again.branch, (test, last.value(test.tested)), now);
        let before = func.layout.last_inst(self.entry.source(func)).expect("a preheader ends in a branch");
        let limit = guard.again.limit(test).offset(now.plus.cast_signed());
        let limit = limit.as_constant().ok_or_else(|| emit(func, before, &limit));
        let mut cursor = FuncCursor::new(func).at_bottom(latch).with_srcloc(srcloc);
        let whole = guard.again.holds(&mut cursor, test, now.value, limit);
        cursor.ins().brif(whole, self.header, &args, remains, &[]);
    }

    /// What to look at after the iteration `last`, and by how much it is ahead of what the loop tests: the next value of the
    /// counter, one of `next`, so that only one of both is needed. Not for an order, where a bound must not be moved.
    fn now(&self, func: &Function, (last, tested): (&Copies, Value), next: &[BlockArg], again: &Again) -> Base {
        let times = self.factor as u64 - 1;
        let base = match self.steps.get(tested) {
            Some(step) if func.dfg.block_params(self.header).contains(&tested) => {
                Base { value: tested, plus: step.wrapping_mul(times) }
            }
            _ => Base::of(func, last.value(tested)),
        };
        let next = next.iter().filter_map(|arg| arg.as_value()).filter(|_| !matches!(again, Again::Limit(_)));
        let mut ahead = next.map(|value| (value, Base::of(func, value))).filter(|(_, next)| next.value == base.value);
        let ahead = ahead.next().map(|(value, next)| Base { value, plus: next.plus.wrapping_sub(base.plus) });
        ahead.unwrap_or(Base { value: last.value(tested), plus: 0 })
    }
}

/// Lets `branch`, in a block of its own now, make its test there, of what `tested` is made of `now`.
fn test_once_more(func: &mut Function, branch: Inst, (test, tested): (&Test, Value), now: Base) {
    let value = if now.plus == 0 {
        now.value
    } else {
        let srcloc = func.srcloc(branch);
        let mut cursor = FuncCursor::new(func).at_inst(branch).with_srcloc(srcloc);
        let ty = test.bound.ty();
        let ahead = cursor.ins().iconst(ty, (now.plus & mask(ty.bits())).cast_signed());
        cursor.ins().isub(now.value, ahead)
    };
    let mut user = branch;
    let comparison = func.dfg.value_def(func.dfg.inst_args(branch)[0]).inst();
    if let Some(comparison) = comparison.filter(|&inst| is_comparison(func, inst)) {
        let again = repeat_before(func, comparison, branch);
        func.dfg.inst_args_mut(branch)[0] = again;
        user = func.dfg.value_def(again).unwrap_inst();
    }
    rename_uses(func, user, |used| if used == tested { value } else { used });
}
