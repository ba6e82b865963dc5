//! Facts about a function. Nothing here writes to it.
//!
//! An analysis is right for the function that it was made from, or it does not exist. Some find their answers when they are asked; `PrivateSlots` and `Pressure`
//! can be told of an edit.

pub mod cfg;
pub mod facts;
pub mod inst;
#[cfg(feature = "fuzzing")]
pub mod lemmas;
pub mod memory;
pub mod pressure;
pub(crate) mod profiled;
pub mod scev;
