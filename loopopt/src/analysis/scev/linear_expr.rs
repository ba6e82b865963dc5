//! What an integer is made of: a sum that tells when two addresses are equal, how far apart they can be, and by how much an
//! index grows.
//!
//! `base + uextend(i * 8 + 4)` is the sum of the term `base`, and of the term "the sum `8 * i + 4` in 32 bits, extended".
//! Everything is computed with wraparound in the width of the type, as CLIF does, so that two equal sums are equal addresses
//! whatever overflows. Sums inside extensions are what makes this work for 32-bit WebAssembly, which computes addresses in
//! 32 bits and extends them.
//!
//! # Cost
//!
//! Bounded: a sum looks at 32 instructions and has 8 terms at most. What is beyond that is a term of its own.

mod build;

pub use build::{known, offset};

use crate::analysis::inst::number::{mask, signed};
use cranelift_codegen::ir::{Function, StackSlot, Type, Value};
use smallvec::{SmallVec, smallvec};
use std::fmt;

/// Terms of a sum, those inside extensions not counted. An access `a[i * n + j]` has 3.
const MAX_TERMS: usize = 8;

/// A sum of terms and a constant, modulo two to the number of bits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sum {
    bits: u32,
    constant: u64,
    /// In the order of the terms, each term once, no factor 0. Most sums have one or two.
    terms: SmallVec<[(Term, u64); 2]>,
}

/// What a sum adds up, each with a factor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Term {
    /// A value, modulo two to the number of bits of the sum if its type is wider.
    Value(Value),
    /// The address of a stack slot.
    Slot(StackSlot),
    /// A narrower sum, extended.
    Extended {
        /// Whether by the sign.
        signed: bool,
        /// The narrower sum.
        sum: Box<Sum>,
    },
    /// A sum of as many bits, unsigned, divided by a constant that is not zero. Values are not taken apart into these.
    Quotient {
        /// What is divided.
        sum: Box<Sum>,
        /// The divisor.
        by: u64,
    },
    /// Two sums of as many bits, multiplied. Values are not taken apart into these.
    Product(Box<Sum>, Box<Sum>),
}

impl Sum {
    /// The sum that `value` alone is, whatever it is made of.
    pub fn of_leaf(func: &Function, value: Value) -> Self {
        Self::value(value, func.dfg.value_type(value).bits())
    }

    fn value(value: Value, bits: u32) -> Self {
        Self { bits, constant: 0, terms: smallvec![(Term::Value(value), 1)] }
    }

    /// A constant of so many bits.
    pub fn constant(constant: u64, bits: u32) -> Self {
        Self { bits, constant: constant & mask(bits), terms: SmallVec::new() }
    }

    /// The sum that is `factor` times `term` alone.
    pub fn of_term(term: Term, factor: u64, bits: u32) -> Self {
        let factor = factor & mask(bits);
        Self { bits, constant: 0, terms: if factor == 0 { SmallVec::new() } else { smallvec![(term, factor)] } }
    }

    /// The number that this is, if it is one.
    pub fn as_constant(&self) -> Option<u64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The constant part.
    pub fn constant_part(&self) -> u64 {
        self.constant
    }

    /// The terms, each with its factor.
    pub fn terms(&self) -> &[(Term, u64)] {
        &self.terms
    }

    /// This sum times `factor`.
    pub fn times(&self, factor: u64) -> Self {
        let none = Self::constant(0, self.bits);
        none.plus(self, factor).expect("no more terms than before")
    }

    /// This sum, unsigned, divided by `by`, which is not zero.
    pub fn divided(self, by: u64) -> Self {
        match (by, self.as_constant()) {
            (1, _) => self,
            (_, Some(constant)) => Self::constant(constant / by, self.bits),
            (_, None) => Self::of_term(Term::Quotient { by, sum: Box::new(self.clone()) }, 1, self.bits),
        }
    }

