//! What is the same in each iteration once the first ones have been taken out of a loop.
//!
//! For each value two numbers are found: from which iteration on it is the same (`level`), and how many iterations have to be
//! taken out until the loop need not compute it any more (`out`).
//!
//! | value | level | out |
//! |---|---|---|
//! | defined outside, or a constant | 0 | 0 |
//! | header parameter | one more than its argument on the back edge | the same, or when that is out |
//! | result of a pure instruction | the highest of its operands | the highest of its operands |
//! | result of a check, a division or a load that each iteration does | the highest of its operands | one more |
//! | comparison of a counter with a constant | from where on it gives the same until the loop ends | the same |
//!
//! A check is out one iteration later than its operands settle: the copy has to have done it with these operands, and then it
//! holds. A load is out if no store in the loop can change what it reads, the embedder does not say that others write there, and the
//! loop does not [poll](crate::analysis::memory::exit_polls) with it.
//!
//! What is done in each iteration, and gives the same already in the last one that is taken out, is replaced by what the copy
//! there has computed ([`Gain::repeated`]). The rest is for `cleanup`, which takes pure instructions out of the
//! loop and folds branches on constants.

use crate::analysis::cfg::edges::edges_into;
use crate::analysis::cfg::loops::{Loop, LoopForest, defined_in};
use crate::analysis::inst::effects::{Effects, is_comparison, is_constant, is_constant_value};
use crate::analysis::memory::exit_polls::polls;
use crate::analysis::scev::comparison::Comparison;
use crate::analysis::scev::const_eval::compares;
use crate::analysis::scev::exit_count::{Tested, TripCount};
use crate::analysis::scev::linear_expr::known;
use crate::analysis::scev::recurrence::Recurrences;
use crate::analysis::scev::view::View;
use crate::analysis::scev::wrap_arc::Arc;
use crate::fault::fault;
use crate::options::Options;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::condcodes::CondCode;
use cranelift_codegen::ir::{AliasRegion, Block, Function, Inst, InstructionData, Opcode, Value};
use cranelift_codegen::{Context, FxHashMap};
use std::cell::OnceCell;

/// What a value is from some iteration on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    /// From which iteration on it is the same.
    level: usize,
    /// How many iterations have to be taken out until the loop does not compute it.
    out: usize,
    /// It is then a constant.
    is_constant: bool,
}

impl Level {
    /// Of a constant.
    const CONSTANT: Self = Self { level: 0, out: 0, is_constant: true };

    /// Of what may differ in each iteration.
    const NEVER: Self = Self { level: usize::MAX, out: usize::MAX, is_constant: false };

    /// Of the result of an instruction with two such operands.
    fn join(self, other: Self) -> Self {
        Self {
            level: self.level.max(other.level),
            out: self.out.max(other.out),
            is_constant: self.is_constant && other.is_constant,
        }
    }

    /// Never, if it takes more than this many iterations.
    fn up_to(self, most: usize) -> Self {
        if self.out <= most { self } else { Self::NEVER }
    }

    /// Of a header parameter for which the back edge passes such a value.
    fn later(self) -> Self {
        let level = self.level.saturating_add(1);
        Self { level, out: self.out.max(level), ..self }
    }

    /// Of what has to be done once with such operands.
    fn once(self) -> Self {
        Self { out: self.out.max(self.level.saturating_add(1)), is_constant: false, ..self }
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
    /// Comparisons that give the same from then on, and what, and branches on numbers, and whether these are not zero.
    pub(super) settled: Vec<(Inst, bool)>,
    /// Numbers of the header's parameters that are the same from then on.
    pub(super) params: Vec<usize>,
    /// Instructions of the loop, in dominance order, that those of its copy replace.
    pub(super) repeated: Vec<Inst>,
    /// Something is left to Cranelift's egraph pass.
    pub(super) needs_cleanup: bool,
}

/// Levels that there are, whatever the options say. 1,000: each takes a look at the loop, and nobody peels so many iterations.
pub(super) const MAX_LEVELS: usize = 1_000;

/// The levels of the values of a loop, none for all others. One for all loops, so that time is linear.
pub(super) type Scratch = SecondaryMap<Value, Option<Level>>;

/// The levels of all values of a loop without inner loops.
pub(super) struct Levels<'a> {
    ctx: &'a Context,
    options: &'a Options,
    forest: &'a LoopForest,
    lp: Loop,
    latch: Block,
    loads: Loads,
    /// Found when the first load asks.
    polls: OnceCell<Vec<Inst>>,
    most: usize,
    levels: &'a mut Scratch,
    /// Comparisons, and branches on numbers, that settle: after how many iterations, and what they give then.
    settling: FxHashMap<Inst, (usize, bool)>,
    /// Something may leave the loop or fold.
    may_gain: bool,
}

