//! Records of which one variant ever runs. What would read or write the other one says that it is in a region of its own, which holds of
//! no access that runs: its place may be that of a field of the variant that runs.

use super::features::Shape;
use super::memory::{IMAGE, STAGE};
use super::outline::{Draft, End, On, Successor};
use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value, types};

/// Where the tags are, after four fields: eight bytes that are zero.
const TAGS: i32 = IMAGE as i32 + STAGE as i32 - 8;

impl Draft<'_, '_, '_> {
    /// A loop whose inner loop asks which variant it is. Gives the block after it, if a path continues.
    pub(super) fn variants(&mut self, at: Block) -> Option<Block> {
        self.note(Shape::IdleRegion);
        let [runs, idle, tags] = [7, 8, 9].map(|user_id| {
            let region = self.region_of_its_own(user_id);
            MemFlagsData::trusted().with_alias_region(Some(region))
        });
        let most = self.random.pick(&[2, 2, 4]);
        let fields = [(); 2].map(|()| {
            let number = self.small_number(at, most);
            self.element(at, IMAGE as i64, number, 8)
        });
        let image = self.image();
        self.pos.goto_bottom(at);
        let zero = self.pos.ins().iconst(types::I64, 0);
        self.pos.ins().store(tags, zero, image, TAGS);
        let outer = self.small_loop(at, 7);
        self.update(outer.header, fields[1], runs, outer.counter);
        let inner = self.small_loop(outer.header, 7);
        self.pos.goto_bottom(inner.header);
        let place = self.pos.ins().iadd(image, inner.counter);
        self.outline.private.push(place);
        let tag = self.pos.ins().uload8(types::I64, tags, place, TAGS);
        let [other, this, meet] = [(); 3].map(|()| self.block());
        self.finish(inner.header, End::Branch(On::Just(tag), [Successor::to(other), Successor::to(this)]));

        if self.random.chance(70) {
            self.update(other, fields[0], idle, inner.counter);
        } else {
            self.read(other, fields[0], idle);
        }
        self.finish(other, End::Jump(Successor::to(meet)));
        if self.random.chance(30) {
            self.update(this, fields[0], runs, inner.counter);
        } else {
            self.read(this, fields[0], runs);
        }
        self.finish(this, End::Jump(Successor::to(meet)));
        let latch = self.some(meet, 25);
        let exit = self.end_nest(latch, &inner);
        self.end_nest(exit, &outer)
    }

    fn read(&mut self, at: Block, field: Value, flags: MemFlagsData) {
        let flags = if self.random.chance(50) { flags.with_can_move() } else { flags };
        self.pos.goto_bottom(at);
        let loaded = self.pos.ins().load(types::I64, flags, field, 0);
        self.absorb(at, loaded);
    }

    fn update(&mut self, at: Block, field: Value, flags: MemFlagsData, by: Value) {
        let loads = if self.random.chance(50) { flags.with_can_move() } else { flags };
        self.pos.goto_bottom(at);
        let old = self.pos.ins().load(types::I64, loads, field, 0);
        let sum = self.pos.ins().iadd(old, by);
        let new = self.pos.ins().iadd_imm_s(sum, 1);
        self.pos.ins().store(flags, new, field, 0);
    }
}
