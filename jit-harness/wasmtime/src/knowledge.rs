//! What Wasmtime knows of the code that it emits and CLIF cannot say.
//!
//! Wasmtime 48 gives each memory access an alias region and describes it by what it is of: the fields of the structures of
//! its runtime as `VMContext+0x8`, the rest as `DefinedMemory(module, index)` and the like.
//!
//! | regions | who writes them |
//! |---|---|
//! | `EpochCounter+…` | other threads |
//! | `VMTableDefinition+…`, tables, globals | calls, and stores of their own; no thread shares them |
//! | memories, and their definitions | others too, if the memory is shared: what CLIF says |
//!
//! The length of a memory, `VMMemoryDefinition+0x8`, never gets smaller, shared or not.
//!
//! A memory without a reservation and without guard pages is checked at each access, and the access carries a trap code all
//! the same.

use cranelift_codegen::ir::{AliasRegionData, TrapCode};
use loopopt::{Embedder, Writers};

/// What depends on how Wasmtime is set up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Knowledge {
    /// Each access to a memory is checked: none relies on a fault.
    pub checks_memories: bool,
    /// Spectre guards may go where their conditions are proved.
    pub drops_guards: bool,
}

impl Embedder for Knowledge {
    fn writers(&self, region: &AliasRegionData) -> Writers {
        const BY_CALLS: [&str; 5] =
            ["VMTableDefinition", "DefinedTable", "PublicTable", "DefinedGlobal", "PublicGlobal"];
        let is_of = |start: &str| region.description.starts_with(start);
        match () {
            () if is_of("EpochCounter") => Writers::Others,
            () if BY_CALLS.into_iter().any(is_of) => Writers::Calls,
            () => Writers::Any,
        }
    }

    fn is_checked(&self, region: &AliasRegionData, code: TrapCode) -> bool {
        let is_memory = ["DefinedMemory", "PublicMemory"].iter().any(|start| region.description.starts_with(start));
        self.checks_memories && is_memory && code == TrapCode::HEAP_OUT_OF_BOUNDS
    }

    fn never_shrinks(&self, region: &AliasRegionData) -> bool {
        region.description == "VMMemoryDefinition+0x8"
    }

    fn drops_proved_spectre_guards(&self) -> bool {
        self.drops_guards
    }
}
