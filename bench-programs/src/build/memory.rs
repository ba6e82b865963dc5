//! Arrays, fields and stack slots.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{
    InstBuilder, MemFlagsData, Opcode, StackSlot, StackSlotData, StackSlotKind, TrapCode, Type, Value,
};

use super::{Emitter, Operand};

/// The trap of a failed bounds check.
pub(super) const OUT_OF_BOUNDS: TrapCode = TrapCode::unwrap_user(1);
/// The trap of a failed null check.
const NULL: TrapCode = TrapCode::unwrap_user(2);

/// How accesses to an array make sure that they stay inside.
#[derive(Clone, Copy)]
enum Check {
    /// Not at all.
    None,
    /// `trapnz` on the failed check.
    Trap,
    /// A branch to a block that traps.
    Branch,
}

/// An array that the program accesses by index.
#[derive(Clone, Copy)]
pub(crate) struct Array {
    base: Value,
    len: Operand,
    ty: Type,
    check: Check,
}

impl Array {
    /// Accesses are not checked.
    pub(crate) fn unchecked(base: Value, ty: Type) -> Self {
        Self { base, len: Operand::Int(0), ty, check: Check::None }
    }

    /// Accesses trap in place when out of bounds.
    pub(crate) fn trapping(base: Value, len: impl Into<Operand>, ty: Type) -> Self {
        Self { base, len: len.into(), ty, check: Check::Trap }
    }

    /// Accesses branch to a trap when out of bounds.
    pub(crate) fn branching(base: Value, len: impl Into<Operand>, ty: Type) -> Self {
        Self { base, len: len.into(), ty, check: Check::Branch }
    }
}

impl Emitter<'_> {
    /// Loads from a fixed place behind a pointer.
    pub(crate) fn field(&mut self, ty: Type, pointer: Value, offset: i32) -> Value {
        self.builder.ins().load(ty, MemFlagsData::trusted(), pointer, offset)
    }

    /// Stores to a fixed place behind a pointer.
    pub(crate) fn set_field(&mut self, pointer: Value, offset: i32, value: impl Into<Operand>) {
        let value = self.value(value.into(), I64);
        self.builder.ins().store(MemFlagsData::trusted(), value, pointer, offset);
    }

    /// Traps if a pointer is null.
    pub(crate) fn null_check(&mut self, pointer: Value) {
        self.builder.ins().trapz(pointer, NULL);
    }

    fn element_address(&mut self, array: Array, index: Value) -> Value {
        match array.check {
            Check::None => {}
            Check::Trap => {
                let outside = self.icmp(IntCC::UnsignedGreaterThanOrEqual, index, array.len);
                self.builder.ins().trapnz(outside, OUT_OF_BOUNDS);
            }
            Check::Branch => {
                let outside = self.icmp(IntCC::UnsignedGreaterThanOrEqual, index, array.len);
                let trap = *self.out_of_bounds.get_or_insert_with(|| self.builder.create_block());
                let inside = self.builder.create_block();
                self.branch(outside, trap, inside);
                self.switch_to(inside);
            }
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

    /// A stack slot for a 64-bit integer, with its first value.
    pub(crate) fn slot(&mut self, init: impl Into<Operand>) -> StackSlot {
        let slot = self.builder.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, 8, 3));
        self.set_slot(slot, init);
        slot
    }

    /// Reads a stack slot.
    pub(crate) fn get_slot(&mut self, slot: StackSlot) -> Value {
        self.builder.ins().stack_load(I64, I64, slot, 0)
    }

    /// Writes a stack slot.
    pub(crate) fn set_slot(&mut self, slot: StackSlot, value: impl Into<Operand>) {
        let value = self.value(value.into(), I64);
        self.builder.ins().stack_store(I64, value, slot, 0);
    }
}
