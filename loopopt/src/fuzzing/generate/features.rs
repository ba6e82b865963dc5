//! What may occur in a program.
//!
//! Each program has a part of all features only: a program that has everything has little of each, and a store, a call
//! or a trap everywhere is in the way of what would happen without it.

use super::choices::Choices;

/// Something that a program may or may not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feature {
    /// A memory image.
    Memory,
    /// Accesses that may be outside of the memory image.
    OutOfRange,
    /// Alias regions on accesses.
    Regions,
    /// Stack slots.
    Slots,
    /// Calls to host functions.
    Hosts,
    /// Calls to other functions of the program.
    Functions,
    /// Calls with an exception table.
    TryCalls,
    /// `f32` and `f64`.
    Floats,
    /// Vectors of 128 bits.
    Vectors,
    /// `i128`.
    Wide,
    /// `trapz` and `trapnz`, and branches to traps.
    Traps,
    /// Divisions and conversions that may trap.
    Partial,
    /// Atomic accesses and fences.
    Atomics,
    /// `br_table`.
    Tables,
    /// Cycles with several entries.
    Irreducible,
    /// Cold blocks.
    Cold,
    /// Aliases of values.
    Aliases,
    /// Source locations, debug tags and stack maps.
    Marks,
    /// Blocks that nothing branches to.
    Unreachable,
    /// `sequence_point`.
    SequencePoints,
    /// Blocks in any order.
    Shuffled,
    /// Loops that need not end.
    Endless,
}

/// A set of features.
#[derive(Clone, Copy, Debug)]
pub(super) struct Features(u32);

impl Features {
    /// A few of them, or all but a few.
    pub(super) fn draw(random: &mut Choices<'_, '_>) -> Self {
        let (a, b) = (random.word(), random.word());
        let bits = match random.below(4) {
            0 => a & b,
            1 | 2 => a,
            _ => a | b,
        };
        let mut features = Self((bits >> 8) as u32);
        if random.chance(20) {
            features.remove(&NOT_INTERPRETED);
        }
        if !random.chance(3) {
            features.remove(&[Feature::Endless]);
        }
        if features.has(Feature::Marks) {
            // A load is lowered as a part of its user, if both are in one block, and traps at the place of that.
            features.remove(&[Feature::OutOfRange]);
        }
        features
    }

    pub(super) fn has(self, feature: Feature) -> bool {
        self.0 & 1 << feature as u32 != 0
    }

    fn remove(&mut self, features: &[Feature]) {
        for &feature in features {
            self.0 &= !(1 << feature as u32);
        }
    }
}

/// What Cranelift's interpreter does not know.
const NOT_INTERPRETED: [Feature; 7] = [
    Feature::Memory,
    Feature::Hosts,
    Feature::TryCalls,
    Feature::Vectors,
    Feature::Atomics,
    Feature::SequencePoints,
    Feature::Endless,
];
