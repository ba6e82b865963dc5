//! Arrays, fields, linear memory and stack slots.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{
    AliasRegion, AliasRegionData, InstBuilder, MemFlagsData, Opcode, StackSlot, StackSlotData, StackSlotKind, Type,
    Value,
};

use super::checks::{Check, OUT_OF_BOUNDS};
use super::{Emitter, Operand};

/// An array that the program accesses by index.
#[derive(Clone, Copy)]
pub(crate) struct Array {
    base: Value,
    len: Operand,
    ty: Type,
    check: Check,
}

impl Array {
    fn new(check: Check, base: Value, len: Operand, ty: Type) -> Self {
        Self { base, len, ty, check }
    }

    /// Accesses are not checked.
    pub(crate) fn unchecked(base: Value, ty: Type) -> Self {
        Self::new(Check::None, base, Operand::Int(0), ty)
    }

    /// Accesses trap in place when out of bounds.
    pub(crate) fn trapping(base: Value, len: impl Into<Operand>, ty: Type) -> Self {
        Self::new(Check::Trap, base, len.into(), ty)
    }

    /// Accesses branch to a trap when out of bounds.
    pub(crate) fn branching(base: Value, len: impl Into<Operand>, ty: Type) -> Self {
        Self::new(Check::Branch, base, len.into(), ty)
    }

    /// Accesses branch to a call that does not return when out of bounds.
    pub(crate) fn calling(base: Value, len: impl Into<Operand>, ty: Type) -> Self {
        Self::new(Check::Call, base, len.into(), ty)
    }
}

/// The alias region of linear memory, by its number.
const HEAP_REGION: u32 = 1;
/// The alias region of what the runtime keeps about a module.
const CONTEXT_REGION: u32 = 2;

/// The linear memory of a 32-bit WebAssembly module: addresses in it have 32 bits and are widened for each access, and what
/// is accessed has to end where it does, or before.
#[derive(Clone, Copy)]
pub(crate) struct Heap {
    base: Value,
    size: Value,
    check: Check,
    /// Whether the end of an access is computed with a check for overflow.
    is_careful: bool,
}

impl Heap {
    /// Accesses trap in place when out of bounds.
    pub(crate) fn trapping(base: Value, size: Value) -> Self {
        Self { base, size, check: Check::Trap, is_careful: false }
    }

    /// The same; the end of an access is computed by an instruction that traps if it overflows.
    pub(crate) fn careful(base: Value, size: Value) -> Self {
        Self { is_careful: true, ..Self::trapping(base, size) }
    }

    /// Accesses go to address 0 when out of bounds, also those that the processor guesses.
    pub(crate) fn guarded(base: Value, size: Value) -> Self {
        Self { check: Check::Guard, ..Self::trapping(base, size) }
    }
}

