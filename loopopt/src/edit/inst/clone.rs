//! Copy a set of blocks with everything that belongs to an instruction.
//!
//! Copied are the instructions with their results, block parameters, coldness, jump tables and exception tables (one
//! per instruction, as Cranelift demands), source locations, debug tags, the stack maps of calls, and value labels. Edges
//! between copied blocks go to the copies; all others keep their targets. A value defined in a copied block is replaced
//! by its copy in the copies; all others are used as they are.
//!
//! `cranelift_codegen::inline` is the model; unlike the inliner, this copies source locations.

use crate::edit::inst::labels::copy_labels;
use crate::fault::fault;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, JumpTableData, Value};

/// Which block and which value stands for which after a copy.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    blocks: FxHashMap<Block, Block>,
    values: FxHashMap<Value, Value>,
}

impl Copies {
    /// The copy of `block`, or `block` itself if it was not copied.
    pub(crate) fn block(&self, block: Block) -> Block {
        self.blocks.get(&block).copied().unwrap_or(block)
    }

    /// The copy of `value`, or `value` itself if it was not copied.
    pub(crate) fn value(&self, value: Value) -> Value {
        self.values.get(&value).copied().unwrap_or(value)
    }
}

impl Copies {
    /// All values that were copied, with their copies.
    pub(crate) fn values(&self) -> impl Iterator<Item = (Value, Value)> + use<'_> {
        self.values.iter().map(|(&old, &new)| (old, new))
    }
}

/// Copies `blocks`, which must not hold the entry block. The copies are placed right before the first of them.
///
/// Values must be defined before they are used in the order of `blocks`, except for block parameters, which may be used
/// anywhere: dominance order, and thus any reverse postorder, has this property.
pub(crate) fn clone_blocks(func: &mut Function, blocks: &[Block]) -> Copies {
    let mut copies = Copies::default();
    copies.values.reserve(blocks.len() * 8);
    for &block in blocks {
        let copy = func.dfg.make_block();
        func.layout.insert_block(copy, blocks[0]);
        if func.layout.is_cold(block) {
            func.layout.set_cold(copy);
        }
        copies.blocks.insert(block, copy);
        for index in 0..func.dfg.num_block_params(block) {
            let param = func.dfg.block_params(block)[index];
            let ty = func.dfg.value_type(param);
            let new = func.dfg.append_block_param(copy, ty);
            copies.values.insert(param, new);
            copy_labels(func, param, new);
        }
    }
    for &block in blocks {
        let copied = copies.block(block);
        let mut next = func.layout.first_inst(block);
        while let Some(inst) = next {
            let copy = clone_inst(func, inst, &mut copies);
            func.layout.append_inst(copy, copied);
            next = func.layout.next_inst(inst);
        }
    }
    copies
}

/// Copies one instruction, without a place in the layout, and records its results.
fn clone_inst(func: &mut Function, inst: Inst, copies: &mut Copies) -> Inst {
    let copy = func.dfg.clone_inst(inst);
    own_tables(func, copy);
    map_operands(func, copy, copies);

    if !func.srcloc(inst).is_default() && !fault!(ForgottenSourceLocation) {
        func.set_srcloc(copy, func.srcloc(inst));
    }
    func.debug_tags.clone_tags(inst, copy);
    if let Some(stack_map) = func.dfg.user_stack_map_entries(inst).map(<[_]>::to_vec) {
        func.dfg.append_user_stack_map_entries(copy, stack_map);
    }
    for index in 0..func.dfg.inst_results(inst).len() {
        let [old, new] = [inst, copy].map(|inst| func.dfg.inst_results(inst)[index]);
        copies.values.insert(old, new);
        copy_labels(func, old, new);
    }
    copy
}

/// Recomputes the single result of `inst`, which is pure, right before `before`, with the source location of `inst`.
pub(crate) fn repeat_before(func: &mut Function, inst: Inst, before: Inst) -> Value {
    let copy = copy_before(func, inst, before);
    func.dfg.first_result(copy)
}

/// Copies `inst` to right before `before`, with its operands and its source location.
pub(crate) fn copy_before(func: &mut Function, inst: Inst, before: Inst) -> Inst {
    let copy = func.dfg.clone_inst(inst);
    func.layout.insert_inst(copy, before);
    if !func.srcloc(inst).is_default() {
        func.set_srcloc(copy, func.srcloc(inst));
    }
    copy
}

/// `DataFlowGraph::clone_inst` shares jump and exception tables; gives `copy` tables of its own.
fn own_tables(func: &mut Function, copy: Inst) {
    let dfg = &mut func.stencil.dfg;
    match &mut dfg.insts[copy] {
        InstructionData::BranchTable { .. } if fault!(SharedJumpTable) => {}
        InstructionData::BranchTable { table, .. } => {
            let old = &dfg.jump_tables[*table];
            let (default, entries) = (old.default_block(), old.as_slice().to_vec());
            let default = default.deep_clone(&mut dfg.value_lists);
            let entries: Vec<_> = entries.iter().map(|call| call.deep_clone(&mut dfg.value_lists)).collect();
            *table = dfg.jump_tables.push(JumpTableData::new(default, &entries));
        }
        InstructionData::TryCall { .. } if fault!(SharedExceptionTable) => {}
        InstructionData::TryCall { exception, .. } | InstructionData::TryCallIndirect { exception, .. } => {
            let own = dfg.exception_tables[*exception].deep_clone(&mut dfg.value_lists);
            *exception = dfg.exception_tables.push(own);
        }
        _ => {}
    }
}

