//! How much a pass changed.

/// How much a pass changed, the larger including the smaller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    /// Nothing.
    #[default]
    Nothing,
    /// Instructions and values, but no block and no edge.
    Insts,
    /// The order of the successors of branches, and by that of the blocks, but no block and no edge.
    Order,
    /// Blocks or edges.
    Cfg,
}
