//! Splitting: a loop that tests its counter in the middle becomes two loops, one after the other: for the iterations before that test changes, and for the rest.
//!
//! ```text
//! preheader                      preheader: i < m?  ────────────┐
//!     │                              │                          │
//!     ▼                              ▼                          │
//!   header ◄──┐                    header ◄──┐                  │
//!     │ i < m?│                      │       │                  │
//!    / \      │      ──►             a       │                  ▼
//!   a   b     │                      │       │                header' ◄──┐
//!    \ /      │                    latch ────┘                  │ i < m? │
//!   latch ────┘ i < n?               │ i < min(n, m)?          / \       │
//!     │                              ▼                        a'  b'     │
//!     ▼                            i < m? ──► i < n? ──►       \ /       │
//!    exit                            │          │             latch' ────┘ i < n?
//!                                    ▼          ▼               │
//!                                   exit ◄──────┴───────────────┘
//! ```
//!
//! The first loop does not test: before each of its iterations, the test that ends the loop has said enough. It has one test, and is counted by it. The second
//! one is the loop as it was, for the remaining iterations; mostly `elide_checks` finds that its branch takes the other edge each time. So
//! loops of which the last iterations differ (`i < n - 1`, a separator after each element but the last) lose the test that asks for them. A branch that leaves
//! the loop is one like that: a loop with two limits has one.
//!
//! # Needs
//!
//! Canonical form, and makes it if there is something to do and it was lost.
//!
//! # Legal when
//!
//! The loop goes on, at the end of an iteration, as long as `t < n` ([`plan`]). In the next iteration, a branch in the middle compares `t + c` with `m`, where `c` is a
//! constant, not negative, and `n` and `m` are invariant. With `l = max(m, c) - c`, which does not wrap, (L1) `t < l` says that `t + c` does not wrap and is less than `m`:
//! then it is known which edge the branch takes, whether it asks for less, not less, equal or not equal. For `at most`, `m` is one more, unless it is the
//! largest number, for which the loop is left for the second one earlier. (L2) The first loop goes on if `t < min(n, l)`, so that the loop as it was would have
//! gone on too. (L3) Where it does not go on although `t < l`, `t < n` does not hold, and the loop ends. Everywhere else the second loop
//! is entered if `t < n`; it is the loop as it was, with both its tests. The first loop is entered if the branch of the first iteration, which nothing
//! was tested for, takes the edge that is known. What would have been tested before is not asked: it may wrap. (L4) Each instruction may be copied.
//!
//! # Pays when
//!
//! (P1) there is no inner loop; (P2) neither edge of the branch leads to a trap or is cold: checks are `version`'s; (P3) a branch that asks
//! for equality is true in one of the last iterations: otherwise the second loop, which still tests, would do half of the iterations; (P4) the loop is small, times the versions that there are of it
//! already; (P5) it runs more than a few times, as far as is known, before the branch changes: the first few iterations are `peel`'s; (P6) the loop is not
//! cold. (P7) The function may not grow without limit.
//!
//! # Changes
//!
//! Blocks and edges. Canonical form has to be rebuilt.
//!
//! # Not done
//!
//! Counters that go down; loops that end when two numbers are equal; a `select`. The iterations in the middle, if the branch asks for one of them. Where the first
//! loop ends too early, the second one does the rest.
//!
//! # References
//!
//! LLVM `InductiveRangeCheckElimination.cpp` and `LoopBoundSplit.cpp`; HotSpot `loopTransform.cpp` (pre, main and post loops).

mod plan;

use crate::analysis::cfg::must_execute::Order;
use crate::change::Change;
use crate::claim::{Claim, is_marked};
use crate::edit::at;
use crate::edit::copy::copy_iterations::settle;
use crate::edit::inst::clone::clone_blocks;
use crate::edit::materialize::assertion::{assert_takes, assert_truth};
use crate::edit::materialize::dce::remove_unused;
use crate::edit::materialize::emit::emit;
use crate::fault::fault;
use crate::pass::copying::{Denied, granted};
use crate::pass::{Form, Pass, PassCx};
use crate::refusal::refusals;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::CondCode as _;
use cranelift_codegen::ir::{Block, BlockArg, Function, InstBuilder, Opcode, Value};
use cranelift_codegen::{CodegenResult, Context};
use plan::{Plan, Split};