    /// This sum times `other`, which has as many bits.
    pub fn product(&self, other: &Self) -> Self {
        match (self.as_constant(), other.as_constant()) {
            (Some(factor), _) => other.times(factor),
            (None, Some(factor)) => self.times(factor),
            (None, None) => {
                let (a, b) = if self <= other { (self, other) } else { (other, self) };
                Self::of_term(Term::Product(Box::new(a.clone()), Box::new(b.clone())), 1, self.bits)
            }
        }
    }

    /// The largest number that this can be as an unsigned one, if it is sure not to wrap; the largest of its type otherwise.
    pub fn most(&self) -> u64 {
        let [added, taken] = self.most_added_or_taken_away();
        added.or(taken.map(|_| self.constant)).unwrap_or(mask(self.bits))
    }

    /// A number that this is at least as an unsigned one.
    pub fn least(&self) -> u64 {
        match self.most_added_or_taken_away() {
            [Some(_), _] => self.constant,
            [None, taken] => taken.map_or(0, |most| self.constant - most),
        }
    }

    /// Whether all terms, as unsigned numbers, and the constant are sure to add up without wraparound.
    pub fn never_wraps(&self) -> bool {
        self.most_added_or_taken_away()[0].is_some()
    }

    /// The largest number that the terms, as unsigned numbers, and the constant can add up to, if that fits; and, if this is the constant less something that
    /// is never larger, the largest number that this can be.
    fn most_added_or_taken_away(&self) -> [Option<u64>; 2] {
        let ones = mask(self.bits);
        let term_most = |term: &Term| match term {
            Term::Extended { signed: false, sum } => sum.most(),
            Term::Quotient { sum, by } => sum.most() / by,
            Term::Product(a, b) => a.most().checked_mul(b.most()).map_or(ones, |most| most.min(ones)),
            Term::Value(_) | Term::Slot(_) | Term::Extended { .. } => ones,
        };
        let [mut added, mut taken] = [Some(self.constant), Some(0_u64)];
        for (term, factor) in &self.terms {
            let most = term_most(term);
            let plus = |total: Option<u64>, factor: u64| total?.checked_add(most.checked_mul(factor)?);
            added = plus(added, *factor);
            taken = plus(taken, factor.wrapping_neg() & ones);
        }
        [added.filter(|most| *most <= ones), taken.filter(|most| *most <= self.constant)]
    }

    /// The type of this number.
    pub fn ty(&self) -> Type {
        Type::int(self.bits as u16).expect("sums have the bits of an integer type")
    }

    /// This sum and `offset`.
    pub fn offset(mut self, offset: i64) -> Self {
        self.constant = self.constant.wrapping_add_signed(offset) & mask(self.bits);
        self
    }

    /// This sum minus `other`. Nothing if it has too many terms.
    pub fn minus(&self, other: &Self) -> Option<Self> {
        self.plus(other, u64::MAX)
    }

    /// This sum and `factor` times `other`. Nothing if it has too many terms.
    pub fn plus(&self, other: &Self, factor: u64) -> Option<Self> {
        let mut sum = self.clone();
        sum.add(other, factor)?;
        Some(sum)
    }

    /// Adds `factor` times `other`. Nothing if it has too many terms then.
    pub fn add(&mut self, other: &Self, factor: u64) -> Option<()> {
        for (term, count) in &other.terms {
            self.add_term(term, *count, factor);
        }
        self.add_constant(other.constant, factor)
    }

    /// The same with a sum that is not needed any more.
    fn add_owned(&mut self, other: Self, factor: u64) -> Option<()> {
        if self.terms.is_empty() && factor == 1 && self.bits == other.bits {
            self.terms = other.terms;
        } else {
            other.terms.iter().for_each(|(term, count)| self.add_term(term, *count, factor));
        }
        self.add_constant(other.constant, factor)
    }

