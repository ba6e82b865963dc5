//! Unrolling by a factor: a loop that runs often does several iterations for each time that it looks whether there are more.
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
//!                                 more? ──────────►   header ◄──┐   the loop as it was, for the rest
//!                                   │                    │      │
//!                                   ▼                    ▼      │
//!                                  exit ◄──────────── more? ────┘
//! ```
//!
//! A batch has one test, one jump, and one step of each counter: the numbers of its later iterations are those of its first and a constant,
//! which addresses take as their offset ([`crate::edit::materialize::stride`]). Other ways out stay in each iteration.
//!
//! If the number of iterations is known and the factor divides it, there is no rest.
//!
//! # Needs
//!
//! Canonical form, and makes it if there is something to do and it was lost.
//!
//! # Legal when
//!
//! (L1) each iteration ends in a test that compares a number, which grows by the same constant each time, with one that does not change, and
//! that goes on as long as the number has not come to that bound; (L2) each instruction may be copied.
//!
//! With `t` for the number in the last test, step `b` and factor `f`, the next `f - 1` tests go on if `t + (f - 1) · b` has not come
//! to the bound `n` and no sum on the way there wraps. In front of the loop, the first number stands for `t + b`. For an order, that is
//! `t < n - (f - 1) · b`, where the right side is computed in front of the loop, and has been found there not to wrap. For `!=`, it is
//! `n - t > (f - 1) · b`, unsigned: a distance on the circle of all numbers that is larger than that is not 0 after any of these steps.
//! All of it holds with the signs changed for steps downwards. So the tests that go would have gone on, and the iterations and all that
//! can be observed of them stay the same, in the same order.
//!
//! # Pays when
//!
//! (P1) an iteration is small: the test, the jump and the counters are a large part of it; (P2) it calls nothing, divides nothing and
//! has no `br_table`, which take the time; (P3) there is no loop inside; (P4) the loop is not cold, and (P5) runs more than a few times, as
//! far as is known: of a loop that something else than its count can end, such as a search, nothing is. (P6) The function may not grow
//! without limit.
//!
//! # Changes
//!
//! Blocks and edges. Canonical form has to be made anew.
//!
//! # Not done
//!
//! Loops that nothing counts, such as a walk along a list. Tests elsewhere than at the end: `rotate` has put them there, or said why not.
//! Loops for the rest are not known to be short: a second run over the same function makes batches of them.
//!
//! # References
//!
//! LLVM `LoopUnrollRuntime` (the loop for the rest behind, and the test that is known not to wrap); V8 (`kMaxLoopSizeForPartialUnrolling`, 80
//! operations of WebAssembly, at most 4 iterations); llvm#51012 and OMR 472a9b3b7 for what goes wrong.

use crate::analysis::cfg::edges::Edge;
use crate::analysis::cfg::loops::Loop;
use crate::analysis::cfg::must_execute::Order;
use crate::analysis::memory::effects::is_constant;
use crate::analysis::scev::comparison::Comparison;
use crate::analysis::scev::exit_count::TripCount;
use crate::analysis::scev::exit_test::ExitTest;
use crate::analysis::scev::linear_expr::{Sum, Term, mask};
use crate::analysis::scev::recurrence::{Recurrence, Recurrences, Steps};
use crate::analysis::scev::requirement::Requirement;
use crate::analysis::scev::value_range::limits_of;
use crate::analysis::scev::view::View;
use crate::analysis::scev::wrap_arc::{interval, is_signed};
use crate::change::Change;
use crate::claim::Claim;
use crate::edit::cfg::split_edges::{retarget, set_edge};
use crate::edit::copy::clone::{Copies, clone_blocks, repeat_before};
use crate::edit::copy::copy_iterations::{clone_iterations, copied_edge, settle};
use crate::edit::materialize::assertion::assert_takes;
use crate::edit::materialize::dce::remove_unused;
use crate::edit::materialize::emit::{emit, emit_all};
use crate::edit::materialize::stride::{Base, stride};
use crate::edit::ssa::rename::rename_uses;
use crate::fault::fault;
use crate::options::Options;
use crate::pass::PassCx;
use crate::pass::copying::granted;
use crate::remark::Refusal;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, InstBuilder, InstructionData, Opcode, Value};
use cranelift_codegen::{CodegenResult, Context};
use std::fmt;

/// The name of this pass.
pub(crate) const NAME: &str = "partial_unroll";

