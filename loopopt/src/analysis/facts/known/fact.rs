//! Facts, and what branches and checks say.

use super::Conditions;
use crate::analysis::cfg::edges::Edge;
use crate::analysis::facts::condition::{Part, parts};
use crate::analysis::scev::linear_expr::Term as Summand;
use crate::analysis::scev::value_range::{Number, Term};
use crate::analysis::scev::wrap_arc::{interval, is_signed};
use crate::claim::asserted;
use crate::fault::fault;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Inst, InstructionData, Opcode, Value};
use smallvec::SmallVec;

/// Something that holds: `left - right` is at most `most`, or, if they `differ`, is not `most`. Nothing stands for 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::analysis) struct Fact {
    pub(in crate::analysis) left: Option<Term>,
    pub(in crate::analysis) right: Option<Term>,
    pub(in crate::analysis) most: i128,
    pub(in crate::analysis) differ: bool,
    /// The branch or the check that it is known from.
    pub(in crate::analysis) source: Inst,
}

impl Fact {
    /// Whether this says all that `other` says.
    pub(super) fn says(&self, other: &Self) -> bool {
        let is_as_strong = if self.differ { self.most == other.most } else { self.most <= other.most };
        (self.left, self.right, self.differ) == (other.left, other.right, other.differ) && is_as_strong
    }
}

