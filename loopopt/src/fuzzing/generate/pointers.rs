//! Loops over pointers and slots that are kept in memory: a pointer in a cell that steps through an array, a field of a slot
//! that an inner loop counts in and an outer loop writes at an index, a loop that nothing ends but a trap.

use super::features::{Feature, Shape};
use super::memory::{HIGH, IMAGE, LOW, SLOT_REGION};
use super::outline::{Draft, End, Frame, On, Successor};
use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    Block, BlockArg, InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, TrapCode, Value, types,
};

/// A small loop in the making.
pub(super) struct Small {
    pub(super) header: Block,
    pub(super) counter: Value,
    pub(super) bound: Value,
}

impl Draft<'_, '_, '_> {
    /// A loop that counts up to a small number, and tests at the bottom.
    pub(super) fn small_loop(&mut self, at: Block, most: i128) -> Small {
        let zero = self.constant(at, types::I64, 0);
        let bound = if self.random.chance(30) {
            let count = 1 + self.random.below(most as usize) as i128;
            self.constant(at, types::I64, count)
        } else {
            let param = self.random.pick(&self.params);
            let param = self.resized(at, param, types::I64);
            self.pos.ins().band_imm_u(param, most as i64)
        };
        let header = self.block();
        self.outline.depths.insert(header, self.depth() + 1);
        self.outline.headers.insert(header);
        let counter = self.pos.func.dfg.append_block_param(header, types::I64);
        self.finish(at, End::Jump(Successor { block: header, args: vec![Some(BlockArg::Value(zero))] }));
        let frame = Frame { again: None, exit: None, front: 0, controls: Vec::new(), is_loop: true, walk: None };
        self.frames.push(frame);
        Small { header, counter, bound }
    }

    /// What counts as the loop does, or down from a number.
    pub(super) fn up_or_down(&mut self, small: &Small, last: i64) -> Value {
        self.pos.goto_bottom(small.header);
        if self.random.chance(30) {
            let last = self.pos.ins().iconst(types::I64, last);
            self.pos.ins().isub(last, small.counter)
        } else {
            small.counter
        }
    }

    /// Tests at the end of `latch`. Gives the block after the loop.
    pub(super) fn end_small_loop(&mut self, latch: Block, small: &Small) -> Block {
        self.frames.pop();
        let exit = self.block();
        self.pos.goto_bottom(latch);
        let next = self.pos.ins().iadd_imm_s(small.counter, 1);
        let stays = self.pos.ins().icmp(IntCC::UnsignedLessThan, next, small.bound);
        let back = Successor { block: small.header, args: vec![Some(BlockArg::Value(next))] };
        self.finish(latch, End::Branch(On::Just(stays), [back, Successor::to(exit)]));
        exit
    }

    /// The address of the memory image.
    pub(super) fn image(&self) -> Value {
        let entry = self.pos.func.layout.entry_block().expect("there is a block");
        self.pos.func.dfg.block_params(entry)[0]
    }

    /// A pointer that is kept after the image steps through a part of it. Nothing if none of its paths continues.
    pub(super) fn pointer_cell(&mut self, at: Block) -> Option<Block> {
        self.note(Shape::PointerCell);
        let memory = self.image();
        let cell = IMAGE as i32 + 8 * self.random.below(4) as i32;
        let cell_flags = MemFlagsData::trusted().with_alias_region(self.outline.regions[SLOT_REGION]);
        let flags = MemFlagsData::trusted().with_alias_region(self.outline.regions[HIGH.index]);
        let step = self.random.pick(&[8_i64, 8, 4, 16, -8]);
        let ty = self.random.pick(&[types::I64, types::I64, types::I32]);
        self.pos.goto_bottom(at);
        let middle = self.pos.ins().iadd_imm_s(memory, i64::from(HIGH.start + HIGH.len / 2));
        self.pos.ins().store(cell_flags, middle, memory, cell);
        self.outline.private.push(middle);
        // Seven steps of 16, and 16 more, would reach the cells after the image.
        let small = self.small_loop(at, if step == 16 { 3 } else { 7 });
        self.pos.goto_bottom(small.header);
        let pointer = self.pos.ins().load(types::I64, cell_flags, memory, cell);
        let next = self.pos.ins().iadd_imm_s(pointer, step);
        self.outline.private.extend([pointer, next]);
        let is_early = self.random.chance(30);
        if is_early {
            self.pos.ins().store(cell_flags, next, memory, cell);
        }
        let base = self.random.pick(&[pointer, pointer, next]);
        let behind = (-step) as i32;
        let (from, to) = self.random.pick(&[(behind, 0), (0, -behind), (behind, 0), (0, 0), (-behind, 0)]);
        let old = self.pos.ins().load(ty, flags, base, from);
        let new =
            if self.random.chance(50) { self.pos.ins().imul_imm_s(old, 3) } else { self.pos.ins().iadd_imm_s(old, 1) };
        self.pos.ins().store(flags, new, base, to);
        if !is_early {
            self.pos.ins().store(cell_flags, next, memory, cell);
        }
        let latch = if self.random.chance(30) { self.region(small.header, 1) } else { Some(small.header) };
        let Some(latch) = latch else {
            self.frames.pop();
            return None;
        };
        Some(self.end_small_loop(latch, &small))
    }

    /// A slot with four numbers: an inner loop counts in one of them, and the outer one writes one that its counter tells.
    pub(super) fn slot_nest(&mut self, at: Block) -> Block {
        self.note(Shape::SlotNest);
        let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, 32, 3);
        let slot = self.pos.func.create_sized_stack_slot(slot);
        let flags = MemFlagsData::trusted().with_alias_region(self.outline.regions[SLOT_REGION]);
        let zero = self.constant(at, types::I64, 0);
        self.pos.goto_bottom(at);
        let base = self.pos.ins().stack_addr(types::I64, slot, 0);
        self.outline.private.push(base);
        for field in 0..4 {
            self.pos.ins().store(flags, zero, base, 8 * field);
        }
        let work = self.work;
        self.work /= 64;
        let outer = self.small_loop(at, 7);
        let is_first = self.random.chance(30);
        if is_first {
            self.write_field(outer.header, base, outer.counter);
        }
        let before = self.block();
        self.finish(outer.header, End::Jump(Successor::to(before)));
        let inner = self.small_loop(before, 7);
        let field = 8 * self.random.below(4) as i32;
        let (address, offset) = self.field(inner.header, base, field);
        let old = self.pos.ins().load(types::I64, flags, address, offset);
        let new = self.pos.ins().iadd_imm_s(old, 1);
        self.pos.ins().store(flags, new, address, offset);
        let behind = self.end_small_loop(inner.header, &inner);
        if !is_first {
            self.write_field(behind, base, outer.counter);
        }
        let exit = self.end_small_loop(behind, &outer);
        self.work = work;
        let (address, offset) = self.field(exit, base, field);
        let last = self.pos.ins().load(types::I64, flags, address, offset);
        if self.features().has(Feature::Memory) {
            let memory = self.image();
            let flags = MemFlagsData::trusted().with_alias_region(self.outline.regions[LOW.index]);
            self.pos.ins().store(flags, last, memory, LOW.start as i32 + 16);
        }
        exit
    }

    /// The address of a field, the offset in the address or not.
    fn field(&mut self, at: Block, base: Value, field: i32) -> (Value, i32) {
        self.pos.goto_bottom(at);
        if self.random.chance(30) {
            return (base, field);
        }
        let address = self.pos.ins().iadd_imm_s(base, i64::from(field));
        self.outline.private.push(address);
        (address, 0)
    }

    fn write_field(&mut self, at: Block, base: Value, counter: Value) {
        let mask = self.random.pick(&[1, 3, 2]);
        let flags = MemFlagsData::trusted().with_alias_region(self.outline.regions[SLOT_REGION]);
        self.pos.goto_bottom(at);
        let index = self.pos.ins().band_imm_u(counter, mask);
        let offset = self.pos.ins().ishl_imm_u(index, 3);
        let address = self.pos.ins().iadd(base, offset);
        self.outline.private.push(address);
        let value = if self.random.chance(50) { self.pos.ins().iconst(types::I64, 0) } else { counter };
        self.pos.ins().store(flags, value, address, 0);
    }

    /// A path that never returns: a loop that a trap ends. Gives the block after the branch to it.
    pub(super) fn doomed(&mut self, at: Block) -> Block {
        self.note(Shape::Doomed);
        let (successor, next) = (self.block(), self.block());
        self.finish(at, End::Branch(On::Data, [Successor::to(successor), Successor::to(next)]));
        let small = self.small_loop(successor, 7);
        self.frames.pop();
        let code = TrapCode::unwrap_user(1 + self.random.below(4) as u8);
        self.pos.goto_bottom(small.header);
        let counted = self.pos.ins().iadd_imm_s(small.counter, 1);
        let stays = self.pos.ins().icmp(IntCC::UnsignedLessThan, counted, small.bound);
        self.pos.ins().trapz(stays, code);
        let back = Successor { block: small.header, args: vec![Some(BlockArg::Value(counted))] };
        self.finish(small.header, End::Jump(back));
        next
    }
}
