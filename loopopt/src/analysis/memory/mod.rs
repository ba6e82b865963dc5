//! What instructions do to memory, and what it holds.

pub mod alias;
pub mod available;
pub mod checked_memory;
pub mod disjoint;
pub mod enough;
pub mod exit_polls;
pub mod fuel;
pub mod loop_polls;
pub mod polls;
pub(crate) mod slots;
pub mod spectre_guard;
