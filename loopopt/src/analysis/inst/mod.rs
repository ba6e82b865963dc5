//! What one instruction says by itself, wherever it stands.

pub mod effects;
pub mod known_bits;
pub mod number;

pub use crate::ir::num_insts;
