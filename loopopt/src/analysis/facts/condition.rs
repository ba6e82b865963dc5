//! What conditions are made of.
//!
//! ```text
//! v5 = band v3, v4          both, if v3 and v4 are 0 or 1
//! v6 = bor v3, v4           one of them
//! v7 = icmp eq v6, 0        neither of them
//! v8 = uextend.i32 v7       the same
//! ```

use crate::analysis::scev::linear_expr::Sum;
use crate::analysis::scev::value_range::source::limits_of;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Function, InstructionData, Opcode, Value, ValueDef};
use smallvec::SmallVec;

/// Conditions inside conditions that are taken apart.
pub(in crate::analysis) const MAX_NESTING: usize = 4;

/// When an integer is not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::analysis) enum Condition {
    /// If the comparison holds.
    Compares(IntCC, [Value; 2]),
    /// If this value is not zero; with `false`, if it is zero.
    Is(Value, bool),
    /// If both have a bit in common; of two truth values, if neither is zero.
    And([Value; 2]),
    /// If one of both is not zero.
    Or([Value; 2]),
    /// Nothing more is known.
    Number,
}

impl Condition {
    /// When `value` is not zero.
    pub(in crate::analysis) fn of(func: &Function, value: Value) -> Self {
        let ValueDef::Result(inst, 0) = func.dfg.value_def(value) else { return Self::Number };
        match func.dfg.insts[inst] {
            InstructionData::IntCompare { cond: cond @ (IntCC::Equal | IntCC::NotEqual), args: [a, b], .. }
                if is_condition(func, a) && is_constant(func, b, 0) =>
            {
                Self::Is(a, cond == IntCC::NotEqual)
            }
            InstructionData::IntCompare { cond, args, .. } => Self::Compares(cond, args),
            InstructionData::Unary { opcode: Opcode::Uextend | Opcode::Sextend, arg } => Self::Is(arg, true),
            InstructionData::Binary { opcode: Opcode::Bxor, args: [a, b] }
                if is_constant(func, b, 1) && is_truth(func, a) =>
            {
                Self::Is(a, false)
            }
            InstructionData::Binary { opcode: Opcode::Band, args } => Self::And(args),
            InstructionData::Binary { opcode: Opcode::Bor, args } => Self::Or(args),
            _ => Self::Number,
        }
    }
}

/// A part of a condition, which holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A comparison.
    Compares(IntCC, [Value; 2]),
    /// An integer is not zero, or it is where that is false.
    Number(Value, bool),
}

/// What holds if `value` is not zero, or zero where `truth` is false. With `exact`, that is also enough for it.
pub fn parts(func: &Function, (value, truth): (Value, bool), exact: bool) -> SmallVec<[Part; 4]> {
    let mut found = SmallVec::new();
    let mut open = SmallVec::<[(Value, bool, usize); 4]>::from_slice(&[(value, truth, MAX_NESTING)]);
    while let Some((value, truth, depth)) = open.pop() {
        let condition = if depth > 0 { Condition::of(func, value) } else { Condition::Number };
        match (condition, truth) {
            (Condition::Compares(cond, args), true) => found.push(Part::Compares(cond, args)),
            (Condition::Compares(cond, args), false) => found.push(Part::Compares(cond.complement(), args)),
            (Condition::Is(inner, same), _) => open.push((inner, truth == same, depth - 1)),
            (Condition::And([a, b]), true) => {
                // That neither is zero does not say that they have a bit in common.
                let is_enough = is_truth(func, a) && is_truth(func, b);
                if !is_enough {
                    found.push(Part::Number(value, true));
                }
                if is_enough || !exact {
                    open.extend([(b, truth, depth - 1), (a, truth, depth - 1)]);
                }
            }
            (Condition::Or([a, b]), false) => open.extend([(b, truth, depth - 1), (a, truth, depth - 1)]),
            _ => found.push(Part::Number(value, truth)),
        }
    }
    found
}

fn is_constant(func: &Function, value: Value, constant: u64) -> bool {
    Sum::of(func, value).as_constant() == Some(constant)
}

/// Whether `value` is made of comparisons and the like.
fn is_condition(func: &Function, value: Value) -> bool {
    use Opcode::{Band, Bor, Bxor, Uextend};
    let inst = func.dfg.value_def(value).inst();
    is_flag(func, value)
        || inst.is_some_and(|inst| matches!(func.dfg.insts[inst].opcode(), Band | Bor | Bxor | Uextend))
            && is_truth(func, value)
}

/// Whether `value` is known to be 0 or 1.
pub fn is_truth(func: &Function, value: Value) -> bool {
    let bits = func.dfg.value_type(value).bits();
    is_flag(func, value) || limits_of(func, value, bits).is_some_and(|(_, largest)| largest <= 1)
}

/// Whether `value` is what a comparison gives, or an operation that tells whether it overflows.
fn is_flag(func: &Function, value: Value) -> bool {
    use Opcode::{Fcmp, Icmp, SaddOverflow, SmulOverflow, SsubOverflow, UaddOverflow, UmulOverflow, UsubOverflow};
    let ValueDef::Result(inst, number) = func.dfg.value_def(value) else { return false };
    match func.dfg.insts[inst].opcode() {
        Icmp | Fcmp => func.dfg.value_type(value).is_int(),
        SaddOverflow | SmulOverflow | SsubOverflow | UaddOverflow | UmulOverflow | UsubOverflow => number == 1,
        _ => false,
    }
}
