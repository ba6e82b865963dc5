//! Goals that follow from the instruction that computes a side.

use super::{Inequality, Prover};
use crate::analysis::facts::known::Spot;
use crate::analysis::inst::number::constant_of;
use crate::analysis::scev::value_range::{Term, limits};
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
