//! Sums and requirements as terms of SMT-LIB.

use super::formulas::{Formula, NARROW};
use super::shapes::Widths;
use crate::analysis::inst::number::mask;
use crate::analysis::scev::linear_expr::{Sum, Term};
use crate::analysis::scev::requirement::Requirement;
use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::Value;
use cranelift_codegen::ir::condcodes::IntCC;
use std::collections::BTreeMap;

/// Writes formulas about values, each of some width.
pub(super) struct Logic {
    pub(super) bits: fn(Value, Widths) -> u32,
    pub(super) widths: Widths,
    pub(super) variables: BTreeMap<String, u32>,
}

impl Logic {
    pub(super) fn new(widths: Widths) -> Self {
        Self {
            bits: |value, widths| if value.index() < NARROW { widths.narrow } else { widths.wide },
            widths,
            variables: BTreeMap::new(),
        }
    }

    /// A number of so many bits.
    pub(super) fn any(&mut self, name: &str, bits: u32) -> String {
        self.variables.insert(name.to_owned(), bits);
        name.to_owned()
    }

    pub(super) fn sum(&mut self, sum: &Sum) -> String {
        let bits = sum.bits();
        let mut text = constant(sum.constant_part(), bits);
        for (term, factor) in sum.terms() {
            text = format!("(bvadd {text} (bvmul {} {}))", constant(*factor, bits), self.term(term, bits));
        }
        text
    }

    fn term(&mut self, term: &Term, bits: u32) -> String {
        match term {
            Term::Value(value) => {
                let own = (self.bits)(*value, self.widths);
                let name = self.any(&value.to_string(), own);
                if own > bits { format!("((_ extract {} 0) {name})", bits - 1) } else { name }
            }
            Term::Slot(slot) => self.any(&slot.to_string(), bits),
            Term::Extended { signed, sum } => extended(&self.sum(sum), bits - sum.bits(), *signed),
            Term::Quotient { sum, by } => format!("(bvudiv {} {})", self.sum(sum), constant(*by, bits)),
            Term::Product(a, b) => format!("(bvmul {} {})", self.sum(a), self.sum(b)),
        }
    }

    /// The terms and the constant as integers, in so many bits more.
    pub(super) fn integer(&mut self, sum: &Sum, more: u32) -> String {
        let wide = sum.bits() + more;
        let mut text = constant(sum.constant_part(), wide);
        for (term, factor) in sum.terms() {
            let term = extended(&self.term(term, sum.bits()), more, false);
            text = format!("(bvadd {text} (bvmul {} {term}))", constant(*factor, wide));
        }
        text
    }

    pub(super) fn requirement(&mut self, requirement: &Requirement) -> String {
        match requirement {
            Requirement::Compare { cond, left, right } => compare(*cond, &self.sum(left), &self.sum(right)),
            Requirement::Fits { left, right } => {
                let bits = left.bits();
                let [left, right] = [left, right].map(|sum| extended(&self.sum(sum), bits, false));
                format!("(= ((_ extract {} {bits}) (bvmul {left} {right})) {})", 2 * bits - 1, constant(0, bits))
            }
        }
    }

    pub(super) fn all(&mut self, required: &[Requirement]) -> String {
        let all: Vec<String> = required.iter().map(|one| self.requirement(one)).collect();
        format!("(and true {})", all.join(" "))
    }

    pub(super) fn formula(self, name: impl Into<String>, given: Vec<String>, follows: String) -> Formula {
        let bits = self.widths.wide;
        Formula { name: name.into(), bits, is_true: true, variables: self.variables, given, follows }
    }
}

pub(super) fn constant(number: u64, bits: u32) -> String {
    format!("(_ bv{} {bits})", if bits < 64 { number & mask(bits) } else { number })
}

pub(super) fn extended(text: &str, more: u32, signed: bool) -> String {
    let how = if signed { "sign_extend" } else { "zero_extend" };
    format!("((_ {how} {more}) {text})")
}

pub(super) fn compare(cond: IntCC, left: &str, right: &str) -> String {
    let name = match cond {
        IntCC::Equal => "=",
        IntCC::NotEqual => "distinct",
        IntCC::UnsignedLessThan => "bvult",
        IntCC::UnsignedLessThanOrEqual => "bvule",
        IntCC::UnsignedGreaterThan => "bvugt",
        IntCC::UnsignedGreaterThanOrEqual => "bvuge",
        IntCC::SignedLessThan => "bvslt",
        IntCC::SignedLessThanOrEqual => "bvsle",
        IntCC::SignedGreaterThan => "bvsgt",
        IntCC::SignedGreaterThanOrEqual => "bvsge",
    };
    format!("({name} {left} {right})")
}
