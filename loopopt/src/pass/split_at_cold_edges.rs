//! Live-range splitting between loops and cold code that calls.
//!
//! ```text
//! fast:  ◄───┐        slow cold:  ◄──┐        fast:  ◄───┐        slow cold:  ◄──┐
//!     …      │            call f()   │            …      │            call f()   │
//!     brif v1, fast       …          │            brif v1, fast       …          │
//!       else join(v2)     brif v4, slow    ──►      else join(v2)     v5 = bitcast.i64 v3
//!                           else join(v3)                             v6 = bitcast.f64 v5
//! join(v7: f64):                                                      brif v4, slow else join(v6)
//! ```
//!
//! Cranelift's allocator (regalloc2 0.15) gives one place to values that are passed to each other as block arguments, as far as it can. If one of them lives
//! across a call and gets no preserved register, as no float and no vector does, all of them are split at their uses: the sum of a fast loop is stored
//! and loaded in each iteration, because the slow loop calls that leaves to the same block. Two values of different classes of registers cannot have
//! one place. So what is cast to the other class and back, in the cold code, has a place of its own. What the cold code needs of the loop that it is entered
//! from is cast where the cold code begins, and cast back where it is used:
//!
//! ```text
//! fast:  ◄───┐                                 fast:  ◄───┐
//!     v2 = … │                                     v2 = … │
//!     brif v1, fast, slow                          brif v1, fast, slow
//! slow cold:                         ──►       slow cold:
//!     call f()                                     v5 = bitcast.i64 v2
//!     v3 = fadd v2, v4                             call f()
//!                                                  v6 = bitcast.f64 v5
//!                                                  v3 = fadd v6, v4
//! ```
//!
//! So is what a cold call gets that no path comes back from, `panic(index, length)`: arguments have registers of their own, and the allocator takes these for the
//! values in the loop, which it moves there and back in each iteration.
//!
//! # Needs
//!
//! Nothing. Comes late: a value that is cast and cast back would be removed by passes that look for such.
//!
//! # Legal when
//!
//! Always: a value that is cast and cast back is the value.
//!
//! # Pays when
//!
//! (P1) The cold code calls. (P2) A float or a vector is passed from there to a loop that is not cold, or to where one is left, or is used there and comes
//! from such a loop: none is in a register across a call. (P3) Integers are arguments of a call, after which the function ends, in cold code that such a loop is left to.
//!
//! # Changes
//!
//! Instructions in cold code.
//!
//! # Not done
//!
//! Integers that live across calls: some registers for them are preserved. `save_at_cold_calls` saves those of calls that come back.
//!
//! # References
//!
//! Bundles: regalloc2's `doc/ION.md`, "Bundle Merging". Live-range splitting where regions meet: LLVM's `SplitKit`.

use crate::analysis::cfg::edges::{Edge, edges_from};
use crate::analysis::cfg::jumps::jump_target;
use crate::analysis::cfg::loops::{Loop, LoopForest, def_block};
use crate::analysis::inst::effects::{calls, is_constant, is_constant_value};
use crate::change::Change;
use crate::edit::at;
use crate::edit::cfg::split_edges::set_edge;
use crate::edit::materialize::other_class::{Saved, can_save, is_cast, is_float_class};
use crate::pass::{Pass, PassCx};
use crate::refusal::refusals;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, Value, ValueDef};
use cranelift_codegen::{CodegenResult, Context, FxHashSet};
use std::collections::BTreeMap;

/// The name of this pass.
pub(crate) const NAME: &str = "split_at_cold_edges";

/// The pass.
pub(crate) const PASS: Pass =
    Pass { name: NAME, run, reasons: &[Decline::REASONS], claims: &[], pays_alone: false, ..Pass::OPTIONAL };

