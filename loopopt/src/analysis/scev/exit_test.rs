//! The tests of a loop: the comparisons that decide whether it is left.

use crate::analysis::cfg::edges::Edge;
use crate::analysis::cfg::loops::Loop;
use crate::analysis::scev::comparison::Comparison;
use crate::analysis::scev::linear_expr::Sum;
use crate::analysis::scev::view::View;
use cranelift_codegen::ir::{Function, InstructionData};

/// The test of an exiting block that ends in a `brif`.
#[derive(Clone, Copy, Debug)]
pub struct ExitTest {
    /// The edge that leaves the loop.
    pub exit: Edge,
    /// The other edge, on which the comparison holds.
    pub stay: Edge,
    /// The loop goes on if it holds.
    pub comparison: Comparison,
}

impl ExitTest {
    /// The test that `exit` leaves by.
    pub fn of(func: &Function, exit: Edge) -> Option<Self> {
        let InstructionData::Brif { arg, .. } = func.dfg.insts[exit.branch] else { return None };
        let stay = Edge { slot: 1 - exit.slot, ..exit };
        Some(Self { exit, stay, comparison: Comparison::of(func, arg, stay.slot == 0) })
    }

    /// The tests that each iteration makes, in the order of the exits.
    pub fn all(view: View<'_>, lp: Loop) -> impl Iterator<Item = Self> {
        let func = view.func();
        let latch = view.forest.latch(func, lp);
        let exits = view.forest.data(lp).exits.iter();
        let always = exits
            .filter(move |exit| latch.is_some_and(|latch| view.ctx.domtree.block_dominates(exit.source(func), latch)));
        always.filter_map(move |&exit| Self::of(func, exit))
    }

    /// The comparison with something loop-invariant on the right, and what its sides are as sums.
    pub fn with_invariant_bound(&self, view: View<'_>, lp: Loop) -> Option<(Comparison, [Sum; 2])> {
        let mut sides = self.comparison.sides().filter_map(|comparison| {
            let tested = view.sum(comparison.left)?;
            let bound = match comparison.right {
                Some(right) => view.sum(right)?,
                None => Sum::constant(0, tested.bits()),
            };
            Some((comparison, [tested, bound]))
        });
        sides.find(|(_, [_, bound])| view.is_invariant(lp, bound))
    }
}
