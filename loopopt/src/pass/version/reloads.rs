//! Loads that come back: what one iteration loads at a place, and another one a few iterations later.
//!
//! ```text
//! header(v2: i64):
//!     v3 = load.f64 v2-8                in the next iteration, v2-8 is what v2 is in this one
//!     v4 = load.f64 v2
//!     v5 = fadd v3, v4
//!     store v5, v1                      may be to v2: at v1, v1 + 8, ...
//! ```
//!
//! In the unrolled loop, [`load_elimination`](crate::pass::load_elimination) loads once what several iterations of a group need, unless a store in between may
//! change it. So it is tested that each store stays away from these loads: further than what they move by in a group.
//!
//! # What is tested
//!
//! A window: the bytes of these loads in one iteration, and as many on both sides as they move by in a group. That the bytes of the store are none of those, in
//! each iteration, is what [`overlap`](super::overlap) tests of a cell and an access; here both move. If a store of one iteration of a group
//! were to bytes that a load of another iteration of it reads, it would be to the window that the load has in the iteration of the store.
//!
//! # What is won
//!
//! A load counts if another one loads in a later iteration of the group what it has loaded. They have to be many of the instructions of the loop, and that has to be small
//! enough to be unrolled.

use super::overlap::{Cell, Others, Seen, requirement};
use crate::analysis::cfg::loops::Loop;
use crate::analysis::inst::effects::is_constant;
use crate::analysis::inst::number::signed;
use crate::analysis::memory::alias::cell_type;
use crate::analysis::scev::linear_expr::{Sum, Term};
use crate::analysis::scev::recurrence::Recurrences;
use crate::analysis::scev::view::View;
use crate::fault::fault;
use crate::options::Options;
use crate::pass::version::check::Check;
use crate::pass::{load_elimination, partial_unroll};
use cranelift_codegen::ir::{Inst, InstructionData, Value, ValueDef};
use std::rc::Rc;

/// Loads at addresses that differ by constants, and are the same number of bytes further in each iteration.
struct Group<'s> {
    loads: Vec<&'s Seen>,
    /// By how much they move.
    step: i64,
}

/// For each group of loads of the loop that come back: what is to be kept away from them.
pub(super) fn reloads(others: &Others<'_>) -> Vec<Vec<Check>> {
    let Others { view, lp, options, .. } = *others;
    let iterations = partial_unroll::most_iterations(options);
    let groups = groups(others, iterations);
    let gone: usize = groups.iter().map(|group| group.comes_back(iterations)).sum();
    if !options.ignore_cost
        && insts_without_checks(view, lp) > gone.saturating_mul(options.version_max_insts_per_cell_access)
    {
        return Vec::new();
    }
    groups.iter().filter_map(|group| group.kept_away(others, iterations)).collect()
}

/// How many instructions an iteration has without constants, jumps and checks, which most versions take out.
fn insts_without_checks(view: View<'_>, lp: Loop) -> usize {
    let func = view.func();
    let insts = view.forest.blocks(lp).iter().flat_map(|&block| func.layout.block_insts(block));
    let is_code = |inst: &Inst| match func.dfg.insts[*inst] {
        InstructionData::Jump { .. } | InstructionData::CondTrap { .. } => false,
        _ => !is_constant(func, *inst),
    };
    insts.filter(is_code).count()
}

/// Whether the loop is likely to be unrolled.
pub(super) fn is_unrolled(view: View<'_>, lp: Loop, options: &Options) -> bool {
    let passes = [partial_unroll::NAME, load_elimination::NAME];
    options.ignore_cost
        || passes.iter().all(|pass| options.enables(pass))
            && insts_without_checks(view, lp) <= options.partial_unroll_max_insts / 2
            && !view.forest.may_end_early(view.func(), lp)
}

/// The groups of which a load comes back within so many iterations.
fn groups<'s>(others: &Others<'s>, iterations: usize) -> Vec<Group<'s>> {
    let Others { view, lp, seen, options, .. } = *others;
    let func = view.func();
    let recurrences = Recurrences::with_constant_steps(view, lp);
    let mut groups = Vec::<Group<'s>>::new();
    let is_load = |own: &&Seen| own.access.stored.is_none() && !own.is_invariant && own.is_certain;
    for own in seen.iter().filter(is_load).filter(|own| !options.is_asynchronous(func, own.access.flags)) {
        let kind = |own: &Seen| (cell_type(func, own.access.inst), own.access.flags.alias_region());
        let is_like = |group: &&mut Group<'s>| {
            let first = group.loads[0];
            kind(first) == kind(own) && group.distance(own).is_some()
        };
        match groups.iter_mut().find(is_like) {
            Some(group) => group.loads.push(own),
            None => {
                let step = step(view, lp, &recurrences, &own.address);
                groups.extend(step.map(|step| Group { loads: vec![own], step }));
            }
        }
    }
    groups.retain(|group| group.comes_back(iterations) > 0);
    groups
}

