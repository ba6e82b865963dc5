//! Extended sums of addresses: what keeps an address of 32 bits from being one of 64 is that it may wrap.
//!
//! ```text
//!     v4 = ishl v3, 2                          v6 = uextend.i64 v1
//!     v5 = iadd v1, v4                         v7 = uextend.i64 v3
//!     v6 = uextend.i64 v5           ──►        v8 = ishl v7, 2
//!     v7 = iadd v0, v6                         v9 = iadd v6, v8
//!     v8 = load.i32 v7                         v10 = iadd v0, v9
//! ```
//!
//! As integers, the sum of what is loop-invariant, seen as one number of the narrow type, and of what varies is at most the largest number of
//! that type: then it is what the extension gives. What is loop-invariant may wrap by itself. A number that is sign-extended
//! must not be negative in addition, so that it is zero-extended.
//!
//! A guard that stays asks of the narrow number, or of something else that is computed from it, and what it gives is an address with the extended one: where
//! the processor runs ahead of the test, the two would not match any more. So what such a guard is computed from stays as it is.
//!
//! Constants are added last, in 64 bits, so that all that lies next to each other has one base; a negative one is at most what it is
//! subtracted from.
//!
//! A counter may wrap itself, though the sum it is in never does: `for (i = 0; i <= n; i++)` has no end if `n` is the largest number, and `i += 2` may pass
//! that. Then the extension of the counter is what it was, and the test is what is won: nothing is extended any more in a loop of which it is known that its
//! counter does not wrap, and indices next to each other are offsets. A counter without sign is asked to leave room for one more, as it is never too large by itself. If it
//! is the only sum of its loop, it stays as it is: its extension takes no time, and short loops lose by a test (with that, a B-tree takes 1.03 of its time). With both, 38
//! programs of WebAssembly that get other code take 0.988 of their time with guard pages, and a transform of Fourier 0.91.
//!
//! A counter that begins below zero, as in `for (i = -n; i != 0; i++) end[i]`, is a large number without sign, and wraps with what it is added to each time. There
//! the sum is what it is in the first iteration, as one number of the narrow type, and by how much the counter has advanced since:
//!
//! ```text
//!     v5 = iadd v1, v3                         v6 = iadd v1, v2            v2 is the first v3
//!     v6 = uextend.i64 v5           ──►        v7 = uextend.i64 v6
//!                                              v8 = isub (uextend.i64 v3), (uextend.i64 v2)
//!                                              v9 = iadd v7, v8
//! ```
//!
//! Modulo two to the bits of the narrow type this is the narrow sum, whatever wraps. So it is the extended one if it is at most the largest number of
//! that type. Differences of other kinds are not followed, nor what counts up to something else: most loops that copy from a place a distance before, as decompressors do, are short
//! (an LZ4 decoder takes 0.668 of its time with such sums, and 0.642 without; `lz-o2` 1.045 and 1.002).
//!
//! A processor that mispredicts the test runs the fast loop with sums that do wrap, and its addresses are farther off than an extended number can
//! be. Where guards are consolidated, what is outside of the memory is still none of its addresses; an access without a guard has nothing of the
//! kind. [`Embedder::extension_confines`](crate::Embedder::extension_confines) says if that matters, and extensions stay then.

use crate::analysis::cfg::edges::destinations;
use crate::analysis::cfg::loops::Loop;
use crate::analysis::facts::known::Place;
use crate::analysis::facts::nowrap::{Exact, Extents};
use crate::analysis::inst::effects::is_constant;
use crate::analysis::inst::number::{mask, signed};
use crate::analysis::memory::alias::address_operand;
use crate::analysis::memory::spectre_guard::{made_into_guards, made_of};
use crate::analysis::scev::linear_expr::{Sum, Term};
use crate::analysis::scev::requirement::Requirement;
use crate::analysis::scev::view::View;
use crate::fault::fault;
use crate::ir::all_insts;
use crate::pass::GuardPolicy;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value, ValueDef, types};
use smallvec::SmallVec;

/// The extensions of a function that addresses are made of.
pub(super) struct Extensions<'a> {
    view: View<'a>,
    extents: Extents<'a>,
    guards: GuardPolicy<'a>,
    /// Found when the first extension is asked about.
    in_addresses: Option<InAddresses>,
    /// The loop that was asked of last.
    last: Option<Loop>,
}

impl<'a> Extensions<'a> {
    /// For the loops of this function.
    pub(super) fn new(view: View<'a>, guards: GuardPolicy<'a>) -> Self {
        Self { view, extents: Extents::new(view), guards, in_addresses: None, last: None }
    }

