//! Widening of index arithmetic: addresses that are computed in 32 bits and extended are computed in 64 bits.
//!
//! ```text
//!     v4 = imul v3, 768                              v4 = imul v3, 768
//!     jump block1(0)                                 v20 = uextend.i64 v3
//! block1(v5: i32):                                   v21 = imul v20, 768
//!     v6 = ishl v5, 3                                v22 = iadd v1, v21
//!     v7 = iadd v4, v6                               jump block1(0)
//!     v8 = iadd v7, 0x22000             ──►      block1(v23: i64):
//!     v9 = uextend.i64 v8                            v24 = ishl v23, 3
//!     v10 = iadd v1, v9                              v25 = iadd v22, v24
//!     v11 = load.f64 v10                             v11 = load.f64 v25+0x22000
//!     v12 = iadd v5, 1                               v26 = iadd v23, 1
//!                                                    v12 = ireduce.i32 v26
//!     v13 = icmp ult v12, 96                         v13 = icmp ult v12, 96
//!     brif v13, block1(v12), block2                  brif v13, block1(v26), block2
//! ```
//!
//! A front end with 32-bit indices, above all one of WebAssembly, adds up in 32 bits what a 64-bit machine would add up in an
//! addressing mode. If the sum does not wrap, it is the sum of its extended parts: what is loop-invariant is added to the base
//! before the loop, constants become the offset of the access, and a counter counts in 64 bits from the start, so that nothing has
//! to be extended. One instruction for each access is removed, and often the register of a part that is loop-invariant.
//!
//! # Needs
//!
//! Canonical form.
//!
//! # Legal when
//!
//! (L1) the extended sum of exact integers stays within the narrow type ([`crate::analysis::facts::nowrap`]): then the address is the same
//! number. (L2) A counter is replaced by one of 64 bits if it never wraps. The low half of that is the counter in any case, which is what all
//! its other uses read. (L3) The embedder does not say that it is the extension that confines a processor which mispredicts what (L1) rests on.
//!
//! Numbers that an iteration loads for the next one, such as pointers of a list, are loaded extended ([`loaded`]): the sample `linked-list-32` takes 0.81 of Cranelift's time.
//!
//! The access itself stays where it is, and traps if it did. It must stay there from then on, as the sum may wrap elsewhere: so it is not
//! `can_move` any more.
//!
//! # Pays when
//!
//! (P1) fewer instructions remain in the loop, if an addressing mode is taken to be `base + index * {1, 2, 4, 8} + offset`, and an
//! `ireduce` or the extension of what an instruction of 32 bits computes to be free; (P2) there is a register for each base that is
//! new, those that are no longer needed in the loop counted; (P3) in a loop with a cold call, such as that of a poll, there is one that the call
//! preserves, or several instructions are removed for each base. The accesses to one base and counter share it, whatever
//! their offsets are.
//!
//! # Changes
//!
//! Instructions, and parameters of headers. Which accesses are disjoint for what they extend is noted ([`disjoint`](crate::analysis::memory::disjoint)).
//!
//! # Not done
//!
//! Sums that may wrap are tested before the loop by [`version`](crate::pass::version), if at all. Pointers that are counted up without a bound that is known stay 32-bit counters.
//! Targets with 32-bit addresses have nothing to win.
//!
//! # References
//!
//! LLVM `IndVarSimplify` (widening of induction variables) and `SeparateConstOffsetFromGEP`; HotSpot's `ConvI2L` nodes with a range;
//! LLVM #123550, #126012 and #215758 for what goes wrong.

mod apply;
mod gain;
mod loaded;
mod plan;
mod why;

use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::facts::known::Place;
use crate::analysis::facts::nowrap::Extents;
use crate::analysis::memory::alias::Access;
use crate::analysis::memory::disjoint::Disjoint;
use crate::analysis::scev::extent::are_disjoint_within;
use crate::analysis::scev::view::View;
use crate::change::Change;
use crate::claim::Claim;
use crate::pass::licm::MAX_HEIGHT;
use crate::pass::{Pass, PassCx};
use apply::apply;
use cranelift_codegen::ir::{Block, Function, Opcode, types};
use cranelift_codegen::{CodegenResult, Context, FxHashSet};
use plan::Plan;
use std::rc::Rc;
use why::Decline;

/// The name of this pass.
pub(crate) const NAME: &str = "widen_indices";

/// The pass.
pub(crate) const PASS: Pass =
    Pass { name: NAME, run, reasons: &[Decline::REASONS], claims: &[Claim::SamePlace], ..Pass::OPTIONAL };

