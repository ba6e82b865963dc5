//! How many Spectre guards come back, of those that a version takes away, when they are consolidated.
//!
//! The groups are those that [`consolidate_guards`](crate::pass::consolidate_guards) would make of the fast loop: accesses before which there is no guard any
//! longer, up to the next instruction that may trap, call or exit. A guard counts as often as it is executed: one that comes back and asks the same in each iteration
//! is placed before the loop; and where the loop may be unrolled, one that advances with it is there for two iterations at least. What has lost its guard
//! already is counted before and after: the guards that are left may be what keeps it from sharing one.

use super::check::Check;
use super::plan::INNER_WEIGHT;
use crate::analysis::cfg::loops::Loop;
use crate::analysis::facts::known::Place;
use crate::analysis::facts::nowrap::Extents;
use crate::analysis::inst::effects::{Effects, is_constant};
use crate::analysis::memory::alias::{LoopStores, address_operand};
use crate::analysis::memory::checked_memory::{CheckedMemory, Roots};
use crate::analysis::scev::linear_expr::{Sum, Term};
use crate::analysis::scev::view::View;
use crate::options::Options;
use crate::pass::GuardPolicy;
use crate::pass::consolidate_guards::{Finder, Group, is_barrier, is_quiet};
use cranelift_codegen::ir::{Block, Function, Inst, Value};
use cranelift_codegen::{FxHashMap, FxHashSet};

/// Whether all of `checks`, which are in `lp`, but extensions and cells are guards, and more would be executed in the end; or as many, if the loop has to be copied
/// to take them away. If so, how many are there and how many come back.
pub(super) fn guards_come_back(
    view: View<'_>,
    lp: Loop,
    (checks, copies): (&[Check], bool),
    policy: &GuardPolicy<'_>,
) -> Option<[usize; 2]> {
    let mut gone = Gone::default();
    for check in checks.iter().filter(|check| check.extension().is_none() && check.cell().is_none()) {
        gone.gives.insert(check.inst, check.guarded_address()?);
    }
    let mut frequency = Frequency { view, lp, stores: FxHashMap::default() };
    let (mut guards, mut before) = (0, 0_u64);
    for check in checks.iter().filter(|check| check.extension().is_none() && policy.may_drop(view.ctx, check.inst)) {
        guards += 1;
        before = before.saturating_add(frequency.inside(view.forest.innermost(check.block)));
    }
    let mut sums = Sums::new(view, checks, policy.options);
    let now = Groups::of(view, lp, &Gone::default(), policy, &mut sums);
    let then = Groups::of(view, lp, &gone, policy, &mut sums);
    let before = before.saturating_add(now.frequency(&mut frequency, &mut sums, policy.options));
    let after = then.frequency(&mut frequency, &mut sums, policy.options);
    (after > before || (after == before && copies)).then_some([guards + now.groups.len(), then.groups.len()])
}

/// The groups of a loop.
struct Groups<'a> {
    groups: Vec<Group<'a>>,
    /// The blocks after which not all that is left of an iteration need be reached.
    barriers: FxHashSet<Block>,
}

impl<'a> Groups<'a> {
    /// The groups of `lp` once these guards are removed.
    fn of(view: View<'_>, lp: Loop, gone: &Gone, policy: &'a GuardPolicy<'_>, sums: &mut Sums<'_>) -> Self {
        let (func, roots) = (view.func(), Roots::new(view.ctx, policy.options));
        let mut unguarded = |inst: Inst| {
            let gives = |guard| gone.gives(guard, inst);
            let (mut access, memory) = policy.memories.unguarded_without(roots, inst, &gives)?;
            access.address = sums.wide(access.address, Place::Before(inst));
            Some((access, memory))
        };
        let stays = |inst: Inst| is_barrier(func, inst) && !gone.is_trusted(func, inst);
        let finder = Finder { ctx: view.ctx, forest: view.forest, unguarded: &mut unguarded, is_barrier: &stays };
        let blocks = || view.ctx.domtree.cfg_rpo().copied().filter(|&block| view.forest.contains(lp, block));
        let groups = finder.find(blocks());
        let barriers = blocks().filter(|&block| func.layout.block_insts(block).any(stays)).collect();
        Self { groups, barriers }
    }

    /// Twice as often as their guards are executed in an iteration.
    fn frequency(&self, frequency: &mut Frequency<'_>, sums: &mut Sums<'_>, options: &Options) -> u64 {
        let view = frequency.view;
        let of_group = |group: &Group<'_>| {
            let address = &group.accesses[0].address;
            let times = frequency.outside(group.block, address, group.memory);
            let around = group.always_in.filter(|&lp| may_be_unrolled(view, lp, options));
            let is_shared = around.is_some_and(|lp| {
                let passes = view.forest.own_blocks(lp).all(|block| !self.barriers.contains(&block));
                passes && sums.is_walked(lp, address)
            });
            if is_shared { times / 2 } else { times }
        };
        self.groups.iter().map(of_group).fold(0, u64::saturating_add)
    }
}

/// Guards that a version takes away.
#[derive(Default)]
struct Gone {
    /// What each of them gives, or what an access gets in the place of a guard outside of the loop.
    gives: FxHashMap<Inst, Value>,
}

