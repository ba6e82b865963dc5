//! How many iterations at a time pay.

use super::why::Decline;
use crate::analysis::cfg::edges::{Edge, edges_of};
use crate::analysis::cfg::loops::Loop;
use crate::analysis::inst::effects::Effects;
use crate::analysis::scev::view::View;
use crate::options::Options;
use cranelift_codegen::ir::{Block, Inst, Opcode, Value};
use std::iter;

/// The most iterations that an unrolled group has.
pub(crate) fn most_iterations(options: &Options) -> usize {
    if options.ignore_cost { MAX_STRESSED } else { options.partial_unroll_max_iterations }
}

/// The same if cost does not count.
const MAX_STRESSED: usize = 4;

/// Calls in cold blocks of a loop that is unrolled. 1: each copy of one saves and loads all registers that live across it.
const MAX_RARE_CALLS: usize = 1;

/// How many iterations are unrolled, of `size` instructions each, and of `all` with those that are cold or none in machine code.
pub(super) fn factor((size, all): (usize, usize), options: &Options) -> Result<usize, Decline> {
    if options.ignore_cost {
        let (factor, max) = (2 + size % (MAX_STRESSED - 1), options.partial_unroll_max_copied);
        let insts = all * factor;
        return if insts <= max { Ok(factor) } else { Err(Decline::CopiesTooMuch { insts, max }) };
    }
    let max = options.partial_unroll_max_insts;
    factor_within((size, all), max, options)?.ok_or(Decline::TooLarge { insts: size * 2, max })
}

/// How many iterations have at most `max` of the instructions that are counted by `size`. Nothing if two have more.
pub(super) fn factor_within(
    (size, all): (usize, usize),
    max: usize,
    options: &Options,
) -> Result<Option<usize>, Decline> {
    let most = options.partial_unroll_max_iterations;
    if most < 2 {
        return Err(Decline::NoGroups { most });
    }
    let max_copied = options.partial_unroll_max_copied;
    if all > max_copied / 2 {
        return Err(Decline::CopiesTooMuch { insts: all * 2, max: max_copied });
    }
    let mut factors = iter::successors(Some(most), |&factor| (factor > 2).then(|| (factor / 2).max(2)));
    Ok(factors.find(|&factor| size <= max / factor && all <= max_copied / factor))
}

/// Whether an instruction takes more time than what unrolling saves.
fn is_slow(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Udiv | Opcode::Sdiv | Opcode::Urem | Opcode::Srem | Opcode::BrTable)
}

/// The blocks of a loop that are not cold.
pub(super) fn usual_blocks(view: View<'_>, lp: Loop) -> impl Iterator<Item = Block> {
    view.forest.blocks(lp).iter().copied().filter(move |&block| !view.func().is_effectively_cold(block))
}

/// The instructions in these.
pub(super) fn usual_insts(view: View<'_>, lp: Loop) -> impl Iterator<Item = Inst> {
    usual_blocks(view, lp).flat_map(move |block| view.func().layout.block_insts(block))
}

/// Whether `inst` does nothing but compute what is used after the loop alone: `sink` puts it there.
fn only_leaves(view: View<'_>, lp: Loop, inst: Inst) -> bool {
    let (func, forest) = (view.func(), view.forest);
    let [result] = *func.dfg.inst_results(inst) else { return false };
    let is_inside = |user: Inst| {
        let stays = |edge: &Edge| forest.contains(lp, edge.target(func));
        let mut passed = edges_of(func, user).filter(stays).flat_map(|edge| edge.args(func));
        func.dfg.inst_args(user).contains(&result) || passed.any(|arg| arg.as_value() == Some(result))
    };
    let mut users = forest.blocks(lp).iter().flat_map(|&block| func.layout.block_insts(block));
    Effects::of(func, inst).is_pure() && !users.any(is_inside)
}

/// The results of divisions that do nothing but that.
pub(super) fn leaving(view: View<'_>, lp: Loop) -> Vec<Value> {
    let func = view.func();
    let insts = view.forest.blocks(lp).iter().flat_map(|&block| func.layout.block_insts(block));
    let slow = insts.filter(|&inst| is_slow(func.dfg.insts[inst].opcode()));
    slow.filter(|&inst| only_leaves(view, lp, inst)).map(|inst| func.dfg.first_result(inst)).collect()
}

/// Whether it pays, whatever counts the loop, of which nothing but the end needs what is `leaving`.
pub(super) fn judge(view: View<'_>, lp: Loop, leaving: &[Value]) -> Result<(), Decline> {
    let func = view.func();
    if func.is_effectively_cold(view.forest.data(lp).header) {
        return Err(Decline::ColdLoop);
    }
    let insts = || usual_insts(view, lp);
    let opcode = |inst: Inst| func.dfg.insts[inst].opcode();
    let calls = |&block: &Block| func.layout.block_insts(block).filter(|&inst| opcode(inst).is_call()).count();
    let rare_calls: usize = view.forest.blocks(lp).iter().map(calls).sum();
    if rare_calls > MAX_RARE_CALLS || insts().any(|inst| opcode(inst).is_call()) {
        return Err(Decline::Calls);
    }
    let only_leaves = |inst: Inst| func.dfg.inst_results(inst).first().is_some_and(|result| leaving.contains(result));
    let mut slow = insts().filter(|&inst| is_slow(opcode(inst)) && !only_leaves(inst));
    if let Some(inst) = slow.next() {
        return Err(Decline::Slow(opcode(inst)));
    }
    Ok(())
}