    /// Adds `factor` times `count` times `term`.
    fn add_term(&mut self, term: &Term, count: u64, factor: u64) {
        let mask = mask(self.bits);
        let count = count.wrapping_mul(factor) & mask;
        match self.terms.binary_search_by(|(own, _)| own.cmp(term)) {
            Ok(at) => {
                let own = &mut self.terms[at].1;
                *own = own.wrapping_add(count) & mask;
                if *own == 0 {
                    self.terms.remove(at);
                }
            }
            Err(at) if count != 0 => self.terms.insert(at, (term.clone(), count)),
            Err(_) => {}
        }
    }

    /// Adds `factor` times `constant`. Nothing if there are too many terms.
    fn add_constant(&mut self, constant: u64, factor: u64) -> Option<()> {
        self.constant = self.constant.wrapping_add(constant.wrapping_mul(factor)) & mask(self.bits);
        (self.terms.len() <= MAX_TERMS).then_some(())
    }

    /// The same in fewer bits, or in as many.
    pub fn reduced(&self, bits: u32) -> Option<Self> {
        let mut reduced = Self::constant(self.constant, bits);
        for (term, count) in &self.terms {
            let one = match term {
                // What was extended from at least as many bits is itself again.
                Term::Extended { sum, .. } if sum.bits >= bits => sum.reduced(bits)?,
                // There is no instruction that gives fewer bits of an address.
                Term::Quotient { .. } | Term::Slot(_) if bits < self.bits => return None,
                Term::Product(a, b) => a.reduced(bits)?.product(&b.reduced(bits)?),
                _ => Self { bits, constant: 0, terms: smallvec![(term.clone(), 1)] },
            };
            reduced.add(&one, *count)?;
        }
        Some(reduced)
    }

    /// The same in more bits, or in as many.
    pub fn extended(self, bits: u32, with_sign: bool) -> Self {
        if bits == self.bits {
            return self;
        }
        if self.terms.is_empty() {
            let constant = if with_sign { signed(self.constant, self.bits).cast_unsigned() } else { self.constant };
            return Self::constant(constant, bits);
        }
        Self { bits, constant: 0, terms: smallvec![(Term::Extended { signed: with_sign, sum: Box::new(self) }, 1)] }
    }

    /// How many instructions compute it, constants not counted.
    pub fn operations(&self) -> usize {
        let terms = self.terms.iter().map(|(term, factor)| {
            let is_plain = *factor == 1 || *factor == mask(self.bits);
            let own = match term {
                Term::Value(_) => 0,
                Term::Slot(_) => 1,
                Term::Extended { sum, .. } | Term::Quotient { sum, .. } => 1 + sum.operations(),
                Term::Product(a, b) => 1 + a.operations() + b.operations(),
            };
            own + usize::from(!is_plain)
        });
        let added = (self.terms.len() + usize::from(self.constant != 0)).saturating_sub(1);
        terms.sum::<usize>() + added
    }

    /// The number of bits of the address.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The stack slot that this is an address in, if it is one of a single slot.
    pub fn slot(&self) -> Option<StackSlot> {
        let mut slots = self.terms.iter().filter_map(|(term, count)| match term {
            Term::Slot(slot) => Some((*slot, *count)),
            _ => None,
        });
        match (slots.next(), slots.next()) {
            (Some((slot, 1)), None) => Some(slot),
            _ => None,
        }
    }

    /// Calls `visit` with each value in the sum.
    pub fn each_value(&self, visit: &mut dyn FnMut(Value)) {
        for (term, _) in &self.terms {
            match term {
                Term::Value(value) => visit(*value),
                Term::Slot(_) => {}
                Term::Extended { sum, .. } | Term::Quotient { sum, .. } => sum.each_value(visit),
                Term::Product(a, b) => {
                    a.each_value(visit);
                    b.each_value(visit);
                }
            }
        }
    }

