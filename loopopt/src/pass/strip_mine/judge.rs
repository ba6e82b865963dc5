//! Whether strips pay.

use super::{Decline, Look, MAX_WHOLE};
use crate::analysis::cfg::edges::{Edge, each_use, edges_from};
use crate::analysis::cfg::jumps::leads_to_failure;
use crate::analysis::facts::known::{Conditions, Place};
use crate::analysis::inst::number::added_constant;
use crate::analysis::memory::enough::Enough;
use crate::analysis::memory::fuel::Fuel;
use crate::analysis::memory::polls::Polls;
use crate::analysis::scev::comparison::Comparison;
use crate::analysis::scev::exit_test::{CountedTest, ExitTest};
use crate::analysis::scev::invariant::invariant_chain;
use crate::analysis::scev::recurrence::Recurrences;
use crate::analysis::scev::view::View;
use crate::options::Options;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Block, Opcode, Value};
use cranelift_codegen::{FxHashMap, FxHashSet};

impl Look<'_> {
    /// (P4) With fuel, nothing says that the loop ends soon.
    pub(super) fn judge_count(&self, bound: Option<u64>, options: &Options) -> Result<(), Decline> {
        let Self { ctx, forest, lp, .. } = *self;
        if let Some(most) = bound.filter(|&bound| bound <= MAX_WHOLE) {
            let min = options.strip_mine_min_whole;
            return if most < min as u64 { Err(Decline::FewIterations { most, min }) } else { Ok(()) };
        }
        let min = options.strip_mine_min_iterations;
        let most = (min as u64).saturating_sub(1);
        let view = View { ctx, forest };
        let [entry] = forest.data(lp).entries[..] else { return Ok(()) };
        let recurrences = Recurrences::of(view, lp);
        let mut conditions = Conditions::new(&ctx.func, &ctx.cfg, &ctx.domtree).with_options(options);
        let mut ends_soon = |test: &CountedTest| {
            let is_order = !matches!(test.cond, IntCC::Equal | IntCC::NotEqual) && test.requires.is_none();
            let last = test.first.plus(&test.distance(), if test.up { most } else { most.wrapping_neg() });
            let place = Place::Before(entry.branch);
            is_order && last.is_some_and(|last| conditions.holds(place, test.cond.complement(), [&last, &test.bound]))
        };
        let mut counted = ExitTest::all(view, lp).filter_map(|test| test.counted(view, lp, &recurrences));
        if counted.any(|test| ends_soon(&test)) { Err(Decline::FewIterations { most, min }) } else { Ok(()) }
    }

    /// (P6) A number that counts down is added to, passed as a block argument, stored and given to calls, and nothing else is made of it in the `body`.
    pub(super) fn judge_fuel(&self, fuel: Fuel, body: &[Block]) -> Result<(), Decline> {
        let func = &self.ctx.func;
        if fuel.enough == Enough::BelowZero {
            return Ok(());
        }
        // What is still fuel if a value is, and what is used for something else.
        let mut made = FxHashMap::<Value, Vec<Value>>::default();
        let mut others = FxHashSet::default();
        for &block in body {
            for inst in func.layout.block_insts(block) {
                let opcode = func.dfg.insts[inst].opcode();
                match added_constant(func, inst) {
                    Some((number, _)) => made.entry(number).or_default().push(func.dfg.first_result(inst)),
                    None if opcode == Opcode::Store => others.extend(&func.dfg.inst_args(inst)[1..]),
                    None if opcode.is_terminator() || opcode.is_call() => {}
                    None => each_use(func, inst, |value| _ = others.insert(value)),
                }
            }
            for edge in edges_from(func, block) {
                let params = func.dfg.block_params(edge.target(func));
                for (&param, passed) in params.iter().zip(edge.args(func)) {
                    made.entry(passed.as_value().unwrap_or(param)).or_default().push(param);
                }
            }
        }
        let mut numbers = FxHashSet::from_iter([fuel.left]);
        let mut open = vec![fuel.left];
        while let Some(number) = open.pop() {
            if others.contains(&number) {
                return Err(Decline::UsedOtherwise(number));
            }
            let made = made.get(&number).into_iter().flatten();
            open.extend(made.copied().filter(|made| numbers.insert(*made)));
        }
        Ok(())
    }

    /// (P3) Each iteration compares an add-recurrence with something loop-invariant, computed in the loop or not, to end the loop, and nothing
    /// else ends it but what fails. Without inner loops, its step is a constant.
    pub(super) fn judge(&self, polls: &Polls) -> Result<(), Decline> {
        let Self { ctx, forest, lp, .. } = *self;
        let func = &ctx.func;
        let view = View { ctx, forest };
        let recurrences = match forest.is_innermost(lp) {
            true => Recurrences::with_constant_steps(view, lp),
            false => Recurrences::of(view, lp),
        };
        let is_invariant = |value| invariant_chain(func, forest, lp, value).is_some();
        let counts = |test: &ExitTest| {
            let mut sides = test.comparison.sides();
            let compares = |side: &Comparison| {
                recurrences.of_value(view, side.left).is_some() && side.right.is_none_or(is_invariant)
            };
            sides.any(|side| compares(&side)) || test.counted(view, lp, &recurrences).is_some()
        };
        let counted: Vec<Edge> = ExitTest::all(view, lp).filter(counts).map(|test| test.exit).collect();
        if counted.is_empty() {
            return Err(Decline::NotCounted);
        }
        let finds = |exit: &&Edge| {
            !counted.contains(exit) && !polls.holds(exit.source(func)) && !leads_to_failure(func, exit.target(func))
        };
        match forest.data(lp).exits.iter().find(finds) {
            Some(exit) => Err(Decline::Searches(exit.branch)),
            None => Ok(()),
        }
    }
}
