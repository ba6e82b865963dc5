//! Polls: what an iteration asks first, and nearly always to no effect.
//!
//! ```text
//! header(v1, v2):
//!     v3 = load.i64 v0          the flag, or the time: others write it
//!     v4 = icmp uge v3, v1
//!     brif v4, rare, body(v1)
//! rare cold:
//!     v5 = call f()
//!     jump body(v5)
//! body(v6):
//! ```
//!
//! A poll is a branch with a *rare* edge, which leads to blocks that lead back to the target of the other edge, or leave the loop. There are
//! two kinds.
//!
//! * **Flag**: the condition is made of loads of what [others write](crate::Writers::Others) or of atomic ones, and of values that are
//!   the same in each iteration in which the rare edge is not taken. The rare edge leads to cold code.
//! * **Fuel**: the condition is that a parameter of the header has reached zero from below, or that it is less than a constant and counts down ([`Enough`]). What an
//!   iteration takes is [`Fuel`](crate::analysis::memory::fuel::Fuel). Its rare edge need not lead to cold code: a number that grows by constants passes zero once. But
//!   it leads to code that calls and leads back, or to cold code outside of the loop: what does neither is a part of the program, and the number a counter.
//!
//! A conditional trap is no poll but a check, as is a branch to a block that does nothing but trap: Cranelift makes one of it.
//!
//! Several polls may be in a row. Between them, and before the first one, there is nothing but pure instructions and the loads that
//! they ask.

use crate::analysis::cfg::edges::{Edge, edges_and_targets, edges_into};
use crate::analysis::cfg::jumps::leads_to_failure;
use crate::analysis::cfg::loops::{Loop, LoopForest, def_block};
use crate::analysis::inst::effects::{Effects, calls};
use crate::analysis::inst::number::added_constant;
use crate::analysis::memory::enough::{Enough, MAX_COST};
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value, ValueDef};
use cranelift_codegen::{Context, FxHashSet};

/// Blocks that only a rare edge leads to. More are no slow path but a part of the program.
const MAX_RARE_BLOCKS: usize = 16;

/// Values that a condition is made of. 64: that of Wasmtime's epochs is made of seven, and a condition of more is no quick question.
const MAX_VALUES: usize = 64;

/// A poll.
#[derive(Clone, Copy, Debug)]
pub struct Poll {
    /// The block that ends in its branch.
    pub block: Block,
    /// The edge that is nearly always taken.
    pub usual: Edge,
    /// What it asks.
    pub kind: PollKind,
}

/// What a poll asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollKind {
    /// Memory that others write.
    Flag,
    /// Whether this parameter of the header is enough.
    Fuel(Value, Enough),
}

/// The polls at the start of each iteration of a loop.
#[derive(Clone, Debug)]
pub struct Polls {
    /// The polls. The block of the first one is the header, each usual edge enters the block of the next one.
    pub all: Vec<Poll>,
    /// The block that the last usual edge enters: the rest of the iteration is dominated by it.
    pub body: Block,
    /// The blocks in the loop that only rare edges lead to.
    pub rare: Vec<Block>,
    /// The loads of conditions.
    pub loads: Vec<Inst>,
}

impl Polls {
    /// The polls of `lp`, which has one back edge, if there are any. `is_asynchronous` says of a load whether others write there.
    pub fn of(ctx: &Context, forest: &LoopForest, lp: Loop, is_asynchronous: &dyn Fn(Inst) -> bool) -> Option<Self> {
        Self::around(ctx, (forest, lp), &EntitySet::new(), is_asynchronous)
    }

    /// The same, as long as `rare` blocks, those of polls in inner loops, do not run.
    pub fn around(
        ctx: &Context,
        (forest, lp): (&LoopForest, Loop),
        rare: &EntitySet<Block>,
        is_asynchronous: &dyn Fn(Inst) -> bool,
    ) -> Option<Self> {
        Search::new(ctx, (forest, lp), (rare, &EntitySet::new()), is_asynchronous)?.run()
    }

    /// The polls that `lp` would start with without these instructions.
    pub fn without(
        ctx: &Context,
        (forest, lp): (&LoopForest, Loop),
        gone: &EntitySet<Inst>,
        is_asynchronous: &dyn Fn(Inst) -> bool,
    ) -> Option<Self> {
        Search::new(ctx, (forest, lp), (&EntitySet::new(), gone), is_asynchronous)?.run()
    }

    /// The polls for flags that `lp` starts with, if what else it asks is taken for a part of the program.
    pub fn of_flags(
        ctx: &Context,
        (forest, lp): (&LoopForest, Loop),
        is_asynchronous: &dyn Fn(Inst) -> bool,
    ) -> Option<Self> {
        let none = (&EntitySet::new(), &EntitySet::new());
        Search { has_fuel: false, ..Search::new(ctx, (forest, lp), none, is_asynchronous)? }.run()
    }

    /// Whether `block` is that of a poll, or only a rare edge leads to it.
    pub fn holds(&self, block: Block) -> bool {
        self.rare.contains(&block) || self.all.iter().any(|poll| poll.block == block)
    }

