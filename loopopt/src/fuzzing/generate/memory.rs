//! Accesses to memory.
//!
//! The memory image has three parts. The first is never written, so that accesses to it may be `readonly`. In a function, a
//! part is in an alias region of its own for all accesses, or for none: Cranelift takes it that a store with a region does
//! not concern loads without one. Where flags promise something, it holds: `notrap` and `can_move` are for addresses that
//! are in range whatever the values, `notrap` alone also for those after a check.

use super::choices::Choices;
use super::features::{Feature, Features, Shape};
use super::fill::Fill;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AliasRegion, AliasRegionData, Function, InstBuilder, MemFlagsData, Opcode, Type, Value, types,
};

/// Size of the memory image in bytes.
pub(super) const IMAGE: usize = 512;
/// Bytes after the image for pointers, in programs that keep some.
pub(super) const POINTERS: usize = 64;
/// The same for programs around a scene.
pub(super) const STAGE: usize = 256;
/// Size of a stack slot for data.
pub(super) const SLOT: u32 = 32;

/// A part of the memory image.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Its number, and that of its region.
    pub(super) index: usize,
    pub(super) start: u32,
    pub(super) len: u32,
}

/// What is never written.
const CONSTANT: Part = Part { index: 0, start: 0, len: 64 };
pub(super) const LOW: Part = Part { index: 1, start: 64, len: 192 };
/// The rest, up to the end.
pub(super) const HIGH: Part = Part { index: 2, start: 256, len: 256 };
/// The number of the region for stack slots.
pub(super) const SLOT_REGION: usize = 3;

/// The alias regions of a function: of the parts of the memory image, and of slots for data.
pub(super) type Regions = [Option<AliasRegion>; 4];

/// Decides which parts have a region.
pub(super) fn draw_regions(func: &mut Function, random: &mut Choices<'_, '_>, features: Features) -> Regions {
    let mut regions = [None; 4];
    for (region, user_id) in regions.iter_mut().zip(0..) {
        if features.has(Feature::Regions) && random.chance(70) {
            let data = AliasRegionData { user_id, description: "".into() };
            *region = Some(func.dfg.alias_regions.insert(data));
        }
    }
    regions
}

/// An address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pointer {
    pub(super) value: Value,
    /// What is to be added to it.
    offset: u32,
    /// Bytes from there on that can be accessed. None if there may be none.
    pub(super) room: Option<u32>,
    /// It is a multiple of this.
    align: u32,
    /// The region of all accesses, if they are in one.
    region: Option<usize>,
    writable: bool,
}

impl Pointer {
    /// An address that steps through the last part of the image and beyond its end, or through the whole image to its
    /// start, and can be used only if parts have no regions.
    pub(super) fn walker(value: Value, stride: i64) -> Self {
        let region = (stride > 0).then_some(HIGH.index);
        Self { value, offset: 0, room: None, align: 1, region, writable: stride > 0 }
    }

    /// An address from which on so many bytes of a slot can be accessed.
    pub(super) fn into_slot(value: Value, room: u32) -> Self {
        Self { value, offset: 0, room: Some(room), align: 1, region: Some(SLOT_REGION), writable: true }
    }

    /// The address of one of the places that have several names.
    pub(super) fn place(value: Value) -> Self {
        Self { value, offset: 0, room: Some(8), align: 8, region: Some(HIGH.index), writable: true }
    }

    /// An address around which elements of a part of the image can be accessed.
    pub(super) fn element(value: Value, part: Part) -> Self {
        Self { value, offset: 0, room: Some(part.len), align: 1, region: Some(part.index), writable: true }
    }
}

/// An address for one access.
pub(super) struct Place {
    pub(super) address: Value,
    pub(super) offset: i32,
    pub(super) flags: MemFlagsData,
}

