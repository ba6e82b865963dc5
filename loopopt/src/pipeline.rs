//! The passes, their order with the reason for it, and the driver.

use crate::analysis::cfg::loops::may_have_cycle;
use crate::analysis::memory::checked_memory::{CheckedMemories, Roots};
use crate::analysis::memory::spectre_guard::has_guards;
use crate::change::Change;
use crate::claim::{Claim, asserts_by_code, mark, unmark};
use crate::edit::cfg::merge::merge_all;
use crate::edit::cfg::unreachable::remove_unreachable;
use crate::edit::inst::rename::Replaced;
use crate::edit::materialize::drop_trap_flags::trust_checked;
use crate::edit::materialize::neighbours::keep_neighbours;
use crate::edit::materialize::pin::pin_chosen;
use crate::edit::materialize::trust_allocated::trust_allocated;
use crate::edit::materialize::trust_lengths::trust_lengths;
use crate::edit::ssa::params::detach_redundant_params;
use crate::ir::all_insts;
use crate::pass::select;
use crate::pass::{
    Form, Pass, PassCx, apply_profile, canon, cleanup, consolidate_guards, elide_checks, extend_loads, final_values,
    forward_select_load, full_unroll, fuse_exit_tests, guard_to_trap, gvn_sink, hoist_header_stores, if_convert,
    layout, leave_canonical_form, licm, load_elimination, mem2reg, order_latch, partial_unroll, peel, promote,
    propagate_equality, reassociate, record_profile, rotate, save_at_cold_calls, sink, specialize, split_at_cold_edges,
    split_iterations, split_latch, split_live_ranges, strip_mine, tail_duplicate, thread_jumps, transfer, unswitch,
    version, widen_indices,
};
use crate::report::Report;
use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::{Function, Value};
use cranelift_codegen::verifier::VerifierErrors;
use cranelift_codegen::{CodegenError, CodegenResult, Context};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Instant;