/// What its rewrites rest on.
pub(crate) const CLAIMS: &[Claim] = &[Claim::TripCount, Claim::Recurrence, Claim::SamePlace];

/// The reasons for which it leaves a loop alone.
pub(crate) const REASONS: &[&str] = &[
    "not-counted",
    "not-innermost",
    "too-large",
    "few-iterations",
    "calls",
    "slow",
    "ends-early",
    "cold-loop",
    "not-duplicable",
    "function-too-large",
    "withheld",
];

/// Makes batches of the iterations of all loops for which that can be and should be done.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let (plans, change) = granted(ctx, cx, NAME, plan, |plan| (plan.header, plan.copied))?;
    if plans.is_empty() {
        return Ok(change);
    }
    let order = Order::of(&ctx.func, &ctx.domtree);
    let mut unused = Vec::new();
    for plan in &plans {
        cx.retract(NAME, plan.header);
        cx.fired(&ctx.func, NAME, plan.header, plan.describe());
        let blocks = order.sorted(&plan.blocks);
        unused.extend(plan.apply(ctx, cx, &blocks));
    }
    remove_unused(&mut ctx.func, unused);
    cx.invalidate(ctx, Change::Cfg);
    Ok(cx.settled(Change::Cfg))
}

/// The loops to do it to, all innermost.
fn plan(ctx: &Context, cx: &mut PassCx<'_>) -> Vec<Plan> {
    let mut plans = Vec::new();
    for lp in cx.forest(ctx).loops() {
        let header = cx.forest(ctx).data(lp).header;
        if cx.is_slow(header) {
            continue;
        }
        let count = cx.bound(ctx, lp);
        let options = cx.options;
        let view = View { ctx, forest: cx.forest(ctx) };
        match Plan::prove(view, lp, count, options) {
            Ok(plan) => plans.push(plan),
            Err(why) => cx.declined(&ctx.func, NAME, header, &why),
        }
    }
    plans
}

/// The test at the end of each iteration.
struct Test {
    /// The loop goes on if `tested cond bound`.
    cond: IntCC,
    tested: Value,
    bound: Sum,
    /// The bound once more: the value alone, if it stands in front of the loop.
    end: Sum,
    /// What `tested` is in the first iteration.
    first: Sum,
    up: bool,
    /// By how much it moves in each iteration.
    distance: u64,
}

/// A loop that can do several iterations at a time.
struct Plan {
    header: Block,
    entry: Edge,
    back_edge: Edge,
    blocks: Vec<Block>,
    test: Test,
    steps: Steps,
    factor: usize,
    /// What has to hold in front of the loop for the first batch, and that the limit does not wrap; nothing if there is no rest.
    batches: Option<Batches>,
    /// Instructions of an iteration, without constants.
    size: usize,
    /// Instructions that the copies add.
    copied: usize,
}

/// When there is a whole batch to do.
struct Batches {
    /// What has to hold in front of the loop, for the first one.
    requires: Vec<Requirement>,
    again: Again,
}

/// When there is one more batch after an iteration.
enum Again {
    /// If the number is not this one, which it is at the end of the last batch.
    Until(Sum),
    /// If the number compares with this one as it does with the bound for one more iteration.
    Limit(Sum),
    /// If more than this is left to the bound.
    Left(u64),
}

impl Test {
    /// The test that the back edge of the loop comes from.
    fn find(view: View<'_>, lp: Loop, recurrences: &Recurrences) -> Option<Self> {
        let func = view.func();
        let [back_edge] = view.forest.data(lp).back_edges[..] else { return None };
        let exit = view.forest.data(lp).exits.iter().find(|exit| exit.branch == back_edge.branch)?;
        let test = ExitTest::of(func, *exit)?;
        let (Comparison { cond, left: tested, right }, [_, bound]) = test.with_invariant_bound(view, lp)?;
        let stands = |&right: &Value| bound.as_constant().is_none() && view.is_defined_outside(lp, right);
        let end = right.filter(stands).map_or(bound.clone(), |right| Sum::of_leaf(func, right));
        let Recurrence { start: first, step } = recurrences.of_value(view, tested)?;
        let bits = bound.bits();
        let step = u64::try_from(step.as_constant()?).ok()?;
        let up = step >> (bits - 1) == 0;
        let leads_there = match interval(cond) {
            (None, Some(_)) => up,
            (Some(_), None) => !up,
            _ => cond == IntCC::NotEqual,
        };
        let distance = if up { step } else { step.wrapping_neg() & mask(bits) };
        leads_there.then_some(Self { cond, tested, bound, end, first, up, distance })
    }

