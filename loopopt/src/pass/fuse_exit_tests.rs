//! The test that counts a strip and the test that ends the loop become one.
//!
//! ```text
//! preheader:                               preheader:
//!     jump header(v1, 100)                     v9 = isub v0, v1           how far it is to the end
//! header(v2, v3):  ◄──────────┐                v10 = umin v9, 99          how far the strip goes
//!     …                       │                v11 = iadd v1, v10
//!     v4 = iadd v2, 1         │                v12 = smin v0, v11
//!     v5 = isub v3, 1         │                jump header(v1)
//!     brif v5, next, around   │     ──►    header(v2):  ◄────────────┐
//! next:                       │                …                     │
//!     v6 = icmp slt v4, v0    │                v4 = iadd v2, 1       │
//!     brif v6, header, exit ──┘                v6 = icmp slt v4, v12 │
//!                                              brif v6, header, around
//! ```
//!
//! The loop has one test and one counter less, and it is counted: what wants to know how often it runs finds one exit.
//!
//! # Needs
//!
//! Canonical form, and rebuilds it. The loop is a strip of [`strip_mine`](crate::pass::strip_mine), and rotated.
//!
//! # Legal when
//!
//! A strip may end after any iteration, for the outer loop polls and continues. (L1) So the new test has to be right in one direction only: where it says
//! that the loop goes on, both others do. The counter is `c` after the first iteration, and the recurrence, tested against `n` that is
//! invariant, is `first` and moves by `s`. With `m = min((n - first) / s, c)`, both go on while less than `m` steps were made. If `first < n`, nothing between
//! `first` and `first + s * m <= n` wraps. If not, the smaller one of `n` and any number is no more than `first`, and the strip ends at once; where
//! `first <= n` is known before the loop, that smaller one is not computed. (L2) The two
//! tests end the iteration, the second one in a block that does nothing else.
//!
//! If the strip is counted first, it exits to the outer loop, where the loop's own test is made, as it was in each iteration. If
//! the loop's own test comes first, it is made where the strip ends, and decides.
//!
//! # Pays when
//!
//! Always.
//!
//! # Changes
//!
//! Blocks and edges.

use crate::analysis::cfg::edges::{Edge, edges_from, passed_alone};
use crate::analysis::cfg::jumps::only_jumps_to;
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::facts::known::{Conditions, Place};
use crate::analysis::inst::effects::Effects;
use crate::analysis::inst::number::{added_constant, mask};
use crate::analysis::scev::exit_test::{CountedTest, ExitTest};
use crate::analysis::scev::recurrence::Recurrences;
use crate::analysis::scev::view::View;
use crate::analysis::scev::wrap_arc::is_signed;
use crate::change::Change;
use crate::claim::{Claim, is_marked};
use crate::edit::at;
use crate::edit::cfg::split_edges::set_edge;
use crate::edit::copy::copy_iterations::settle;
use crate::edit::inst::clone::clone_blocks;
use crate::edit::materialize::assertion::assert_truth;
use crate::edit::materialize::dce::remove_unused;
use crate::edit::materialize::emit::{emit, emit_multiple, emit_quotient};
use crate::edit::ssa::params::remove_redundant_params;
use crate::fault::fault;
use crate::pass::{Form, Pass, PassCx, canon};
use crate::refusal::refusals;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, InstBuilder, InstructionData, Opcode, Value};
use cranelift_codegen::{CodegenResult, Context};
use std::cmp::Ordering;

/// The name of this pass.
pub(crate) const NAME: &str = "fuse_exit_tests";

/// The pass.
pub(crate) const PASS: Pass = Pass {
    name: NAME,
    run,
    reasons: &[Decline::REASONS],
    claims: &[Claim::BranchTaken, Claim::TripCount],
    keeps: Form::Canonical,
    ..Pass::OPTIONAL
};

