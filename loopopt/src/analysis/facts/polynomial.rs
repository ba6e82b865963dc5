//! Values that are a polynomial of the iteration number, and how often a loop has run when it is left.
//!
//! ```text
//! block1(v1: i64, v2: i64):       v1: v0 + k            v2: v9 + v0 · k + k(k-1)/2
//!     v3 = iadd v2, v1            v3: v9 + v0 + (v0 + 1) · k + k(k-1)/2
//!     v4 = iadd v1, 1
//!     v5 = icmp ult v4, v8        the exit is taken in iteration v8 - 1 - v0
//!     brif v5, block1(v4, v3), block2(v3)
//! ```
//!
//! A polynomial is written with the binomials `k over 0`, `k over 1`, …, as `c0 + c1 · k + c2 · k(k-1)/2 + c3 · k(k-1)(k-2)/6`: the
//! binomials are integers, so that all of it is right modulo two to the bits of the value, and what is added up in each iteration shifts
//! by one place: if `v` grows by `a + b · k + …`, then it is `start + a · k + b · k(k-1)/2 + …`, since the sum of the first `k` binomials `j over n` is
//! `k over n + 1`. A product of two polynomials is one again.
//!
//! What is extended is a polynomial if it does not wrap before it is ([`crate::analysis::facts::nowrap`]).
//!
//! # References
//!
//! Bachmann, Wang, Zima: "Chains of recurrences", 1994. LLVM `ScalarEvolution` (`SCEVAddRecExpr::evaluateAtIteration`).

use crate::analysis::cfg::edges::Edge;
use crate::analysis::cfg::loops::Loop;
use crate::analysis::facts::known::Place;
use crate::analysis::facts::nowrap::Extents;
use crate::analysis::inst::number::constant_of;
use crate::analysis::scev::linear_expr::Sum;
use crate::analysis::scev::requirement::Requirement;
use crate::analysis::scev::symbolic_count::Counted;
use crate::analysis::scev::view::View;
use crate::fault::fault;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::ir::{Inst, Opcode, Value, ValueDef};
use smallvec::{SmallVec, smallvec};

/// The highest power of the iteration number. 3: a sum of squares.
const MAX_DEGREE: usize = 3;

/// Values of one loop that are looked at. 256: more than a loop has that is nothing but a formula.
const BUDGET: usize = 256;

/// Values that follow from each other: a bound on recursion.
const MAX_DEPTH: usize = 24;

/// Instructions of a product of two coefficients. 32: that of two sums of four terms has 9. A product of a product by itself would be twice as large each time.
const MAX_PRODUCT: usize = 32;

/// Questions that may be asked about what does not wrap.
const MAX_QUESTIONS: usize = 8;

/// `c0 + c1 · k + c2 · k(k-1)/2 + …` in iteration `k`, the first being number 0, modulo two to the bits of the sums.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Polynomial {
    /// At least one; of more, the last is not 0.
    coefficients: SmallVec<[Sum; 2]>,
}

impl Polynomial {
    fn constant(sum: Sum) -> Self {
        Self { coefficients: smallvec![sum] }
    }

    /// What has these coefficients, of which there is at least one.
    fn new(mut coefficients: SmallVec<[Sum; 2]>) -> Option<Self> {
        while coefficients.len() > 1 && coefficients.last().and_then(Sum::as_constant) == Some(0) {
            coefficients.pop();
        }
        (coefficients.len() <= MAX_DEGREE + 1).then_some(Self { coefficients })
    }

    /// The factors of the binomials, from `k over 0` on.
    pub fn coefficients(&self) -> &[Sum] {
        &self.coefficients
    }

    /// The bits of the value.
    pub fn bits(&self) -> u32 {
        self.coefficients[0].bits()
    }

    /// What it is in iteration `number`, if that is a sum: because the number is a constant, or the degree is 1 at most.
    pub fn at(&self, number: &Sum) -> Option<Sum> {
        let bits = self.bits();
        match (number.as_constant(), &self.coefficients[..]) {
            (_, [constant]) => Some(constant.clone()),
            (Some(number), _) => self.at_constant(number),
            (None, [start, step]) => {
                let number =
                    if number.bits() < bits { number.clone().extended(bits, false) } else { number.reduced(bits)? };
                start.plus(&step.product(&number), 1)
            }
            _ => None,
        }
    }

