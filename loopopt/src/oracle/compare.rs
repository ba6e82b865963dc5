//! The comparison itself.

use super::code_range::codegen_error;
use super::compile::{Compiled, optimize, run_rewrite};
use super::difference::{Arm, Difference, Mismatch, mismatch, same_outcome};
use super::interpret::{Interpreted, interpret};
use super::native::STACK;
use super::run::Fault;
use super::{Call, Observation, Outcome, Pipeline, Program, Rewrite, Settings};
use crate::analysis::cfg::edges::edges_of;
use crate::analysis::cfg::jumps::jump_target;
use crate::analysis::memory::alias::Access;
use crate::ir::all_insts;
use crate::{LoopOptimizer, Options, Report};
use anyhow::{Context as _, Result};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, SourceLoc, TrapCode, Value};
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{CodegenResult, Context};

/// Instructions that the interpreter may run in one call: about 1 ms.
const FUEL: u64 = 10_000;

/// A call and the memory image for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The call.
    pub call: Call,
    /// The memory image before the call.
    pub memory: Vec<u8>,
}

/// That all arms do the same.
#[derive(Clone, Debug, Default)]
pub struct Agreement {
    /// Calls that were compared.
    pub compared: usize,
    /// Calls among them that the interpreter agrees on as well.
    pub interpreted: usize,
    /// Calls that were not compared because an arm that is not loopopt's did not end in time.
    pub timed_out: usize,
    /// Calls that were not compared because they ran out of stack. How large a frame is, is for the code generator to say.
    pub overflowed: usize,
    /// What loopopt did to each function, in the order of the program.
    pub reports: Vec<(String, Report)>,
}

/// Whether a program does the same before and after loopopt.
///
/// Makes every call in every arm and compares all that an [`Observation`] holds. NaNs are equal to each other as results and
/// as arguments of host functions; in memory, bytes are compared. The source location of a trap is compared, where an instruction that has none
/// gets one, if the two arms without loopopt agree on it, and not if Cranelift has let another access trap in the place of that: its egraph pass, which
/// runs again, removes a store that a later one to the same address makes dead, lets a branch to a block that only traps trap itself, and its lowering makes one instruction of a
/// load and a store of the same address, of a load and what uses it, or of all three.
/// A function that is reported as unchanged has to be the same to the letter.
///
/// The error is a [`Difference`] if one was found. It is something else if the program could not be compiled or called, or
/// if loopopt failed.
///
/// ```
/// # use loopopt::oracle::{Difference, Program, check};
/// # let program = Program::parse("function %f() { block0: return }")?;
/// match check(&program, &[], &loopopt::Options::default()) {
///     Ok(agreement) => println!("{} calls agree", agreement.compared),
///     Err(error) => match error.downcast_ref::<Difference>() {
///         Some(difference) => println!("found: {difference}"),
///         None => return Err(error),
///     },
/// }
/// # Ok::<(), anyhow::Error>(())
/// ```
pub fn check(program: &Program, cases: &[Case], options: &Options) -> Result<Agreement> {
    check_with(program, cases, Settings::default(), &mut rewrite(options))
}

/// loopopt with these options, for [`check_with`] and [`check_reports`].
pub fn rewrite(options: &Options) -> impl FnMut(&mut Context, &dyn TargetIsa) -> CodegenResult<Report> + 'static {
    let mut loops = LoopOptimizer::new(options.clone());
    move |context, isa| loops.run(context, isa, &mut ControlPlane::default())
}

/// Like [`check`], with something else in the place of loopopt and with other settings.
pub fn check_with(
    program: &Program,
    cases: &[Case],
    settings: Settings,
    rewrite: &mut Rewrite<'_>,
) -> Result<Agreement> {
    // First what loopopt has no part in: what fails there is not of its making.
    let program = &program.located();
    let none = Compiled::new(program, Pipeline::None, settings)?;
    let speed = Compiled::new(program, Pipeline::Speed, settings)?;
    let (optimized, defect) = compile_strictly(program, settings, rewrite)?;
    let mut arms = Arms { program, none, speed, optimized };
    let mut agreement = Agreement::default();
    for (number, case) in cases.iter().enumerate() {
        arms.compare(number, case, &mut agreement)?;
    }
    if let Some(defect) = defect {
        return Err(defect.into());
    }
    agreement.reports = reports(arms.optimized);
    Ok(agreement)
}