/// Fuses the tests of all strips.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    if !cx.marks.has_left_alone() {
        return Ok(Change::Nothing);
    }
    let forest = cx.forest(ctx);
    let mut plans = Vec::new();
    for lp in forest.loops() {
        let Some(strips) = cx.marks.strips_around(&forest, lp) else { continue };
        let header = forest.data(lp).header;
        let Some(strip) = StripTest::find(ctx, &forest, (lp, strips)) else { continue };
        match Plan::prove(View { ctx, forest: &forest }, lp, strip) {
            Ok(plan) if cx.fuel.take() => plans.push(plan),
            Ok(_) => cx.declined(&ctx.func, NAME, header, &Decline::Withheld),
            Err(why) => cx.declined(&ctx.func, NAME, header, &why),
        }
    }
    if plans.is_empty() {
        return Ok(Change::Nothing);
    }
    for plan in &plans {
        cx.retract(NAME, plan.header);
        cx.fired(&ctx.func, &PASS, plan.header, "the test of the strip and the test of the loop are one");
        plan.apply(&mut ctx.func);
        cx.marks.add_strips(plan.strip.strips, false);
    }
    cx.keep_form(Form::Any);
    cx.invalidate_and_prune(ctx)?;
    remove_redundant_params(ctx);
    // A latch that only counted is empty then, so that the test before it becomes the latch.
    remove_unused(&mut ctx.func, plans.iter().flat_map(|plan| [plan.strip.less, plan.condition]).collect());
    canon::restore(ctx, cx)?;
    Ok(Change::Nothing)
}

/// The test that counts a strip: the loop goes on as long as `less` is not 0.
#[derive(Clone, Copy, Debug)]
struct StripTest {
    test: ExitTest,
    /// One less than the counter, in the latch or before it.
    less: Value,
    /// The counter's index among the parameters of the header.
    index: usize,
    /// What it starts with.
    start: Value,
    /// The header of the outer loop.
    strips: Block,
}

impl StripTest {
    /// The test of `lp` by which it is left for `strips`, the header of the outer loop.
    fn find(ctx: &Context, forest: &LoopForest, (lp, strips): (Loop, Block)) -> Option<Self> {
        let func = &ctx.func;
        let data = forest.data(lp);
        let (&[entry], &[back_edge]) = (&data.entries[..], &data.back_edges[..]) else { return None };
        data.exits.iter().find_map(|&exit| {
            if only_jumps_to(func, exit.target(func)) != Some(strips) {
                return None;
            }
            let test = ExitTest::of(func, exit)?;
            let less = test.comparison.left;
            let is_count = test.comparison.cond == IntCC::NotEqual && test.comparison.right.is_none();
            let is_less = |value| value == less || passed_alone(&ctx.func, &ctx.cfg, value) == Some(less);
            let index = back_edge.args(func).position(|arg| arg.as_value().is_some_and(is_less))?;
            let counter = func.dfg.block_params(data.header)[index];
            let counts = func.dfg.value_def(less).inst().is_some_and(|inst| is_one_less(func, inst, counter));
            let start = entry.args(func).nth(index)?.as_value()?;
            (is_count && counts).then_some(Self { test, less, index, start, strips })
        })
    }
}

/// Which test comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Strip,
    Loop,
}

struct Plan {
    header: Block,
    preheader: Block,
    strip: StripTest,
    own: CountedTest,
    /// The condition of the loop's own test.
    condition: Value,
    first: First,
    back_edge: Edge,
    /// How far the recurrence moves, as a number without sign.
    distance: u64,
    /// Whether the first number that is tested is known to be within the bound, or to be the bound.
    begins_within: bool,
}

