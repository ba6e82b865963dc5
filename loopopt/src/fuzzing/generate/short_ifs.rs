//! Short branches on what is loaded: both arms compute a little, and meet in values that are stored. The next iteration may load them, and a branch may
//! follow the other one.

use super::features::Shape;
use super::memory::LOW;
use super::outline::{Draft, End, On, Successor};
use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Type, Value, types};

/// Values that are chosen together.
type Pair = [Value; 2];

impl Draft<'_, '_, '_> {
    /// A loop with such branches, maybe in another loop. Gives the block after it, if a path continues.
    pub(super) fn short_ifs(&mut self, at: Block) -> Option<Block> {
        self.note(Shape::ShortIf);
        let ty = self.random.pick(&[types::I8, types::I16, types::I32, types::I64]);
        let size = i64::from(ty.bytes());
        let flags = self.trusted(LOW.index);
        let nest = self.small_nest(at);
        let header = nest.inner.header;
        let place = self.element(header, i64::from(LOW.start) + size, nest.inner.counter, size);
        let next = size as i32;
        let mut values = [0, next].map(|offset| self.pos.ins().load(ty, flags, place, offset));
        let mut block = header;
        for _ in 0..=self.random.below(3) {
            (block, values) = self.short_if(block, values, ty);
        }
        self.pos.goto_bottom(block);
        let other = self.random.pick(&[-next, next]);
        self.pos.ins().store(flags, values[0], place, 0);
        if self.random.chance(60) {
            self.pos.ins().store(flags, values[1], place, other);
        }
        let latch = self.some(block, 10);
        self.end_small_nest(latch, &nest)
    }

    /// One branch. Gives the block where its arms meet, and what it has chosen.
    fn short_if(&mut self, at: Block, values: Pair, ty: Type) -> (Block, Pair) {
        let meet = self.block();
        self.pos.goto_bottom(at);
        let cond = self.random.pick(&[IntCC::UnsignedLessThan, IntCC::SignedGreaterThan, IntCC::Equal]);
        let constant = self.random.pick(&[0, 1, 100, -1]);
        let limit = self.pos.ins().iconst(ty, constant & ones(ty));
        let right = if self.random.chance(50) { limit } else { values[1] };
        let condition = self.pos.ins().icmp(cond, values[0], right);
        let successors = [85, 40].map(|likely| match self.random.chance(likely) {
            true => (self.block(), true),
            false => (meet, false),
        });
        let arguments = |values: Pair| values.map(|value| Some(BlockArg::Value(value))).to_vec();
        let to = |(block, is_side): (Block, bool)| Successor {
            block,
            args: if is_side { Vec::new() } else { arguments(values) },
        };
        self.finish(at, End::Branch(On::Just(condition), successors.map(to)));
        for (side, _) in successors.into_iter().filter(|(_, is_side)| *is_side) {
            self.pos.goto_bottom(side);
            let changed = [self.changed(values, ty), self.changed([values[1], values[0]], ty)];
            self.finish(side, End::Jump(Successor { block: meet, args: arguments(changed) }));
        }
        let chosen = [(); 2].map(|()| self.pos.func.dfg.append_block_param(meet, ty));
        (meet, chosen)
    }

    /// The first of two values, or what a cheap operation makes of both.
    fn changed(&mut self, [value, other]: Pair, ty: Type) -> Value {
        let constant = self.random.pick(&[1, 3, -1]);
        let constant = self.pos.ins().iconst(ty, constant & ones(ty));
        let by = self.random.pick(&[constant, other]);
        match self.random.below(9) {
            0 | 1 => self.pos.ins().iadd(value, by),
            2 => self.pos.ins().isub(value, by),
            3 => self.pos.ins().isub(by, value),
            4 => self.pos.ins().bxor(by, value),
            5 => self.pos.ins().band(value, by),
            6 => self.pos.ins().bor(value, by),
            7 => self.pos.ins().ineg(value),
            _ => value,
        }
    }
}

/// All bits of a type.
fn ones(ty: Type) -> i64 {
    (u64::MAX >> (64 - ty.bits())).cast_signed()
}
