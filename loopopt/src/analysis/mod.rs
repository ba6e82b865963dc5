//! Facts about a function. Nothing here writes to it.
//!
//! An analysis is made by its constructor and never changes: it is right for the function that it was made from, or it
//! does not exist.

pub mod edges;
pub mod effects;
pub mod evaluate;
pub mod induction;
pub mod loops;
pub mod progression;
pub mod trip_count;
