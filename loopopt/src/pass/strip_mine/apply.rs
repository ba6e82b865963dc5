//! Takes the polls out of the inner loop.

use super::{Plan, Strip};
use crate::analysis::cfg::edges::{Edge, count_uses, edges_from};
use crate::analysis::memory::enough::Enough;
use crate::analysis::memory::fuel::Fuel;
use crate::analysis::memory::polls::PollKind;
use crate::claim::{Claim, is_marked};
use crate::edit::at;
use crate::edit::cfg::split_edges::{append_arg, retarget, set_edge};
use crate::edit::inst::clone::{Copies, clone_blocks, repeat_before};
use crate::edit::inst::labels::copy_labels;
use crate::edit::inst::rename::{rename_in, rename_uses};
use crate::edit::materialize::assertion::{assert_takes, assert_truth};
use crate::edit::materialize::dce::remove_unused;
use crate::fault::fault;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, InstBuilder, SourceLoc, Value, ValueDef, types};

/// Strip-mines the loop of `plan`. Returns the header of the inner loop, and the copy of the loop if there is one.
pub(super) fn apply(func: &mut Function, plan: &Plan) -> (Block, Option<Copies>) {
    let body = plan.polls.body;
    let srcloc = func.srcloc(plan.polls.all[0].usual.branch);
    for &block in &plan.polls.rare {
        func.layout.set_cold(block);
    }
    let slow = (!plan.copied.is_empty()).then(|| leave_by_rare_edges(func, plan));
    leave_out_inner_polls(func, plan);
    let strip = func.dfg.make_block();
    let first = func.layout.first_inst(body).expect("a block has a terminator");
    func.layout.split_block(strip, first);

    let mut new = FxHashMap::<Value, Value>::default();
    let passed = params(func, plan);
    for &value in &passed {
        let ty = func.dfg.value_type(value);
        let param = func.dfg.append_block_param(strip, ty);
        copy_labels(func, value, param);
        new.insert(value, param);
    }
    repeat(func, plan, first, &mut new);
    // What followed the polls in their last block is in the strip now.
    let iteration = plan.body.iter().map(|&block| if block == body { strip } else { block });
    rename_in(func, iteration, &new);

    let mut ends = Ends { func, plan, srcloc, strip };
    let count = ends.begin(&passed, slow.as_ref().map(|slow| slow.block(plan.header())));
    ends.finish(&passed, count);
    (strip, slow)
}

/// The conditions of the polls of inner loops, and what they load, which does not trap.
pub(super) fn questions_inside(func: &Function, plans: &[Plan]) -> (Vec<Value>, Vec<Inst>) {
    let inner = || plans.iter().flat_map(|plan| &plan.inner);
    let branches = inner().flat_map(|polls| &polls.all).map(|poll| poll.usual.branch);
    let conditions = branches.map(|branch| func.dfg.inst_args(branch)[0]).collect();
    (conditions, inner().flat_map(|polls| &polls.loads).copied().collect())
}

/// Removes what the polls of inner loops have loaded and computed, if it is used no more.
pub(super) fn remove_questions(func: &mut Function, (conditions, loads): (Vec<Value>, Vec<Inst>)) {
    remove_unused(func, conditions);
    let uses = count_uses(func);
    for load in loads {
        let is_unused = func.dfg.inst_results(load).iter().all(|&result| uses[result] == 0);
        if is_unused && func.layout.inst_block(load).is_some() {
            func.layout.remove_inst(load);
        }
    }
}

/// Lets the polls of inner loops take their usual edges.
fn leave_out_inner_polls(func: &mut Function, plan: &Plan) {
    for poll in plan.inner.iter().flat_map(|polls| &polls.all) {
        let usual = poll.usual;
        if let PollKind::Fuel(..) = poll.kind {
            assert_takes(func, usual.branch, Claim::BranchTaken, usual.slot);
        }
        let (target, args) = (usual.target(func), usual.args(func).collect::<Vec<_>>());
        func.replace(usual.branch).jump(target, &args);
    }
}

