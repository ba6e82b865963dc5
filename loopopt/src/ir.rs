//! What settings, analyses and passes ask of a function as it is written.

use cranelift_codegen::ir::{Function, Inst, MemFlags};

/// All instructions that the blocks of `func` hold, in the order of its layout.
pub(crate) fn all_insts(func: &Function) -> impl Iterator<Item = Inst> + '_ {
    func.layout.blocks().flat_map(|block| func.layout.block_insts(block))
}

/// How many instructions the blocks of `func` hold.
pub fn num_insts(func: &Function) -> usize {
    all_insts(func).count()
}

/// All flags that accesses of `func` may have.
pub(crate) fn all_mem_flags(func: &Function) -> impl Iterator<Item = MemFlags> + '_ {
    (0..).map(MemFlags::from_u32).take_while(|&flags| func.dfg.mem_flags.is_valid(flags))
}