impl Plan {
    fn prove(view: View<'_>, lp: Loop, strip: StripTest) -> Result<Self, Decline> {
        let func = view.func();
        let data = view.forest.data(lp);
        let preheader = view.forest.preheader(func, lp).ok_or(Decline::NotCounted)?;
        let recurrences = Recurrences::with_constant_steps(view, lp);
        let tests = || ExitTest::all(view, lp).filter(|test| test.exit != strip.test.exit);
        let has_no_params = |test: &ExitTest| func.dfg.num_block_params(test.exit.source(func)) == 0;
        let mut why = Decline::NotCounted;
        for test in tests() {
            let Some(own) = test.counted(view, lp, &recurrences).filter(|own| own.requires.is_none()) else { continue };
            let Some(distance) = own.distance().as_constant() else { continue };
            let fits = matches!(own.first.bits(), 32 | 64) && own.goes_towards_end() && distance != 0;
            if !fits {
                continue;
            }
            let first = match () {
                () if follows(func, &strip.test, &own.exit, data.header) => First::Strip,
                () if follows(func, &own.exit, &strip.test, data.header) && has_no_params(&strip.test) => First::Loop,
                () => {
                    why = Decline::Apart;
                    continue;
                }
            };
            let (header, back_edge) = (data.header, data.back_edges[0]);
            let condition = func.dfg.inst_args(own.exit.exit.branch)[0];
            let begins_within = begins_within(view, preheader, &own);
            return Ok(Self { header, preheader, strip, own, condition, first, back_edge, distance, begins_within });
        }
        Err(why)
    }

    fn apply(&self, func: &mut Function) {
        let limit = self.limit(func);
        let ExitTest { exit, stay, .. } = self.own.exit;
        let strip = self.strip.test;
        let cond = strict(self.own.cond);
        let goes_on = |func: &mut Function, cond| at(func, exit.branch).ins().icmp(cond, self.own.tested.left, limit);
        let condition = goes_on(func, if stay.slot == 0 { cond } else { cond.complement() });
        match self.first {
            First::Strip => {
                let around: Vec<_> = strip.exit.args(func).collect();
                let target = strip.exit.target(func);
                settle(func, strip.exit.branch, strip.stay.slot);
                set_edge(func, exit, target, &around);
                self.weaken_assertions(func);
                self.assert_both(func, condition);
            }
            First::Loop => {
                let end = self.end(func);
                set_edge(func, exit, end, &[]);
                settle(func, strip.exit.branch, strip.stay.slot);
                assert_truth(func, strip.exit.branch, Claim::TripCount, (self.strip.less, true));
                assert_truth(func, strip.exit.branch, Claim::BranchTaken, (self.condition, stay.slot == 0));
            }
        }
        func.dfg.inst_args_mut(exit.branch)[0] = condition;
        if !is_marked(func) {
            let latch_is_strip = self.back_edge.branch == strip.exit.branch;
            let slot = if latch_is_strip { 0 } else { self.back_edge.slot };
            let back_edge = Edge { slot, ..self.back_edge };
            let mut args: Vec<_> = back_edge.args(func).collect();
            args[self.strip.index] = BlockArg::Value(func.dfg.block_params(self.header)[self.strip.index]);
            set_edge(func, back_edge, self.header, &args);
        }
    }

    /// Computes in the preheader where the new test ends the strip.
    fn limit(&self, func: &mut Function) -> Value {
        let CountedTest { first, bound, cond, up, .. } = &self.own;
        let before = func.layout.last_inst(self.preheader).expect("a preheader jumps");
        let (first, bound) = (emit(func, before, first), emit(func, before, bound));
        let mut cursor = at(func, before);
        let room = if *up { cursor.ins().isub(bound, first) } else { cursor.ins().isub(first, bound) };
        let steps = emit_quotient(&mut cursor, room, self.distance);
        let count = with_added(&mut cursor, self.strip.start, if fault!(StripTooLong) { 1 } else { -1 });
        let steps = least(&mut cursor, steps, count);
        let moved = emit_multiple(&mut cursor, steps, self.distance);
        let limit = if *up { cursor.ins().iadd(first, moved) } else { cursor.ins().isub(first, moved) };
        match (*cond == IntCC::NotEqual || self.begins_within, is_signed(*cond), *up) {
            (true, ..) => limit,
            (_, true, true) => cursor.ins().smin(bound, limit),
            (_, true, false) => cursor.ins().smax(bound, limit),
            (_, false, true) => cursor.ins().umin(bound, limit),
            (_, false, false) => cursor.ins().umax(bound, limit),
        }
    }

