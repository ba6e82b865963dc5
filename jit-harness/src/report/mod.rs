//! The results of `bench`, for people and for machines.

pub mod json;
pub mod made;
pub mod table;
