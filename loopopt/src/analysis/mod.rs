//! Facts about a function. Nothing here writes to it.
//!
//! An analysis is made by its constructor and never changes: it is right for the function that it was made from, or it
//! does not exist.

pub mod address;
pub mod ahead;
pub mod available;
pub mod conditions;
pub mod edges;
pub mod effects;
pub mod entry;
pub mod evaluate;
pub mod exact;
mod gathered;
pub mod guard;
mod implication;
pub mod induction;
mod integer;
pub mod invariant;
pub mod iterations;
#[cfg(feature = "fuzzing")]
pub mod lemmas;
pub mod loops;
pub mod memory;
pub(crate) mod numbers;
pub mod polls;
pub mod pressure;
pub mod progression;
pub mod requirement;
pub(crate) mod slots;
pub mod strides;
pub mod trip_count;
pub mod unwrapped;
pub mod view;
