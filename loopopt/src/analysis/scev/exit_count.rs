//! Exit counts: how many times the back edge of a loop is taken each time that the loop is entered.
//!
//! Two ways lead to an answer.
//!
//! * [`simulate`] runs the first iterations with what is known of the header's parameters, as far as they follow from
//!   constants. It takes any shape of test, several tests, and parameters that depend on each other, but only for counts
//!   as small as it is told.
//! * The formula: a test that each iteration passes, that compares an induction variable with a constant, or with anything.
//!   Integers wrap, so the variable is followed around the circle ([`crate::analysis::scev::wrap_arc`]). `i < n` says something without
//!   any knowledge of `n`: no `i` is below the least number or above the largest, so the loop ends there at the latest.
//!
//! A loop may end earlier by a trap or in a call that does not return; nothing here says that it does not.

use crate::analysis::cfg::edges::{Edge, copied_size, edges_from};
use crate::analysis::cfg::jumps::leads_to_failure;
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::scev::comparison::Comparison;
use crate::analysis::scev::const_eval::{Evaluator, is_foldable};
use crate::analysis::scev::exit_test::{CountedTest, ExitTest};
use crate::analysis::scev::linear_expr::known;
use crate::analysis::scev::recurrence::Recurrences;
use crate::analysis::scev::view::View;
use crate::analysis::scev::wrap_arc::{Arc, Progression};
use cranelift_codegen::Context;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value, ValueDef};
use std::collections::BTreeMap;

/// Values that a simulation looks at before it gives up. 65,536: some for each instruction of the largest loop that is worth
/// it, in each iteration.
const BUDGET: usize = 1 << 16;

/// How many times a back edge is taken before the loop is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TripCount {
    /// This often, unless something traps or does not return.
    Exactly(u128),
    /// Not more often than this.
    AtMost(u128),
    /// Nothing is known.
    Unknown,
}

impl TripCount {
    /// The most that it can be, if anything is known.
    pub fn most(self) -> Option<u128> {
        match self {
            Self::Exactly(count) | Self::AtMost(count) => Some(count),
            Self::Unknown => None,
        }
    }

    /// The most iterations, if anything is known: one more than the back edge is taken. 2^128 of them, which a counter of 128 bits can
    /// do, are one less here.
    pub fn most_iterations(self) -> Option<u128> {
        self.most().map(|around| around.saturating_add(1))
    }
}

/// How often the back edge is taken. Up to `simulated` iterations are tried out.
pub fn trip_count(ctx: &Context, forest: &LoopForest, lp: Loop, simulated: usize) -> TripCount {
    simulate(ctx, forest, lp, simulated).map_or_else(|| bound(ctx, forest, lp), |simulation| simulation.count)
}

/// What is known of a loop with few iterations.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// How often the back edge is taken.
    pub count: TripCount,
    /// For each iteration, one more than the back edge is taken: the branches that take one of their edges only, and which.
    pub decided: Vec<BTreeMap<Inst, usize>>,
    /// Instructions of all iterations that can be reached, have to be done and are not known to give a constant.
    pub insts: usize,
}

/// Runs the loop until its back edge cannot be reached. None if that does not happen within `most` iterations, or if nothing
/// is known of the tests by which the first iteration may leave.
pub fn simulate(ctx: &Context, forest: &LoopForest, lp: Loop, most: usize) -> Option<Simulation> {
    let func = &ctx.func;
    let data = forest.data(lp);
    let ([entry], [back_edge]) = (&data.entries[..], &data.back_edges[..]) else { return None };
    if data.exits.iter().all(|exit| is_unpredictable(func, exit.branch)) {
        return None;
    }
    let mut evaluator = Evaluator::new(func, &ctx.cfg, forest, BUDGET).inside(lp);
    let entered = entered(func, *entry, &mut evaluator)?;
    // Few loops end: what remains of the iterations is counted if this one does.
    run(ctx, (forest, lp), (entered.clone(), *back_edge, most), (&mut evaluator, false))?;
    run(ctx, (forest, lp), (entered, *back_edge, most), (&mut evaluator, true))
}

