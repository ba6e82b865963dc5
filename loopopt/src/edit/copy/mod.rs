//! Copies of blocks, of loops and of iterations.

pub(crate) mod copy_iterations;
pub(crate) mod duplicate_loop;
pub(crate) mod reroute_cold_path;