    /// When there is a batch of so many iterations to do, if that can be.
    fn batches(&self, factor: u64) -> Option<Batches> {
        let bits = self.bound.bits();
        let is_signed = is_signed(self.cond);
        let largest = if is_signed { mask(bits - 1) } else { mask(bits) };
        let less = factor - 1 - u64::from(fault!(BatchTooLarge));
        let way = self.distance.checked_mul(less).filter(|&way| way <= largest)?;
        let first_way = self.distance.checked_mul(less.saturating_sub(1))?;
        if self.cond == IntCC::NotEqual {
            let left = if self.up { self.bound.minus(&self.first)? } else { self.first.minus(&self.bound)? };
            let requires = vec![Requirement::new(IntCC::UnsignedGreaterThan, left, Sum::constant(first_way, bits))];
            return Some(Batches { requires, again: Again::Left(way) });
        }
        // From `nearest` on a whole way can be gone back without leaving the type.
        let least = if is_signed { mask(bits) ^ largest } else { 0 };
        let (nearest, back) =
            if self.up { (least.wrapping_add(way), way.wrapping_neg()) } else { (largest - way, way) };
        let stays =
            Requirement::new(self.cond.without_equal().complement(), self.bound.clone(), Sum::constant(nearest, bits));
        // How far it is from the first number back to where numbers begin, and on to where they end.
        let above = self.first.as_constant().map(|first| first.wrapping_sub(least) & mask(bits));
        let (behind, room) = match above {
            Some(above) if self.up => (above, mask(bits) - above),
            Some(above) => (mask(bits) - above, above),
            None => (0, 0),
        };
        let far = if self.up { first_way } else { first_way.wrapping_neg() }.cast_signed();
        let (first, bound) = match room >= first_way {
            true => (self.first.clone().offset(far), self.bound.clone()),
            false => (self.first.clone(), self.bound.clone().offset(far.wrapping_neg())),
        };
        let mut requires = vec![Requirement::new(self.cond, first, bound)];
        // One step back and the way of the first batch are a whole way: a bound behind it is far enough from the beginning.
        let is_implied = room >= first_way && behind >= self.distance;
        if !is_implied && !fault!(BatchWraps) {
            requires.push(stays);
        }
        Some(Batches { requires, again: Again::Limit(self.end.clone().offset(back.cast_signed())) })
    }

    /// The same if it is known how many batches there are, at least one.
    fn known_batches(&self, batches: u64, factor: u64) -> Option<Batches> {
        let iterations = batches.checked_mul(factor).filter(|&iterations| iterations > 0)?;
        let way = self.distance.wrapping_mul(iterations - 1);
        let way = if self.up { way } else { way.wrapping_neg() };
        Some(Batches { requires: Vec::new(), again: Again::Until(self.first.clone().offset(way.cast_signed())) })
    }

    /// The most iterations, if it is known how far it is from the first number to the bound, or how far at most.
    fn most(&self, func: &Function) -> Option<u64> {
        let (from, to) = if self.up { (&self.first, &self.bound) } else { (&self.bound, &self.first) };
        let left = to.minus(from)?.offset(self.distance.cast_signed());
        let most = match left.terms() {
            [] => left.constant_part(),
            [(Term::Value(value), 1)] if left.constant_part() == 0 => limits_of(func, *value, left.bits())?.1,
            _ => return None,
        };
        Some(most / self.distance)
    }
}