/// Which edge the branch at the end of the header takes in the first iteration, if that is known.
pub fn first_edge(ctx: &Context, forest: &LoopForest, lp: Loop) -> Option<usize> {
    let func = &ctx.func;
    let data = forest.data(lp);
    let [entry] = data.entries[..] else { return None };
    let branch = func.layout.last_inst(data.header).filter(|&branch| !is_unpredictable(func, branch))?;
    let mut evaluator = Evaluator::new(func, &ctx.cfg, forest, BUDGET).inside(lp);
    let entered = entered(func, entry, &mut evaluator)?;
    assume_params(func, data.header, &entered, &mut evaluator);
    evaluator.taken(branch)
}

/// What is known of the parameters of a header by `entry`. None if that is nothing.
fn entered(func: &Function, entry: Edge, evaluator: &mut Evaluator<'_>) -> Option<Vec<Option<u128>>> {
    let constants = entry.args(func).filter_map(|arg| arg.as_value());
    constants.for_each(|value| evaluator.assume_constant(value));
    let state = arguments(func, entry, evaluator);
    state.iter().any(Option::is_some).then_some(state)
}

fn assume_params(func: &Function, header: Block, state: &[Option<u128>], evaluator: &mut Evaluator<'_>) {
    for (&param, &what) in func.dfg.block_params(header).iter().zip(state) {
        evaluator.assume(param, what);
    }
}

