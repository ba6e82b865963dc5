//! What integers are, exactly: a sum modulo a power of two, read with or without sign, and how large it can be.
//!
//! A comparison speaks of exact integers, the operands of which CLIF computes with wraparound. A [`Term`] is such an integer:
//! the sum `root + constant`, wrapped to the width of its type and read with or without sign. Two terms with the same root are
//! a known distance apart if nothing wraps between them.
//!
//! ```text
//! v1 = uload8.i64 v0                  0 ..= 255
//! v2 = iadd_imm v1, 3                 v1 + 3, exactly: it cannot wrap
//! v4 = iadd_imm v3, 3                 a term of its own: v3 + 3 may wrap
//! v6 = uextend.i64 v5                 v5 read without sign
//! ```
//!
//! What an integer can be follows here from its type, from the instructions that compute it, and from what the embedder knows of
//! memory. Nothing depends on where in the function the question is asked.

pub(crate) mod source;

use crate::analysis::inst::number::{mask, signed};
use crate::analysis::scev::linear_expr::{Sum, Term as Part};
use crate::options::Options;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::ir::{Function, Opcode, Type, Value};
use source::{Source, range_of};

/// Instructions in a row through which a range is followed. 4: a byte that is loaded, masked, shifted and extended.
const MAX_DEPTH: usize = 4;

/// A sum without a constant: a number in the list of those that were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::analysis) struct Root(u32);

impl Root {
    /// Its number in the list.
    pub(in crate::analysis) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The exact integer that `root + constant` is, with wraparound and read with or without sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::analysis) struct Term {
    pub(in crate::analysis) root: Root,
    pub(in crate::analysis) signed: bool,
    pub(in crate::analysis) constant: u64,
}

/// A term, or zero, and what is added to it exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::analysis) struct Number {
    pub(in crate::analysis) term: Option<Term>,
    pub(in crate::analysis) offset: i128,
}

/// The least and the largest integer that something can be.
pub(in crate::analysis) type Bounds = (i128, i128);

/// What lies within both.
pub(in crate::analysis) fn common(a: Bounds, b: Bounds) -> Bounds {
    (a.0.max(b.0), a.1.min(b.1))
}

/// What the bits of a value can be, read without sign and with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::analysis) struct Range {
    unsigned: Bounds,
    signed: Bounds,
}

/// All integers of a type with so many bits.
pub(in crate::analysis) fn limits(bits: u32, signed: bool) -> Bounds {
    match signed {
        true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        false => (0, (1 << bits) - 1),
    }
}

impl Range {
    fn full(bits: u32) -> Self {
        Self { unsigned: limits(bits, false), signed: limits(bits, true) }
    }

    fn unsigned(bits: u32, bounds: Bounds) -> Self {
        Self::full(bits).within_unsigned(bounds)
    }

    fn signed(bits: u32, bounds: Bounds) -> Self {
        Self::full(bits).within_signed(bounds)
    }

    fn within_unsigned(mut self, bounds: Bounds) -> Self {
        self.unsigned = common(self.unsigned, bounds);
        if self.unsigned.1 <= self.signed.1 {
            self.signed = common(self.signed, self.unsigned);
        }
        self
    }

    fn within_signed(mut self, bounds: Bounds) -> Self {
        self.signed = common(self.signed, bounds);
        if self.signed.0 >= 0 {
            self.unsigned = common(self.unsigned, self.signed);
        }
        self
    }

    fn join(self, other: Self) -> Self {
        let join = |a: Bounds, b: Bounds| (a.0.min(b.0), a.1.max(b.1));
        Self { unsigned: join(self.unsigned, other.unsigned), signed: join(self.signed, other.signed) }
    }

    /// Read with or without sign.
    pub(in crate::analysis) fn read(self, signed: bool) -> Bounds {
        if signed { self.signed } else { self.unsigned }
    }

    /// What a constant adds to a number of so many bits, if it cannot make it wrap.
    fn without_wrap(self, constant: u64, bits: u32, signed: bool) -> Option<i128> {
        if constant == 0 {
            return Some(0);
        }
        let ((least, largest), bounds) = (limits(bits, signed), self.read(signed));
        let added = i128::from(constant);
        [added, added - (1 << bits)].into_iter().find(|by| bounds.0 + by >= least && bounds.1 + by <= largest)
    }
}

/// What something is: a root, unless it is a constant, and a constant.
type Parts = (Option<Root>, u64);