    /// What it is in an iteration whose number is known. Nothing if that takes numbers of more than 128 bits.
    pub fn at_constant(&self, iteration: u64) -> Option<Sum> {
        let mut total = Sum::constant(0, self.bits());
        let mut binomial = 1_u128;
        for (index, coefficient) in (0_u128..).zip(&self.coefficients) {
            total.add(coefficient, binomial as u64)?;
            let left = u128::from(iteration).saturating_sub(index);
            if usize::try_from(index).ok()? + 1 < self.coefficients.len() {
                binomial = binomial.checked_mul(left)? / (index + 1);
            }
        }
        Some(total)
    }

    fn plus(&self, other: &Self, factor: u64) -> Option<Self> {
        let (all, bits) = (self.coefficients.len().max(other.coefficients.len()), self.bits());
        let get = |one: &Self, index: usize| one.coefficients.get(index).cloned();
        let sums = (0..all).map(|index| {
            let own = get(self, index).unwrap_or_else(|| Sum::constant(0, bits));
            own.plus(&get(other, index).unwrap_or_else(|| Sum::constant(0, bits)), factor)
        });
        Self::new(sums.collect::<Option<_>>()?)
    }

    fn times(&self, factor: u64) -> Option<Self> {
        Self::new(self.coefficients.iter().map(|one| one.times(factor)).collect())
    }

    /// The product, unless it is a long one: `k over 1` times itself is `2 · (k over 2) + (k over 1)`, times `k over 2` it is `3 · (k over 3) + 2 · (k over 2)`.
    fn product(&self, other: &Self) -> Option<Self> {
        let (small, large) =
            if self.coefficients.len() <= other.coefficients.len() { (self, other) } else { (other, self) };
        let product = |a: &Sum, b: &Sum| Some(a.product(b)).filter(|both| both.operations() <= MAX_PRODUCT);
        let scaled =
            |by: &Sum| Self::new(large.coefficients.iter().map(|one| product(one, by)).collect::<Option<_>>()?);
        let first = scaled(&small.coefficients[0])?;
        match &small.coefficients[..] {
            [_] => Some(first),
            [_, by] if large.coefficients.len() <= MAX_DEGREE => {
                let zero = Sum::constant(0, self.bits());
                let mut moved: SmallVec<[Sum; 2]> = smallvec![zero; large.coefficients.len() + 1];
                for (index, one) in large.coefficients.iter().enumerate() {
                    let one = product(one, by)?;
                    moved[index].add(&one, index as u64)?;
                    moved[index + 1].add(&one, index as u64 + 1)?;
                }
                first.plus(&Self::new(moved)?, 1)
            }
            _ => None,
        }
    }

    fn reduced(&self, bits: u32) -> Option<Self> {
        Self::new(self.coefficients.iter().map(|one| one.reduced(bits)).collect::<Option<_>>()?)
    }

    /// What starts at `start` and grows by this in each iteration.
    fn added_up(self, start: Sum) -> Option<Self> {
        let mut coefficients: SmallVec<[Sum; 2]> = smallvec![start];
        coefficients.extend(self.coefficients);
        Self::new(coefficients)
    }
}

/// Finds what the values of one loop are.
pub struct Polynomials<'a> {
    view: View<'a>,
    lp: Loop,
    extents: Extents<'a>,
    found: FxHashMap<Value, Option<Polynomial>>,
    budget: usize,
    /// Whether an extension is one of a sum, and not of the numbers that are added up.
    keeps_extensions: bool,
}

impl<'a> Polynomials<'a> {
    /// For a loop with one entry edge and one back edge.
    pub fn new(view: View<'a>, lp: Loop) -> Self {
        let mut extents = Extents::new(view);
        extents.allow(MAX_QUESTIONS);
        Self { view, lp, extents, found: FxHashMap::default(), budget: BUDGET, keeps_extensions: false }
    }

    /// The same, where extensions of sums stay: on a path that is not taken, what is added up may be far from the number that is extended.
    pub fn keeping_extensions(self, keeps_extensions: bool) -> Self {
        Self { keeps_extensions, ..self }
    }

    /// What `value` is in each iteration that computes it, if it is a polynomial.
    pub fn of(&mut self, value: Value) -> Option<Polynomial> {
        self.find(value, MAX_DEPTH)
    }