impl Plan {
    fn prove(view: View<'_>, lp: Loop, count: TripCount, options: &Options) -> Result<Self, Decline> {
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
            return Err(Decline::NotDuplicable(func.dfg.insts[inst].opcode().to_string()));
        }
        let counts = |inst: &_| !is_constant(func, *inst) && func.dfg.insts[*inst].opcode() != Opcode::Jump;
        let (all, size) = (insts().count(), insts().filter(counts).count());
        let factor = factor(size, options)?;
        if !options.ignore_cost {
            judge(view, lp)?;
        }
        let recurrences = Recurrences::of(view, lp);
        let test = Test::find(view, lp, &recurrences).ok_or(Decline::NotCounted)?;
        let most = [count.most_iterations(), test.most(func).map(u128::from)].into_iter().flatten().min();
        if !options.ignore_cost && most.is_some_and(|most| most < options.partial_unroll_min_iterations as u128) {
            return Err(Decline::FewIterations { most, factor });
        }
        let batches = batches(&test, count, factor)?;
        Ok(Self {
            header: data.header,
            entry,
            back_edge,
            blocks: blocks.to_vec(),
            test,
            steps: recurrences.steps(view),
            factor,
            copied: all.saturating_mul(if batches.is_none() { factor - 1 } else { factor }),
            batches,
            size,
        })
    }

    fn describe(&self) -> String {
        let rest = if self.batches.is_some() { "" } else { ", and nothing remains" };
        format!("{} iterations at a time, of {} instructions each{rest}", self.factor, self.size)
    }

    /// Makes the batches. `blocks` are those of the loop in dominance order. Gives what may not be needed any longer.
    fn apply(&self, ctx: &mut Context, cx: &mut PassCx<'_>, blocks: &[Block]) -> Vec<Value> {
        let func = &mut ctx.func;
        let rest = self.batches.as_ref().map(|batches| (batches, clone_blocks(func, blocks)));
        let copies = clone_iterations(func, blocks, self.back_edge, self.factor - 1);
        let latch = self.back_edge.source(func);
        let always = |block| ctx.domtree.block_dominates(block, latch);
        let mut unused = stride(func, (blocks, self.back_edge), &copies, &self.steps, always);
        let (last, others) = copies.split_last().expect("a factor of two or more");
        retarget(func, self.back_edge, copies[0].block(self.header));
        let again = copied_edge(func, last, self.back_edge);
        retarget(func, again, self.header);
        let between = others.iter().map(|copy| copied_edge(func, copy, self.back_edge));
        let between: Vec<_> = between.chain([self.back_edge]).collect();
        for edge in between {
            unused.extend_from_slice(func.dfg.inst_args(edge.branch));
            assert_takes(func, edge.branch, Claim::TripCount, edge.slot);
            settle(func, edge.branch, edge.slot);
        }
        if let Some((batches, rest)) = rest {
            cx.header_moved(self.header, rest.block(self.header));
            unused.extend_from_slice(func.dfg.inst_args(again.branch));
            self.enter(func, batches, rest.block(self.header));
            self.leave(func, (again, last), batches, rest.block(self.header));
        }
        unused
    }

    /// Lets the loop be entered for whole batches only, and `rest` if there is none.
    fn enter(&self, func: &mut Function, batches: &Batches, rest: Block) {
        let required: Vec<_> = batches.requires.iter().filter(|one| one.known().is_none()).cloned().collect();
        if !required.is_empty() {
            let whole = emit_all(func, self.entry.branch, &required);
            let args: Vec<BlockArg> = self.entry.args(func).collect();
            func.replace(self.entry.branch).brif(whole, self.header, &args, rest, &args);
        }
    }

    /// Lets the loop go around for whole batches only, and `rest` run for what remains. `again` is the last edge of a batch,
    /// in the copy `last`.
    fn leave(&self, func: &mut Function, (again, last): (Edge, &Copies), batches: &Batches, rest: Block) {
        let (latch, srcloc) = (again.source(func), func.srcloc(again.branch));
        let args: Vec<BlockArg> = again.args(func).collect();
        let now = self.now(func, last, &args, &batches.again);
        let remains = func.dfg.make_block();
        func.layout.insert_block_after(remains, latch);
        if func.layout.is_cold(latch) {
            func.layout.set_cold(remains);
        }
        func.layout.remove_inst(again.branch);
        func.layout.append_inst(again.branch, remains);
        set_edge(func, again, rest, &args);
        self.test_once_more(func, again.branch, (last.value(self.test.tested), now));
        let before = func.layout.last_inst(self.entry.source(func)).expect("a preheader ends in a branch");
        let limit = batches.again.limit(&self.test).offset(now.plus.cast_signed());
        let limit = limit.as_constant().ok_or_else(|| emit(func, before, &limit));
        let mut cursor = FuncCursor::new(func).at_bottom(latch).with_srcloc(srcloc);
        let whole = batches.again.holds(&mut cursor, &self.test, now.value, limit);
        cursor.ins().brif(whole, self.header, &args, remains, &[]);
    }

    /// What to look at behind the iteration `last` of a batch, and by how much it is ahead of what the loop tests: the next value of the
    /// counter, one of `next`, so that only one of both is needed. Not for an order, where a bound must not be moved.
    fn now(&self, func: &Function, last: &Copies, next: &[BlockArg], again: &Again) -> Base {
        let tested = self.test.tested;
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

    /// Lets `branch`, in a block of its own now, make its test there, of what `tested` is made of `now`.
    fn test_once_more(&self, func: &mut Function, branch: Inst, (tested, now): (Value, Base)) {
        let value = if now.plus == 0 {
            now.value
        } else {
            let srcloc = func.srcloc(branch);
            let mut cursor = FuncCursor::new(func).at_inst(branch).with_srcloc(srcloc);
            let ty = self.test.bound.ty();
            let ahead = cursor.ins().iconst(ty, (now.plus & mask(ty.bits())).cast_signed());
            cursor.ins().isub(now.value, ahead)
        };
        let mut user = branch;
        let test = func.dfg.value_def(func.dfg.inst_args(branch)[0]).inst();
        if let Some(test) = test.filter(|&test| is_comparison(func, test)) {
            let again = repeat_before(func, test, branch);
            func.dfg.inst_args_mut(branch)[0] = again;
            user = func.dfg.value_def(again).unwrap_inst();
        }
        rename_uses(func, user, |used| if used == tested { value } else { used });
    }
}

