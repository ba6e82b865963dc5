//! Counters of loops: where they start, how they step and when they stop.

use super::choices::{Choices, wrap};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Type, types};

/// A counter that starts at a constant and is compared with one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter {
    pub(super) ty: Type,
    pub(super) start: i128,
    pub(super) step: i128,
    /// The loop goes on while this holds for the counter and the bound.
    pub(super) condition: IntCC,
    pub(super) bound: i128,
}

const CONDITIONS: [IntCC; 10] = [
    IntCC::NotEqual,
    IntCC::UnsignedLessThan,
    IntCC::SignedLessThan,
    IntCC::SignedGreaterThan,
    IntCC::UnsignedGreaterThan,
    IntCC::SignedLessThanOrEqual,
    IntCC::UnsignedLessThanOrEqual,
    IntCC::SignedGreaterThanOrEqual,
    IntCC::UnsignedGreaterThanOrEqual,
    IntCC::Equal,
];

/// A condition for integers.
pub(super) fn condition(random: &mut Choices<'_, '_>) -> IntCC {
    random.pick(&CONDITIONS)
}

impl Counter {
    /// A counter with a bound that it reaches after some steps, if it does not wrap around or jump over it.
    pub(super) fn draw(random: &mut Choices<'_, '_>, wide: bool, trips: u64) -> Self {
        let ty = if wide && random.chance(10) { types::I128 } else { random.narrow_int() };
        let bits = ty.bits();
        let step = match random.below(8) {
            0 | 1 => 1,
            2 => -1,
            3 => i128::from(random.pick(&[2_i8, 3, 4, 7, 8, 16])),
            4 => -i128::from(random.pick(&[2_i8, 3, 4, 7, 8, 16])),
            5 => 1 << random.below(bits as usize - 1),
            6 => 1,
            _ => random.integer(bits),
        };
        let trips = random.below(trips as usize + 1) as i128;
        let start = random.integer(bits);
        let end = wrap(start.wrapping_add(step.wrapping_mul(trips)), bits);
        // Half of all loops count to zero or from zero.
        let (start, end) = match random.below(6) {
            0 | 1 => (0, wrap(step.wrapping_mul(trips), bits)),
            2 => (wrap(step.wrapping_mul(trips).wrapping_neg(), bits), 0),
            _ => (start, end),
        };
        let bound = if random.chance(15) { wrap(end.wrapping_add(random.pick(&[1, -1, 2])), bits) } else { end };
        let condition = match random.below(5) {
            0 => IntCC::NotEqual,
            1 if step > 0 => IntCC::SignedLessThan,
            1 => IntCC::SignedGreaterThan,
            _ => condition(random),
        };
        Self { ty, start, step: wrap(step, bits), condition, bound }
    }

    /// How often the condition holds, one after the other, if that is at most this often.
    pub(super) fn trips(&self, limit: u64) -> Option<u64> {
        let bits = self.ty.bits();
        let mut value = self.start;
        for trips in 0..=limit {
            if !holds(self.condition, value, self.bound, bits) {
                return Some(trips);
            }
            value = wrap(value.wrapping_add(self.step), bits);
        }
        None
    }

    /// The same counter one step later.
    pub(super) fn stepped(self) -> Self {
        Self { start: wrap(self.start.wrapping_add(self.step), self.ty.bits()), ..self }
    }
}

pub(super) fn holds(condition: IntCC, a: i128, b: i128, bits: u32) -> bool {
    let mask = u128::MAX >> (128 - bits);
    let (ua, ub) = (a as u128 & mask, b as u128 & mask);
    match condition {
        IntCC::Equal => a == b,
        IntCC::NotEqual => a != b,
        IntCC::SignedLessThan => a < b,
        IntCC::SignedGreaterThanOrEqual => a >= b,
        IntCC::SignedGreaterThan => a > b,
        IntCC::SignedLessThanOrEqual => a <= b,
        IntCC::UnsignedLessThan => ua < ub,
        IntCC::UnsignedGreaterThanOrEqual => ua >= ub,
        IntCC::UnsignedGreaterThan => ua > ub,
        IntCC::UnsignedLessThanOrEqual => ua <= ub,
    }
}