/// A step of the pipeline.
enum Step {
    /// These passes in turn, again if one of them asks for another round.
    Repeat(&'static [Pass]),
    /// This pass.
    Once(Pass),
}

/// The pipeline as data.
static STEPS: &[Step] = &[
    Step::Once(forward_select_load::PASS),
    Step::Repeat(&[
        mem2reg::PASS,
        guard_to_trap::PASS,
        thread_jumps::PASS,
        canon::PASS,
        record_profile::PASS,
        apply_profile::PASS,
        specialize::PASS,
        propagate_equality::PASS,
        gvn_sink::PASS,
        hoist_header_stores::PASS,
        // The test of a loop that polls is one before all of its strips.
        version::OF_POLLING,
        strip_mine::PASS,
        rotate::PASS,
        fuse_exit_tests::PASS,
        elide_checks::PASS,
        licm::PASS,
        final_values::PASS,
        unswitch::PASS,
        version::OF_ASSUMING,
        version::PASS,
        transfer::PASS,
        split_iterations::PASS,
        full_unroll::PASS,
        peel::PASS,
        cleanup::PASS,
    ]),
    Step::Once(canon::PASS),
    Step::Once(propagate_equality::PASS),
    Step::Once(widen_indices::PASS),
    Step::Once(load_elimination::PASS),
    Step::Once(elide_checks::AGAIN),
    // What is left of a branch may not be in the loop any more.
    Step::Once(canon::PASS),
    Step::Once(promote::PASS),
    Step::Once(if_convert::PASS),
    Step::Once(partial_unroll::PASS),
    // An iteration of a group loads what the one before has loaded.
    Step::Once(load_elimination::IN_GROUPS),
    Step::Once(canon::PASS),
    Step::Once(consolidate_guards::PASS),
    Step::Once(sink::PASS),
    Step::Once(leave_canonical_form::PASS),
    Step::Once(reassociate::PASS),
    Step::Once(extend_loads::PASS),
    Step::Once(tail_duplicate::PASS),
    Step::Once(layout::PASS),
    Step::Once(order_latch::PASS),
    Step::Once(save_at_cold_calls::PASS),
    Step::Once(split_at_cold_edges::PASS),
    Step::Once(split_live_ranges::PASS),
    Step::Once(split_latch::PASS),
];

/// The pipeline for functions without a loop.
static STEPS_WITHOUT_LOOPS: &[Step] = &[Step::Repeat(&[mem2reg::PASS, guard_to_trap::PASS, cleanup::PASS])];

/// `(before, after, why)`: what [`STEPS`] has to respect. A test checks it.
#[cfg(test)]
static ORDER: &[(&str, &str, &str)] = &[
    ("forward_select_load", "licm", "a load at an address of which nothing is known is replaced"),
    ("canon", "record_profile", "a loop has one entry edge and one back edge"),
    ("canon", "apply_profile", "loops have the form in which they were recorded"),
    ("mem2reg", "record_profile", "a variable that was a stack slot is a value that can be recorded"),
    ("apply_profile", "specialize", "what was recorded is found by what the loops were then"),
    ("specialize", "propagate_equality", "what the dispatch has proved is known in the loop"),
    ("specialize", "full_unroll", "a loop that was recorded to be short is known to be"),
    ("apply_profile", "transfer", "a cold path is marked as cold"),
    ("canon", "propagate_equality", "what leaves a loop is an argument of the edge that decides it"),
    ("propagate_equality", "rotate", "a condition that is not carried needs no parameter"),
    ("mem2reg", "thread_jumps", "a condition that was kept in a stack slot is a value"),
    ("thread_jumps", "canon", "a condition that was joined leaves its loop in parts"),
    ("thread_jumps", "rotate", "a header leaves its loop itself, and not where a value is tested that it has joined"),
    ("mem2reg", "canon", "it makes parameters, not all of them in closed form"),
    ("mem2reg", "rotate", "a test that loads its operands is larger, and hides what it compares"),
    ("mem2reg", "cleanup", "a value that is known in place of a load folds"),
    ("canon", "rotate", "rotate needs preheaders, single back edges, dedicated exits and closed form"),
    ("canon", "strip_mine", "an iteration has one back edge, and values leave the loop through parameters"),
    ("canon", "gvn_sink", "the paths back meet in one latch"),
    ("gvn_sink", "strip_mine", "a counter that is stepped on each path back is one"),
    ("canon", "hoist_header_stores", "a loop has one entry edge and one back edge"),
    ("hoist_header_stores", "strip_mine", "an iteration starts with its poll"),
    ("gvn_sink", "rotate", "the test of the next iteration is after what it tests"),
    ("mem2reg", "strip_mine", "fuel that is kept in a stack slot is counted in a value"),
    ("strip_mine", "rotate", "after the poll, the loop is one that tests at its top"),
    ("rotate", "fuse_exit_tests", "the test of a rotated loop is next to that of its strip"),
    ("fuse_exit_tests", "version", "a loop with one test is counted"),
    ("strip_mine", "transfer", "a rare part that is asked for once in a strip need not leave the loop"),
    (
        "order_latch",
        "save_at_cold_calls",
        "it looks for values that are the same, and would undo what is done for the allocator",
    ),
    ("order_latch", "split_latch", "a latch is put in order in one piece"),
    ("split_live_ranges", "split_latch", "it finds the values that loops use in latches of one piece"),
    ("save_at_cold_calls", "split_live_ranges", "a value that calls do not touch any more needs no second one"),
    (
        "save_at_cold_calls",
        "split_at_cold_edges",
        "what it casts to the other class of registers and back has a place of its own",
    ),
    ("rotate", "full_unroll", "in a rotated loop, the last iteration has no test of the next one"),
    ("rotate", "version", "the guard of a rotated loop says that it runs at least once"),
    ("licm", "version", "a length that is loaded before the loop can be tested there"),
    ("version", "full_unroll", "a check that is removed need not be copied"),
    ("version", "peel", "no iteration need be peeled for a check that is removed"),
    ("rotate", "unswitch", "an invariant exit test is decided by the guard"),
    ("licm", "unswitch", "a condition that is loaded is before the loop then"),
    ("unswitch", "full_unroll", "a copy that leaves at once is its one iteration"),
    ("unswitch", "peel", "an invariant branch hides nothing of the first iteration"),
    ("rotate", "final_values", "the guard of a rotated loop says from where on its count is a formula"),
    ("elide_checks", "final_values", "a loop whose checks are removed may have no effect"),
    ("licm", "final_values", "what is loaded before the loop, and added in each iteration, is a step"),
    ("final_values", "unswitch", "a loop that is deleted needs no versions"),
    ("final_values", "version", "a loop that is deleted needs no versions"),
    ("final_values", "full_unroll", "a loop that is deleted needs no copies"),
    ("final_values", "peel", "a value that only the end needs is not computed in the first iteration either"),
    ("final_values", "cleanup", "a division by a constant is none, and what a formula says of constants folds"),
    ("licm", "transfer", "what is hoisted with the rare part in the loop needs no loop without"),
    ("unswitch", "transfer", "a rare part that one version of a loop never reaches need not leave it"),
    ("version", "split_iterations", "a test that all iterations pass is one before the loop"),
    ("unswitch", "split_iterations", "an invariant branch needs no second loop"),
    ("transfer", "split_iterations", "the loop that is split is the fast one"),
    ("split_iterations", "full_unroll", "a loop that is left after a split may run a few times only"),
    ("split_iterations", "peel", "a branch that only the last iterations take hides nothing of the first one"),
    ("split_iterations", "cleanup", "a branch that is removed leaves parameters that are one value"),
    ("transfer", "full_unroll", "the loop that is unrolled or peeled is the fast one"),
    ("transfer", "peel", "what leaves the fast loop need not be in a copy of the first iteration"),
    ("full_unroll", "peel", "the first iteration of a loop that runs a few times need not be taken out"),
    ("full_unroll", "cleanup", "the counter is a constant in each iteration"),
    ("peel", "cleanup", "what the first iteration did is removed from the loop by the egraph pass"),
    ("guard_to_trap", "elide_checks", "a check that traps proves what a guard does not, and what it implies may go"),
    ("guard_to_trap", "version", "a check of which all is known before the loop is removed, whatever it was"),
    ("rotate", "elide_checks", "a guard says of the first iteration what the test says of the others"),
    ("elide_checks", "licm", "what is after a check that is removed may move"),
    ("elide_checks", "peel", "a check that never fails need not be done once"),
    ("elide_checks", "cleanup", "a choice that is known folds"),
    ("rotate", "licm", "what is hoisted from a rotated loop runs only if the loop runs"),
    ("licm", "peel", "what can move without a copy need not be in one"),
    ("licm", "promote", "an invariant address is before the loop then"),
    ("version", "widen_indices", "what has to hold before a loop is found from sums of 32 bits"),
    (
        "elide_checks",
        "widen_indices",
        "a check speaks of the 32-bit counter, and its facts prove that sums do not wrap",
    ),
    ("full_unroll", "widen_indices", "what a counter of 32 bits is in each iteration is found from its own additions"),
    ("peel", "widen_indices", "a loop that is copied is looked at once, not each of its copies"),
    ("cleanup", "widen_indices", "the egraph pass would put the base and the offset together again"),
    ("canon", "widen_indices", "a base is computed in the preheader"),
    (
        "widen_indices",
        "promote",
        "accesses whose addresses differ by constants are known not to overlap, or to be one recurrence",
    ),
    ("widen_indices", "partial_unroll", "an offset of a 64-bit address says which iteration it is for"),
    ("promote", "partial_unroll", "what is carried from one iteration to the next needs no move between two copies"),
    ("load_elimination", "promote", "what an iteration loads once is carried once, and not loaded again beside that"),
    ("promote", "if_convert", "what waits for the iteration before is a parameter"),
    ("version", "if_convert", "a check that is removed is no branch"),
    ("unswitch", "if_convert", "an invariant condition is no branch in the loop"),
    ("if_convert", "partial_unroll", "an iteration without branches is one block, and smaller"),
    ("widen_indices", "load_elimination", "addresses that differ by a constant do not overlap"),
    ("load_elimination", "partial_unroll", "an iteration that loads nothing twice is smaller"),
    ("load_elimination", "sink", "a value that only the end needs moves there with what is made of it"),
    ("partial_unroll", "reassociate", "the copies of an operation are a chain"),
    ("promote", "reassociate", "what was a memory cell is carried"),
    ("load_elimination", "extend_loads", "loads of one opcode are the same load"),
    ("cleanup", "extend_loads", "the egraph pass takes loads of one opcode for the same load"),
    (
        "leave_canonical_form",
        "extend_loads",
        "unrolled iterations are one block, in which lowering puts a load and its extension together",
    ),
    ("extend_loads", "order_latch", "what is carried is in one register, extended or not"),
    ("leave_canonical_form", "reassociate", "unrolled iterations are one block, without parameters between"),
    ("reassociate", "tail_duplicate", "a loop has one back edge"),
    ("reassociate", "order_latch", "the next value is another operation"),
    ("partial_unroll", "sink", "what only the end of the unrolled iterations uses is computed there"),
    ("partial_unroll", "leave_canonical_form", "the unrolled iterations become one block"),
    ("partial_unroll", "order_latch", "the latch is that of the unrolled loop"),
    ("widen_indices", "leave_canonical_form", "constants are to be rematerialized next to their new uses"),
    ("widen_indices", "order_latch", "a counter of 64 bits takes the register of the one before"),
    ("promote", "leave_canonical_form", "cells meet in parameters, and some meet themselves"),
    ("version", "consolidate_guards", "it guards what others have taken the guard from"),
    ("partial_unroll", "consolidate_guards", "one guard is enough for an unrolled group"),
    ("widen_indices", "consolidate_guards", "addresses that differ by a constant are one address with offsets"),
    ("promote", "consolidate_guards", "it may add accesses"),
    ("consolidate_guards", "sink", "a guard moves where its accesses move"),
    ("canon", "sink", "sink looks for what leaves a loop in the arguments of its exit edges"),
    ("cleanup", "sink", "the egraph pass would move what sink has put into cold blocks before the loop again"),
    ("sink", "leave_canonical_form", "constants are to be rematerialized next to their new uses"),
    ("sink", "order_latch", "what has left the latch needs no place in its order"),
    ("cleanup", "leave_canonical_form", "a guard that folds leaves blocks to merge"),
    ("leave_canonical_form", "order_latch", "the test of a rotated loop is in the latch once both are one block"),
    ("leave_canonical_form", "tail_duplicate", "a latch that only gathers others is merged with the test first"),
    ("tail_duplicate", "layout", "each copy of a test ends in a branch to be ordered"),
    ("cleanup", "order_latch", "the egraph pass puts pure instructions in an order of its own"),
    ("layout", "order_latch", "an inverted comparison has to be there when the order is made"),
];

/// The passes, each once, in the order in which they run first.
pub(crate) fn passes() -> impl Iterator<Item = &'static Pass> {
    let mut seen = BTreeSet::new();
    runs().filter(move |pass| seen.insert(pass.name))
}