    /// Whether a poll asks for a flag.
    pub fn ask_flags(&self) -> bool {
        self.all.iter().any(|poll| poll.kind == PollKind::Flag)
    }

    /// The number that polls ask for as fuel, if one does, and what is enough for all of them. An error with another number if they ask for several, and with the same if
    /// they ask for it in two ways.
    pub fn fuel(&self) -> Result<Option<(Value, Enough)>, Value> {
        let mut asked: Option<(Value, Enough)> = None;
        for poll in &self.all {
            let PollKind::Fuel(number, enough) = poll.kind else { continue };
            let same = asked.map_or(Some(enough), |(first, other)| other.and(enough).filter(|_| number == first));
            asked = Some((number, same.ok_or(number)?));
        }
        Ok(asked)
    }

    /// The value that `value` is in the header, if the usual edges are taken.
    pub fn resolve(&self, func: &Function, mut value: Value) -> Value {
        for poll in self.all.iter().rev() {
            value = poll.usual.passed_for(func, value).unwrap_or(value);
        }
        value
    }
}

/// The blocks of the loop from `rare` to `body`, if no other edge enters these, and none but theirs and those of the same branch enter
/// `body`.
pub fn rare_region(ctx: &Context, forest: &LoopForest, lp: Loop, (rare, body): (Edge, Block)) -> Option<Vec<Block>> {
    let func = &ctx.func;
    let header = forest.data(lp).header;
    let start = rare.target(func);
    if start == body {
        return None;
    }
    let mut region = Vec::new();
    if forest.contains(lp, start) {
        region.push(start);
    }
    let mut next = 0;
    while let Some(&block) = region.get(next) {
        next += 1;
        if region.len() > MAX_RARE_BLOCKS || block == header || forest.innermost(block) != Some(lp) {
            return None;
        }
        for (_, target) in edges_and_targets(func, block) {
            if target != body && forest.contains(lp, target) && !region.contains(&target) {
                region.push(target);
            }
        }
    }
    let source = rare.source(func);
    let is_inside = |block: Block| block == source || region.contains(&block);
    let mut entered = region.iter().copied().chain([body]);
    entered.all(|block| ctx.cfg.pred_iter(block).all(|pred| is_inside(pred.block))).then_some(region)
}

/// What `value` is in an iteration of `lp` in which no rare block runs, if joins and the inner loops only pass it: a parameter of the header of `lp`, what an
/// instruction makes, or a value from before the loop. Parameters that are passed only to each other in an inner loop are what that loop is entered with.
pub fn usual_value(
    ctx: &Context,
    (forest, lp): (&LoopForest, Loop),
    is_rare: &dyn Fn(Block) -> bool,
    value: Value,
) -> Option<Value> {
    let func = &ctx.func;
    let header = forest.data(lp).header;
    let (mut open, mut seen, mut usual) = (vec![value], FxHashSet::default(), None);
    while let Some(value) = open.pop() {
        let passed_on = match func.dfg.value_def(value) {
            ValueDef::Param(block, _) if block != header && forest.contains(lp, block) => block,
            _ if *usual.get_or_insert(value) != value => return None,
            _ => continue,
        };
        if !seen.insert(value) {
            continue;
        }
        if seen.len() > MAX_VALUES {
            return None;
        }
        for edge in edges_into(func, &ctx.cfg, passed_on).filter(|edge| !is_rare(edge.source(func))) {
            open.push(edge.passed_for(func, value)?);
        }
    }
    usual
}

struct Search<'a> {
    ctx: &'a Context,
    forest: &'a LoopForest,
    lp: Loop,
    back_edge: Edge,
    is_asynchronous: &'a dyn Fn(Inst) -> bool,
    /// What does not run in the inner loops while no rare edge is taken.
    rare_inside: &'a EntitySet<Block>,
    /// What is taken to be somewhere else.
    gone: &'a EntitySet<Inst>,
    /// Whether a number may be fuel.
    has_fuel: bool,
    polls: Polls,
}

