//! Cycles with two entries, together with loops: around one, so that a value comes into the loop by a path that no natural loop
//! has, and after one, whose exits lead to both entries, so that the cycle becomes a loop when one of them is removed.

use super::features::{Feature, Shape};
use super::loops::few;
use super::memory::{HIGH, LOW};
use super::outline::{Draft, End, Frame, On, Successor};
use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, MemFlagsData, Value, types};

fn with(block: Block, values: &[Value]) -> Successor {
    Successor { block, args: values.iter().map(|&value| Some(BlockArg::Value(value))).collect() }
}

impl Draft<'_, '_, '_> {
    /// A cycle with two entries and a loop. Gives the block after it.
    pub(super) fn entries(&mut self, at: Block) -> Block {
        let work = self.work;
        let fuel = few(self.random, work);
        self.work /= fuel as u64 * 4;
        let exit = if self.random.chance(60) { self.around(at, fuel) } else { self.beside(at, fuel) };
        self.work = work;
        exit
    }

    fn numbers_at<const N: usize>(&mut self, at: Block, numbers: [i128; N]) -> [Value; N] {
        numbers.map(|number| self.constant(at, types::I32, number))
    }

    fn block_of(&mut self, params: usize) -> (Block, Vec<Value>) {
        let block = self.block();
        let params = (0..params).map(|_| self.pos.func.dfg.append_block_param(block, types::I32)).collect();
        (block, params)
    }

    /// Entries to the cycle are `first` and `second`. Both lead to a loop that goes up to a number, which is another one on the
    /// path back to `first`.
    fn around(&mut self, at: Block, fuel: i128) -> Block {
        self.note(Shape::EntriesAround);
        let small = i128::from(self.random.pick(&[1_i8, 1, 0, 2, 3]));
        let other = if self.random.chance(60) { small } else { i128::from(self.random.pick(&[1_i8, 0, 2])) };
        let [fuel, bound] = self.numbers_at(at, [fuel, small]);
        let (first, first_params) = self.block_of(2);
        let (second, second_params) = self.block_of(1);
        let (join, join_params) = self.block_of(2);
        let exit = self.block();
        self.finish(at, End::Branch(On::Data, [with(first, &[fuel, bound]), with(second, &[fuel])]));
        self.frames.push(frame(exit, false));
        self.finish(first, End::Jump(with(join, &first_params)));
        let [other] = self.numbers_at(second, [other]);
        self.finish(second, End::Jump(with(join, &[second_params[0], other])));

        let (last, next) = self.counting_to(join, join_params[1]);
        self.pos.goto_bottom(last);
        let left = self.pos.ins().iadd_imm_s(join_params[0], -1);
        let again = self.block();
        let stays = self.pos.ins().icmp_imm_u(IntCC::NotEqual, left, 0);
        self.finish(last, End::Branch(On::Just(stays), [Successor::to(again), Successor::to(exit)]));
        let bound = if self.random.chance(60) { next } else { self.numbers_at(again, [2])[0] };
        self.pos.goto_bottom(again);
        let odd = self.pos.ins().band_imm_u(left, 1);
        let on = if self.random.chance(50) { On::Just(odd) } else { On::Data };
        self.finish(again, End::Branch(on, [with(first, &[left, bound]), with(second, &[left])]));
        self.frames.pop();
        exit
    }

    /// A loop from 0 to a small number, that one included or not. Gives the block after it, and the last number.
    fn counting_to(&mut self, at: Block, bound: Value) -> (Block, Value) {
        let [zero] = self.numbers_at(at, [0]);
        let (header, params) = self.block_of(1);
        self.outline.depths.insert(header, self.depth() + 1);
        self.outline.headers.insert(header);
        let exit = self.block();
        self.finish(at, End::Jump(with(header, &[zero])));
        self.frames.push(frame(exit, true));
        self.tick(header);
        let latch = if self.random.chance(30) { self.block() } else { header };
        if latch != header {
            self.finish(header, End::Jump(Successor::to(latch)));
        }
        self.frames.pop();
        self.pos.goto_bottom(latch);
        let next = self.pos.ins().iadd_imm_s(params[0], 1);
        let stays = match self.random.below(3) {
            0 => self.pos.ins().icmp(IntCC::UnsignedLessThan, next, bound),
            _ => self.pos.ins().icmp(IntCC::NotEqual, params[0], bound),
        };
        self.finish(latch, End::Branch(On::Just(stays), [with(header, &[next]), Successor::to(exit)]));
        (exit, next)
    }

    /// Counts something in memory, so that each iteration can be seen.
    fn tick(&mut self, at: Block) {
        if !self.features().has(Feature::Memory) {
            return;
        }
        let part = self.random.pick(&[LOW, HIGH]);
        let memory = self.pos.func.dfg.block_params(self.pos.func.layout.entry_block().expect("there is a block"))[0];
        let flags = MemFlagsData::trusted().with_alias_region(self.outline.regions[part.index]);
        let offset = part.start as i32 + 8 * self.random.below(4) as i32;
        self.pos.goto_bottom(at);
        let old = self.pos.ins().load(types::I64, flags, memory, offset);
        let new = self.pos.ins().iadd_imm_s(old, 1);
        self.pos.ins().store(flags, new, memory, offset);
    }

    /// A loop whose exits lead to both blocks of a cycle. It often ends at once, which folding finds out.
    fn beside(&mut self, at: Block, fuel: i128) -> Block {
        self.note(Shape::EntriesBeside);
        let start = self.random.below(3) as i128;
        let bound = start + self.random.pick(&[0, 1, 0, 2, 3]);
        let [start, fuel] = self.numbers_at(at, [start, fuel]);
        let (header, params) = self.block_of(1);
        self.outline.depths.insert(header, self.depth() + 1);
        self.outline.headers.insert(header);
        let (x, x_params) = self.block_of(1);
        let (y, y_params) = self.block_of(1);
        let exit = self.block();
        self.finish(at, End::Jump(with(header, &[start])));

        self.frames.push(frame(exit, true));
        let (body, latch) = (self.block(), self.block());
        self.frames.pop();
        let [bound] = self.numbers_at(header, [bound]);
        let condition = self.random.pick(&[IntCC::UnsignedLessThan, IntCC::NotEqual, IntCC::SignedLessThan]);
        self.pos.goto_bottom(header);
        let stays = self.pos.ins().icmp(condition, params[0], bound);
        self.finish(header, End::Branch(On::Just(stays), [Successor::to(body), with(x, &[fuel])]));
        self.finish(body, End::Branch(On::Data, [with(y, &[fuel]), Successor::to(latch)]));
        self.pos.goto_bottom(latch);
        let next = self.pos.ins().iadd_imm_s(params[0], 1);
        self.finish(latch, End::Jump(with(header, &[next])));

        self.tick(x);
        self.finish(x, End::Branch(On::Data, [with(y, &x_params), Successor::to(exit)]));
        self.tick(y);
        self.pos.goto_bottom(y);
        let left = self.pos.ins().iadd_imm_s(y_params[0], -1);
        let stays = self.pos.ins().icmp_imm_u(IntCC::NotEqual, left, 0);
        self.finish(y, End::Branch(On::Just(stays), [with(x, &[left]), Successor::to(exit)]));
        exit
    }
}

pub(super) fn frame(exit: Block, is_loop: bool) -> Frame {
    Frame { again: None, exit: Some(exit), front: 0, controls: Vec::new(), is_loop, walk: None }
}
