//! Sums: a value that a loop carries, and that grows by what a counter, a constant or something outside says.
//!
//! What it is at the end is a formula of how often the loop runs. It is seldom used elsewhere.

use super::features::Shape;
use super::fill::Fill;
use cranelift_codegen::ir::{InstBuilder, Type, Value};

impl Fill<'_, '_, '_> {
    /// The next value of `param`, an integer, by an addition or subtraction.
    pub(super) fn sum(&mut self, param: Value) -> Value {
        self.note(Shape::Sum);
        let ty = self.pos.func.dfg.value_type(param);
        if self.random.chance(85) {
            self.known.values.retain(|&value| value != param);
        }
        let added = self.added(ty);
        let next = match self.random.below(4) {
            0 => self.pos.ins().isub(param, added),
            1 => self.pos.ins().iadd(added, param),
            _ => self.pos.ins().iadd(param, added),
        };
        if self.random.chance(10) { self.keep_value(next) } else { next }
    }

    /// What an iteration adds.
    fn added(&mut self, ty: Type) -> Value {
        let counter = self.known.counters.last().copied().filter(|_| self.random.chance(75));
        let number = match counter {
            Some(counter) => self.counter_in(counter, ty),
            None => self.small(ty),
        };
        match self.random.below(6) {
            0 => self.pos.ins().imul(number, number),
            1 => {
                let factor = self.small(ty);
                self.pos.ins().imul(number, factor)
            }
            2 => {
                let factor = self.any(ty);
                self.pos.ins().imul(factor, number)
            }
            3 => {
                let more = self.small(ty);
                self.pos.ins().isub(more, number)
            }
            _ => number,
        }
    }

    /// A counter in as many bits.
    fn counter_in(&mut self, counter: Value, ty: Type) -> Value {
        let own = self.pos.func.dfg.value_type(counter);
        match own.bits().cmp(&ty.bits()) {
            std::cmp::Ordering::Equal => counter,
            std::cmp::Ordering::Greater => self.pos.ins().ireduce(ty, counter),
            std::cmp::Ordering::Less if self.random.chance(50) => self.pos.ins().sextend(ty, counter),
            std::cmp::Ordering::Less => self.pos.ins().uextend(ty, counter),
        }
    }

    /// A small number.
    fn small(&mut self, ty: Type) -> Value {
        let number = self.random.pick(&[1, 3, -1, 7, 16]);
        match ty.bits() {
            128 => {
                let low = self.pos.ins().iconst(cranelift_codegen::ir::types::I64, number);
                self.pos.ins().sextend(ty, low)
            }
            bits => self.pos.ins().iconst(ty, number & (u64::MAX >> (64 - bits)).cast_signed()),
        }
    }
}