impl Fill<'_, '_, '_> {
    /// Writes all bytes of the slots, so that none is read before.
    pub(super) fn initialize_slots(&mut self) {
        for slot in self.slots.clone() {
            for offset in (0..SLOT).step_by(8) {
                let value = self.constant(types::I64);
                let address = self.pos.ins().stack_addr(types::I64, slot, 0);
                let flags = MemFlagsData::trusted().with_alias_region(self.regions[SLOT_REGION]);
                self.pos.ins().store(flags, value, address, offset as i32);
            }
        }
    }

    /// A load or a store, if there is memory.
    pub(super) fn access(&mut self) {
        self.may_assign();
        match self.random.below(10) {
            0..=4 => self.load(),
            5 if self.features().has(Feature::Atomics) => self.atomic(),
            _ => {
                let ty = self.access_type();
                let value = self.any(ty);
                self.store(ty, value);
            }
        }
    }

    fn load(&mut self) {
        let ty = self.access_type();
        let is_narrow = ty.is_int() && ty.bits() <= 64;
        let extension = match self.random.below(6) {
            _ if !is_narrow => None,
            0 if ty.bits() > 8 => Some((Opcode::Uload8, 1)),
            1 if ty.bits() > 8 => Some((Opcode::Sload8, 1)),
            2 if ty.bits() > 16 => Some((Opcode::Uload16, 2)),
            3 if ty.bits() > 16 => Some((Opcode::Sload16, 2)),
            4 if ty.bits() > 32 => Some((self.random.pick(&[Opcode::Uload32, Opcode::Sload32]), 4)),
            _ => None,
        };
        let (opcode, size) = extension.unwrap_or((Opcode::Load, ty.bytes()));
        let Some(place) = self.place(size, false) else { return };
        let flags = self.flags(place.flags);
        let inst = self.pos.ins().Load(opcode, ty, flags, place.offset.into(), place.address).0;
        self.keep(inst);
    }

    /// Loads a value of this type, if there is memory.
    pub(super) fn load_of(&mut self, ty: Type) -> Option<Value> {
        let place = self.place(ty.bytes(), false)?;
        let loaded = self.pos.ins().load(ty, place.flags, place.address, place.offset);
        Some(self.keep_value(loaded))
    }

    /// Stores a value of this type, or a part of it, if there is memory.
    pub(super) fn store(&mut self, ty: Type, value: Value) {
        let truncation = match self.random.below(5) {
            _ if !ty.is_int() || ty.bits() > 64 => None,
            0 if ty.bits() > 8 => Some((Opcode::Istore8, 1)),
            1 if ty.bits() > 16 => Some((Opcode::Istore16, 2)),
            2 if ty.bits() > 32 => Some((Opcode::Istore32, 4)),
            _ => None,
        };
        let (opcode, size) = truncation.unwrap_or((Opcode::Store, ty.bytes()));
        let Some(place) = self.place(size, true) else { return };
        let value = if ty.is_float() { self.without_nan(value) } else { value };
        let flags = self.flags(place.flags);
        let inst = self.pos.ins().Store(opcode, ty, flags, place.offset.into(), value, place.address).0;
        self.keep(inst);
    }

    /// Loads a value from where it then stores another.
    pub(super) fn exchange(&mut self, value: Value) -> Option<Value> {
        let ty = self.pos.func.dfg.value_type(value);
        if ty.is_float() {
            return None;
        }
        let place = self.place(ty.bytes(), true)?;
        let loaded = self.pos.ins().load(ty, place.flags, place.address, place.offset);
        self.keep_value(loaded);
        let inst = self.pos.ins().store(place.flags, value, place.address, place.offset);
        self.keep(inst);
        Some(loaded)
    }

    fn atomic(&mut self) {
        use cranelift_codegen::ir::AtomicRmwOp::{Add, And, Nand, Or, Sub, Umax, Xchg, Xor};
        if self.random.chance(20) {
            let inst = self.pos.ins().fence();
            return self.keep(inst);
        }
        let ty = self.random.narrow_int();
        let Some(place) = self.place(ty.bytes(), true) else { return };
        if !place.flags.aligned() {
            return;
        }
        let flags = place.flags;
        if self.random.chance(50) {
            // What an iteration loads is what the atomic of the one before has left.
            let loaded = self.pos.ins().load(ty, flags, place.address, place.offset);
            self.keep_value(loaded);
        }
        let address = self.pos.ins().iadd_imm_s(place.address, i64::from(place.offset));
        let value = self.any(ty);
        let inst = match self.random.below(4) {
            0 => {
                let value = self.pos.ins().atomic_load(ty, flags, address);
                self.pos.func.dfg.value_def(value).inst().expect("it was made just now")
            }
            1 => self.pos.ins().atomic_store(flags, value, address),
            2 => {
                let expected = self.any(ty);
                let value = self.pos.ins().atomic_cas(flags, address, expected, value);
                self.pos.func.dfg.value_def(value).inst().expect("it was made just now")
            }
            _ => {
                let op = self.random.pick(&[Add, Sub, And, Or, Xor, Nand, Xchg, Umax]);
                let value = self.pos.ins().atomic_rmw(ty, flags, op, address, value);
                self.pos.func.dfg.value_def(value).inst().expect("it was made just now")
            }
        };
        self.keep(inst);
    }

    pub(super) fn flags(&mut self, flags: MemFlagsData) -> cranelift_codegen::ir::MemFlags {
        self.pos.func.dfg.mem_flags.insert(flags).expect("there are not many kinds of flags")
    }

    pub(super) fn access_type(&mut self) -> Type {
        super::interface::value_type(self.random, self.interface.features)
    }

    /// Where to access so many bytes.
    fn place(&mut self, size: u32, writes: bool) -> Option<Place> {
        let pointer = self.pointer(writes)?;
        let steps = match pointer.room {
            Some(room) => room.checked_sub(size)? as usize + 1,
            None => 9,
        };
        let mut offset = self.random.below(steps) as u32;
        if self.random.chance(60) {
            offset = offset / size * size;
        }
        if self.is_invariant && !writes {
            self.note(Shape::InvariantLoad);
        }
        Some(self.place_at(pointer, offset, size))
    }

    /// An access to so many bytes at an address, with flags that hold.
    pub(super) fn place_at(&mut self, pointer: Pointer, offset: u32, size: u32) -> Place {
        let total = pointer.offset + offset;
        self.place_from(pointer, total as i32, size)
    }

    /// The same with the sum of all offsets.
    pub(super) fn place_from(&mut self, pointer: Pointer, offset: i32, size: u32) -> Place {
        let mut flags = MemFlagsData::new();
        let share = if self.features().has(Feature::Trusted) { 98 } else { 60 };
        if pointer.room.is_some() && self.random.chance(share) {
            flags = flags.with_notrap();
            if self.random.chance(50) {
                flags = flags.with_can_move();
            }
        } else if self.random.chance(30) {
            flags = flags.with_trap_code(Some(self.trap_code()));
        }
        if offset.unsigned_abs().is_multiple_of(size) && pointer.align.is_multiple_of(size) {
            flags = flags.with_aligned();
        }
        if !pointer.writable && pointer.region == Some(CONSTANT.index) && self.random.chance(60) {
            flags = flags.with_readonly();
        }
        let region = pointer.region.and_then(|region| self.regions[region]);
        let flags = flags.with_alias_region(region);
        Place { address: pointer.value, offset, flags }
    }

    /// An address: one that is known, or a new one.
    pub(super) fn pointer(&mut self, writes: bool) -> Option<Pointer> {
        if self.features().has(Feature::Disguises) && self.features().has(Feature::Memory) && self.random.chance(45) {
            let pointer = self.disguised();
            self.known.pointers.push(pointer);
            return Some(pointer);
        }
        let outer = self.outside();
        let known = &self.known.pointers[..outer.map_or(self.known.pointers.len(), |outer| outer.pointers)];
        let fitting: Vec<Pointer> = known.iter().copied().filter(|pointer| pointer.writable || !writes).collect();
        if !fitting.is_empty() && self.random.chance(60) {
            return Some(fitting[fitting.len() - 1 - self.random.below(fitting.len().min(6))]);
        }
        let has_memory = self.features().has(Feature::Memory);
        let pointer = if !self.slots.is_empty() && (!has_memory || self.random.chance(30)) {
            self.slot_pointer()
        } else if has_memory {
            let part = self.random.pick(if writes { &[LOW, HIGH, HIGH] } else { &[LOW, HIGH, CONSTANT] });
            self.image_pointer(part)
        } else {
            return None;
        };
        self.known.pointers.push(pointer);
        Some(pointer)
    }

    fn slot_pointer(&mut self) -> Pointer {
        let slot = self.random.pick(&self.slots);
        let address = self.pos.ins().stack_addr(types::I64, slot, 0);
        let region = Some(SLOT_REGION);
        if self.random.chance(50) {
            return Pointer { value: address, offset: 0, room: Some(SLOT), align: 16, region, writable: true };
        }
        let (index, align) = self.index(SLOT / 2);
        let value = self.pos.ins().iadd(address, index);
        Pointer { value, offset: 0, room: Some(SLOT / 2), align, region, writable: true }
    }

    /// The address of the memory image.
    pub(super) fn memory(&self) -> Value {
        let entry = self.pos.func.layout.entry_block().expect("there is a block");
        self.pos.func.dfg.block_params(entry)[0]
    }

    fn image_pointer(&mut self, part: Part) -> Pointer {
        let memory = self.memory();
        let Part { index: region, start: offset, len } = part;
        let region = Some(region);
        let writable = part.index != CONSTANT.index;
        let may_leave = part.index == HIGH.index && self.features().has(Feature::OutOfRange);
        match self.random.below(6) {
            0 if may_leave => {
                let (index, align) = self.index(4096);
                let value = self.pos.ins().iadd(memory, index);
                Pointer { value, offset, room: None, align, region, writable }
            }
            1 if may_leave => self.guarded(memory),
            0 | 1 => Pointer { value: memory, offset, room: Some(len), align: 64, region, writable },
            _ => {
                let (index, align) = self.index(len.next_power_of_two() / 4);
                let value = self.pos.ins().iadd(memory, index);
                Pointer { value, offset, room: Some(len / 2), align, region, writable }
            }
        }
    }

    /// Loads a number, may check it, and loads from an address that is computed from it.
    pub(super) fn chain(&mut self) {
        let Some(first) = self.place(8, false) else { return };
        let flags = self.flags(first.flags);
        let inst = self.pos.ins().Load(Opcode::Load, types::I64, flags, first.offset.into(), first.address).0;
        self.keep(inst);
        let loaded = self.pos.func.dfg.first_result(inst);
        if self.features().has(Feature::Traps) && self.random.chance(40) {
            let number = self.constant(types::I64);
            let equal = self.pos.ins().icmp(IntCC::Equal, loaded, number);
            let code = self.trap_code();
            let inst = self.pos.ins().trapnz(equal, code);
            self.keep(inst);
        }
        let distance = self.pos.ins().band_imm_u(loaded, i64::from(LOW.len / 3 - 8));
        let memory = self.memory();
        let value = self.pos.ins().iadd(memory, distance);
        let room = Some(LOW.len - LOW.len / 3);
        let region = Some(LOW.index);
        let pointer = Pointer { value, offset: LOW.start, room, align: 1, region, writable: true };
        self.known.pointers.push(pointer);
        let place = self.place_at(pointer, 0, 8);
        let flags = self.flags(place.flags);
        let inst = self.pos.ins().Load(Opcode::Load, types::I64, flags, place.offset.into(), place.address).0;
        self.keep(inst);
        if self.is_invariant {
            self.note(Shape::Chain);
        }
    }

    /// A flag in memory.
    pub(super) fn poll(&mut self) -> Value {
        self.note(Shape::Poll);
        let memory = self.memory();
        let part = self.random.pick(&[LOW, HIGH]);
        let offset = (part.start + 8 * self.random.below(8) as u32) as i32;
        let region = self.regions[part.index];
        let flags = self.flags(MemFlagsData::trusted().with_alias_region(region));
        let ty = self.random.pick(&[types::I32, types::I64, types::I8]);
        let inst = self.pos.ins().Load(Opcode::Load, ty, flags, offset.into(), memory).0;
        self.keep(inst);
        let flag = self.pos.func.dfg.first_result(inst);
        if self.random.chance(50) { flag } else { self.pos.ins().icmp_imm_u(IntCC::Equal, flag, 3) }
    }

    /// Whether a counter, or any number, has something to do with what is in memory.
    pub(super) fn rare(&mut self) -> Value {
        let ty = types::I64;
        let memory = self.memory();
        let part = self.random.pick(&[LOW, HIGH]);
        let offset = (part.start + 8 * self.random.below(8) as u32) as i32;
        let flags = self.flags(MemFlagsData::trusted().with_alias_region(self.regions[part.index]));
        let inst = self.pos.ins().Load(Opcode::Load, ty, flags, offset.into(), memory).0;
        self.keep(inst);
        let limit = self.pos.func.dfg.first_result(inst);
        let number = match self.known.counters.last().copied() {
            Some(counter) if self.pos.func.dfg.value_type(counter) == ty => counter,
            _ => self.any(ty),
        };
        self.note(Shape::RareWay);
        let mixed = self.pos.ins().bxor(limit, number);
        let mask = self.random.pick(&[3, 1, 7]);
        let part = self.pos.ins().band_imm_u(mixed, mask);
        self.pos.ins().icmp_imm_u(IntCC::Equal, part, 0)
    }

    /// A number below `end`, a power of two, of type `i64`, and what it is a multiple of.
    pub(super) fn index(&mut self, end: u32) -> (Value, u32) {
        let ty = self.random.narrow_int();
        let value = self.any(ty);
        let value = match ty {
            types::I64 => value,
            _ => self.pos.ins().uextend(types::I64, value),
        };
        let align = self.random.pick(&[1, 4, 8, 16, 2]).min(end);
        if self.random.chance(50) {
            return (self.pos.ins().band_imm_u(value, i64::from(end - align)), align);
        }
        let number = self.pos.ins().band_imm_u(value, i64::from(end / align - 1));
        (self.pos.ins().ishl_imm_u(number, i64::from(align.ilog2())), align)
    }

    /// An address that is zero if it would be beyond the image.
    fn guarded(&mut self, memory: Value) -> Pointer {
        let (index, align) = self.index(512);
        let limit = self.pos.ins().iconst(types::I64, i64::from(HIGH.len - 16));
        let inside = self.pos.ins().iadd_imm_s(memory, i64::from(HIGH.start));
        let inside = self.pos.ins().iadd(inside, index);
        let zero = self.pos.ins().iconst(types::I64, 0);
        let outside = self.pos.ins().icmp(IntCC::UnsignedGreaterThan, index, limit);
        let value = self.pos.ins().select_spectre_guard(outside, zero, inside);
        Pointer { value, offset: 0, room: None, align, region: Some(HIGH.index), writable: true }
    }
}