/// The name of this pass.
pub(crate) const NAME: &str = "split_iterations";

/// The pass.
pub(crate) const PASS: Pass = Pass {
    name: NAME,
    run,
    reasons: &[Decline::REASONS, Denied::REASONS],
    claims: &[Claim::BranchTaken, Claim::TripCount],
    copies: true,
    ..Pass::OPTIONAL
};

/// Splits all loops that can be and should be.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let plans = granted(ctx, cx, NAME, plan::all, |plan| (plan.header, plan.copied))?;
    if plans.is_empty() {
        return Ok(Change::Nothing);
    }
    let order = Order::of(&ctx.func, &ctx.domtree);
    let mut unused = Vec::new();
    for plan in &plans {
        cx.look_again(ctx, plan.header);
        cx.retract(NAME, plan.header);
        cx.fired(&ctx.func, &PASS, plan.header, plan.describe(&ctx.func));
        let rest = plan.apply(&mut ctx.func, &order, &mut unused);
        cx.marks.add_version(plan.header);
        cx.marks.header_moved(plan.header, rest);
        cx.marks.add_rest(rest);
        if plan.rest_is_short {
            cx.marks.add_slow(rest);
        }
    }
    cx.invalidate_and_prune(ctx)?;
    remove_unused(&mut ctx.func, unused);
    cx.keep_form(Form::Any);
    Ok(Change::Nothing)
}

/// Where the first loop ends.
#[derive(Clone, Copy)]
struct Limits {
    /// Below it, the edge that the branch takes is known.
    split: Value,
    /// Below it, the loop goes on as well.
    both: Value,
}

impl Plan {
    /// Makes the loop the first one. Gives the header of the second one, and adds to `unused` what may not be needed.
    fn apply(&self, func: &mut Function, order: &Order, unused: &mut Vec<Value>) -> Block {
        let copies = clone_blocks(func, &order.sorted(&self.blocks));
        let rest = copies.block(self.header);
        let limits = self.limits(func);
        self.enter(func, rest);
        unused.push(self.leave(func, limits, rest));
        let Split { branch, arm, .. } = self.split;
        assert_takes(func, branch, Claim::BranchTaken, arm);
        unused.extend_from_slice(func.dfg.inst_args(branch));
        settle(func, branch, arm);
        rest
    }

    /// The lesser of two numbers, or the greater one, as the test of the loop reads them.
    fn pick(&self, cursor: &mut FuncCursor<'_>, least: bool, [a, b]: [Value; 2]) -> Value {
        match (least, self.is_signed()) {
            (true, false) => cursor.ins().umin(a, b),
            (true, true) => cursor.ins().smin(a, b),
            (false, false) => cursor.ins().umax(a, b),
            (false, true) => cursor.ins().smax(a, b),
        }
    }

    /// Computes in the preheader where the first loop ends.
    fn limits(&self, func: &mut Function) -> Limits {
        let before = self.entry.branch;
        let (end, mut split) = (emit(func, before, &self.own.bound), emit(func, before, &self.split.bound));
        let ty = func.dfg.value_type(end);
        let (least, largest) = self.type_limits();
        let mut cursor = at(func, before);
        if self.split.is_inclusive {
            let most = cursor.ins().iconst(ty, largest.wrapping_sub(1).cast_signed());
            let one = cursor.ins().iconst(ty, 1);
            let below = self.pick(&mut cursor, true, [split, most]);
            split = cursor.ins().iadd(below, one);
        }
        if self.split.ahead > 0 {
            let floor = cursor.ins().iconst(ty, least.wrapping_add(self.split.ahead).cast_signed());
            let ahead = cursor.ins().iconst(ty, self.split.ahead.cast_signed());
            let above = self.pick(&mut cursor, false, [split, floor]);
            split = cursor.ins().isub(above, ahead);
        }
        if fault!(SplitTooLate) {
            let one = cursor.ins().iconst(ty, 1);
            split = cursor.ins().iadd(split, one);
        }
        let both = self.pick(&mut cursor, true, [end, split]);
        Limits { split, both: if fault!(SplitRunsOn) { split } else { both } }
    }

