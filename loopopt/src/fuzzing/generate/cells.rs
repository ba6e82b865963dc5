//! Cells: places in memory that are read, changed and written, again and again.
//!
//! A cell is chosen once and used in all later blocks, mostly in inner loops, so that its address is the same in all
//! iterations of those: an accumulator that is kept in memory, a field of a structure, an element that only outer loops move.
//! What happens between is left to chance: other cells that may overlap, calls, traps, branches, exits.

use super::features::{Feature, Shape};
use super::fill::Fill;
use super::memory::Pointer;
use cranelift_codegen::ir::{InstBuilder, MemFlags, Opcode, Type, Value, types};

const INT_OPS: [Opcode; 6] = [Opcode::Iadd, Opcode::Iadd, Opcode::Isub, Opcode::Bxor, Opcode::Bor, Opcode::Imul];
const VECTOR_OPS: [Opcode; 3] = [Opcode::Iadd, Opcode::Isub, Opcode::Bxor];
const FLOAT_OPS: [Opcode; 3] = [Opcode::Fadd, Opcode::Fmul, Opcode::Fsub];

/// A place of one type at a constant distance from an address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pointer: Pointer,
    offset: u32,
    /// Of the values that are computed with.
    ty: Type,
    /// How it is loaded and stored, if it is narrower than its values.
    narrow: Option<(Opcode, Opcode, u32)>,
}

impl Cell {
    fn size(&self) -> u32 {
        self.narrow.map_or(self.ty.bytes(), |(_, _, size)| size)
    }
}

impl Fill<'_, '_, '_> {
    /// Something with a cell.
    pub(super) fn cell(&mut self) {
        let depth = self.known.depth();
        let is_enough = self.known.cells.len() > 1 && self.random.chance(if depth == 0 { 60 } else { 93 });
        if !is_enough {
            return self.new_cells();
        }
        let from = if depth > 0 && self.random.chance(70) {
            self.known.outside(depth - 1).cells
        } else {
            self.known.cells.len()
        };
        let Some(youngest) = from.checked_sub(1) else { return };
        let cell = self.known.cells[youngest - self.random.below(from.min(4))];
        let is_invariant = depth > 0 && from == self.known.outside(depth - 1).cells;
        match self.random.below(10) {
            0..=4 => self.update(cell, is_invariant),
            5 | 6 => self.overwrite(cell, is_invariant),
            7 => self.update_if(cell),
            _ => {
                self.load_cell(cell);
            }
        }
    }

    /// A structure with a few fields, some of which overlap others.
    pub(super) fn new_cells(&mut self) {
        let Some(pointer) = self.pointer(true) else { return };
        let mut offset = self.random.pick(&[0, 0, 8, 16, 3]);
        let fields = 1 + self.random.below(4);
        for _ in 0..fields {
            let cell = self.new_cell(pointer, offset);
            if pointer.room.is_some_and(|room| offset + cell.size() > room) {
                return;
            }
            self.known.cells.push(cell);
            let size = cell.size();
            offset = match self.random.below(6) {
                0 => offset + size / 2,
                1 => offset,
                _ => offset + size,
            };
        }
        if fields > 1 {
            self.note(Shape::Fields);
        }
    }

    fn new_cell(&mut self, pointer: Pointer, offset: u32) -> Cell {
        let mut ty = self.access_type();
        let mut narrow = None;
        if self.random.chance(20) {
            ty = self.random.pick(&[types::I32, types::I64]);
            narrow = Some(self.random.pick(&[
                (Opcode::Uload8, Opcode::Istore8, 1),
                (Opcode::Sload8, Opcode::Istore8, 1),
                (Opcode::Uload16, Opcode::Istore16, 2),
                (Opcode::Sload16, Opcode::Istore16, 2),
            ]));
        }
        Cell { pointer, offset, ty, narrow }
    }

    fn cell_flags(&mut self, cell: &Cell) -> (MemFlags, i32) {
        let place = self.place_at(cell.pointer, cell.offset, cell.size());
        (self.flags(place.flags), place.offset)
    }

    fn load_cell(&mut self, cell: Cell) -> Value {
        let (flags, offset) = self.cell_flags(&cell);
        let opcode = cell.narrow.map_or(Opcode::Load, |(load, ..)| load);
        let inst = self.pos.ins().Load(opcode, cell.ty, flags, offset.into(), cell.pointer.value).0;
        self.keep(inst);
        self.pos.func.dfg.first_result(inst)
    }

    /// Loads a cell that is known, for nobody but the caller, and may write it then.
    pub(super) fn load_some_cell(&mut self) -> Option<Value> {
        let youngest = self.known.cells.len().checked_sub(1)?;
        let cell = self.known.cells[youngest - self.random.below((youngest + 1).min(4))];
        let value = self.load_cell(cell);
        self.known.values.pop();
        if self.random.chance(50) {
            self.overwrite(cell, false);
        }
        Some(value)
    }

    fn store_cell(&mut self, cell: Cell, value: Value) {
        let (flags, offset) = self.cell_flags(&cell);
        let opcode = cell.narrow.map_or(Opcode::Store, |(_, store, _)| store);
        let value = if cell.ty.is_float() { self.without_nan(value) } else { value };
        let inst = self.pos.ins().Store(opcode, cell.ty, flags, offset.into(), value, cell.pointer.value).0;
        self.keep(inst);
    }

    /// `cell op= value`, with or without something between load and store.
    fn update(&mut self, cell: Cell, is_invariant: bool) {
        let old = self.load_cell(cell);
        if self.random.chance(30) {
            self.effect();
        }
        let new = self.combined(old);
        if self.random.chance(15) && self.features().has(Feature::Traps) {
            self.effect();
        }
        self.store_cell(cell, new);
        if is_invariant {
            self.note(Shape::CellUpdate);
        }
    }

    /// A value computed from this one and another of its type.
    fn combined(&mut self, value: Value) -> Value {
        let ty = self.pos.func.dfg.value_type(value);
        let other = self.any(ty);
        let opcode = if ty.is_float() {
            self.random.pick(&FLOAT_OPS)
        } else if ty.is_vector() {
            self.random.pick(&VECTOR_OPS)
        } else {
            self.random.pick(&INT_OPS)
        };
        let inst = self.pos.ins().Binary(opcode, ty, value, other).0;
        self.keep(inst);
        self.pos.func.dfg.first_result(inst)
    }

    fn overwrite(&mut self, cell: Cell, is_invariant: bool) {
        let value = self.any(cell.ty);
        self.store_cell(cell, value);
        if is_invariant {
            self.note(Shape::CellOverwritten);
        }
    }

    /// A new value, or the old one once more.
    fn update_if(&mut self, cell: Cell) {
        let old = self.load_cell(cell);
        if cell.ty == types::I128 {
            return self.store_cell(cell, old);
        }
        let condition = self.bit();
        let new = self.any(cell.ty);
        let value = self.pos.ins().select(condition, new, old);
        let value = self.keep_value(value);
        self.store_cell(cell, value);
    }
}
