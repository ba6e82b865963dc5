//! The results of `bench`, for people and for machines.

pub mod json;
pub mod page;
pub mod table;