/// Splits what all loops pass to and get from cold code that calls. Linear in the size of the function.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let calling = cold_code_that_calls(ctx);
    if calling.is_empty() {
        return Ok(Change::Nothing);
    }
    let forest = cx.forest(ctx);
    let needed = Needed::find(ctx, &forest, &calling);
    let passed = Passed::find(&ctx.func, &forest, &calling, &needed);
    let mut change = Change::Nothing;
    for lp in forest.loops() {
        let header = forest.data(lp).header;
        let (own, needed) = (&passed.0[lp], &needed.of[lp]);
        match own.len() + needed.len() {
            _ if ctx.func.is_effectively_cold(header) => cx.declined(&ctx.func, NAME, header, &Decline::ColdLoop),
            0 => cx.declined(&ctx.func, NAME, header, &Decline::NothingPassed),
            _ if !cx.fuel.take() => cx.declined(&ctx.func, NAME, header, &Decline::Withheld),
            count => {
                let what = if count == 1 { "value".into() } else { format!("{count} values") };
                let message = format!("{what} of its own where it meets cold code that calls");
                cx.fired(&ctx.func, &PASS, header, message);
                own.iter().for_each(|&(edge, place)| split(&mut ctx.func, edge, place));
                needed.iter().for_each(|((entry, value), uses)| cast_from(&mut ctx.func, *entry, *value, uses));
                change = Change::Insts;
            }
        }
    }
    Ok(change)
}

/// For each loop what cold code needs of it: each value with the block where the cold code begins, and the instructions that use it from there on.
#[derive(Default)]
struct Needed {
    of: SecondaryMap<Loop, BTreeMap<(Block, Value), Vec<Inst>>>,
    uses: FxHashSet<(Inst, Value)>,
}

impl Needed {
    fn find(ctx: &Context, forest: &LoopForest, calling: &EntitySet<Block>) -> Self {
        let Context { func, domtree, cfg, .. } = ctx;
        let mut needed = Self::default();
        // The cold block that dominates each of them. A block comes after its dominators.
        let mut entries = SecondaryMap::<Block, Option<Block>>::new();
        for &block in domtree.cfg_rpo().filter(|&&block| calling.contains(block)) {
            let above = domtree.idom(block).and_then(|above| entries[above]);
            let entry = *entries[block].insert(above.unwrap_or(block));
            let hot_loop = |block: Block| forest.innermost(block).filter(|_| !func.layout.is_cold(block));
            let enters = || cfg.pred_iter(entry).find_map(|pred| hot_loop(pred.block));
            let never_returns = cfg.succ_iter(block).next().is_none();
            for inst in func.layout.block_insts(block).filter(|&inst| !is_cast(func, inst)) {
                let is_last_call = never_returns && func.dfg.insts[inst].opcode().is_call();
                for value in func.dfg.inst_values(inst) {
                    let home = def_block(func, value);
                    let is_param = matches!(func.dfg.value_def(value), ValueDef::Param(..));
                    let found = match home {
                        Some(home) if is_last_call && is_saved_argument(func, value) => {
                            let is_from_outside = home != entry && domtree.block_dominates(home, entry);
                            let place = if is_from_outside { Some(entry) } else { Some(home).filter(|_| is_param) };
                            enters().zip(place)
                        }
                        _ if !is_split(func, value) => None,
                        Some(home) if is_param && home == entry => enters().zip(Some(entry)),
                        _ => home.and_then(hot_loop).zip(Some(entry)),
                    };
                    if let Some((lp, place)) = found.filter(|_| needed.uses.insert((inst, value))) {
                        needed.of[lp].entry((place, value)).or_default().push(inst);
                    }
                }
            }
        }
        needed
    }
}

/// Blocks in a row that are gone through once a loop is left: its own exit block, the end of a version, and where versions meet.
const MAX_ONWARDS: usize = 4;

/// For each loop the arguments, by edge and place, that cold code passes to it, or to where it is left.
struct Passed(SecondaryMap<Loop, Vec<(Edge, usize)>>);

