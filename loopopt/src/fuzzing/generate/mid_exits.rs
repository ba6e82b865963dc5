//! A nest of which the inner loop leaves in its middle: once entered, it always runs what is before the test, and what is
//! after the test perhaps never.
//!
//! Before the test an element of a row is accessed, whose index is the counter of the outer loop; after it a cell. The arguments
//! say whether the cell is in the row or beside it.

use super::features::Shape;
use super::memory::{HIGH, IMAGE};
use super::outline::{Draft, End, On, Successor};
use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Value, types};

/// Where a cell is that both write.
const CELL: i32 = IMAGE as i32;

impl Draft<'_, '_, '_> {
    /// Such a loop. Gives the block after it.
    pub(super) fn mid_exit(&mut self, at: Block) -> Option<Block> {
        self.note(Shape::MidExit);
        let image = self.image();
        let number = self.small_number(at, 16);
        let place = self.element(at, HIGH.start.into(), number, 8);
        let limit = 1 + self.random.below(9) as i64;
        let out = self.block();
        let outer = self.small_loop(at, 7);
        let row = self.element(outer.header, HIGH.start.into(), outer.counter, 8);
        let inner = self.small_loop(outer.header, 7);
        let flags = self.trusted(HIGH.index);
        self.pos.goto_bottom(inner.header);
        let old = self.pos.ins().load(types::I64, flags, row, 0);
        let new = self.pos.ins().iadd(old, inner.counter);
        self.pos.ins().store(flags, new, row, 0);
        self.outline.private.extend([old, new]);
        let tested = self.tested(inner.header, outer.counter, inner.counter);
        let stays = self.pos.ins().icmp_imm_u(IntCC::UnsignedLessThan, tested, limit);
        let next = self.block();
        self.finish(inner.header, End::Branch(On::Just(stays), [Successor::to(next), Successor::to(out)]));
        self.pos.goto_bottom(next);
        let loaded = self.pos.ins().load(types::I64, flags.with_can_move(), place, 0);
        self.outline.private.push(loaded);
        match self.random.below(3) {
            0 => _ = self.pos.ins().store(flags, loaded, image, CELL),
            1 => self.absorb(next, loaded),
            _ => {
                let more = self.pos.ins().iadd_imm_s(loaded, 1);
                self.outline.private.push(more);
                self.pos.ins().store(flags, more, place, 0);
            }
        }
        if let Some(latch) = self.some(next, 30) {
            let behind = self.end_small_loop(latch, &inner);
            self.end_outer(behind, out, outer);
        } else {
            self.frames.pop();
            self.frames.pop();
        }
        self.pos.goto_bottom(out);
        let last = self.pos.ins().load(types::I64, flags, place, 0);
        self.absorb(out, last);
        Some(out)
    }

    /// What is tested: the counter of the outer loop, or that of both, in a way that tells at once or not.
    fn tested(&mut self, at: Block, outer: Value, inner: Value) -> Value {
        self.pos.goto_bottom(at);
        match self.random.below(3) {
            0 => outer,
            1 => self.pos.ins().iadd(outer, inner),
            _ => {
                let times = self.pos.ins().imul_imm_s(inner, 3);
                let sum = self.pos.ins().iadd(times, outer);
                let twice = self.pos.ins().ishl_imm_u(inner, 1);
                let rest = self.pos.ins().isub(sum, twice);
                self.pos.ins().isub(rest, inner)
            }
        }
    }

    /// The end of the outer loop, with a test of its own or none: that in the middle ends it.
    fn end_outer(&mut self, at: Block, out: Block, outer: super::pointers::Small) {
        if self.random.chance(50) {
            let behind = self.end_small_loop(at, &outer);
            return self.finish(behind, End::Jump(Successor::to(out)));
        }
        self.frames.pop();
        self.pos.goto_bottom(at);
        let next = self.pos.ins().iadd_imm_s(outer.counter, 1);
        self.finish(at, End::Jump(Successor { block: outer.header, args: vec![Some(BlockArg::Value(next))] }));
    }
}
