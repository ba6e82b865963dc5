//! Addresses that are computed from a stack slot and are not in it: of accesses that never run, and by the distance of two slots, which is
//! loaded and leads from one to the other.

use super::features::Shape;
use super::memory::{IMAGE, LOW};
use super::outline::{Draft, End, On, Successor};
use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value, types};

/// Where it is said whether the accesses run: eight bytes for each scene, which are all zero, or one is not.
const TAGS: i32 = IMAGE as i32 + 64;
/// Scenes that there is room for.
const MOST: usize = 16;
/// Bytes of a slot.
const SIZE: i64 = 64;

impl Draft<'_, '_, '_> {
    /// A loop with one of them. Gives the block after it, if a path continues.
    pub(super) fn beyond(&mut self, at: Block) -> Option<Block> {
        if self.outline.tags == MOST {
            return Some(at);
        }
        let (_, first) = self.zeroed_slot(at, SIZE as u32);
        let (_, second) = self.zeroed_slot(at, SIZE as u32);
        self.see(at, first);
        if self.random.chance(35) { self.by_distance(at, first, second) } else { self.out_of_range(at, first, second) }
    }

    /// Lets a host function see a slot.
    fn see(&mut self, at: Block, slot: Value) {
        let name = self.random.pick(&["see", "read_slot", "write_slot"]);
        let callee = self.host_named(name);
        self.pos.goto_bottom(at);
        let number = self.pos.ins().iconst(types::I64, 3);
        self.pos.ins().call(callee, &[slot, number]);
    }

    /// An outer loop that may store beyond a slot, and an inner one that may load from there; neither does unless that is in the slot. Then
    /// there is a store to the slot beside.
    fn out_of_range(&mut self, at: Block, beside: Value, slot: Value) -> Option<Block> {
        self.note(Shape::BeyondSlot);
        let tags = TAGS + 8 * self.outline.tags as i32;
        self.outline.tags += 1;
        let image = self.image();
        let flags = MemFlagsData::trusted();
        let number = self.small_number(at, 4);
        let word = self.small_number(at, 256);
        self.pos.goto_bottom(at);
        let number = self.pos.ins().iadd_imm_s(number, -1);
        let distance = self.pos.ins().ishl_imm_u(number, 6);
        let place = self.pos.ins().iadd(slot, distance);
        let zero = self.pos.ins().iconst(types::I64, 0);
        let is_inside = self.pos.ins().icmp(IntCC::Equal, distance, zero);
        let tag = self.pos.ins().select(is_inside, word, zero);
        let tag_flags = self.stage_flags(9);
        self.pos.ins().store(tag_flags, tag, image, tags);
        self.outline.private.extend([number, distance, place, tag]);
        if self.random.chance(40) {
            self.see(at, slot);
        }
        let outer = self.small_loop(at, 7);
        let mut behind = outer.header;
        if self.random.chance(70) {
            self.pos.goto_bottom(outer.header);
            let tag = self.pos.ins().uload8(types::I64, tag_flags, image, tags);
            let store = self.block();
            behind = self.block();
            self.finish(outer.header, End::Branch(On::Just(tag), [Successor::to(store), Successor::to(behind)]));
            self.pos.goto_bottom(store);
            self.pos.ins().store(flags, outer.counter, place, 0);
            self.finish(store, End::Jump(Successor::to(behind)));
        }
        let inner = self.small_loop(behind, 7);
        let latch = self.tagged_load(inner.header, (inner.counter, tags), place);
        let exit = self.end_nest(latch, &inner);
        if let Some(exit) = exit {
            self.pos.goto_bottom(exit);
            let field = self.pos.ins().band_imm_u(outer.counter, 1);
            let bytes = self.pos.ins().ishl_imm_u(field, 3);
            let address = self.pos.ins().iadd(beside, bytes);
            let more = self.pos.ins().iadd_imm_s(outer.counter, 1);
            self.pos.ins().store(flags, more, address, 0);
            self.outline.private.extend([bytes, address]);
        }
        let exit = self.end_nest(exit, &outer)?;
        for field in [0, 8] {
            self.pos.goto_bottom(exit);
            let last = self.pos.ins().load(types::I64, flags, beside, field);
            self.absorb(exit, last);
        }
        Some(exit)
    }

    /// A load that its tag says to do, and perhaps a store.
    fn tagged_load(&mut self, at: Block, (counter, tags): (Value, i32), place: Value) -> Option<Block> {
        let image = self.image();
        let tag_flags = self.stage_flags(9);
        let flags = MemFlagsData::trusted();
        let may_move = if self.random.chance(60) { flags.with_can_move() } else { flags };
        self.pos.goto_bottom(at);
        let address = self.pos.ins().iadd(image, counter);
        self.outline.private.push(address);
        let tag = self.pos.ins().uload8(types::I64, tag_flags, address, tags);
        let (load, meet) = (self.block(), self.block());
        self.finish(at, End::Branch(On::Just(tag), [Successor::to(load), Successor::to(meet)]));
        self.pos.goto_bottom(load);
        let loaded = self.pos.ins().load(types::I64, may_move, place, 0);
        self.absorb(load, loaded);
        if self.random.chance(40) {
            self.pos.goto_bottom(load);
            let more = self.pos.ins().iadd_imm_s(loaded, 1);
            self.pos.ins().store(flags, more, place, 0);
        }
        self.finish(load, End::Jump(Successor::to(meet)));
        self.some(meet, 25)
    }

    /// A slot holds the distance of two others, and a loop accesses one of them by the other's address.
    fn by_distance(&mut self, at: Block, first: Value, second: Value) -> Option<Block> {
        self.note(Shape::SlotDistance);
        let flags = MemFlagsData::trusted();
        let (_, kept) = self.zeroed_slot(at, 8);
        self.see(at, second);
        self.see(at, kept);
        self.pos.goto_bottom(at);
        let distance = self.pos.ins().isub(second, first);
        self.pos.ins().store(flags, distance, kept, 0);
        if self.random.chance(60) {
            self.see_without_a_word(at, kept);
        }
        self.pos.goto_bottom(at);
        let loaded = self.pos.ins().load(types::I64, flags, kept, 0);
        let place = self.pos.ins().iadd(first, loaded);
        self.outline.private.extend([distance, loaded, place]);
        let lp = self.small_loop(at, 7);
        self.pos.goto_bottom(lp.header);
        let old = self.pos.ins().load(types::I64, flags, second, 0);
        let new = self.pos.ins().iadd_imm_s(old, 1);
        self.pos.ins().store(flags, new, second, 0);
        let other = self.pos.ins().load(types::I64, flags, place, 0);
        self.absorb(lp.header, other);
        self.pos.goto_bottom(lp.header);
        if self.random.chance(60) {
            let times = self.pos.ins().imul_imm_s(lp.counter, 7);
            self.pos.ins().store(flags, times, place, 0);
        }
        let latch = self.some(lp.header, 25);
        let exit = self.end_nest(latch, &lp)?;
        self.pos.goto_bottom(exit);
        let last = self.pos.ins().load(types::I64, flags, second, 0);
        self.absorb(exit, last);
        Some(exit)
    }

    /// Passes the address of a slot to a host function that does not look there.
    fn see_without_a_word(&mut self, at: Block, slot: Value) {
        let callee = self.host_named("see");
        self.pos.goto_bottom(at);
        let number = self.pos.ins().iconst(types::I64, i64::from(LOW.start));
        self.pos.ins().call(callee, &[slot, number]);
    }
}
