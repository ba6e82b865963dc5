//! Elements around a counter are loaded, and one of an array is stored that begins where an argument says, some
//! elements further or before: what comes back in a later iteration may have changed until then.

use super::features::Shape;
use super::memory::HIGH;
use super::outline::Draft;
use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::ir::{Block, InstBuilder, types};

impl Draft<'_, '_, '_> {
    /// Such a loop. Gives the block after it, if a path continues.
    pub(super) fn stencil(&mut self, at: Block) -> Option<Block> {
        self.note(Shape::Stencil);
        let ty = self.random.pick(&[types::I32, types::I32, types::I16]);
        let size = i64::from(ty.bytes());
        let flags = self.trusted(HIGH.index);
        let entry = self.pos.func.layout.entry_block().expect("there is a block");
        let address = *self.pos.func.dfg.block_params(entry).last().expect("it has an address");
        self.pos.goto_bottom(at);
        let first = self.pos.ins().iadd_imm_s(address, i64::from(HIGH.start));
        self.outline.private.push(first);
        // The elements are in the middle of what the other array can be.
        let start = i64::from(HIGH.start) + size * self.random.pick(&[0, 4, 6]);
        let lp = self.small_loop(at, 31);
        let index = self.up_or_down(&lp, 31);
        let elements = self.element(lp.header, start, index, size);
        let mut sum = self.pos.ins().load(ty, flags, elements, 0);
        for element in 1..2 + self.random.below(2) as i32 {
            let next = self.pos.ins().load(ty, flags, elements, element * size as i32);
            sum = self.pos.ins().iadd(sum, next);
        }
        let distance = self.pos.ins().imul_imm_s(index, size);
        let to = self.pos.ins().iadd(first, distance);
        self.outline.private.extend([elements, distance, to]);
        if self.random.chance(85) {
            let more = self.pos.ins().iadd_imm_s(sum, 1);
            self.pos.ins().store(flags, more, to, 0);
        }
        let latch = self.some(lp.header, 15);
        self.end_nest(latch, &lp)
    }
}
