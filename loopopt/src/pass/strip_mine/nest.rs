//! The polls of the inner loops, which a strip leaves out as well.

use super::Decline;
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::inst::effects::Effects;
use crate::analysis::memory::enough::Enough;
use crate::analysis::memory::polls::{Poll, PollKind, Polls, usual_value};
use crate::fault::fault;
use cranelift_codegen::Context;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Value};

/// A loop that polls, and has inner loops that do.
pub(super) struct Nest {
    /// The polls of the loop.
    pub(super) polls: Polls,
    /// Those of the inner loops.
    pub(super) inner: Vec<Polls>,
    /// What only their rare edges lead to, and those of the loop.
    rare: EntitySet<Block>,
}

/// What a nest asks for as fuel.
pub(super) enum Asked {
    /// Nothing: all polls are for flags.
    Nothing,
    /// Whether this number, in the outer loop, is enough for all polls.
    Fuel(Value, Enough),
    /// Several numbers, or one in an inner loop only, or numbers that count in two ways.
    Several,
}

/// The number that a poll asks for, and what is enough.
fn fuel_of(poll: &Poll) -> Option<(Value, Enough)> {
    match poll.kind {
        PollKind::Fuel(number, enough) => Some((number, enough)),
        PollKind::Flag => None,
    }
}

/// Pairs of values that are compared to see whether two polls ask the same. 64, as many as the condition of a poll is made of.
const MAX_PAIRS: usize = 64;

impl Nest {
    /// The nest of `lp`, if it polls and an inner loop does.
    pub(super) fn of(
        ctx: &Context,
        forest: &LoopForest,
        lp: Loop,
        is_asynchronous: &dyn Fn(Inst) -> bool,
    ) -> Option<Self> {
        let (mut rare, mut inner) = (EntitySet::new(), Vec::new());
        let loops = forest.blocks(lp).iter().filter_map(|&block| forest.loop_of_header(block));
        // From the innermost outwards: the values that leave a loop depend on its inner loops.
        for inside in loops.rev().filter(|&inside| inside != lp) {
            if let Some(polls) = Polls::around(ctx, (forest, inside), &rare, is_asynchronous) {
                rare.extend(polls.rare.iter().copied());
                inner.push(polls);
            }
        }
        if inner.is_empty() {
            return None;
        }
        let polls = Polls::around(ctx, (forest, lp), &rare, is_asynchronous)?;
        rare.extend(polls.rare.iter().copied());
        Some(Self { polls, inner, rare })
    }

    /// The polls of inner loops.
    fn inner_polls(&self) -> impl Iterator<Item = &Poll> {
        self.inner.iter().flat_map(|polls| &polls.all)
    }

    /// The numbers that inner polls ask for.
    pub(super) fn asked_inside(&self) -> Vec<Value> {
        self.inner_polls().filter_map(fuel_of).map(|(number, _)| number).collect()
    }

    /// What the loop asks for as fuel.
    pub(super) fn asked(&self) -> Asked {
        match self.polls.fuel() {
            Ok(None) if self.inner_polls().all(|poll| fuel_of(poll).is_none()) => Asked::Nothing,
            Ok(Some((number, enough))) => {
                let mut inside = self.inner_polls().filter_map(fuel_of);
                let enough = inside.try_fold(enough, |enough, (_, other)| enough.and(other));
                enough.map_or(Asked::Several, |enough| Asked::Fuel(number, enough))
            }
            Ok(None) | Err(_) => Asked::Several,
        }
    }

    /// What does not run while no rare edge is taken.
    pub(super) fn rare(&self) -> &EntitySet<Block> {
        &self.rare
    }

    /// The blocks that run in an iteration of a strip, but for the polls of the loop: those of the inner polls compute what an iteration may need.
    pub(super) fn executed(&self, blocks: &[Block]) -> Vec<Block> {
        let runs = |&block: &Block| !self.rare.contains(block) && !self.polls.holds(block);
        blocks.iter().copied().filter(runs).collect()
    }

