//! What a value is when the loop ends, as a formula of what is known before it.

use crate::analysis::cfg::edges::Edge;
use crate::analysis::facts::polynomial::Polynomial;
use crate::analysis::scev::linear_expr::Sum;
use crate::edit::materialize::emit::{emit, emit_polynomial};
use cranelift_codegen::ir::{Function, Inst, Value};

/// A value that leaves a loop.
pub(super) struct Final {
    pub(super) exit: Edge,
    /// Its place among the arguments of the edge.
    pub(super) index: usize,
    pub(super) value: Value,
    pub(super) formula: Formula,
}

impl Final {
    /// What the value is after the loop.
    pub(super) fn param(&self, func: &Function) -> Value {
        func.dfg.block_params(self.exit.target(func))[self.index]
    }
}

/// What computes a value before the loop.
pub(super) enum Formula {
    Sum(Sum),
    /// The polynomial, in the iteration of this number.
    Polynomial(Polynomial, Sum),
}

impl Formula {
    /// What is constant, or a plain sum, is no `Polynomial`, unless cost does not count: tests see the formula then.
    pub(super) fn new(polynomial: Polynomial, number: &Sum, ignores_cost: bool) -> Self {
        match polynomial.at(number).filter(|_| !ignores_cost) {
            Some(sum) => Self::Sum(sum),
            None => Self::Polynomial(polynomial, number.clone()),
        }
    }

    /// How many instructions compute it.
    pub(super) fn operations(&self) -> usize {
        match self {
            Self::Sum(sum) => sum.operations(),
            Self::Polynomial(polynomial, number) => {
                // Of `k over 2` and `k over 3`, and two for each coefficient.
                let binomials = [0, 0, 4, 7][polynomial.coefficients().len().min(4) - 1];
                let coefficients = polynomial.coefficients().iter().map(|one| one.operations() + 2);
                number.operations() + binomials + coefficients.sum::<usize>()
            }
        }
    }

    pub(super) fn emit(&self, func: &mut Function, before: Inst) -> Value {
        match self {
            Self::Sum(sum) => emit(func, before, sum),
            Self::Polynomial(polynomial, number) => emit_polynomial(func, before, polynomial, number),
        }
    }
}
