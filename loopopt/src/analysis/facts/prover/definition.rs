//! Goals that follow from the instruction that computes a side.

use super::{Inequality, Prover};
use crate::analysis::facts::known::Spot;
use crate::analysis::inst::number::constant_of;
use crate::analysis::scev::linear_expr::{Sum, Term as Part};
use crate::analysis::scev::value_range::{Number, Term, limits};
use crate::fault::fault;
use cranelift_codegen::ir::{Inst, InstructionData, Opcode, Value, ValueDef};

impl Prover<'_, '_> {
    /// Whether the goal holds for what the definition of a side says of it.
    pub(super) fn by_definition(&mut self, spot: Spot, goal: Inequality, depth: usize) -> bool {
        if let Some(term) = goal.left
            && self.bounds(goal.left).1 < limits(self.conditions.numbers.bits(term.root), term.signed).1
            && goal.right.is_some()
        {
            let largest = self.bounds(goal.left).1;
            if self.prove(spot, Inequality { left: None, most: goal.most - largest, ..goal }, depth) {
                return true;
            }
        }
        let is_plain = |term: &Term| term.constant == 0;
        let left = goal.left.filter(is_plain).and_then(|term| self.definition(term));
        if let Some((inst, signed)) = left
            && self.by_definition_of_left(spot, goal, (inst, signed), depth)
        {
            return true;
        }
        let right = goal.right.filter(is_plain).and_then(|term| self.definition(term));
        if let Some((inst, signed)) = right
            && self.by_definition_of_right(spot, goal, (inst, signed), depth)
        {
            return true;
        }
        self.by_rounding(spot, goal, depth)
            || self.by_clamped_distance(spot, goal, depth)
            || goal.left.is_some_and(|term| !term.signed && self.by_subtraction(spot, goal, term, depth))
    }

    /// Whether the right side is a number rounded down to a multiple of a power of two, and the goal that it is at least a constant,
    /// which holds if that number is at least the next multiple.
    pub(super) fn by_rounding(&mut self, spot: Spot, goal: Inequality, depth: usize) -> bool {
        let func = self.conditions.func;
        let (None, Some(term)) = (goal.left, goal.right) else { return false };
        let value = self.conditions.numbers.value(term.root).filter(|_| term.constant == 0 && !term.signed);
        let Some(InstructionData::Binary { opcode: Opcode::Band, args }) =
            value.and_then(|value| func.dfg.value_def(value).inst()).map(|inst| func.dfg.insts[inst])
        else {
            return false;
        };
        let [a, b] = args.map(|arg| constant_of(func, arg));
        let (Some(mask), rounded) = (a.or(b), if a.is_some() { args[1] } else { args[0] }) else { return false };
        let unit = 1_i128 << mask.trailing_zeros();
        let is_rounding = i128::from(mask) == (1 << self.conditions.numbers.bits(term.root)) - unit;
        let least = (-goal.most).checked_add(unit - 1).map(|least| least / unit * unit);
        let Some(number) = self.conditions.numbers.of(rounded, false).filter(|_| is_rounding) else { return false };
        least.is_some_and(|least| self.prove(spot, Inequality { most: -least, ..goal }.with_right(number), depth))
    }

    /// Whether a side is `a + umin(w, c)`, where `a + w` is a number `b` of fewer parts: if `a` is not above `b`, the distance between them is `w`, and the
    /// sum is between the two, without wraparound.
    fn by_clamped_distance(&mut self, spot: Spot, goal: Inequality, depth: usize) -> bool {
        for (is_left, term) in [(true, goal.left), (false, goal.right)] {
            let Some([a, b]) = term.and_then(|term| self.ends_of_clamped_distance(term)) else { continue };
            let end = if is_left { goal.with_left(b, 0) } else { goal.with_right(a) };
            let is_ahead = |prover: &mut Self| prover.prove(spot, Inequality::of(a, b, 0), depth);
            if self.prove(spot, end, depth) && (fault!(ClampedEitherWay) || is_ahead(self)) {
                return true;
            }
        }
        false
    }