/// Lets the loop be entered once more, as it was, where a rare edge is taken. For a loop of strips, it is one iteration, which comes back to the polls.
fn leave_by_rare_edges(func: &mut Function, plan: &Plan) -> Copies {
    let header = plan.header();
    let copies = clone_blocks(func, &plan.copied);
    let slow = copies.block(header);
    if let Strip::Counted { .. } = plan.strip {
        let branch =
            func.layout.last_inst(copies.block(plan.back_edge.source(func))).expect("a block has a terminator");
        retarget(func, Edge { branch, ..plan.back_edge }, header);
    }
    plan.copied.iter().for_each(|&block| func.layout.set_cold(copies.block(block)));
    let args: Vec<_> = func.dfg.block_params(header).iter().copied().map(BlockArg::Value).collect();
    for poll in &plan.polls.all {
        let rare = Edge { slot: 1 - poll.usual.slot, ..poll.usual };
        let landing = func.dfg.make_block();
        func.layout.insert_block(landing, slow);
        func.layout.set_cold(landing);
        let srcloc = func.srcloc(rare.branch);
        FuncCursor::new(func).at_bottom(landing).with_srcloc(srcloc).ins().jump(slow, &args);
        set_edge(func, rare, landing, &[]);
    }
    copies
}

/// Makes of `jump`, which enters the strip, a branch: to the loop as it was unless there is as much fuel as is `needed`.
fn enter_if_there_is_fuel(func: &mut Function, plan: &Plan, jump: Inst, (fuel, needed, slow): (Fuel, u64, Block)) {
    let args: Vec<_> = func.dfg.block_params(plan.header()).iter().copied().map(BlockArg::Value).collect();
    let entered = Edge { branch: jump, slot: 0 };
    let (strip, passed) = (entered.target(func), entered.args(func).collect::<Vec<_>>());
    let mut cursor = at(func, jump);
    let fits = is_enough(&mut cursor, (fuel.left, fuel.enough), needed);
    let rest = cursor.func.dfg.make_block();
    cursor.func.layout.insert_block(rest, slow);
    cursor.func.layout.set_cold(rest);
    func.replace(jump).brif(fits, strip, &passed, rest, &[]);
    FuncCursor::new(func).at_bottom(rest).ins().jump(slow, &args);
}

/// Says how many iterations a strip may have by the flags: `most`, or one if a rare edge was taken, be it that of a poll for fuel: what that leads to
/// may set a flag, or change what the next poll compares it with. So a flag that stays set is found set as often as the program polls. That of a poll
/// before the first poll of a flag counts as well: this one may compare with what there was before.
fn count_by_flags(func: &mut Function, plan: &Plan, most: u32) -> Value {
    let constant = |func: &mut Function, block: Block, number: u32| {
        let before = func.layout.last_inst(block).expect("a block has a terminator");
        at(func, before).ins().iconst(types::I32, i64::from(number))
    };
    let mut count = constant(func, plan.header(), most);
    if !plan.inner.is_empty() {
        // After a rare edge, the iteration runs as it was.
        return count;
    }
    for poll in &plan.polls.all {
        let next = poll.usual.target(func);
        append_arg(func, poll.usual, count);
        for &block in &plan.polls.rare {
            let edges: Vec<_> = edges_from(func, block).filter(|edge| edge.target(func) == next).collect();
            for edge in edges {
                let again = if fault!(SetFlagForgotten) { most } else { 1 };
                let one = constant(func, block, again);
                append_arg(func, edge, one);
            }
        }
        count = func.dfg.append_block_param(next, types::I32);
    }
    count
}

/// What the iteration uses of the parameters of the header and of the blocks that usual edges enter.
fn params(func: &Function, plan: &Plan) -> Vec<Value> {
    let entered = plan.polls.all.iter().map(|poll| poll.usual.target(func));
    let blocks = [plan.header()].into_iter().chain(entered);
    let all = blocks.flat_map(|block| func.dfg.block_params(block).iter().copied());
    all.filter(|value| plan.used.contains(value)).collect()
}