impl Passed {
    /// All but those that `needed` has.
    fn find(func: &Function, forest: &LoopForest, calling: &EntitySet<Block>, needed: &Needed) -> Self {
        let mut left_to = SecondaryMap::<Block, Option<Loop>>::new();
        for lp in forest.loops().filter(|&lp| !func.is_effectively_cold(forest.data(lp).header)) {
            for exit in &forest.data(lp).exits {
                // The exit block may be this loop's own, before the block where paths meet.
                let onwards = std::iter::successors(Some(exit.target(func)), |&block| jump_target(func, block));
                let outside = onwards.take(MAX_ONWARDS).take_while(|&block| !forest.contains(lp, block));
                outside.for_each(|block| left_to[block] = Some(lp));
            }
        }
        let mut passed = SecondaryMap::<Loop, Vec<(Edge, usize)>>::new();
        let blocks = func.layout.blocks().filter(|&block| calling.contains(block));
        for edge in blocks.flat_map(|block| edges_from(func, block)) {
            let target = edge.target(func);
            let Some(lp) = forest.innermost(target).or(left_to[target]) else { continue };
            if func.layout.is_cold(target) {
                continue;
            }
            for (place, arg) in edge.args(func).enumerate() {
                let is_own = |value| is_split(func, value) && !needed.uses.contains(&(edge.branch, value));
                if arg.as_value().is_some_and(is_own) {
                    passed[lp].push((edge, place));
                }
            }
        }
        Self(passed)
    }
}

/// Saves `value` in the other class of registers where `entry` begins, and casts it back before each of these uses, which are in their order. Those
/// of one block share what is cast back up to the next call.
fn cast_from(func: &mut Function, entry: Block, value: Value, uses: &[Inst]) {
    let saved = Saved::new(&mut FuncCursor::new(func).at_first_insertion_point(entry), value);
    let mut shared: Option<(Inst, Value)> = None;
    for &inst in uses {
        let back = match shared.filter(|&(before, _)| no_call_between(func, before, inst)) {
            Some((_, back)) => back,
            None => saved.back(&mut at(func, inst)),
        };
        shared = Some((inst, back));
        func.dfg.map_inst_values(inst, |used| if used == value { back } else { used });
    }
}

/// Whether `last` is in the block of `first`, not far after it, and nothing from `first` on to there calls.
fn no_call_between(func: &Function, first: Inst, last: Inst) -> bool {
    /// Instructions that are looked at for each use, so that the time is linear.
    const MAX_INSTS: usize = 64;
    let from_first = std::iter::successors(Some(first), |&inst| func.layout.next_inst(inst)).take(MAX_INSTS);
    let mut until_call = from_first.take_while(|&inst| !func.dfg.insts[inst].opcode().is_call());
    until_call.any(|inst| inst == last)
}

/// Whether the value is a float or a vector, and no constant, nor in a place of its own already.
fn is_split(func: &Function, value: Value) -> bool {
    let is_disjoint = |inst| is_constant(func, inst) || is_cast(func, inst);
    is_float_class(func.dfg.value_type(value)) && !func.dfg.value_def(value).inst().is_some_and(is_disjoint)
}

/// Whether the value is an integer that can be saved, and no constant.
fn is_saved_argument(func: &Function, value: Value) -> bool {
    let ty = func.dfg.value_type(value);
    ty.is_int() && can_save(ty) && !is_constant_value(func, value)
}

/// Passes the value at this place cast to the other class of registers and back.
fn split(func: &mut Function, edge: Edge, place: usize) {
    let mut args: Vec<BlockArg> = edge.args(func).collect();
    let Some(value) = args[place].as_value() else { return };
    let target = edge.target(func);
    let mut cursor = at(func, edge.branch);
    args[place] = Saved::new(&mut cursor, value).back(&mut cursor).into();
    set_edge(func, edge, target, &args);
}

/// The cold blocks that have a call, or that only cold blocks connect with one that has a call.
fn cold_code_that_calls(ctx: &Context) -> EntitySet<Block> {
    let func = &ctx.func;
    let mut found = EntitySet::new();
    let is_cold = |&block: &Block| func.layout.is_cold(block);
    let mut open: Vec<Block> = func.layout.blocks().filter(|block| is_cold(block) && calls(func, *block)).collect();
    while let Some(block) = open.pop() {
        if found.insert(block) {
            let around = ctx.cfg.succ_iter(block).chain(ctx.cfg.pred_iter(block).map(|pred| pred.block));
            open.extend(around.filter(is_cold));
        }
    }
    found
}

refusals! {
    /// Why a loop shares values with cold code.
    enum Decline {
        /// (P2) No float and no vector is passed.
        NothingPassed => "nothing-passed", "no float and no vector is passed between it and cold code that calls";
    }
    shared { ColdLoop, Withheld }
}