/// Whether loopopt does to a program what it says: a function that it reports as unchanged is the same to the letter, and a
/// second run on its output changes nothing and says so. Nothing is called. Gives the reports of the first run.
///
/// The error is as of [`check`].
pub fn check_reports(program: &Program, rewrite: &mut Rewrite<'_>) -> Result<Vec<(String, Report)>> {
    let settings = Settings { settles: true, ..Settings::default() };
    match compile_strictly(program, settings, rewrite)? {
        (_, Some(defect)) => Err(defect.into()),
        (compiled, None) => Ok(reports(compiled)),
    }
}

fn reports(compiled: Compiled) -> Vec<(String, Report)> {
    let functions = compiled.into_functions().into_iter();
    functions.filter_map(|function| Some((function.name, function.report?))).collect()
}

/// Compiles with a rewrite, and holds it to its reports.
fn compile_strictly(
    program: &Program,
    settings: Settings,
    rewrite: &mut Rewrite<'_>,
) -> Result<(Compiled, Option<Difference>)> {
    let mut defect = None;
    let compiled = Compiled::build(program, settings, &mut |context, isa| {
        optimize(context, isa)?;
        let (report, found) = rewrite_strictly(context, isa, settings, rewrite)?;
        defect = defect.take().or(found);
        Ok(Some(report))
    })?;
    Ok((compiled, defect))
}

fn rewrite_strictly(
    context: &mut Context,
    isa: &dyn TargetIsa,
    settings: Settings,
    rewrite: &mut Rewrite<'_>,
) -> Result<(Report, Option<Difference>)> {
    let before = context.func.to_string();
    let report = run_rewrite(context, isa, rewrite)?;
    let once = context.func.to_string();
    let function = context.func.name.to_string();
    if !report.changed && before != once {
        return Ok((report, Some(Difference::Unreported { function, before, after: once })));
    }
    if !settings.settles {
        return Ok((report, None));
    }
    let mut again = Context::for_function(context.func.clone());
    again.compute_cfg();
    again.compute_domtree();
    again.compute_loop_analysis();
    let second =
        rewrite(&mut again, isa).map_err(|error| codegen_error(&error)).context("loopopt fails on its output")?;
    let twice = again.func.to_string();
    if second.changed || once != twice {
        return Ok((report, Some(Difference::Unsettled { function, once, twice })));
    }
    Ok((report, None))
}

/// A program in all arms.
struct Arms<'a> {
    program: &'a Program,
    none: Compiled,
    speed: Compiled,
    optimized: Compiled,
}

