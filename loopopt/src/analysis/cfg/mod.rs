//! Edges, loops, and what surely executes.

pub mod edges;
pub(crate) mod flow;
pub mod handlers;
pub mod jumps;
pub mod loops;
pub mod must_execute;