/// Computes before `before` what an iteration uses of what the polls compute.
fn repeat(func: &mut Function, plan: &Plan, before: Inst, new: &mut FxHashMap<Value, Value>) {
    let blocks = plan.polls.all.iter().map(|poll| poll.block);
    let insts: Vec<Inst> = blocks.flat_map(|block| func.layout.block_insts(block)).collect();
    for inst in insts {
        let results = func.dfg.inst_results(inst);
        if !results.iter().any(|result| plan.used.contains(result)) {
            continue;
        }
        let olds = results.to_vec();
        let copy = func.dfg.clone_inst(inst);
        func.layout.insert_inst(copy, before);
        func.set_srcloc(copy, func.srcloc(inst));
        rename_uses(func, copy, |value| new.get(&value).copied().unwrap_or(value));
        for (index, old) in olds.into_iter().enumerate() {
            new.insert(old, func.dfg.inst_results(copy)[index]);
        }
    }
}

/// Where a strip begins and ends.
struct Ends<'a> {
    func: &'a mut Function,
    plan: &'a Plan,
    srcloc: SourceLoc,
    strip: Block,
}

impl Ends<'_> {
    /// Enters the strip. Returns its counter, if it has one.
    fn begin(&mut self, passed: &[Value], slow: Option<Block>) -> Option<Value> {
        let Self { func, plan, srcloc, strip } = self;
        let by_flags = match plan.strip {
            Strip::Counted { most: Some(most), .. } => Some(count_by_flags(func, plan, most)),
            _ => None,
        };
        let is_asserted = is_marked(func);
        let mut cursor = FuncCursor::new(func).at_bottom(plan.polls.body).with_srcloc(*srcloc);
        let count = match plan.strip {
            Strip::Whole { most, .. } => is_asserted.then(|| cursor.ins().iconst(types::I64, most.cast_signed())),
            Strip::Counted { fuel: Some(fuel), .. } => {
                let fits = iterations_that_fit(&mut cursor, fuel, polls_inside(plan));
                Some(match by_flags {
                    Some(by_flags) => {
                        let by_flags = cursor.ins().uextend(types::I64, by_flags);
                        cursor.ins().umin(fits, by_flags)
                    }
                    None => fits,
                })
            }
            Strip::Counted { fuel: None, .. } => by_flags,
        };
        let mut args: Vec<_> = passed.iter().copied().map(BlockArg::Value).collect();
        args.extend(count.map(BlockArg::Value));
        let jump = cursor.ins().jump(*strip, &args);
        if let Some(slow) = slow
            && let Some((fuel, needed)) = needed(plan)
        {
            enter_if_there_is_fuel(func, plan, jump, (fuel, needed, slow));
        }
        count.map(|count| {
            let ty = func.dfg.value_type(count);
            func.dfg.append_block_param(*strip, ty)
        })
    }

    /// Ends an iteration: the next one is in the strip as long as `count` says so.
    fn finish(&mut self, passed: &[Value], count: Option<Value>) {
        let Self { func, plan, srcloc, strip } = self;
        let back_edge = plan.back_edge;
        let latch = back_edge.source(func);
        let given: Vec<_> = back_edge.args(func).filter_map(|arg| arg.as_value()).collect();
        let header_args: Vec<_> = given.iter().copied().map(BlockArg::Value).collect();
        let test = func.dfg.make_block();
        func.layout.insert_block_after(test, latch);
        set_edge(func, back_edge, test, &[]);
        let branch = FuncCursor::new(func).at_bottom(test).with_srcloc(*srcloc).ins().jump(*strip, &[]);
        let mut args: Vec<_> = passed.iter().map(|&value| next(func, plan, (value, &given), branch)).collect();
        if let Some(count) = count {
            let mut cursor = at(func, branch);
            let ty = cursor.func.dfg.value_type(count);
            let one = cursor.ins().iconst(ty, 1);
            let less = cursor.ins().isub(count, one);
            args.push(less);
            if let Strip::Whole { .. } = plan.strip {
                assert_truth(func, branch, Claim::TripCount, (less, true));
            } else {
                assert_fuel(func, plan, (&given, branch), less);
                func.replace(branch).brif(less, *strip, &[], plan.header(), &header_args);
            }
        }
        let args: Vec<_> = args.into_iter().map(BlockArg::Value).collect();
        set_edge(func, Edge { branch, slot: 0 }, *strip, &args);
    }
}

/// Whether iterations poll for fuel in inner loops too, so that there has to be fuel for all of the last one.
fn polls_inside(plan: &Plan) -> bool {
    !plan.inner.is_empty()
}