/// Lets `copy` use the copies of values and enter the copies of blocks.
fn map_operands(func: &mut Function, copy: Inst, copies: &Copies) {
    func.dfg.map_inst_values(copy, |value| copies.value(value));
    let dfg = &mut func.dfg;
    for call in dfg.insts[copy].branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables) {
        let target = call.block(&dfg.value_lists);
        call.set_block(copies.block(target), &mut dfg.value_lists);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::cfg::edges::edges_from;
    use crate::edit::cfg::split_edges::retarget;
    use crate::testing::{block, context, verify};
    use cranelift_codegen::ir::{ExceptionTableItem, SourceLoc, UserStackMapEntry, types};

    /// Lets block0 enter the copy of block1, so that the copy is reachable, and verifies.
    fn enter_copy(ctx: &mut cranelift_codegen::Context, copies: &Copies) {
        let edge = edges_from(&ctx.func, block(0)).next().expect("block0 jumps");
        retarget(&mut ctx.func, edge, copies.block(block(1)));
        ctx.flowgraph();
        verify(ctx);
    }

    #[test]
    fn tables_are_not_shared() {
        let mut ctx = context(
            "function %f(i32) {
            block0(v0: i32):
                jump block1(v0)
            block1(v1: i32):
                br_table v1, block2(v1), [block3, block1(v1)]
            block2(v2: i32):
                return
            block3:
                return
            }",
        );
        let copies = clone_blocks(&mut ctx.func, &[block(1)]);
        let copy = copies.block(block(1));
        let edge = edges_from(&ctx.func, copy).nth(1).expect("an entry of the table");
        assert_eq!(edge.target(&ctx.func), block(3));
        retarget(&mut ctx.func, edge, block(2));
        let original: Vec<_> = edges_from(&ctx.func, block(1)).map(|edge| edge.target(&ctx.func)).collect();
        assert_eq!(original, [block(2), block(3), block(1)]);
        let copied: Vec<_> = edges_from(&ctx.func, copy).map(|edge| edge.target(&ctx.func)).collect();
        assert_eq!(copied, [block(2), block(2), copy], "an edge inside the set goes to the copy");
    }

    #[test]
    fn what_belongs_to_an_instruction_is_copied() {
        let mut ctx = context(
            "function %f(i64) -> i64 system_v {
                ss0 = explicit_slot 8
                sig0 = (i64) -> i64 system_v
                fn0 = %g(i64) -> i64 system_v
            block0(v0: i64):
                jump block1(v0)
            block1(v1: i64) cold:
                v2 = iadd v1, v0
                try_call fn0(v2), sig0, block2(ret0), [ tag1: block3(exn0), context v2, default: block3(exn0) ]
            block2(v3: i64):
                return v3
            block3(v4: i64):
                return v4
            }",
        );
        let func = &mut ctx.func;
        let call = func.layout.last_inst(block(1)).expect("the call");
        let slot = func.sized_stack_slots.keys().next().expect("ss0");
        func.set_srcloc(call, SourceLoc::new(7));
        func.dfg.append_user_stack_map_entry(call, UserStackMapEntry { ty: types::I64, slot, offset: 0 });
        let copies = clone_blocks(func, &[block(1)]);
        let copy = copies.block(block(1));
        let copied_call = func.layout.last_inst(copy).expect("the copied call");
        assert!(func.layout.is_cold(copy));
        assert_eq!(func.srcloc(copied_call), SourceLoc::new(7));
        assert_eq!(func.dfg.user_stack_map_entries(copied_call).map(<[_]>::len), Some(1));
        let (old, new) = (func.dfg.insts[call].exception_table(), func.dfg.insts[copied_call].exception_table());
        assert_ne!(old, new);
        let sum = func.dfg.inst_args(copied_call)[0];
        let table = &func.dfg.exception_tables[new.expect("a try_call has a table")];
        let is_context = |item| matches!(item, ExceptionTableItem::Context(value) if value == sum);
        assert!(table.items().any(is_context), "the context is the copied sum");
        enter_copy(&mut ctx, &copies);
    }

    #[test]
    fn nothing_is_invented_without_source_locations() {
        let mut ctx =
            context("function %f(i64) { block0(v0: i64): jump block1 block1: brif v0, block1, block2 block2: return }");
        let copies = clone_blocks(&mut ctx.func, &[block(1)]);
        assert!(ctx.func.srclocs.iter().all(|(_, srcloc)| srcloc.is_default()));
        enter_copy(&mut ctx, &copies);
    }
}