    /// `a` and `b` of such a side.
    fn ends_of_clamped_distance(&mut self, term: Term) -> Option<[Number; 2]> {
        let func = self.conditions.func;
        let numbers = &mut self.conditions.numbers;
        let sum = numbers.sum_of_term(term);
        let bits = sum.bits();
        let values = sum.terms().iter().filter_map(|(part, factor)| match part {
            Part::Value(value) if *factor == 1 => Some(*value),
            _ => None,
        });
        let (distance, args) = values.filter(|_| sum.terms().len() > 1).find_map(|value| {
            let inst = func.dfg.value_def(value).inst()?;
            match func.dfg.insts[inst] {
                InstructionData::Binary { opcode: Opcode::Umin, args } => Some((value, args)),
                _ => None,
            }
        })?;
        let start = sum.minus(&Sum::of_term(Part::Value(distance), 1, bits))?;
        args.into_iter().find_map(|arg| {
            let whole = numbers.sum_of(arg)?;
            let whole = match whole.terms() {
                _ if whole.bits() == bits => &whole,
                // What is wider was extended, and is cut off again.
                [(Part::Extended { signed: false, sum }, 1)] if whole.constant_part() == 0 && sum.bits() == bits => sum,
                _ => return None,
            };
            let end = start.plus(whole, 1).filter(|end| end.terms().len() < whole.terms().len())?;
            Some([start.clone(), end].map(|sum| numbers.of_sum(sum)[usize::from(term.signed)]))
        })
    }

    /// The instruction that computes a term, and whether what it says is to be read with sign.
    fn definition(&self, term: Term) -> Option<(Inst, bool)> {
        let value = self.conditions.numbers.value(term.root)?;
        let ValueDef::Result(inst, 0) = self.conditions.func.dfg.value_def(value) else { return None };
        let is_signed = match self.conditions.func.dfg.insts[inst].opcode() {
            Opcode::Smin | Opcode::Smax => true,
            Opcode::Select => term.signed,
            _ => false,
        };
        // What is never negative is the same in both readings, and then its term is the one without.
        let either = !term.signed && self.conditions.numbers.is_never_negative(term);
        (is_signed == term.signed || either).then_some((inst, is_signed))
    }

    fn by_definition_of_left(
        &mut self,
        spot: Spot,
        goal: Inequality,
        (inst, signed): (Inst, bool),
        depth: usize,
    ) -> bool {
        let func = self.conditions.func;
        let args = func.dfg.inst_args(inst);
        let mut below = |value: Value, by: i128| {
            let Some(number) = self.conditions.numbers.of(value, signed) else { return false };
            self.prove(spot, goal.with_left(number, by), depth)
        };
        match func.dfg.insts[inst].opcode() {
            Opcode::Select => below(args[1], 0) && below(args[2], 0),
            Opcode::Umax | Opcode::Smax => below(args[0], 0) && below(args[1], 0),
            Opcode::Umin | Opcode::Smin | Opcode::Band => below(args[0], 0) || below(args[1], 0),
            Opcode::Urem => below(args[1], -1) || below(args[0], 0),
            Opcode::Udiv | Opcode::Ushr => below(args[0], 0),
            _ => false,
        }
    }

    fn by_definition_of_right(
        &mut self,
        spot: Spot,
        goal: Inequality,
        (inst, signed): (Inst, bool),
        depth: usize,
    ) -> bool {
        let func = self.conditions.func;
        let args = func.dfg.inst_args(inst);
        let mut above = |value: Value| {
            let Some(number) = self.conditions.numbers.of(value, signed) else { return false };
            self.prove(spot, goal.with_right(number), depth)
        };
        match func.dfg.insts[inst].opcode() {
            Opcode::Select => above(args[1]) && above(args[2]),
            Opcode::Umin | Opcode::Smin => above(args[0]) && above(args[1]),
            Opcode::Umax | Opcode::Smax | Opcode::Bor => above(args[0]) || above(args[1]),
            _ => false,
        }
    }

    /// Whether the left side is `a - b - c`, read without sign, which is no more than `a` less the least `b` and `c` if it does
    /// not wrap.
    fn by_subtraction(&mut self, spot: Spot, goal: Inequality, term: Term, depth: usize) -> bool {
        let numbers = &mut self.conditions.numbers;
        let Some((a, b)) = numbers.difference(term.root) else { return false };
        let all = 1_i128 << numbers.bits(term.root);
        let down = match term.constant {
            0 => 0,
            constant => all - i128::from(constant),
        };
        let (Some(a), Some(b)) = (numbers.of(a, false), numbers.of(b, false)) else { return false };
        if down >= all / 2 {
            return false;
        }
        let least = self.bounds(b.term).0 + b.offset;
        self.prove(spot, goal.with_left(a, -least - down), depth)
            && self.prove(spot, Inequality::of(b, a, -down), depth)
    }
}
