//! Loops that wait: generated ones that end once another thread writes to memory, and not before. Some end even if it writes only once it has seen what they store.
//!
//! They load, compute, store and branch at random. What is found to wait, with Cranelift alone, has to end with loopopt as well. None of their numbers is halved, as such a one is taken to get to zero
//! (`docs/trust.md`, "Waiting with plain loads"). Numbers that are carried around a loop have 8 bits, or only as many that are not zero: a loop that a count ends does so at once, and whatever runs for long waits or never ends.

use super::addition::Draws;
use super::generate::Shape;
use super::statistics::Statistics;
use super::unoptimized::rewrite_unoptimized;
use crate::ir::all_insts;
use crate::oracle::{Arg, Call, Compiled, ConcurrentWrite, Outcome, Pipeline, Program, Settings, optimizing_isa};
use crate::{LoopOptimizer, Options};
use anyhow::{Result, bail};
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Block, Function, InstBuilder, MemFlagsData, Signature, Type, UserFuncName, Value, types,
};
use cranelift_codegen::isa::{CallConv, TargetIsa};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use std::iter;
use std::time::Duration;

/// Bytes of memory: cells of 8 bytes each.
const MEMORY: usize = 32;
/// What has not ended in so much time waits, or never ends: counts of 8 bits in a loop and an outer loop take less.
const ALONE: Duration = Duration::from_millis(1);
/// What waits ends in so much time, in which it is written once.
const SOON: Duration = Duration::from_micros(100);
/// In so much time it does even if nearly all writes are overwritten before they are seen, and the machine does other things.
const LATE: Duration = Duration::from_secs(1);
/// How many writes are tried.
const WRITES: usize = 6;
/// How often a call has to end. Once it may be by chance: it has loaded the same twice, and the write was between.
const TIMES: usize = 12;
/// How often it may fail to end with loopopt: by the same chance it does not see what is written in time, and then another wait begins.
const MOST_TIMES: usize = 40;
/// How often all of this has to fail.
const TRIES: usize = 3;
/// The most loops in each other.
const DEPTH: usize = 2;
/// The most instructions of a function, about: what is in an expression comes on top.
const STATEMENTS: usize = 14;

/// Checks the function of this seed, if it waits.
pub(super) fn check(seed: u64, statistics: &mut Statistics) -> Result<()> {
    let mut draws = Draws::new(seed);
    let program = Program::new(vec![generate(&mut draws)?])?;
    let func = &program.functions()[0];
    let memory = cells(&mut draws);
    let call = Call {
        function: "waits".to_owned(),
        args: vec![Arg::Memory(0), Arg::Value(DataValue::I8(small(&mut draws) as i8))],
    };
    let observe = |compiled: &mut Compiled, answer: &Answer, limit| -> Result<bool> {
        let Answer { bytes, to } = answer;
        let write = ConcurrentWrite { offset: 0, bytes, answers: *to };
        let outcome = compiled.observe_beside(&call, &memory, write, limit)?;
        Ok(outcome != Outcome::TimedOut)
    };
    let mut alone = Compiled::new(&program, Pipeline::Speed, Settings::default())?;
    // What a loop waits for may be a load that Cranelift alone has let be what another one has read.
    let joins_loads = loads(&alone.functions()[0].clif) != loads(func);
    if joins_loads {
        alone = Compiled::new(&program, Pipeline::None, Settings::default())?;
    }
    let mut loops = LoopOptimizer::new(Options { lowers_directly: joins_loads, ..options(seed) });
    let mut rewrite = |context: &mut Context, isa: &dyn TargetIsa| match joins_loads {
        true => rewrite_unoptimized(&mut loops, func, context, isa),
        false => loops.run(context, isa, &mut ControlPlane::default()),
    };
    let mut optimized = Compiled::with_rewrite(&program, Settings::default(), &mut rewrite)?;
    let Some(answer) = awaited(&mut draws, &mut |answer, limit| observe(&mut alone, answer, limit))? else {
        return Ok(());
    };
    statistics.note(Shape::WaitingLoop);
    if answer.to.is_some() {
        statistics.note(Shape::AnsweredLoop);
    }
    if optimized.functions()[0].report.as_ref().is_some_and(|report| !report.changed) {
        return Ok(());
    }
    // What fails is tried again: time is that of the clock, and the machine may do other things.
    for _ in 0..TRIES {
        for limit in iter::repeat_n(SOON, MOST_TIMES).chain([LATE]) {
            if observe(&mut optimized, &answer, limit)? {
                return Ok(());
            }
        }
        if !ends_each_time(&mut |limit| observe(&mut alone, &answer, limit))? {
            return Ok(());
        }
    }
    let rewritten = &optimized.functions()[0].clif;
    bail!("{call} with {memory:?} ends without loopopt alone: {answer:?}\n{func}\nwith loopopt:\n{rewritten}")
}

