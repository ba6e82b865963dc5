//! Comparisons of integers, as conditions make them.

use crate::analysis::inst::number::constant_of;
use crate::analysis::scev::linear_expr::Sum;
use crate::analysis::scev::view::View;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Function, InstructionData, Value};

/// `left cond right`, of integers of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The condition.
    pub cond: IntCC,
    /// What is compared.
    pub left: Value,
    /// What it is compared with. Nothing stands for 0.
    pub right: Option<Value>,
}

impl Comparison {
    /// What it says of `value`, a condition, that it holds, or that it does not: that a comparison does, or that the number is not 0.
    pub fn of(func: &Function, value: Value, holds: bool) -> Self {
        let inst = func.dfg.value_def(value).inst().map(|inst| func.dfg.insts[inst]);
        let (cond, left, right) = match inst {
            Some(InstructionData::IntCompare { args: [left, right], cond, .. }) => {
                (cond, left, Some(right).filter(|&right| constant_of(func, right) != Some(0)))
            }
            _ => (IntCC::NotEqual, value, None),
        };
        Self { cond: if holds { cond } else { cond.complement() }, left, right }
    }

    /// What the left side is compared with, of as many bits.
    pub fn bound(self, view: View<'_>) -> Option<Sum> {
        let bits = view.func().dfg.value_type(self.left).bits();
        self.right.map_or_else(|| Some(Sum::constant(0, bits)), |right| view.sum(right))
    }

    /// The same with the sides exchanged, unless one of them is just 0.
    pub fn swapped(self) -> Option<Self> {
        Some(Self { cond: self.cond.swap_args(), left: self.right?, right: Some(self.left) })
    }

    /// Both ways to write it.
    pub fn sides(self) -> impl Iterator<Item = Self> {
        [Some(self), self.swapped()].into_iter().flatten()
    }
}
