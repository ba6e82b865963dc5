//! Make constants again in each block that uses them.
//!
//! Cranelift's egraph pass leaves functions like that (`remat.isle`): a constant costs nothing as an immediate and next to
//! nothing in a register, but a register that holds one across a loop is lost to the loop. Edits that move arguments from
//! one block to another would undo it.

use cranelift_codegen::ir::{Function, Inst, Opcode, Value};
use std::collections::BTreeMap;

/// Gives each block its own copies of the scalar constants that it uses from other blocks, right before the first use.
pub(crate) fn localize_constants(func: &mut Function) {
    let mut cursor = func.layout.entry_block();
    while let Some(block) = cursor {
        let mut local = BTreeMap::new();
        let insts: Vec<_> = func.layout.block_insts(block).collect();
        for inst in insts {
            let foreign: Vec<_> = func
                .dfg
                .inst_values(inst)
                .filter_map(|value| Some((value, scalar_constant(func, value)?)))
                .filter(|&(_, def)| func.layout.inst_block(def) != Some(block))
                .collect();
            if foreign.is_empty() {
                continue;
            }
            for (value, def) in foreign {
                local.entry(value).or_insert_with(|| copy_before(func, def, inst));
            }
            func.dfg.map_inst_values(inst, |value| local.get(&value).copied().unwrap_or(value));
        }
        cursor = func.layout.next_block(block);
    }
}

/// The instruction that makes `value`, if it is one that the egraph pass would make again. Vector constants are loaded
/// from memory and stay where they are.
fn scalar_constant(func: &Function, value: Value) -> Option<Inst> {
    let def = func.dfg.value_def(value).inst()?;
    let rematerialized = matches!(func.dfg.insts[def].opcode(), Opcode::Iconst | Opcode::F32const | Opcode::F64const);
    rematerialized.then_some(def)
}

fn copy_before(func: &mut Function, def: Inst, inst: Inst) -> Value {
    let copy = func.dfg.clone_inst(def);
    func.layout.insert_inst(copy, inst);
    if !func.srcloc(def).is_default() {
        func.set_srcloc(copy, func.srcloc(def));
    }
    func.dfg.first_result(copy)
}
