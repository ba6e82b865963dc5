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

use crate::analysis::inst::number::{constant_of, mask, signed};
use crate::analysis::scev::linear_expr::{Sum, Term as Part};
use crate::options::Options;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::ir::{Function, InstructionData, MemFlags, Opcode, Type, Value, ValueDef, types};
use std::cell::Cell;

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

    fn within_unsigned(mut self, (least, largest): Bounds) -> Self {
        self.unsigned = (self.unsigned.0.max(least), self.unsigned.1.min(largest));
        if self.unsigned.1 <= self.signed.1 {
            self.signed = (self.signed.0.max(self.unsigned.0), self.signed.1.min(self.unsigned.1));
        }
        self
    }

    fn within_signed(mut self, (least, largest): Bounds) -> Self {
        self.signed = (self.signed.0.max(least), self.signed.1.min(largest));
        if self.signed.0 >= 0 {
            self.unsigned = (self.unsigned.0.max(self.signed.0), self.unsigned.1.min(self.signed.1));
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

/// Roots and values that there is room for from the first on: as many as a function with a loop has that is asked about.
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

/// Parts of sums that are looked at for the range of one. 64: eight bytes that are put together have 16. Without a limit, each level of sums within sums
/// took sixteen times as long as the one before.
const MAX_PARTS: usize = 64;

/// Where the ranges of one sum come from.
struct Source<'f> {
    func: &'f Function,
    /// With what the embedder knows, if anybody has said.
    options: Option<&'f Options>,
    /// How many parts may still be looked at.
    parts: Cell<usize>,
}

impl<'f> Source<'f> {
    fn new(func: &'f Function, options: Option<&'f Options>) -> Self {
        Self { func, options, parts: Cell::new(MAX_PARTS) }
    }

    /// Whether one part more may be looked at.
    fn looks(&self) -> bool {
        let parts = self.parts.get();
        self.parts.set(parts.saturating_sub(1));
        parts > 0
    }

    /// What a load of 64 bits can give.
    fn range_of_word(&self, flags: MemFlags) -> Range {
        let bounds = self.options.map(|options| options.bounds(self.func, self.func.dfg.mem_flags[flags]));
        bounds.map_or(Range::full(64), |(least, largest)| Range::unsigned(64, (least.into(), largest.into())))
    }
}

/// What a sum can be.
fn range_of(source: &Source<'_>, sum: &Sum, depth: usize) -> Range {
    let bits = sum.bits();
    let constant = read(sum.constant_part(), bits, true);
    let (mut without_sign, mut with_sign) = (Some((constant, constant)), Some((constant, constant)));
    for (part, factor) in sum.terms() {
        let range = range_of_part(source, part, (bits, depth));
        let factor = read(*factor, bits, true);
        without_sign = without_sign.and_then(|sum| add_multiple(sum, range.unsigned, factor));
        with_sign = with_sign.and_then(|sum| add_multiple(sum, range.signed, factor));
    }
    let mut range = Range::full(bits);
    for (least, largest) in [without_sign, with_sign].into_iter().flatten() {
        let fits = |signed| least >= limits(bits, signed).0 && largest <= limits(bits, signed).1;
        if fits(false) {
            range = range.within_unsigned((least, largest));
        }
        if fits(true) {
            range = range.within_signed((least, largest));
        }
    }
    range
}

/// `sum` and a multiple of what is within `bounds`, if that is not far too large.
fn add_multiple(sum: Bounds, bounds: Bounds, factor: i128) -> Option<Bounds> {
    let (a, b) = (bounds.0.checked_mul(factor)?, bounds.1.checked_mul(factor)?);
    Some((sum.0.checked_add(a.min(b))?, sum.1.checked_add(a.max(b))?))
}

fn range_of_part(source: &Source<'_>, part: &Part, (bits, depth): (u32, usize)) -> Range {
    match part {
        _ if depth == 0 || !source.looks() => Range::full(bits),
        Part::Value(value) => {
            let range = range_of_leaf(source, *value, depth);
            let wide = source.func.dfg.value_type(*value).bits();
            match range.unsigned.1 <= limits(bits, false).1 {
                true if wide > bits => Range::unsigned(bits, range.unsigned),
                _ if wide > bits => Range::full(bits),
                _ => range,
            }
        }
        Part::Slot(_) | Part::Product(..) => Range::full(bits),
        Part::Quotient { sum, by } => {
            let (least, largest) = range_of(source, sum, depth - 1).unsigned;
            Range::unsigned(bits, (least / i128::from(*by), largest / i128::from(*by)))
        }
        Part::Extended { signed: false, sum } => Range::unsigned(bits, range_of(source, sum, depth - 1).unsigned),
        Part::Extended { signed: true, sum } => Range::signed(bits, range_of(source, sum, depth - 1).signed),
    }
}

/// What a value can be that is no sum.
fn range_of_leaf(source: &Source<'_>, value: Value, depth: usize) -> Range {
    let func = source.func;
    let ty = func.dfg.value_type(value);
    if !is_plain(ty) {
        // Nobody reads more than the low 64 bits of it, of which nothing is known.
        return Range { unsigned: (0, i128::MAX), signed: (i128::MIN, i128::MAX) };
    }
    let ValueDef::Result(inst, 0) = func.dfg.value_def(value) else { return Range::full(ty.bits()) };
    let args = func.dfg.inst_args(inst);
    let opcode = func.dfg.insts[inst].opcode();
    match func.dfg.insts[inst] {
        InstructionData::Load { flags, .. } if (opcode, ty) == (Opcode::Load, types::I64) => {
            source.range_of_word(flags)
        }
        InstructionData::Load { .. } => range_of_load(opcode, ty.bits()),
        InstructionData::IntCompare { .. } | InstructionData::FloatCompare { .. } if ty.bits() == 8 => {
            Range::unsigned(8, (0, 1))
        }
        InstructionData::Unary { .. } if matches!(opcode, Opcode::Clz | Opcode::Ctz | Opcode::Popcnt | Opcode::Cls) => {
            Range::unsigned(ty.bits(), (0, ty.bits().into()))
        }
        InstructionData::Ternary { opcode: Opcode::Select | Opcode::SelectSpectreGuard, .. } => {
            operand(source, args[1], depth).join(operand(source, args[2], depth))
        }
        InstructionData::Binary { .. } => range_of_binary(source, opcode, [args[0], args[1]], (ty, depth)),
        _ => Range::full(ty.bits()),
    }
}

/// The least and the largest unsigned number that `value` can be, in as many bits as it has or fewer, if that says anything.
pub(crate) fn limits_of(func: &Function, value: Value, bits: u32) -> Option<(u64, u64)> {
    let (least, largest) = operand(&Source::new(func, None), value, MAX_DEPTH).unsigned;
    let (least, largest) = (u64::try_from(least).ok()?, u64::try_from(largest).ok()?);
    (largest - least < mask(bits) && largest <= mask(bits)).then_some((least, largest))
}

fn range_of_load(opcode: Opcode, bits: u32) -> Range {
    match opcode {
        Opcode::Uload8 => Range::unsigned(bits, limits(8, false)),
        Opcode::Uload16 => Range::unsigned(bits, limits(16, false)),
        Opcode::Uload32 => Range::unsigned(bits, limits(32, false)),
        Opcode::Sload8 => Range::signed(bits, limits(8, true)),
        Opcode::Sload16 => Range::signed(bits, limits(16, true)),
        Opcode::Sload32 => Range::signed(bits, limits(32, true)),
        _ => Range::full(bits),
    }
}

fn operand(source: &Source<'_>, value: Value, depth: usize) -> Range {
    let ty = source.func.dfg.value_type(value);
    if depth == 0 || !is_plain(ty) {
        return Range::full(ty.bits().min(64));
    }
    range_of(source, &Sum::of(source.func, value), depth - 1)
}

fn range_of_binary(source: &Source<'_>, opcode: Opcode, [a, b]: [Value; 2], (ty, depth): (Type, usize)) -> Range {
    let bits = ty.bits();
    let unsigned = |value| operand(source, value, depth).unsigned;
    let signed = |value| operand(source, value, depth).signed;
    let amount = constant_of(source.func, b).map(|by| (by & u64::from(bits - 1)) as u32);
    let constant = constant_of(source.func, b).map(i128::from);
    // All bits up to the highest that may be set.
    let filled = |largest: i128| (1_i128 << (128 - largest.leading_zeros())) - 1;
    match (opcode, amount, constant) {
        (Opcode::Band, ..) => Range::unsigned(bits, (0, unsigned(a).1.min(unsigned(b).1))),
        (Opcode::Bor, ..) => {
            let (a, b) = (unsigned(a), unsigned(b));
            Range::unsigned(bits, (a.0.max(b.0), filled(a.1.max(b.1))))
        }
        (Opcode::Bxor, ..) => Range::unsigned(bits, (0, filled(unsigned(a).1.max(unsigned(b).1)))),
        (Opcode::Ushr, Some(by), _) => {
            let (least, largest) = unsigned(a);
            Range::unsigned(bits, (least >> by, largest >> by))
        }
        (Opcode::Sshr, Some(by), _) => {
            let (least, largest) = signed(a);
            Range::signed(bits, (least >> by, largest >> by))
        }
        (Opcode::Urem, _, Some(by)) if by > 0 => Range::unsigned(bits, (0, (by - 1).min(unsigned(a).1))),
        (Opcode::Udiv, _, Some(by)) if by > 0 => {
            let (least, largest) = unsigned(a);
            Range::unsigned(bits, (least / by, largest / by))
        }
        (Opcode::Ushr | Opcode::Urem | Opcode::Udiv, ..) => Range::unsigned(bits, (0, unsigned(a).1)),
        (Opcode::Umin, ..) => both(unsigned(a), unsigned(b), i128::min, |bounds| Range::unsigned(bits, bounds)),
        (Opcode::Umax, ..) => both(unsigned(a), unsigned(b), i128::max, |bounds| Range::unsigned(bits, bounds)),
        (Opcode::Smin, ..) => both(signed(a), signed(b), i128::min, |bounds| Range::signed(bits, bounds)),
        (Opcode::Smax, ..) => both(signed(a), signed(b), i128::max, |bounds| Range::signed(bits, bounds)),
        _ => Range::full(bits),
    }
}

/// The range of the smaller or of the larger of two integers.
fn both(a: Bounds, b: Bounds, pick: fn(i128, i128) -> i128, range: impl Fn(Bounds) -> Range) -> Range {
    range((pick(a.0, b.0), pick(a.1, b.1)))
}