impl Gone {
    /// What is in the place of `guard`, the operand of `access`, if it is removed there.
    fn gives(&self, guard: Inst, access: Inst) -> Option<Value> {
        self.gives.get(&guard).or_else(|| self.gives.get(&access)).copied()
    }

    /// Whether `inst` is an access that is known not to trap once the guards are removed.
    fn is_trusted(&self, func: &Function, inst: Inst) -> bool {
        let guard = address_operand(func, inst).and_then(|address| func.dfg.value_def(address).inst());
        guard.is_some_and(|guard| self.gives(guard, inst).is_some())
    }
}

/// How often guards are executed.
struct Frequency<'a> {
    view: View<'a>,
    lp: Loop,
    stores: FxHashMap<Loop, LoopStores>,
}

impl Frequency<'_> {
    /// Twice as often as what is in this loop is executed in an iteration.
    fn inside(&self, inner: Option<Loop>) -> u64 {
        let depth = |lp| self.view.forest.data(lp).depth;
        inner.map_or(0, |inner| INNER_WEIGHT.saturating_pow(depth(inner) - depth(self.lp)).saturating_mul(2))
    }

    /// The same of a guard of this address in `block`, once it has moved before the loops in which what it asks is invariant.
    fn outside(&mut self, block: Block, address: &Sum, memory: &CheckedMemory) -> u64 {
        let View { ctx, forest } = self.view;
        let mut level = forest.innermost(block);
        while let Some(lp) = level {
            let stores = self.stores.entry(lp).or_insert_with(|| LoopStores::of(&ctx.func, forest.blocks(lp)));
            if !self.view.is_invariant(lp, address) || !is_quiet(&ctx.func, stores, memory) {
                break;
            }
            level = forest.data(lp).parent.filter(|_| lp != self.lp);
        }
        self.inside(level)
    }
}

/// Whether a loop is one that `partial_unroll` may copy, as far as its limits say.
fn may_be_unrolled(view: View<'_>, lp: Loop, options: &Options) -> bool {
    let (func, forest) = (view.func(), view.forest);
    let own = || forest.own_blocks(lp).flat_map(|block| func.layout.block_insts(block));
    let max = options.partial_unroll_max_insts / 2;
    let counted = own().filter(|&inst| !is_constant(func, inst)).take(max + 1);
    forest.is_innermost(lp)
        && counted.count() <= max
        && !forest.may_end_early(func, lp)
        && !own().any(|inst| Effects::of(func, inst).diverges)
}

/// What addresses are the sums of in the fast loop.
struct Sums<'a> {
    view: View<'a>,
    extents: Extents<'a>,
    /// What extended sums become.
    wide: FxHashMap<Sum, &'a Sum>,
}

impl<'a> Sums<'a> {
    fn new(view: View<'a>, checks: &'a [Check], options: &Options) -> Self {
        let mut extents = Extents::new(view);
        extents.allow(options.widen_indices_max_questions);
        let func = view.func();
        let extensions = checks.iter().filter_map(|check| Some((check, check.extension()?)));
        let narrow = |check: &Check| Sum::of(func, func.dfg.inst_args(check.inst)[0]);
        Self { view, extents, wide: extensions.map(|(check, wide)| (narrow(check), wide)).collect() }
    }

    /// The sum in 64 bits that `sum` is, if no part of it may wrap before it is extended.
    fn wide(&mut self, sum: Sum, place: Place) -> Sum {
        self.widened(&sum, place).unwrap_or(sum)
    }

    fn widened(&mut self, sum: &Sum, place: Place) -> Option<Sum> {
        let mut all = Sum::constant(sum.constant_part(), sum.bits());
        for (term, factor) in sum.terms() {
            match term {
                Term::Extended { sum, .. } if self.wide.contains_key(sum.as_ref()) => {
                    all.add(self.wide[sum.as_ref()], *factor)?;
                }
                Term::Extended { signed, sum } => {
                    let exact = self.extents.exact(sum, *signed, place).ok()?;
                    all = all.offset(exact.constant.wrapping_mul(factor.cast_signed()));
                    for (leaf, count) in exact.terms {
                        let leaf = Sum::of_leaf(self.view.func(), leaf.value).extended(64, leaf.signed);
                        all.add(&leaf, count.cast_unsigned().wrapping_mul(*factor))?;
                    }
                }
                _ => all.add(&Sum::of_term(term.clone(), *factor, sum.bits()), 1)?,
            }
        }
        Some(all)
    }

    /// Whether `sum` changes by the same number of bytes in each iteration of `lp`, as far as is known.
    fn is_walked(&mut self, lp: Loop, sum: &Sum) -> bool {
        sum.terms().iter().all(|(term, factor)| match term {
            _ if self.view.is_invariant(lp, &Sum::of_term(term.clone(), *factor, 64)) => true,
            Term::Extended { signed, sum } => match sum.terms() {
                [(Term::Value(value), 1)] => self.extents.counter(*value, *signed).is_some(),
                _ => false,
            },
            Term::Value(_) => true,
            Term::Slot(_) | Term::Quotient { .. } | Term::Product(..) => false,
        })
    }
}
