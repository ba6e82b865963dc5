//! Fewer branches and fewer blocks.

use super::draft::{
    Draft, Edit, constant_before, destinations, in_function, insts, replace_uses, set_destination, used,
};
use cranelift_codegen::cursor::{Cursor as _, FuncCursor};
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, InstBuilder as _, InstructionData, Opcode, Type, Value};
use std::collections::HashSet;

pub(super) fn edits(draft: &Draft) -> Vec<Edit> {
    let mut edits = Vec::new();
    for func in &draft.functions {
        edits.push(in_function(func, drop_unreachable));
        for block in func.layout.blocks() {
            let Some(inst) = func.layout.last_inst(block) else { continue };
            edits.push(in_function(func, move |func| end(func, inst)));
            match func.dfg.insts[inst].opcode() {
                Opcode::Brif | Opcode::BrTable => {
                    let count = destinations(func, inst).len();
                    edits.extend((0..count).map(|number| in_function(func, move |func| go_to(func, inst, number))));
                }
                Opcode::TryCall => edits.push(in_function(func, move |func| call_only(func, inst))),
                _ => {}
            }
        }
        for block in func.layout.blocks() {
            edits.push(in_function(func, move |func| merge(func, block)));
            edits.push(in_function(func, move |func| skip(func, block)));
        }
    }
    edits
}

/// Returns zeros in the place of a branch or trap.
fn end(func: &mut Function, inst: Inst) -> Option<()> {
    func.layout.inst_block(inst)?;
    if func.dfg.insts[inst].opcode().is_return() || func.dfg.has_results(inst) {
        return None;
    }
    let types: Vec<Type> = func.signature.returns.iter().map(|result| result.value_type).collect();
    let zeros: Option<Vec<Value>> = types.into_iter().map(|ty| constant_before(func, inst, ty, false)).collect();
    func.replace(inst).return_(&zeros?);
    drop_unreachable(func);
    Some(())
}

/// Makes a branch a jump to one of its destinations.
fn go_to(func: &mut Function, inst: Inst, number: usize) -> Option<()> {
    func.layout.inst_block(inst)?;
    if !matches!(func.dfg.insts[inst].opcode(), Opcode::Brif | Opcode::BrTable) {
        return None;
    }
    let (block, args) = destinations(func, inst).into_iter().nth(number)?;
    func.replace(inst).jump(block, &args);
    drop_unreachable(func);
    Some(())
}

/// Makes a call that may throw one that does not.
fn call_only(func: &mut Function, inst: Inst) -> Option<()> {
    func.layout.inst_block(inst)?;
    let InstructionData::TryCall { func_ref, .. } = func.dfg.insts[inst] else { return None };
    let (block, mut passed) = destinations(func, inst).pop()?;
    let args = func.dfg.inst_args(inst).to_vec();
    let mut pos = FuncCursor::new(func).at_inst(inst);
    let call = pos.ins().call(func_ref, &args);
    let results = pos.func.dfg.inst_results(call).to_vec();
    for arg in &mut passed {
        if let BlockArg::TryCallRet(index) = *arg {
            *arg = BlockArg::Value(*results.get(index as usize)?);
        }
    }
    pos.ins().jump(block, &passed);
    func.layout.remove_inst(inst);
    drop_unreachable(func);
    Some(())
}

/// Drops the blocks that are never entered.
fn drop_unreachable(func: &mut Function) -> Option<()> {
    let mut work: Vec<Block> = func.layout.entry_block().into_iter().collect();
    let mut seen: HashSet<Block> = work.iter().copied().collect();
    while let Some(block) = work.pop() {
        work.extend(func.block_successors(block).filter(|&successor| seen.insert(successor)));
    }
    let dead: Vec<Block> = func.layout.blocks().filter(|block| !seen.contains(block)).collect();
    for &block in &dead {
        func.layout.remove_block_and_insts(block);
    }
    (!dead.is_empty()).then_some(())
}

/// The branches to a block, and the numbers of the destinations.
fn branches_to(func: &Function, block: Block) -> Vec<(Inst, usize)> {
    let mut branches = Vec::new();
    for inst in insts(func) {
        let to_block = |(number, (to, _)): (usize, (Block, _))| (to == block).then_some((inst, number));
        branches.extend(destinations(func, inst).into_iter().enumerate().filter_map(to_block));
    }
    branches
}

/// Appends a block to the only one that enters it, if that one only enters this.
fn merge(func: &mut Function, block: Block) -> Option<()> {
    if !func.layout.is_block_inserted(block) || func.layout.entry_block() == Some(block) {
        return None;
    }
    let branches = branches_to(func, block);
    let [(jump, 0)] = branches[..] else { return None };
    let before = func.layout.inst_block(jump).filter(|&before| before != block)?;
    if func.dfg.insts[jump].opcode() != Opcode::Jump {
        return None;
    }
    let (_, args) = destinations(func, jump).pop()?;
    let args: Vec<Value> = args.iter().filter_map(BlockArg::as_value).collect();
    let params = func.dfg.block_params(block).to_vec();
    for (param, arg) in params.into_iter().zip(args) {
        replace_uses(func, param, arg);
    }
    func.layout.remove_inst(jump);
    while let Some(inst) = func.layout.first_inst(block) {
        func.layout.remove_inst(inst);
        func.layout.append_inst(inst, before);
    }
    func.layout.remove_block(block);
    Some(())
}

/// Branches directly to the target of a block that does nothing.
fn skip(func: &mut Function, block: Block) -> Option<()> {
    if !func.layout.is_block_inserted(block) || func.layout.entry_block() == Some(block) {
        return None;
    }
    let jump = func.layout.first_inst(block).filter(|&inst| func.dfg.insts[inst].opcode() == Opcode::Jump)?;
    let (target, passed) = destinations(func, jump).pop().filter(|&(target, _)| target != block)?;
    let params = func.dfg.block_params(block).to_vec();
    func.layout.remove_inst(jump);
    let used = used(func);
    if params.iter().any(|param| used.contains(param)) {
        return None;
    }
    for (inst, number) in branches_to(func, block) {
        let (_, args) = destinations(func, inst).swap_remove(number);
        let through = passed.iter().map(|arg| match params.iter().position(|&param| *arg == BlockArg::Value(param)) {
            Some(index) => args[index],
            None => *arg,
        });
        let through: Vec<BlockArg> = through.collect();
        set_destination(func, inst, number, target, &through);
    }
    func.layout.remove_block(block);
    Some(())
}
