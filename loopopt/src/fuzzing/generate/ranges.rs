//! Loops with several counters of different widths: one ends the loop, and checks are on others.
//!
//! Starts and bounds are parameters, numbers near the ends of their types, sums and multiples of those, so that ranges wrap,
//! run backwards, cancel and vanish. Such a loop need not end for all arguments. So it is known as data as well
//! ([`Counting`]), which says how it ends for given arguments: calls are made with those for which it ends soon, mostly
//! with pairs of which one lets a check just hold and the other one just fail.

use super::choices::wrap;
use super::expr::{Expr, Values};
use super::features::{Feature, Shape};
use super::induction::{condition, holds};
use super::memory::{HIGH, LOW};
use super::outline::{Draft, End, Frame, On, Successor};
use super::plan::{Control, Next};
use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, MemFlagsData, Opcode, TrapCode, Type, Value, types};

/// How many iterations such a loop may have in one call.
const ITERATIONS: u64 = 120;
/// How many elements there are at least after a checked index.
const ROOM: i128 = 200;

/// Where in an iteration something is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Top,
    /// At the end, with this iteration's counters.
    Bottom,
    /// At the end, with the next iteration's counters.
    Next,
}

/// What happens if a comparison holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Exit,
    Trap,
    /// A branch to a trap.
    Branch,
}

/// A comparison that ends the loop.
#[derive(Clone, Debug)]
struct Test {
    stage: Stage,
    how: How,
    condition: IntCC,
    sides: [Expr; 2],
    /// Whether an element is accessed after it.
    accesses: bool,
}

/// What ends a loop, and when.
#[derive(Clone, Debug)]
pub(super) struct Counting {
    /// First values and steps.
    counters: Vec<(Expr, i128)>,
    /// In the order of an iteration.
    tests: Vec<Test>,
    limit: u64,
}

/// What loops look like that compilers make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// One counter walks over a range of narrower numbers, and is narrowed to be checked, as WebAssembly has it.
    Walked,
    /// A narrow counter is checked beside a wide one that ends the loop.
    Beside,
    Any,
}

/// Which test ends a loop, and in which iteration.
pub(super) type Ending = (u64, usize);

impl Counting {
    /// How the loop ends, if it ends soon.
    pub(super) fn ending(&self, params: &[i128]) -> Option<Ending> {
        let mut counters: Vec<i128> =
            self.counters.iter().map(|(start, _)| start.eval(Values { params, counters: &[] })).collect();
        for iteration in 0..self.limit {
            let nexts: Vec<i128> = (counters.iter().zip(&self.counters))
                .map(|(now, (start, step))| wrap(now.wrapping_add(*step), start.ty().bits()))
                .collect();
            for (index, test) in self.tests.iter().enumerate() {
                let counters = if test.stage == Stage::Next { &nexts } else { &counters };
                let [a, b] = test.sides.each_ref().map(|side| side.eval(Values { params, counters }));
                if holds(test.condition, a, b, test.sides[0].ty().bits()) {
                    return Some((iteration, index));
                }
            }
            counters = nexts;
        }
        None
    }

    /// The numbers that the loop is made of.
    pub(super) fn constants(&self) -> Vec<i128> {
        let mut list: Vec<i128> = self.counters.iter().map(|(_, step)| *step).collect();
        self.counters.iter().for_each(|(start, _)| start.constants(&mut list));
        self.tests.iter().flat_map(|test| &test.sides).for_each(|side| side.constants(&mut list));
        list
    }
}

