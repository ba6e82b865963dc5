//! Which branch a loop is split at, and what that takes.

use super::{Decline, NAME};
use crate::analysis::cfg::edges::{Edge, code_size, copied_size, edges_and_targets};
use crate::analysis::cfg::jumps::leads_to_failure;
use crate::analysis::cfg::loops::Loop;
use crate::analysis::inst::number::mask;
use crate::analysis::scev::comparison::Comparison;
use crate::analysis::scev::exit_count::TripCount;
use crate::analysis::scev::exit_test::{CountedTest, ExitTest};
use crate::analysis::scev::linear_expr::Sum;
use crate::analysis::scev::recurrence::Recurrences;
use crate::analysis::scev::view::View;
use crate::analysis::scev::wrap_arc::is_signed;
use crate::fault::fault;
use crate::options::Options;
use crate::pass::PassCx;
use cranelift_codegen::Context;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData};

/// How far ahead of the test of the loop a branch may ask. 4,096: nothing that is written by hand asks for more.
const MAX_AHEAD: u64 = 4_096;

/// How many of the last iterations a branch may ask for by equality.
const MAX_LAST: u64 = 8;

/// The plans for all loops.
pub(super) fn all(ctx: &Context, cx: &mut PassCx<'_>) -> Vec<Plan> {
    let mut plans = Vec::new();
    for lp in cx.forest(ctx).loops() {
        let forest = cx.forest(ctx);
        let header = forest.data(lp).header;
        // A strip has one test, which `fuse_exit_tests` has to find again.
        let is_strip = cx.marks.strips_around(&forest, lp).is_some();
        if !cx.marks.has_full_effort(header) || cx.marks.is_rest(header) || is_strip {
            continue;
        }
        let (count, versions, options) = (cx.bound(ctx, lp), cx.marks.versions(header), cx.options);
        let view = View { ctx, forest: &forest };
        match Plan::prove(view, lp, options).and_then(|plan| plan.judge((count, versions), options)) {
            Ok(plan) => plans.push(plan),
            Err(why) if !cx.has_fired(NAME, header) => cx.declined(&ctx.func, NAME, header, &why),
            Err(_) => {}
        }
    }
    plans
}

/// A branch in the middle, and where it changes.
pub(super) struct Split {
    pub(super) branch: Inst,
    /// Which of its edges it takes before that.
    pub(super) arm: usize,
    /// Its number in the first iteration.
    pub(super) start: Sum,
    /// What the number is compared with.
    pub(super) bound: Sum,
    /// Whether the branch takes that edge for the bound, too.
    pub(super) is_inclusive: bool,
    /// By how much its number is ahead of what the loop has tested before the iteration.
    pub(super) ahead: u64,
    is_equality: bool,
}

/// A splitting that is legal.
pub(super) struct Plan {
    pub(super) header: Block,
    /// The jump of the preheader.
    pub(super) entry: Edge,
    pub(super) back_edge: Edge,
    pub(super) blocks: Vec<Block>,
    /// The test of the loop.
    pub(super) own: CountedTest,
    pub(super) split: Split,
    /// Whether the second loop runs a few iterations only.
    pub(super) rest_is_short: bool,
    /// Instructions of the loop, without constants and jumps.
    size: usize,
    /// Instructions that the copy adds.
    pub(super) copied: usize,
}

impl Plan {
    fn prove(view: View<'_>, lp: Loop, options: &Options) -> Result<Self, Decline> {
        let (func, forest) = (view.func(), view.forest);
        let data = forest.data(lp);
        let (&[entry], &[back_edge]) = (&data.entries[..], &data.back_edges[..]) else {
            return Err(Decline::NotCounted);
        };
        if !forest.is_innermost(lp) {
            return Err(Decline::NotInnermost);
        }
        if !options.ignore_cost && func.is_effectively_cold(data.header) {
            return Err(Decline::ColdLoop);
        }
        let recurrences = Recurrences::with_constant_steps(view, lp);
        let own = own_test(view, lp, (back_edge, &recurrences)).ok_or(Decline::NotCounted)?;
        let splits = forest.blocks(lp).iter().filter_map(|&block| Split::find(view, lp, block, (&own, &recurrences)));
        let mut splits = splits.filter(|split| options.ignore_cost || split.pays(func, &own));
        let split = splits.next().ok_or(Decline::NothingToSplit)?;
        let insts = || forest.blocks(lp).iter().flat_map(|&block| func.layout.block_insts(block));
        if let Some(inst) = insts().find(|&inst| !forest.is_duplicable(func, inst)) {
            return Err(Decline::NotDuplicable(func.dfg.insts[inst].opcode()));
        }
        Ok(Self {
            header: data.header,
            entry,
            back_edge,
            blocks: forest.blocks(lp).to_vec(),
            rest_is_short: split.last(&own).is_some_and(|last| last <= MAX_LAST),
            own,
            split,
            size: insts().map(|inst| code_size(func, inst)).sum(),
            copied: insts().map(|inst| copied_size(func, inst)).sum(),
        })
    }

    fn judge(self, (count, versions): (TripCount, usize), options: &Options) -> Result<Self, Decline> {
        if options.ignore_cost {
            return Ok(self);
        }
        let (insts, max) = (self.size, options.split_iterations_max_insts);
        if insts.saturating_mul(versions) > max {
            return Err(Decline::TooLarge { insts, versions, max });
        }
        let before = self.split.bound.minus(&self.split.start).and_then(|distance| distance.as_constant());
        let min = options.split_iterations_min_iterations;
        let known = [count.most_iterations(), before.map(u128::from)].into_iter().flatten().min();
        match known.filter(|&most| most < min as u128) {
            Some(most) => Err(Decline::FewIterations { most, min }),
            None => Ok(self),
        }
    }

