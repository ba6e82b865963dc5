//! What bodies add to generated functions that has an effect: numbers drawn from a seed decide about it, and a host function is told of it.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, FuncRef, Function, InstBuilder, Opcode, Signature, StackSlot, types,
};
use cranelift_codegen::isa::CallConv;

/// Numbers that depend on a seed.
pub(super) struct Draws(u64);

impl Draws {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number, below `limit`.
    pub(super) fn draw(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A host function that is told two numbers.
pub(super) fn import_ask(func: &mut Function) -> FuncRef {
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params.extend([types::I64, types::I64].map(AbiParam::new));
    signature.returns.push(AbiParam::new(types::I64));
    let signature = func.import_signature(signature);
    let name = ExternalName::testcase("ask");
    func.import_function(ExtFuncData { name, signature, colocated: false, patchable: false })
}

/// Tells `ask` at each return what `slot` holds.
pub(super) fn tell_at_returns(func: &mut Function, slot: StackSlot, ask: FuncRef) {
    for block in func.layout.blocks().collect::<Vec<_>>() {
        let last = func.layout.last_inst(block).expect("a block has a terminator");
        if func.dfg.insts[last].opcode() == Opcode::Return {
            let mut pos = FuncCursor::new(func).at_inst(last);
            let held = pos.ins().stack_load(types::I64, types::I64, slot, 0);
            pos.ins().call(ask, &[held, held]);
        }
    }
}