    /// The sum in 64 bits that `inst`, an instruction of `block`, is if nothing wraps in it, and what is to hold for that. Nothing if it is
    /// known to hold.
    pub(super) fn unwrapped(&mut self, block: Block, inst: Inst) -> Option<(Sum, Vec<Requirement>)> {
        if !self.in_addresses().all.contains(inst) {
            return None;
        }
        let (func, ignores_cost) = (self.view.func(), self.guards.options.ignore_cost);
        let narrow = self.view.sum(func.dfg.inst_args(inst)[0])?;
        let lp = self.view.forest.innermost(block)?;
        // One constant for all that lies next to each other.
        let constant = signed(narrow.constant_part(), narrow.bits());
        let root = self.wide(lp, &narrow.clone().offset(constant.wrapping_neg()))?;
        let is_signed = func.dfg.insts[inst].opcode() == Opcode::Sextend;
        if self.last.replace(lp) != Some(lp) {
            self.extents.allow(self.guards.options.widen_indices_max_questions);
        }
        let exact = self.extents.exact(&narrow, is_signed, Place::Before(inst));
        if exact.is_ok_and(|exact| !self.has_counter_that_may_wrap(&exact)) {
            return None;
        }
        let bits = if fault!(AddressMayWrap) { 64 } else { narrow.bits() - u32::from(is_signed) };
        let most = Sum::constant(mask(bits), root.bits());
        let is_one_number = !is_signed && matches!(root.terms(), [(_, 1)]);
        if is_one_number && !ignores_cost && self.in_addresses().alone.contains(inst) {
            return None;
        }
        // It is never too large, and may wrap all the same: it is asked to leave room for one more. In the fast loop, later passes learn from that test that it does not wrap.
        let room = i64::from(is_one_number);
        let mut required = vec![Requirement::at_most(root.clone().offset(constant.max(room)), most)];
        if constant < 0 {
            required.push(Requirement::at_most(Sum::constant(constant.unsigned_abs(), root.bits()), root.clone()));
        }
        Some((root.offset(constant), required))
    }

    /// Whether `sum` has a counter that may wrap in the reading in which it is added up.
    fn has_counter_that_may_wrap(&mut self, sum: &Exact) -> bool {
        sum.terms.iter().any(|(leaf, _)| {
            self.extents.is_counter(leaf.value) && self.extents.counter(leaf.value, leaf.signed).is_none()
        })
    }

    /// Whether it is worth comparisons of its own that `inst`, which [`unwrapped`](Self::unwrapped) knows, is a sum in 64 bits.
    pub(super) fn is_worth_a_test(&mut self, inst: Inst) -> bool {
        self.in_addresses().dense.contains(inst)
    }

    /// The instructions of `lp`, and its sums that are extended, if these are too few of them to be worth a second version.
    pub(super) fn too_few(&self, lp: Loop) -> Option<(usize, usize)> {
        self.in_addresses.as_ref()?.too_few.get(&lp).copied()
    }

    fn in_addresses(&mut self) -> &InAddresses {
        self.in_addresses.get_or_insert_with(|| InAddresses::of(self.view, &self.guards))
    }

    /// `narrow` in 64 bits, as it is if nothing wraps. Nothing if that is one number.
    fn wide(&self, lp: Loop, narrow: &Sum) -> Option<Sum> {
        let (fixed, moving) = self.view.split(lp, narrow);
        if let [(Term::Value(counter), factor)] = moving[..]
            && let Some(start) = self.start(lp, *counter)
            && start.bits() == narrow.bits()
            && signed(factor, narrow.bits()) > 0
            && all_are_added(&fixed)
            && self.begins_below_zero(lp, (*counter, &start))
        {
            return from_first(&fixed, (*counter, factor), &start);
        }
        if moving.is_empty() || !all_are_added(narrow) {
            return None;
        }
        let mut sum = fixed.extended(WIDE, false);
        for (term, factor) in moving {
            let part = match term {
                Term::Value(value) if self.start(lp, *value).is_none_or(|start| all_are_added(&start)) => {
                    Sum::of_term(term.clone(), 1, narrow.bits()).extended(WIDE, false)
                }
                Term::Extended { signed: false, sum } => (**sum).clone().extended(WIDE, false),
                _ => return None,
            };
            sum.add(&part, factor)?;
        }
        sum.never_wraps().then_some(sum)
    }

    /// What `value` is in the first iteration, if it is a parameter of the header.
    fn start(&self, lp: Loop, value: Value) -> Option<Sum> {
        let (func, data) = (self.view.func(), self.view.forest.data(lp));
        let (ValueDef::Param(block, index), [entry]) = (func.dfg.value_def(value), &data.entries[..]) else {
            return None;
        };
        let start = entry.args(func).nth(index).filter(|_| block == data.header)?;
        self.view.sum(start.as_value()?)
    }

