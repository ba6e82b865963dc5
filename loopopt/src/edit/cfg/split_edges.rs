//! Send several edges with one target through a new block.
//!
//! ```text
//!   a    b    c              a    b    c
//!    \   |   /                \   |    |
//!     \  |  /         ──►     funnel   |
//!      target                     \    |
//!                                  target
//! ```
//!
//! The new block takes the parameters of the target and passes them as block arguments. This one edit splits an edge, makes a
//! preheader, merges latches and makes an exit block that belongs to one loop alone. Edges of `br_table` and `try_call`,
//! with arguments that only a `try_call` can pass, need nothing special: the arguments stay on the edge.

use crate::analysis::cfg::edges::Edge;
use crate::edit::inst::labels::copy_labels;
use crate::edit::inst::rename::Replaced;
use cranelift_codegen::ir::{Block, BlockArg, BlockCall, Function, InstructionData, Opcode, Value, ValueDef};

/// Makes the funnel before `target` for `edges`, all of which enter `target`. It is cold if nothing hot passes it.
pub(crate) fn funnel(func: &mut Function, edges: &[Edge], target: Block) -> Block {
    let block = func.dfg.make_block();
    func.layout.insert_block(block, target);
    let cold = func.layout.is_cold(target) || edges.iter().all(|edge| func.layout.is_cold(edge.source(func)));
    if cold {
        func.layout.set_cold(block);
    }

    for index in 0..func.dfg.num_block_params(target) {
        let param = func.dfg.block_params(target)[index];
        let ty = func.dfg.value_type(param);
        let through = func.dfg.append_block_param(block, ty);
        copy_labels(func, param, through);
    }
    let dfg = &mut func.dfg;
    let params = dfg.blocks[block].params(&dfg.value_lists).to_vec();
    let destination = BlockCall::new(target, params.into_iter().map(BlockArg::Value), &mut dfg.value_lists);
    let jump = dfg.make_inst(InstructionData::Jump { opcode: Opcode::Jump, destination });
    func.layout.append_inst(jump, block);
    for &edge in edges {
        retarget(func, edge, block);
    }
    block
}

/// Gives an edge that passes values only a block of its own, which passes them. It is placed by the order of the blocks.
pub(crate) fn split(func: &mut Function, edge: Edge) -> Block {
    let (target, args) = (edge.target(func), edge.args(func).collect::<Vec<_>>());
    let block = func.dfg.make_block();
    func.layout.insert_block(block, target);
    if func.layout.is_cold(target) {
        func.layout.set_cold(block);
    }
    let dfg = &mut func.dfg;
    let destination = BlockCall::new(target, args, &mut dfg.value_lists);
    let jump = dfg.make_inst(InstructionData::Jump { opcode: Opcode::Jump, destination });
    func.layout.append_inst(jump, block);
    set_edge(func, edge, block, &[]);
    block
}

/// Lets `edge` enter `target` instead, with the arguments that it has.
pub(crate) fn retarget(func: &mut Function, edge: Edge, target: Block) {
    let dfg = &mut func.dfg;
    let calls = dfg.insts[edge.branch].branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables);
    calls[edge.slot].set_block(target, &mut dfg.value_lists);
}

/// Passes one more argument along `edge`.
pub(crate) fn append_arg(func: &mut Function, edge: Edge, arg: Value) {
    let dfg = &mut func.dfg;
    let calls = dfg.insts[edge.branch].branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables);
    calls[edge.slot].append_argument(arg, &mut dfg.value_lists);
}

/// Lets the edge `to` enter the target of `from`, with the same arguments: for a fault, nothing that is right needs it.
pub(crate) fn copy_edge(func: &mut Function, from: Edge, to: Edge) {
    let target = from.target(func);
    let args: Vec<_> = from.args(func).collect();
    set_edge(func, to, target, &args);
}

pub(crate) fn set_edge(func: &mut Function, edge: Edge, target: Block, args: &[BlockArg]) {
    let dfg = &mut func.dfg;
    let calls = dfg.insts[edge.branch].branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables);
    calls[edge.slot] = BlockCall::new(target, args.iter().copied(), &mut dfg.value_lists);
}

/// Undoes a funnel that `edge` alone enters: lets the edge enter the target of the jump that `block` consists of, and
/// removes the block. What the jump passes, once `replaced`, dominates the block, and so the source of the edge.
pub(crate) fn skip_block(func: &mut Function, edge: Edge, block: Block, replaced: &Replaced) {
    let jump = func.layout.last_inst(block).expect("a funnel ends in a jump");
    let onwards = Edge { branch: jump, slot: 0 };
    let target = onwards.target(func);
    let given: Vec<_> = edge.args(func).collect();
    let args: Vec<_> = onwards
        .args(func)
        .map(|arg| match arg.as_value().map(|value| func.dfg.value_def(replaced.resolve(value))) {
            Some(ValueDef::Param(home, position)) if home == block => given[position],
            _ => arg,
        })
        .collect();
    set_edge(func, edge, target, &args);
    func.layout.remove_block_and_insts(block);
}
