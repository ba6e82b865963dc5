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
//! the same. A memory never has less bytes than the module declares, nor more. An access to an element of a table carries one if a guard is what checks it.

use cranelift_codegen::ir::{AliasRegionData, TrapCode};
use loopopt::{Embedder, SpectreGuards, Writers};
use std::ops::RangeInclusive;
use wasmparser::{MemoryType, Parser, Payload, TypeRef};

/// What depends on how Wasmtime is set up, and on the module.
#[derive(Clone, Debug)]
pub struct Knowledge {
    /// Each access to a memory is checked: none relies on a fault.
    pub checks_memories: bool,
    /// Spectre guards may go where their conditions are proved, and are not only consolidated.
    pub drops_guards: bool,
    /// How many bytes a memory of the module has, any of them.
    pub memory_bytes: RangeInclusive<u64>,
}

impl Knowledge {
    /// What is known of every module but for how Wasmtime is set up.
    pub fn of(module: &[u8]) -> Self {
        Self { checks_memories: false, drops_guards: false, memory_bytes: memory_bytes(module) }
    }
}

/// How many bytes a memory of this module has, those included that it imports: no less than the smallest has at first, and no more
/// than the largest may come to have. Any number, if the module cannot be read.
fn memory_bytes(module: &[u8]) -> RangeInclusive<u64> {
    const ANY: RangeInclusive<u64> = 0..=u64::MAX;
    let mut memories = Vec::new();
    for payload in Parser::new(0).parse_all(module) {
        let read: wasmparser::Result<()> = match payload {
            Ok(Payload::MemorySection(section)) => {
                section.into_iter().try_for_each(|memory| memory.map(|memory| memories.push(memory)))
            }
            Ok(Payload::ImportSection(section)) => section.into_imports().try_for_each(|import| {
                import.map(|import| {
                    if let TypeRef::Memory(memory) = import.ty {
                        memories.push(memory)
                    }
                })
            }),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        if read.is_err() {
            return ANY;
        }
    }
    let least = memories.iter().map(|memory| bytes(memory, memory.initial)).min();
    let most = memories.iter().map(|memory| bytes(memory, memory.maximum.unwrap_or(u64::MAX))).max();
    least.zip(most).map_or(ANY, |(least, most)| least..=most)
}

/// So many pages of a memory in bytes, if that is not more than can be addressed.
fn bytes(memory: &MemoryType, pages: u64) -> u64 {
    let page = 1_u64 << memory.page_size_log2.unwrap_or(16);
    let addressable = if memory.memory64 { u64::MAX } else { 1 << 32 };
    pages.saturating_mul(page).min(addressable)
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
        let is_one_of = |starts: [&str; 2]| starts.iter().any(|start| region.description.starts_with(start));
        let is_memory = self.checks_memories && is_one_of(["DefinedMemory", "PublicMemory"]);
        (is_memory && code == TrapCode::HEAP_OUT_OF_BOUNDS) || is_one_of(["DefinedTable", "PublicTable"])
    }

    fn bounds(&self, region: &AliasRegionData) -> RangeInclusive<u64> {
        match region.description.as_ref() {
            "VMMemoryDefinition+0x8" => self.memory_bytes.clone(),
            _ => 0..=u64::MAX,
        }
    }

    fn never_shrinks(&self, region: &AliasRegionData) -> bool {
        region.description == "VMMemoryDefinition+0x8"
    }

    fn spectre_guards(&self) -> SpectreGuards {
        match self.drops_guards {
            true => SpectreGuards::Drop,
            false => SpectreGuards::Consolidate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_memories() {
        let of = |text: &str| memory_bytes(&wat::parse_str(text).expect("a module"));
        assert_eq!(of("(module (memory 2))"), 2 << 16..=1 << 32);
        assert_eq!(of("(module (import \"a\" \"b\" (memory 1 9)) (memory 2 3))"), 1 << 16..=9 << 16);
        assert_eq!(of("(module (memory i64 7))"), 7 << 16..=u64::MAX);
        assert_eq!(of("(module (memory 100 (pagesize 1)))"), 100..=1 << 32);
        assert_eq!(of("(module)"), 0..=u64::MAX);
        assert_eq!(memory_bytes(b"no module"), 0..=u64::MAX);
    }
}