impl Again {
    /// What the number is compared with, or what is taken from it for that.
    fn limit(&self, test: &Test) -> Sum {
        match self {
            Self::Until(limit) | Self::Limit(limit) => limit.clone(),
            // With one more taken away, what is left upwards is less than nothing, and smaller the more it is.
            Self::Left(_) => test.end.clone().offset(test.up.into()),
        }
    }

    /// Whether it does, when `test` has come to the number `now`.
    fn holds(&self, cursor: &mut FuncCursor<'_>, test: &Test, now: Value, limit: Result<u64, Value>) -> Value {
        let ty = test.bound.ty();
        let number = |cursor: &mut FuncCursor<'_>, number: u64| {
            cursor.ins().iconst(ty, (number & mask(ty.bits())).cast_signed())
        };
        let Self::Left(way) = *self else {
            let cond = if let Self::Until(_) = self { IntCC::NotEqual } else { test.cond };
            let limit = limit.map_or_else(|value| value, |limit| number(cursor, limit));
            return cursor.ins().icmp(cond, now, limit);
        };
        let left = match limit {
            Ok(0) => now,
            // Taken away and not added, so that lowering does not compute it from the old value of the counter.
            Ok(constant) => {
                let constant = number(cursor, constant);
                cursor.ins().isub(now, constant)
            }
            Err(limit) => cursor.ins().isub(now, limit),
        };
        let (cond, way) = match test.up {
            true => (IntCC::UnsignedLessThan, number(cursor, !way)),
            false => (IntCC::UnsignedGreaterThan, number(cursor, way)),
        };
        cursor.ins().icmp(cond, left, way)
    }
}

fn is_comparison(func: &Function, inst: Inst) -> bool {
    matches!(func.dfg.insts[inst], InstructionData::IntCompare { .. })
}

/// When there is a whole batch of so many iterations to do; nothing if that is always so.
fn batches(test: &Test, count: TripCount, factor: usize) -> Result<Option<Batches>, Decline> {
    let batches = match count {
        TripCount::Exactly(around) => {
            let iterations = around.checked_add(1).ok_or(Decline::NotCounted)?;
            if iterations.is_multiple_of(factor as u128) {
                return Ok(None);
            }
            let whole = u64::try_from(iterations / factor as u128).map_err(|_| Decline::NotCounted)?;
            let few = Decline::FewIterations { most: Some(iterations), factor };
            test.known_batches(whole, factor as u64).ok_or(few)?
        }
        _ => test.batches(factor as u64).ok_or(Decline::NotCounted)?,
    };
    match batches.requires.iter().any(|required| required.known() == Some(false)) {
        true => Err(Decline::FewIterations { most: None, factor }),
        false => Ok(Some(batches)),
    }
}

