//! Blocks and edges.

pub(crate) mod merge;
pub(crate) mod split_edges;
pub(crate) mod unreachable;
