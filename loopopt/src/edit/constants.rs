//! Make constants again in each block that uses them.
//!
//! Cranelift's egraph pass leaves functions like that (`remat.isle`): a constant costs nothing as an immediate and next to
//! nothing in a register, but a register that holds one across a loop is lost to the loop. Edits that move arguments from
//! one block to another would undo it.

use crate::edit::clone::repeat_before;
use crate::edit::rename::each_use;
use crate::fault::fault;
use cranelift_codegen::ir::{Block, Function, Inst, Opcode, Value};

/// Gives each block its own copies of the scalar constants that it uses from other blocks, right before the first use. Returns
/// whether there was any.
pub(crate) fn localize_constants(func: &mut Function) -> bool {
    let mut any = false;
    let mut blocks = func.layout.entry_block();
    let mut local = Vec::new();
    while let Some(block) = blocks {
        local.clear();
        let mut insts = func.layout.first_inst(block);
        while let Some(inst) = insts {
            localize_operands(func, block, inst, &mut local);
            insts = func.layout.next_inst(inst);
        }
        any |= !local.is_empty();
        blocks = func.layout.next_block(block);
    }
    any
}

/// Lets `inst`, an instruction of `block`, use constants of its own block. `local` holds those made so far, with what they
/// stand for.
fn localize_operands(func: &mut Function, block: Block, inst: Inst, local: &mut Vec<(Value, Value)>) {
    let foreign =
        |func: &Function, value| scalar_constant(func, value).filter(|&def| func.layout.inst_block(def) != Some(block));
    let mut any = false;
    each_use(func, inst, |value| any |= foreign(func, value).is_some());
    if !any {
        return;
    }
    let values: Vec<_> = func.dfg.inst_values(inst).collect();
    for value in values {
        if let Some(def) = foreign(func, value)
            && find(func, local, value).is_none()
        {
            local.push((value, repeat_before(func, def, inst)));
        }
    }
    let values: Vec<_> = func
        .dfg
        .inst_values(inst)
        .map(|value| foreign(func, value).and_then(|_| find(func, local, value)).unwrap_or(value))
        .collect();
    func.dfg.overwrite_inst_values(inst, values.into_iter());
}

/// What stands for `value` in `local`.
fn find(func: &Function, local: &[(Value, Value)], value: Value) -> Option<Value> {
    let same_type = |old| func.dfg.value_type(old) == func.dfg.value_type(value);
    let serves = |&&(old, _): &&(Value, Value)| old == value || (fault!(AnyConstant) && same_type(old));
    local.iter().find(serves).map(|&(_, new)| new)
}

/// The instruction that makes `value`, if it is one that the egraph pass would make again. Vector constants are loaded
/// from memory and stay where they are.
fn scalar_constant(func: &Function, value: Value) -> Option<Inst> {
    let def = func.dfg.value_def(value).inst()?;
    let rematerialized = matches!(func.dfg.insts[def].opcode(), Opcode::Iconst | Opcode::F32const | Opcode::F64const);
    rematerialized.then_some(def)
}
