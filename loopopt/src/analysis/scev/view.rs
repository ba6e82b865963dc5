//! A function with its loops, and what its values are as sums.

use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::inst::number::constant_of;
use crate::analysis::scev::linear_expr::{Sum, Term};
use cranelift_codegen::Context;
use cranelift_codegen::ir::{Function, Value, ValueDef};
use smallvec::SmallVec;

/// Renamings in a row that are looked through. 16: each pass that makes a preheader may add one.
const MAX_RENAMINGS: usize = 16;

/// Sums of renamed sums. 2: an index that is computed outside of a loop, from a block argument of the code around it.
const MAX_DEPTH: usize = 2;

/// Edges into a block above which its parameters are not looked through.
const MAX_EDGES: usize = 8;

/// A function in closed form, with its loops.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The function, with edges and dominators.
    pub ctx: &'a Context,
    /// Its loops.
    pub forest: &'a LoopForest,
}

impl<'a> View<'a> {
    /// The function.
    pub fn func(self) -> &'a Function {
        &self.ctx.func
    }

    /// The sum that `value` is, if it is an integer of at most 64 bits.
    ///
    /// A parameter is its block argument on all edges, if that is the same, unless an edge leaves a loop: a value of a loop is used outside
    /// of it through that parameter only, so that what copies the loop need not look for others.
    pub fn sum(self, value: Value) -> Option<Sum> {
        let ty = self.func().dfg.value_type(value);
        let is_number = ty.is_int() && ty.bits() <= 64;
        is_number.then(|| self.sum_of(value, MAX_DEPTH))
    }

    /// Recursive as deep as `depth` says.
    fn sum_of(self, value: Value, depth: usize) -> Sum {
        let func = self.func();
        let sum = Sum::with_leaves(func, value, &mut |leaf| {
            let renamed = self.renamed(leaf);
            // The number counts, not the value: that may be in a block that does not dominate.
            if let Some(number) = constant_of(func, renamed) {
                return Some(Sum::constant(number, func.dfg.value_type(renamed).bits()));
            }
            let is_sum = renamed != leaf && depth > 0;
            Some(if is_sum { self.sum_of(renamed, depth - 1) } else { Sum::of_leaf(func, renamed) })
        });
        sum.unwrap_or_else(|| Sum::of_leaf(func, value))
    }

    /// The value that `value`, if it is a parameter, is another name for; or a constant that is the same number, defined anywhere.
    fn renamed(self, value: Value) -> Value {
        let mut value = self.passed_by_one(value);
        for _ in 0..MAX_RENAMINGS {
            let Some(passed) = self.passed_by_all(value) else { break };
            value = self.passed_by_one(passed);
        }
        value
    }

    /// Follows parameters of blocks that are entered by one edge only.
    fn passed_by_one(self, mut value: Value) -> Value {
        for _ in 0..MAX_RENAMINGS {
            let mut passed = self.passed(value);
            let (Some(Some(only)), None) = (passed.next(), passed.next()) else { break };
            value = only;
        }
        value
    }

    /// The block argument for a parameter, if it is the same value or the same constant on all edges.
    fn passed_by_all(self, value: Value) -> Option<Value> {
        let constant = |value| constant_of(self.func(), value);
        let mut found = None;
        for (count, passed) in self.passed(value).enumerate() {
            let passed = self.passed_by_one(passed.filter(|_| count < MAX_EDGES)?);
            match found {
                _ if passed == value => {}
                None => found = Some(passed),
                Some(first) if first == passed => {}
                Some(first) if constant(first).is_some_and(|one| constant(passed) == Some(one)) => {}
                Some(_) => return None,
            }
        }
        found
    }

    /// The block argument for a parameter on each edge into its block; nothing for an edge that leaves a loop.
    fn passed(self, value: Value) -> impl Iterator<Item = Option<Value>> + 'a {
        let func = self.func();
        let param = match func.dfg.value_def(value) {
            ValueDef::Param(block, index) => Some((block, index)),
            _ => None,
        };
        param.into_iter().flat_map(move |(block, index)| {
            self.forest.edges_into(func, &self.ctx.cfg, block).iter().map(move |edge| {
                let source = self.forest.innermost(edge.source(func));
                let stays = source.is_none_or(|lp| self.forest.contains(lp, block));
                edge.args(func).nth(index).filter(|_| stays)?.as_value()
            })
        })
    }

    /// Whether `value` is defined outside of the loop.
    pub fn is_from_outside(self, lp: Loop, value: Value) -> bool {
        self.forest.is_from_outside(self.func(), lp, value)
    }

    /// Whether `sum` is the same in all iterations.
    pub fn is_invariant(self, lp: Loop, sum: &Sum) -> bool {
        self.changing(lp, sum).is_none()
    }

    /// The part of `sum` that is the same in all iterations, and its other terms.
    pub fn split(self, lp: Loop, sum: &Sum) -> (Sum, SmallVec<[(&Term, u64); 2]>) {
        let (mut fixed, mut moving) = (Sum::constant(sum.constant_part(), sum.bits()), SmallVec::new());
        for (term, factor) in sum.terms() {
            let alone = Sum::of_term(term.clone(), *factor, sum.bits());
            match self.is_invariant(lp, &alone) {
                true => fixed.add(&alone, 1).expect("no more terms than before"),
                false => moving.push((term, *factor)),
            }
        }
        (fixed, moving)
    }

    /// A value of `sum` that is defined in the loop.
    pub fn changing(self, lp: Loop, sum: &Sum) -> Option<Value> {
        let mut found = None;
        sum.each_value(&mut |value| {
            if found.is_none() && !self.is_from_outside(lp, value) {
                found = Some(value);
            }
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, forest};

    #[test]
    fn a_constant_that_does_not_dominate_is_a_number() {
        // v20 is 8 whichever edge is taken, at any depth of sums of renamed sums.
        let ctx = context(
            "function %f(i64) -> i64 {
            block0(v0: i64):
                brif v0, block1, block2
            block1:
                v1 = iconst.i64 8
                jump block3(v1)
            block2:
                v2 = iconst.i64 8
                jump block3(v2)
            block3(v20: i64):
                v3 = iadd v20, v0
                jump block4(v3)
            block4(v21: i64):
                v4 = iadd v21, v0
                jump block5(v4)
            block5(v22: i64):
                v5 = iadd v22, v0
                jump block6(v5)
            block6(v23: i64):
                v6 = iadd v23, v0
                return v6
            }",
        );
        let forest = forest(&ctx);
        let view = View { ctx: &ctx, forest: &forest };
        let mut known = 0;
        for number in [3, 4, 5, 6] {
            let sum = view.sum(Value::from_u32(number)).expect("a number");
            sum.each_value(&mut |value| assert!(![1, 2].contains(&value.as_u32()), "v{number} is {sum}"));
            known += usize::from(sum.constant_part() == 8);
        }
        assert!(known >= 3, "{known}");
    }
}
