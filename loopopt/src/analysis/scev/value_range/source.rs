//! Ranges of values by what computes them.

use super::{Bounds, MAX_DEPTH, Range, is_plain, limits, read};
use crate::analysis::inst::number::{constant_of, mask};
use crate::analysis::scev::linear_expr::{Sum, Term as Part};
use crate::options::Options;
use cranelift_codegen::ir::{Function, InstructionData, MemFlags, Opcode, Type, Value, ValueDef, types};
use std::cell::Cell;

/// Parts of sums that are looked at for the range of one. 64: eight bytes that are put together have 16. Without a limit, each level of sums within sums
/// took sixteen times as long as the one before.
const MAX_PARTS: usize = 64;

/// Where the ranges of one sum come from.
pub(super) struct Source<'f> {
    pub(super) func: &'f Function,
    /// With what the embedder knows, if anybody has said.
    pub(super) options: Option<&'f Options>,
    /// How many parts may still be looked at.
    pub(super) parts: Cell<usize>,
}

impl<'f> Source<'f> {
    pub(super) fn new(func: &'f Function, options: Option<&'f Options>) -> Self {
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
pub(super) fn range_of(source: &Source<'_>, sum: &Sum, depth: usize) -> Range {
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

/// The least and the largest unsigned number that `value` can be, in as many bits as it has or fewer, if that says anything. Nothing is known of more than 64 bits.
pub(crate) fn limits_of(func: &Function, value: Value, bits: u32) -> Option<(u64, u64)> {
    if !is_plain(func.dfg.value_type(value)) {
        return None;
    }
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
pub(super) fn both(a: Bounds, b: Bounds, pick: fn(i128, i128) -> i128, range: impl Fn(Bounds) -> Range) -> Range {
    range((pick(a.0, b.0), pick(a.1, b.1)))
}