/// The passes as often as they run.
fn runs() -> impl Iterator<Item = &'static Pass> {
    STEPS.iter().flat_map(|step| match step {
        Step::Repeat(passes) => passes.iter(),
        Step::Once(pass) => std::slice::from_ref(pass).iter(),
    })
}

/// Runs all passes on `ctx.func`. If none of the optional ones finds anything to do, the function stays as it was.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Report> {
    let has_other_work = (cx.options.enables(mem2reg::NAME) && mem2reg::has_slots(&ctx.func))
        || (cx.options.enables(guard_to_trap::NAME) && guard_to_trap::has_guards(&ctx.func, cx.options));
    if !has_other_work && !may_have_cycle(&ctx.func) {
        make_valid(ctx);
        return Ok(Report::default());
    }
    cx.remarks.reserve();
    inspect(ctx, cx)?;
    let loops = cx.forest(ctx).len();
    let stays = select::leaves_alone(ctx, cx, canon::NAME);
    let has_loops = !stays && select::run(ctx, cx, canon::NAME);
    if stays || !has_loops && !has_other_work {
        make_valid(ctx);
        let remarks = std::mem::take(&mut cx.remarks).finish();
        return Ok(Report { loops, remarks, analyses: cx.analyses, ..Report::default() });
    }
    let original = ctx.func.clone();
    if cx.options.assert_claims {
        refuse_own_codes(&ctx.func)?;
        mark(&mut ctx.func);
    }
    let mut driver = Driver {
        ctx,
        cx,
        report: Report { loops, timings: Vec::with_capacity(16), ..Report::default() },
        since: Instant::now(),
    };
    let steps = if has_loops { STEPS } else { STEPS_WITHOUT_LOOPS };
    let result = driver.prepare().and_then(|()| driver.run_steps(steps));
    let mut report = driver.report;
    if cx.options.assert_claims {
        unmark(&mut ctx.func);
        report.claims = count_claims(&ctx.func);
    }
    report.remarks = std::mem::take(&mut cx.remarks).finish();
    report.changed = result.is_ok() && !cx.gave_up && cx.has_paid;
    if !report.changed {
        report.remarks.forget_fired();
        ctx.func = original;
        ctx.flowgraph();
        cx.analyses.flow_graphs += 1;
    }
    report.analyses = cx.analyses;
    // No pass of ours changes Cranelift's loops, but the egraph pass recomputes them.
    if report.changed || cx.analyses.egraph_runs > 0 || !ctx.loop_analysis.is_valid() {
        ctx.compute_loop_analysis();
    }
    result.map(|()| report)
}

