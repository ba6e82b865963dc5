//! Copy a set of blocks with everything that belongs to an instruction.
//!
//! Copied are the instructions with their results, block parameters, coldness, jump tables and exception tables (one
//! per instruction, as Cranelift demands), source locations, debug tags, the stack maps of calls, and value labels. Edges
//! between copied blocks go to the copies; all others go where they went. A value defined in a copied block is replaced
//! by its copy in the copies; all others are used as they are.
//!
//! `cranelift_codegen::inline` is the model; unlike the inliner, this copies source locations.

use crate::analysis::edges::edges_of;
use crate::edit::funnel::retarget;
use crate::edit::labels::copy_labels;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, JumpTableData, Value};
use std::collections::HashMap;

/// Which block and which value stands for which after a copy.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    blocks: HashMap<Block, Block>,
    values: HashMap<Value, Value>,
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

/// Copies `blocks`, which must not hold the entry block. The copies stand right before the first of them.
///
/// Values must be defined before they are used in the order of `blocks`, except for block parameters, which may be used
/// anywhere: dominance order, and thus any reverse postorder, has this property.
pub(crate) fn clone_blocks(func: &mut Function, blocks: &[Block]) -> Copies {
    let mut copies = Copies::default();
    for &block in blocks {
        let copy = func.dfg.make_block();
        func.layout.insert_block(copy, blocks[0]);
        if func.layout.is_cold(block) {
            func.layout.set_cold(copy);
        }
        copies.blocks.insert(block, copy);
        for param in func.dfg.block_params(block).to_vec() {
            let ty = func.dfg.value_type(param);
            let new = func.dfg.append_block_param(copy, ty);
            copies.values.insert(param, new);
            copy_labels(func, param, new);
        }
    }
    for &block in blocks {
        let insts: Vec<_> = func.layout.block_insts(block).collect();
        for inst in insts {
            let copy = clone_inst(func, inst, &mut copies);
            func.layout.append_inst(copy, copies.block(block));
        }
    }
    copies
}

/// Copies one instruction, without a place in the layout, and records its results.
fn clone_inst(func: &mut Function, inst: Inst, copies: &mut Copies) -> Inst {
    let copy = func.dfg.clone_inst(inst);
    own_tables(func, copy);
    map_operands(func, copy, copies);

    if !func.srcloc(inst).is_default() {
        func.set_srcloc(copy, func.srcloc(inst));
    }
    func.debug_tags.clone_tags(inst, copy);
    let stack_map = func.dfg.user_stack_map_entries(inst).map(<[_]>::to_vec);
    func.dfg.append_user_stack_map_entries(copy, stack_map.unwrap_or_default());
    let results: Vec<_> =
        func.dfg.inst_results(inst).iter().copied().zip(func.dfg.inst_results(copy).iter().copied()).collect();
    for (old, new) in results {
        copies.values.insert(old, new);
        copy_labels(func, old, new);
    }
    copy
}

/// `DataFlowGraph::clone_inst` shares jump and exception tables; gives `copy` tables of its own.
fn own_tables(func: &mut Function, copy: Inst) {
    let dfg = &mut func.stencil.dfg;
    match &mut dfg.insts[copy] {
        InstructionData::BranchTable { table, .. } => {
            let old = &dfg.jump_tables[*table];
            let (default, entries) = (old.default_block(), old.as_slice().to_vec());
            let default = default.deep_clone(&mut dfg.value_lists);
            let entries: Vec<_> = entries.iter().map(|call| call.deep_clone(&mut dfg.value_lists)).collect();
            *table = dfg.jump_tables.push(JumpTableData::new(default, &entries));
        }
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
    for edge in edges_of(func, copy) {
        let target = edge.target(func);
        retarget(func, edge, copies.block(target));
    }
}
