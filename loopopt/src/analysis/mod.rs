//! Facts about a function. Nothing here writes to it.
//!
//! An analysis is made by its constructor and never changes: it is right for the function that it was made from, or it
//! does not exist.

pub mod address;
pub mod edges;
pub mod effects;
pub mod entry;
pub mod loops;
pub mod memory;
pub mod pressure;
pub(crate) mod slots;