impl Conditions<'_> {
    /// What taking this edge says.
    pub(super) fn add_edge(&mut self, edge: Edge, facts: &mut Vec<Fact>) {
        let source = edge.branch;
        match self.func.dfg.insts[source] {
            InstructionData::Brif { arg, .. } => {
                self.add_truth((arg, edge.slot == 0), source, facts);
            }
            InstructionData::BranchTable { arg, table, .. } => {
                let entries = self.func.dfg.jump_tables[table].as_slice().len() as i128;
                let Some(Number { term, offset }) = self.numbers.of(arg, false) else { return };
                // The default comes first.
                match edge.slot {
                    0 => facts.push(at_most((None, term), offset - entries, source)),
                    slot => {
                        let number = slot as i128 - 1;
                        facts.push(at_most((term, None), number - offset, source));
                        facts.push(at_most((None, term), offset - number, source));
                    }
                }
            }
            _ => {}
        }
    }

    /// What is known once `inst` has run.
    pub(super) fn add_check(&mut self, inst: Inst, facts: &mut Vec<Fact>) {
        let func = self.func;
        let opcode = func.dfg.insts[inst].opcode();
        use Opcode::{Sdiv, Srem, Trapnz, Trapz, UaddOverflowTrap, Udiv, Urem};
        if !matches!(opcode, Trapz | Trapnz | Udiv | Urem | Sdiv | Srem | UaddOverflowTrap)
            || asserted(func, inst).is_some()
        {
            return;
        }
        let args = func.dfg.inst_args(inst);
        match opcode {
            Opcode::Trapz => self.add_truth((args[0], true), inst, facts),
            Opcode::Trapnz => self.add_truth((args[0], false), inst, facts),
            Opcode::Udiv | Opcode::Urem | Opcode::Sdiv | Opcode::Srem => {
                self.add_value((args[1], true), inst, facts);
            }
            Opcode::UaddOverflowTrap => {
                let sum = func.dfg.first_result(inst);
                for (added, other) in [(args[0], args[1]), (args[1], args[0])] {
                    let numbers = [sum, added, other].map(|value| self.numbers.of(value, false));
                    let [Some(sum), Some(added), Some(other)] = numbers else { return };
                    // As integers, the sum is above each of them by the other.
                    let (least, largest) = self.numbers.bounds(other.term);
                    let above = added.offset - sum.offset;
                    facts.push(at_most((sum.term, added.term), above + other.offset + largest, inst));
                    facts.push(at_most((added.term, sum.term), -above - other.offset - least, inst));
                }
            }
            _ => {}
        }
    }

    /// What it says that `value` is zero or not, as `(value, is not zero)`.
    fn add_truth(&mut self, (value, truth): (Value, bool), source: Inst, facts: &mut Vec<Fact>) {
        let parts = parts(self.func, (value, truth), false);
        for &part in &parts {
            match part {
                Part::Compares(cond, sides) => self.add_comparison(cond, sides, source, facts),
                Part::Number(value, truth) => self.add_value((value, truth), source, facts),
            }
        }
        // Another condition may be made of this one.
        if !parts.contains(&Part::Number(value, truth)) {
            self.add_value((value, truth), source, facts);
        }
    }

    /// That `value` is zero or not.
    fn add_value(&mut self, (value, truth): (Value, bool), source: Inst, facts: &mut Vec<Fact>) {
        let Some(Number { term, offset }) = self.numbers.of(value, false) else { return };
        match truth {
            true => facts.push(at_most((None, term), offset - 1, source)),
            false => facts.push(at_most((term, None), -offset, source)),
        }
    }

    fn add_comparison(&mut self, cond: IntCC, [left, right]: [Value; 2], source: Inst, facts: &mut Vec<Fact>) {
        for signed in [false, true] {
            let (Some(left), Some(right)) = (self.numbers.of(left, signed), self.numbers.of(right, signed)) else {
                return;
            };
            let difference = right.offset - left.offset;
            let below = |most| at_most((left.term, right.term), difference + most, source);
            let above = |most| at_most((right.term, left.term), most - difference, source);
            match order(cond) {
                Order::Equal => facts.extend([below(0), above(0)]),
                Order::NotEqual => facts.push(Fact { differ: true, ..below(0) }),
                Order::Less { with_sign, most } if with_sign == signed => self.add_order(below(most), facts),
                Order::Greater { with_sign, most } if with_sign == signed => self.add_order(above(most), facts),
                Order::Less { .. } | Order::Greater { .. } => {}
            }
        }
    }

    /// That one integer is at most another. If that is the smaller of two, it is at most both; if it is the larger of two, both
    /// are. If it is a sum of what is never negative, and at most a constant, all that is added up is.
    fn add_order(&mut self, fact: Fact, facts: &mut Vec<Fact>) {
        facts.push(fact);
        if let (Some(term), None) = (fact.left, fact.right) {
            for (number, factor) in self.added_up(term) {
                let most = fact.most.div_euclid(factor.into()) - number.offset;
                facts.push(Fact { left: number.term, most, ..fact });
            }
        }
        for (term, is_left) in [(fact.left, true), (fact.right, false)] {
            let Some((args, signed)) = term.and_then(|term| self.choice(term, is_left)) else { continue };
            for number in args.into_iter().filter_map(|arg| self.numbers.of(arg, signed)) {
                facts.push(match is_left {
                    true => Fact { left: number.term, most: fact.most - number.offset, ..fact },
                    false => Fact { right: number.term, most: fact.most + number.offset, ..fact },
                });
            }
        }
    }

    /// The numbers that are never negative and that a term is the sum of, each with its factor, if that cannot wrap.
    fn added_up(&mut self, term: Term) -> SmallVec<[(Number, u64); 2]> {
        let sum = self.numbers.sum(term.root);
        if term.signed || term.constant != 0 || sum.terms().len() < 2 || !sum.never_wraps() {
            return SmallVec::new();
        }
        let extended = |(summand, factor): &(Summand, u64)| match summand {
            Summand::Extended { signed: false, sum } => Some(((**sum).clone(), *factor)),
            _ => None,
        };
        let parts: SmallVec<[_; 2]> = sum.terms().iter().filter_map(extended).collect();
        parts.into_iter().map(|(sum, factor)| (self.numbers.of_sum(sum)[0], factor)).collect()
    }

    /// What a term is the larger of, or the smaller of, and whether that is with sign.
    fn choice(&self, term: Term, larger: bool) -> Option<([Value; 2], bool)> {
        let value = self.numbers.value(term.root).filter(|_| term.constant == 0)?;
        let inst = self.func.dfg.value_def(value).inst()?;
        let signed = match (self.func.dfg.insts[inst].opcode(), larger) {
            (Opcode::Umax, true) | (Opcode::Umin, false) => false,
            (Opcode::Smax, true) | (Opcode::Smin, false) => true,
            _ => return None,
        };
        let is_read_so = signed == term.signed || (!term.signed && self.numbers.is_never_negative(term));
        let [a, b] = *self.func.dfg.inst_args(inst) else { return None };
        is_read_so.then_some(([a, b], signed))
    }
}

fn at_most((left, right): (Option<Term>, Option<Term>), most: i128, source: Inst) -> Fact {
    Fact { left, right, most, differ: false, source }
}

/// What a condition says of its operands as integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::analysis) enum Order {
    Equal,
    NotEqual,
    /// Left minus right is at most `most`.
    Less {
        with_sign: bool,
        most: i128,
    },
    /// Right minus left is at most `most`.
    Greater {
        with_sign: bool,
        most: i128,
    },
}

/// What `cond` says.
pub(in crate::analysis) fn order(cond: IntCC) -> Order {
    let with_sign = is_signed(cond);
    match interval(cond) {
        (None, Some(0)) if fault!(OrEqual) => Order::Less { with_sign, most: -1 },
        (None, Some(end)) => Order::Less { with_sign, most: end.into() },
        (Some(end), None) => Order::Greater { with_sign, most: (-end).into() },
        (Some(0), _) => Order::Equal,
        _ => Order::NotEqual,
    }
}