/// How many iterations of so many instructions make a batch.
fn factor(size: usize, options: &Options) -> Result<usize, Decline> {
    if options.ignore_cost {
        let (factor, max) = (2 + size % 3, options.partial_unroll_max_copied);
        return if size * factor <= max { Ok(factor) } else { Err(Decline::TooLarge { insts: size * factor, max }) };
    }
    let max = options.partial_unroll_max_insts;
    let most = options.partial_unroll_max_iterations;
    let mut factors = [most, 2].into_iter().filter(|factor| (2..=most).contains(factor));
    let found = factors.find(|factor| size <= max / factor);
    found.ok_or(Decline::TooLarge { insts: size * 2, max })
}

/// Whether an instruction takes more time than what a batch saves.
fn is_slow(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Udiv | Opcode::Sdiv | Opcode::Urem | Opcode::Srem | Opcode::BrTable)
}

/// Whether it pays, whatever counts the loop.
fn judge(view: View<'_>, lp: Loop) -> Result<(), Decline> {
    let func = view.func();
    if func.is_effectively_cold(view.forest.data(lp).header) {
        return Err(Decline::ColdLoop);
    }
    let opcodes = || {
        let insts = view.forest.blocks(lp).iter().flat_map(|&block| func.layout.block_insts(block));
        insts.map(|inst| func.dfg.insts[inst].opcode())
    };
    if opcodes().any(Opcode::is_call) {
        return Err(Decline::Calls);
    }
    if let Some(opcode) = opcodes().find(|&opcode| is_slow(opcode)) {
        return Err(Decline::Slow(opcode));
    }
    if view.forest.may_end_early(func, lp) {
        return Err(Decline::EndsEarly);
    }
    Ok(())
}

/// Why no batches are made of the iterations of a loop.
enum Decline {
    /// (L1) No test at its end counts it.
    NotCounted,
    /// (P3) There is a loop inside.
    NotInnermost,
    /// (P1) A batch would be too large.
    TooLarge { insts: usize, max: usize },
    /// (P5) There are hardly enough iterations for two batches.
    FewIterations { most: Option<u128>, factor: usize },
    /// (P2) It calls a function.
    Calls,
    /// (P2) It does something that takes the time.
    Slow(Opcode),
    /// (P5) It is left at more than one place.
    EndsEarly,
    /// (P4) The loop is cold.
    ColdLoop,
    /// (L2) An instruction stands for one place in the program.
    NotDuplicable(String),
}

impl Refusal for Decline {
    fn slug(&self) -> &'static str {
        match self {
            Self::NotCounted => "not-counted",
            Self::NotInnermost => "not-innermost",
            Self::TooLarge { .. } => "too-large",
            Self::FewIterations { .. } => "few-iterations",
            Self::Calls => "calls",
            Self::Slow(_) => "slow",
            Self::EndsEarly => "ends-early",
            Self::ColdLoop => "cold-loop",
            Self::NotDuplicable(_) => "not-duplicable",
        }
    }

    fn help(&self) -> &'static str {
        match self {
            Self::NotCounted => {
                "end the loop by comparing a number that grows by a constant with one that does not change"
            }
            Self::TooLarge { .. } => "raise Options::partial_unroll_max_insts if the loop is hot",
            Self::Calls => "let the front end inline what is called, if it is short",
            Self::ColdLoop => "do not mark the loop cold if it runs often",
            Self::NotInnermost
            | Self::FewIterations { .. }
            | Self::NotDuplicable(_)
            | Self::Slow(_)
            | Self::EndsEarly => "",
        }
    }

    fn fixed(&self) -> Option<&'static str> {
        match self {
            Self::NotCounted => Some("no test at the end of each iteration counts the loop"),
            Self::NotInnermost => Some("there is a loop inside"),
            Self::Calls => Some("it calls a function, which takes the time"),
            Self::EndsEarly => {
                Some("something else than its count can end it, so that nothing is known of how often it runs")
            }
            Self::ColdLoop => Some("the loop is cold"),
            _ => None,
        }
    }
}

impl fmt::Display for Decline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { insts, max } => write!(f, "a batch would hold {insts} instructions; there may be {max}"),
            Self::FewIterations { most: Some(most), factor } => {
                write!(f, "there are {most} iterations at most, and a batch would have {factor}")
            }
            Self::FewIterations { most: None, factor } => write!(f, "there are never {factor} iterations"),
            Self::Slow(opcode) => write!(f, "each iteration waits for {opcode}, which takes the time"),
            Self::NotDuplicable(opcode) => write!(f, "the loop holds {opcode}, which must not be copied"),
            _ => f.write_str(self.fixed().unwrap_or_default()),
        }
    }
}