impl<'a> Search<'a> {
    fn new(
        ctx: &'a Context,
        (forest, lp): (&'a LoopForest, Loop),
        (rare_inside, gone): (&'a EntitySet<Block>, &'a EntitySet<Inst>),
        is_asynchronous: &'a dyn Fn(Inst) -> bool,
    ) -> Option<Self> {
        let &[back_edge] = &forest.data(lp).back_edges[..] else { return None };
        if back_edge.args(&ctx.func).any(|arg| arg.as_value().is_none()) {
            // What a call returns to the header.
            return None;
        }
        let body = forest.data(lp).header;
        let polls = Polls { all: Vec::new(), body, rare: Vec::new(), loads: Vec::new() };
        Some(Self { ctx, forest, lp, back_edge, is_asynchronous, rare_inside, gone, has_fuel: true, polls })
    }

    fn run(mut self) -> Option<Polls> {
        while self.add(self.polls.body) {}
        let polls = self.polls;
        let stays = polls.all.iter().all(|poll| self.forest.is_duplicable(&self.ctx.func, poll.usual.branch));
        (!polls.all.is_empty() && stays).then_some(polls)
    }

    /// Adds the poll that `block` ends in, if it does.
    fn add(&mut self, block: Block) -> bool {
        let func = &self.ctx.func;
        let Some(branch) = func.layout.last_inst(block) else { return false };
        let InstructionData::Brif { arg, .. } = func.dfg.insts[branch] else { return false };
        if self.forest.innermost(block) != Some(self.lp) || self.forest.is_named(block) {
            return false;
        }
        for slot in [0, 1] {
            let (usual, rare) = (Edge { branch, slot }, Edge { branch, slot: 1 - slot });
            let body = usual.target(func);
            let is_body = self.forest.contains(self.lp, body) && body != block && !self.forest.is_named(body);
            if !is_body || body == self.forest.data(self.lp).header {
                continue;
            }
            let Some(region) = rare_region(self.ctx, self.forest, self.lp, (rare, body)) else { continue };
            let mut loads = Vec::new();
            let mut is_flag = || leads_to_failure(func, rare.target(func)) && self.is_steady(arg, &region, &mut loads);
            let is_rare =
                || leads_to_failure(func, rare.target(func)) || region.iter().any(|&block| calls(func, block));
            let kind = match self.fuel(arg, usual).filter(|_| is_rare()) {
                Some((number, enough)) => PollKind::Fuel(number, enough),
                None if is_flag() => PollKind::Flag,
                None => continue,
            };
            let is_free = kind == PollKind::Flag && !loads.iter().any(|&load| (self.is_asynchronous)(load));
            if is_free || !self.asks_only(block, &loads) {
                continue;
            }
            self.polls.loads.append(&mut loads);
            self.polls.rare.extend(region);
            self.polls.all.push(Poll { block, usual, kind });
            self.polls.body = body;
            return true;
        }
        false
    }

    /// Whether `block` does nothing but load `loads` and compute.
    fn asks_only(&self, block: Block, loads: &[Inst]) -> bool {
        let func = &self.ctx.func;
        func.layout.block_insts(block).all(|inst| {
            let effects = Effects::of(func, inst);
            let is_load = loads.contains(&inst) || self.polls.loads.contains(&inst);
            effects.is_pure() || effects.terminates || is_load || self.gone.contains(inst)
        })
    }

    /// Whether `condition` is the same in each iteration as long as no rare edge is taken, that to `region` neither, and nobody writes what it is
    /// loaded from. Adds the loads that it is made of.
    fn is_steady(&self, condition: Value, region: &[Block], loads: &mut Vec<Inst>) -> bool {
        let func = &self.ctx.func;
        let mut seen = FxHashSet::default();
        let mut stack = vec![condition];
        while let Some(value) = stack.pop() {
            let value = self.polls.resolve(func, value);
            if !seen.insert(value) {
                continue;
            }
            let Some(home) = def_block(func, value) else { return false };
            if !self.forest.contains(self.lp, home) {
                continue;
            }
            let Some(inst) = func.dfg.value_def(value).inst() else {
                if self.is_passed_on(value, region) {
                    continue;
                }
                return false;
            };
            let effects = Effects::of(func, inst);
            let is_load = match func.dfg.insts[inst] {
                InstructionData::Load { .. } => !effects.traps && !effects.fences,
                _ => func.dfg.insts[inst].opcode() == Opcode::AtomicLoad && !effects.traps,
            };
            if seen.len() > MAX_VALUES || !(is_load || effects.is_pure()) {
                return false;
            }
            if is_load {
                loads.push(inst);
            }
            stack.extend_from_slice(func.dfg.inst_args(inst));
        }
        true
    }

    /// Whether the back edge passes the parameter `param` of the header to itself, unless a rare block runs, those of `region` among them.
    fn is_passed_on(&self, param: Value, region: &[Block]) -> bool {
        let Some(passed) = self.back_edge.passed_for(&self.ctx.func, param) else { return false };
        let is_rare =
            |block| self.rare_inside.contains(block) || self.polls.rare.contains(&block) || region.contains(&block);
        usual_value(self.ctx, (self.forest, self.lp), &is_rare, passed) == Some(param)
    }

    /// The parameter of the header that is enough if `usual` is taken, and may run out. What is asked for as a check is none, such as whether a pointer is null.
    fn fuel(&self, condition: Value, usual: Edge) -> Option<(Value, Enough)> {
        let func = &self.ctx.func;
        let (number, enough) = Enough::of(func, condition, usual.slot == 0)?;
        let param = self.polls.resolve(func, number);
        let next = self.back_edge.passed_for(func, param)?;
        let runs_out = match func.dfg.value_def(next) {
            ValueDef::Result(inst, _) => {
                added_constant(func, inst).is_some_and(|(_, added)| enough.taken(added) <= MAX_COST)
            }
            // What several paths make of it.
            _ => next != param,
        };
        (self.has_fuel && (enough == Enough::BelowZero || runs_out)).then_some((param, enough))
    }
}
