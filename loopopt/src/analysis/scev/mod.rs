//! Scalar evolution: what the integers of a loop are in each iteration, how often it runs, and what has to hold before it.

pub(crate) mod backward_slice;
pub mod comparison;
pub mod const_eval;
pub mod exit_count;
pub mod exit_test;
pub mod extent;
mod integer;
pub mod invariant;
pub mod linear_expr;
pub mod predication;
pub mod recurrence;
pub mod requirement;
pub(crate) mod symbolic_count;
pub(crate) mod value_range;
pub mod view;
pub mod wrap_arc;
