//! Locals in stack slots, as front ends without SSA construction emit them.
//!
//! A slot is made in some block and written there, all of it, so that it is initialized wherever it is known. It holds a few
//! fields. Most accesses are to a whole field; others to a part of one, to two at once, or to the same bytes in another
//! type. The address of some slots escapes.

use super::choices::Choices;
use super::features::{Feature, Shape};
use super::fill::Fill;
use super::memory::{Pointer, SLOT_REGION};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, Function, InstBuilder, MemFlags, MemFlagsData, Opcode, Signature, StackSlot,
    StackSlotData, StackSlotKind, Type, UserFuncName, Value, types,
};
use cranelift_codegen::isa::CallConv;

/// A slot with its fields.
#[derive(Clone, Debug)]
pub(super) struct Local {
    slot: StackSlot,
    size: u32,
    fields: Vec<(u32, Type)>,
    escapes: bool,
}

/// The name of the function that changes what its argument points to.
const POKE: &str = "poke";

impl Fill<'_, '_, '_> {
    /// Something with a local.
    pub(super) fn local(&mut self) {
        if self.known.locals.is_empty() || self.random.chance(12) {
            return self.new_local();
        }
        let youngest = self.known.locals.len() - 1;
        let index = youngest - self.random.below((youngest + 1).min(4));
        let local = self.known.locals[index].clone();
        if local.escapes && self.random.chance(35) {
            return self.escape(index, &local);
        }
        match self.random.below(10) {
            0..=6 => self.field(&local),
            _ => self.part(&local),
        }
    }

    /// Makes a slot and writes it.
    pub(super) fn new_local(&mut self) {
        let mut fields = Vec::new();
        let mut size = 0_u32;
        for _ in 0..self.random.pick(&[1, 1, 1, 2, 3]) {
            let ty = self.access_type();
            let at = size.next_multiple_of(ty.bytes());
            if at + ty.bytes() > 40 {
                break;
            }
            fields.push((at, ty));
            size = at + ty.bytes();
        }
        // Its first value is written in words, or by field and with what is between them.
        let size = size.next_multiple_of(8);
        let align_shift = self.random.pick(&[3, 4, 0]);
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, size, align_shift);
        let slot = self.pos.func.create_sized_stack_slot(data);
        let escapes = self.features().has(Feature::Escapes) && self.random.chance(50);
        let local = Local { slot, size, fields, escapes };
        let is_whole = local.fields.len() == 1 && local.fields[0].1.bytes() == size;
        if is_whole || self.random.chance(60) {
            self.write_fields(&local);
        } else {
            for offset in (0..size).step_by(8) {
                let value = self.any(types::I64);
                self.store_at(&local, offset, value);
            }
        }
        self.known.locals.push(local);
    }

    /// Writes each field, and each byte between fields.
    fn write_fields(&mut self, local: &Local) {
        let mut end = 0;
        for &(offset, ty) in local.fields.iter().chain(&[(local.size, types::INVALID)]) {
            for between in end..offset {
                let value = self.any(types::I8);
                self.store_at(local, between, value);
            }
            if ty != types::INVALID {
                let value = self.any(ty);
                self.store_at(local, offset, value);
                end = offset + ty.bytes();
            }
        }
    }

    fn local_flags(&mut self, is_trusted: bool) -> MemFlags {
        let flags = if is_trusted { MemFlagsData::new().with_notrap() } else { MemFlagsData::new() };
        let flags = flags.with_alias_region(self.regions[SLOT_REGION]);
        self.flags(flags)
    }

    /// The address of a byte of a local, as a base and an offset from it.
    fn address_in(&mut self, local: &Local, offset: u32) -> (Value, i32) {
        let in_base = if self.random.chance(30) { offset } else { 0 };
        let base = self.pos.ins().stack_addr(types::I64, local.slot, in_base as i32);
        (base, (offset - in_base) as i32)
    }

    fn store_at(&mut self, local: &Local, offset: u32, value: Value) {
        self.store_in(local, offset, Opcode::Store, value);
    }

    fn store_in(&mut self, local: &Local, offset: u32, opcode: Opcode, value: Value) {
        let ty = self.pos.func.dfg.value_type(value);
        let value = if ty.is_float() { self.without_nan(value) } else { value };
        let is_trusted = self.random.chance(70);
        let flags = self.local_flags(is_trusted);
        let (base, offset) = self.address_in(local, offset);
        let inst = self.pos.ins().Store(opcode, ty, flags, offset.into(), value, base).0;
        self.keep(inst);
    }

    fn load_in(&mut self, local: &Local, offset: u32, opcode: Opcode, ty: Type) {
        let is_trusted = self.random.chance(70);
        let flags = self.local_flags(is_trusted);
        let (base, offset) = self.address_in(local, offset);
        let inst = self.pos.ins().Load(opcode, ty, flags, offset.into(), base).0;
        self.keep(inst);
    }

    /// An access to a whole field.
    fn field(&mut self, local: &Local) {
        let Some(&(offset, ty)) = local.fields.get(self.random.below(local.fields.len().max(1))) else { return };
        if self.known.depth() > 0 && !local.escapes {
            self.note(Shape::Local);
        }
        let (loads, store) = match ty {
            types::I8 => (&[Opcode::Uload8, Opcode::Sload8], Opcode::Istore8),
            types::I16 => (&[Opcode::Uload16, Opcode::Sload16], Opcode::Istore16),
            types::I32 => (&[Opcode::Uload32, Opcode::Sload32], Opcode::Istore32),
            _ => (&[Opcode::Load; 2], Opcode::Store),
        };
        let is_narrow = store != Opcode::Store && self.random.chance(40);
        match (self.random.chance(50), is_narrow) {
            (true, true) => {
                let opcode = self.random.pick(loads);
                self.load_in(local, offset, opcode, types::I64);
            }
            (true, false) => self.load_in(local, offset, Opcode::Load, ty),
            (false, true) => {
                let value = self.any(types::I64);
                self.store_in(local, offset, store, value);
            }
            (false, false) => {
                let value = self.any(ty);
                self.store_at(local, offset, value);
            }
        }
    }

    /// An access to some bytes, whatever they are.
    fn part(&mut self, local: &Local) {
        if self.known.depth() > 0 && !local.escapes {
            self.note(Shape::LocalPart);
        }
        let (opcode, ty, size) = self.random.pick(&[
            (Opcode::Uload8, types::I32, 1),
            (Opcode::Sload8, types::I64, 1),
            (Opcode::Uload16, types::I64, 2),
            (Opcode::Sload32, types::I64, 4),
            (Opcode::Load, types::I32, 4),
            (Opcode::Load, types::I64, 8),
            (Opcode::Load, types::I8, 1),
            (Opcode::Load, types::F32, 4),
            (Opcode::Load, types::F64, 8),
        ]);
        let ty = if ty.is_float() && !self.features().has(Feature::Floats) { ty.as_int() } else { ty };
        let Some(room) = local.size.checked_sub(size) else { return };
        let mut offset = self.random.below(room as usize + 1) as u32;
        if self.random.chance(75) {
            offset = offset / size * size;
        }
        if self.random.chance(50) {
            return self.load_in(local, offset, opcode, ty);
        }
        let value = self.any(ty);
        let opcode = match (opcode, size) {
            (Opcode::Load, _) => Opcode::Store,
            (_, 1) => Opcode::Istore8,
            (_, 2) => Opcode::Istore16,
            _ => Opcode::Istore32,
        };
        self.store_in(local, offset, opcode, value);
    }

    /// Lets the address of a local escape.
    fn escape(&mut self, index: usize, local: &Local) {
        self.note(Shape::LocalEscapes);
        let address = self.pos.ins().stack_addr(types::I64, local.slot, 0);
        let (value, room) = match self.random.below(5) {
            0 => (self.through_memory(address), local.size),
            1 => {
                let other = self.random.below(index + 1);
                let (other, size) = (self.known.locals[other].slot, self.known.locals[other].size);
                self.known.locals.iter_mut().filter(|local| local.slot == other).for_each(|local| local.escapes = true);
                let condition = self.bit();
                let other = self.pos.ins().stack_addr(types::I64, other, 0);
                (self.pos.ins().select(condition, address, other), local.size.min(size))
            }
            2 => {
                let (index, _) = self.index(local.size.next_power_of_two() / 2);
                (self.pos.ins().iadd(address, index), local.size - local.size.next_power_of_two() / 2)
            }
            3 => return self.call_host_with(address),
            _ => return self.poke(address),
        };
        self.known.pointers.push(Pointer::into_slot(value, room));
    }

    /// Stores an address in a slot and loads it from there.
    fn through_memory(&mut self, address: Value) -> Value {
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, 8, 3);
        let slot = self.pos.func.create_sized_stack_slot(data);
        let place = self.pos.ins().stack_addr(types::I64, slot, 0);
        let flags = MemFlagsData::trusted().with_alias_region(self.regions[SLOT_REGION]);
        self.pos.ins().store(flags, address, place, 0);
        if self.random.chance(40) {
            self.effect();
        }
        self.pos.ins().load(types::I64, flags, place, 0)
    }

    fn poke(&mut self, address: Value) {
        let by = self.any(types::I64);
        let name = ExternalName::testcase(POKE);
        let known = self.pos.func.dfg.ext_funcs.iter().find(|(_, data)| data.name == name).map(|(known, _)| known);
        let callee = known.unwrap_or_else(|| {
            let signature = self.pos.func.import_signature(poke_signature());
            self.pos.func.import_function(ExtFuncData { name, signature, colocated: false, patchable: false })
        });
        let inst = self.pos.ins().call(callee, &[address, by]);
        self.keep(inst);
        self.mark_call(inst);
    }
}

fn poke_signature() -> Signature {
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params.extend([AbiParam::new(types::I64); 2]);
    signature.returns.push(AbiParam::new(types::I64));
    signature
}

/// The function that changes the eight bytes that its first argument points to. It gives what they were.
pub(super) fn poke_function(random: &mut Choices<'_, '_>) -> Function {
    let mut func = Function::with_name_signature(UserFuncName::testcase(POKE), poke_signature());
    let block = func.dfg.make_block();
    func.layout.append_block(block);
    let [address, by] = [0, 1].map(|_| func.dfg.append_block_param(block, types::I64));
    let opcode = random.pick(&[Opcode::Iadd, Opcode::Bxor, Opcode::Imul]);
    let mut pos = FuncCursor::new(&mut func).at_bottom(block);
    let old = pos.ins().load(types::I64, MemFlagsData::new(), address, 0);
    let (inst, dfg) = pos.ins().Binary(opcode, types::I64, old, by);
    let new = dfg.first_result(inst);
    pos.ins().store(MemFlagsData::new(), new, address, 0);
    pos.ins().return_(&[old]);
    func
}