/// The fuel that there has to be for the strip, if it is not asked for elsewhere.
fn needed(plan: &Plan) -> Option<(Fuel, u64)> {
    let one_less = u64::from(fault!(OneIterationTooMany));
    match plan.strip {
        Strip::Whole { most, fuel: Some(fuel) } => {
            let iterations = if polls_inside(plan) { most } else { most - 1 };
            Some((fuel, iterations.saturating_sub(one_less).saturating_mul(fuel.most)))
        }
        // One iteration, as they are counted by `iterations_that_fit`.
        Strip::Counted { fuel: Some(fuel), .. } if polls_inside(plan) => Some((fuel, fuel.most.next_power_of_two())),
        _ => None,
    }
}

/// Whether `number` is enough even if `more` is taken of it.
fn is_enough(cursor: &mut FuncCursor<'_>, (number, enough): (Value, Enough), more: u64) -> Value {
    let (cond, bound) = enough.test(more);
    let bound = cursor.ins().iconst(types::I64, bound);
    cursor.ins().icmp(cond, number, bound)
}

/// How much may be taken of the fuel so that it is enough, nothing if it is not.
fn room(cursor: &mut FuncCursor<'_>, fuel: Fuel) -> Value {
    let number = |cursor: &mut FuncCursor<'_>, number: u64| cursor.ins().iconst(types::I64, number.cast_signed());
    match fuel.enough {
        Enough::BelowZero => {
            // -1 - left
            let room = cursor.ins().bnot(fuel.left);
            let zero = number(cursor, 0);
            cursor.ins().smax(room, zero)
        }
        Enough::AtLeast { least, is_signed } => {
            let at_least = number(cursor, least);
            let left = match is_signed {
                true => cursor.ins().smax(fuel.left, at_least),
                false => cursor.ins().umax(fuel.left, at_least),
            };
            if least == 0 || fault!(LeastForgotten) { left } else { cursor.ins().isub(left, at_least) }
        }
    }
}

/// How many iterations begin while there is enough fuel, one at least; with inner polls, how many end while there is, of which there may be none.
fn iterations_that_fit(cursor: &mut FuncCursor<'_>, fuel: Fuel, polls_inside: bool) -> Value {
    let number = |cursor: &mut FuncCursor<'_>, number: u64| cursor.ins().iconst(types::I64, number.cast_signed());
    let room = room(cursor, fuel);
    // The next power of two costs no division, and a strip is at least half as long as it could be.
    let by = number(cursor, fuel.most.next_power_of_two().trailing_zeros().into());
    let fits = cursor.ins().ushr(room, by);
    let more = u64::from(!polls_inside) + u64::from(fault!(OneIterationTooMany));
    if more == 0 {
        return fits;
    }
    let more = number(cursor, more);
    cursor.ins().iadd(fits, more)
}

/// What the polls of the next iteration would get or pass for `value`, if the back edge passes `given` and the usual edges are taken.
fn next(func: &mut Function, plan: &Plan, (value, given): (Value, &[Value]), before: Inst) -> Value {
    let value = plan.polls.resolve(func, value);
    match func.dfg.value_def(value) {
        ValueDef::Param(block, index) if block == plan.header() => given[index],
        ValueDef::Result(inst, _)
            if func
                .layout
                .inst_block(inst)
                .is_some_and(|home| plan.polls.all.iter().any(|poll| poll.block == home)) =>
        {
            repeat_before(func, inst, before)
        }
        _ => value,
    }
}

/// Asserts that the polls of fuel that are left out would find that there is some: placed before `before`, unless the strip ends because
/// `less` is 0.
fn assert_fuel(func: &mut Function, plan: &Plan, (given, before): (&[Value], Inst), less: Value) {
    if !is_marked(func) {
        return;
    }
    for poll in &plan.polls.all {
        let PollKind::Fuel(param, enough) = poll.kind else { continue };
        let fuel = next(func, plan, (param, given), before);
        let mut cursor = at(func, before);
        let is_left = is_enough(&mut cursor, (fuel, enough), 0);
        let ends = cursor.ins().icmp_imm_u(IntCC::Equal, less, 0);
        let either = cursor.ins().bor(is_left, ends);
        assert_truth(func, before, Claim::BranchTaken, (either, true));
    }
}
