//! Rewrites that decide nothing. Each keeps the program's meaning by itself.

pub(crate) mod clone;
pub(crate) mod close;
pub(crate) mod constants;
pub(crate) mod forget;
pub(crate) mod funnel;
pub(crate) mod labels;
pub(crate) mod merge;
pub(crate) mod params;
pub(crate) mod rename;
pub(crate) mod ssa;
