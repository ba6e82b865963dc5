//! When Cranelift 0.135.8 can be trusted to run its egraph pass on what passes have made.
//!
//! The first run may have met none of this, because edges or blocks stood between.

use crate::analysis::loops::LoopForest;
use crate::analysis::memory::Access;
use crate::pass::PassCx;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, types};
use cranelift_codegen::post_dominator_tree::PostDominatorTree;
use cranelift_codegen::{Context, FxHashMap};

/// Whether it is safe. Not so
///
/// * if loads without an alias region and stores with one are in the function: the pass takes them for independent, and
///   forwards what was loaded before the store (wasmtime#14323, undecided there);
/// * if there is a `select` of 128 bits: with its comparison, the pass makes a minimum or maximum of it, which x86-64 cannot
///   lower;
/// * if several stores of 128-bit integers may trap: one that the next one makes dead goes, but the machine stores halves,
///   and of the store that traps now, the first half is there to see;
/// * if a store in a loop is dead but for the next iteration: see [`forgets_next_iteration`].
pub(super) fn is_safe(ctx: &Context, cx: &mut PassCx<'_>) -> bool {
    let func = &ctx.func;
    let (mut bare_load, mut tagged_store, mut wide_select, mut torn_stores) = (false, false, false, 0);
    for block in &func.layout {
        for inst in func.layout.block_insts(block) {
            let data = &func.dfg.insts[inst];
            let is_tagged = || data.memflags().is_some_and(|flags| func.dfg.mem_flags[flags].alias_region().is_some());
            bare_load |= data.opcode().can_load() && !is_tagged();
            tagged_store |= data.opcode().can_store() && is_tagged();
            torn_stores += usize::from(is_torn_store(func, inst));
            wide_select |= data.opcode() == Opcode::Select && func.dfg.ctrl_typevar(inst) == types::I128;
        }
    }
    let goes_wrong = (bare_load && tagged_store) || wide_select || torn_stores > 1;
    !goes_wrong && !forgets_next_iteration(ctx, cx.forest(ctx))
}

/// Whether `inst` stores two halves, and may trap between them.
fn is_torn_store(func: &Function, inst: Inst) -> bool {
    match func.dfg.insts[inst] {
        InstructionData::Store { args: [stored, _], flags, .. } => {
            func.dfg.value_type(stored) == types::I128 && !func.dfg.mem_flags[flags].notrap()
        }
        _ => false,
    }
}

/// Whether the pass may remove a store that the next iteration reads.
///
/// ```text
/// header:
///     v1 = load.i64 v0      reads what the iteration before has stored
///     store v2, v0          is taken for dead:
///     brif v3, exit, header
/// exit:
///     store v4, v0          ... every way out of the function leads here
/// ```
///
/// A store is removed if one to the same bytes post-dominates it and nothing on the way reads it; the way around the loop is
/// not looked at. It is safe if the later store is passed on each way around each loop of the first.
fn forgets_next_iteration(ctx: &Context, forest: &LoopForest) -> bool {
    let mut post_domtree = None;
    stores_by_place(&ctx.func, forest).values().any(|blocks| {
        blocks.iter().any(|&dead| {
            blocks.iter().any(|&later| {
                ctx.domtree.block_dominates(dead, later)
                    && misses_a_way_around(ctx, forest, dead, later)
                    && post_domtree
                        .get_or_insert_with(|| PostDominatorTree::with_cfg(&ctx.cfg))
                        .block_post_dominates(later, dead)
            })
        })
    })
}

/// The blocks that store to each place that is stored to in more than one block, one of which is in a loop.
fn stores_by_place(func: &Function, forest: &LoopForest) -> FxHashMap<Place, Vec<Block>> {
    let mut places = FxHashMap::<Place, Vec<Block>>::default();
    for block in &func.layout {
        for inst in func.layout.block_insts(block).filter(|&inst| func.dfg.insts[inst].opcode().can_store()) {
            if let Some(store) = Access::of(func, inst) {
                let blocks = places.entry((store.address, store.size)).or_default();
                if blocks.last() != Some(&block) {
                    blocks.push(block);
                }
            }
        }
    }
    places.retain(|_, blocks| blocks.len() > 1 && blocks.iter().any(|&block| forest.innermost(block).is_some()));
    places
}

/// An address and a size.
type Place = (crate::analysis::address::Sum, u32);

/// Whether there is a way from `dead` around one of its loops that does not pass `later`.
fn misses_a_way_around(ctx: &Context, forest: &LoopForest, dead: Block, later: Block) -> bool {
    let mut lp = forest.innermost(dead);
    while let Some(current) = lp {
        let back_edges = &forest.data(current).back_edges;
        if !back_edges.iter().all(|edge| ctx.domtree.block_dominates(later, edge.source(&ctx.func))) {
            return true;
        }
        lp = forest.data(current).parent;
    }
    false
}