    /// Lets the first loop be entered if the edge that the branch takes is known in the first iteration.
    fn enter(&self, func: &mut Function, rest: Block) {
        let jump = self.entry.branch;
        let args: Vec<BlockArg> = self.entry.args(func).collect();
        let [start, bound] = [&self.split.start, &self.split.bound].map(|sum| emit(func, jump, sum));
        let less = self.own.cond;
        // Or equal: the other one is not less.
        let cond = if self.split.is_inclusive { less.complement().swap_args() } else { less };
        let is_known = at(func, jump).ins().icmp(cond, start, bound);
        func.replace(jump).brif(is_known, self.header, &args, rest, &args);
    }

    /// Lets the first loop go on below both limits. Otherwise the loop ends, or the second one goes on. Gives the condition of the loop as it was.
    ///
    /// Its test is recomputed where the second loop is entered, and not passed there, so that what it says is known.
    fn leave(&self, func: &mut Function, limits: Limits, rest: Block) -> Value {
        let (own, branch) = (&self.own, self.back_edge.branch);
        let latch = self.back_edge.source(func);
        let (next, left): (Vec<BlockArg>, Vec<BlockArg>) =
            (self.back_edge.args(func).collect(), own.exit.exit.args(func).collect());
        let (out, srcloc) = (own.exit.exit.target(func), func.srcloc(branch));
        let [known, asks] = [(); 2].map(|()| func.dfg.make_block());
        func.layout.insert_block_after(known, latch);
        func.layout.insert_block_after(asks, known);
        let condition = func.dfg.inst_args(branch)[0];
        func.layout.remove_inst(branch);
        let tested = own.tested.left;
        let mut cursor = FuncCursor::new(func).at_bottom(latch).with_srcloc(srcloc);
        let goes_on = cursor.ins().icmp(own.cond, tested, limits.both);
        cursor.ins().brif(goes_on, self.header, &next, known, &[]);
        let mut cursor = FuncCursor::new(func).at_bottom(known).with_srcloc(srcloc);
        let ends = cursor.ins().icmp(own.cond, tested, limits.split);
        let decides = cursor.ins().brif(ends, out, &left, asks, &[]);
        let mut cursor = FuncCursor::new(func).at_bottom(asks).with_srcloc(srcloc);
        let again = self.repeat_test(&mut cursor);
        cursor.ins().brif(again, rest, &next, out, &left);
        if is_marked(func) {
            let mut cursor = at(func, decides);
            let again = self.repeat_test(&mut cursor);
            let both = cursor.ins().band(again, ends);
            assert_truth(func, decides, Claim::TripCount, (both, false));
        }
        condition
    }

    /// The test of the loop once more.
    fn repeat_test(&self, cursor: &mut FuncCursor<'_>) -> Value {
        let tested = self.own.tested;
        let right = tested.right.unwrap_or_else(|| {
            let ty = cursor.func.dfg.value_type(tested.left);
            cursor.ins().iconst(ty, 0)
        });
        cursor.ins().icmp(tested.cond, tested.left, right)
    }
}

refusals! {
    /// Why a loop is not split.
    enum Decline {
        /// Nothing counts it upwards.
        NotCounted => "not-counted", "no test at the end of each iteration asks whether a number that grows is less than one that does not change";
        /// (P2), (P3) No branch is decided by a counter.
        NothingToSplit => "nothing-to-split", "no branch in it takes one edge up to some iteration, and then the other one";
        /// (P4) Too much would be copied.
        TooLarge { insts: usize, versions: usize, max: usize }
            => "too-large", "it has {insts} instructions and {versions} versions; the product may be {max}",
            help "raise Options::split_iterations_max_insts if the loop is hot";
        /// (P5) The branch changes after a few iterations, or the loop ends.
        FewIterations { most: u128, min: usize }
            => "few-iterations", "there are {most} iterations before or after it at most; there should be {min}";
    }
    shared { NotInnermost, ColdLoop, NotDuplicable(opcode: Opcode) }
}
