//! Two memories that begin at one place, a region for each: with guards, each has a length of its own. The last argument is the length of
//! one, and how often a loop runs that accesses both.

use super::features::Shape;
use super::outline::Draft;
use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, types};

impl Draft<'_, '_, '_> {
    /// Such a loop. Gives the block after it, if a path continues.
    pub(super) fn twins(&mut self, at: Block) -> Option<Block> {
        self.note(Shape::TwoMemories);
        let image = self.image();
        let entry = self.pos.func.layout.entry_block().expect("there is a block");
        let length = *self.pos.func.dfg.block_params(entry).last().expect("it has a length");
        let regions = [5, 6].map(|user_id| self.region_of_its_own(user_id));
        self.pos.goto_bottom(at);
        let bound = self.pos.ins().band_imm_u(length, 31);
        let mut lp = self.small_loop(at, 7);
        lp.bound = if self.random.chance(70) { bound } else { lp.bound };
        self.pos.goto_bottom(lp.header);
        for _ in 0..2 + self.random.below(2) {
            let region = self.random.pick(&regions);
            let flags = MemFlagsData::trusted().with_alias_region(Some(region));
            let further = self.random.pick(&[0, 0, 1, 1, 8, 4]);
            self.pos.goto_bottom(lp.header);
            let index = self.pos.ins().iadd_imm_s(lp.counter, further);
            let address = self.pos.ins().iadd(image, index);
            self.outline.private.extend([index, address]);
            let ty = self.random.pick(&[types::I8, types::I8, types::I32, types::I64]);
            let loaded = self.pos.ins().load(ty, flags, address, 0);
            let loaded = if ty == types::I64 { loaded } else { self.pos.ins().uextend(types::I64, loaded) };
            self.absorb(lp.header, loaded);
        }
        let latch = self.some(lp.header, 15);
        self.end_nest(latch, &lp)
    }
}
