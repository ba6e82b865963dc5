//! Rewrites that decide nothing. Each keeps the program's meaning by itself.

/// The most parameters that an edit gives a block. Cranelift numbers them with 16 bits; this leaves some room.
pub(crate) const MAX_PARAMS: usize = 60_000;

/// That an edit would need more parameters than a block or a function may have. The function is of no use then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyParams;

pub(crate) mod assertion;
pub(crate) mod behind;
pub(crate) mod chosen;
pub(crate) mod clone;
pub(crate) mod close;
pub(crate) mod constants;
pub(crate) mod construct;
pub(crate) mod dead;
pub(crate) mod detour;
pub(crate) mod emit;
pub(crate) mod forget;
pub(crate) mod frontier;
pub(crate) mod funnel;
pub(crate) mod iterate;
pub(crate) mod labels;
pub(crate) mod merge;
pub(crate) mod neighbours;
pub(crate) mod offsets;
pub(crate) mod params;
pub(crate) mod rename;
pub(crate) mod replace;
pub(crate) mod reuse;
pub(crate) mod ssa;
pub(crate) mod stride;
pub(crate) mod trust;
pub(crate) mod twin;

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Function, Inst};

/// Inserts before `inst`, in its name.
pub(crate) fn at(func: &mut Function, inst: Inst) -> FuncCursor<'_> {
    let srcloc = func.srcloc(inst);
    FuncCursor::new(func).at_inst(inst).with_srcloc(srcloc)
}