impl Arms<'_> {
    fn compare(&mut self, number: usize, case: &Case, agreement: &mut Agreement) -> Result<()> {
        let Case { call, memory } = case;
        let observe = |arm: &mut Compiled| arm.observe_timed(call, memory).with_context(|| format!("{call}"));
        let (none, _) = observe(&mut self.none)?;
        if is_undecided(&none, agreement) {
            return Ok(());
        }
        let function = self.program.function(&call.function).context("the function is known")?;
        let fail = |arms, mismatch| Difference::Behavior { case: number, call: call.clone(), arms, mismatch };
        // What the first arm does without a fault, the others do too.
        let blame = |error: anyhow::Error, arms| match error.downcast::<Fault>() {
            Ok(fault) => fail(arms, Mismatch::Fault(fault)).into(),
            Err(error) => error,
        };
        let (speed, time) = observe(&mut self.speed).map_err(|error| blame(error, [Arm::None, Arm::Speed]))?;
        if is_undecided(&speed, agreement) {
            return Ok(());
        }
        let (optimized, _) = observe(&mut self.optimized).map_err(|error| blame(error, [Arm::Speed, Arm::LoopOpt]))?;
        // Slow, rather than endless: the others were near the limit too.
        let is_near_limit = time > self.speed.limit / 10;
        let may_overflow = is_overflow(&optimized.outcome) && self.needs_much_stack(case)?;
        if (may_overflow || is_near_limit) && is_undecided(&optimized, agreement) {
            return Ok(());
        }
        if let Some(mismatch) = mismatch(function, &none, &speed, false) {
            return Err(fail([Arm::None, Arm::Speed], mismatch).into());
        }
        let srcloc = srcloc(&none.outcome) == srcloc(&speed.outcome)
            && !trap_for_each_other(self.program, &speed.outcome, &optimized.outcome);
        if let Some(mismatch) = mismatch(function, &speed, &optimized, srcloc) {
            return Err(fail([Arm::Speed, Arm::LoopOpt], mismatch).into());
        }
        if let Some(interpreted) = interpreted(self.program, call) {
            if !same_as_interpreted(function, &interpreted, &none.outcome) {
                let outcomes = Box::new([interpreted, none.outcome]);
                return Err(fail([Arm::Interpreter, Arm::None], Mismatch::Outcome(outcomes)).into());
            }
            agreement.interpreted += 1;
        }
        agreement.compared += 1;
        Ok(())
    }

    /// Whether a call needs so much stack without loopopt that larger frames may need too much.
    fn needs_much_stack(&mut self, Case { call, memory }: &Case) -> Result<bool> {
        /// By how much frames may grow, for values that are saved.
        const GROWTH: usize = 8;
        self.speed.stack = STACK / GROWTH;
        let observed = self.speed.observe(call, memory);
        self.speed.stack = STACK;
        Ok(is_overflow(&observed?.outcome))
    }
}

/// Counts a call that cannot be compared.
fn is_undecided(observation: &Observation, agreement: &mut Agreement) -> bool {
    let timed_out = observation.outcome == Outcome::TimedOut;
    let overflowed = is_overflow(&observation.outcome);
    agreement.timed_out += usize::from(timed_out);
    agreement.overflowed += usize::from(overflowed);
    timed_out || overflowed
}

fn is_overflow(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Trapped { code: TrapCode::STACK_OVERFLOW, .. })
}

pub(super) fn srcloc(outcome: &Outcome) -> Option<SourceLoc> {
    match outcome {
        Outcome::Trapped { srcloc, .. } => Some(*srcloc),
        _ => None,
    }
}

/// Whether it is Cranelift that lets one instruction trap in the place of the other: a store that a later one makes dead, a
/// load and a store of one place that become one instruction, with or without what is done in between, a load that becomes a part of its user, or of a comparison that is made at its own, or a branch to a block that does
/// nothing but trap, which becomes a trap at the branch.
fn trap_for_each_other(program: &Program, a: &Outcome, b: &Outcome) -> bool {
    let (Some((func, a)), Some((_, b))) = (insts_at_trap(program, a), insts_at_trap(program, b)) else { return false };
    a.iter().any(|&a| b.iter().any(|&b| can_stand_for(func, a, b) || can_stand_for(func, b, a)))
}

/// Whether the trap of `first` may be seen at `second`.
fn can_stand_for(func: &Function, first: Inst, second: Inst) -> bool {
    use InstructionData::{Brif, Load, Store, Trap};
    match (func.dfg.insts[first], func.dfg.insts[second]) {
        (Store { .. }, Store { .. }) => is_same_place(func, first, second),
        (Load { arg, offset, .. }, Store { args: [_, other], offset: other_offset, .. })
            if (arg, offset) == (other, other_offset) =>
        {
            true
        }
        (Load { .. }, _) => {
            let loaded = func.dfg.first_result(first);
            func.dfg.inst_values(second).any(|value| may_be(func, value, loaded) || compares(func, value, loaded))
        }
        (_, Store { args: [stored, address], offset, .. }) => {
            func.dfg.value_def(func.dfg.resolve_aliases(stored)).inst() == Some(first)
                && func.dfg.inst_values(first).any(|value| is_loaded_from(func, value, address, offset))
        }
        (Trap { .. }, Brif { .. }) => edges_of(func, second)
            .any(|edge| func.layout.inst_block(first) == Some(past_jumps(func, edge.target(func)))),
        _ => false,
    }
}

