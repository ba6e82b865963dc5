//! By how much the numbers of a loop grow from one iteration to the next.
//!
//! ```text
//! block1(v1: i32):                grows by 1
//!     v2 = ishl v1, 3             8
//!     v3 = iadd v0, v2            8, as v0 does not change
//!     v4 = uextend.i64 v3         nothing is said: the sum may wrap
//!     v5 = iadd v1, 1             1
//! ```
//!
//! All of it is modular arithmetic: `k` iterations later, a number is larger by `k` times its stride, modulo two to the bits of its
//! type, if it is computed there.

use crate::analysis::cfg::loops::Loop;
use crate::analysis::scev::induction::{Induction, inductions};
use crate::analysis::scev::linear_expr::{Sum, Term};
use crate::analysis::scev::view::View;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::ir::Value;

/// The values of a loop that are known to grow by the same number in each iteration.
#[derive(Debug, Default)]
pub struct Strides {
    strides: FxHashMap<Value, u64>,
    /// What the counters are in the first iteration.
    starts: FxHashMap<Value, Value>,
}

impl Strides {
    /// Those of a loop with one entry edge and one back edge. Linear in the size of the loop, as sums are bounded.
    pub fn of(view: View<'_>, lp: Loop) -> Self {
        let func = view.func();
        let mut strides = Self::default();
        let is_number = |value: Value| {
            let ty = func.dfg.value_type(value);
            ty.is_int() && ty.bits() <= 64
        };
        for Induction { param, start, step } in inductions(func, &view.ctx.cfg, view.forest, lp) {
            if let Some(step) = u64::try_from(step).ok().filter(|&step| step != 0 && is_number(param)) {
                strides.strides.insert(param, step);
                strides.starts.insert(param, start);
            }
        }
        if strides.starts.is_empty() {
            return strides;
        }
        let blocks = view.forest.blocks(lp).iter();
        let insts = blocks.flat_map(|&block| func.layout.block_insts(block));
        let results = insts.filter_map(|inst| func.dfg.inst_results(inst).first().copied());
        let found: Vec<_> = results.filter_map(|value| Some((value, strides.of_sum(view, lp, value)?))).collect();
        strides.strides.extend(found);
        strides
    }

    /// By how much `value` grows, modulo two to the bits of its type, if it does and that is known.
    pub fn get(&self, value: Value) -> Option<u64> {
        self.strides.get(&value).copied()
    }

    /// What `value`, which grows, is in the first iteration, in terms of what is defined in front of the loop.
    pub fn first(&self, view: View<'_>, value: Value) -> Option<Sum> {
        self.get(value)?;
        let sum = view.sum(value)?;
        let mut first = Sum::constant(sum.constant_part(), sum.bits());
        for (term, factor) in sum.terms() {
            let start = match term {
                Term::Value(counter) => self.starts.get(counter),
                _ => None,
            };
            let alone = match start {
                Some(&start) => view.sum(start)?.reduced(sum.bits())?,
                None => Sum::of_term(term.clone(), 1, sum.bits()),
            };
            first = first.plus(&alone, *factor)?;
        }
        Some(first)
    }

    /// By how much a sum of counters grows.
    fn of_sum(&self, view: View<'_>, lp: Loop, value: Value) -> Option<u64> {
        let sum = view.sum(value)?;
        let mut grows = Sum::constant(0, sum.bits());
        for (term, factor) in sum.terms() {
            let alone = Sum::of_term(term.clone(), *factor, sum.bits());
            if view.is_invariant(lp, &alone) {
                continue;
            }
            let Term::Value(counter) = term else { return None };
            let stride = Sum::constant(self.get(*counter)?, sum.bits());
            grows = grows.plus(&stride, *factor)?;
        }
        grows.as_constant().filter(|&stride| stride != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{block, context, forest};
    use cranelift_codegen::ir::types;

    #[test]
    fn sums_of_counters_grow_by_constants() {
        let ctx = context(
            "function %f(i64, i32) {
            block0(v0: i64, v1: i32):
                jump block1(v0, v1, v1)
            block1(v2: i64, v3: i32, v4: i32):
                v5 = iconst.i64 8
                v6 = isub v2, v5
                v7 = iconst.i32 3
                v8 = iadd v3, v7
                v9 = imul v8, v7
                v10 = ireduce.i32 v2
                v11 = isub v9, v10
                v12 = isub v1, v11
                v13 = uextend.i64 v8
                v14 = imul v3, v3
                v15 = iadd v4, v3
                v16 = isub v10, v3
                v17 = iadd v3, v10
                brif v15, block1(v6, v8, v15), block2
            block2:
                return
            }",
        );
        let forest = forest(&ctx);
        let view = View { ctx: &ctx, forest: &forest };
        let lp = forest.loop_of_header(block(1)).expect("a loop");
        let strides = Strides::of(view, lp);
        let ones = u64::from(u32::MAX);
        let grow = [(2, 8_u64.wrapping_neg()), (3, 3), (6, 8_u64.wrapping_neg()), (8, 3), (9, 9), (10, ones - 7)];
        for (number, stride) in grow.into_iter().chain([(11, 17), (12, ones - 16), (16, ones - 10), (17, ones - 4)]) {
            assert_eq!(strides.get(Value::from_u32(number)), Some(stride), "v{number}");
        }
        for number in [0, 1, 4, 5, 7, 13, 14, 15] {
            assert_eq!(strides.get(Value::from_u32(number)), None, "v{number}");
        }
        let first = strides.first(view, Value::from_u32(11)).expect("it grows");
        let term = |number| Sum::of_term(Term::Value(Value::from_u32(number)), 1, types::I32.bits());
        assert_eq!(first, term(1).times(3).offset(9).minus(&term(0)).expect("few terms"));
    }
}