    /// Every number that this minus `other` can be, modulo two to the number of bits, if these are few.
    ///
    /// Two if they differ by a constant inside an extension: `uextend(x + 8) - uextend(x)` is 8, or 8 less than the
    /// wraparound.
    pub fn differences(&self, other: &Self) -> Option<Vec<u64>> {
        if self.bits != other.bits {
            return None;
        }
        // That of accesses next to each other, of which there are many.
        if self.terms == other.terms {
            return Some(vec![self.constant.wrapping_sub(other.constant) & mask(self.bits)]);
        }
        let difference = self.minus(other)?;
        match &difference.terms[..] {
            [] => Some(vec![difference.constant]),
            [(Term::Extended { signed: s, sum: a }, count), (Term::Extended { signed: t, sum: b }, opposite)]
                if s == t && a.bits == b.bits && count.wrapping_add(*opposite) & mask(self.bits) == 0 =>
            {
                let inner = a.minus(b).filter(|inner| inner.terms.is_empty())?.constant;
                let wrapped = inner.wrapping_sub(mask(a.bits)).wrapping_sub(1);
                let total = |inner: u64| difference.constant.wrapping_add(inner.wrapping_mul(*count)) & mask(self.bits);
                let mut both = vec![total(inner), total(wrapped)];
                both.sort_unstable();
                Some(both)
            }
            _ => None,
        }
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let constant = signed(self.constant, self.bits);
        if self.terms.is_empty() {
            return write!(f, "{constant}");
        }
        for (index, (term, factor)) in self.terms.iter().enumerate() {
            let factor = signed(*factor, self.bits);
            match (index, factor < 0) {
                (0, true) => f.write_str("-")?,
                (0, false) => {}
                (_, true) => f.write_str(" - ")?,
                (_, false) => f.write_str(" + ")?,
            }
            if factor.unsigned_abs() != 1 {
                write!(f, "{} * ", factor.unsigned_abs())?;
            }
            write!(f, "{term}")?;
        }
        match constant {
            0 => Ok(()),
            _ if constant < 0 => write!(f, " - {}", constant.unsigned_abs()),
            _ => write!(f, " + {constant}"),
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => write!(f, "{value}"),
            Self::Slot(slot) => write!(f, "{slot}"),
            Self::Extended { signed: false, sum } => write!(f, "unsigned({sum})"),
            Self::Extended { signed: true, sum } => write!(f, "signed({sum})"),
            Self::Quotient { sum, by } => write!(f, "({sum}) / {by}"),
            Self::Product(a, b) => write!(f, "({a}) * ({b})"),
        }
    }
}

/// What a sum is made of, for those who ask what it can be.
impl Sum {
    /// This sum without its constant, and the constant.
    pub(in crate::analysis) fn split_constant(self) -> (Self, u64) {
        (Self { constant: 0, ..self }, self.constant)
    }

    /// The sum that this is if each of its values is what `leaf` says, in the bits of that value.
    pub(in crate::analysis) fn substituted(&self, leaf: &mut dyn FnMut(Value) -> Option<Self>) -> Option<Self> {
        let mut total = Self::constant(self.constant, self.bits);
        for (term, count) in &self.terms {
            let one = match term {
                Term::Value(value) => leaf(*value)?.reduced(self.bits)?,
                Term::Slot(_) => Self { bits: self.bits, constant: 0, terms: smallvec![(term.clone(), 1)] },
                Term::Extended { signed, sum } => sum.substituted(leaf)?.extended(self.bits, *signed),
                Term::Quotient { sum, by } => sum.substituted(leaf)?.divided(*by),
                Term::Product(a, b) => a.substituted(leaf)?.product(&b.substituted(leaf)?),
            };
            total.add(&one, *count)?;
        }
        Some(total)
    }
}