    fn find(&mut self, value: Value, depth: usize) -> Option<Polynomial> {
        let func = self.view.func();
        let ty = func.dfg.value_type(value);
        if !ty.is_int() || ty.bits() > 64 {
            return None;
        }
        if let Some(number) = constant_of(func, value) {
            return Some(Polynomial::constant(Sum::constant(number, ty.bits())));
        }
        if self.view.is_from_outside(self.lp, value) {
            return self.view.sum(value).map(Polynomial::constant);
        }
        if let Some(found) = self.found.get(&value) {
            return found.clone();
        }
        if depth == 0 || self.budget == 0 {
            return None;
        }
        self.budget -= 1;
        // What follows from itself is none, except by what is added to it.
        self.found.insert(value, None);
        let found = match func.dfg.value_def(value) {
            ValueDef::Param(..) => self.param(value, depth - 1),
            ValueDef::Result(inst, 0) => self.result(inst, value, depth - 1),
            _ => None,
        };
        self.found.insert(value, found.clone());
        found
    }

    /// A parameter of the header, or of a block that one edge enters.
    fn param(&mut self, param: Value, depth: usize) -> Option<Polynomial> {
        let View { ctx, forest } = self.view;
        let (func, data) = (&ctx.func, forest.data(self.lp));
        let ValueDef::Param(block, index) = func.dfg.value_def(param) else { return None };
        if block != data.header {
            let [only] = forest.edges_into(func, &ctx.cfg, block) else { return None };
            return self.find(only.args(func).nth(index)?.as_value()?, depth);
        }
        let ([entry], [back_edge]) = (&data.entries[..], &data.back_edges[..]) else { return None };
        let start = self.view.sum(entry.passed_for(func, param)?)?;
        let grows = self.added_to(param, back_edge.passed_for(func, param)?, depth)?;
        grows.added_up(start)
    }

    /// What is added to `base` to make `value`.
    fn added_to(&mut self, base: Value, value: Value, depth: usize) -> Option<Polynomial> {
        let View { ctx, forest } = self.view;
        let func = &ctx.func;
        if value == base {
            return Some(Polynomial::constant(Sum::constant(0, func.dfg.value_type(value).bits())));
        }
        if depth == 0 || self.budget == 0 || self.view.is_from_outside(self.lp, value) {
            return None;
        }
        self.budget -= 1;
        let depth = depth - 1;
        let inst = match func.dfg.value_def(value) {
            ValueDef::Param(block, index) if block != forest.data(self.lp).header => {
                let [only] = forest.edges_into(func, &ctx.cfg, block) else { return None };
                return self.added_to(base, only.args(func).nth(index)?.as_value()?, depth);
            }
            ValueDef::Result(inst, 0) => inst,
            _ => return None,
        };
        let args = func.dfg.inst_args(inst);
        match (func.dfg.insts[inst].opcode(), args) {
            (Opcode::Iadd, &[a, b]) => {
                let (added, rest) = match self.added_to(base, a, depth) {
                    Some(added) => (added, b),
                    None => (self.added_to(base, b, depth)?, a),
                };
                added.plus(&self.find(rest, depth)?, 1)
            }
            (Opcode::Isub, &[a, b]) => self.added_to(base, a, depth)?.plus(&self.find(b, depth)?, u64::MAX),
            _ => None,
        }
    }

    fn result(&mut self, inst: Inst, value: Value, depth: usize) -> Option<Polynomial> {
        let func = self.view.func();
        let bits = func.dfg.value_type(value).bits();
        let args = func.dfg.inst_args(inst);
        match (func.dfg.insts[inst].opcode(), args) {
            (Opcode::Iadd, &[a, b]) => self.find(a, depth)?.plus(&self.find(b, depth)?, 1),
            (Opcode::Isub, &[a, b]) => self.find(a, depth)?.plus(&self.find(b, depth)?, u64::MAX),
            (Opcode::Imul, &[a, b]) => self.find(a, depth)?.product(&self.find(b, depth)?),
            (Opcode::Ishl, &[a, b]) => {
                let by = constant_of(func, b)? & u64::from(bits - 1);
                self.find(a, depth)?.times(1 << by)
            }
            (Opcode::Ineg, &[a]) => self.find(a, depth)?.times(u64::MAX),
            (Opcode::Bnot, &[a]) => {
                let ones = Polynomial::constant(Sum::constant(u64::MAX, bits));
                ones.plus(&self.find(a, depth)?, u64::MAX)
            }
            (Opcode::Ireduce, &[a]) => self.find(a, depth)?.reduced(bits),
            (Opcode::Uextend, &[a]) => self.extended((inst, a, false), bits),
            (Opcode::Sextend, &[a]) => self.extended((inst, a, true), bits),
            _ => None,
        }
    }