/// Looks at what the function is like, once the flow graph and the dominator tree are there.
fn inspect(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<()> {
    if ctx.cfg.is_valid() && ctx.domtree.is_valid() {
        cx.trust_flowgraph(ctx);
    } else {
        cx.flowgraph(ctx);
    }
    ctx.verify_if(cx.isa)?;
    // The one rule of the verifier that canonical form cannot do without.
    let entry = ctx.func.layout.entry_block();
    match entry.is_some_and(|entry| ctx.cfg.pred_iter(entry).next().is_some()) {
        true => Err(CodegenError::Unsupported("a branch enters the entry block".into())),
        false => Ok(()),
    }
}

/// How many assertions there are of each claim.
fn count_claims(func: &Function) -> BTreeMap<Claim, usize> {
    let mut counts = BTreeMap::new();
    let insts = all_insts(func);
    for claim in insts.filter_map(|inst| asserts_by_code(func, inst)) {
        *counts.entry(claim).or_default() += 1;
    }
    counts
}

/// A function whose traps have the codes of claims cannot be told from one in which these are asserted.
fn refuse_own_codes(func: &Function) -> CodegenResult<()> {
    let insts = all_insts(func);
    match insts.into_iter().find_map(|inst| asserts_by_code(func, inst)) {
        None => Ok(()),
        Some(claim) => {
            let code = claim.trap_code();
            Err(CodegenError::Unsupported(format!("the function has a trap of code {code}, which assert_claims needs")))
        }
    }
}

struct Driver<'a, 'b> {
    ctx: &'a mut Context,
    cx: &'a mut PassCx<'b>,
    report: Report,
    /// When the last pass ended.
    since: Instant,
}

impl Driver<'_, '_> {
    /// Brings about what passes need, as far as `Context::optimize` has not left it.
    fn prepare(&mut self) -> CodegenResult<()> {
        let Context { func, domtree, .. } = &*self.ctx;
        let is_cut = func.layout.blocks().any(|block| !domtree.is_reachable(block));
        remove_unreachable(self.ctx, self.cx.isa)?;
        resolve_aliases(&mut self.ctx.func);
        trust_allocated(&mut self.ctx.func, self.cx.options);
        trust_lengths(&mut self.ctx.func, self.cx.options);
        // Before anything is decided: a parameter that is always the same value is a choice, too.
        pin_chosen(&mut self.ctx.func);
        trust_checked(&mut self.ctx.func, self.cx.options);
        // A front end that passes every variable through every loop hides those that are loop-invariant.
        let mut replaced = Replaced::default();
        detach_redundant_params(self.ctx, &mut replaced, &|_, _, _| false);
        // `canon` would find the loops again after that.
        let named = self.cx.named(&self.ctx.func);
        let merged = merge_all(&mut self.ctx.func, (&self.ctx.cfg, &self.ctx.domtree), named, &mut replaced);
        replaced.apply(&mut self.ctx.func);
        if merged {
            self.cx.flowgraph(self.ctx);
        }
        if merged || is_cut {
            self.cx.forget_forest();
        }
        self.cx.is_merged = true;
        keep_neighbours(&mut self.ctx.func);
        self.cx.has_guards = has_guards(&self.ctx.func);
        if self.cx.has_guards {
            self.cx.memories = Rc::new(CheckedMemories::of(Roots::new(self.ctx, self.cx.options)));
        }
        if self.cx.options.dumps {
            self.report.dumps.push(("input", self.ctx.func.display().to_string()));
        }
        self.since = Instant::now();
        Ok(())
    }

    fn run_steps(&mut self, steps: &[Step]) -> CodegenResult<()> {
        for step in steps {
            match step {
                Step::Repeat(passes) => self.repeat(passes)?,
                Step::Once(pass) => self.run_pass(pass)?,
            }
        }
        self.ctx.verify_if(self.cx.isa)
    }

    fn repeat(&mut self, passes: &[Pass]) -> CodegenResult<()> {
        for _ in 0..self.cx.options.max_rounds.max(1) {
            self.cx.start_round(self.ctx);
            self.report.rounds += 1;
            for pass in passes {
                self.run_pass(pass)?;
            }
            if !self.cx.wants_another_round() || self.cx.gave_up {
                break;
            }
            self.cx.settle(self.ctx);
        }
        self.cx.unsettle();
        Ok(())
    }

    fn run_pass(&mut self, pass: &Pass) -> CodegenResult<()> {
        if self.cx.gave_up {
            return Ok(());
        }
        if !pass.is_mandatory && !self.cx.options.enables(pass.name) {
            return Ok(());
        }
        let makes_form = pass.makes > Form::Any;
        if makes_form && self.cx.form >= pass.makes {
            return Ok(());
        }
        if self.cx.options.verify_each_pass {
            self.verify_form(pass, pass.needs)?;
            self.since = Instant::now();
        }
        let pending = (pass.run)(self.ctx, self.cx)?;
        self.cx.invalidate(self.ctx, pending);
        let change = self.cx.take_changed();
        if makes_form {
            self.cx.form = pass.makes;
        } else if change == Change::Cfg {
            self.cx.keep_form(pass.keeps);
        }
        self.add_time(pass.name);
        if (change != Change::Nothing || makes_form) && !self.cx.gave_up {
            if self.cx.options.dumps && change != Change::Nothing {
                self.report.dumps.push((pass.name, self.ctx.func.display().to_string()));
                self.since = Instant::now();
            }
            if self.cx.options.verify_each_pass {
                self.verify_after(pass)?;
                self.since = Instant::now();
            }
        }
        Ok(())
    }

    /// Counts the time since the last pass for this one.
    fn add_time(&mut self, pass: &'static str) {
        let now = Instant::now();
        let time = now - std::mem::replace(&mut self.since, now);
        match self.report.timings.iter_mut().find(|(name, _)| *name == pass) {
            Some((_, total)) => *total += time,
            None => self.report.timings.push((pass, time)),
        }
    }

    /// The verifier, and the form that the pass has left.
    fn verify_after(&mut self, pass: &Pass) -> CodegenResult<()> {
        self.ctx.verify(self.cx.isa).map_err(|errors| blame(pass, &errors))?;
        self.verify_form(pass, self.cx.form)
    }

    /// That all loops are in this form, which `pass` needs or leaves.
    fn verify_form(&mut self, pass: &Pass, form: Form) -> CodegenResult<()> {
        let forest = self.cx.forest(self.ctx);
        canon::check(self.ctx, &forest, form)
            .map_err(|what| CodegenError::Unsupported(format!("{}: not in {form:?} form: {what}", pass.name)))
    }
}

/// Replaces all aliases, if there are any: `resolve_all_aliases` looks at each instruction for them.
fn resolve_aliases(func: &mut Function) {
    // What was resolved before is an alias of nothing.
    let is_alias =
        |value| func.dfg.value_alias_dest_for_serialization(value).is_some_and(|of| func.dfg.value_is_valid(of));
    if (0..func.dfg.num_values()).map(Value::new).any(is_alias) {
        func.dfg.resolve_all_aliases();
    }
}

/// Verifier errors with the name of the pass that caused them.
fn blame(pass: &Pass, errors: &VerifierErrors) -> CodegenError {
    let mut errors = errors.clone();
    for error in &mut errors.0 {
        error.message = format!("after {}: {}", pass.name, error.message);
    }
    CodegenError::Verifier(errors)
}

/// Makes the flow graph and the dominator tree, as far as they are missing, and the loops: the egraph pass leaves those from before it, which are valid
/// only if there were none.
pub(crate) fn make_valid(ctx: &mut Context) {
    if !ctx.cfg.is_valid() || !ctx.domtree.is_valid() {
        ctx.flowgraph();
    }
    if !ctx.loop_analysis.is_valid() || ctx.loop_analysis.loops().next().is_some() {
        ctx.compute_loop_analysis();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_respect_the_order() {
        let mut names: Vec<_> = runs().map(|pass| pass.name).collect();
        // `ORDER` speaks of the run for all loops, not of the one before for loops that poll.
        let early = names.iter().position(|&name| name == version::OF_POLLING.name).expect("it runs twice");
        names.remove(early);
        for (before, after, why) in ORDER {
            let position = |name| names.iter().position(|n| n == name).expect("ORDER names known passes");
            assert!(position(before) < position(after), "{before} before {after}: {why}");
        }
    }
}
