//! Instructions that compute what an analysis has found.

pub(crate) mod assertion;
pub(crate) mod constants;
pub(crate) mod dce;
pub(crate) mod drop_trap_flags;
pub(crate) mod emit;
pub(crate) mod known_loads;
pub(crate) mod local_cse;
pub(crate) mod narrow;
pub(crate) mod neighbours;
pub(crate) mod offsets;
pub(crate) mod other_class;
pub(crate) mod pin;
pub(crate) mod stride;
pub(crate) mod trust_allocated;
pub(crate) mod trust_lengths;
