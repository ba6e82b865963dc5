//! Peeling: the first iterations of a loop are copied before it, so that what they compute dominates the loop.
//!
//! ```text
//! preheader                      preheader
//!     │                              │
//!     ▼                              ▼
//!   header ◄──┐                   header'           the first iteration
//!     │       │                      │
//!   check(a)  │        ──►        check(a) ──► exit
//!     │       │                      │
//!   latch ────┘                   latch' ────► exit
//!     │                              │
//!     ▼                              ▼
//!    exit                          header ◄──┐      the loop without the check
//!                                    │       │
//!                                  latch ────┘
//!                                    │
//!                                    ▼
//!                                   exit
//! ```
//!
//! `licm` takes out of a loop what is sure to run first. A check after a store or after another check that may fail, or a
//! load after those, has to stay where it is in the first iteration; in all others it is known to hold. What the loop would
//! do again, its copy has done before, and it is removed from the loop. (bytecodealliance/wasmtime#10111 asks for this.)
//!
//! A header parameter that starts with one value and then always is another (a flag for the first iteration, the
//! previous value of something invariant) becomes that other value. A comparison of a counter that gives something else in
//! the first iterations only (`i == 0`, `i < 3`) becomes a constant, and so does a counter that a branch asks for; that the counter does not wrap around follows
//! from the largest exit count of the loop.
//!
//! # Needs
//!
//! Canonical form, and makes it if there is something to do and it was lost.
//!
//! # Legal when
//!
//! (L1) each instruction may be copied; (L2) a comparison that a Spectre guard asks stays, unless guards may be dropped: what it gives follows from
//! the test that ends the loop, which the processor may mispredict. What is done again and again because others may write there is copied like all else, and stays
//! in the loop: loads of regions that others write, and [polls](crate::analysis::memory::exit_polls).
//!
//! # Pays when
//!
//! (P1) there is no inner loop; (P2) something leaves the loop, (P3) in proportion to what is copied; (P4) the loop
//! takes its back edge more often than it is peeled, and (P5) is not cold; (P6) `cleanup` can run, if something is left to it.
//! (P7) The function may not grow without limit. A loop can be peeled again, when what
//! was won has folded and more is to be won, up to a number of iterations in all.
//!
//! # Changes
//!
//! Blocks and edges. Wants `cleanup`, except for what is simply repeated. Canonical form has to be rebuilt: the exits are entered from both copies.
//!
//! # Not done
//!
//! The last iteration is not taken out. Outer loops are not peeled: their first iteration holds a whole inner loop.
//!
//! # References
//!
//! LLVM `LoopPeel.cpp` (parameters that become invariant, comparisons that become known; 7 iterations at most); Firefox
//! `UnrollLoops.cpp` (12 blocks, 150 values); V8 `loop-peeling-reducer.h`; llvm#45284, llvm#62437 for peeling twice.

mod gain;

use crate::analysis::cfg::edges::{Edge, code_size, copied_size};
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::inst::effects::Effects;
use crate::analysis::memory::spectre_guard::asked_by_guards;
use crate::analysis::scev::exit_count::TripCount;
use crate::change::Change;
use crate::claim::{Claim, is_marked};
use crate::edit::at;
use crate::edit::cfg::split_edges::{copy_edge, retarget, set_edge};
use crate::edit::cfg::unreachable::forget_removed_insts;
use crate::edit::copy::copy_iterations::{clone_iterations, copied_edge};
use crate::edit::inst::clone::{Copies, repeat_before};
use crate::edit::materialize::assertion::{assert_equal, assert_loads, assert_truth};
use crate::fault::fault;
use crate::options::Options;
use crate::pass::copying::{Denied, granted};
use crate::pass::{Pass, PassCx, cleanup};
use crate::refusal::refusals;
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, InstBuilder, InstructionData, Opcode, Value, types};
use cranelift_codegen::{CodegenResult, Context};
use gain::{Gain, Levels, MAX_LEVELS};
use std::cell::OnceCell;

/// The name of this pass.
pub(crate) const NAME: &str = "peel";

/// The pass.
pub(crate) const PASS: Pass = Pass {
    name: NAME,
    run,
    reasons: &[Decline::REASONS, Denied::REASONS],
    claims: &[Claim::CheckHolds, Claim::CellHolds, Claim::ConditionKnown, Claim::Invariant],
    copies: true,
    ..Pass::OPTIONAL
};

/// Peels all loops that can be and should be.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    if cx.wants_another_round() || (cx.wants_cleanup && cleanup::is_possible(ctx, cx)) {
        // What is about to fold or to move would be taken for a gain. The next round sees what remains.
        return Ok(Change::Nothing);
    }
    let plans = granted(ctx, cx, NAME, plan, |plan| (plan.header, plan.copied))?;
    if plans.is_empty() {
        return Ok(Change::Nothing);
    }
    cx.wants_cleanup |= plans.iter().any(|plan| plan.gain.needs_cleanup);
    for plan in &plans {
        cx.look_again(ctx, plan.header);
        cx.retract(NAME, plan.header);
        cx.fired(&ctx.func, &PASS, plan.header, plan.describe());
        cx.marks.add_peeled(plan.header, plan.gain.iterations);
        plan.apply(&mut ctx.func);
    }
    forget_removed_insts(&mut ctx.func);
    ctx.func.dfg.resolve_all_aliases();
    Ok(Change::Cfg)
}

