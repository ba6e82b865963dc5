//! What one instruction says by itself, wherever it is.

pub mod effects;
pub mod known_bits;
pub mod number;

pub use crate::ir::num_insts;
