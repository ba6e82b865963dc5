//! Accesses at an index that counts: elements that are stored in one iteration and loaded in the next.
//!
//! The values that an index can have are known, and where its elements are is chosen so that all of them are in one part of the
//! memory image, those of the iterations next to them included. How an address is computed is chosen each time: the index is
//! scaled by a shift or a multiplication, in 64 or in 32 bits, and what is added to it is added before or after that, or
//! is the offset of the access.

use super::choices::{Choices, wrap};
use super::features::{Feature, Shape};
use super::fill::Fill;
use super::memory::{HIGH, LOW, Part, Pointer};
use super::plan::Progress;
use cranelift_codegen::ir::{InstBuilder, Opcode, Type, Value, types};

/// The most elements that an access can be away from that of its iteration.
const AWAY: i128 = 2;
/// The most bytes that an access has.
const WIDEST: i128 = 16;

/// An array of which each iteration has an element.
#[derive(Clone, Debug)]
pub(super) struct Series {
    index: Value,
    progress: Progress,
    /// Bytes for each unit of the index.
    scale: i128,
    /// Where the element of the first iteration is in the memory image.
    first: i128,
    part: Part,
    ty: Type,
    /// Addresses that are known, and how far each is from that of the element.
    addresses: Vec<(Value, i128)>,
}

impl Series {
    /// An array for an index, if one fits into a part of the image.
    fn draw(random: &mut Choices<'_, '_>, index: Value, progress: Progress, ty: Type) -> Option<Self> {
        let part = random.pick(&[HIGH, LOW]);
        let size = i128::from(ty.bytes());
        let scale = random.pick(&[size, size, size, 4, 8, 1, 2]);
        let stride = scale.checked_mul(progress.step)?;
        let successor = stride.checked_mul(progress.count.into())?;
        let (below, above) = (AWAY * stride.abs() - successor.min(0), AWAY * stride.abs() + successor.max(0) + WIDEST);
        let (start, end) = (i128::from(part.start) + below, i128::from(part.start + part.len) - above);
        if start > end {
            return None;
        }
        let first = start + random.below((end - start) as usize + 1) as i128;
        let first = if random.chance(80) { (first / 8 * 8).max(start) } else { first };
        Some(Self { index, progress, scale, first, part, ty, addresses: Vec::new() })
    }
}

