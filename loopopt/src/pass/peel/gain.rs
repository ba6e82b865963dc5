//! What is the same in each iteration once the first ones have been taken out of a loop.
//!
//! Each value gets a level: the number of iterations to take out until it is the same in all that remain.
//!
//! | value | level |
//! |---|---|
//! | defined outside, or a constant | 0 |
//! | header parameter | one more than what the back edge passes for it |
//! | result of a pure instruction | the highest of its operands |
//! | result of a check, a division or a load that each iteration does | one more: the copy has to have done it with these operands |
//! | comparison of a counter with a constant | from where on it gives the same until the loop ends |
//!
//! With as many iterations taken out, the instruction's copy in the last of them dominates the loop and has the same
//! operands, and Cranelift's egraph pass removes the one in the loop: checks and divisions, because what is checked once
//! holds; loads, if no store in the loop can change what they read. Pure instructions leave the loop. Branches on constants
//! fold.

use crate::analysis::edges::edges_into;
use crate::analysis::effects::{Effects, is_constant};
use crate::analysis::evaluate::compares;
use crate::analysis::induction::inductions;
use crate::analysis::loops::{Loop, LoopForest};
use crate::analysis::progression::Arc;
use crate::analysis::trip_count::{Comparison, TripCount};
use crate::edit::rename::def_block;
use crate::fault::fault;
use cranelift_codegen::Context;
use cranelift_codegen::ir::condcodes::CondCode;
use cranelift_codegen::ir::{AliasRegion, Block, Function, Inst, InstructionData, Opcode, Value, ValueDef};
use std::collections::HashMap;

/// What a value is from some iteration on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Level {
    /// How many iterations have to be taken out.
    level: usize,
    /// It is then a constant.
    is_constant: bool,
}

impl Level {
    /// Of what may differ in each iteration.
    const NEVER: Self = Self { level: usize::MAX, is_constant: false };

    /// Of the result of an instruction with two such operands.
    fn join(self, other: Self) -> Self {
        Self { level: self.level.max(other.level), is_constant: self.is_constant && other.is_constant }
    }

    /// One iteration later.
    fn later(self, most: usize) -> Self {
        if self.level < most { Self { level: self.level + 1, ..self } } else { Self::NEVER }
    }
}

/// What is won by taking out some iterations.
#[derive(Clone, Debug, Default)]
pub(super) struct Gain {
    /// How many.
    pub(super) iterations: usize,
    /// Checks and divisions that leave the loop.
    pub(super) checks: usize,
    /// Loads that leave the loop.
    pub(super) loads: usize,
    /// Branches that fold.
    pub(super) branches: usize,
    /// Other instructions that leave the loop or fold.
    pub(super) others: usize,
    /// About how many instructions an iteration is shorter, a slow one counting for several.
    pub(super) weight: usize,
    /// Comparisons that give the same from then on, and what.
    pub(super) settled: Vec<(Inst, bool)>,
}

/// The levels of all values of a loop without loops inside.
pub(super) struct Levels<'a> {
    ctx: &'a Context,
    forest: &'a LoopForest,
    lp: Loop,
    latch: Block,
    loads: Loads,
    most: usize,
    levels: HashMap<Value, Level>,
    /// Comparisons that settle: after how many iterations, and what they give then.
    settling: HashMap<Inst, (usize, bool)>,
}

impl<'a> Levels<'a> {
    /// Finds them, up to a level of `most`. `count` is how often the loop goes around.
    pub(super) fn find(ctx: &'a Context, forest: &'a LoopForest, lp: Loop, (most, count): (usize, TripCount)) -> Self {
        let loads = Loads::of(&ctx.func, forest.blocks(lp));
        let latch = forest.latch(&ctx.func, lp).expect("canonical form");
        let settling = settling(ctx, forest, lp, (most, count));
        let levels = HashMap::new();
        let mut found = Self { ctx, forest, lp, latch, loads, most, levels, settling };
        found.solve();
        if found.loads != Loads::NONE && found.polls() {
            found.loads = Loads::NONE;
            found.solve();
        }
        found
    }

    /// Header parameters get lower levels from round to round, one at least in each, and there are `most` levels.
    fn solve(&mut self) {
        self.levels.clear();
        let forest = self.forest;
        for _ in 0..=self.most {
            for &block in forest.blocks(self.lp) {
                self.visit(block);
            }
            if !self.update_header() {
                break;
            }
        }
    }

    fn of(&self, value: Value) -> Level {
        let func = &self.ctx.func;
        let is_outside = def_block(func, value).is_some_and(|block| !self.forest.contains(self.lp, block));
        if is_outside {
            let is_constant = func.dfg.value_def(value).inst().is_some_and(|inst| is_constant(func, inst));
            return Level { level: 0, is_constant };
        }
        self.levels.get(&value).copied().unwrap_or(Level::NEVER)
    }

