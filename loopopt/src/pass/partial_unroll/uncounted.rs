//! Loops that no count ends, or not alone: several iterations, of which each keeps its tests. They share the jump and the steps of the counters.

use super::why::Decline;
use crate::analysis::cfg::edges::edges_of;
use crate::analysis::cfg::jumps::leads_to_failure;
use crate::analysis::cfg::loops::Loop;
use crate::analysis::scev::backward_slice::BackwardSlice;
use crate::analysis::scev::recurrence::{Recurrences, Steps};
use crate::analysis::scev::view::View;
use crate::options::Options;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::ir::{Block, Function, Inst, Opcode, Value};

/// How many iterations are unrolled, of so many instructions ([`super::factor`]), and how its values grow, where `why` says why not by their count.
pub(super) fn prove(
    view: View<'_>,
    lp: Loop,
    (insts, options): ((usize, usize), &Options),
    recurrences: &Recurrences,
    why: Decline,
) -> Result<(usize, Steps), Decline> {
    if options.ignore_cost {
        return Ok((super::factor(insts, options)?, recurrences.steps(view)));
    }
    if recurrences.inductions().is_empty() {
        return Err(why);
    }
    let steps = recurrences.steps(view);
    if let Some(param) = Waits::of(view, lp, &steps).first() {
        return Err(Decline::Waits(param));
    }
    let exits = exits_by_data(view, lp);
    if exits > MAX_EXITS_BY_DATA {
        return Err(Decline::ManySearches { exits, max: MAX_EXITS_BY_DATA });
    }
    let max = options.partial_unroll_max_uncounted_insts;
    match super::judge::factor_within(insts, max, options)? {
        Some(factor) => Ok((factor, steps)),
        None if matches!(why, Decline::EndsEarly) => Err(why),
        None => Err(Decline::SearchTooLarge { insts: insts.0 * 2, max }),
    }
}

/// The most branches that leave a loop as what it loads says. 2: with three, it mostly ends after an iteration or two, and has twice the branches that
/// nothing predicts. `queens-o2` in Wasmtime, whose search for a free place has three, takes 1.03 of Cranelift's time if it is unrolled, and 1.00 if it is not; `queens-o1` 0.99 and 0.96.
const MAX_EXITS_BY_DATA: usize = 2;

/// How many branches leave the loop as what it loads says, those to failures and to cold blocks left out.
fn exits_by_data(view: View<'_>, lp: Loop) -> usize {
    let func = view.func();
    let is_usual = |target: Block| !func.is_effectively_cold(target) && !leads_to_failure(func, target);
    let loads = |branch: Inst| {
        let condition = func.dfg.inst_args(branch).first();
        condition.is_some_and(|&value| BackwardSlice::of(view, lp, value).is_none_or(|slice| !slice.loads().is_empty()))
    };
    let exits = view.forest.data(lp).exits.iter().filter(|edge| is_usual(edge.target(func)));
    exits.filter(|edge| loads(edge.branch)).count()
}

/// The values for which an iteration waits, each with the number of operations since the iteration before, up to [`LONG`].
struct Waits<'a> {
    view: View<'a>,
    lp: Loop,
    depths: FxHashMap<Value, u8>,
}

/// Operations of a cycle each, one after the other. 2: a small iteration without a wait takes one to two cycles.
const LONG: u8 = 2;

impl<'a> Waits<'a> {
    /// Linear in the size of the loop, which is small.
    fn of(view: View<'a>, lp: Loop, steps: &Steps) -> Self {
        let func = view.func();
        let params = func.dfg.block_params(view.forest.data(lp).header).iter();
        let depths = params.filter(|&&param| steps.get(param).is_none()).map(|&param| (param, 0)).collect();
        let mut found = Self { view, lp, depths };
        // Depths only grow, and each at most `LONG` times.
        while !found.depths.is_empty() && found.grow() {}
        found
    }

    /// Goes through the loop once. Whether anything has become deeper.
    fn grow(&mut self) -> bool {
        let (func, header) = (self.view.func(), self.view.forest.data(self.lp).header);
        let mut has_grown = false;
        for inst in self.view.forest.blocks(self.lp).iter().flat_map(|&block| func.layout.block_insts(block)) {
            let known = func.dfg.inst_args(inst).iter().filter_map(|arg| self.depths.get(arg)).max().copied();
            if let Some(depth) = known {
                let depth = (depth + latency(func, inst)).min(LONG);
                for &result in func.dfg.inst_results(inst) {
                    has_grown |= self.raise(result, depth);
                }
            }
            for edge in edges_of(func, inst).filter(|edge| edge.target(func) != header) {
                let target = edge.target(func);
                if !self.view.forest.contains(self.lp, target) {
                    continue;
                }
                for (&param, arg) in func.dfg.block_params(target).iter().zip(edge.args(func)) {
                    if let Some(&depth) = arg.as_value().and_then(|arg| self.depths.get(&arg)) {
                        has_grown |= self.raise(param, depth);
                    }
                }
            }
        }
        has_grown
    }

    fn raise(&mut self, value: Value, depth: u8) -> bool {
        let is_known = self.depths.get(&value).is_some_and(|&old| old >= depth);
        if !is_known {
            self.depths.insert(value, depth);
        }
        !is_known
    }

    /// The first parameter of the header whose next value takes long.
    fn first(&self) -> Option<Value> {
        let (func, data) = (self.view.func(), self.view.forest.data(self.lp));
        let params = func.dfg.block_params(data.header).iter();
        let mut passed = params.zip(data.back_edges.first()?.args(func));
        let is_long = |value| self.depths.get(&value) == Some(&LONG);
        passed.find(|(_, arg)| arg.as_value().is_some_and(is_long)).map(|(&param, _)| param)
    }
}

/// How many operations an instruction counts for: those that add, compare and choose take one cycle.
fn latency(func: &Function, inst: Inst) -> u8 {
    use Opcode::*;
    match func.dfg.insts[inst].opcode() {
        Iadd | Isub | Ineg | Band | Bor | Bxor | Bnot | Ishl | Ushr | Sshr | Rotl | Rotr | Icmp | Select | Smin
        | Smax | Umin | Umax | Uextend | Sextend | Ireduce => 1,
        _ => LONG,
    }
}
