//! Choices made from bytes.
//!
//! When the bytes run out, every choice is the first one and every chance is missed. The generator puts what ends a
//! program first, so that it ends small.

use arbitrary::Unstructured;
use cranelift_codegen::ir::{Type, types};

/// Where the generator's choices come from.
#[derive(Debug)]
pub(super) struct Choices<'u, 'd> {
    bytes: &'u mut Unstructured<'d>,
}

impl<'u, 'd> Choices<'u, 'd> {
    pub(super) fn new(bytes: &'u mut Unstructured<'d>) -> Self {
        Self { bytes }
    }

    /// A number below `count`, which is not 0.
    pub(super) fn below(&mut self, count: usize) -> usize {
        self.bytes.int_in_range(0..=count - 1).unwrap_or(0)
    }

    /// True in so many percent of all cases.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) >= 100 - percent.min(100)
    }

    /// One of these.
    pub(super) fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// One of these, each as often as its weight says.
    pub(super) fn weighted<T: Copy>(&mut self, items: &[(usize, T)]) -> T {
        let mut at = self.below(items.iter().map(|(weight, _)| weight).sum());
        for &(weight, item) in items {
            if at < weight {
                return item;
            }
            at -= weight;
        }
        items[0].1
    }

    /// Any 64 bits.
    pub(super) fn word(&mut self) -> u64 {
        self.bytes.arbitrary().unwrap_or(0)
    }

    /// An integer of this many bits, sign-extended: mostly a small one, or one close to an end of the type.
    pub(super) fn integer(&mut self, bits: u32) -> i128 {
        let near = i128::from(self.pick(&[0_i8, 1, 2, 3, -1, -2, 4, 7, 8, 15, 16, -8, 31, 64, 100, -3]));
        let min = i128::MIN >> (128 - bits);
        let at = match self.below(8) {
            0..=3 => near,
            4 => min.wrapping_add(near),
            5 => (!min).wrapping_add(near),
            6 => i128::from(self.bytes.arbitrary::<i8>().unwrap_or(0)),
            _ => i128::from(self.word()) << self.pick(&[0, 1, 64]) >> self.pick(&[0, 1, 40]),
        };
        wrap(at, bits)
    }

    /// An integer type of at most 64 bits.
    pub(super) fn narrow_int(&mut self) -> Type {
        self.pick(&[types::I32, types::I64, types::I64, types::I32, types::I8, types::I16])
    }
}

/// The lowest bits of a number, sign-extended.
pub(super) fn wrap(value: i128, bits: u32) -> i128 {
    value << (128 - bits) >> (128 - bits)
}
