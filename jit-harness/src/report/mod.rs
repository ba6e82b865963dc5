//! The results of `bench`, for people and for machines.

pub mod compare;
pub mod csv;
pub mod json;
pub mod made;
pub mod page;
pub mod saved;
pub mod table;
pub mod whole;