    /// A number that is extended, which is one of extended numbers if it does not wrap.
    fn extended(&mut self, (inst, number, signed): (Inst, Value, bool), bits: u32) -> Option<Polynomial> {
        let (view, func) = (self.view, self.view.func());
        if self.keeps_extensions {
            return None;
        }
        let exact = self.extents.exact(&view.sum(number)?, signed, Place::Before(inst)).ok()?;
        let mut total = Polynomial::constant(Sum::constant(exact.constant.cast_unsigned(), 64));
        for (leaf, factor) in exact.terms {
            let one = if view.is_from_outside(self.lp, leaf.value) {
                Polynomial::constant(Sum::of_leaf(func, leaf.value).extended(64, leaf.signed))
            } else {
                let counter = self.extents.counter(leaf.value, leaf.signed).filter(|counter| counter.lp == self.lp)?;
                let start = view.sum(counter.start)?.extended(64, leaf.signed);
                Polynomial::constant(Sum::constant(counter.step.cast_unsigned(), 64)).added_up(start)?
            };
            total = total.plus(&one, factor.cast_unsigned())?;
        }
        total.reduced(bits)
    }
}

/// In which iteration a loop is left, if it is left by a certain exit.
#[derive(Clone, Debug)]
pub struct ExitIteration {
    /// Its number, that of the first one being 0: as an integer, not modulo anything.
    pub number: Sum,
    /// What that rests on: what has to hold before the loop.
    pub requires: Vec<Requirement>,
}

/// Finds the iterations in which a loop is left.
pub struct ExitIterations<'a> {
    view: View<'a>,
    counted: Counted,
}

impl<'a> ExitIterations<'a> {
    /// Of this loop.
    pub fn new(view: View<'a>, lp: Loop) -> Self {
        Self { view, counted: Counted::new(view, lp) }
    }

    /// The iteration that leaves the loop by `exit`, if its test tells.
    pub fn at(&self, exit: Edge) -> Option<ExitIteration> {
        let iterations = self.counted.at_exit(self.view.func(), exit)?;
        let (mut number, requires) = (iterations.times?.number(), iterations.needs.into_vec());
        if fault!(OneIterationOff) {
            number = number.offset(1);
        }
        Some(ExitIteration { number, requires })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{block, context, forest};

    /// Against a simulation of the same loop.
    #[test]
    fn polynomials_are_what_the_loop_computes() {
        let ctx = context(
            "function %f(i64, i64) -> i64 {
            block0(v0: i64, v1: i64):
                v2 = iconst.i64 3
                v3 = iconst.i64 1
                v4 = iconst.i64 0
                jump block1(v2, v4, v4, v2)
            block1(v5: i64, v6: i64, v7: i64, v8: i64):
                v9 = imul v5, v5
                v10 = iadd v6, v9
                v11 = isub v7, v5
                v12 = imul v8, v5
                v13 = iadd v5, v3
                v14 = icmp ult v13, v1
                brif v14, block1(v13, v10, v11, v12), block2(v10)
            block2(v15: i64):
                return v15
            }",
        );
        let forest = forest(&ctx);
        let lp = forest.loop_of_header(block(1)).expect("a loop");
        let mut polynomials = Polynomials::new(View { ctx: &ctx, forest: &forest }, lp);
        let mut of = |number| polynomials.of(Value::from_u32(number));
        let (mut counter, mut squares, mut less) = (3_u64, 0_u64, 0_u64);
        let found = [5, 6, 7, 9].map(|number| of(number).expect("a polynomial"));
        for iteration in 0..20 {
            let is = found.iter().map(|one| one.at_constant(iteration).and_then(|sum| sum.as_constant()));
            assert!(is.eq([counter, squares, less, counter * counter].map(Some)), "in iteration {iteration}");
            squares += counter * counter;
            less = less.wrapping_sub(counter);
            counter += 1;
        }
        assert_eq!(of(8), None, "a factorial is none");
    }
}
