//! Instructions by themselves: copies, other operands, and what debuggers know of them.

pub(crate) mod clone;
pub(crate) mod extending_load;
pub(crate) mod labels;
pub(crate) mod plain;
pub(crate) mod rename;
pub(crate) mod stand_for;
pub(crate) mod trap_location;
