//! Neighbours in an array change places if one is greater than the other, as in a bubble sort: what the next iteration loads was stored on one path,
//! and loaded on the other. On either path a store may be missing, and there may be one more.

use super::features::Shape;
use super::memory::LOW;
use super::outline::{Draft, End, On, Successor};
use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value, types};

/// Two elements of an array: where the first one is, how far after it the second one, and what they are.
struct Pair {
    place: Value,
    distance: i32,
    loaded: [Value; 2],
}

impl Draft<'_, '_, '_> {
    /// A loop over pairs, maybe in another loop. Gives the block after it, if a path continues.
    pub(super) fn exchange(&mut self, at: Block) -> Option<Block> {
        self.note(Shape::Exchange);
        let ty = self.random.pick(&[types::I32, types::I64, types::I16]);
        let size = i64::from(ty.bytes());
        let flags = self.trusted(LOW.index);
        let nest = self.small_nest(at);
        let lp = &nest.inner;
        let index = self.up_or_down(lp, 7);
        let steps_down = index != lp.counter;
        let place = self.element(lp.header, i64::from(LOW.start) + 4 * size, index, size);
        self.outline.private.push(index);
        let ahead = if steps_down { -1 } else { 1 };
        let distance = size as i32 * self.random.pick(&[ahead, ahead, ahead, -ahead, 2 * ahead]);
        let loaded = [0, distance].map(|offset| self.pos.ins().load(ty, flags, place, offset));
        let greater = self.pos.ins().icmp(IntCC::UnsignedGreaterThan, loaded[0], loaded[1]);
        let meet = self.exchange_if(lp.header, greater, flags, &Pair { place, distance, loaded });
        let latch = self.some(meet, 15);
        self.end_small_nest(latch, &nest)
    }

    /// The branch, and the arms in which the pair is stored. Gives the block in which they meet.
    fn exchange_if(&mut self, at: Block, condition: Value, flags: MemFlagsData, pair: &Pair) -> Block {
        let [yes, no, meet] = [(); 3].map(|()| self.block());
        self.finish(at, End::Branch(On::Just(condition), [Successor::to(yes), Successor::to(no)]));
        for (block, likely) in [(yes, 85), (no, 25)] {
            self.pos.goto_bottom(block);
            if self.random.chance(likely) {
                self.pos.ins().store(flags, pair.loaded[1], pair.place, 0);
            }
            if self.random.chance(likely) {
                let changed = self.pos.ins().iadd_imm_s(pair.loaded[0], 1);
                let value = self.random.pick(&[pair.loaded[0], pair.loaded[0], changed]);
                self.pos.ins().store(flags, value, pair.place, pair.distance);
            }
            if self.random.chance(10) {
                let offset = pair.distance * self.random.pick(&[2, -1]);
                self.pos.ins().store(flags, pair.loaded[0], pair.place, offset);
            }
            self.finish(block, End::Jump(Successor::to(meet)));
        }
        meet
    }
}
