//! What a profile is recorded of, and what it says of a function.

mod frequencies;
mod key;
mod sites;

pub(crate) use frequencies::Frequencies;
pub(crate) use sites::{MAX_CHAIN, MAX_INSTS, only_operand, sites};
