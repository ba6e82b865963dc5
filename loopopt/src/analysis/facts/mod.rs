//! What is known at a place, and what follows from it.

pub mod condition;
pub mod known;
pub mod nowrap;
pub mod polynomial;
mod prover;
pub(crate) mod tested;
