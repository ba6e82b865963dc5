//! Loops that exchange neighbours where these are out of order, as a bubble sort does.
//!
//! ```text
//! header(v1: i64):
//!     v2 = load v1
//!     v3 = load v1+4                  the next iteration loads it too
//!     v4 = icmp sgt v2, v3
//!     brif v4, swap, next
//! swap:
//!     store v3, v1                    what the iteration before has compared
//!     store v2, v1+4
//! ```
//!
//! The outer loop goes through the same numbers again, each of them moved by one iteration or not. So the branch takes mostly the same edge as in the pass before, an
//! iteration earlier, and a processor that remembers which edges it took before, by a long history, learns that. If four iterations have a branch each, the one that took this edge in the pass before
//! was another one of the four. A bubble sort of 200 numbers takes 1.06 of Cranelift's time if it is unrolled by four, and 0.82 if it is not; where such numbers are gone through once,
//! 0.63 and 0.69. Other branches by data lose nothing: a sum of the floats above a limit, and a store of what is above one, with numbers by chance, take 0.76 if they are unrolled,
//! and 1.01 if not.

use super::judge::usual_blocks;
use super::why::Decline;
use crate::analysis::cfg::edges::edges_and_targets;
use crate::analysis::cfg::loops::Loop;
use crate::analysis::inst::number::signed;
use crate::analysis::memory::alias::Access;
use crate::analysis::memory::spectre_guard::Guard;
use crate::analysis::scev::backward_slice::BackwardSlice;
use crate::analysis::scev::linear_expr::Sum;
use crate::analysis::scev::recurrence::Recurrences;
use crate::analysis::scev::view::View;
use cranelift_codegen::ir::{Block, Inst};

/// How many iterations before it has loaded what is stored. 4: as many as are unrolled.
const MAX_APART: i64 = 4;

/// Whether the loop may pay in spite of its branches. Linear in its size, which is small, but for the stores that are not in each iteration, times what branches load.
pub(super) fn judge(view: View<'_>, lp: Loop, recurrences: &Recurrences) -> Result<(), Decline> {
    let (func, forest) = (view.func(), view.forest);
    let is_skipped = |block: &Block| !forest.is_in_each_iteration(func, &view.ctx.domtree, lp, *block);
    let insts = usual_blocks(view, lp).filter(is_skipped).flat_map(|block| func.layout.block_insts(block));
    let stores = insts.filter(|&inst| func.dfg.insts[inst].opcode().can_store());
    let stores: Vec<_> = stores.filter_map(|inst| Some((inst, place(view, inst)?))).collect();
    if stores.is_empty() {
        return Ok(());
    }
    let stays = |target: Block| {
        forest.contains(lp, target) && target != forest.data(lp).header && !func.is_effectively_cold(target)
    };
    for block in usual_blocks(view, lp).filter(|&block| edges_and_targets(func, block).all(|(_, target)| stays(target)))
    {
        let Some(condition) = func.layout.last_inst(block).and_then(|last| func.dfg.inst_args(last).first()) else {
            continue;
        };
        let Some(slice) = BackwardSlice::of(view, lp, *condition) else { continue };
        for load in slice.loads().iter().filter_map(|&load| place(view, load)) {
            let Some(stride) = recurrences.stride(view, &load) else { continue };
            let was_loaded = |(_, store): &&(Inst, Sum)| {
                let distance = load.minus(store).and_then(|distance| distance.as_constant());
                let distance = distance.map_or(0, |distance| signed(distance, load.bits()));
                distance.wrapping_rem(stride) == 0 && (1..=MAX_APART).contains(&distance.wrapping_div(stride))
            };
            if let Some(&(store, _)) = stores.iter().find(was_loaded) {
                return Err(Decline::Sorts { store });
            }
        }
    }
    Ok(())
}

/// The address of an access, as if a guard let it pass.
fn place(view: View<'_>, inst: Inst) -> Option<Sum> {
    let func = view.func();
    let Access { operand, address, .. } = Access::of(func, inst)?;
    let Some(guard) = Guard::that_gives(func, operand) else { return Some(address) };
    Some(view.sum(guard.gives)?.offset(func.dfg.insts[inst].load_store_offset()?.into()))
}