/// Whether `size` bytes at one address and `other_size` bytes at another are disjoint if `difference`, modulo two to `bits`, is
/// what the first address is above the second.
pub fn are_disjoint(difference: u64, bits: u32, size: u32, other_size: u32) -> bool {
    let below = difference.wrapping_neg() & mask(bits);
    difference >= u64::from(other_size) && below >= u64::from(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::all_insts;
    use crate::testing::context;

    /// The addresses of the loads of a function, in order.
    fn addresses(text: &str) -> Vec<Sum> {
        let ctx = context(text);
        let func = &ctx.func;
        let insts = all_insts(func);
        let loads = insts.filter(|&inst| func.dfg.insts[inst].opcode().can_load());
        loads
            .map(|inst| {
                let offset = func.dfg.insts[inst].load_store_offset().expect("a load");
                Sum::of(func, func.dfg.inst_args(inst)[0]).offset(offset.into())
            })
            .collect()
    }

    #[test]
    fn the_same_address_as_two_sums() {
        let sums = addresses(
            "function %f(i64, i32) {
            block0(v0: i64, v1: i32):
                v2 = iconst.i32 3
                v3 = iconst.i32 1
                v4 = iadd v1, v3
                v5 = ishl v4, v2
                v6 = uextend.i64 v5
                v7 = iadd v0, v6
                v8 = load.i64 v7+16
                v9 = iconst.i32 8
                v10 = imul v9, v1
                v11 = iadd v10, v9
                v12 = uextend.i64 v11
                v13 = iadd v12, v0
                v14 = load.i64 v13+16
                v15 = uextend.i64 v10
                v16 = iadd v0, v15
                v17 = load.i64 v16+24
                return
            }",
        );
        assert_eq!(sums[0], sums[1]);
        assert_ne!(sums[0], sums[2], "the constant inside the extension may wrap");
        assert_eq!(sums[0].differences(&sums[2]), Some(vec![0, (1_u64 << 32).wrapping_neg()]));
    }

    #[test]
    fn distances() {
        let sums = addresses(
            "function %f(i64, i64) {
                ss0 = explicit_slot 16
            block0(v0: i64, v1: i64):
                v2 = load.i64 v0+8
                v3 = isub v0, v1
                v4 = load.i64 v3
                v5 = iadd v3, v1
                v6 = load.i64 v5-8
                v7 = stack_addr.i64 ss0+8
                v8 = load.i64 v7
                return
            }",
        );
        assert_eq!(sums[0].differences(&sums[2]), Some(vec![16]));
        assert_eq!(sums[0].differences(&sums[1]), None);
        assert!(sums[3].slot().is_some() && sums[0].slot().is_none());
        assert!(are_disjoint(16, 64, 8, 8) && are_disjoint(8, 64, 8, 8) && !are_disjoint(7, 64, 8, 8));
        assert!(are_disjoint(8_u64.wrapping_neg(), 64, 8, 8) && !are_disjoint(4_u64.wrapping_neg(), 64, 8, 4));
        assert!(!are_disjoint(u64::MAX, 64, 2, 1) && are_disjoint(u64::MAX, 64, 1, 1));
    }

    #[test]
    fn narrow_and_wide() {
        let sums = addresses(
            "function %f(i64, i8) {
            block0(v0: i64, v1: i8):
                v2 = iconst.i8 200
                v3 = uextend.i64 v2
                v4 = iadd v0, v3
                v5 = load.i8 v4
                v6 = load.i8 v0+200
                v7 = sextend.i64 v2
                v8 = iadd v0, v7
                v9 = load.i8 v8
                v10 = uextend.i64 v1
                v11 = ireduce.i8 v10
                v12 = sextend.i64 v11
                v13 = iadd v0, v12
                v14 = load.i8 v13
                v15 = sextend.i64 v1
                v16 = iadd v0, v15
                v17 = load.i8 v16
                return
            }",
        );
        assert_eq!(sums[0], sums[1]);
        assert_eq!(sums[2].differences(&sums[1]), Some(vec![256_u64.wrapping_neg()]));
        assert_eq!(sums[3], sums[4], "what is extended and reduced is itself");
    }
}
