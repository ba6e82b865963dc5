//! Disguises: a few places in memory that are accessed again and again, by addresses that do not look like one.
//!
//! The address of a place is a constant distance from the memory image; or it is computed from a counter by a mask and an
//! exclusive or, chosen by a bit, masked, loaded from a variable that holds addresses of places only, or a parameter of a
//! block that all edges pass the same address to. That it is one place shows when a loop is unrolled, a slot becomes a value, or a
//! parameter is removed.

use super::features::{Feature, Shape};
use super::fill::Fill;
use super::memory::{HIGH, Pointer, SLOT_REGION};
use super::outline::{Draft, End, On, Successor};
use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::ir::{
    Block, BlockArg, InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, Value, types,
};

/// Where the places are in the memory image, four of eight bytes.
const PLACES: i64 = HIGH.start as i64 + 64;

impl Draft<'_, '_, '_> {
    /// Two paths meet in a block with an address as a parameter. Gives that block.
    pub(super) fn meeting(&mut self, at: Block) -> Option<Block> {
        self.note(Shape::PointerParam);
        let entry = self.pos.func.layout.entry_block().expect("there is a block");
        let memory = self.pos.func.dfg.block_params(entry)[0];
        self.pos.goto_bottom(at);
        let place = PLACES + 8 * self.random.below(4) as i64;
        let other = if self.random.chance(80) { place } else { PLACES + 8 * self.random.below(4) as i64 };
        let addresses = [place, other].map(|place| self.pos.ins().iadd_imm_s(memory, place));
        self.outline.private.extend(addresses);
        let join = self.block();
        let param = self.pos.func.dfg.append_block_param(join, types::I64);
        self.outline.private.push(param);
        self.outline.pointers.insert(param);
        let arms = addresses.map(|address| {
            let block = self.block();
            if let Some(end) = self.region(block, 1) {
                let successor = Successor { block: join, args: vec![Some(BlockArg::Value(address))] };
                self.finish(end, End::Jump(successor));
            }
            Successor::to(block)
        });
        self.finish(at, End::Branch(On::Data, arms));
        Some(join)
    }
}

impl Fill<'_, '_, '_> {
    /// Makes the variable for addresses, in the entry block.
    pub(super) fn new_variable(&mut self) {
        if self.features().has(Feature::Disguises) && self.random.chance(70) {
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, 8, 3);
            let slot = self.pos.func.create_sized_stack_slot(data);
            self.variable = Some(slot);
            self.assign(slot);
        }
    }

    /// Lets the variable point to a place.
    fn assign(&mut self, variable: StackSlot) {
        let pointer = self.plain_place();
        let place = self.pos.ins().stack_addr(types::I64, variable, 0);
        let flags = MemFlagsData::trusted().with_alias_region(self.regions[SLOT_REGION]);
        self.pos.ins().store(flags, pointer, place, 0);
    }

    /// May let the variable point to another place.
    pub(super) fn may_assign(&mut self) {
        if let Some(variable) = self.variable
            && self.random.chance(15)
        {
            self.note(Shape::PointerVariable);
            self.assign(variable);
        }
    }

    fn plain_place(&mut self) -> Value {
        let memory = self.memory();
        let place = PLACES + 8 * self.random.pick(&[0, 0, 0, 1, 2, 3]);
        self.pos.ins().iadd_imm_s(memory, place)
    }

    /// An address of a place.
    pub(super) fn disguised(&mut self) -> Pointer {
        let memory = self.memory();
        let choice = self.random.below(10);
        if choice > 2 {
            self.note(Shape::Disguised);
        }
        let value = match (choice, self.variable) {
            (0..=2, _) => self.plain_place(),
            (3 | 4, Some(variable)) => {
                let place = self.pos.ins().stack_addr(types::I64, variable, 0);
                let flags = MemFlagsData::trusted().with_alias_region(self.regions[SLOT_REGION]);
                self.pos.ins().load(types::I64, flags, place, 0)
            }
            (3..=7, _) => {
                let number = self.place_number();
                let distance = self.pos.ins().ishl_imm_u(number, 3);
                let base = self.pos.ins().iadd_imm_s(memory, PLACES);
                self.pos.ins().iadd(base, distance)
            }
            (8, _) => {
                let [a, b] = [self.plain_place(), self.plain_place()];
                let bit = self.bit();
                self.pos.ins().select(bit, a, b)
            }
            _ => {
                // The image begins at a multiple of 64.
                let place = self.plain_place();
                self.pos.ins().band_imm_s(place, -8)
            }
        };
        Pointer::place(value)
    }

    /// A load or a store of a whole place, often of what was loaded before and one more.
    pub(super) fn touch(&mut self) {
        self.may_assign();
        let pointer = self.disguised();
        let place = self.place_at(pointer, 0, 8);
        if self.random.chance(40) {
            let loaded = self.pos.ins().load(types::I64, place.flags, place.address, place.offset);
            self.keep_value(loaded);
            return;
        }
        let mut value = self.any(types::I64);
        if self.random.chance(50) {
            let more = self.pos.ins().iadd_imm_s(value, 1);
            value = self.keep_value(more);
        }
        let inst = self.pos.ins().store(place.flags, value, place.address, place.offset);
        self.keep(inst);
    }

    /// A number below 4, often of a counter.
    fn place_number(&mut self) -> Value {
        let ty = self.known.counters.last().map_or(types::I64, |&counter| self.pos.func.dfg.value_type(counter));
        let counter = self.known.counters.last().copied().filter(|_| ty.bits() <= 64 && self.random.chance(70));
        let value = counter.unwrap_or_else(|| self.any(types::I64));
        let ty = self.pos.func.dfg.value_type(value);
        let value = if ty == types::I64 { value } else { self.pos.ins().uextend(types::I64, value) };
        let number = self.pos.ins().band_imm_u(value, 3);
        let by = self.pos.ins().iconst(types::I64, i64::from(self.random.pick(&[2_u8, 1, 3, 0])));
        self.pos.ins().bxor(number, by)
    }
}
