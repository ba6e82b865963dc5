//! The programs, by topic.

pub(crate) mod arrays;
pub(crate) mod bytes;
pub(crate) mod cells;
pub(crate) mod checked;
pub(crate) mod control;
pub(crate) mod grids;
pub(crate) mod guards;
pub(crate) mod indexed;
pub(crate) mod joined;
pub(crate) mod known;
pub(crate) mod nests;
pub(crate) mod objects;
pub(crate) mod parts;
pub(crate) mod places;
pub(crate) mod profiled;
pub(crate) mod rare;
pub(crate) mod reductions;
pub(crate) mod scalar;
pub(crate) mod search;
pub(crate) mod sums;
pub(crate) mod widened;