impl Fill<'_, '_, '_> {
    /// An access to a series, or to two elements of one.
    pub(super) fn series(&mut self) {
        if self.known.series.is_empty() || self.random.chance(15) {
            self.new_series();
        }
        let Some(youngest) = self.known.series.len().checked_sub(1) else { return };
        let at = youngest - self.random.below((youngest + 1).min(3));
        let ty = self.known.series[at].ty;
        match self.random.below(6) {
            0 => self.load_element(at, ty, 0),
            1 => {
                let away = self.random.pick(&[-1, 1, -2, 2]);
                self.load_element(at, ty, away);
            }
            2 => {
                let value = self.any(ty);
                self.store_element(at, value, 0);
            }
            3 => {
                let ty = self.access_type();
                let away = self.random.pick(&[-1, 0, 1]);
                self.load_element(at, ty, away);
            }
            _ => self.recurrence(at),
        }
    }

    pub(super) fn new_series(&mut self) {
        let Some(youngest) = self.known.counters.len().checked_sub(1) else { return };
        let index = self.known.counters[youngest - self.random.below((youngest + 1).min(3))];
        let ty = self.pos.func.dfg.value_type(index);
        let element = self.access_type();
        if (ty == types::I64 || ty == types::I32)
            && let Some(series) = Series::draw(self.random, index, self.progress(index), element)
        {
            self.known.series.push(series);
        }
    }

    /// Loads elements of the iterations before and stores that of this one.
    fn recurrence(&mut self, at: usize) {
        let series = &self.known.series[at];
        let (ty, ahead) = (series.ty, series.progress.step.signum());
        let away = self.random.pick(&[-1, -1, -2, 1]);
        self.load_element(at, ty, away * ahead);
        if self.random.chance(25) {
            self.load_element(at, ty, -2 * ahead);
        }
        if self.random.chance(25) {
            self.effect();
        }
        let loaded = self.any(ty);
        self.store_element(at, loaded, 0);
        if self.known.depth() > 0 {
            self.note(Shape::Recurrence);
        }
    }

    /// `away` is in iterations.
    fn load_element(&mut self, at: usize, ty: Type, away: i128) {
        let (pointer, offset) = self.element(at, away);
        let place = self.place_from(pointer, offset, ty.bytes());
        let flags = self.flags(place.flags);
        let inst = self.pos.ins().Load(Opcode::Load, ty, flags, place.offset.into(), place.address).0;
        self.keep(inst);
    }

    fn store_element(&mut self, at: usize, value: Value, away: i128) {
        let ty = self.pos.func.dfg.value_type(value);
        let value = if ty.is_float() { self.without_nan(value) } else { value };
        let (pointer, offset) = self.element(at, away);
        let place = self.place_from(pointer, offset, ty.bytes());
        let flags = self.flags(place.flags);
        let inst = self.pos.ins().Store(Opcode::Store, ty, flags, place.offset.into(), value, place.address).0;
        self.keep(inst);
    }

    /// An address, and what is to be added to it, for an element so many iterations away.
    fn element(&mut self, at: usize, away: i128) -> (Pointer, i32) {
        let series = self.known.series[at].clone();
        let away = away * series.progress.step * series.scale;
        let (address, rest) = match series.addresses.last() {
            Some(&known) if self.random.chance(60) => known,
            _ => {
                let made = self.element_address(&series, away);
                self.known.series[at].addresses.push(made);
                made
            }
        };
        (Pointer::element(address, series.part), (rest + away) as i32)
    }

    /// A new address near the element of this iteration, and the offset that leads from the one to the other.
    fn element_address(&mut self, series: &Series, away: i128) -> (Value, i128) {
        let ty = self.pos.func.dfg.value_type(series.index);
        let bits = ty.bits();
        let in_index = if self.random.chance(40) { away } else { 0 };
        // What the offset of the access adds is missing in the address.
        let in_offset = self.random.pick(&[0, i128::from(series.part.start), 64]);
        let target = series.first + in_index - in_offset;
        let rest = wrap(target - series.scale * series.progress.start, bits);
        let (before, behind) =
            if rest % series.scale == 0 && self.random.chance(50) { (rest / series.scale, 0) } else { (0, rest) };
        let mut value = series.index;
        value = self.plus(value, before);
        value = self.scaled(value, series.scale);
        value = self.plus(value, behind);
        let mut memory = self.memory();
        if ty == types::I32 {
            self.note(Shape::NarrowIndex);
            if self.random.chance(30) {
                (value, memory) = self.farther(value, memory);
            }
            value = self.pos.ins().uextend(types::I64, value);
        }
        let address = if self.random.chance(70) {
            self.pos.ins().iadd(memory, value)
        } else {
            self.pos.ins().iadd(value, memory)
        };
        (address, in_offset - in_index)
    }

    /// An index of 32 bits that is larger by a number or two, or smaller by one, and a base that makes up for it.
    fn farther(&mut self, mut index: Value, mut base: Value) -> (Value, Value) {
        self.note(Shape::NarrowSum);
        let mut is_less = false;
        if self.random.chance(60) {
            // As much as a row of a matrix, or more than there is if nothing says how much it is.
            let row = self.any(types::I32);
            let room = self.pos.ins().iconst(types::I32, 0xff);
            let row = self.pos.ins().band(row, room);
            let wide = self.pos.ins().uextend(types::I64, row);
            is_less = self.random.chance(30);
            (index, base) = match is_less {
                true => (self.pos.ins().isub(index, row), self.pos.ins().iadd(base, wide)),
                false => (self.pos.ins().iadd(index, row), self.pos.ins().isub(base, wide)),
            };
        }
        // What is smaller would be below zero.
        if is_less || self.random.chance(40) {
            // Up to the last numbers of 32 bits.
            let far = self.random.pick(&[0x1_0000, 0x7fff_ff00, 0x8000_0000, 0xffff_fc00_i64]);
            index = self.plus(index, far.into());
            let far = self.pos.ins().iconst(types::I64, far);
            base = self.pos.ins().isub(base, far);
        }
        (index, base)
    }

    fn plus(&mut self, value: Value, number: i128) -> Value {
        if number == 0 {
            return value;
        }
        let ty = self.pos.func.dfg.value_type(value);
        let by = self.pos.ins().iconst(ty, (number & (i128::MAX >> (127 - ty.bits()))) as i64);
        self.pos.ins().iadd(value, by)
    }

    fn scaled(&mut self, value: Value, scale: i128) -> Value {
        if scale == 1 {
            return value;
        }
        if self.random.chance(70) {
            return self.pos.ins().ishl_imm_u(value, i64::from(scale.ilog2()));
        }
        self.pos.ins().imul_imm_s(value, scale as i64)
    }

    /// Whether there can be series.
    pub(super) fn has_series(&self) -> bool {
        self.features().has(Feature::Series) && self.features().has(Feature::Memory)
    }
}