/// By how much an address moves in each iteration, if that is known but for an extension that may wrap.
fn step(view: View<'_>, lp: Loop, recurrences: &Recurrences, address: &Sum) -> Option<i64> {
    let step_of = |sum: &Sum| {
        let step = recurrences.of_sum(view, sum)?.step.as_constant()?;
        Some(signed(u64::try_from(step).ok()?, sum.bits()))
    };
    step_of(address).or_else(|| match view.split(lp, address).1[..] {
        [(Term::Extended { sum, .. }, 1)] => step_of(sum),
        _ => None,
    })
}

impl Group<'_> {
    /// How far a load is after the first one in memory, if that is known.
    fn distance(&self, load: &Seen) -> Option<i64> {
        let distance = load.address.minus(&self.loads[0].address)?;
        Some(signed(distance.as_constant()?, distance.bits()))
    }

    /// How many loads another one does again within so many iterations.
    fn comes_back(&self, iterations: usize) -> usize {
        let step = i128::from(self.step);
        if self.step.unsigned_abs() > MAX_STEP || iterations < 2 {
            return 0;
        }
        let distances = self.loads.iter().filter_map(|load| self.distance(load)).map(i128::from);
        // Where an address does not move, the next iteration loads it again.
        let class = |distance: i128| if step == 0 { distance } else { distance.rem_euclid(step) };
        let mut classes: Vec<_> = distances.map(|distance| (class(distance), distance)).collect();
        classes.sort_unstable();
        classes.dedup();
        if step == 0 {
            return classes.len();
        }
        // The nearest one in the class is the first that comes there.
        let is_again = |pair: &&[(i128, i128)]| {
            let [(class, before), (other, from)] = **pair else { return false };
            class == other && (from - before) / step.abs() < iterations as i128
        };
        classes.windows(2).filter(is_again).count()
    }

    /// What is to be kept away from the loads. Nothing if there is nothing, or if it cannot be tested.
    fn kept_away(&self, others: &Others<'_>, iterations: usize) -> Option<Vec<Check>> {
        let window = Rc::new(self.window(iterations)?);
        let is_store = |other: &&Seen| other.access.stored.is_some();
        let mut checks = Vec::new();
        for other in others.seen.iter().filter(is_store) {
            let mut met = self.loads.iter().filter(|own| others.meets(own, other, false));
            if met.next().is_none() || others.is_known_distance(&window, other) {
                continue;
            }
            let ignores_cost = others.options.ignore_cost;
            if !stands_before(others.view, &window.address, other.access.inst)
                || !ignores_cost && others.are_of_one_object(&window, other)
            {
                return None;
            }
            let required = requirement(&window, other)?;
            checks.push(Check::apart((other.access.inst, other.block), window.clone(), vec![required]));
        }
        (!checks.is_empty()).then_some(checks)
    }

    /// The bytes of the loads, and on both sides as many as they move by in so many iterations.
    fn window(&self, iterations: usize) -> Option<Cell> {
        let distances = || self.loads.iter().filter_map(|load| self.distance(load));
        let reach = self.step.unsigned_abs().checked_mul(iterations as u64)?;
        let [first, last] = match fault!(NextIterationForgotten) {
            true => [0, 0],
            false => [distances().min()?.checked_sub_unsigned(reach)?, distances().max()?.checked_add_unsigned(reach)?],
        };
        let size = u64::from(self.loads[0].access.size).checked_add(last.abs_diff(first))?;
        Some(Cell {
            accesses: self.loads.iter().map(|load| load.access.inst).collect(),
            address: self.loads[0].address.clone().offset(first),
            size: u32::try_from(size).ok()?,
            reach: Some(reach),
            is_worth_a_test: true,
        })
    }
}

/// The most bytes by which loads move: a page. What moves by more has no neighbours to load.
const MAX_STEP: u64 = 4096;

/// Whether all values of `sum` are available at `inst`.
fn stands_before(view: View<'_>, sum: &Sum, inst: Inst) -> bool {
    let func = view.func();
    let (domtree, layout) = (&view.ctx.domtree, &func.layout);
    let is_before = |value: Value| match func.dfg.value_def(value) {
        ValueDef::Result(def, _) => def != inst && domtree.dominates(def, inst, layout),
        ValueDef::Param(block, _) => layout.inst_block(inst).is_some_and(|home| domtree.block_dominates(block, home)),
        ValueDef::Union(..) => false,
    };
    let mut stands = true;
    sum.each_value(&mut |value| stands &= is_before(value));
    stands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_their_signs() {
        assert_eq!(signed(u64::from(u32::MAX), 32), -1);
        assert_eq!(signed(8, 32), 8);
        assert_eq!(signed(u64::MAX - 7, 64), -8);
        assert_eq!(signed(0x80, 8), -128);
    }
}
