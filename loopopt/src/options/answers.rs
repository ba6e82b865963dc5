//! What the embedder says of an access with these flags.

use crate::embedder::Writers;
use crate::ir::all_mem_flags;
use crate::options::Options;
use cranelift_codegen::ir::{Function, Inst, InstructionData, MemFlagsData, Opcode};

impl Options {
    /// Who writes the memory that an access with these flags touches.
    pub(crate) fn writers(&self, func: &Function, flags: MemFlagsData) -> Writers {
        let region = flags.alias_region().map(|region| &func.dfg.alias_regions[region]);
        region.map_or(Writers::Any, |region| self.embedder.writers(region))
    }

    /// Whether an access with these flags is to memory that changes at any time.
    pub(crate) fn is_asynchronous(&self, func: &Function, flags: MemFlagsData) -> bool {
        self.writers(func, flags) == Writers::Others
    }

    /// Whether `load` reads what others write at any time: by the embedder's word, or because it is atomic.
    pub(crate) fn is_asynchronous_load(&self, func: &Function, load: Inst) -> bool {
        match func.dfg.insts[load] {
            InstructionData::Load { flags, .. } => self.is_asynchronous(func, func.dfg.mem_flags[flags]),
            _ => func.dfg.insts[load].opcode() == Opcode::AtomicLoad,
        }
    }

    /// Whether what is loaded with these flags never gets smaller, and may be loaded anywhere.
    pub(crate) fn never_shrinks(&self, func: &Function, flags: MemFlagsData) -> bool {
        let region = flags.alias_region().map(|region| &func.dfg.alias_regions[region]);
        flags.notrap() && region.is_some_and(|region| self.embedder.never_shrinks(region))
    }

    /// Whether an access with these flags is checked before it runs.
    pub(crate) fn is_checked(&self, func: &Function, flags: MemFlagsData) -> bool {
        let region = flags.alias_region().map(|region| &func.dfg.alias_regions[region]);
        region.zip(flags.trap_code()).is_some_and(|(region, code)| self.embedder.is_checked(region, code))
    }

    /// Whether any access of `func` can be one that is checked before it runs.
    pub(crate) fn has_checked(&self, func: &Function) -> bool {
        all_mem_flags(func).any(|flags| self.is_checked(func, func.dfg.mem_flags[flags]))
    }

    /// Whether extensions confine any access of `func`.
    pub(crate) fn has_confining(&self, func: &Function) -> bool {
        let mut regions = all_mem_flags(func).filter_map(|flags| func.dfg.mem_flags[flags].alias_region());
        regions.any(|region| self.embedder.extension_confines(&func.dfg.alias_regions[region]))
    }

    /// The least and the largest unsigned number that a load of 64 bits with these flags gives.
    pub(crate) fn bounds(&self, func: &Function, flags: MemFlagsData) -> (u64, u64) {
        let region = flags.alias_region().map(|region| &func.dfg.alias_regions[region]);
        let bounds = region.map_or(0..=u64::MAX, |region| self.embedder.bounds(region));
        (*bounds.start(), *bounds.end())
    }

    /// How many bytes can be accessed from the address on that a load with these flags gives.
    pub(crate) fn dereferenceable_bytes(&self, func: &Function, flags: MemFlagsData) -> u64 {
        flags.alias_region().map_or(0, |region| self.embedder.dereferenceable_bytes(&func.dfg.alias_regions[region]))
    }
}