    fn visit(&mut self, block: Block) {
        let func = &self.ctx.func;
        if block != self.forest.data(self.lp).header {
            for (index, &param) in func.dfg.block_params(block).iter().enumerate() {
                let level = self.of_param(block, index);
                self.levels.insert(param, level);
            }
        }
        for inst in func.layout.block_insts(block) {
            if let [result] = func.dfg.inst_results(inst) {
                let level = self.of_result(block, inst);
                self.levels.insert(*result, level);
            }
        }
    }

    /// A parameter that each edge passes the same value for.
    fn of_param(&self, block: Block, index: usize) -> Level {
        let func = &self.ctx.func;
        let mut args = edges_into(func, &self.ctx.cfg, block).map(|edge| edge.args(func).nth(index)?.as_value());
        let first = args.next().flatten();
        if args.all(|arg| arg == first) { first.map_or(Level::NEVER, |value| self.of(value)) } else { Level::NEVER }
    }

    fn of_result(&self, block: Block, inst: Inst) -> Level {
        let operands = self.of_operands(inst);
        let func = &self.ctx.func;
        if let Some(&(level, _)) = self.settling.get(&inst) {
            let settled = Level { level, is_constant: true };
            return if operands.level <= level { operands } else { settled };
        }
        if Effects::of(func, inst).is_pure() {
            return Level { is_constant: operands.is_constant || is_constant(func, inst), ..operands };
        }
        if self.is_done_once(block, inst) {
            return Level { is_constant: false, ..operands.later(self.most) };
        }
        Level::NEVER
    }

    fn of_operands(&self, inst: Inst) -> Level {
        let func = &self.ctx.func;
        let nothing = Level { level: 0, is_constant: true };
        let joined = func.dfg.inst_args(inst).iter().fold(nothing, |all, &arg| all.join(self.of(arg)));
        Level { is_constant: joined.is_constant && !func.dfg.inst_args(inst).is_empty(), ..joined }
    }

    /// Whether `inst` is removed once it has been done with the same operands before, and each iteration does it.
    fn is_done_once(&self, block: Block, inst: Inst) -> bool {
        let func = &self.ctx.func;
        let opcode = func.dfg.insts[inst].opcode();
        let effects = Effects::of(func, inst);
        let is_check = opcode.can_trap() && opcode.side_effects_idempotent();
        let is_load = effects.reads && !effects.writes && !effects.fences && self.loads.are_stable(func, inst);
        (is_check || is_load) && self.ctx.domtree.block_dominates(block, self.latch)
    }

    /// Sets the levels of the header's parameters. Returns whether one has changed.
    fn update_header(&mut self) -> bool {
        let func = &self.ctx.func;
        let data = self.forest.data(self.lp);
        let mut changed = false;
        for (&param, arg) in func.dfg.block_params(data.header).iter().zip(data.back_edges[0].args(func)) {
            let level = arg.as_value().map_or(Level::NEVER, |value| self.of(value)).later(self.most);
            let was = self.of(param);
            if level.level < was.level {
                self.levels.insert(param, level);
                changed = true;
            }
        }
        changed
    }

    /// Whether a way out of the loop hangs on nothing but what a load gives, so that the loop may wait for others to write
    /// there: with the load taken out, it would wait forever.
    fn polls(&self) -> bool {
        let func = &self.ctx.func;
        let hangs = |inst| match func.dfg.insts[inst] {
            InstructionData::Brif { arg, .. } | InstructionData::BranchTable { arg, .. } => {
                (1..usize::MAX).contains(&self.of(arg).level)
            }
            _ => false,
        };
        self.forest.data(self.lp).exits.iter().any(|exit| hangs(exit.branch))
    }

    /// What is won by taking out this many iterations.
    pub(super) fn gain(&self, iterations: usize) -> Gain {
        let func = &self.ctx.func;
        let mut gain = Gain { iterations, ..Gain::default() };
        for &block in self.forest.blocks(self.lp) {
            for inst in func.layout.block_insts(block) {
                self.add(&mut gain, block, inst);
            }
        }
        let settled = self.settling.iter().filter(|(_, (level, _))| *level <= iterations);
        gain.settled = settled.map(|(&inst, &(_, holds))| (inst, holds)).collect();
        gain.settled.sort_unstable();
        gain
    }

