//! How many instructions of a loop are removed, how many are added, and how many registers that takes.

use super::plan::{Group, Terms, Wide};
use crate::analysis::cfg::edges::each_use;
use crate::analysis::cfg::loops::{Loop, def_block};
use crate::analysis::facts::nowrap::Leaf;
use crate::analysis::inst::effects::{Effects, is_constant};
use crate::analysis::inst::number::constant_of;
use crate::analysis::memory::alias::address_operand;
use crate::analysis::scev::view::View;
use cranelift_codegen::ir::{Block, Function, Inst, Opcode, Value, ValueDef};
use cranelift_codegen::{FxHashMap, FxHashSet};

/// How often each value is used in a loop.
pub(super) type Uses = FxHashMap<Value, usize>;

/// What becomes of the instructions of a loop that compute addresses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gain {
    /// Instructions that are removed.
    pub(super) before: usize,
    /// Instructions that are added.
    pub(super) after: usize,
    /// Bases that live through the loop in addition.
    pub(super) bases: usize,
    /// Values that no longer do.
    pub(super) released: usize,
}

impl Gain {
    /// Whether there are registers for the bases that are new, in a loop through which `needed` values live with so many registers
    /// `available`. A loop that is short of them already has to need fewer afterwards.
    pub(super) fn fits(self, needed: usize, available: usize) -> bool {
        self.bases == 0 || self.fits_exactly(needed, available) || self.bases < self.released
    }

    /// Whether there are registers for all that lives through the loop then.
    pub(super) fn fits_exactly(self, needed: usize, available: usize) -> bool {
        (needed + self.bases).saturating_sub(self.released) <= available
    }

    /// Whether at least so many instructions are removed for each base that is new.
    pub(super) fn saves_for_each_base(self, min: usize) -> bool {
        self.before.saturating_sub(self.after) >= min.saturating_mul(self.bases)
    }

    /// How often values are used in `blocks`.
    pub(super) fn uses(func: &Function, blocks: &[Block]) -> Uses {
        let mut uses = Uses::default();
        for inst in blocks.iter().flat_map(|&block| func.layout.block_insts(block)) {
            each_use(func, inst, |value| *uses.entry(value).or_default() += 1);
        }
        uses
    }

    /// What widening the addresses of `groups` in the loop does.
    pub(super) fn of(view: View<'_>, lp: Loop, groups: &[Group], uses: &Uses) -> Self {
        let moving = groups.iter().flat_map(|group| &group.moving);
        let kept = moving.filter_map(|(wide, _)| match wide {
            Wide::Value(value) | Wide::Extended(Leaf { value, .. }) => Some(*value),
            Wide::Counted(_) | Wide::Slot(_) => None,
        });
        let mut leaving =
            Leaving { view, lp, uses, kept: kept.collect(), gone: Uses::default(), before: 0, released: 0 };
        for (inst, _) in groups.iter().flat_map(|group| &group.accesses) {
            let address = address_operand(view.func(), *inst).expect("an access");
            leaving.release(address);
        }
        let Leaving { before, gone, released, .. } = leaving;
        // A base that is used as it is stays alive.
        let plain: FxHashSet<_> = groups.iter().filter_map(Group::plain_base).collect();
        let kept = plain.iter().filter(|value| gone.get(value) == uses.get(value)).count();
        let bases: FxHashSet<_> =
            groups.iter().filter(|group| group.makes_base()).map(|group| (&group.fixed, group.far)).collect();
        Self { before, after: after(view.func(), groups), bases: bases.len(), released: released.saturating_sub(kept) }
    }
}

/// What a loop no longer computes.
struct Leaving<'a> {
    view: View<'a>,
    lp: Loop,
    uses: &'a Uses,
    /// What the new addresses are made of.
    kept: FxHashSet<Value>,
    /// How many uses of values are removed.
    gone: Uses,
    before: usize,
    released: usize,
}

impl Leaving<'_> {
    /// Takes one use of `value` away, and all that is computed for nothing then.
    fn release(&mut self, value: Value) {
        let func = self.view.func();
        let mut stack = vec![value];
        while let Some(value) = stack.pop() {
            if self.kept.contains(&value) {
                continue;
            }
            let gone = self.gone.entry(value).or_default();
            *gone += 1;
            if self.uses.get(&value) != Some(gone) {
                continue;
            }
            let def = func.dfg.value_def(value).inst();
            let is_inside = !self.view.is_from_outside(self.lp, value);
            match def {
                Some(inst) if is_constant(func, inst) => {}
                Some(inst) if is_inside && Effects::of(func, inst).is_pure() => {
                    self.before += cost(func, inst, self.uses);
                    stack.extend_from_slice(func.dfg.inst_args(inst));
                }
                _ if is_inside => {}
                _ => self.released += 1,
            }
        }
    }
}

/// How many machine instructions an instruction of an address is, on its own.
fn cost(func: &Function, inst: Inst, uses: &Uses) -> usize {
    let args = func.dfg.inst_args(inst);
    let [result] = func.dfg.inst_results(inst) else { return 1 };
    let is_wide = func.dfg.value_type(*result).bits() == 64;
    let is_only_use = |value: Value| uses.get(&value) == Some(&1);
    let opcode_of = |value: Value| func.dfg.value_def(value).inst().map(|def| func.dfg.insts[def].opcode());
    match func.dfg.insts[inst].opcode() {
        Opcode::Uextend if matches!(func.dfg.value_def(args[0]), ValueDef::Param(..)) => 1,
        Opcode::Uextend | Opcode::Ireduce => 0,
        // Added up by the addressing mode.
        Opcode::Iadd if is_wide => 0,
        // A sum of two and a constant is one instruction, and so is that of a product by 2, 4 or 8.
        Opcode::Iadd if args.iter().any(|&arg| constant_of(func, arg).is_some()) => {
            let is_sum = |arg: &&Value| matches!(opcode_of(**arg), Some(Opcode::Iadd | Opcode::Ishl));
            let is_part = |arg: &Value| is_only_use(*arg) && def_block(func, *arg) == func.layout.inst_block(inst);
            usize::from(!args.iter().filter(is_sum).any(is_part))
        }
        _ => 1,
    }
}

/// How many instructions compute the new addresses.
fn after(func: &Function, groups: &[Group]) -> usize {
    let mut made = FxHashSet::default();
    let mut sums = 0;
    for group in groups {
        for &(wide, factor) in &group.moving {
            if let Wide::Extended(leaf) = wide
                && (leaf.signed || matches!(func.dfg.value_def(leaf.value), ValueDef::Param(..)))
            {
                made.insert((wide, 1));
            }
            if !is_scale(factor) {
                made.insert((wide, factor));
            }
        }
        sums += additions(&group.moving, !group.fixed.is_empty() || group.far != 0);
    }
    made.len() + sums
}

/// Additions that no addressing mode does.
fn additions(moving: &Terms, has_base: bool) -> usize {
    (moving.len() + usize::from(has_base)).saturating_sub(2)
}

/// Whether an addressing mode multiplies by this.
pub(super) fn is_scale(factor: u64) -> bool {
    matches!(factor, 1 | 2 | 4 | 8)
}