    pub(super) fn is_signed(&self) -> bool {
        is_signed(self.own.cond)
    }

    /// The least and the largest number, as the test of the loop reads them.
    pub(super) fn type_limits(&self) -> (u64, u64) {
        let bits = self.own.bound.bits();
        let largest = if self.is_signed() { mask(bits) >> 1 } else { mask(bits) };
        let least = if self.is_signed() { mask(bits) ^ largest } else { 0 };
        (least, largest)
    }

    pub(super) fn describe(&self, func: &Function) -> String {
        let block = func.layout.inst_block(self.split.branch).expect("a branch of the loop");
        let which = if self.rest_is_short { "all but the last iterations" } else { "the iterations" };
        format!("{which} before the branch of {block} changes are a loop of their own (instructions: {})", self.size)
    }
}

/// The test that the back edge comes from, if it asks whether a number that grows is less than one that is loop-invariant.
fn own_test(view: View<'_>, lp: Loop, (back_edge, recurrences): (Edge, &Recurrences)) -> Option<CountedTest> {
    let exit = view.forest.data(lp).exits.iter().find(|exit| exit.branch == back_edge.branch)?;
    let own = ExitTest::of(view.func(), *exit)?.counted(view, lp, recurrences)?;
    let is_order = matches!(own.cond, IntCC::UnsignedLessThan | IntCC::SignedLessThan);
    let is_plain = own.requires.is_none() && own.tested.cond == own.cond && matches!(own.bound.bits(), 32 | 64);
    (own.up && is_order && is_plain && own.step.as_constant().is_some()).then_some(own)
}

impl Split {
    /// What the branch of `block` says, if it is decided by a number that advances as that of the test does.
    fn find(view: View<'_>, lp: Loop, block: Block, (own, recurrences): (&CountedTest, &Recurrences)) -> Option<Self> {
        let func = view.func();
        let branch = func.layout.last_inst(block)?;
        let InstructionData::Brif { arg, .. } = func.dfg.insts[branch] else { return None };
        let mut targets = edges_and_targets(func, block).map(|(_, target)| target);
        let targets = [targets.next()?, targets.next()?];
        if targets[0] == targets[1] || branch == own.exit.exit.branch {
            return None;
        }
        let bits = own.bound.bits();
        Comparison::of(func, arg, true).sides().find_map(|comparison| {
            let Comparison { cond, left, .. } = comparison;
            let (holds, is_inclusive) = before(cond, is_signed(own.cond))?;
            let bound = comparison.bound(view).filter(|bound| bound.bits() == bits || fault!(AnyWidthDecides))?;
            let number = recurrences.of_value(view, left)?;
            let step = number.step.reduced(bits).filter(|step| *step == own.step)?;
            let start = number.start.clone();
            let ahead = start.plus(&step, 1)?.minus(&own.first)?.as_constant()?;
            let goes_on = view.forest.contains(lp, targets[usize::from(!holds)]);
            let is_legal = goes_on && view.is_invariant(lp, &bound) && ahead <= MAX_AHEAD;
            let is_equality = matches!(cond, IntCC::Equal | IntCC::NotEqual);
            is_legal.then_some(Self {
                branch,
                arm: usize::from(!holds),
                start,
                bound,
                is_inclusive,
                ahead,
                is_equality,
            })
        })
    }

    /// How many iterations are left when it changes, if that is a constant.
    fn last(&self, own: &CountedTest) -> Option<u64> {
        let from = self.bound.clone().offset(self.ahead.wrapping_neg().cast_signed());
        own.bound.minus(&from)?.offset(u64::from(self.is_inclusive).wrapping_neg().cast_signed()).as_constant()
    }

    /// (P2), (P3)
    fn pays(&self, func: &Function, own: &CountedTest) -> bool {
        let block = func.layout.inst_block(self.branch).expect("a branch of the loop");
        let goes_on = edges_and_targets(func, block).all(|(_, target)| !leads_to_failure(func, target));
        let is_last = self.last(own).is_some_and(|last| (1..=MAX_LAST).contains(&last));
        goes_on && !func.is_effectively_cold(block) && (is_last || !self.is_equality)
    }
}

/// What a comparison gives as long as the number on its left is less than the other, and whether it gives that when both are equal, too. Nothing if it
/// reads numbers in another way than the test of the loop.
fn before(cond: IntCC, signed: bool) -> Option<(bool, bool)> {
    use IntCC::{
        Equal, NotEqual, SignedGreaterThan, SignedGreaterThanOrEqual, SignedLessThan, SignedLessThanOrEqual,
        UnsignedGreaterThan, UnsignedGreaterThanOrEqual, UnsignedLessThan, UnsignedLessThanOrEqual,
    };
    match cond {
        Equal => Some((false, false)),
        NotEqual => Some((true, false)),
        _ if is_signed(cond) != signed => None,
        SignedLessThan | UnsignedLessThan => Some((true, false)),
        SignedLessThanOrEqual | UnsignedLessThanOrEqual => Some((true, true)),
        SignedGreaterThanOrEqual | UnsignedGreaterThanOrEqual => Some((false, false)),
        SignedGreaterThan | UnsignedGreaterThan => Some((false, true)),
    }
}