fn plan(ctx: &Context, cx: &mut PassCx<'_>) -> Vec<Plan> {
    let mut plans: Vec<Plan> = Vec::new();
    let (mut has_cleanup, mut levels) = (None, gain::Scratch::new());
    let options = cx.options;
    let asked = OnceCell::new();
    let is_asked = |value| asked.get_or_init(|| asked_by_guards(ctx, options)).contains(value);
    for lp in cx.forest(ctx).loops() {
        let header = cx.forest(ctx).data(lp).header;
        if !cx.marks.has_full_effort(header) {
            continue;
        }
        let most = options.peel_max_iterations.saturating_sub(cx.marks.peeled(header)).min(MAX_LEVELS);
        if most == 0 {
            continue;
        }
        let count = cx.bound(ctx, lp);
        match Plan::prove(ctx, &cx.forest(ctx), lp, (options, most, count), (&is_asked, &mut levels))
            .and_then(|plan| plan.judge(ctx, options))
        {
            Ok(plan)
                if plan.gain.needs_cleanup && !*has_cleanup.get_or_insert_with(|| cleanup::is_possible(ctx, cx)) =>
            {
                cx.declined(&ctx.func, NAME, header, &Decline::NoCleanup);
            }
            Ok(plan) => plans.push(plan),
            Err(why) if cx.marks.peeled(header) == 0 => cx.declined(&ctx.func, NAME, header, &why),
            Err(_) => {}
        }
    }
    plans
}

/// A peeling that is legal.
struct Plan {
    header: Block,
    entry: Edge,
    back_edge: Edge,
    /// In dominance order.
    blocks: Vec<Block>,
    gain: Gain,
    count: TripCount,
    /// Instructions of the loop, without constants and jumps.
    size: usize,
    /// Instructions that the copies add.
    copied: usize,
}

impl Plan {
    /// `most` is the number of iterations that may be taken out, `count` how often the back edge is taken.
    fn prove(
        ctx: &Context,
        forest: &LoopForest,
        lp: Loop,
        (options, most, count): (&Options, usize, TripCount),
        (is_asked, levels): (&dyn Fn(Value) -> bool, &mut gain::Scratch),
    ) -> Result<Self, Decline> {
        let func = &ctx.func;
        let data = forest.data(lp);
        let blocks = forest.blocks(lp);
        let is_innermost = forest.is_innermost(lp);
        let ([entry], [back_edge], true) = (&data.entries[..], &data.back_edges[..], is_innermost) else {
            return Err(Decline::NotInnermost);
        };
        let insts = || blocks.iter().flat_map(|&block| func.layout.block_insts(block));
        let size = insts().map(|inst| code_size(func, inst)).sum();
        if size > options.peel_max_insts && !options.ignore_cost {
            return Err(Decline::TooLarge { insts: size, max: options.peel_max_insts });
        }
        let levels = Levels::find(ctx, forest, lp, (options, most, count), (is_asked, levels));
        let gain = best(&levels, size, (options, most))?;
        if let Some(inst) = insts().find(|&inst| !forest.is_duplicable(func, inst)) {
            return Err(Decline::NotDuplicable(func.dfg.insts[inst].opcode()));
        }
        Ok(Self {
            header: data.header,
            entry: *entry,
            back_edge: *back_edge,
            blocks: blocks.to_vec(),
            size,
            copied: insts().map(|inst| copied_size(func, inst)).sum::<usize>().saturating_mul(gain.iterations),
            gain,
            count,
        })
    }

    fn judge(self, ctx: &Context, options: &Options) -> Result<Self, Decline> {
        if self.copied > options.peel_max_copied {
            return Err(Decline::TooLarge { insts: self.copied, max: options.peel_max_copied });
        }
        if let Some(around) = self.count.most().filter(|&around| around <= self.gain.iterations as u128) {
            return Err(Decline::FewIterations { around, peeled: self.gain.iterations });
        }
        if !options.ignore_cost && ctx.func.is_effectively_cold(self.header) {
            return Err(Decline::ColdLoop);
        }
        Ok(self)
    }

    fn describe(&self) -> String {
        let Gain { iterations, checks, loads, branches, others, .. } = self.gain;
        let which = if iterations == 1 {
            "the first iteration stands".into()
        } else {
            format!("{iterations} iterations stand")
        };
        let parts = [(checks, "checks"), (loads, "loads"), (branches, "branches"), (others, "other instructions")];
        let parts: Vec<_> =
            parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{what}: {count}")).collect();
        format!("{which} before the loop, which gets rid of {} (of {} instructions)", parts.join(", "), self.size)
    }

