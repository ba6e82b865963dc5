//! Checks: what of a loop does nothing but trap, or leave for code that is not expected to run, unless something holds. And what is tested like
//! that although the program does not ask for it: sums that do not wrap, accesses that do not overlap.

use crate::analysis::cfg::edges::{Edge, edges_from};
use crate::analysis::cfg::jumps::leads_to_failure;
use crate::analysis::cfg::loops::Loop;
use crate::analysis::facts::condition::{Part, parts};
use crate::analysis::inst::number::{least_number, mask};
use crate::analysis::memory::alias::address_operand;
use crate::analysis::memory::spectre_guard::Guard;
use crate::analysis::scev::linear_expr::Sum;
use crate::analysis::scev::requirement::Requirement;
use crate::analysis::scev::view::View;
use crate::claim::{Claim, asserted, is_marked};
use crate::edit::copy::copy_iterations::settle;
use crate::edit::inst::clone::repeat_before;
use crate::edit::inst::stand_for::stand_for;
use crate::edit::materialize::assertion::{
    assert_disjoint_from, assert_equal, assert_fits, assert_takes, assert_truth,
};
use crate::edit::materialize::drop_trap_flags::{GoneGuards, trust_at};
use crate::edit::materialize::emit::emit;
use crate::fault::fault;
use crate::pass::GuardPolicy;
use crate::pass::version::extension::Extensions;
use crate::pass::version::overlap::Cell;
use cranelift_codegen::FxHashSet;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, Function, Inst, InstBuilder, InstructionData, Opcode, Value, ValueDef};
use std::rc::Rc;

/// A check.
#[derive(Clone, Debug)]
pub(super) struct Check {
    pub(super) inst: Inst,
    pub(super) block: Block,
    kind: Kind,
    /// What has to hold, when it runs, for it to do nothing.
    pub(super) requires: Vec<Requirement>,
}

#[derive(Clone, Debug)]
enum Kind {
    /// It traps or does nothing.
    Trap,
    /// A branch that takes this one of its edges.
    Branch { on: usize },
    /// An addition that traps or gives the sum.
    Addition,
    /// A Spectre guard, which gives this one of its operands.
    Guard { gives: Value },
    /// An access at the address that a Spectre guard before the loop gives, which is this one of its operands.
    Guarded { gives: Value },
    /// The extension of a sum, which is this sum if nothing wraps.
    Extension { wide: Box<Sum> },
    /// A load or store that may overlap this cell, for all that is known of the two without a test.
    Apart { cell: Rc<Cell> },
}

