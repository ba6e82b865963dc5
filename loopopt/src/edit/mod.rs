//! Rewrites that decide nothing. Each keeps the program's meaning by itself.

/// The most parameters that an edit gives a block. Cranelift numbers them with 16 bits; this leaves some room.
pub(crate) const MAX_PARAMS: usize = 60_000;

/// That an edit would need more parameters than a block or a function may have. The function is of no use then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyParams;

pub(crate) mod cfg;
pub(crate) mod copy;
pub(crate) mod inst;
pub(crate) mod materialize;
pub(crate) mod ssa;

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Function, Inst};

/// Inserts before `inst`, in its name.
pub(crate) fn at(func: &mut Function, inst: Inst) -> FuncCursor<'_> {
    let srcloc = func.srcloc(inst);
    FuncCursor::new(func).at_inst(inst).with_srcloc(srcloc)
}
