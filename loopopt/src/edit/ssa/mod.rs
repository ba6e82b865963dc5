//! Closed form, and values with several definitions.

pub(crate) mod close;
pub(crate) mod construct;
pub(crate) mod dead_params;
pub(crate) mod frontier;
pub(crate) mod own_values;
pub(crate) mod params;
pub(crate) mod repair;
pub(crate) mod replace;
