//! Constants that are added one after the other are added at once.

use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::inst::number::{added_constant, mask};
use crate::claim::{Claim, is_marked};
use crate::edit::at;
use crate::edit::inst::clone::repeat_before;
use crate::edit::materialize::assertion::assert_equal;
use crate::fault::fault;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Function, Inst, InstBuilder, Value};

/// The sums with a constant in a loop that add to another such sum: both become one.
pub(super) struct Sums {
    /// Sums of a sum, in the order of the blocks.
    outer: Vec<Inst>,
    /// Those that nothing else uses, once that [was asked](Self::only_used_here).
    inner: Vec<Value>,
}

impl Sums {
    /// The sums of sums in the blocks of `lp`, but not in inner loops. None if there are none.
    pub(super) fn of(func: &Function, forest: &LoopForest, lp: Loop) -> Option<Self> {
        let insts = forest.own_blocks(lp).flat_map(|block| func.layout.block_insts(block));
        let is_sum_of_sum = |inst: &Inst| {
            added_constant(func, *inst)
                .and_then(|(sum, _)| added_constant(func, func.dfg.value_def(sum).inst()?))
                .is_some()
        };
        let outer: Vec<_> = insts.filter(is_sum_of_sum).collect();
        (!outer.is_empty()).then_some(Self { outer, inner: Vec::new() })
    }

    /// Those of sums that nothing else uses. None if there are none.
    pub(super) fn only_used_here(mut self, func: &Function, uses: &SecondaryMap<Value, u32>) -> Option<Self> {
        let mut sums = FxHashMap::<Value, u32>::default();
        for (sum, _) in self.outer.iter().filter_map(|&inst| added_constant(func, inst)) {
            *sums.entry(sum).or_default() += 1;
        }
        self.inner = sums.into_iter().filter(|&(sum, count)| uses[sum] == count).map(|(sum, _)| sum).collect();
        self.inner.sort_unstable();
        (!self.inner.is_empty()).then_some(self)
    }

    /// How many operations are saved.
    pub(super) fn saved(&self) -> usize {
        self.inner.len()
    }

    /// Adds both constants at once. Returns what is no longer used.
    pub(super) fn apply(self, func: &mut Function) -> Vec<Value> {
        let Self { outer, inner } = self;
        for inst in outer {
            let Some((mut start, mut number)) = added_constant(func, inst) else { continue };
            while inner.binary_search(&start).is_ok()
                && let Some((from, more)) = func.dfg.value_def(start).inst().and_then(|sum| added_constant(func, sum))
            {
                let more = if fault!(ConstantForgotten) { 0 } else { more };
                (start, number) = (from, number.wrapping_add(more));
            }
            let result = func.dfg.first_result(inst);
            let ty = func.dfg.value_type(result);
            let before = is_marked(func).then(|| repeat_before(func, inst, inst));
            let number = at(func, inst).ins().iconst(ty, (number & mask(ty.bits())).cast_signed());
            func.replace(inst).iadd(start, number);
            if let Some(before) = before {
                let next = func.layout.next_inst(inst).expect("a block ends in a branch");
                assert_equal(func, next, Claim::SameResult, [before, result]);
            }
        }
        inner
    }
}
