//! Reductions: a value that a loop carries, to which an iteration applies several operations in a row.
//!
//! Mostly all are of one kind, so that their order does not matter, and now and then one is not. Intermediate results are seldom used elsewhere.

use super::features::Shape;
use super::fill::Fill;
use cranelift_codegen::ir::{InstBuilder, Opcode, Value};

const KINDS: [&[Opcode]; 6] = [
    &[Opcode::Iadd, Opcode::Isub],
    &[Opcode::Iadd, Opcode::Isub],
    &[Opcode::Imul],
    &[Opcode::Bxor],
    &[Opcode::Band],
    &[Opcode::Bor],
];
/// For numbers of at most 64 bits.
const ORDERS: [&[Opcode]; 4] = [&[Opcode::Smin], &[Opcode::Smax], &[Opcode::Umin], &[Opcode::Umax]];

impl Fill<'_, '_, '_> {
    /// The next value of `param`, an integer, after some operations on it.
    pub(super) fn reduction(&mut self, param: Value) -> Value {
        self.note(Shape::Reduction);
        let ty = self.pos.func.dfg.value_type(param);
        let has_order = ty.bits() <= 64 && self.random.chance(25);
        let kind = if has_order { self.random.pick(&ORDERS) } else { self.random.pick(&KINDS) };
        if self.random.chance(80) {
            self.known.values.retain(|&value| value != param);
        }
        let mut value = param;
        for _ in 0..2 + self.random.below(3) {
            let kind = if self.random.chance(8) { self.random.pick(&KINDS) } else { kind };
            let (opcode, other) = (self.random.pick(kind), self.any(ty));
            let (a, b) = if self.random.chance(75) { (value, other) } else { (other, value) };
            let inst = self.pos.ins().Binary(opcode, ty, a, b).0;
            value = self.pos.func.dfg.first_result(inst);
            if self.random.chance(8) {
                self.keep(inst);
            }
        }
        self.keep_value(value)
    }
}