/// Widens what the accesses of all loops need.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    if cx.isa.pointer_bits() != 64 {
        return Ok(Change::Nothing);
    }
    let forest = cx.forest(ctx);
    let Planned { plans, extending } = plan(ctx, cx, &forest);
    if !plans.is_empty() {
        apply(ctx, &forest, &plans);
    }
    let is_loaded = loaded::run(ctx, cx, &forest, &extending);
    Ok(if plans.is_empty() && !is_loaded { Change::Nothing } else { Change::Insts })
}

/// What is to be done.
struct Planned {
    plans: Vec<Plan>,
    /// The loops in which something is extended that may be removed, and whether no address of these could be added up otherwise.
    extending: Vec<(Loop, bool)>,
}

/// What is to be done to which loop.
fn plan(ctx: &Context, cx: &mut PassCx<'_>, forest: &LoopForest) -> Planned {
    let view = View { ctx, forest };
    let mut extents = None;
    let (mut plans, mut extending) = (Vec::new(), Vec::new());
    let heights = forest.heights();
    let confines = cx.options.has_confining(&ctx.func);
    for lp in forest.loops() {
        if !cx.marks.has_full_effort_inside(forest, lp) {
            continue;
        }
        let header = forest.data(lp).header;
        let found = match has_extension(&ctx.func, forest.own_blocks(lp)) {
            false => Err(Decline::NothingExtended),
            true if confines => Err(Decline::Confined),
            true if heights[lp] > MAX_HEIGHT => Err(Decline::TooDeep(MAX_HEIGHT)),
            true => {
                let found = Plan::find(view, lp, extents.get_or_insert_with(|| Extents::new(view)), cx);
                extending.push((lp, matches!(found, Err(Decline::NothingExtended | Decline::NothingAdded))));
                found
            }
        };
        match found {
            Ok(plan) if cx.fuel.take() => {
                cx.fired(&ctx.func, &PASS, header, plan.describe());
                plans.push(plan);
            }
            Ok(_) => cx.declined(&ctx.func, NAME, header, &Decline::Withheld),
            Err(why) => cx.declined(&ctx.func, NAME, header, &why),
        }
    }
    // Once nothing is asked of the counters any more: without questions, less is found out about them, and remembered.
    if let Some(extents) = extents.as_mut() {
        let disjoint = Rc::make_mut(&mut cx.disjoint);
        plans.iter().for_each(|plan| note_disjoint(view, plan.lp, extents, disjoint));
    }
    Planned { plans, extending }
}

/// Accesses to cells of a loop, times its other accesses, that are compared. 1,024: 32 of each, more cells than there are registers for.
const MAX_TOLD: usize = 1_024;

/// Remembers which cells of `lp` other accesses never touch, which is seen no more once what they extend is a number of 64 bits.
fn note_disjoint<'a>(view: View<'a>, lp: Loop, extents: &mut Extents<'a>, disjoint: &mut Disjoint) {
    let func = view.func();
    let insts = view.forest.blocks(lp).iter().flat_map(|&block| func.layout.block_insts(block));
    let accesses = insts.filter_map(|inst| Access::of(func, inst)).filter(|access| access.address.ty() == types::I64);
    let (mut cells, others): (Vec<_>, Vec<_>) = accesses.partition(|access| view.is_invariant(lp, &access.address));
    // What is only loaded has left the loop.
    let stores = cells.iter().filter(|cell| cell.stored.is_some());
    let stored: FxHashSet<_> = stores.map(|cell| cell.address.clone()).collect();
    cells.retain(|cell| stored.contains(&cell.address));
    if cells.len().saturating_mul(others.len()) > MAX_TOLD {
        return;
    }
    for (cell, other) in cells.iter().flat_map(|cell| others.iter().map(move |other| (cell, other))) {
        let far = other.address.minus(&cell.address).filter(|_| !cell.is_kept_apart(other));
        let bounds = far.and_then(|far| extents.everywhere(&far, Place::Before(other.inst)));
        if bounds.is_some_and(|bounds| are_disjoint_within(bounds, cell.address.bits(), (other.size, cell.size))) {
            disjoint.add(cell.inst, other.inst);
        }
    }
}

/// Whether a number is extended to 64 bits in `blocks`.
fn has_extension(func: &Function, blocks: impl Iterator<Item = Block>) -> bool {
    let mut insts = blocks.flat_map(|block| func.layout.block_insts(block));
    insts.any(|inst| {
        let extends = matches!(func.dfg.insts[inst].opcode(), Opcode::Uextend | Opcode::Sextend);
        extends && func.dfg.value_type(func.dfg.first_result(inst)) == types::I64
    })
}