    /// Whether a counter with this start begins at a negative constant, or at what is subtracted from zero, to count up to a constant.
    fn begins_below_zero(&self, lp: Loop, (counter, start): (Value, &Sum)) -> bool {
        let first = self.first_start(lp, start);
        let is_negative = |factor: u64| signed(factor, first.bits()) < 0;
        match first.as_constant() {
            Some(constant) => is_negative(constant),
            None => first.terms().iter().all(|(_, factor)| is_negative(*factor)) && self.ends_at_constant(lp, counter),
        }
    }

    /// Whether the test at the end of an iteration compares `counter` and a constant with a constant.
    fn ends_at_constant(&self, lp: Loop, counter: Value) -> bool {
        let func = self.view.func();
        let [back_edge] = self.view.forest.data(lp).back_edges[..] else { return false };
        let InstructionData::Brif { arg, .. } = func.dfg.insts[back_edge.branch] else { return false };
        let compared = match func.dfg.value_def(arg).inst().map(|inst| func.dfg.insts[inst]) {
            Some(InstructionData::IntCompare { args, .. }) => args,
            _ => [arg; 2],
        };
        let sums = compared.map(|value| self.view.sum(value));
        let is_counter = |sum: &Sum| matches!(sum.terms(), [(Term::Value(value), 1)] if *value == counter);
        let mut ends = sums.iter().flatten().filter(|sum| sum.as_constant().is_none());
        ends.next().is_some_and(is_counter) && ends.all(is_counter)
    }

    /// The first of all starts, if a counter of `lp` starts so: a strip begins where the one before has ended.
    fn first_start(&self, lp: Loop, start: &Sum) -> Sum {
        let mut start = start.clone();
        let mut around = self.view.forest.data(lp).parent;
        while let (Some(lp), [(Term::Value(value), 1)], 0) = (around, start.terms(), start.constant_part()) {
            match self.start(lp, *value) {
                Some(first) => start = first,
                None if self.view.is_invariant(lp, &start) => {}
                None => return start,
            }
            around = self.view.forest.data(lp).parent;
        }
        start
    }
}

/// The bits of an address.
const WIDE: u32 = 64;

/// Whether nothing is subtracted in `sum` but a constant.
fn all_are_added(sum: &Sum) -> bool {
    sum.terms().iter().all(|(_, factor)| signed(*factor, sum.bits()) > 0)
}

/// The sum of `fixed` and of a counter times `factor` in 64 bits: the first one, which may have wrapped, and by how much the counter has advanced since.
fn from_first(fixed: &Sum, (counter, factor): (Value, u64), start: &Sum) -> Option<Sum> {
    let counter = Sum::of_term(Term::Value(counter), 1, start.bits()).extended(WIDE, false);
    let mut sum = fixed.plus(start, factor)?.extended(WIDE, false);
    if !fault!(CountsFromZero) {
        sum.add(&start.clone().extended(WIDE, false), factor.wrapping_neg())?;
    }
    sum.add(&counter, factor)?;
    Some(sum)
}

/// The extensions that the addresses of plain loads and stores in loops are made of. None that a guard is made of that stays.
#[derive(Default)]
struct InAddresses {
    /// All in loops that are dense, or check something, so that there may be a test of which they follow.
    all: EntitySet<Inst>,
    /// Those in loops that are dense with them: a long one is not worth a second version for them.
    dense: EntitySet<Inst>,
    /// Those beside which there is none in their loop: what is saved for a number by itself is an instruction that takes no time.
    alone: EntitySet<Inst>,
    /// The loops that have some and are not dense with them, nor check anything: how many instructions they have, and how many of these.
    too_few: FxHashMap<Loop, (usize, usize)>,
}

impl InAddresses {
    fn of(view: View<'_>, policy: &GuardPolicy<'_>) -> Self {
        let (func, options) = (view.func(), policy.options);
        if options.has_confining(func) {
            return Self::default();
        }
        let kept = match policy.has_guards {
            true => kept_for_guards(view, policy),
            false => EntitySet::new(),
        };
        let capacity = func.dfg.num_insts();
        let [all, dense, alone] = [(); 3].map(|()| EntitySet::with_capacity(capacity));
        let mut found = Self { all, dense, alone, too_few: FxHashMap::default() };
        for lp in view.forest.loops() {
            let loop_ = Contents::of(view, lp, &kept);
            let max = options.version_max_insts_per_extension.saturating_mul(loop_.extensions.len());
            let is_dense = options.ignore_cost || loop_.insts <= max;
            if let [only] = loop_.extensions[..] {
                found.alone.insert(only);
            }
            if is_dense {
                found.dense.extend(loop_.extensions.iter().copied());
            }
            if is_dense || loop_.has_checks {
                found.all.extend(loop_.extensions);
            } else if !loop_.extensions.is_empty() {
                found.too_few.insert(lp, (loop_.insts, loop_.extensions.len()));
            }
        }
        found
    }
}