/// Whether `value` is that of a comparison of `loaded`.
fn compares(func: &Function, value: Value, loaded: Value) -> bool {
    let def = func.dfg.value_def(func.dfg.resolve_aliases(value)).inst();
    let is_comparison = |inst: &Inst| {
        matches!(func.dfg.insts[*inst], InstructionData::IntCompare { .. } | InstructionData::FloatCompare { .. })
    };
    def.filter(is_comparison).is_some_and(|inst| func.dfg.inst_values(inst).any(|value| may_be(func, value, loaded)))
}

/// Whether `value` is `known`, or a parameter to which that is passed: where the two blocks become one, it is that value.
fn may_be(func: &Function, value: Value, known: Value) -> bool {
    /// Values that are followed: what a program passes from block to block.
    const MAX_FOLLOWED: usize = 16;
    let mut open = vec![func.dfg.resolve_aliases(value)];
    for place in 0..MAX_FOLLOWED {
        let Some(&value) = open.get(place) else { break };
        if value == known {
            return true;
        }
        let edges = func.layout.blocks().filter_map(|block| func.layout.last_inst(block));
        for edge in edges.flat_map(|branch| edges_of(func, branch)) {
            let passed = edge.passed_for(func, value).map(|passed| func.dfg.resolve_aliases(passed));
            open.extend(passed.filter(|passed| !open.contains(passed)));
        }
    }
    false
}

/// Whether two stores are to the same bytes, as far as sums say.
fn is_same_place(func: &Function, first: Inst, second: Inst) -> bool {
    let [first, second] = [first, second].map(|inst| Access::of(func, inst));
    first.zip(second).is_some_and(|(first, second)| (first.address, first.size) == (second.address, second.size))
}

/// Whether a value is what a load gave, from there. A load, an operation and a store of what it gives can become one instruction, which traps at the
/// place of the store; where only the load and the operation do, it is that of the operation.
fn is_loaded_from(func: &Function, value: Value, address: Value, from: Offset32) -> bool {
    let load = func.dfg.value_def(func.dfg.resolve_aliases(value)).inst().map(|inst| func.dfg.insts[inst]);
    matches!(load, Some(InstructionData::Load { arg, offset, .. })
        if offset == from && func.dfg.resolve_aliases(arg) == func.dfg.resolve_aliases(address))
}

/// The block that `block` leads to, if it and those after it only jump.
fn past_jumps(func: &Function, mut block: Block) -> Block {
    /// Blocks that are followed: what front ends make of one statement.
    const MAX_JUMPS: usize = 8;
    for _ in 0..MAX_JUMPS {
        let Some(next) = jump_target(func, block) else { break };
        block = next;
    }
    block
}

/// The instructions with the location of a trap. One that is made of a load and a store can come out with no location: then
/// these are all of the function.
fn insts_at_trap<'a>(program: &'a Program, outcome: &Outcome) -> Option<(&'a Function, Vec<Inst>)> {
    let Outcome::Trapped { function, srcloc, .. } = outcome else { return None };
    let function = program.function(function)?;
    let insts = all_insts(function);
    let is_meant = |inst: &Inst| srcloc.is_default() || function.srcloc(*inst) == *srcloc;
    Some((function, insts.filter(is_meant).collect()))
}

/// What the interpreter says, if it can run the call to its end. It does not say where a trap is.
fn interpreted(program: &Program, call: &Call) -> Option<Outcome> {
    match interpret(program, call, FUEL)? {
        Interpreted::Returned(values) => Some(Outcome::Returned(values)),
        Interpreted::Trapped(code) => {
            Some(Outcome::Trapped { code, function: call.function.clone(), srcloc: SourceLoc::default() })
        }
        Interpreted::TimedOut => None,
    }
}

fn same_as_interpreted(function: &Function, interpreted: &Outcome, outcome: &Outcome) -> bool {
    match (interpreted, outcome) {
        (Outcome::Trapped { code: a, .. }, Outcome::Trapped { code: b, .. }) => a == b,
        _ => same_outcome(function, interpreted, outcome, false),
    }
}
