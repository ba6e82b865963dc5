//! Induction variables: header parameters that change by the same constant in each iteration.
//!
//! ```text
//! block1(v1: i32):              v1 is start + k · 3 in iteration k, modulo 2^32
//!     ...
//!     v2 = iconst.i32 3
//!     v3 = iadd v1, v2
//!     brif v4, block1(v3), block2
//! ```
//!
//! Integers of CLIF wrap, and so do these: what follows from a bound is up to who asks ([`crate::analysis::scev::exit_count`]).

use crate::analysis::cfg::edges::only_edge_into;
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::scev::const_eval::{signed, truncate};
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{BlockArg, Function, InstructionData, Opcode, Value, ValueDef};

/// Additions in a row above which a value is not followed. 16: the egraph pass makes one of those with constants.
const MAX_CHAIN: usize = 16;

/// A header parameter that is `start + k · step` in iteration `k`, the first being number 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Induction {
    /// The parameter.
    pub param: Value,
    /// What it is in the first iteration.
    pub start: Value,
    /// What is added to it, with the bits of its type.
    pub step: u128,
}

/// All induction variables of a loop with one entry edge and one back edge.
pub fn inductions(func: &Function, cfg: &ControlFlowGraph, forest: &LoopForest, lp: Loop) -> Vec<Induction> {
    let data = forest.data(lp);
    let ([entry], [back_edge]) = (&data.entries[..], &data.back_edges[..]) else { return Vec::new() };
    let params = func.dfg.block_params(data.header);
    let args = entry.args(func).zip(back_edge.args(func));
    let find = |(&param, (start, next)): (&Value, (BlockArg, BlockArg))| {
        let (base, step) = offset(func, cfg, next.as_value()?);
        (base == param).then_some(Induction { param, start: start.as_value()?, step })
    };
    params.iter().zip(args).filter_map(find).collect()
}

/// `value` as another value and a constant that is added to it.
pub fn offset(func: &Function, cfg: &ControlFlowGraph, value: Value) -> (Value, u128) {
    let ty = func.dfg.value_type(value);
    let (mut base, mut sum) = (value, 0_u128);
    for _ in 0..MAX_CHAIN {
        let Some((next, added)) = step_back(func, cfg, base) else { break };
        base = next;
        sum = sum.wrapping_add(added);
    }
    (base, if ty.is_int() { truncate(sum, ty) } else { 0 })
}

/// What `value` is the sum of, if one of it is a constant.
fn step_back(func: &Function, cfg: &ControlFlowGraph, value: Value) -> Option<(Value, u128)> {
    let inst = match func.dfg.value_def(value) {
        ValueDef::Result(inst, _) => inst,
        ValueDef::Param(block, index) => {
            // A block with one edge into it only renames what it is given.
            let edge = only_edge_into(func, cfg, block)?;
            return Some((edge.args(func).nth(index)?.as_value()?, 0));
        }
        ValueDef::Union(..) => return None,
    };
    let InstructionData::Binary { opcode, args: [a, b] } = func.dfg.insts[inst] else { return None };
    match opcode {
        Opcode::Iadd => {
            let with_right = constant(func, b).map(|bits| (a, bits));
            with_right.or_else(|| Some((b, constant(func, a)?)))
        }
        Opcode::Isub => Some((a, constant(func, b)?.wrapping_neg())),
        _ => None,
    }
}

/// What `value` is, if it is a constant and others added to it, as far as [`offset`] looks.
pub fn known(func: &Function, cfg: &ControlFlowGraph, value: Value) -> Option<u128> {
    let (base, added) = offset(func, cfg, value);
    Some(truncate(constant(func, base)?.wrapping_add(added), func.dfg.value_type(value)))
}

/// The bits of a constant, which may be extended: there is no `iconst` of 128 bits.
fn constant(func: &Function, value: Value) -> Option<u128> {
    let inst = func.dfg.value_def(value).inst()?;
    let ty = func.dfg.value_type(value);
    match func.dfg.insts[inst] {
        InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => Some(truncate(i128::from(imm.bits()) as u128, ty)),
        InstructionData::Unary { opcode: opcode @ (Opcode::Uextend | Opcode::Sextend), arg } => {
            let inner = func.dfg.value_def(arg).inst()?;
            let InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } = func.dfg.insts[inner] else { return None };
            let narrow = func.dfg.value_type(arg);
            let bits = truncate(i128::from(imm.bits()) as u128, narrow);
            Some(if opcode == Opcode::Uextend { bits } else { truncate(signed(bits, narrow) as u128, ty) })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{block, context, forest};

    #[test]
    fn steps_by_addition_and_subtraction() {
        let ctx = context(
            "function %f(i32) {
            block0(v0: i32):
                v1 = iconst.i32 5
                jump block1(v0, v1, v0)
            block1(v2: i32, v3: i32, v4: i32):
                v5 = isub v2, v1
                v6 = iadd v1, v3
                jump block2(v5, v6)
            block2(v7: i32, v8: i32):
                v9 = iadd v7, v1
                v10 = isub v9, v1
                brif v4, block1(v10, v8, v7), block3
            block3:
                return
            }",
        );
        let forest = forest(&ctx);
        let lp = forest.loop_of_header(block(1)).expect("a loop");
        let found: Vec<_> = inductions(&ctx.func, &ctx.cfg, &forest, lp).iter().map(|iv| iv.step).collect();
        assert_eq!(found, [u128::from(-5_i32 as u32), 5], "the third parameter gets the next value of the first");
    }
}