/// How many loads a function has.
fn loads(func: &Function) -> usize {
    all_insts(func).filter(|&inst| func.dfg.insts[inst].opcode().can_load()).count()
}

/// Which loops are rewritten, and by what.
fn options(seed: u64) -> Options {
    let strict = || Options { verify_each_pass: true, ..Options::default() };
    match seed % 4 {
        0 => Options { verify_each_pass: true, ..Options::stress(seed) },
        1 => Options { ignore_cost: true, ..strict() },
        2 => {
            let names: Vec<_> = crate::pass_names().collect();
            let name = names[(seed >> 2) as usize % names.len()].to_owned();
            Options { passes: Some(vec![name]), ignore_cost: true, ..strict() }
        }
        _ => strict(),
    }
}

/// What another thread does.
#[derive(Debug)]
struct Answer {
    /// What it writes to memory.
    bytes: Vec<u8>,
    /// Only while the byte at this offset is another one than it was.
    to: Option<usize>,
}

/// What a call waits for, if it waits: an answer to what it stores, if it ends then as well. `ends` says whether it ends while another thread does this, before so much
/// time is over.
fn awaited(draws: &mut Draws, ends: &mut dyn FnMut(&Answer, Duration) -> Result<bool>) -> Result<Option<Answer>> {
    if ends(&Answer { bytes: Vec::new(), to: None }, ALONE)? {
        return Ok(None);
    }
    for _ in 0..WRITES {
        let mut answer = Answer { bytes: cells(draws), to: None };
        if !ends_each_time(&mut |limit| ends(&answer, limit))? {
            continue;
        }
        for cell in 0..MEMORY / 8 {
            answer.to = Some(8 * cell);
            if ends_each_time(&mut |limit| ends(&answer, limit))? {
                return Ok(Some(answer));
            }
        }
        return Ok(Some(Answer { to: None, ..answer }));
    }
    Ok(None)
}

/// Whether a call ends soon, as often as it is made.
fn ends_each_time(ends: &mut dyn FnMut(Duration) -> Result<bool>) -> Result<bool> {
    for _ in 0..TIMES {
        if !ends(SOON)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What is in memory.
fn cells(draws: &mut Draws) -> Vec<u8> {
    (0..MEMORY / 8).flat_map(|_| small(draws).to_le_bytes()).collect()
}

/// One of a few numbers, so that two of them are often equal.
fn small(draws: &mut Draws) -> i64 {
    const NUMBERS: [i64; 8] = [0, 1, 2, 3, 5, 8, -1, 0x55];
    NUMBERS[draws.draw(8) as usize]
}

/// Whether something is so in so many percent of all cases.
fn chance(draws: &mut Draws, percent: u64) -> bool {
    draws.draw(100) < percent
}

/// A loop that is being made.
#[derive(Clone, Copy)]
struct Open {
    header: Block,
    exit: Block,
}

/// A function that is being made.
struct Generator<'a> {
    draws: &'a mut Draws,
    builder: FunctionBuilder<'a>,
    memory: Value,
    variables: Vec<(Variable, Type)>,
    open: Vec<Open>,
    /// How many statements there may still be.
    left: usize,
}

/// A function of the address of memory and a number.
fn generate(draws: &mut Draws) -> Result<Function> {
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params.extend([types::I64, types::I8].map(AbiParam::new));
    signature.returns.push(AbiParam::new(types::I8));
    let mut func = Function::with_name_signature(UserFuncName::testcase("waits"), signature);
    let mut context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut func, &mut context);
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    let &[memory, number] = builder.block_params(entry) else { unreachable!("two parameters") };
    let mut generator = Generator { draws, builder, memory, variables: Vec::new(), open: Vec::new(), left: STATEMENTS };
    let result = generator.variable(types::I8, number);
    for _ in 0..generator.draws.draw(4) {
        let ty = generator.pick(&[types::I8, types::I8, types::I16, types::I32, types::I64]);
        let start = generator.constant(ty);
        generator.variable(ty, start);
    }
    for _ in 0..1 + generator.draws.draw(2) {
        generator.a_loop();
    }
    let Generator { mut builder, .. } = generator;
    let value = builder.use_var(result);
    builder.ins().return_(&[value]);
    builder.seal_all_blocks();
    builder.finalize(optimizing_isa()?.frontend_config());
    func.dfg.resolve_all_aliases();
    Ok(func)
}

