//! What is saved if a value is a constant.

use crate::analysis::cfg::edges::edges_of;
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::inst::effects::is_constant;
use crate::analysis::profiled::Frequencies;
use crate::pass::apply_profile::Recorded;
use crate::profile::{Use, ValueSite};
use cranelift_codegen::ir::{Block, Function, Inst, Type, Value};
use cranelift_codegen::{Context, FxHashMap};

/// What a division by a constant saves, in instructions: it takes 10 to 18 cycles on x86-64 and 3 to 4 by multiplication.
const DIVISOR: u64 = 12;
/// What a `br_table` saves whose target is known: the load of the target and the jump, and what the other targets would have needed in registers.
const TABLE: u64 = 4;
/// What one iteration of a loop saves that is unrolled: counter, comparison and branch.
const ITERATION: u64 = 3;

/// What the loops of a function spend their time on, as was recorded.
pub(super) struct Work<'a> {
    func: &'a Function,
    forest: &'a LoopForest,
    frequencies: &'a Frequencies,
    /// For each loop that ran, how often it took its back edge each time.
    usual: FxHashMap<Loop, u64>,
}

impl<'a> Work<'a> {
    pub(super) fn new(ctx: &'a Context, forest: &'a LoopForest, recorded: &'a Recorded) -> Self {
        let usual = recorded
            .loops
            .iter()
            .filter_map(|(sites, recorded)| Some((forest.loop_of_header(sites.header)?, recorded.usual_back_edges()?)));
        Self { func: &ctx.func, forest, frequencies: &recorded.frequencies, usual: usual.collect() }
    }

    pub(super) fn type_of(&self, value: Value) -> Type {
        self.func.dfg.value_type(value)
    }

    /// How many instructions of these blocks ran.
    pub(super) fn of(&self, blocks: &[Block]) -> u64 {
        let of_block = |&block: &Block| {
            let insts = self.func.layout.block_insts(block).filter(|&inst| !is_constant(self.func, inst)).count();
            self.frequencies.of_block(block).saturating_mul(insts as u64)
        };
        blocks.iter().map(of_block).fold(0, u64::saturating_add)
    }

    fn times(&self, inst: Inst) -> u64 {
        self.func.layout.inst_block(inst).map_or(0, |block| self.frequencies.of_block(block))
    }

    /// The loop that the comparison `inst` ends, or decides to enter, if it is the test of one.
    fn ended_by(&self, inst: Inst) -> Option<Loop> {
        let home = self.func.layout.inst_block(inst)?;
        let lp = self.forest.innermost(home)?;
        let result = self.func.dfg.first_result(inst);
        let tests = |branch: Inst| self.func.dfg.inst_args(branch).first() == Some(&result);
        let exits = &self.forest.data(lp).exits;
        exits.iter().any(|exit| tests(exit.branch)).then_some(lp)
    }
}

/// How many instructions fewer would have run, about, if the value of `site` had been this constant.
pub(super) fn gain(work: &Work<'_>, site: &ValueSite, value: u64) -> u64 {
    site.uses
        .iter()
        .map(|&(what, inst)| saved(work, what, inst, value).saturating_mul(work.times(inst)))
        .fold(0, u64::saturating_add)
}

/// What one use saves each time.
fn saved(work: &Work<'_>, what: Use, inst: Inst, value: u64) -> u64 {
    match what {
        Use::Divisor => DIVISOR,
        Use::Factor => 1 + u64::from(value == 1 || value == 0),
        Use::Shift | Use::Step => 1,
        Use::Table => TABLE,
        Use::Asked => 1,
        // A comparison with a constant takes as long.
        Use::Compared => work.ended_by(inst).map_or(0, |lp| unrolled(work, lp)),
        Use::Bound => edges_of(work.func, inst)
            .find_map(|edge| work.forest.loop_of_header(edge.target(work.func)))
            .map_or(0, |lp| {
                unrolled(work, lp).saturating_mul(work.usual.get(&lp).map_or(0, |&usual| usual.saturating_add(1)))
            }),
    }
}

/// What each iteration of `lp` saves if it is known how many there are.
fn unrolled(work: &Work<'_>, lp: Loop) -> u64 {
    /// More iterations stay a loop: `Options::full_unroll_max_iterations`.
    const FEW: u64 = 16;
    let is_short = work.usual.get(&lp).is_some_and(|&usual| usual < FEW);
    if is_short && work.forest.is_innermost(lp) { ITERATION } else { 0 }
}
