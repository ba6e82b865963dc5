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
//! A memory without a reservation and without guard pages is checked at each access, and the access carries a trap code all the same. A memory
//! never has less bytes than the module declares, nor more. Of a component, nothing like that is known: the adapters that Wasmtime makes for its calls, and
//! inlines, also access memories of core modules that the component is given when it is instantiated. An access to an element of a table carries a trap code if
//! a guard is what checks it.

use cranelift_codegen::ir::{AliasRegionData, TrapCode};
use loopopt::{Embedder, SpectreGuards, Writers};
use std::ops::RangeInclusive;
use wasmparser::{Encoding, MemoryType, Parser, Payload, TypeRef};

/// Any number of bytes.
const ANY: RangeInclusive<u64> = 0..=u64::MAX;

/// What Wasmtime knows of its code, which depends on how it is set up, and on the module.
///
/// The default is true of every engine and every module. What is set has to be true of all that is compiled with it; a wrong word makes wrong code.
///
/// ```
/// use loopopt::SpectreGuards;
/// use loopopt_wasmtime_support::Settings;
/// use wasmtime::Config;
///
/// let mut config = Config::new();
/// config.memory_reservation(0).memory_guard_size(0);
/// config.gc_heap_reservation(0).gc_heap_guard_size(0);
/// let mut settings = Settings::default();
/// settings.knowledge.checks_memories = true; // because of the lines above
/// assert_eq!(settings.knowledge.spectre_guards, SpectreGuards::Consolidate);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Knowledge {
    /// Each access to a memory is checked: none relies on a fault. True of engines with `memory_reservation(0)` and `memory_guard_size(0)`, and the
    /// same for the GC heap. `false` by default.
    pub checks_memories: bool,
    /// What may become of Spectre guards. `Consolidate` by default: one guard stands for all accesses near one address, as safe as one for each.
    /// `Keep` touches none of them. `Drop` is for those who trust all code in the process: guards become traps, as with Wasmtime's own
    /// `enable_heap_access_spectre_mitigation` off.
    ///
    /// Memories with 4 GiB reserved have no guards; what is said of them is [`extensions_confine`](Self::extensions_confine).
    pub spectre_guards: SpectreGuards,
    /// Nothing may take an access to a memory, or to the heap of the garbage collector, outside of its 4 GiB where the processor runs ahead of a branch: indices stay 32 bits, extended.
    /// Costs a part of what `widen_indices` and `version` gain. `false` by default; set it if code of several tenants runs in one process, and not
    /// all memories are checked.
    pub extensions_confine: bool,
    /// How many instructions of a function may run between two looks at the epoch. 4,096 by default, a microsecond: an epoch that ends is seen so
    /// much later. With 0, each iteration looks, as without loopopt. Fuel is always exact.
    pub poll_latency: u32,
    /// How many bytes a memory has, any that code compiled with this may access. Any number by default.
    pub memory_bytes: RangeInclusive<u64>,
}

impl Default for Knowledge {
    fn default() -> Self {
        Self {
            checks_memories: false,
            spectre_guards: SpectreGuards::Consolidate,
            extensions_confine: false,
            poll_latency: 4096,
            memory_bytes: ANY,
        }
    }
}

impl Knowledge {
    /// What is known of this module, given as WebAssembly, in an engine that is set up in any way.
    ///
    /// A component tells nothing, nor does what cannot be read as WebAssembly. Text of WebAssembly is not read.
    pub fn of(wasm: &[u8]) -> Self {
        Self { memory_bytes: memory_bytes(wasm), ..Self::default() }
    }
}

/// How many bytes a memory of this module has, those included that it imports: no less than the smallest has at first, and no more
/// than the largest may come to have. Any number, if it is a component or cannot be read.
fn memory_bytes(module: &[u8]) -> RangeInclusive<u64> {
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
            Ok(Payload::Version { encoding: Encoding::Component, .. }) => return ANY,
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
    let page = 1_u64.checked_shl(memory.page_size_log2.unwrap_or(16)).unwrap_or(u64::MAX);
    let addressable = if memory.memory64 { u64::MAX } else { 1 << 32 };
    pages.saturating_mul(page).min(addressable)
}