impl Generator<'_> {
    fn variable(&mut self, ty: Type, start: Value) -> Variable {
        let variable = self.builder.declare_var(ty);
        self.builder.def_var(variable, start);
        self.variables.push((variable, ty));
        variable
    }

    fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.draws.draw(items.len() as u64) as usize]
    }

    fn constant(&mut self, ty: Type) -> Value {
        let number = small(self.draws) & (u64::MAX >> (64 - ty.bits())).cast_signed();
        self.builder.ins().iconst(ty, number)
    }

    /// A load from a cell, or from one that a number says.
    fn load(&mut self, ty: Type) -> Value {
        let loaded = self.pick(&[ty, ty, types::I8, types::I32, types::I64]);
        let (address, offset) = self.address();
        let flags = self.flags();
        let value = self.builder.ins().load(loaded, flags, address, offset);
        self.convert(value, ty)
    }

    fn flags(&mut self) -> MemFlagsData {
        if chance(self.draws, 50) { MemFlagsData::trusted() } else { MemFlagsData::new() }
    }

    /// One that variables do not decide: a walk along what is linked is taken to end.
    fn address(&mut self) -> (Value, i32) {
        if chance(self.draws, 85) {
            return (self.memory, 8 * self.draws.draw(MEMORY as u64 / 8) as i32);
        }
        let number = self.load(types::I64);
        let mask = self.builder.ins().iconst(types::I64, MEMORY as i64 - 8);
        let offset = self.builder.ins().band(number, mask);
        (self.builder.ins().iadd(self.memory, offset), 0)
    }

    fn convert(&mut self, value: Value, to: Type) -> Value {
        let from = self.builder.func.dfg.value_type(value);
        if from.bits() > to.bits() {
            return self.builder.ins().ireduce(to, value);
        }
        match from == to {
            true => value,
            false if chance(self.draws, 70) => self.builder.ins().uextend(to, value),
            false => self.builder.ins().sextend(to, value),
        }
    }

    /// A number that is computed by at most so many operations on each other.
    fn number(&mut self, ty: Type, depth: usize) -> Value {
        let kinds = if depth == 0 { 6 } else { 10 };
        match self.draws.draw(kinds) {
            0 | 1 => {
                let (variable, _) = self.pick(&self.variables.clone());
                let value = self.builder.use_var(variable);
                self.convert(value, ty)
            }
            2 | 3 => self.constant(ty),
            4 | 5 => self.load(ty),
            6 => {
                let condition = self.condition(depth - 1);
                let [a, b] = [(); 2].map(|()| self.number(ty, depth - 1));
                self.builder.ins().select(condition, a, b)
            }
            _ => {
                let [a, b] = [(); 2].map(|()| self.number(ty, depth - 1));
                let kind = self.draws.draw(10);
                let ins = self.builder.ins();
                match kind {
                    0 | 1 => ins.iadd(a, b),
                    2 | 3 => ins.isub(a, b),
                    4 => ins.imul(a, b),
                    5 => ins.band(a, b),
                    6 => ins.bor(a, b),
                    7 => ins.bxor(a, b),
                    8 => ins.umin(a, b),
                    _ => ins.umax(a, b),
                }
            }
        }
    }

    fn condition(&mut self, depth: usize) -> Value {
        match self.draws.draw(8) {
            0 => self.number(types::I8, depth),
            1 | 2 if depth > 0 => {
                let [a, b] = [(); 2].map(|()| self.condition(depth - 1));
                match self.draws.draw(3) {
                    0 => self.builder.ins().band(a, b),
                    1 => self.builder.ins().bor(a, b),
                    _ => self.builder.ins().bxor(a, b),
                }
            }
            kind => {
                let ty = self.pick(&[types::I8, types::I8, types::I16, types::I32, types::I64]);
                let a = if kind < 6 { self.load(ty) } else { self.number(ty, depth) };
                let b = if chance(self.draws, 60) { self.constant(ty) } else { self.number(ty, depth) };
                let code = self.pick(&[
                    IntCC::Equal,
                    IntCC::Equal,
                    IntCC::NotEqual,
                    IntCC::UnsignedLessThan,
                    IntCC::SignedGreaterThan,
                ]);
                self.builder.ins().icmp(code, a, b)
            }
        }
    }

    fn a_loop(&mut self) {
        let [header, exit] = [(); 2].map(|()| self.builder.create_block());
        self.builder.ins().jump(header, &[]);
        self.builder.switch_to_block(header);
        self.open.push(Open { header, exit });
        if chance(self.draws, 40) {
            self.branch_to(exit);
        }
        self.statements();
        if chance(self.draws, 60) {
            self.branch_to(exit);
        }
        self.builder.ins().jump(header, &[]);
        self.open.pop();
        self.builder.switch_to_block(exit);
    }

    /// Goes on elsewhere if a condition is fulfilled, or if it is not.
    fn branch_to(&mut self, target: Block) {
        let condition = self.condition(1);
        let next = self.builder.create_block();
        let [first, second] = if chance(self.draws, 50) { [target, next] } else { [next, target] };
        self.builder.ins().brif(condition, first, &[], second, &[]);
        self.builder.switch_to_block(next);
    }

    fn statements(&mut self) {
        for _ in 0..1 + self.draws.draw(4) {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            self.statement();
        }
    }

    fn statement(&mut self) {
        match self.draws.draw(12) {
            0..=3 => {
                let (variable, ty) = self.pick(&self.variables.clone());
                let mut value = self.number(ty, 2);
                if ty != types::I8 {
                    let mask = self.builder.ins().iconst(ty, 0x3f);
                    value = self.builder.ins().band(value, mask);
                }
                self.builder.def_var(variable, value);
            }
            4 | 5 => {
                let ty = self.pick(&[types::I8, types::I16, types::I32, types::I64]);
                let value = self.number(ty, 1);
                let (address, offset) = self.address();
                let flags = self.flags();
                self.builder.ins().store(flags, value, address, offset);
            }
            6 | 7 => self.choice(),
            8 | 9 if self.open.len() < DEPTH => self.a_loop(),
            10 => {
                let target = self.pick(&self.open.clone()).header;
                self.branch_to(target);
            }
            _ => {
                let target = self.pick(&self.open.clone()).exit;
                self.branch_to(target);
            }
        }
    }

    /// A branch of which both sides come together again.
    fn choice(&mut self) {
        let condition = self.condition(1);
        let [yes, no, after] = [(); 3].map(|()| self.builder.create_block());
        self.builder.ins().brif(condition, yes, &[], no, &[]);
        for side in [yes, no] {
            self.builder.switch_to_block(side);
            if side == yes || chance(self.draws, 40) {
                self.statements();
            }
            self.builder.ins().jump(after, &[]);
        }
        self.builder.switch_to_block(after);
    }
}