/// What a loop has, without its inner loops.
struct Contents {
    /// Instructions that usually run, but for constants and what belongs to Spectre guards.
    insts: usize,
    /// Whether something traps, or leads to a cold block, unless something holds.
    has_checks: bool,
    /// Extensions that are added up in addresses.
    extensions: Vec<Inst>,
}

impl Contents {
    fn of(view: View<'_>, lp: Loop, kept: &EntitySet<Value>) -> Self {
        /// Instructions that belong to a Spectre guard: it, its comparison, and the sum that is compared.
        const INSTS_PER_GUARD: usize = 3;
        let func = view.func();
        let (mut guards, mut found) = (0, Self { insts: 0, has_checks: false, extensions: Vec::new() });
        for inst in view.forest.own_blocks(lp).flat_map(|block| func.layout.block_insts(block)) {
            let opcode = func.dfg.insts[inst].opcode();
            let is_rare = func.layout.inst_block(inst).is_some_and(|block| func.layout.is_cold(block));
            found.insts += usize::from(!is_constant(func, inst) && !is_rare);
            guards += usize::from(opcode == Opcode::SelectSpectreGuard);
            found.has_checks |= match opcode {
                Opcode::Trapz | Opcode::Trapnz | Opcode::UaddOverflowTrap | Opcode::SelectSpectreGuard => true,
                Opcode::Brif => {
                    destinations(func, inst).iter().any(|call| func.layout.is_cold(call.block(&func.dfg.value_lists)))
                }
                _ => false,
            };
            if let Some(address) = address_operand(func, inst) {
                each_extension(func, address, |extension| {
                    if !kept.contains(func.dfg.first_result(extension)) {
                        found.extensions.push(extension);
                    }
                });
            }
        }
        found.extensions.sort_unstable();
        found.extensions.dedup();
        found.insts = found.insts.saturating_sub(guards * INSTS_PER_GUARD);
        found
    }
}

/// What stays as it is for a guard: all that one is made of which may not be dropped, and the extensions that one gives and does not ask of: it may stay, and
/// then would ask of one sum and give another.
fn kept_for_guards(view: View<'_>, policy: &GuardPolicy<'_>) -> EntitySet<Value> {
    /// Values that what a guard asks, or gives, is made of. If there are more, all that guards are made of stays.
    const MAX_VALUES: usize = 200;
    let func = view.func();
    let mut kept = made_into_guards(view.ctx, |guard| !policy.may_drop(view.ctx, guard));
    for inst in all_insts(func) {
        let InstructionData::Ternary { opcode: Opcode::SelectSpectreGuard, args: [condition, yes, no] } =
            func.dfg.insts[inst]
        else {
            continue;
        };
        let parts = |values: &[Value]| made_of(view.ctx, values.to_vec(), MAX_VALUES);
        let (Some(asked), Some(given)) = (parts(&[condition]), parts(&[yes, no])) else {
            return made_into_guards(view.ctx, |_| true);
        };
        let is_extended =
            |value: &Value| func.dfg.value_def(*value).inst().is_some_and(|inst| is_extension(func, inst));
        given
            .iter()
            .filter(|&value| is_extended(&value) && !asked.contains(value))
            .for_each(|value| _ = kept.insert(value));
    }
    kept
}

/// Calls `visit` with the extensions that are added up in `address`, be they multiplied.
fn each_extension(func: &Function, address: Value, mut visit: impl FnMut(Inst)) {
    /// Instructions that are looked at: sums, products and guards.
    const MAX_INSTS: usize = 12;
    let (mut open, mut looked_at) = (SmallVec::<[Value; 4]>::from_slice(&[address]), 0);
    while let Some(value) = open.pop().filter(|_| looked_at < MAX_INSTS) {
        looked_at += 1;
        let Some(inst) = func.dfg.value_def(value).inst() else { continue };
        if is_extension(func, inst) {
            visit(inst);
        } else if let Opcode::Iadd | Opcode::Isub | Opcode::Ishl | Opcode::Imul | Opcode::SelectSpectreGuard =
            func.dfg.insts[inst].opcode()
        {
            open.extend_from_slice(func.dfg.inst_args(inst));
        }
    }
}

/// Whether `inst` extends a number of at most 32 bits to 64.
fn is_extension(func: &Function, inst: Inst) -> bool {
    let InstructionData::Unary { opcode: Opcode::Uextend | Opcode::Sextend, arg } = func.dfg.insts[inst] else {
        return false;
    };
    func.dfg.value_type(func.dfg.first_result(inst)) == types::I64 && func.dfg.value_type(arg).bits() <= 32
}
