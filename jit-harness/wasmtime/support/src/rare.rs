//! Blocks that hardly ever run, and that Wasmtime does not mark as cold.

use cranelift_codegen::ir::instructions::CallInfo;
use cranelift_codegen::ir::{Block, ExternalName, FuncRef, Function};

/// The namespace of the trampolines to what the runtime does itself.
const BUILTINS: u32 = 3 << 28;
/// Which of these is called when the fuel has run out. `tests/rare.rs` compares it with what Wasmtime calls.
const OUT_OF_GAS: u32 = 12;

/// Marks the blocks as cold that call the runtime because the fuel has run out: such a block does nothing else. Done before loopopt by the
/// pass of [`install`](crate::install).
///
/// Wasmtime marks those of epochs itself. Without that, each test of the fuel jumps over a call, before which all registers are saved.
pub fn mark_rare(func: &mut Function) {
    let is_out_of_gas = |callee: FuncRef| match func.dfg.ext_funcs[callee].name {
        ExternalName::User(name) => {
            let name = &func.params.user_named_funcs()[name];
            (name.namespace, name.index) == (BUILTINS, OUT_OF_GAS)
        }
        _ => false,
    };
    let rare: Vec<FuncRef> = func.dfg.ext_funcs.keys().filter(|&callee| is_out_of_gas(callee)).collect();
    if rare.is_empty() {
        return;
    }
    let calls = |inst| match func.dfg.insts[inst].analyze_call(&func.dfg.value_lists, &func.dfg.exception_tables) {
        CallInfo::Direct(callee, _) | CallInfo::DirectWithSig(callee, ..) => rare.contains(&callee),
        CallInfo::NotACall | CallInfo::Indirect(..) => false,
    };
    let blocks = func.layout.blocks().filter(|&block| func.layout.block_insts(block).any(calls));
    for block in blocks.collect::<Vec<Block>>() {
        func.layout.set_cold(block);
    }
}
