//! The names that the knowledge rests on are those that Wasmtime gives, and what is said of each.

use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{AliasRegionData, TrapCode};
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{CodegenResult, Context};
use loopopt::{Embedder, Writers};
use loopopt_wasmtime_support::{CLAIM_TRAP, Knowledge, Pass, WASMTIME, defined_function, with_pass};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use wasmtime::{Config, Engine, Module, Trap};

/// Accesses to all that the knowledge names: of the module, and of others.
const MODULE: &str = r#"
(module
  (import "a" "memory" (memory $im 1))
  (import "a" "table" (table $it 1 funcref))
  (import "a" "global" (global $ig (mut i32)))
  (memory $m 1)
  (table $t 4 funcref)
  (global $g (mut i32) (i32.const 0))
  (func (export "f") (param i32) (result i32)
    (i32.store $m (local.get 0) (i32.load $im (local.get 0)))
    (global.set $g (global.get $ig))
    (global.set $ig (local.get 0))
    (table.set $t (local.get 0) (table.get $it (local.get 0)))
    (table.set $it (local.get 0) (table.get $t (local.get 0)))
    (loop $l (br_if $l (i32.load $m (local.get 0))))
    (call_indirect $t (param i32) (result i32) (local.get 0) (local.get 0))))
"#;

/// Starts of descriptions, up to `+` or `(`, with what is said of each; all that Wasmtime gives to the module above.
const KNOWN: &[(&str, Writers)] = &[
    ("DefinedGlobal", Writers::Calls),
    ("DefinedMemory", Writers::Any),
    ("DefinedTable", Writers::Calls),
    ("EpochCounter", Writers::Others),
    ("PublicGlobal", Writers::Calls),
    ("PublicMemory", Writers::Any),
    ("PublicTable", Writers::Calls),
    ("TypeIdsArray", Writers::Any),
    ("VMContext", Writers::Any),
    ("VMFuncRef", Writers::Any),
    ("VMGlobalImport", Writers::Any),
    ("VMMemoryDefinition", Writers::Any),
    ("VMMemoryImport", Writers::Any),
    ("VMStoreContext", Writers::Any),
    ("VMTableDefinition", Writers::Calls),
    ("VMTableImport", Writers::Any),
];

/// The regions that the functions of a module access.
#[derive(Default)]
struct Regions(BTreeMap<String, AliasRegionData>);

impl Pass for Regions {
    fn run(&mut self, ctx: &mut Context, _: &dyn TargetIsa, _: &mut ControlPlane) -> CodegenResult<()> {
        let func = &ctx.func;
        if defined_function(func).is_some() {
            let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
            let flags = insts.filter_map(|inst| func.dfg.insts[inst].memflags());
            let regions = flags.filter_map(|flags| func.dfg.mem_flags[flags].alias_region());
            let regions = regions.map(|region| func.dfg.alias_regions[region].clone());
            self.0.extend(regions.map(|region| (region.description.to_string(), region)));
        }
        Ok(())
    }

    fn fingerprint(&self) -> String {
        String::new()
    }
}

/// The regions of a module in an engine with epochs whose memories are checked.
fn regions(text: &str) -> BTreeMap<String, AliasRegionData> {
    let mut config = Config::new();
    config.memory_reservation(0).memory_guard_size(0).epoch_interruption(true);
    let engine = Engine::new(&config).expect("a configuration");
    let regions = Rc::new(RefCell::new(Regions::default()));
    with_pass(&regions, || Module::new(&engine, text)).expect("the hook is ours").expect("a module");
    regions.take().0
}

#[test]
fn names_are_those_that_wasmtime_gives() {
    let mut seen: BTreeMap<String, Writers> = BTreeMap::new();
    for (description, region) in regions(MODULE) {
        let kind = description.split(['+', '(']).next().unwrap_or_default();
        seen.insert(kind.to_owned(), Knowledge::default().writers(&region));
    }
    let known: BTreeMap<_, _> = KNOWN.iter().map(|&(kind, writers)| (kind.to_owned(), writers)).collect();
    assert_eq!(seen, known);
}

/// The length of a memory is where the knowledge says, and what it says of that holds of nothing else.
#[test]
fn lengths_are_at_their_place() {
    let knowledge = Knowledge::of(&wat::parse_str("(module (memory 2 3))").expect("a module"));
    let text = "(module (memory 2 3) (func (export \"f\") (result i32) memory.size))";
    let of_definition = |description: &&String| description.starts_with("VMMemoryDefinition");
    let size = regions(text);
    assert_eq!(size.keys().filter(of_definition).collect::<Vec<_>>(), ["VMMemoryDefinition+0x8"]);

    for (description, region) in regions(MODULE) {
        let is_length = description == "VMMemoryDefinition+0x8";
        let bytes = if is_length { 2 << 16..=3 << 16 } else { 0..=u64::MAX };
        assert_eq!((knowledge.never_shrinks(&region), knowledge.bounds(&region)), (is_length, bytes), "{description}");
        let is_table = ["DefinedTable", "PublicTable"].iter().any(|start| description.starts_with(start));
        assert_eq!(knowledge.is_checked(&region, TrapCode::HEAP_OUT_OF_BOUNDS), is_table, "{description}");
    }
}

#[test]
fn the_version_is_that_of_the_lock_file() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock");
    let lock = std::fs::read_to_string(path).expect("the lock file");
    assert!(lock.contains(&format!("name = \"wasmtime\"\nversion = \"{WASMTIME}\"")));
    let readme = include_str!("../README.md");
    assert!(readme.contains(&format!("wasmtime = {{ version = \"={WASMTIME}\"")));
}

#[test]
fn a_claim_that_fails_is_a_trap_of_wasmtime() {
    assert_eq!(CLAIM_TRAP, Trap::AtomicWaitNonSharedMemory as u8);
}
