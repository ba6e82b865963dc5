//! Add-recurrences: what is `start + k · step` in iteration `k` of a loop, the first being number 0.
//!
//! ```text
//! block1(v1: i32):                {v0, +, 3}
//!     v2 = ishl v1, 3             {8 · v0, +, 24}
//!     v3 = iadd v9, v2            {8 · v0 + v9, +, 24}, as v9 is loop-invariant
//!     v4 = uextend.i64 v3         none: the sum may wrap
//!     v5 = iadd v1, 3
//!     brif v6, block1(v5), block2
//! ```
//!
//! All of it is modular arithmetic, in the bits of the value. What follows from a bound is for others to say: how often a loop runs
//! ([`crate::analysis::scev::exit_count`]), and that nothing wraps ([`crate::analysis::facts::nowrap`]).

use crate::analysis::cfg::loops::Loop;
use crate::analysis::inst::number::signed;
use crate::analysis::scev::linear_expr::{Sum, Term, known, offset};
use crate::analysis::scev::view::View;
use crate::analysis::scev::wrap_arc::Progression;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::ir::{BlockArg, Value};
use smallvec::SmallVec;

/// `start + k · step` in iteration `k`, modulo two to the bits of the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recurrence {
    /// What it is in the first iteration, in terms of what is defined before the loop. Of more than 64 bits, just the value.
    pub start: Sum,
    /// What is added in each iteration.
    pub step: Step,
}

/// What is added in each iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A constant, with the bits of the type.
    Constant(u128),
    /// A loop-invariant sum that is no constant.
    Invariant(Sum),
}

impl Step {
    /// The step, if it is a constant.
    pub fn as_constant(&self) -> Option<u128> {
        match self {
            Self::Constant(step) => Some(*step),
            Self::Invariant(_) => None,
        }
    }

    /// The same in so many bits, at most 64 and no more than it has.
    pub fn reduced(&self, bits: u32) -> Option<Sum> {
        match self {
            Self::Constant(step) => Some(Sum::constant(*step as u64, bits)),
            Self::Invariant(step) => step.reduced(bits),
        }
    }
}

/// A header parameter that is an add-recurrence.
#[derive(Clone, Debug)]
pub struct Induction {
    /// The parameter.
    pub param: Value,
    /// Its block argument on the entry edge.
    pub start: Value,
    /// What it is in each iteration.
    pub recurrence: Recurrence,
}

/// The induction variables of a loop with one entry edge and one back edge.
#[derive(Clone, Debug)]
pub struct Recurrences {
    lp: Loop,
    /// Whether starts and steps are known as sums.
    as_sums: bool,
    inductions: Vec<Induction>,
}

/// Induction variables in a sum, each with a factor.
type Moving<'a> = SmallVec<[(&'a Induction, u64); 2]>;

impl Recurrences {
    /// Those of `lp`.
    pub fn of(view: View<'_>, lp: Loop) -> Self {
        Self::found(view, lp, true)
    }

    /// Those to which a constant is added, found without a look at more than that: their starts are values.
    pub fn with_constant_steps(view: View<'_>, lp: Loop) -> Self {
        Self::found(view, lp, false)
    }

    fn found(view: View<'_>, lp: Loop, as_sums: bool) -> Self {
        let func = view.func();
        let data = view.forest.data(lp);
        let mut found = Self { lp, as_sums, inductions: Vec::new() };
        if let ([entry], [back_edge]) = (&data.entries[..], &data.back_edges[..]) {
            let args = entry.args(func).zip(back_edge.args(func));
            let params = func.dfg.block_params(data.header).iter().zip(args);
            let find = |(&param, passed)| Induction::find(view, lp, (param, passed), as_sums);
            found.inductions.extend(params.filter_map(find));
        }
        found
    }

    /// All induction variables, in the order of the parameters.
    pub fn inductions(&self) -> &[Induction] {
        &self.inductions
    }

    /// What a header parameter is in each iteration, if it is an induction variable.
    pub fn get(&self, param: Value) -> Option<&Recurrence> {
        self.inductions.iter().find(|one| one.param == param).map(|one| &one.recurrence)
    }

    /// By how much `address` grows in an iteration, if it does, for what only cost is judged by: an index that is extended counts as if it never wrapped.
    pub(crate) fn stride(&self, view: View<'_>, address: &Sum) -> Option<i64> {
        let step = |sum: &Sum| match self.of_sum(view, sum)?.step {
            Step::Constant(step) => Some(signed(step as u64, sum.bits())),
            Step::Invariant(_) => None,
        };
        let mut extended = address.terms().iter().filter_map(|(term, factor)| match term {
            Term::Extended { sum, .. } => step(sum)?.checked_mul(signed(*factor, address.bits())),
            _ => None,
        });
        step(address).or_else(|| extended.next()).filter(|&stride| stride != 0)
    }

    /// What a sum that varies is in each iteration. A step that is no constant is that of one induction variable alone.
    pub fn of_sum(&self, view: View<'_>, sum: &Sum) -> Option<Recurrence> {
        let bits = sum.bits();
        let (mut start, moving) = self.split(view, sum)?;
        let step = step_of(&moving, bits)?;
        for (one, factor) in moving {
            let first = if self.as_sums { one.recurrence.start.clone() } else { view.sum(one.start)? };
            start = start.plus(&first.reduced(bits)?, factor)?;
        }
        Some(Recurrence { start, step })
    }