impl Check {
    /// The checks of a block.
    pub(super) fn all(
        view: View<'_>,
        block: Block,
        (guards, around_fast): (&GuardPolicy<'_>, &FxHashSet<Block>),
        extensions: &mut Extensions<'_>,
    ) -> impl Iterator<Item = Self> {
        let insts = view.func().layout.block_insts(block);
        insts.filter_map(move |inst| Self::find(view, (block, inst), (guards, around_fast), extensions))
    }

    fn find(
        view: View<'_>,
        (block, inst): (Block, Inst),
        (guards, around_fast): (&GuardPolicy<'_>, &FxHashSet<Block>),
        extensions: &mut Extensions<'_>,
    ) -> Option<Self> {
        let func = view.func();
        let check = |kind, requires| Some(Self { inst, block, kind, requires });
        match func.dfg.insts[inst] {
            InstructionData::CondTrap { .. } if asserted(func, inst).is_some() => None,
            InstructionData::CondTrap { opcode, arg, .. } => {
                check(Kind::Trap, conditions(view, arg, opcode == Opcode::Trapz)?)
            }
            InstructionData::IntAddTrap { args: [a, b], .. } => check(Kind::Addition, vec![adds_well(view, a, b)?]),
            InstructionData::Brif { arg, .. } => {
                let fails = failing_slot(view, block, around_fast)?;
                check(Kind::Branch { on: 1 - fails }, conditions(view, arg, fails == 1)?)
            }
            InstructionData::Unary { opcode: Opcode::Uextend | Opcode::Sextend, .. } => {
                let (wide, required) = extensions.unwrapped(block, inst)?;
                check(Kind::Extension { wide: Box::new(wide) }, required)
            }
            _ if !guards.may_drop_any() => None,
            InstructionData::Ternary { opcode: Opcode::SelectSpectreGuard, .. } if guards.may_drop(view.ctx, inst) => {
                let (gives, requires) = guarded(view, inst)?;
                check(Kind::Guard { gives }, requires)
            }
            InstructionData::Load { arg, flags, .. } | InstructionData::Store { args: [_, arg], flags, .. }
                if guards.options.is_checked(func, func.dfg.mem_flags[flags]) =>
            {
                let guard = func.dfg.value_def(arg).inst().filter(|&guard| guards.may_drop(view.ctx, guard))?;
                if view.forest.contains(view.forest.innermost(block)?, func.layout.inst_block(guard)?) {
                    return None;
                }
                let (gives, requires) = guarded(view, guard)?;
                check(Kind::Guarded { gives }, requires)
            }
            _ => None,
        }
    }

    /// That an access, in this block, does not overlap `cell`.
    pub(super) fn apart((inst, block): (Inst, Block), cell: Rc<Cell>, requires: Vec<Requirement>) -> Self {
        Self { inst, block, kind: Kind::Apart { cell }, requires }
    }

    /// The cell that it does not overlap, if it is an access.
    pub(super) fn cell(&self) -> Option<&Rc<Cell>> {
        match &self.kind {
            Kind::Apart { cell } => Some(cell),
            _ => None,
        }
    }

    /// The address that it guards, if it is a guard.
    pub(super) fn guarded_address(&self) -> Option<Value> {
        match self.kind {
            Kind::Guard { gives } | Kind::Guarded { gives } => Some(gives),
            _ => None,
        }
    }

    /// The sum in 64 bits that it is, if it is an extension.
    pub(super) fn extension(&self) -> Option<&Sum> {
        match &self.kind {
            Kind::Extension { wide } => Some(wide),
            _ => None,
        }
    }

    /// Whether it is the extension of a counter by itself, which stays as it is: nothing is won but what is tested for it.
    pub(super) fn is_as_it_was(&self, view: View<'_>) -> bool {
        let given = || view.sum(view.func().dfg.first_result(self.inst));
        self.extension().is_some_and(|wide| given().as_ref() == Some(wide))
    }

    /// Where it leaves the loop if it fails, if it is a branch.
    pub(super) fn exit(&self, func: &Function) -> Option<Block> {
        match self.kind {
            Kind::Branch { on } => Some(Edge { branch: self.inst, slot: 1 - on }.target(func)),
            _ => None,
        }
    }

    /// Whether removing the check leaves an alias to resolve.
    pub(super) fn leaves_alias(&self) -> bool {
        matches!(self.kind, Kind::Guard { .. } | Kind::Extension { .. })
    }

    /// Removes the check, which is known to do nothing.
    pub(super) fn remove(&self, func: &mut Function, guards: &mut GoneGuards) {
        match &self.kind {
            Kind::Trap => {
                let holds = func.dfg.insts[self.inst].opcode() == Opcode::Trapz;
                assert_truth(func, self.inst, Claim::CheckHolds, (func.dfg.inst_args(self.inst)[0], holds));
                func.layout.remove_inst(self.inst);
            }
            Kind::Branch { on } => {
                assert_takes(func, self.inst, Claim::CheckHolds, *on);
                settle(func, self.inst, if fault!(CheckInverted) { 1 - on } else { *on });
            }
            Kind::Addition => {
                let [a, b] = func.dfg.inst_args(self.inst)[..] else { return };
                assert_fits(func, self.inst, Opcode::UaddOverflow, [a, b]);
                func.replace(self.inst).iadd(a, b);
            }
            &Kind::Guard { gives } => {
                assert_guard_gives(func, (self.inst, self.inst), gives);
                guards.add(func, self.inst, gives);
                stand_for(func, self.inst, gives);
            }
            Kind::Extension { wide } => {
                let sum = emit(func, self.inst, wide);
                if is_marked(func) {
                    let narrow = repeat_before(func, self.inst, self.inst);
                    assert_equal(func, self.inst, Claim::NoWrap, [narrow, sum]);
                }
                stand_for(func, self.inst, sum);
            }
            Kind::Apart { cell } => assert_disjoint_from(func, self.inst, (&cell.address, cell.size)),
            &Kind::Guarded { gives } => {
                let guard = address_operand(func, self.inst).and_then(|address| func.dfg.value_def(address).inst());
                if let Some(guard) = guard {
                    assert_guard_gives(func, (self.inst, guard), gives);
                }
                trust_at(func, self.inst, gives);
            }
        }
    }
}

/// Asserts right before the instruction `before` that `guard` chooses `gives`.
fn assert_guard_gives(func: &mut Function, (before, guard): (Inst, Inst), gives: Value) {
    if let [condition, yes, _] = *func.dfg.inst_args(guard) {
        assert_truth(func, before, Claim::CheckHolds, (condition, gives == yes));
    }
}

/// What a Spectre guard gives where it does not give 0, and what has to hold for that.
fn guarded(view: View<'_>, guard: Inst) -> Option<(Value, Vec<Requirement>)> {
    let Guard { condition, holds, gives } = Guard::of(view.func(), guard)?;
    Some((gives, conditions(view, condition, holds)?))
}

/// The edge of a branch that is not expected to be taken: it leaves the loop for a trap, or for code that is cold. What comes back
/// to the loop is for `transfer`, and was that if the outer loop is one of `around_fast`: it may well happen in some iteration, and the others can be fast then.
fn failing_slot(view: View<'_>, block: Block, around_fast: &FxHashSet<Block>) -> Option<usize> {
    let func = view.func();
    let lp = view.forest.innermost(block)?;
    let fails = |edge: &Edge| {
        let target = edge.target(func);
        !view.forest.contains(lp, target)
            && leads_to_failure(func, target)
            && !comes_back(view, lp, (target, around_fast))
    };
    let mut failing = edges_from(func, block).filter(fails);
    let (edge, None) = (failing.next()?, failing.next()) else { return None };
    Some(edge.slot)
}

/// Whether `target`, outside of `lp`, is in an enclosing loop that is one of these.
fn comes_back(view: View<'_>, lp: Loop, (target, around_fast): (Block, &FxHashSet<Block>)) -> bool {
    let forest = view.forest;
    let mut around = std::iter::successors(forest.data(lp).parent, |&lp| forest.data(lp).parent);
    around.any(|around| forest.contains(around, target) && around_fast.contains(&forest.data(around).header))
}

/// What has to hold so that `value` is not zero, or zero if `holds` is false. Nothing if that cannot be said in sums.
fn conditions(view: View<'_>, value: Value, holds: bool) -> Option<Vec<Requirement>> {
    let func = view.func();
    let mut found = Vec::new();
    for part in parts(func, (value, holds), true).into_iter().rev() {
        let (value, holds) = match part {
            Part::Compares(cond, [left, right]) => {
                found.push(compare(view, cond, left, right)?);
                continue;
            }
            Part::Number(value, holds) => (value, holds),
        };
        let inst = func.dfg.value_def(value).inst().map(|inst| func.dfg.insts[inst]);
        match (func.dfg.value_def(value), inst) {
            (ValueDef::Result(_, 1), Some(InstructionData::Binary { opcode, args: [a, b] })) if !holds => {
                found.extend(computes_well(view, opcode, a, b)?);
            }
            _ => found.push(is_zero(view, value, !holds)?),
        }
    }
    Some(found)
}

fn compare(view: View<'_>, cond: IntCC, left: Value, right: Value) -> Option<Requirement> {
    Some(Requirement::new(cond, view.sum(left)?, view.sum(right)?))
}

fn is_zero(view: View<'_>, value: Value, zero: bool) -> Option<Requirement> {
    let sum = view.sum(value)?;
    let cond = if zero { IntCC::Equal } else { IntCC::NotEqual };
    let zero = Sum::constant(0, sum.bits());
    Some(Requirement::new(cond, sum, zero))
}

/// What has to hold so that an operation with an overflow flag does not overflow.
fn computes_well(view: View<'_>, opcode: Opcode, a: Value, b: Value) -> Option<Vec<Requirement>> {
    Some(match opcode {
        Opcode::UaddOverflow => vec![adds_well(view, a, b)?],
        Opcode::UsubOverflow => vec![compare(view, IntCC::UnsignedGreaterThanOrEqual, a, b)?],
        Opcode::UmulOverflow => vec![multiplies_well(view.sum(a)?, view.sum(b)?)],
        Opcode::SaddOverflow => {
            let (a, b) = (view.sum(a)?, view.sum(b)?);
            let (a, b) = if a.as_constant().is_some() { (b, a) } else { (a, b) };
            stays_signed(a, b, true)?
        }
        Opcode::SsubOverflow => stays_signed(view.sum(a)?, view.sum(b)?, false)?,
        _ => return None,
    })
}

/// `a * b`, unsigned, does not overflow.
fn multiplies_well(a: Sum, b: Sum) -> Requirement {
    let (factor, sum) = match (a.as_constant(), b.as_constant()) {
        (Some(factor), _) => (factor, b),
        (None, Some(factor)) => (factor, a),
        (None, None) => return Requirement::Fits { left: a, right: b },
    };
    let most = mask(sum.bits());
    let limit = Sum::constant(most.checked_div(factor).unwrap_or(most), sum.bits());
    Requirement::at_most(sum, limit)
}

/// `a + b` or `a - b`, signed, does not overflow. Of a `b` that is not known it is required that it is not negative, which is not
/// more than most programs do with what they check like that.
fn stays_signed(a: Sum, b: Sum, is_sum: bool) -> Option<Vec<Requirement>> {
    let bits = a.bits();
    let least = Sum::constant(least_number(bits, true), bits);
    let most = least.clone().offset(-1);
    let is_negative = b.as_constant().is_some_and(|number| number >> (bits - 1) == 1);
    let limit = |end: &Sum| end.plus(&b, if is_sum { u64::MAX } else { 1 });
    let mut required = vec![match is_negative != is_sum {
        true => Requirement::new(IntCC::SignedLessThanOrEqual, a, limit(&most)?),
        false => Requirement::new(IntCC::SignedGreaterThanOrEqual, a, limit(&least)?),
    }];
    if b.as_constant().is_none() {
        required.push(Requirement::new(IntCC::SignedGreaterThanOrEqual, b, Sum::constant(0, bits)));
    }
    Some(required)
}

/// `a + b`, unsigned, does not overflow: `a` is at most what all ones are above `b`.
fn adds_well(view: View<'_>, a: Value, b: Value) -> Option<Requirement> {
    let (a, b) = (view.sum(a)?, view.sum(b)?);
    let (moving, added) = if a.as_constant().is_some() { (b, a) } else { (a, b) };
    let room = Sum::constant(u64::MAX, added.bits()).minus(&added)?;
    Some(Requirement::at_most(moving, room))
}