/// What is known of a root.
struct RootData {
    sum: Sum,
    bits: u32,
    range: Range,
    /// The value that it is, if it is one value in its own width.
    value: Option<Value>,
    /// What it extends, in so many bits, and whether by the sign.
    extends: Option<(Parts, u32, bool)>,
    /// Whether it is what an instruction gives that says nothing of it.
    opaque: bool,
}

/// Roots and values that there is room for at the start: as many as a function with a loop has that is asked about.
const FIRST: usize = 56;

/// All roots that were asked for, and what is known of them.
pub(in crate::analysis) struct Numbers<'f> {
    func: &'f Function,
    options: Option<&'f Options>,
    roots: Vec<RootData>,
    ids: FxHashMap<Sum, Root>,
    /// What values are.
    values: FxHashMap<Value, Parts>,
}

impl<'f> Numbers<'f> {
    pub(in crate::analysis) fn new(func: &'f Function) -> Self {
        Self { func, options: None, roots: Vec::new(), ids: FxHashMap::default(), values: FxHashMap::default() }
    }

    /// From now on, uses what the embedder knows of what is loaded.
    pub(in crate::analysis) fn set_options(&mut self, options: &'f Options) {
        self.options = Some(options);
    }

    /// The sum that `value` is, if its type has at most 64 bits.
    pub(in crate::analysis) fn sum_of(&mut self, value: Value) -> Option<Sum> {
        let (root, constant) = self.parts_of(value)?;
        Some(match root {
            Some(root) => self.sum(root).clone().offset(constant as i64),
            None => Sum::constant(constant, self.func.dfg.value_type(value).bits()),
        })
    }

    /// What `value` is, if its type has at most 64 bits.
    pub(in crate::analysis) fn of(&mut self, value: Value, signed: bool) -> Option<Number> {
        self.of_value_and(value, 0, signed)
    }

    /// What `value` and a constant is, if its type has at most 64 bits.
    pub(in crate::analysis) fn of_value_and(&mut self, value: Value, added: u64, signed: bool) -> Option<Number> {
        let (root, constant) = self.parts_of(value)?;
        let bits = self.func.dfg.value_type(value).bits();
        let constant = constant.wrapping_add(added) & (u64::MAX >> (64 - bits));
        Some(self.of_parts((root, constant), bits, signed))
    }

    fn of_parts(&self, (root, constant): Parts, bits: u32, signed: bool) -> Number {
        match root {
            Some(root) => self.of_term(Term { root, signed, constant }),
            None => Number { term: None, offset: read(constant, bits, signed) },
        }
    }

    fn parts_of(&mut self, value: Value) -> Option<Parts> {
        if let Some(&parts) = self.values.get(&value) {
            return Some(parts);
        }
        if !is_plain(self.func.dfg.value_type(value)) {
            return None;
        }
        let parts = self.parts_of_sum(Sum::of(self.func, value));
        if self.values.is_empty() {
            self.values.reserve(FIRST);
        }
        self.values.insert(value, parts);
        Some(parts)
    }

    fn parts_of_sum(&mut self, sum: Sum) -> Parts {
        let (root, constant) = sum.split_constant();
        ((!root.terms().is_empty()).then(|| self.intern(root)), constant)
    }

    /// What `sum` is, read without sign and with it.
    pub(in crate::analysis) fn of_sum(&mut self, sum: Sum) -> [Number; 2] {
        let bits = sum.bits();
        let parts = self.parts_of_sum(sum);
        [false, true].map(|signed| self.of_parts(parts, bits, signed))
    }

    /// What a term is: constants that cannot make it wrap are taken out of it, and extensions are taken off. Recursive as deep as
    /// sums are nested.
    pub(in crate::analysis) fn of_term(&self, term: Term) -> Number {
        let Term { root, signed, constant } = term;
        let RootData { bits, range, extends, .. } = &self.roots[root.index()];
        let Some(offset) = range.without_wrap(constant, *bits, signed) else {
            return Number { term: Some(term), offset: 0 };
        };
        if let Some((parts, bits, with_sign)) = *extends
            && (signed || !with_sign || range.signed.0 >= 0)
        {
            let inner = self.of_parts(parts, bits, with_sign);
            return Number { offset: inner.offset + offset, ..inner };
        }
        let signed = signed && range.signed.0 < 0;
        Number { term: Some(Term { root, signed, constant: 0 }), offset }
    }