    /// Those of them that do more than poll.
    pub(super) fn body(&self, executed: &[Block]) -> Vec<Block> {
        let polls = |block: Block| self.inner.iter().any(|polls| polls.holds(block));
        executed.iter().copied().filter(|&block| !polls(block)).collect()
    }

    /// The polls of each loop.
    fn each(&self) -> impl Iterator<Item = &Polls> {
        self.inner.iter().chain([&self.polls])
    }

    /// (L4) Each inner poll for a flag asks what one of the loop asks.
    pub(super) fn prove_same(&self, ctx: &Context, forest: &LoopForest, lp: Loop) -> Result<(), Decline> {
        let questions = Questions { ctx, forest, lp, nest: self };
        for poll in self.inner_polls().filter(|poll| poll.kind == PollKind::Flag) {
            if !self.polls.all.iter().any(|outer| questions.are_same(poll, outer)) && !fault!(OtherFlagInside) {
                return Err(Decline::OtherFlagInside(poll.usual.branch));
            }
        }
        Ok(())
    }
}

/// What polls ask.
struct Questions<'a> {
    ctx: &'a Context,
    forest: &'a LoopForest,
    lp: Loop,
    nest: &'a Nest,
}

impl Questions<'_> {
    /// Whether two polls ask the same as long as no rare edge is taken, and take the usual edge for the same answer.
    fn are_same(&self, inner: &Poll, outer: &Poll) -> bool {
        let func = &self.ctx.func;
        let condition = |poll: &Poll| func.dfg.inst_args(poll.usual.branch)[0];
        inner.usual.slot == outer.usual.slot && self.compute_same(condition(inner), condition(outer))
    }

    fn compute_same(&self, left: Value, right: Value) -> bool {
        let func = &self.ctx.func;
        let mut pairs = vec![(left, right)];
        let mut count = 0;
        while let Some((left, right)) = pairs.pop() {
            let (left, right) = (self.usual(left), self.usual(right));
            if left == right {
                continue;
            }
            count += 1;
            let insts = (func.dfg.value_def(left).inst(), func.dfg.value_def(right).inst());
            let (Some(left), Some(right)) = insts else { return false };
            if count > MAX_PAIRS || !self.is_operation_same(left, right) {
                return false;
            }
            pairs.extend(func.dfg.inst_args(left).iter().copied().zip(func.dfg.inst_args(right).iter().copied()));
        }
        true
    }

    /// What `value` is while no rare edge is taken.
    fn usual(&self, value: Value) -> Value {
        let is_inside = self.forest.defines(&self.ctx.func, self.lp, value);
        let is_rare = |block| self.nest.rare.contains(block);
        let usual = || usual_value(self.ctx, (self.forest, self.lp), &is_rare, value);
        is_inside.then(usual).flatten().unwrap_or(value)
    }

    /// Whether both do the same to their operands: they are pure, or load what polls load.
    fn is_operation_same(&self, left: Inst, right: Inst) -> bool {
        let func = &self.ctx.func;
        let is_polled = |inst: &Inst| self.nest.each().any(|polls| polls.loads.contains(inst));
        let is_known = |inst: &Inst| Effects::of(func, *inst).is_pure() || is_polled(inst);
        let types = |inst: Inst| func.dfg.inst_results(inst).iter().map(|&result| func.dfg.value_type(result));
        [left, right].iter().all(is_known)
            && types(left).eq(types(right))
            && func.dfg.inst_args(left).len() == func.dfg.inst_args(right).len()
            && without_operands(func, left) == without_operands(func, right)
    }
}

/// What an instruction is but for the values that it gets.
fn without_operands(func: &Function, inst: Inst) -> InstructionData {
    let mut data = func.dfg.insts[inst];
    data.arguments_mut(&mut Default::default()).fill(Value::from_u32(0));
    data
}
