//! The places that are recorded, as [`sites`](crate::analysis::profiled::sites()) finds them.

use cranelift_codegen::ir::{Block, Inst, Value};

/// What is recorded of a loop.
#[derive(Clone, Debug)]
pub(crate) struct LoopSites {
    pub(crate) header: Block,
    /// [`LoopProfile::key`](super::LoopProfile::key).
    pub(crate) key: String,
    /// The blocks that not each iteration runs through, those of inner loops not counted.
    pub(crate) blocks: Vec<Block>,
    /// The values.
    pub(crate) values: Vec<ValueSite>,
}

/// A loop-invariant number.
#[derive(Clone, Debug)]
pub(crate) struct ValueSite {
    pub(crate) value: Value,
    /// Where it is used, it or what is computed from it alone.
    pub(crate) uses: Vec<(Use, Inst)>,
}

/// What is made of a number that would be faster if it were a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// A divisor.
    Divisor,
    /// A factor.
    Factor,
    /// By how much is shifted.
    Shift,
    /// The step of a number of the loop.
    Step,
    /// One side of a comparison that a branch of the loop is made of.
    Compared,
    /// The start, or the bound, of what ends an inner loop.
    Bound,
    /// What a branch or a `select` asks.
    Asked,
    /// What a `br_table` asks.
    Table,
}

impl Use {
    /// Whether it saves as much as it takes to record the value, and to ask for it.
    pub(crate) fn is_costly(self) -> bool {
        matches!(self, Self::Divisor | Self::Table)
    }
}
