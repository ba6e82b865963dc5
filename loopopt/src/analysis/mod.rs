//! Facts about a function. Nothing here writes to it.
//!
//! An analysis is made by its constructor and never changes: it is right for the function that it was made from, or it
//! does not exist.

pub mod cfg;
pub mod facts;
pub mod inst;
#[cfg(feature = "fuzzing")]
pub mod lemmas;
pub mod memory;
pub mod pressure;
pub(crate) mod profiled;
pub mod scev;
