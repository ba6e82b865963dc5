//! A loop for each arm of a branch.

use super::candidates::Other;
use super::{NAME, PASS, Part, Plan};
use crate::analysis::cfg::must_execute::Order;
use crate::claim::Claim;
use crate::edit::copy::copy_iterations::settle;
use crate::edit::inst::clone::{Copies, clone_blocks};
use crate::edit::inst::stand_for::stand_for;
use crate::edit::materialize::assertion::{assert_chooses, assert_equal, assert_takes};
use crate::edit::materialize::dce::remove_all_unused;
use crate::edit::ssa::params::remove_redundant_params;
use crate::fault::fault;
use crate::pass::{Form, PassCx};
use cranelift_codegen::ir::{Block, BlockArg, BlockCall, Function, Inst, InstBuilder, JumpTableData, Value, ValueDef};
use cranelift_codegen::{CodegenResult, Context, FxHashSet};

impl Plan {
    /// Makes the versions. Returns the copies.
    fn apply(&self, func: &mut Function, order: &Order) -> Vec<Copies> {
        if self.parts.len() > 1 {
            self.hoist(func);
        }
        let mut all = Vec::new();
        for part in &self.parts[1..] {
            let blocks: Vec<_> = self.all_blocks.iter().copied().filter(|&block| part.blocks.contains(block)).collect();
            let copies = clone_blocks(func, &order.sorted(&blocks));
            let arm = if fault!(InvertedVersion) { self.parts[0].arm } else { part.arm };
            self.settle(func, &copies, (part, arm));
            all.push(copies);
        }
        self.settle(func, &Copies::default(), (&self.parts[0], self.parts[0].arm));
        if !all.is_empty() {
            self.dispatch(func, &all);
        }
        all
    }

    /// Moves what computes the condition into the preheader.
    fn hoist(&self, func: &mut Function) {
        for &inst in &self.candidate.chain {
            func.layout.remove_inst(inst);
            func.layout.insert_inst(inst, self.entry.branch);
            if fault!(ConditionOfFirstIteration) {
                let operands: Vec<_> = func.dfg.inst_values(inst).map(|value| self.at_entry(func, value)).collect();
                func.dfg.overwrite_inst_values(inst, operands.into_iter());
            }
        }
    }

    /// What a parameter of the header is at first: for a fault, nothing that is right needs it.
    fn at_entry(&self, func: &Function, value: Value) -> Value {
        match func.dfg.value_def(value) {
            ValueDef::Param(block, index) if block == self.header => {
                self.entry.args(func).nth(index).and_then(|arg| arg.as_value()).unwrap_or(value)
            }
            _ => value,
        }
    }

    /// Settles what is decided in one version.
    pub(super) fn settle(&self, func: &mut Function, copies: &Copies, (part, arm): (&Part, usize)) {
        for (&branch, slots) in &self.decision.branches {
            let home = func.layout.inst_block(branch);
            if let Some(home) = home.filter(|&home| part.blocks.contains(home)) {
                let branch = func.layout.last_inst(copies.block(home)).expect("a branch, or its copy");
                match slots[arm] {
                    Some(slot) => {
                        assert_takes(func, branch, Claim::BranchTaken, slot);
                        settle(func, branch, slot);
                    }
                    None => self.leave_other(func, copies, branch),
                }
            }
        }
        for &select in &self.decision.selects {
            let Some(home) = func.layout.inst_block(select) else { continue };
            if part.blocks.contains(home) {
                let result = copies.value(func.dfg.first_result(select));
                let select = func.dfg.value_def(result).inst().expect("a select, or its copy");
                assert_chooses(func, select, arm);
                let arm = func.dfg.inst_args(select)[1 + arm];
                stand_for(func, select, arm);
            }
        }
    }

    /// Lets `branch`, on both sides of a condition, ask for the other one alone.
    fn leave_other(&self, func: &mut Function, copies: &Copies, branch: Inst) {
        let Some(Other { value, .. }) = self.candidate.other else { return };
        let (whole, other) = (func.dfg.inst_args(branch)[0], copies.value(value));
        assert_equal(func, branch, Claim::ConditionKnown, [whole, other]);
        func.dfg.inst_args_mut(branch)[0] = other;
    }

    /// Lets the preheader enter the version of each arm.
    fn dispatch(&self, func: &mut Function, copies: &[Copies]) {
        let args: Vec<BlockArg> = self.entry.args(func).collect();
        let own = std::iter::once(self.header).chain(copies.iter().map(|copy| copy.block(self.header)));
        let header = |arm: usize| {
            let mut versions = self.parts.iter().zip(own.clone());
            versions.find(|(part, _)| part.arm == arm).map(|(_, header)| header).expect("a version for each arm")
        };
        let condition = self.candidate.condition;
        let condition = if fault!(ConditionOfFirstIteration) { self.at_entry(func, condition) } else { condition };
        let jump = self.entry.branch;
        match &self.candidate.table {
            None => {
                func.replace(jump).brif(condition, header(0), &args, header(1), &args);
            }
            Some(arms) => {
                let lists = &mut func.dfg.value_lists;
                let mut calls: Vec<_> =
                    arms.iter().map(|&arm| BlockCall::new(header(arm), args.iter().copied(), lists)).collect();
                if fault!(DefaultWay) {
                    calls[0] = calls[calls.len() - 1].deep_clone(lists);
                }
                let table = func.create_jump_table(JumpTableData::new(calls[0], &calls[1..]));
                func.replace(jump).br_table(condition, table);
            }
        }
        // Cranelift makes a trap of a branch to one, at the location of the branch.
        let srcloc = func.srcloc(self.candidate.inst);
        if func.srcloc(jump) != srcloc {
            func.set_srcloc(jump, srcloc);
        }
    }
}

/// Unswitches the loops of `plans` and removes what cannot be reached any more. Returns the headers of what they have become.
pub(super) fn apply(ctx: &mut Context, cx: &mut PassCx<'_>, plans: &[Plan]) -> CodegenResult<FxHashSet<Block>> {
    let mut touched = FxHashSet::default();
    let order = Order::of(&ctx.func, &ctx.domtree);
    let forest = cx.forest(ctx);
    for plan in plans {
        cx.look_again(ctx, plan.header);
        cx.retract(NAME, plan.header);
        let what = plan.describe(&ctx.func);
        cx.fired(&ctx.func, &PASS, plan.header, what);
        let all = plan.apply(&mut ctx.func, &order);
        for header in plan.inner.iter().map(|&inner| forest.data(inner).header) {
            let holds = |part: &Part| part.blocks.contains(header) && (header != plan.header || part.loops);
            let loops = plan.parts.iter().filter(|part| holds(part)).count();
            (1..loops).for_each(|_| cx.marks.add_version(header));
            all.iter().for_each(|copies| cx.marks.header_moved(header, copies.block(header)));
            touched.insert(header);
            touched.extend(all.iter().map(|copies| copies.block(header)));
        }
    }
    ctx.func.dfg.resolve_all_aliases();
    cx.invalidate_and_prune(ctx)?;
    // A condition that is known leaves parameters that only other arms changed, and what only they needed.
    remove_redundant_params(ctx);
    remove_all_unused(&mut ctx.func);
    cx.keep_form(Form::Any);
    Ok(touched)
}