/// Whether the region is that of a linear memory.
fn is_memory(region: &AliasRegionData) -> bool {
    is_one_of(region, &["DefinedMemory", "PublicMemory"])
}

/// Whether the description of the region starts like this.
fn is_one_of(region: &AliasRegionData, starts: &[&str]) -> bool {
    starts.iter().any(|start| region.description.starts_with(start))
}

impl Embedder for Knowledge {
    fn writers(&self, region: &AliasRegionData) -> Writers {
        const BY_CALLS: [&str; 5] =
            ["VMTableDefinition", "DefinedTable", "PublicTable", "DefinedGlobal", "PublicGlobal"];
        match () {
            () if is_one_of(region, &["EpochCounter"]) => Writers::Others,
            () if is_one_of(region, &BY_CALLS) => Writers::Calls,
            () => Writers::Any,
        }
    }

    fn is_checked(&self, region: &AliasRegionData, code: TrapCode) -> bool {
        let is_checked_memory = self.checks_memories && is_memory(region) && code == TrapCode::HEAP_OUT_OF_BOUNDS;
        is_checked_memory || is_one_of(region, &["DefinedTable", "PublicTable"])
    }

    fn bounds(&self, region: &AliasRegionData) -> RangeInclusive<u64> {
        match region.description.as_ref() {
            "VMMemoryDefinition+0x8" => self.memory_bytes.clone(),
            _ => ANY,
        }
    }

    fn dereferenceable_bytes(&self, region: &AliasRegionData) -> u64 {
        match region.description.as_ref() {
            "VMMemoryDefinition+0x0" => *self.memory_bytes.start(),
            _ => 0,
        }
    }

    fn never_shrinks(&self, region: &AliasRegionData) -> bool {
        region.description == "VMMemoryDefinition+0x8"
    }

    fn spectre_guards(&self) -> SpectreGuards {
        self.spectre_guards
    }

    fn extension_confines(&self, region: &AliasRegionData) -> bool {
        self.extensions_confine && (is_memory(region) || is_one_of(region, &["GcHeap"]))
    }

    fn poll_latency(&self) -> u32 {
        self.poll_latency
    }

    fn fingerprint(&self) -> String {
        concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION"), ": ").to_owned() + &format!("{self:?}")
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
        assert_eq!(of("(module)"), ANY);
        assert_eq!(memory_bytes(b"no module"), ANY);
    }

    /// An adapter for `take` reads the memory of whatever module the component is given, though all that it declares itself have 100 pages.
    #[test]
    fn a_component_tells_nothing_of_memories() {
        let text = "(component
            (import \"m\" (core module $m (export \"memory\" (memory 0))))
            (core module $c (memory (export \"memory\") 100 100))
            (core instance (instantiate $c))
            (core instance (instantiate $m)))";
        assert_eq!(Knowledge::of(&wat::parse_str(text).expect("a component")).memory_bytes, ANY);
    }

    #[test]
    fn only_what_is_set_is_said() {
        let region = |description: &'static str| AliasRegionData { user_id: 0, description: description.into() };
        let heap = TrapCode::HEAP_OUT_OF_BOUNDS;
        let memory = region("DefinedMemory(StaticModuleIndex(0), DefinedMemoryIndex(0))");
        let default = Knowledge::default();
        assert!(!default.is_checked(&memory, heap) && !default.extension_confines(&memory));
        let set =
            Knowledge { checks_memories: true, extensions_confine: true, poll_latency: 0, ..Knowledge::default() };
        assert!(set.is_checked(&memory, heap) && set.extension_confines(&memory));
        assert!(!set.is_checked(&memory, TrapCode::INTEGER_OVERFLOW) && !set.is_checked(&region("PublicGlobal"), heap));
        assert_eq!((default.poll_latency(), set.poll_latency()), (4096, 0));
        assert_ne!(default.fingerprint(), set.fingerprint());
    }
}