impl<'a> Levels<'a> {
    /// Finds them, up to a level of `most`. `count` is how often the back edge is taken.
    pub(super) fn find(
        ctx: &'a Context,
        forest: &'a LoopForest,
        lp: Loop,
        (options, most, count): (&'a Options, usize, TripCount),
        (is_asked, levels): (&dyn Fn(Value) -> bool, &'a mut Scratch),
    ) -> Self {
        levels.resize(ctx.func.dfg.num_values());
        let loads = Loads::of(&ctx.func, forest.blocks(lp));
        let latch = forest.latch(&ctx.func, lp).expect("canonical form");
        let settling = settling(ctx, (forest, lp), (most, count), is_asked);
        let polls = OnceCell::new();
        let mut found = Self { ctx, options, forest, lp, latch, loads, polls, most, levels, settling, may_gain: false };
        found.set_all(Some(Level::NEVER));
        found.solve();
        found
    }

    /// Header parameters, which start with the highest level, get lower ones from round to round, one at least in each, and
    /// there are `most` levels.
    fn solve(&mut self) {
        let forest = self.forest;
        for _ in 0..=self.most {
            self.may_gain = false;
            for &block in forest.blocks(self.lp) {
                self.visit(block);
            }
            if !self.update_header() {
                return;
            }
        }
        self.may_gain = true;
    }

    /// Sets the levels of all values of the loop.
    fn set_all(&mut self, level: Option<Level>) {
        let func = &self.ctx.func;
        for &block in self.forest.blocks(self.lp) {
            for value in defined_in(func, block) {
                self.levels[value] = level;
            }
        }
    }

    fn of(&self, value: Value) -> Level {
        self.levels[value].unwrap_or_else(|| {
            let func = &self.ctx.func;
            let is_constant = is_constant_value(func, value);
            Level { level: 0, out: 0, is_constant }
        })
    }

    fn visit(&mut self, block: Block) {
        let func = &self.ctx.func;
        if block != self.forest.data(self.lp).header {
            for (index, &param) in func.dfg.block_params(block).iter().enumerate() {
                let level = self.of_param(block, index);
                self.levels[param] = Some(level);
            }
        }
        for inst in func.layout.block_insts(block) {
            let level = self.of_inst(block, inst);
            self.may_gain |= (1..usize::MAX).contains(&level.out);
            if let [result] = func.dfg.inst_results(inst) {
                self.levels[*result] = Some(level);
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

    /// Of an instruction, and of its result if it has one.
    fn of_inst(&self, block: Block, inst: Inst) -> Level {
        let func = &self.ctx.func;
        let operands = self.of_operands(inst);
        let effects = Effects::of(func, inst);
        if let Some(&(level, _)) = self.settling.get(&inst).filter(|(level, _)| *level < operands.out) {
            return Level { level, out: level, is_constant: true };
        }
        if effects.is_pure() || effects.terminates {
            return Level { is_constant: operands.is_constant || is_constant(func, inst), ..operands };
        }
        if self.is_done_once(block, inst) { operands.once().up_to(self.most) } else { Level::NEVER }
    }

    fn of_operands(&self, inst: Inst) -> Level {
        let func = &self.ctx.func;
        let args = func.dfg.inst_args(inst);
        let joined = args.iter().fold(Level::CONSTANT, |all, &arg| all.join(self.of(arg)));
        Level { is_constant: joined.is_constant && !args.is_empty(), ..joined }
    }

    /// Whether `inst` is removed once it has been done with the same operands before, and each iteration does it.
    fn is_done_once(&self, block: Block, inst: Inst) -> bool {
        let func = &self.ctx.func;
        let opcode = func.dfg.insts[inst].opcode();
        let effects = Effects::of(func, inst);
        let is_check = opcode.can_trap() && opcode.side_effects_idempotent() && !effects.asserts;
        let is_load = effects.reads && !effects.writes && !effects.fences && self.loads.are_stable(func, inst);
        (is_check || is_load)
            && self.ctx.domtree.block_dominates(block, self.latch)
            && !(is_load && self.reads_what_others_write(inst))
    }

    /// Whether a load, of which no iteration changes what it reads, has to be done in each all the same.
    fn reads_what_others_write(&self, load: Inst) -> bool {
        let Context { func, cfg, domtree, .. } = self.ctx;
        let flags = func.dfg.insts[load].memflags();
        let polls = || self.polls.get_or_init(|| polls(func, (cfg, domtree), self.forest, self.lp));
        flags.is_some_and(|flags| self.options.is_asynchronous(func, func.dfg.mem_flags[flags]))
            || polls().binary_search(&load).is_ok()
    }

    /// Sets the levels of the header's parameters. Returns whether one has changed.
    fn update_header(&mut self) -> bool {
        let func = &self.ctx.func;
        let data = self.forest.data(self.lp);
        let mut changed = false;
        let args = data.entries[0].args(func).zip(data.back_edges[0].args(func));
        for (&param, (start, next)) in func.dfg.block_params(data.header).iter().zip(args) {
            let level = match (start.as_value(), next.as_value()) {
                (Some(start), Some(next)) => self.of_header_param(param, start, next),
                _ => Level::NEVER,
            };
            let was = self.of(param);
            if level.out < was.out {
                self.levels[param] = Some(level);
                changed = true;
            }
        }
        changed
    }

    /// Of a header parameter that gets `start` first and `next` then.
    fn of_header_param(&self, param: Value, start: Value, next: Value) -> Level {
        if next == param || next == start {
            return self.of(start);
        }
        let constant = |value| known(&self.ctx.func, &self.ctx.cfg, value);
        match constant(start) {
            Some(first) if constant(next) == Some(first) => Level::CONSTANT,
            _ => self.of(next).later().up_to(self.most),
        }
    }

    /// What is won by taking out this many iterations.
    pub(super) fn gain(&self, iterations: usize) -> Gain {
        let func = &self.ctx.func;
        let mut gain = Gain { iterations, ..Gain::default() };
        if !self.may_gain {
            return gain;
        }
        for &block in self.forest.blocks(self.lp) {
            for inst in func.layout.block_insts(block) {
                self.add(&mut gain, block, inst);
            }
        }
        let params = func.dfg.block_params(self.forest.data(self.lp).header).iter().enumerate();
        gain.params =
            params.filter(|(_, param)| self.of(**param).level <= iterations).map(|(index, _)| index).collect();
        let settled = self.settling.iter().filter(|(_, (level, _))| *level <= iterations);
        gain.settled = settled.map(|(&inst, &(_, holds))| (inst, holds)).collect();
        gain.settled.sort_unstable();
        gain
    }

    fn add(&self, gain: &mut Gain, block: Block, inst: Inst) {
        let func = &self.ctx.func;
        let effects = Effects::of(func, inst);
        let level = self.of_inst(block, inst);
        let folds = level.is_constant && func.dfg.insts[inst].opcode() != Opcode::Jump;
        if !(1..=gain.iterations).contains(&level.out)
            || (effects.terminates && !folds)
            || func.dfg.inst_results(inst).len() > 1
            || (is_comparison(func, inst) && !level.is_constant)
        {
            return;
        }
        let (count, weight) = match () {
            () if effects.terminates => (&mut gain.branches, 3),
            () if effects.is_pure() => (&mut gain.others, 1),
            () if effects.traps && !effects.reads => (&mut gain.checks, weight(func, inst)),
            () => (&mut gain.loads, weight(func, inst)),
        };
        *count += 1;
        gain.weight += weight;
        let is_repeated =
            level.level < gain.iterations && !effects.terminates && self.ctx.domtree.block_dominates(block, self.latch);
        if is_repeated {
            gain.repeated.push(inst);
        } else {
            gain.needs_cleanup = true;
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

impl Drop for Levels<'_> {
    fn drop(&mut self) {
        self.set_all(None);
    }
}

/// What a comparison gives, or the number that a branch asks for: whether it is zero.
fn compared_by(func: &Function, inst: Inst) -> Option<Value> {
    match func.dfg.insts[inst] {
        InstructionData::IntCompare { .. } => Some(func.dfg.first_result(inst)),
        InstructionData::Brif { arg, .. }
            if !func.dfg.value_def(arg).inst().is_some_and(|inst| is_comparison(func, inst)) =>
        {
            Some(arg)
        }
        _ => None,
    }
}

/// The comparisons of the loop, and branches on numbers, that give the same from some iteration on, which is not the first.
fn settling(
    ctx: &Context,
    (forest, lp): (&LoopForest, Loop),
    (most, count): (usize, TripCount),
    is_asked: &dyn Fn(Value) -> bool,
) -> FxHashMap<Inst, (usize, bool)> {
    let func = &ctx.func;
    let Some(around) = count.most() else { return FxHashMap::default() };
    let view = View { ctx, forest };
    let recurrences = Recurrences::with_constant_steps(view, lp);
    let insts = forest.blocks(lp).iter().flat_map(|&block| func.layout.block_insts(block));
    let compares = insts.filter_map(|inst| Some((inst, compared_by(func, inst)?)));
    let find = |(inst, value)| {
        let comparison = Tested::of(view, &recurrences, Comparison::of(func, value, true))?;
        let last = usize::try_from(around).unwrap_or(usize::MAX).min(most);
        let (level, holds) = (0..=last).find_map(|level| Some((level, settled(&comparison, level, around)?)))?;
        let level = if fault!(SettledTooEarly) { level.saturating_sub(1) } else { level };
        // The count is what the test of the loop says, ahead of which the processor may run.
        (level > 0 && !is_asked(value)).then_some((inst, (level, holds)))
    };
    compares.filter_map(find).collect()
}

/// What the comparison gives in iteration `from` and all after it, if that is the same. The last one has number `around`.
fn settled(comparison: &Tested, from: usize, around: u128) -> Option<bool> {
    let from = from as u128;
    let Tested { cond, numbers, bound } = *comparison;
    let (numbers, bound) = (numbers.after(from), bound?);
    let holds = compares(cond, [numbers.start, bound], numbers.ty);
    let opposite = Arc::of_condition(if holds { cond.complement() } else { cond }, bound, numbers.ty);
    opposite.is_none_or(|arc| numbers.not_in_before(arc) > around - from).then_some(holds)
}

/// Which loads read the same in each iteration, as far as regions tell.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Loads {
    /// Those of other regions than these, to which all stores go; all loads if there is no store.
    AllBut(Vec<AliasRegion>),
    /// None: something in the loop may write anywhere.
    No,
}

impl Loads {
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
