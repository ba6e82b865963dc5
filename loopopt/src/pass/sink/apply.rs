//! Moves instructions to their places.

use super::engine::Move;
use super::places::{Kind, Places};
use crate::analysis::cfg::edges::edges_into;
use crate::edit::cfg::unreachable::forget_removed_insts;
use crate::edit::inst::clone::repeat_before;
use crate::edit::inst::labels::copy_labels;
use crate::edit::inst::rename::rename_uses;
use crate::edit::ssa::replace::{Replacement, replace_params};
use crate::fault::fault;
use cranelift_codegen::ir::{Block, Function, Inst, Value};
use cranelift_codegen::{Context, FxHashMap};
use std::collections::BTreeMap;

/// The value that stands for another at a place.
type Copies = FxHashMap<(usize, Value), Value>;

/// Makes all `moves`, which are given users before operands.
pub(super) fn apply(ctx: &mut Context, places: &Places, moves: &[Move]) {
    let func = &mut ctx.func;
    let starts: Vec<_> = places.list.iter().map(|place| start(func, place.block)).collect();
    let mut copies = Copies::default();
    for Move { inst, places, .. } in moves.iter().rev() {
        let value = func.dfg.first_result(*inst);
        for &number in places {
            let copy = repeat_before(func, *inst, starts[number]);
            copy_labels(func, value, copy);
            let def = func.dfg.value_def(copy).inst().expect("it is a copy of an instruction");
            if !fault!(ForgottenOperand) {
                use_copies(func, def, number, &copies);
            }
            copies.insert((number, value), copy);
        }
    }
    match places.kind {
        Kind::Exits => replace_exit_params(ctx, places, moves, &copies),
        Kind::Cold => use_copies_in_blocks(func, places, &copies),
    }
    for step in moves {
        ctx.func.layout.remove_inst(step.inst);
    }
    forget_removed_insts(&mut ctx.func);
    ctx.func.dfg.resolve_all_aliases();
}

fn start(func: &Function, block: Block) -> Inst {
    func.layout.first_inst(block).expect("a block ends in a terminator")
}

/// Lets an instruction at a place use what is computed there.
fn use_copies(func: &mut Function, inst: Inst, number: usize, copies: &Copies) {
    rename_uses(func, inst, |value| copies.get(&(number, value)).copied().unwrap_or(value));
}

fn use_copies_in_blocks(func: &mut Function, places: &Places, copies: &Copies) {
    let numbers: std::collections::BTreeSet<_> = copies.keys().map(|&(number, _)| number).collect();
    for number in numbers {
        let insts: Vec<_> = func.layout.block_insts(places.list[number].block).collect();
        for inst in insts {
            use_copies(func, inst, number, copies);
        }
    }
}

/// Removes the parameters by which the values left their loops, and those that nothing uses.
fn replace_exit_params(ctx: &mut Context, places: &Places, moves: &[Move], copies: &Copies) {
    let mut by_block = BTreeMap::<Block, BTreeMap<usize, Replacement>>::new();
    for &(number, index, value) in &places.params {
        if let Some(&copy) = copies.get(&(number, value)) {
            by_block.entry(places.list[number].block).or_default().insert(index, Replacement::By(copy));
        }
    }
    for step in moves {
        let value = ctx.func.dfg.first_result(step.inst);
        for &(block, index) in places.dead.get(&value).into_iter().flatten() {
            by_block.entry(block).or_default().insert(index, Replacement::Drop);
        }
    }
    for (block, replacements) in by_block {
        let edges: Vec<_> = edges_into(&ctx.func, &ctx.cfg, block).collect();
        let count = ctx.func.dfg.num_block_params(block);
        let by: Vec<_> = (0..count).map(|index| replacements.get(&index).copied().unwrap_or_default()).collect();
        replace_params(&mut ctx.func, block, &edges, &by);
    }
}
