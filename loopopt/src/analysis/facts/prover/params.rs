//! Goals about block parameters that hold for the arguments of all edges into the block: induction over the iterations of a loop.

use super::{Inequality, Prover, ZERO};
use crate::analysis::cfg::edges::Edge;
use crate::analysis::facts::known::{Home, Place, Spot};
use crate::analysis::scev::linear_expr::Sum;
use crate::analysis::scev::value_range::{Number, Term};
use crate::fault::fault;
use cranelift_codegen::ir::{Block, ValueDef};

/// Goals about parameters of one block of which one may rest on the other. 2: that a counter does not wrap, and what follows.
const MAX_HYPOTHESES: usize = 2;

impl Prover<'_, '_> {
    /// Whether the goal holds for the arguments of all edges into a block, if a side is one of its parameters.
    pub(super) fn by_params(&mut self, spot: Spot, goal: Inequality, depth: usize) -> bool {
        let Some(block) = self.block_of_params(spot, goal) else { return false };
        if self.hypotheses.iter().filter(|(other, _)| *other == block).count() >= MAX_HYPOTHESES {
            return false;
        }
        let edges = self.conditions.entering(block);
        if edges.is_empty() {
            return false;
        }
        // What holds in each iteration holds in the first, which is quick to check.
        self.hypotheses.push((block, goal));
        let considered = if fault!(FirstIterationOnly) { &edges[..1] } else { &edges };
        let proved = considered.iter().all(|&edge| {
            let next = self.along(edge, block, goal);
            next.is_some_and(|next| self.is_in_range(next) || self.prove_on(edge, next, depth))
        });
        self.hypotheses.pop();
        proved
    }

    /// Whether the goal holds on `edge`.
    fn prove_on(&mut self, edge: Edge, goal: Inequality, depth: usize) -> bool {
        let spot = self.conditions.spot(Place::On(edge));
        self.prove(spot, goal, depth)
    }

    /// Whether what both sides can be says so.
    fn is_in_range(&self, goal: Inequality) -> bool {
        self.bounds(goal.left).1 - self.bounds(goal.right).0 <= goal.most
    }

    /// The block that has parameters in the goal and above which all its other values are defined.
    fn block_of_params(&mut self, spot: Spot, goal: Inequality) -> Option<Block> {
        let domtree = self.conditions.domtree;
        let mut home = Home::Nowhere;
        for term in [goal.left, goal.right].into_iter().flatten() {
            home = home.lower(self.conditions.home(term.root), domtree);
        }
        let Home::At { block, params: true } = home else { return None };
        domtree.block_dominates(block, self.conditions.block_of(spot)).then_some(block)
    }

    /// The goal for the arguments that `edge` passes to `block`.
    fn along(&mut self, edge: Edge, block: Block, goal: Inequality) -> Option<Inequality> {
        let func = self.conditions.func;
        let arg = |index: usize| edge.args(func).nth(index)?.as_value();
        let numbers = &mut self.conditions.numbers;
        let mut pass = |term: Option<Term>| {
            let Some(term) = term else { return Some(ZERO) };
            match numbers.value(term.root).map(|value| func.dfg.value_def(value)) {
                Some(ValueDef::Param(home, index)) if home == block => {
                    return numbers.of_value_and(arg(index)?, term.constant, term.signed);
                }
                Some(_) => return Some(Number { term: Some(term), offset: 0 }),
                None => {}
            }
            let sum = numbers.sum_of_term(term);
            let passed = sum.substituted(&mut |value| match func.dfg.value_def(value) {
                ValueDef::Param(home, index) if home == block => numbers.sum_of(arg(index)?),
                _ => Some(Sum::of_leaf(func, value)),
            })?;
            Some(numbers.of_sum(passed)[usize::from(term.signed)])
        };
        Some(Inequality::of(pass(goal.left)?, pass(goal.right)?, goal.most))
    }
}