/// Runs the loop from `state` on. What remains of its iterations is counted if `counts`.
fn run(
    ctx: &Context,
    (forest, lp): (&LoopForest, Loop),
    (mut state, back_edge, most): (Vec<Option<u128>>, Edge, usize),
    (evaluator, counts): (&mut Evaluator<'_>, bool),
) -> Option<Simulation> {
    let func = &ctx.func;
    let data = forest.data(lp);
    let mut simulation = Simulation { count: TripCount::Unknown, decided: Vec::new(), insts: 0 };
    let mut may_leave = false;
    for around in 0..most {
        evaluator.forget_unless(|value| !forest.defines(func, lp, value));
        assume_params(func, data.header, &state, evaluator);
        if around == 0 && data.exits.iter().all(|exit| evaluator.taken(exit.branch).is_none()) {
            return None;
        }
        let iteration = Iteration::run(func, forest, lp, (evaluator, counts));
        simulation.decided.push(iteration.decided);
        simulation.insts += iteration.insts;
        if !iteration.goes_on {
            let count = around as u128;
            simulation.count = if may_leave { TripCount::AtMost(count) } else { TripCount::Exactly(count) };
            return Some(simulation);
        }
        may_leave |= iteration.leaves;
        let next = arguments(func, back_edge, evaluator);
        if next == state {
            return None;
        }
        state = next;
    }
    None
}

/// Whether the edge that `branch` takes is not known to any evaluator that knows only parameters of blocks: a look that saves
/// one most of its work, since most loops end by a comparison with what the function was given or has loaded.
fn is_unpredictable(func: &Function, branch: Inst) -> bool {
    match func.dfg.insts[branch] {
        InstructionData::Brif { arg, .. } | InstructionData::BranchTable { arg, .. } => is_unknowable(func, arg, 2),
        _ => true,
    }
}

/// Whether `value` is none that can be evaluated, or follows from one, `depth` instructions away or nearer.
fn is_unknowable(func: &Function, value: Value, depth: usize) -> bool {
    match func.dfg.value_def(value) {
        ValueDef::Param(block, _) => Some(block) == func.layout.entry_block(),
        ValueDef::Result(inst, _) if is_foldable(func, inst) => {
            let needs_all = func.dfg.insts[inst].opcode() != Opcode::Select;
            let is_lost = |&arg: &Value| is_unknowable(func, arg, depth - 1);
            depth > 0 && needs_all && func.dfg.inst_args(inst).iter().any(is_lost)
        }
        ValueDef::Result(..) | ValueDef::Union(..) => true,
    }
}

/// What is known of the arguments of an edge.
fn arguments(func: &Function, edge: Edge, evaluator: &mut Evaluator<'_>) -> Vec<Option<u128>> {
    edge.args(func).map(|arg| evaluator.value(arg.as_value()?)).collect()
}

/// One iteration, as far as it is known.
#[derive(Default)]
struct Iteration {
    decided: BTreeMap<Inst, usize>,
    insts: usize,
    /// The back edge may be taken.
    goes_on: bool,
    /// An exit edge may be taken.
    leaves: bool,
}

impl Iteration {
    /// Walks from the header to all blocks that can be reached.
    fn run(func: &Function, forest: &LoopForest, lp: Loop, (evaluator, counts): (&mut Evaluator<'_>, bool)) -> Self {
        let header = forest.data(lp).header;
        let mut iteration = Self::default();
        let mut reached = EntitySet::with_capacity(func.dfg.num_blocks());
        reached.insert(header);
        let mut stack = vec![header];
        while let Some(block) = stack.pop() {
            if counts {
                iteration.count_insts(func, block, evaluator);
            }
            let taken = func.layout.last_inst(block).and_then(|branch| Some((branch, evaluator.taken(branch)?)));
            iteration.decided.extend(taken);
            for edge in edges_from(func, block).filter(|edge| taken.is_none_or(|(_, slot)| edge.slot == slot)) {
                let target = edge.target(func);
                if target == header {
                    iteration.goes_on = true;
                } else if !forest.contains(lp, target) {
                    iteration.leaves = true;
                } else if reached.insert(target) {
                    stack.push(target);
                }
            }
        }
        iteration
    }

    /// Counts what remains of `block`: neither constants, nor jumps, nor branches that are decided.
    fn count_insts(&mut self, func: &Function, block: Block, evaluator: &mut Evaluator<'_>) {
        for inst in func.layout.block_insts(block) {
            let remains = match func.dfg.inst_results(inst) {
                [result] => evaluator.value(*result).is_none(),
                _ => func.dfg.insts[inst].opcode() != Opcode::Jump && evaluator.taken(inst).is_none(),
            };
            self.insts += if remains { copied_size(func, inst) } else { 0 };
        }
    }
}

/// How often the back edge is taken on average, if the loop counts up to a constant from a number that is not known, or takes a remainder: an
/// [estimate](crate::analysis::scev::exit_test::CountedTest::usual_steps), by which nothing but cost may be judged. What leads to failure, such as fuel that ends,
/// is not how loops end.
pub fn estimate(view: View<'_>, lp: Loop) -> Option<u64> {
    let func = view.func();
    let recurrences = Recurrences::with_constant_steps(view, lp);
    let usual = ExitTest::all(view, lp).filter(|test| !leads_to_failure(func, test.exit.target(func)));
    let tests = usual.filter_map(|test| test.counted(view, lp, &recurrences));
    let steps = |test: CountedTest| {
        let remainder = || test.remainder_by().filter(|&by| !moves_by(view, lp, (&recurrences, by)));
        test.usual_steps().or_else(|| remainder().map(|_| 1))
    };
    tests.filter_map(steps).min()
}

/// Whether the loop accesses memory at an address that advances by a multiple of `by`: it works on so many elements at a time, and what is left of them is counted down, as in
/// `while (n >= 8) { … p[7] …; p += 8; n -= 8; }`.
fn moves_by(view: View<'_>, lp: Loop, (recurrences, by): (&Recurrences, u64)) -> bool {
    let func = view.func();
    let mut insts = view.forest.blocks(lp).iter().flat_map(|&block| func.layout.block_insts(block));
    insts.any(|inst| {
        let opcode = func.dfg.insts[inst].opcode();
        // The address comes last.
        let address = func.dfg.inst_args(inst).last().filter(|_| opcode.can_load() || opcode.can_store());
        let stride = address.and_then(|&address| recurrences.stride(view, &view.sum(address)?));
        stride.is_some_and(|stride| stride.unsigned_abs() % by == 0)
    })
}

/// What the tests of the loop say by formula.
pub fn bound(ctx: &Context, forest: &LoopForest, lp: Loop) -> TripCount {
    let view = View { ctx, forest };
    let recurrences = Recurrences::with_constant_steps(view, lp);
    match recurrences.inductions().is_empty() {
        true => TripCount::Unknown,
        false => bound_by(view, lp, &ExitTest::all(view, lp).collect::<Vec<_>>(), &recurrences),
    }
}

/// The same, where the tests that each iteration makes are known, and what they may test.
pub(in crate::analysis) fn bound_by(
    view: View<'_>,
    lp: Loop,
    tests: &[ExitTest],
    recurrences: &Recurrences,
) -> TripCount {
    let mut least = TripCount::Unknown;
    for test in tests {
        let Some((steps, is_exact)) = steps_to_exit(view, recurrences, test.comparison) else { continue };
        if least.most().is_none_or(|most| steps < most) {
            let is_exact = is_exact && view.forest.data(lp).exits.len() == 1;
            least = if is_exact { TripCount::Exactly(steps) } else { TripCount::AtMost(steps) };
        }
    }
    least
}

/// After how many iterations the comparison, which each iteration makes, is false at the latest, and whether it is true until then.
fn steps_to_exit(view: View<'_>, recurrences: &Recurrences, comparison: Comparison) -> Option<(u128, bool)> {
    let Tested { cond, numbers, bound } = Tested::of(view, recurrences, comparison)?;
    let arc = match bound {
        Some(bound) => Arc::of_condition(cond.complement(), bound, numbers.ty),
        None => Arc::of_any_bound(cond.complement(), numbers.ty),
    };
    Some((numbers.first_in(arc?)?, bound.is_some()))
}

/// The comparison of an add-recurrence that starts at a constant with something.
#[derive(Clone, Copy, Debug)]
pub struct Tested {
    /// The condition, with the recurrence on the left.
    pub cond: IntCC,
    /// What the recurrence is in each iteration.
    pub numbers: Progression,
    /// What it is compared with, if that is a constant.
    pub bound: Option<u128>,
}

impl Tested {
    /// What `comparison`, made in the loop, compares.
    pub fn of(view: View<'_>, recurrences: &Recurrences, comparison: Comparison) -> Option<Self> {
        comparison.sides().find_map(|Comparison { cond, left, right }| {
            let numbers = recurrences.progression(view, left)?;
            let bound = right.map_or(Some(0), |right| known(view.func(), &view.ctx.cfg, right));
            Some(Self { cond, numbers, bound })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{block, context, forest};

    fn count_of(text: &str) -> TripCount {
        let ctx = context(text);
        let forest = forest(&ctx);
        let lp = forest.loop_of_header(block(1)).expect("a loop of block1");
        let by_formula = bound(&ctx, &forest, lp);
        let count = trip_count(&ctx, &forest, lp, 16);
        assert!(by_formula == TripCount::Unknown || count == by_formula, "{count:?}, {by_formula:?}");
        count
    }

    /// A loop that counts from the value `from` by `step` and goes on while `cond` holds between the next value and `bound`. `v0` is `start`, and `v9` is not known.
    fn counting(ty: &str, from: &str, [start, step, bound]: [&str; 3], cond: &str) -> String {
        format!(
            "function %f({ty}) {{
            block0(v9: {ty}):
                v0 = iconst.{ty} {start}
                v4 = iconst.{ty} {step}
                v5 = iconst.{ty} {bound}
                jump block1({from})
            block1(v1: {ty}):
                v2 = iadd v1, v4
                v3 = icmp {cond} v2, v5
                brif v3, block1(v2), block2
            block2:
                return
            }}"
        )
    }

    fn counted(ty: &str, numbers: [&str; 3], cond: &str) -> TripCount {
        count_of(&counting(ty, "v0", numbers, cond))
    }

    #[test]
    fn constants() {
        assert_eq!(counted("i64", ["0", "1", "100"], "slt"), TripCount::Exactly(99));
        assert_eq!(counted("i64", ["0", "1", "8"], "ult"), TripCount::Exactly(7));
        assert_eq!(counted("i32", ["10", "-1", "0"], "ne"), TripCount::Exactly(9));
        assert_eq!(counted("i8", ["0", "1", "-1"], "ule"), TripCount::Unknown, "it never ends");
        assert_eq!(counted("i8", ["0", "2", "127"], "slt"), TripCount::Unknown, "it never ends");
        assert_eq!(counted("i8", ["0", "2", "125"], "sle"), TripCount::Exactly(62));
        assert_eq!(counted("i16", ["0", "3", "7"], "ne"), TripCount::Unknown, "it passes the end of the circle");
        assert_eq!(counted("i8", ["0", "51", "4"], "ne"), TripCount::Unknown, "after 20 iterations");
        assert_eq!(counted("i8", ["0", "85", "-2"], "ne"), TripCount::Exactly(5), "tried out");
    }

    #[test]
    fn bounds_that_are_not_known() {
        let count = count_of(
            "function %f(i32) {
            block0(v0: i32):
                v1 = iconst.i32 -5
                v2 = iconst.i32 1
                jump block1(v1)
            block1(v3: i32):
                v4 = icmp sgt v0, v3
                brif v4, block2, block3
            block2:
                v5 = iadd v3, v2
                jump block1(v5)
            block3:
                return
            }",
        );
        assert_eq!(count, TripCount::AtMost((1 << 31) - 1 + 5));
    }

    #[test]
    fn as_many_iterations_as_fit() {
        assert_eq!(TripCount::Exactly(7).most_iterations(), Some(8));
        assert_eq!(TripCount::AtMost(u128::MAX).most_iterations(), Some(u128::MAX));
        assert_eq!(TripCount::Unknown.most_iterations(), None);
    }

    #[test]
    fn estimates() {
        let estimated = |ty: &str, [step, bound]: [&str; 2], cond: &str| {
            let ctx = context(&counting(ty, "v9", ["0", step, bound], cond));
            let forest = forest(&ctx);
            let lp = forest.loop_of_header(block(1)).expect("a loop of block1");
            estimate(View { ctx: &ctx, forest: &forest }, lp)
        };
        assert_eq!(estimated("i32", ["8", "24"], "sle"), Some(2));
        assert_eq!(estimated("i8", ["1", "127"], "ult"), Some(64));
        assert_eq!(estimated("i64", ["1", "9"], "ne"), Some(5));
        assert_eq!(estimated("i64", ["1", "0"], "slt"), Some(0));
        assert_eq!(estimated("i32", ["-1", "24"], "sgt"), None, "it counts down from anywhere");
        assert_eq!(estimated("i32", ["1", "-24"], "slt"), None, "it starts below zero");
        assert_eq!(estimated("i32", ["1", "24"], "sgt"), None, "it ends by a wrap");
        assert_eq!(estimated("i32", ["-5", "5"], "sge"), Some(1), "a remainder");
        assert_eq!(estimated("i64", ["-8", "15"], "ugt"), Some(1));
        assert_eq!(estimated("i64", ["-8", "18"], "ugt"), None, "it ends far from what it takes away");
        assert_eq!(estimated("i32", ["-1", "1"], "sge"), None, "it counts down one by one");
    }

    #[test]
    fn several_exits() {
        let text = |first: &str| {
            format!(
                "function %f(i64) -> i64 {{
            block0(v0: i64):
                v1 = iconst.i64 0
                v2 = iconst.i64 1
                jump block1(v1, v2)
            block1(v3: i64, v6: i64):
                {first}
            block2:
                v4 = ishl v6, v2
                v5 = icmp ult v4, v7
                brif v5, block1(v3, v4), block3
            block3:
                return v6
            }}"
            )
        };
        let branch = "v7 = iconst.i64 50\nbrif v0, block2, block3";
        assert_eq!(count_of(&text(branch)), TripCount::AtMost(5));
        let decided = "v7 = iconst.i64 50\nv8 = icmp ult v6, v7\nbrif v8, block2, block3";
        assert_eq!(count_of(&text(decided)), TripCount::Exactly(5));
        let always = "v7 = iconst.i64 50\nbrif v3, block3, block2";
        assert_eq!(count_of(&text(always)), TripCount::Exactly(5));
    }

    #[test]
    fn outer_values_do_not_follow_from_inner_ones() {
        // The parameter of block4 is 3 in the first iteration of the outer loop only.
        let ctx = context(
            "function %f(i64) {
            block0(v0: i64):
                v1 = iconst.i64 0
                v2 = iconst.i64 3
                v3 = iconst.i64 1
                jump block4(v2)
            block4(v4: i64):
                jump block1(v1)
            block1(v5: i64):
                v6 = iadd v5, v3
                v7 = icmp ne v6, v4
                brif v7, block1(v6), block2
            block2:
                brif v0, block4(v6), block3
            block3:
                return
            }",
        );
        let forest = forest(&ctx);
        let lp = forest.loop_of_header(block(1)).expect("a loop of block1");
        assert_eq!(trip_count(&ctx, &forest, lp, 16), TripCount::Unknown);
    }
}