    /// A block for the end of the strip, that makes the loop's own test and leaves, or continues in the outer loop.
    fn end(&self, func: &mut Function) -> Block {
        let strip = self.strip.test.exit;
        let last = strip.source(func);
        let around = clone_blocks(func, &[last]).block(last);
        let copy = func.layout.last_inst(around).expect("a copy of a terminator");
        settle(func, copy, strip.slot);
        let ExitTest { exit, stay, .. } = self.own.exit;
        let (left, args) = (exit.target(func), exit.args(func).collect::<Vec<_>>());
        let end = func.dfg.make_block();
        func.layout.insert_block(end, around);
        let srcloc = func.srcloc(exit.branch);
        let condition = self.tested_at_the_end(func, end);
        let mut cursor = FuncCursor::new(func).at_bottom(end).with_srcloc(srcloc);
        match stay.slot {
            0 => cursor.ins().brif(condition, around, &[], left, &args),
            _ => cursor.ins().brif(condition, left, &args, around, &[]),
        };
        end
    }

    /// The condition of the loop's own test, in a block after the strip. A comparison is made there: in the strip, nothing else uses it.
    fn tested_at_the_end(&self, func: &mut Function, end: Block) -> Value {
        let def = func.dfg.value_def(self.condition).inst();
        match def.map(|def| func.dfg.insts[def]) {
            Some(InstructionData::IntCompare { cond, args: [left, right], .. }) => {
                let srcloc = func.srcloc(self.own.exit.exit.branch);
                FuncCursor::new(func).at_bottom(end).with_srcloc(srcloc).ins().icmp(cond, left, right)
            }
            _ => self.condition,
        }
    }

    /// What the block of the loop's own test asserts was for iterations that the strip goes on after. It is executed at the end of the strip, too.
    fn weaken_assertions(&self, func: &mut Function) {
        let block = self.own.exit.exit.source(func);
        let asserting: Vec<_> =
            func.layout.block_insts(block).filter(|&inst| Effects::of(func, inst).asserts).collect();
        for inst in asserting {
            let condition = func.dfg.inst_args(inst)[0];
            let holds_if_not_zero = func.dfg.insts[inst].opcode() == Opcode::Trapz;
            let mut cursor = at(func, inst);
            let is_not_zero = cursor.ins().icmp_imm_u(IntCC::NotEqual, condition, 0);
            let cond = if holds_if_not_zero { IntCC::Equal } else { IntCC::NotEqual };
            let strip = cursor.ins().icmp_imm_u(cond, self.strip.less, 0);
            let weaker = if holds_if_not_zero {
                cursor.ins().bor(is_not_zero, strip)
            } else {
                cursor.ins().band(is_not_zero, strip)
            };
            func.dfg.inst_args_mut(inst)[0] = weaker;
        }
    }

    /// Asserts before the new test, which is on `condition`, that neither of the others ends the loop if it does not.
    fn assert_both(&self, func: &mut Function, condition: Value) {
        if !is_marked(func) {
            return;
        }
        let ExitTest { exit, stay, .. } = self.own.exit;
        let [on, off] = if stay.slot == 0 { [IntCC::NotEqual, IntCC::Equal] } else { [IntCC::Equal, IntCC::NotEqual] };
        let tests = [(self.strip.less, IntCC::NotEqual, Claim::TripCount), (self.condition, on, Claim::BranchTaken)];
        for (value, cond, claim) in tests {
            let mut cursor = at(func, exit.branch);
            let holds = cursor.ins().icmp_imm_u(cond, value, 0);
            let ends = cursor.ins().icmp_imm_u(off, condition, 0);
            let either = cursor.ins().bor(holds, ends);
            assert_truth(func, exit.branch, claim, (either, true));
        }
    }
}

