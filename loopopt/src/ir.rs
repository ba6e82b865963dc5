//! What settings, analyses and passes ask of a function as it is written.

use cranelift_codegen::ir::{Function, MemFlags};

/// How many instructions the blocks of `func` hold.
pub fn num_insts(func: &Function) -> usize {
    func.layout.blocks().map(|block| func.layout.block_insts(block).count()).sum()
}

/// All flags that accesses of `func` may have.
pub(crate) fn all_mem_flags(func: &Function) -> impl Iterator<Item = MemFlags> + '_ {
    (0..).map(MemFlags::from_u32).take_while(|&flags| func.dfg.mem_flags.is_valid(flags))
}
