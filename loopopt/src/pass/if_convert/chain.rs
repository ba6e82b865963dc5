//! What a condition depends on in an iteration, and whether that is what the branch has chosen in the iteration before.

use crate::analysis::cfg::edges::edges_into;
use crate::analysis::cfg::loops::Loop;
use crate::analysis::scev::recurrence::Recurrences;
use crate::analysis::scev::view::View;
use cranelift_codegen::ir::{Value, ValueDef};
use std::cell::OnceCell;
use std::collections::BTreeSet;

/// Values that are followed within an iteration, and from one to the one before. 48: a condition of a few operations, each of a few more, with addresses. What depends on more is left a branch.
const MAX_FOLLOWED: usize = 48;

/// What a value depends on within one iteration.
pub(super) struct Chain {
    /// All values of the loop that it is made of.
    values: BTreeSet<Value>,
    /// Whether a load is among them.
    loads: bool,
}

impl Chain {
    /// What `value` depends on in an iteration of `lp`. Nothing if that is too much.
    pub(super) fn of(view: View<'_>, lp: Loop, value: Value) -> Option<Self> {
        let (func, header) = (view.func(), view.forest.data(lp).header);
        let mut chain = Self { values: BTreeSet::new(), loads: false };
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            if view.is_from_outside(lp, value) || !chain.values.insert(value) {
                continue;
            }
            if chain.values.len() > MAX_FOLLOWED {
                return None;
            }
            match func.dfg.value_def(value) {
                ValueDef::Result(inst, _) => {
                    chain.loads |= func.dfg.insts[inst].opcode().can_load();
                    open.extend(func.dfg.inst_args(inst));
                }
                ValueDef::Param(block, _) if block != header => {
                    let edges = edges_into(func, &view.ctx.cfg, block);
                    open.extend(edges.filter_map(|edge| edge.passed_for(func, value)));
                }
                _ => {}
            }
        }
        Some(chain)
    }

    /// Whether it depends on something that is loaded.
    pub(super) fn loads(&self) -> bool {
        self.loads
    }

    /// Whether what it depends on is made, in the iteration before, of one of `chosen`. Yes, if that is too much to see.
    pub(super) fn waits_for(
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
