//! Loop programs made from bytes, and what is demanded of the passes for each of them.
