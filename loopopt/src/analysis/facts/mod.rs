//! What is known at a place, and what follows from it.

pub mod condition;
pub mod known;
mod prover;
pub(crate) mod tested;
