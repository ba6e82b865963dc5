//! Fuel of which something is taken before it is tested becomes fuel that is tested as it is passed.
//!
//! ```text
//!     jump header(v1)                          v8 = iadd v1, 7
//! header(v2):  ◄──────────────┐                jump header(v8)
//!     v3 = iadd v2, 7         │            header(v2):  ◄──────────────┐
//!     v4 = icmp sge v3, 0     │     ──►        v4 = icmp sge v2, 0     │
//!     brif v4, rare, body     │                brif v4, rare, body     │
//!     …                       │                …                       │
//!     jump header(v5) ────────┘                v9 = iadd v5, 7         │
//!                                              jump header(v9) ────────┘
//! ```
//!
//! This is what [polls](crate::analysis::memory::polls) are found by: how much an iteration adds is the same, and it does so at its end.
//!
//! # Legal when
//!
//! Nothing but the sum uses the parameter, and its block argument on each edge is computed before the branch. Numbers wrap as before.

use super::prove::may_be_rare;
use crate::analysis::cfg::edges::{Edge, count_uses, edges_from};
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::inst::number::added_constant;
use crate::analysis::memory::enough::Enough;
use crate::edit::at;
use crate::edit::cfg::split_edges::set_edge;
use crate::edit::inst::labels::replace_labels;
use crate::edit::inst::rename::Replaced;
use crate::fault::fault;
use crate::pass::PassCx;
use crate::pass::marks::LoopMarks;
use cranelift_codegen::Context;
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, InstBuilder, InstructionData, Value, ValueDef, types};

/// Lets all loops test such numbers as they are passed. Returns whether there was any. Linear in the size of the function if there is one that may be.
pub(super) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> bool {
    let forest = cx.forest(ctx);
    let mut found: Vec<_> = forest.loops().filter_map(|lp| Summed::find(ctx, &forest, lp, &cx.marks)).collect();
    if found.is_empty() {
        return false;
    }
    let uses = count_uses(&ctx.func);
    found.retain(|summed| uses[summed.param] == 1);
    let mut replaced = Replaced::default();
    found.iter().for_each(|summed| summed.apply(&mut ctx.func, &mut replaced));
    replaced.apply(&mut ctx.func);
    found.iter().for_each(|summed| summed.fold(&mut ctx.func));
    !found.is_empty()
}

/// A number that the header of a loop adds to, and tests.
struct Summed {
    param: Value,
    index: usize,
    inst: Inst,
    more: u64,
    /// The edges into the header.
    edges: Vec<Edge>,
}

impl Summed {
    fn find(ctx: &Context, forest: &LoopForest, lp: Loop, marks: &LoopMarks) -> Option<Self> {
        let (func, data) = (&ctx.func, forest.data(lp));
        // In a cold loop, nothing tells which code is rare.
        if marks.is_left_alone(data.header) || func.layout.is_cold(data.header) {
            return None;
        }
        let sum = fuel_of(func, data.header)?;
        let inst = func.dfg.value_def(sum).inst()?;
        let (param, more) = added_constant(func, inst)?;
        let ValueDef::Param(home, index) = func.dfg.value_def(param) else { return None };
        let entries = if fault!(EnteredWithoutSum) { &[][..] } else { &data.entries };
        let edges: Vec<_> = entries.iter().chain(&data.back_edges).copied().collect();
        let is_passed = |edge: &Edge| edge.passed_for(func, param).is_some();
        let is_fuel = home == data.header && func.dfg.value_type(param) == types::I64 && edges.iter().all(is_passed);
        is_fuel.then_some(Self { param, index, inst, more, edges })
    }

    /// Adds on the edges, and lets the parameter stand for the sum.
    fn apply(&self, func: &mut Function, replaced: &mut Replaced) {
        let sum = func.dfg.first_result(self.inst);
        for &edge in &self.edges {
            let mut args: Vec<_> = edge.args(func).collect();
            if let BlockArg::Value(passed) = args[self.index] {
                let mut cursor = at(func, edge.branch);
                let more = cursor.ins().iconst(types::I64, self.more.cast_signed());
                args[self.index] = BlockArg::Value(cursor.ins().iadd(passed, more));
            }
            set_edge(func, edge, edge.target(func), &args);
        }
        // The number before the addition no longer exists.
        replace_labels(func, sum, self.param);
        replaced.insert(sum, self.param);
        func.layout.remove_inst(self.inst);
    }

    /// Makes one constant of what is added on an edge and just before.
    fn fold(&self, func: &mut Function) {
        for edge in &self.edges {
            let sum_of = |func: &Function, value: Value| {
                let inst = func.dfg.value_def(value).inst()?;
                added_constant(func, inst).map(|(first, number)| (inst, first, number))
            };
            if let Some((inst, between, more)) = edge.passed_for(func, self.param).and_then(|sum| sum_of(func, sum))
                && let Some((_, first, number)) = sum_of(func, between)
            {
                let more = at(func, inst).ins().iconst(types::I64, more.wrapping_add(number).cast_signed());
                func.replace(inst).iadd(first, more);
            }
        }
    }
}

/// The number that is tested to be enough, with rare code otherwise, by one of the first branches of an iteration that starts in `header`.
fn fuel_of(func: &Function, header: Block) -> Option<Value> {
    /// A flag, a number, and one more.
    const MAX_POLLS: usize = 3;
    let mut block = header;
    for _ in 0..MAX_POLLS {
        let branch = func.layout.last_inst(block)?;
        let InstructionData::Brif { arg, .. } = func.dfg.insts[branch] else { return None };
        let rare = edges_from(func, block).find(|edge| may_be_rare(func, edge.target(func)))?;
        let usual = Edge { slot: 1 - rare.slot, ..rare };
        if let Some((number, _)) = Enough::of(func, arg, usual.slot == 0) {
            return Some(number);
        }
        block = usual.target(func);
    }
    None
}