    fn apply(&self, func: &mut Function) {
        if fault!(SettledEverywhere) {
            self.settle(func);
        }
        let copies = clone_iterations(func, &self.blocks, self.back_edge, self.gain.iterations);
        let (first, last) = (&copies[0], &copies[copies.len() - 1]);
        let into_loop = copied_edge(func, last, self.back_edge);
        retarget(func, into_loop, self.header);
        if fault!(FirstIterationTwice) {
            copy_edge(func, self.entry, into_loop);
        }
        retarget(func, self.entry, first.block(self.header));
        self.settle(func);
        self.keep_params(func);
        self.replace_repeated(func, last);
    }

    /// Lets what the last copy has computed stand for what the loop would compute again.
    fn replace_repeated(&self, func: &mut Function, last: &Copies) {
        for &inst in &self.gain.repeated {
            self.assert_repeated(func, inst, last);
            if let [result] = func.dfg.inst_results(inst)[..] {
                func.dfg.detach_inst_results(inst);
                func.dfg.change_to_alias(result, last.value(result));
            }
            func.layout.remove_inst(inst);
        }
    }

    /// Asserts that `inst`, which the loop does not do again, would do what it did in the last copy.
    fn assert_repeated(&self, func: &mut Function, inst: Inst, last: &Copies) {
        match (func.dfg.insts[inst], func.dfg.inst_results(inst).first().copied()) {
            (InstructionData::CondTrap { opcode, arg, .. }, _) => {
                assert_truth(func, inst, Claim::CheckHolds, (arg, opcode == Opcode::Trapz));
            }
            (InstructionData::Load { .. }, Some(result)) => assert_loads(func, inst, inst, last.value(result)),
            (_, Some(result)) if is_marked(func) && Effects::of(func, inst).is_pure() => {
                let again = repeat_before(func, inst, inst);
                assert_equal(func, inst, Claim::Invariant, [again, last.value(result)]);
            }
            _ => {}
        }
    }

    /// Lets the back edge pass a header parameter itself if that is the same from now on.
    fn keep_params(&self, func: &mut Function) {
        let mut args: Vec<_> = self.back_edge.args(func).collect();
        for &index in &self.gain.params {
            let kept = func.dfg.block_params(self.header)[index];
            if let Some(next) = args[index].as_value() {
                assert_equal(func, self.back_edge.branch, Claim::Invariant, [next, kept]);
            }
            args[index] = BlockArg::Value(func.dfg.block_params(self.header)[index]);
        }
        if !self.gain.params.is_empty() {
            set_edge(func, self.back_edge, self.header, &args);
        }
    }

    /// Makes constants of the comparisons, and of the conditions of branches, that are settled.
    fn settle(&self, func: &mut Function) {
        for &(inst, holds) in &self.gain.settled {
            if let InstructionData::Brif { arg, .. } = func.dfg.insts[inst] {
                assert_truth(func, inst, Claim::ConditionKnown, (arg, holds));
                let condition = at(func, inst).ins().iconst(types::I8, i64::from(holds));
                func.dfg.inst_args_mut(inst)[0] = condition;
                continue;
            }
            if is_marked(func) {
                let compared = repeat_before(func, inst, inst);
                assert_truth(func, inst, Claim::ConditionKnown, (compared, holds));
            }
            func.replace(inst).iconst(types::I8, i64::from(holds));
        }
    }
}

/// The best gain, with the fewest iterations that give it. Less than the best is not taken: the rest would look like a gain of
/// its own to the next run.
fn best(levels: &Levels<'_>, size: usize, (options, most): (&Options, usize)) -> Result<Gain, Decline> {
    let most = levels.gain(most);
    if most.weight == 0 {
        return Err(Decline::NothingToWin);
    }
    let mut gains = (1..most.iterations).map(|iterations| levels.gain(iterations));
    let gain = gains.find(|gain| gain.weight == most.weight).unwrap_or(most);
    let insts = gain.iterations.saturating_mul(size);
    let max = options.peel_max_insts.min(gain.weight.saturating_mul(options.peel_max_insts_per_gain));
    if insts > max && !options.ignore_cost {
        return Err(Decline::TooLarge { insts, max });
    }
    Ok(gain)
}

refusals! {
    /// Why a loop is not peeled.
    enum Decline {
        /// (P2) Nothing would leave the loop.
        NothingToWin => "nothing-to-win", "no value becomes invariant from the second iteration on";
        /// (P3) Too much would be copied for what is gained.
        TooLarge { insts: usize, max: usize } => "too-large", "{insts} instructions would be copied, more than {max}",
            help "raise Options::peel_max_insts or Options::peel_max_insts_per_gain if the loop is hot";
        /// (P4) Not much of the loop would remain.
        FewIterations { around: u128, peeled: usize }
            => "few-iterations", "the back edge is taken {around} times at most, and {peeled} iterations would be peeled";
        /// (P6) Cranelift's egraph pass cannot run once more.
        NoCleanup => "no-cleanup", "Cranelift's egraph pass, which would use it, does not run once more",
            help "optimize at speed, and nest less deeply";
    }
    shared { NotInnermost, ColdLoop, NotDuplicable(opcode: Opcode) }
}