/// Whether the first number that `own` tests is known before the loop to be no further than the bound. Not of one that goes down: that its strip ends
/// at the bound or above is what tells `widen_indices` how large it is.
fn begins_within(view: View<'_>, preheader: Block, own: &CountedTest) -> bool {
    let Context { func, cfg, domtree, .. } = view.ctx;
    if !own.up {
        return false;
    }
    let is_signed = is_signed(own.cond);
    let cond = if is_signed { IntCC::SignedLessThanOrEqual } else { IntCC::UnsignedLessThanOrEqual };
    Conditions::new(func, cfg, domtree).holds(Place::end(func, preheader), cond, [&own.first, &own.bound])
}

/// Whether `inst` subtracts one from `counter`.
fn is_one_less(func: &Function, inst: Inst, counter: Value) -> bool {
    added_constant(func, inst) == Some((counter, mask(func.dfg.value_type(counter).bits())))
}

/// `value` and `more`, in one sum if `value` is one.
fn with_added(cursor: &mut FuncCursor<'_>, value: Value, more: i64) -> Value {
    let func = &*cursor.func;
    let ty = func.dfg.value_type(value);
    let sum = func.dfg.value_def(value).inst().and_then(|inst| added_constant(func, inst));
    let (value, added) = sum.unwrap_or((value, 0));
    match added.wrapping_add_signed(more) & mask(ty.bits()) {
        0 => value,
        added => {
            let added = cursor.ins().iconst(ty, added.cast_signed());
            cursor.ins().iadd(value, added)
        }
    }
}

/// The lesser of two numbers without sign, in the type of the first one.
fn least(cursor: &mut FuncCursor<'_>, value: Value, count: Value) -> Value {
    let [ty, count_ty] = [value, count].map(|value| cursor.func.dfg.value_type(value));
    match ty.bits().cmp(&count_ty.bits()) {
        Ordering::Equal => cursor.ins().umin(value, count),
        Ordering::Greater => {
            let count = cursor.ins().uextend(ty, count);
            cursor.ins().umin(value, count)
        }
        Ordering::Less => {
            let wide = cursor.ins().uextend(count_ty, value);
            let least = cursor.ins().umin(wide, count);
            cursor.ins().ireduce(ty, least)
        }
    }
}

/// The condition without the equal case.
fn strict(cond: IntCC) -> IntCC {
    match cond {
        IntCC::SignedLessThanOrEqual => IntCC::SignedLessThan,
        IntCC::UnsignedLessThanOrEqual => IntCC::UnsignedLessThan,
        IntCC::SignedGreaterThanOrEqual => IntCC::SignedGreaterThan,
        IntCC::UnsignedGreaterThanOrEqual => IntCC::UnsignedGreaterThan,
        _ => cond,
    }
}

/// Whether the test `second` alone comes after `first`, and then `header`.
fn follows(func: &Function, first: &ExitTest, second: &ExitTest, header: Block) -> bool {
    let block = second.exit.source(func);
    let is_pure = |inst: Inst| {
        let effects = Effects::of(func, inst);
        let asserts = effects.asserts && !func.dfg.insts[inst].opcode().can_load();
        effects.is_pure() || asserts || inst == second.exit.branch
    };
    first.stay.target(func) == block
        && second.stay.target(func) == header
        && func.layout.block_insts(block).all(is_pure)
        && edges_from(func, first.exit.source(func)).filter(|edge| edge.target(func) == block).count() == 1
}

refusals! {
    /// Why the strip keeps a test of its own.
    enum Decline {
        /// No other test compares a recurrence.
        NotCounted => "not-counted", "no test of each iteration compares a recurrence with a loop-invariant number";
        /// (L2) Something is between the tests.
        Apart => "apart", "the test of the strip does not follow the one of the loop, nor does that one follow it";
    }
    shared { Withheld }
}