    /// Recursive as deep as sums are nested.
    fn intern(&mut self, sum: Sum) -> Root {
        if let Some(&root) = self.ids.get(&sum) {
            return root;
        }
        if self.roots.is_empty() {
            self.roots.reserve(FIRST);
            self.ids.reserve(FIRST);
        }
        let (range, bits) = (range_of(&Source::new(self.func, self.options), &sum, MAX_DEPTH), sum.bits());
        let (mut value, mut extends) = (None, None);
        match sum.terms() {
            [(Part::Value(only), 1)] => value = Some(*only),
            [(Part::Extended { signed, sum: inner }, 1)] => {
                extends = Some((self.parts_of_sum((**inner).clone()), inner.bits(), *signed));
            }
            _ => {}
        }
        let value = value.filter(|&value| self.func.dfg.value_type(value).bits() == bits);
        let opaque = value.is_some_and(|value| is_opaque(self.func, value));
        let root = Root(u32::try_from(self.roots.len()).expect("as many roots as values at most"));
        self.roots.push(RootData { sum: sum.clone(), bits, range, value, extends, opaque });
        self.ids.insert(sum, root);
        root
    }

    /// The sum of a root.
    pub(in crate::analysis) fn sum(&self, root: Root) -> &Sum {
        &self.roots[root.index()].sum
    }

    /// The sum that a term is.
    pub(in crate::analysis) fn sum_of_term(&self, term: Term) -> Sum {
        self.sum(term.root).clone().offset(term.constant as i64)
    }

    /// The value that a root is, if it is one value in its own width.
    pub(in crate::analysis) fn value(&self, root: Root) -> Option<Value> {
        self.roots[root.index()].value
    }

    /// Whether a root is what an instruction gives that says nothing of it but a range, such as a load or a call: all else that is
    /// known of it are facts.
    pub(in crate::analysis) fn is_opaque(&self, root: Root) -> bool {
        self.roots[root.index()].opaque
    }

    /// The two values that a root is the difference of, if it is one.
    pub(in crate::analysis) fn difference(&self, root: Root) -> Option<(Value, Value)> {
        let [(Part::Value(a), one), (Part::Value(b), other)] = self.sum(root).terms() else { return None };
        let bits = self.bits(root);
        if [a, b].iter().any(|&&value| self.func.dfg.value_type(value).bits() != bits) {
            return None;
        }
        match (read(*one, bits, true), read(*other, bits, true)) {
            (1, -1) => Some((*a, *b)),
            (-1, 1) => Some((*b, *a)),
            _ => None,
        }
    }

    pub(in crate::analysis) fn bits(&self, root: Root) -> u32 {
        self.roots[root.index()].bits
    }

    fn range(&self, root: Root) -> Range {
        self.roots[root.index()].range
    }

    /// What a term can be, 0 if there is none.
    pub(in crate::analysis) fn bounds(&self, term: Option<Term>) -> Bounds {
        match term {
            None => (0, 0),
            Some(Term { root, signed, constant: 0 }) => self.range(root).read(signed),
            // If it could not wrap, it would have no constant.
            Some(Term { root, signed, .. }) => limits(self.bits(root), signed),
        }
    }

    /// What a number can be.
    pub(in crate::analysis) fn bounds_of(&self, Number { term, offset }: Number) -> Bounds {
        let (least, largest) = self.bounds(term);
        (least + offset, largest + offset)
    }

    /// Whether a term is the same in both readings.
    pub(in crate::analysis) fn is_never_negative(&self, term: Term) -> bool {
        term.constant == 0 && self.range(term.root).signed.0 >= 0
    }
}

/// Whether `value` is the result of an instruction that a proof cannot go on from, see `Prover::by_more`.
fn is_opaque(func: &Function, value: Value) -> bool {
    use Opcode::{Band, Bor, Select, Smax, Smin, Udiv, Umax, Umin, Urem, Ushr};
    let Some(inst) = func.dfg.value_def(value).inst() else { return false };
    let opcode = func.dfg.insts[inst].opcode();
    !matches!(opcode, Band | Bor | Select | Smax | Smin | Udiv | Umax | Umin | Urem | Ushr)
}

/// Whether a type is an integer of at most 64 bits.
fn is_plain(ty: Type) -> bool {
    ty.is_int() && ty.bits() <= 64
}

/// A number of so many bits, read with or without sign.
fn read(bits: u64, width: u32, with_sign: bool) -> i128 {
    if with_sign { signed(bits, width).into() } else { (bits & mask(width)).into() }
}