    fn add(&self, gain: &mut Gain, block: Block, inst: Inst) {
        let func = &self.ctx.func;
        let leaves = |level: Level| (1..=gain.iterations).contains(&level.level);
        let operands = self.of_operands(inst);
        let effects = Effects::of(func, inst);
        if effects.terminates {
            let folds = leaves(operands) && operands.is_constant && func.dfg.insts[inst].opcode() != Opcode::Jump;
            gain.branches += usize::from(folds);
            gain.weight += if folds { 3 } else { 0 };
        } else if self.is_done_once(block, inst) {
            if leaves(operands.later(self.most)) {
                let count = if effects.reads { &mut gain.loads } else { &mut gain.checks };
                *count += 1;
                gain.weight += weight(func, inst);
            }
        } else if let [result] = func.dfg.inst_results(inst)
            && leaves(self.of(*result))
        {
            gain.others += 1;
            gain.weight += 1;
        }
    }
}

/// About how many simple instructions a check, a division or a load is as slow as: what it takes on current x86-64 CPUs,
/// where it is not the bottleneck.
fn weight(func: &Function, inst: Inst) -> usize {
    match func.dfg.insts[inst].opcode() {
        Opcode::Udiv | Opcode::Sdiv | Opcode::Urem | Opcode::Srem => 8,
        Opcode::FcvtToUint | Opcode::FcvtToSint => 4,
        _ => 2,
    }
}

/// The comparisons of the loop that give the same from some iteration on, which is not the first.
fn settling(
    ctx: &Context,
    forest: &LoopForest,
    lp: Loop,
    (most, count): (usize, TripCount),
) -> HashMap<Inst, (usize, bool)> {
    let func = &ctx.func;
    let Some(around) = count.most() else { return HashMap::new() };
    let counters = inductions(func, &ctx.cfg, forest, lp);
    let insts = forest.blocks(lp).iter().flat_map(|&block| func.layout.block_insts(block));
    let compares = insts.filter(|&inst| matches!(func.dfg.insts[inst], InstructionData::IntCompare { .. }));
    let find = |inst| {
        let comparison = Comparison::of(ctx, &counters, func.dfg.first_result(inst))?;
        let last = usize::try_from(around).unwrap_or(usize::MAX).min(most);
        let (level, holds) = (0..=last).find_map(|level| Some((level, settled(&comparison, level, around)?)))?;
        let level = if fault!(SettledTooEarly) { level.saturating_sub(1) } else { level };
        (level > 0).then_some((inst, (level, holds)))
    };
    compares.filter_map(find).collect()
}

/// What the comparison gives in iteration `from` and all after it, if that is the same. The last one has number `around`.
fn settled(comparison: &Comparison, from: usize, around: u128) -> Option<bool> {
    let from = from as u128;
    let Comparison { cond, numbers, bound } = *comparison;
    let (numbers, bound) = (numbers.after(from), bound?);
    let holds = compares(cond, [numbers.start, bound], numbers.ty);
    let opposite = Arc::of_condition(if holds { cond.complement() } else { cond }, bound, numbers.ty);
    opposite.is_none_or(|arc| numbers.not_in_before(arc) > around - from).then_some(holds)
}

/// Which loads read the same in each iteration, as far as Cranelift's egraph pass can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Loads {
    /// Those of other regions than these, to which all stores go; all loads if there is no store.
    AllBut(Vec<AliasRegion>),
    /// None: something in the loop may write anywhere.
    No,
}

impl Loads {
    const NONE: Self = Self::No;

    fn of(func: &Function, blocks: &[Block]) -> Self {
        let mut written = Vec::new();
        for inst in blocks.iter().flat_map(|&block| func.layout.block_insts(block)) {
            let effects = Effects::of(func, inst);
            if effects.fences {
                return Self::No;
            }
            if effects.writes && func.dfg.insts[inst].opcode().can_store() {
                match region_of(func, inst) {
                    Some(region) => written.push(region),
                    None => return Self::No,
                }
            }
        }
        Self::AllBut(written)
    }

    /// Whether the plain load `inst` is one of them.
    fn are_stable(&self, func: &Function, inst: Inst) -> bool {
        let Self::AllBut(written) = self else { return false };
        let is_plain = func.dfg.insts[inst].memflags().is_some();
        is_plain && (written.is_empty() || region_of(func, inst).is_some_and(|region| !written.contains(&region)))
    }
}

fn region_of(func: &Function, inst: Inst) -> Option<AliasRegion> {
    let flags = func.dfg.insts[inst].memflags()?;
    func.dfg.mem_flags[flags].alias_region()
}

/// Whether a value is a constant that is made in the loop, and by which instruction.
pub(super) fn constant_inside(func: &Function, forest: &LoopForest, lp: Loop, value: Value) -> Option<Inst> {
    let ValueDef::Result(inst, _) = func.dfg.value_def(value) else { return None };
    let home = func.layout.inst_block(inst)?;
    (is_constant(func, inst) && forest.contains(lp, home)).then_some(inst)
}
