//! What a value depends on within an iteration of a loop, and whether that was made of certain others in the iteration before: for passes that judge a branch by how well
//! it is predicted.

use crate::analysis::cfg::edges::edges_into;
use crate::analysis::cfg::loops::Loop;
use crate::analysis::scev::recurrence::Recurrences;
use crate::analysis::scev::view::View;
use cranelift_codegen::ir::{Inst, Value, ValueDef};
use std::cell::OnceCell;
use std::collections::BTreeSet;

/// Values that are followed within an iteration, and from one to the one before. 48: a condition of a few operations, each of a few more, with addresses.
const MAX_FOLLOWED: usize = 48;

/// The values and loads that a value depends on within one iteration.
pub(crate) struct BackwardSlice {
    /// All values of the loop that it is made of.
    values: BTreeSet<Value>,
    /// The loads that make some of them.
    loads: Vec<Inst>,
}

impl BackwardSlice {
    /// What `value` depends on in an iteration of `lp`. Nothing if that is too much.
    pub(crate) fn of(view: View<'_>, lp: Loop, value: Value) -> Option<Self> {
        let (func, header) = (view.func(), view.forest.data(lp).header);
        let mut slice = Self { values: BTreeSet::new(), loads: Vec::new() };
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            if view.is_from_outside(lp, value) || !slice.values.insert(value) {
                continue;
            }
            if slice.values.len() > MAX_FOLLOWED {
                return None;
            }
            match func.dfg.value_def(value) {
                ValueDef::Result(inst, _) => {
                    slice.loads.extend(func.dfg.insts[inst].opcode().can_load().then_some(inst));
                    open.extend(func.dfg.inst_args(inst));
                }
                ValueDef::Param(block, _) if block != header => {
                    let edges = edges_into(func, &view.ctx.cfg, block);
                    open.extend(edges.filter_map(|edge| edge.passed_for(func, value)));
                }
                _ => {}
            }
        }
        Some(slice)
    }

    /// What the loop loads for it.
    pub(crate) fn loads(&self) -> &[Inst] {
        &self.loads
    }

    /// Whether what it depends on is computed, in the iteration before, from one of `chosen`. Yes, if that is too much to see.
    pub(crate) fn waits_for(
        &self,
        (view, lp): (View<'_>, Loop),
        recurrences: &OnceCell<Recurrences>,
        chosen: &[Value],
    ) -> bool {
        let (func, data) = (view.func(), view.forest.data(lp));
        let [back_edge] = data.back_edges[..] else { return true };
        let recurrences = recurrences.get_or_init(|| Recurrences::with_constant_steps(view, lp));
        let is_carried = |value: &Value| {
            matches!(func.dfg.value_def(*value), ValueDef::Param(block, _) if block == data.header)
                && recurrences.get(*value).is_none()
        };
        let mut open: Vec<_> = self.values.iter().copied().filter(is_carried).collect();
        let mut seen: BTreeSet<_> = open.iter().copied().collect();
        while let Some(param) = open.pop() {
            let Some(next) = back_edge.passed_for(func, param) else { return true };
            let Some(before) = Self::of(view, lp, next) else { return true };
            if chosen.iter().any(|value| before.values.contains(value)) {
                return true;
            }
            open.extend(before.values.into_iter().filter(is_carried).filter(|value| seen.insert(*value)));
            if seen.len() > MAX_FOLLOWED {
                return true;
            }
        }
        false
    }
}