impl Draft<'_, '_, '_> {
    /// A loop with several counters. Gives the block after it.
    pub(super) fn ranges(&mut self, at: Block) -> Block {
        let counting = self.counting();
        let params = self.arguments();
        self.pos.goto_bottom(at);
        let starts: Vec<Value> = (counting.counters.iter())
            .map(|(start, _)| start.emit(&mut self.pos, Values { params: &params, counters: &[] }))
            .collect();
        let (header, exit) = (self.block(), self.block());
        self.outline.depths.insert(header, self.depth() + 1);
        self.outline.headers.insert(header);
        let mut controls = Vec::new();
        for (&start, (_, step)) in starts.iter().zip(&counting.counters) {
            let ty = self.pos.func.dfg.value_type(start);
            let param = self.pos.func.dfg.append_block_param(header, ty);
            controls.push(Control { param, next: Next::Step(*step), outside: None });
        }
        let args = starts.into_iter().map(|start| Some(BlockArg::Value(start))).collect();
        self.finish(at, End::Jump(Successor { block: header, args }));
        let work = self.work;
        self.work /= counting.limit + 1;
        self.frames.push(Frame { again: None, exit: Some(exit), front: 0, controls, is_loop: true, walk: None });
        self.iteration(header, exit, &counting, &params);
        self.frames.pop();
        self.work = work;
        self.outline.countings.push(counting);
        exit
    }

    fn iteration(&mut self, header: Block, exit: Block, counting: &Counting, params: &[Value]) {
        let frame = self.frames.last().expect("inside of a loop").clone();
        let now: Vec<Value> = frame.controls.iter().map(|control| control.param).collect();
        let (top, bottom): (Vec<&Test>, Vec<&Test>) = counting.tests.iter().partition(|test| test.stage == Stage::Top);
        let mut block = header;
        for test in top {
            block = self.range_test(block, exit, test, Values { params, counters: &now });
        }
        if bottom.is_empty() {
            self.frames.last_mut().expect("inside of a loop").again = Some((header, true));
        }
        let body = if self.random.chance(25) { self.region(block, 1) } else { Some(block) };
        let Some(mut latch) = body else { return };
        let args = self.next_args(latch, &frame);
        let nexts: Vec<Value> = (args.iter().flatten()).filter_map(BlockArg::as_value).collect();
        let back = Successor { block: header, args };
        let Some((last, others)) = bottom.split_last() else { return self.finish(latch, End::Jump(back)) };
        for test in others {
            let counters = if test.stage == Stage::Next { &nexts } else { &now };
            latch = self.range_test(latch, exit, test, Values { params, counters });
        }
        let counters = if last.stage == Stage::Next { &nexts } else { &now };
        let leaves = self.compared(latch, last, Values { params, counters });
        self.finish(latch, End::Branch(On::Just(leaves), [Successor::to(exit), back]));
    }

    fn compared(&mut self, at: Block, test: &Test, values: Values<'_, Value>) -> Value {
        self.pos.goto_bottom(at);
        let [a, b] = test.sides.each_ref().map(|side| side.emit(&mut self.pos, values));
        self.pos.ins().icmp(test.condition, a, b)
    }

    /// Emits a test, and gives the block in which it does not hold.
    fn range_test(&mut self, at: Block, exit: Block, test: &Test, values: Values<'_, Value>) -> Block {
        let code = TrapCode::unwrap_user(1 + self.random.below(4) as u8);
        let leaves = self.compared(at, test, values);
        let next = match test.how {
            How::Trap => {
                if self.random.chance(50) {
                    self.pos.ins().trapnz(leaves, code);
                } else {
                    let stays = self.pos.ins().icmp_imm_u(IntCC::Equal, leaves, 0);
                    self.pos.ins().trapz(stays, code);
                }
                at
            }
            How::Exit | How::Branch => {
                let next = self.block();
                let out = if test.how == How::Exit { exit } else { self.block() };
                if test.how == How::Branch {
                    self.finish(out, End::Trap);
                }
                self.finish(at, End::Branch(On::Just(leaves), [Successor::to(out), Successor::to(next)]));
                next
            }
        };
        self.pos.goto_bottom(next);
        if test.how != How::Exit && self.features().has(Feature::Memory) {
            let index = test.sides[0].emit(&mut self.pos, values);
            self.show(index, test.accesses);
        }
        next
    }

    /// Accesses the element of an index that is in range, or lets the index be seen.
    fn show(&mut self, index: Value, accesses: bool) {
        let memory = self.arguments()[0];
        let flags = MemFlagsData::trusted();
        if accesses {
            let address = self.pos.ins().iadd(memory, index);
            self.outline.private.push(address);
            let flags = MemFlagsData::new().with_notrap().with_alias_region(self.outline.regions[HIGH.index]);
            let ty = types::I8;
            if self.random.chance(50) {
                self.pos.ins().load(ty, flags, address, HIGH.start as i32);
            } else {
                let value = self.pos.ins().ireduce(ty, index);
                self.pos.ins().store(flags, value, address, HIGH.start as i32);
            }
        } else if self.random.chance(30) && self.pos.func.dfg.value_type(index) != types::I128 {
            let flags = flags.with_alias_region(self.outline.regions[LOW.index]);
            self.pos.ins().store(flags, index, memory, LOW.start as i32 + 8);
        }
    }

    fn arguments(&self) -> Vec<Value> {
        let entry = self.pos.func.layout.entry_block().expect("there is a block");
        self.pos.func.dfg.block_params(entry).to_vec()
    }

    /// Decides on a loop.
    fn counting(&mut self) -> Counting {
        let style = self.random.pick(&[Style::Walked, Style::Beside, Style::Any]);
        let counters = self.range_counters(style);
        let mut tests = Vec::new();
        for _ in 0..self.random.pick(&[1, 1, 2]) {
            tests.push(self.range_check(style, &counters));
        }
        let exit = self.range_exit(style, &counters, 0);
        match exit.stage {
            Stage::Top => tests.insert(0, exit),
            _ => tests.push(exit),
        }
        if self.random.chance(15) {
            self.note(Shape::SecondExit);
            let index = self.random.below(counters.len());
            let mut exit = self.range_exit(Style::Any, &counters, index);
            if exit.stage == Stage::Top {
                exit.stage = Stage::Bottom;
            }
            tests.push(exit);
        }
        Counting { counters, tests, limit: self.work.clamp(1, ITERATIONS) }
    }

    fn range_counters(&mut self, style: Style) -> Vec<(Expr, i128)> {
        let (wide, any) = (usize::from(self.features().has(Feature::Wide)), usize::from(style == Style::Any));
        let tested = self.random.weighted(&[
            (6, types::I64),
            (1 + 4 * any, types::I32),
            (any, types::I16),
            (any, types::I8),
            (wide, types::I128),
        ]);
        let first = match style {
            Style::Walked => (self.own_number(0, tested), self.random.pick(&[1, 1, 1, 1, -1, 2, 4])),
            Style::Beside | Style::Any => self.range_counter(tested),
        };
        let mut counters = vec![first];
        let others = match style {
            Style::Walked => 0,
            Style::Beside => 1,
            Style::Any => self.random.pick(&[1, 1, 0, 2]),
        };
        for _ in 0..others {
            let ty = self.random.weighted(&[(6, types::I32), (any, types::I64), (1, types::I16), (1, types::I8)]);
            counters.push(self.range_counter(ty));
        }
        if counters.iter().any(|(start, _)| start.ty() != tested) {
            self.note(Shape::MixedCounters);
        }
        counters
    }

    fn range_counter(&mut self, ty: Type) -> (Expr, i128) {
        let start = match self.random.below(10) {
            0..=3 => Expr::Constant(ty, i128::from(self.random.pick(&[0_i8, 0, 1, 10, -1, 4]))),
            4 | 5 => Expr::Constant(ty, self.random.integer(ty.bits())),
            6 => {
                let more = Expr::Constant(ty, self.random.integer(ty.bits()));
                Expr::binary(Opcode::Iadd, self.number(ty), more)
            }
            _ => self.number(ty),
        };
        let few = i128::from(self.random.pick(&[2_i8, 3, 4, 8, 16]));
        let far = 1 << (self.random.below(ty.bits() as usize - 1));
        (start, self.random.weighted(&[(8, 1), (2, -1), (2, few), (1, -few), (2, far), (1, -far)]))
    }

    /// One of the parameters that there are for this, mostly extended without sign: the first two are narrow.
    fn own_number(&mut self, which: usize, ty: Type) -> Expr {
        let params = &self.pos.func.signature.params;
        let index = params.len() - 3 + which;
        let param = Expr::Param(index, params[index].value_type);
        if param.ty().bits() < ty.bits() && self.random.chance(85) {
            return Expr::Convert(Opcode::Uextend, ty, Box::new(param));
        }
        if param.ty() == ty { param } else { self.number(ty) }
    }

    /// A parameter as a value of this type.
    fn number(&mut self, ty: Type) -> Expr {
        let signature = &self.pos.func.signature.params;
        let fits = |ty: Type| ty.is_int() && ty.bits() <= 64;
        let has_memory = self.features().has(Feature::Memory);
        let numbers: Vec<(usize, Type)> = (signature.iter().map(|param| param.value_type).enumerate())
            .filter(|&(index, ty)| fits(ty) && !(has_memory && index == 0))
            .collect();
        // Mostly one of those that there are for this, and one that fits.
        let own = &numbers[numbers.len().saturating_sub(3)..];
        let some = if self.random.chance(85) { own } else { &numbers };
        let (index, from) = self.random.pick(some);
        let exact = own.iter().rev().find(|(_, from)| *from == ty).copied();
        let (index, from) = exact.filter(|_| self.random.chance(35)).unwrap_or((index, from));
        self.in_type(Expr::Param(index, from), ty)
    }

    /// The same number in another type, or a part of it in the same.
    fn in_type(&mut self, of: Expr, ty: Type) -> Expr {
        let convert = |opcode, ty, of| Expr::Convert(opcode, ty, Box::new(of));
        let extension = self.random.pick(&[Opcode::Uextend, Opcode::Uextend, Opcode::Uextend, Opcode::Sextend]);
        match of.ty().bits().cmp(&ty.bits()) {
            std::cmp::Ordering::Less => convert(extension, ty, of),
            std::cmp::Ordering::Greater => convert(Opcode::Ireduce, ty, of),
            std::cmp::Ordering::Equal if ty.bits() > 8 && ty.bits() <= 64 && self.random.chance(20) => {
                let narrow = self.narrower(ty);
                convert(extension, ty, convert(Opcode::Ireduce, narrow, of))
            }
            std::cmp::Ordering::Equal => of,
        }
    }

    /// Mostly half as many bits.
    fn narrower(&mut self, ty: Type) -> Type {
        let half = ty.half_width().expect("the type has more than 8 bits");
        if half != types::I8 && self.random.chance(20) { half.half_width().unwrap_or(half) } else { half }
    }

    fn range_exit(&mut self, style: Style, counters: &[(Expr, i128)], index: usize) -> Test {
        let (start, step) = &counters[index];
        let ty = start.ty();
        let bits = ty.bits();
        let is_walked = style == Style::Walked;
        let is_own = is_walked || (style == Style::Beside && self.random.chance(30));
        let bound = match self.random.below(if is_walked { 10 } else { 20 }) {
            0..=8 if is_own => self.own_number(1, ty),
            0..=6 => self.number(ty),
            7..=9 if let Expr::Constant(_, first) = start => {
                // A few steps on, or all the way round.
                let steps = self.random.below(9) as i128 - 2;
                Expr::Constant(ty, wrap(first.wrapping_add(step.wrapping_mul(steps)), bits))
            }
            7..=13 => {
                let end = self.random.pick(&[0, i128::MAX >> (128 - bits), i128::MIN >> (128 - bits)]);
                Expr::Constant(ty, wrap(end.wrapping_add(self.random.below(9) as i128 - 4), bits))
            }
            14 | 15 => {
                self.note(Shape::BoundFromWrap);
                let number = self.number(ty);
                Expr::binary(self.random.pick(&[Opcode::Iadd, Opcode::Isub]), start.clone(), number)
            }
            16 | 17 => {
                self.note(Shape::BoundFromWrap);
                let by = Expr::Constant(ty, i128::from(self.random.pick(&[2_i8, 1, 3])));
                let scaled = Expr::binary(Opcode::Ishl, self.number(ty), by);
                Expr::binary(Opcode::Iadd, scaled, Expr::Constant(ty, self.random.below(3) as i128))
            }
            _ => Expr::Constant(ty, self.random.integer(bits)),
        };
        use IntCC::{
            Equal, SignedGreaterThan, SignedGreaterThanOrEqual, SignedLessThan, SignedLessThanOrEqual,
            UnsignedGreaterThan, UnsignedGreaterThanOrEqual, UnsignedLessThan, UnsignedLessThanOrEqual,
        };
        let up = [UnsignedGreaterThanOrEqual, SignedGreaterThanOrEqual, UnsignedGreaterThan, SignedGreaterThan];
        let down = [UnsignedLessThanOrEqual, SignedLessThanOrEqual, UnsignedLessThan, SignedLessThan];
        let condition = match self.random.below(10) {
            0..=3 => Equal,
            4 | 5 if is_walked => Equal,
            4..=8 => self.random.pick(if *step > 0 { &up } else { &down }),
            _ => condition(self.random),
        };
        if condition == Equal {
            self.note(Shape::EndsAtEqual);
        }
        let stage = self.random.weighted(&[(9, Stage::Top), (7, Stage::Next), (4, Stage::Bottom)]);
        Test { stage, how: How::Exit, condition, sides: [Expr::Counter(index, ty), bound], accesses: false }
    }

    /// A check of an index that counts.
    fn range_check(&mut self, style: Style, counters: &[(Expr, i128)]) -> Test {
        let others = self.random.chance(if style == Style::Beside { 95 } else { 75 }) && counters.len() > 1;
        let at = if others { 1 + self.random.below(counters.len() - 1) } else { self.random.below(counters.len()) };
        let index = self.range_index(style, counters, at);
        let ty = index.ty();
        let bits = ty.bits();
        let mut len = match self.random.below(10) {
            0..=5 if style != Style::Any => self.own_number(2, ty),
            0..=7 => self.number(ty),
            8 => Expr::Constant(ty, wrap(i128::from(self.random.pick(&[100_u8, 16, 64, 200])), bits)),
            _ => Expr::Constant(ty, self.random.integer(bits)),
        };
        let how = self.random.weighted(&[(6, How::Trap), (2, How::Branch), (1, How::Exit)]);
        let (condition, index) = match self.random.below(20) {
            0..=12 => (IntCC::UnsignedGreaterThanOrEqual, index),
            13..=15 => {
                let more = Expr::Constant(ty, i128::from(self.random.pick(&[4_i8, 1, 8])));
                (IntCC::UnsignedGreaterThan, Expr::binary(Opcode::Iadd, index, more))
            }
            16 | 17 => (IntCC::SignedGreaterThanOrEqual, index),
            18 => (IntCC::SignedLessThan, index),
            _ => (condition(self.random), index),
        };
        let is_bounded = condition == IntCC::UnsignedGreaterThanOrEqual && ty == types::I64;
        let accesses = is_bounded && how != How::Exit && self.random.chance(50);
        if accesses {
            len = Expr::binary(Opcode::Umin, len, Expr::Constant(ty, ROOM));
        }
        Test { stage: Stage::Top, how, condition, sides: [index, len], accesses }
    }

    /// A number that is computed from a counter.
    fn range_index(&mut self, style: Style, counters: &[(Expr, i128)], at: usize) -> Expr {
        let mut index = Expr::Counter(at, counters[at].0.ty());
        let share = match style {
            Style::Walked => 85,
            Style::Beside => 5,
            Style::Any => 30,
        };
        if index.ty().bits() > 8 && index.ty() != types::I128 && self.random.chance(share) {
            self.note(Shape::Narrowed);
            let narrow = self.narrower(index.ty());
            index = Expr::Convert(Opcode::Ireduce, narrow, Box::new(index));
            if self.random.chance(8) {
                let mask = Expr::Constant(narrow, i128::from(self.random.pick(&[63_i8, 7, -2, -4])));
                index = Expr::binary(Opcode::Band, index, mask);
            }
        }
        if index.ty() != types::I64 && self.random.chance(if style == Style::Any { 75 } else { 95 }) {
            index = self.in_type(index, types::I64);
        }
        let ty = index.ty();
        if self.random.chance(15) {
            self.note(Shape::Vanishing);
            let by = self.random.pick(&[32, 16, 48, 56, 1, 2, 31]) % i128::from(ty.bits());
            let (opcode, by) = if self.random.chance(60) { (Opcode::Ishl, by) } else { (Opcode::Imul, 1 << by) };
            index = Expr::binary(opcode, index, Expr::Constant(ty, by));
        }
        if self.random.chance(if style == Style::Walked { 15 } else { 35 }) {
            let opcode = self.random.pick(&[Opcode::Iadd, Opcode::Iadd, Opcode::Isub]);
            let more = match self.random.below(5) {
                0 => Expr::Constant(ty, i128::from(self.random.pick(&[1_i8, 4, -1, 16]))),
                1 => self.number(ty),
                _ => {
                    self.note(Shape::CancelledStart);
                    let start = counters[self.random.below(counters.len())].0.clone();
                    self.in_type(start, ty)
                }
            };
            index = Expr::binary(opcode, index, more);
        }
        index
    }
}