    /// The loop-invariant part of a sum, and the induction variables in it, each with a factor, if nothing else varies.
    fn split(&self, view: View<'_>, sum: &Sum) -> Option<(Sum, Moving<'_>)> {
        let (fixed, moving) = view.split(self.lp, sum);
        let find = |(term, factor): (&Term, u64)| match term {
            Term::Value(value) => self.inductions.iter().find(|one| one.param == *value).map(|one| (one, factor)),
            _ => None,
        };
        Some((fixed, moving.into_iter().map(find).collect::<Option<_>>()?))
    }

    /// What `value`, which changes by a constant, is in each iteration.
    pub fn of_value(&self, view: View<'_>, value: Value) -> Option<Recurrence> {
        self.of_sum(view, &view.sum(value)?).filter(|found| found.step.as_constant().is_some())
    }

    /// The numbers that `value`, an induction variable of any width and a constant, is in each iteration, if it starts at a constant.
    pub fn progression(&self, view: View<'_>, value: Value) -> Option<Progression> {
        let (func, cfg) = (view.func(), &view.ctx.cfg);
        let (base, added) = offset(func, Some(cfg), value);
        let one = self.inductions.iter().find(|one| one.param == base)?;
        let (start, step) = (known(func, cfg, one.start)?, one.recurrence.step.as_constant()?);
        Some(Progression { start, step, ty: func.dfg.value_type(value) }.plus(added))
    }

    /// By how much each value of the loop grows that is an add-recurrence with a constant step, modulo two to its bits. Linear in the
    /// size of the loop, as sums are bounded.
    pub fn steps(&self, view: View<'_>) -> Steps {
        let func = view.func();
        let blocks = if self.inductions.is_empty() { &[] } else { view.forest.blocks(self.lp) };
        let insts = blocks.iter().flat_map(|&block| func.layout.block_insts(block));
        let results = insts.filter_map(|inst| func.dfg.inst_results(inst).first().copied());
        let values = self.inductions.iter().map(|one| one.param).chain(results);
        let step = |value| {
            let sum = view.sum(value)?;
            step_of(&self.split(view, &sum)?.1, sum.bits())?.as_constant()?.try_into().ok()
        };
        Steps(values.filter_map(|value| Some((value, step(value)?))).collect())
    }
}

impl Induction {
    /// What a parameter is whose block arguments on the entry edge and the back edge are these.
    fn find(
        view: View<'_>,
        lp: Loop,
        (param, (start, next)): (Value, (BlockArg, BlockArg)),
        as_sums: bool,
    ) -> Option<Self> {
        let func = view.func();
        let (start, next) = (start.as_value()?, next.as_value()?);
        if !func.dfg.value_type(param).is_int() {
            return None;
        }
        let step = match offset(func, Some(&view.ctx.cfg), next) {
            (base, step) if base == param => Step::Constant(step),
            _ if !as_sums => return None,
            _ => {
                let step = view.sum(next)?.minus(&Sum::of_leaf(func, param))?;
                match step.as_constant() {
                    Some(step) => Step::Constant(step.into()),
                    None if view.is_invariant(lp, &step) => Step::Invariant(step),
                    None => return None,
                }
            }
        };
        let first = if as_sums { view.sum(start) } else { None };
        let first = first.unwrap_or_else(|| Sum::of_leaf(func, start));
        Some(Self { param, start, recurrence: Recurrence { start: first, step } })
    }
}

/// The step of a sum of induction variables, of so many bits, each with a factor.
fn step_of(moving: &[(&Induction, u64)], bits: u32) -> Option<Step> {
    let mut step = Sum::constant(0, bits);
    for (one, factor) in moving {
        match &one.recurrence.step {
            Step::Constant(by) => step = step.plus(&Sum::constant(*by as u64, bits), *factor)?,
            Step::Invariant(by) if *factor == 1 && by.bits() == bits && moving.len() == 1 => {
                return Some(Step::Invariant(by.clone()));
            }
            Step::Invariant(_) => return None,
        }
    }
    step.as_constant().filter(|&step| step != 0).map(|step| Step::Constant(step.into()))
}

/// By how much values of a loop grow in each iteration.
#[derive(Debug, Default)]
pub struct Steps(FxHashMap<Value, u64>);

impl Steps {
    /// By how much `value` grows, modulo two to the bits of its type, if it does and that is known.
    pub fn get(&self, value: Value) -> Option<u64> {
        self.0.get(&value).copied()
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
        let recurrences = Recurrences::of(view, lp);
        let steps = recurrences.steps(view);
        let ones = u64::from(u32::MAX);
        let grow = [(2, 8_u64.wrapping_neg()), (3, 3), (6, 8_u64.wrapping_neg()), (8, 3), (9, 9), (10, ones - 7)];
        for (number, step) in grow.into_iter().chain([(11, 17), (12, ones - 16), (16, ones - 10), (17, ones - 4)]) {
            assert_eq!(steps.get(Value::from_u32(number)), Some(step), "v{number}");
        }
        for number in [0, 1, 4, 5, 7, 13, 14, 15] {
            assert_eq!(steps.get(Value::from_u32(number)), None, "v{number}");
        }
        let first = recurrences.of_value(view, Value::from_u32(11)).expect("it grows").start;
        let term = |number| Sum::of_term(Term::Value(Value::from_u32(number)), 1, types::I32.bits());
        assert_eq!(first, term(1).times(3).offset(9).minus(&term(0)).expect("few terms"));
    }

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
        let recurrences = Recurrences::of(View { ctx: &ctx, forest: &forest }, lp);
        let found: Vec<_> = recurrences.inductions().iter().map(|one| one.recurrence.step.as_constant()).collect();
        let steps = [u128::from(-5_i32 as u32), 5].map(Some);
        assert_eq!(found, steps, "the third parameter gets the next value of the first");
    }
}