impl Emitter<'_> {
    /// Loads at a fixed offset from a pointer.
    pub(crate) fn field(&mut self, ty: Type, pointer: Value, offset: i32) -> Value {
        self.ins().load(ty, MemFlagsData::trusted(), pointer, offset)
    }

    /// Loads at a fixed offset from a pointer, from a place that nothing ever writes, and that can be loaded from at any time.
    pub(crate) fn constant_field(&mut self, ty: Type, pointer: Value, offset: i32) -> Value {
        self.ins().load(ty, MemFlagsData::trusted().with_readonly().with_can_move(), pointer, offset)
    }

    /// Loads from what the runtime keeps about a WebAssembly module, which is apart from its linear memory.
    pub(crate) fn context_field(&mut self, ty: Type, pointer: Value, offset: i32) -> Value {
        let flags = MemFlagsData::trusted().with_alias_region(Some(self.region(CONTEXT_REGION)));
        self.ins().load(ty, flags, pointer, offset)
    }

    fn region(&mut self, user_id: u32) -> AliasRegion {
        let regions = &mut self.builder.func.dfg.alias_regions;
        regions.insert(AliasRegionData { user_id, description: "".into() })
    }

    /// Stores at a fixed offset from a pointer.
    pub(crate) fn set_field(&mut self, pointer: Value, offset: i32, value: impl Into<Operand>) {
        let value = self.value(value.into(), I64);
        self.ins().store(MemFlagsData::trusted(), value, pointer, offset);
    }

    fn element_address(&mut self, array: Array, index: Value) -> Value {
        if !matches!(array.check, Check::None) && !self.is_unchecked() {
            let len = self.value(array.len, I64);
            let outside = self.is_outside(index, len);
            self.bounds_check(array.check, outside, [index, len]);
        }
        let shift = array.ty.bytes().ilog2();
        let offset = match shift {
            0 => index,
            _ => self.op(Opcode::Ishl, index, i64::from(shift)),
        };
        self.add(array.base, offset)
    }

    /// Loads an element; `index` has 64 bits.
    pub(crate) fn load(&mut self, array: Array, index: impl Into<Operand>) -> Value {
        let index = self.value(index.into(), I64);
        let address = self.element_address(array, index);
        self.field(array.ty, address, 0)
    }

    /// Loads an element of a byte array and widens it to 64 bits.
    pub(crate) fn load_byte(&mut self, array: Array, index: impl Into<Operand>) -> Value {
        let byte = self.load(array, index);
        self.widen(byte)
    }

    /// Stores an element; `index` has 64 bits.
    pub(crate) fn store(&mut self, array: Array, index: impl Into<Operand>, value: impl Into<Operand>) {
        let index = self.value(index.into(), I64);
        let value = self.value(value.into(), array.ty);
        let address = self.element_address(array, index);
        self.set_field(address, 0, value);
    }

    /// Loads from a place in linear memory; `address` has 32 bits.
    pub(crate) fn heap_load(&mut self, heap: Heap, ty: Type, address: Value, offset: i32) -> Value {
        let (flags, place) = self.heap_place(heap, address, offset + ty.bytes() as i32);
        self.ins().load(ty, flags, place, offset)
    }

    /// Stores to a place in linear memory; `address` has 32 bits.
    pub(crate) fn heap_store(&mut self, heap: Heap, address: Value, offset: i32, value: Value) {
        let size = self.builder.func.dfg.value_type(value).bytes() as i32;
        let (flags, place) = self.heap_place(heap, address, offset + size);
        self.ins().store(flags, value, place, offset);
    }

    /// The address to which an offset is to be added, for an access that ends `end` bytes after it.
    fn heap_place(&mut self, heap: Heap, address: Value, end: i32) -> (MemFlagsData, Value) {
        let address = self.widen(address);
        let place = self.add(heap.base, address);
        let region = Some(self.region(HEAP_REGION));
        let trusted = MemFlagsData::trusted().with_alias_region(region);
        if self.is_unchecked() {
            return (trusted, place);
        }
        let end = i64::from(end);
        let last = if heap.is_careful { self.add_or_trap(address, end) } else { self.add(address, end) };
        let outside = self.icmp(IntCC::UnsignedGreaterThan, last, heap.size);
        if matches!(heap.check, Check::Guard) {
            let flags =
                MemFlagsData::new().with_aligned().with_trap_code(Some(OUT_OF_BOUNDS)).with_alias_region(region);
            return (flags, self.guarded(outside, place));
        }
        self.bounds_check(heap.check, outside, [last, heap.size]);
        (trusted, place)
    }

    /// A stack slot for a 64-bit integer, with its first value.
    pub(crate) fn slot(&mut self, init: impl Into<Operand>) -> StackSlot {
        let slot = self.builder.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, 8, 3));
        self.set_slot(slot, init);
        slot
    }

    /// Reads a stack slot.
    pub(crate) fn get_slot(&mut self, slot: StackSlot) -> Value {
        self.ins().stack_load(I64, I64, slot, 0)
    }

    /// Writes a stack slot.
    pub(crate) fn set_slot(&mut self, slot: StackSlot, value: impl Into<Operand>) {
        let value = self.value(value.into(), I64);
        self.ins().stack_store(I64, value, slot, 0);
    }
}
