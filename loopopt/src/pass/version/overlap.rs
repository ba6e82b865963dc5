//! Cells that another access of the loop may overlap, and what proves the two disjoint.
//!
//! ```text
//! header(v2: i64):
//!     v3 = load.f64 v0+8                the cell: at v0 + 8 in each iteration
//!     v4 = iadd v1, v2
//!     v5 = load.f64 v4                  may be to the cell: at v1, v1 + 8, ...
//!     v6 = fadd v3, v5
//!     store v6, v0+8
//! ```
//!
//! `*sum += a[i]`, `c[i] += a[i][j] * x[j]` and `a[i] = b[i] * s->scale` are such loops: `promote` and `licm` would keep the cell in a register, but for
//! an access at an address that is not known to be another one. In the fast loop it is.
//!
//! # What is tested
//!
//! Bytes from `x` on, as many as `m`, and bytes from `y` on, as many as `n`, have none in common if on the circle of all addresses `y` is at least `m`
//! ahead of `x`, and `x` at least `n` ahead of `y`: if `d = y - x`, modulo two to the bits of addresses, is one of `m`, `m + 1`, ..., `2^bits - n`. That
//! is one comparison, with a constant: `d - m <= 2^bits - m - n`, unsigned. It holds wherever the array is, above the cell or below. If it has
//! to hold in each iteration, [`predication`](crate::analysis::scev::predication) says what is enough before the loop: that it holds at the start,
//! and that there is room for the advance of `d` up to the end of that arc. An array that comes near the cell from below has little room, one that begins above
//! it has nearly all of the circle. Nothing is taken for granted of sums: what wraps inside an extension is required not to.
//!
//! # What is won
//!
//! A cell that the loop only loads is hoisted by `licm` then, one that it stores to is carried by `promote`. So a cell counts if one of its loads runs in each
//! iteration, and may be done before the loop as far as can be seen: nothing comes before it that can be observed but checks, or it cannot trap. The pass
//! that moves it proves that again. If there has to be a test, they have to be many of the instructions of the loop: a long one is not worth a second version for one load.
//!
//! If both addresses are made of one base, and of an index that says nothing, such as in `a[i] = b[i] * a[k]`, the cell is likely to be one of the places that
//! are stored to: nothing is tested then. The address of a structure and a field of it that is an array are one base as well, but the distance
//! is known.
//!
//! A [poll](crate::analysis::memory::exit_polls) stays where it is, and so does what others write.

use super::check::Check;
use super::reloads::{is_unrolled, reloads};
use crate::analysis::cfg::edges::Edge;
use crate::analysis::cfg::loops::Loop;
use crate::analysis::cfg::must_execute::{FirstIteration, Order};
use crate::analysis::inst::effects::{Effects, is_constant};
use crate::analysis::inst::number::mask;
use crate::analysis::memory::alias::{Access, PrivateSlots, address_operand, cell_type};
use crate::analysis::memory::disjoint::Disjoint;
use crate::analysis::memory::exit_polls::polls;
use crate::analysis::scev::linear_expr::{Sum, Term};
use crate::analysis::scev::requirement::Requirement;
use crate::analysis::scev::view::View;
use crate::embedder::Writers;
use crate::fault::fault;
use crate::options::Options;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData};
use cranelift_codegen::{Context, FxHashMap};
use std::rc::Rc;

/// A cell at an address that is the same in each iteration, or a window that [moves](super::reloads).
#[derive(Clone, Debug)]
pub(super) struct Cell {
    /// All its accesses in the loop.
    pub(super) accesses: Vec<Inst>,
    /// Where it is.
    pub(super) address: Sum,
    /// How many bytes it has.
    pub(super) size: u32,
    /// If it moves, how many bytes it has on both sides of those of its accesses.
    pub(super) reach: Option<u64>,
    /// Whether the accesses of cells are so many of the instructions of the loop that it may be copied for them.
    pub(super) is_worth_a_test: bool,
}

/// Finds the cells of loops.
pub(super) struct Cells<'a> {
    view: View<'a>,
    options: &'a Options,
    /// What has been proved disjoint before.
    disjoint: Rc<Disjoint>,
    /// Made for the first loop that may have a cell.
    places: Option<(PrivateSlots, Order)>,
}

/// A load or a store of a loop.
pub(super) struct Seen {
    pub(super) access: Access,
    pub(super) block: Block,
    /// Where it is, as far as that is seen through parameters.
    pub(super) address: Sum,
    pub(super) is_invariant: bool,
    /// Whether each iteration reaches it.
    pub(super) is_certain: bool,
    /// Whether it is a load that the cell may leave memory for.
    is_won: bool,
}

impl<'a> Cells<'a> {
    /// For the loops of this function.
    pub(super) fn new(view: View<'a>, options: &'a Options, disjoint: Rc<Disjoint>) -> Self {
        Self { view, options, disjoint, places: None }
    }

    /// For each cell of `lp` that a register is won for if others do not overlap it: what is to be proved disjoint from it.
    pub(super) fn of(&mut self, lp: Loop) -> Vec<Vec<Check>> {
        /// Cells of one loop. More do not fit into registers with what else there is, and each is compared with all accesses.
        const MAX_CELLS: usize = 4;
        let Some(loads) = Loads::of(self.view, lp, self.options) else { return Vec::new() };
        let (view, options) = (self.view, self.options);
        let Context { func, domtree, cfg, .. } = view.ctx;
        let (private, order) = self.places();
        let seen = walk(view, lp, &order.sorted(view.forest.blocks(lp)));
        let others = Others { view, lp, options, private, seen: &seen };
        let mut found = Vec::new();
        if loads.any_is_invariant {
            let groups = groups(&seen).into_iter().filter(|group| group.iter().any(|own| own.is_won)).take(MAX_CELLS);
            let cells: Vec<_> = groups.filter_map(|group| others.disjoint(&group)).collect();
            let gone: usize = cells.iter().map(|(cell, _)| cell.accesses.len()).sum();
            let is_worth_a_test = options.ignore_cost
                || count_insts(func, view.forest.blocks(lp))
                    <= gone.saturating_mul(options.version_max_insts_per_cell_access);
            found.extend(cells.into_iter().map(|(cell, others)| {
                let cell = Rc::new(Cell { is_worth_a_test, ..cell });
                others.into_iter().map(|apart| Check::apart(apart.other, cell.clone(), apart.requires)).collect()
            }));
        }
        if loads.several_move {
            found.extend(reloads(&others));
        }
        if !found.is_empty() {
            let polls = polls(func, (cfg, domtree), view.forest, lp);
            let is_poll = |inst: &Inst| polls.binary_search(inst).is_ok();
            found.retain(|checks| !checks.iter().filter_map(Check::cell).any(|cell| cell.accesses.iter().any(is_poll)));
        }
        found
    }

    /// What proves the cells of these loads of `lp` disjoint from all stores there. None if it cannot be said of one of them.
    pub(super) fn of_loads(&mut self, lp: Loop, loads: &[Inst]) -> Option<Vec<Check>> {
        let (view, options) = (self.view, self.options);
        let (private, order) = self.places();
        let seen = walk(view, lp, &order.sorted(view.forest.blocks(lp)));
        let others = Others { view, lp, options, private, seen: &seen };
        let (mut found, mut cells, mut objects) = (Vec::new(), Vec::new(), Vec::<Cell>::new());
        for group in groups(&seen) {
            if !group.iter().any(|own| loads.contains(&own.access.inst)) {
                continue;
            }
            if group.iter().any(|own| own.access.stored.is_some()) {
                return None;
            }
            let cell = Cell::of(&group);
            if !objects.iter_mut().any(|object| object.takes_in(&cell).is_some()) {
                objects.push(cell.clone());
            }
            cells.push((cell, group));
        }
        let objects: Vec<_> = objects.into_iter().map(Rc::new).collect();
        for (cell, group) in cells {
            let object = objects.iter().find(|object| object.holds(&cell))?;
            let cell = Rc::new(cell);
            let apart = others.apart_from((&cell, object), &group)?;
            found.extend(apart.into_iter().map(|Apart { other, requires, is_near }| {
                let from = if is_near { &cell } else { object };
                Check::apart(other, from.clone(), requires)
            }));
        }
        found.truncate(if fault!(CellsAssumed) { 1 } else { found.len() });
        let is_invariant = |load: &Inst| seen.iter().any(|own| own.access.inst == *load && own.is_invariant);
        loads.iter().all(is_invariant).then_some(found)
    }

    /// What may be proved disjoint in this function, and the order of its blocks.
    fn places(&mut self) -> &(PrivateSlots, Order) {
        let Context { func, domtree, .. } = self.view.ctx;
        self.places.get_or_insert_with(|| {
            (PrivateSlots::of(func, domtree).with(self.disjoint.clone()), Order::of(func, domtree))
        })
    }
}

impl Cell {
    /// The cell of these accesses, all to one place.
    fn of(group: &[&Seen]) -> Self {
        let first = group[0];
        Self {
            accesses: group.iter().map(|own| own.access.inst).collect(),
            address: first.address.clone(),
            size: first.access.size,
            reach: None,
            is_worth_a_test: true,
        }
    }

    /// Becomes large enough for `other` as well, if the two are near each other, always as far. Nothing is said of the accesses to that.
    fn takes_in(&mut self, other: &Self) -> Option<()> {
        /// Bytes of an object. 64: a header of some fields; what lies in between may be stored to.
        const MAX_SIZE: i64 = 64;
        let ahead = other.address.minus(&self.address)?.as_constant()?.cast_signed();
        let (start, end) = (ahead.min(0), ahead.checked_add(other.size.into())?.max(self.size.into()));
        let size = end.checked_sub(start).filter(|&size| size <= MAX_SIZE)?;
        self.address = self.address.clone().offset(start);
        self.size = size as u32;
        Some(())
    }

    /// Whether `other` is a part of it.
    fn holds(&self, other: &Self) -> bool {
        let ahead = other.address.minus(&self.address).and_then(|distance| distance.as_constant());
        ahead.and_then(|ahead| ahead.checked_add(other.size.into())).is_some_and(|end| end <= self.size.into())
    }
}

/// What the loads of a loop may be.
struct Loads {
    /// Whether one is at an address that is the same in each iteration.
    any_is_invariant: bool,
    /// Whether two are at others, and the loop is likely to be unrolled.
    several_move: bool,
}

impl Loads {
    /// Those of `lp`, if something may be won: it is an innermost loop that stores, and does nothing else about memory than to load and store.
    fn of(view: View<'_>, lp: Loop, options: &Options) -> Option<Self> {
        let (func, forest) = (view.func(), view.forest);
        if !forest.is_innermost(lp) || forest.irreducible_in(lp).is_some() {
            return None;
        }
        let (mut loads, mut stores) = (0, 0);
        for inst in forest.blocks(lp).iter().flat_map(|&block| func.layout.block_insts(block)) {
            match func.dfg.insts[inst] {
                InstructionData::Load { .. } => loads += 1,
                InstructionData::Store { .. } => stores += 1,
                data if Effects::may_touch_memory(data.opcode()) && Effects::of(func, inst).fences => return None,
                _ => {}
            }
        }
        if stores == 0 || loads + stores > options.promote_max_accesses {
            return None;
        }
        let is_load = |inst: &Inst| matches!(func.dfg.insts[*inst], InstructionData::Load { .. });
        let is_invariant = |load| {
            let address = address_operand(func, load).and_then(|address| view.sum(address));
            address.is_some_and(|address| view.is_invariant(lp, &address))
        };
        let insts = forest.blocks(lp).iter().flat_map(|&block| func.layout.block_insts(block));
        let invariant = insts.filter(is_load).filter(|&load| is_invariant(load)).count();
        let found = Self {
            any_is_invariant: invariant > 0,
            several_move: loads > invariant + 1 && is_unrolled(view, lp, options),
        };
        (found.any_is_invariant || found.several_move).then_some(found)
    }
}

/// How many instructions of `blocks` are no constants.
pub(super) fn count_insts(func: &Function, blocks: &[Block]) -> usize {
    let insts = blocks.iter().flat_map(|&block| func.layout.block_insts(block));
    insts.filter(|&inst| !is_constant(func, inst)).count()
}

/// The plain loads and stores of `blocks`, those of `lp` in reverse postorder.
fn walk(view: View<'_>, lp: Loop, blocks: &[Block]) -> Vec<Seen> {
    let (func, forest) = (view.func(), view.forest);
    let mut all = Vec::new();
    // What comes after a check that always holds runs on each entry of the loop.
    let ends = |exit: Edge| !forest.fails_at(func, exit.target(func));
    let mut first = FirstIteration::leaving_by(func, (forest, &view.ctx.domtree), lp, ends);
    for &block in blocks {
        first.enter(block);
        let is_certain = forest.is_in_each_iteration(func, &view.ctx.domtree, lp, block);
        for inst in func.layout.block_insts(block) {
            let effects = Effects::of(func, inst);
            if let Some(access) = Access::of(func, inst).filter(|_| !effects.asserts) {
                let offset = func.dfg.insts[inst].load_store_offset().unwrap_or(0);
                let address = view.sum(access.operand).map(|sum| sum.offset(offset.into()));
                let flags = access.flags;
                let is_first = first.reaches(block) && first.interruption().is_none();
                let may_be_done = match flags.notrap() {
                    true => is_first || flags.can_move(),
                    false => is_first && first.observable().is_none(),
                };
                let is_invariant = address.as_ref().is_some_and(|address| view.is_invariant(lp, address));
                let is_won = access.stored.is_none() && may_be_done && !func.is_effectively_cold(block);
                let address = address.unwrap_or_else(|| access.address.clone());
                all.push(Seen { block, address, is_invariant, is_certain, is_won: is_won && is_invariant, access });
            }
            // A check that is tested before the loop is none of it.
            if !matches!(func.dfg.insts[inst], InstructionData::CondTrap { .. }) {
                first.pass_effects(inst, effects);
            }
        }
    }
    all
}

/// The accesses at addresses that are the same in each iteration, those to one cell together.
fn groups(seen: &[Seen]) -> Vec<Vec<&Seen>> {
    let mut numbers = FxHashMap::<(&Sum, u32), usize>::default();
    let mut groups = Vec::<Vec<&Seen>>::new();
    for own in seen.iter().filter(|own| own.is_invariant) {
        let number = *numbers.entry((&own.address, own.access.size)).or_insert(groups.len());
        if number == groups.len() {
            groups.push(Vec::new());
        }
        groups[number].push(own);
    }
    groups
}

/// What proves an access disjoint from a cell.
struct Apart {
    /// The access, and its block.
    other: (Inst, Block),
    requires: Vec<Requirement>,
    /// Whether it is always as far from the cell.
    is_near: bool,
}

/// What else a loop loads and stores.
pub(super) struct Others<'a> {
    pub(super) view: View<'a>,
    pub(super) lp: Loop,
    pub(super) options: &'a Options,
    private: &'a PrivateSlots,
    pub(super) seen: &'a [Seen],
}

impl Others<'_> {
    /// The cell of these accesses, and what it is to be proved disjoint from. Nothing if there is nothing, or if it would stay in memory all the same.
    fn disjoint(&self, group: &[&Seen]) -> Option<(Cell, Vec<Apart>)> {
        let (func, first) = (self.view.func(), group[0]);
        let kind = |own: &Seen| (cell_type(func, own.access.inst), own.access.flags.explicit_endianness());
        let is_stored = group.iter().any(|own| own.access.stored.is_some());
        let is_asynchronous = |own: &&Seen| self.options.is_asynchronous(func, own.access.flags);
        if group.iter().any(is_asynchronous) || is_stored && group.iter().any(|own| kind(own) != kind(first)) {
            return None;
        }
        let cell = Cell::of(group);
        let checks = self.apart_from((&cell, &cell), group)?;
        (!checks.is_empty()).then_some((cell, checks))
    }

    /// What proves `cell`, of these accesses, disjoint from others: for those that are not always as far from it, what proves all of `object` disjoint, which it is a part of. None if
    /// it is as likely as not one of the places that they access, or that cannot be said in sums.
    fn apart_from(&self, (cell, object): (&Cell, &Cell), group: &[&Seen]) -> Option<Vec<Apart>> {
        let is_stored = group.iter().any(|own| own.access.stored.is_some());
        let is_own = |other: &Seen| other.address == cell.address && other.access.size == cell.size;
        let is_met = |other: &&Seen| !is_own(other) && group.iter().any(|own| self.meets(own, other, is_stored));
        let mut checks = Vec::new();
        for other in self.seen.iter().filter(is_met) {
            if !self.options.ignore_cost && self.are_of_one_object(cell, other) {
                return None;
            }
            let is_near = self.is_known_distance(cell, other);
            let required = requirement(if is_near { cell } else { object }, other)?;
            let requires = if fault!(OneOverlapTested) && !checks.is_empty() { Vec::new() } else { vec![required] };
            checks.push(Apart { other: (other.access.inst, other.block), requires, is_near });
        }
        Some(checks)
    }

    /// Whether `cell` is as likely as not a place that `other` accesses: both addresses are made of one base, and of indices that say nothing.
    pub(super) fn are_of_one_object(&self, cell: &Cell, other: &Seen) -> bool {
        let [mut bases, mut others] = [&cell.address, &other.address].map(|sum| self.bases(sum));
        let common: Vec<_> = bases.iter().copied().filter(|base| others.contains(base)).collect();
        bases.retain(|base| !common.contains(base));
        others.retain(|base| !common.contains(base));
        let distance = other.address.minus(&cell.address);
        let is_known = distance.is_some_and(|distance| {
            let (fixed, _) = self.view.split(self.lp, &distance);
            fixed.as_constant().is_some()
        });
        !is_known && (bases.is_empty() || others.is_empty())
    }

    /// Whether `cell` and `other` are always as far from each other.
    pub(super) fn is_known_distance(&self, cell: &Cell, other: &Seen) -> bool {
        let distance = other.address.minus(&cell.address);
        distance.is_some_and(|distance| distance.as_constant().is_some())
    }

    /// What an address is made of that may be the address of an object: what is added once, and is loop-invariant if there is such a term.
    fn bases<'s>(&self, address: &'s Sum) -> Vec<&'s Term> {
        let mut open = vec![address];
        let (mut fixed, mut moving) = (Vec::new(), Vec::new());
        while let Some(sum) = open.pop() {
            for (term, _) in sum.terms().iter().filter(|(_, factor)| *factor == 1) {
                match term {
                    Term::Value(value) if !self.view.is_from_outside(self.lp, *value) => moving.push(term),
                    Term::Value(_) | Term::Slot(_) => fixed.push(term),
                    Term::Extended { sum, .. } => open.push(sum),
                    Term::Quotient { .. } | Term::Product(..) => {}
                }
            }
        }
        if fixed.is_empty() { moving } else { fixed }
    }

    /// Whether `other` may overlap `own`, an access to a cell, and that matters: of a cell that is only loaded, only if it writes it.
    pub(super) fn meets(&self, own: &Seen, other: &Seen, is_stored: bool) -> bool {
        let [region, others] = [own, other].map(|one| one.access.flags.alias_region());
        let is_writer =
            || others == region || self.options.writers(self.view.func(), own.access.flags) != Writers::Calls;
        let matters = is_stored || other.access.stored.is_some() && is_writer();
        matters && own.access.may_alias(&other.access, self.private)
    }
}

/// That `other` does not overlap `cell` where it runs. Nothing if that cannot be said in sums.
pub(super) fn requirement(cell: &Cell, other: &Seen) -> Option<Requirement> {
    if other.address.bits() != cell.address.bits() {
        return None;
    }
    let sizes = [cell.size, other.access.size];
    let [before, after] = if fault!(WidthForgotten) { [1, 1] } else { sizes.map(u64::from) };
    let distance = other.address.minus(&cell.address)?;
    let both = Some(before + after).filter(|&both| both <= mask(distance.bits()))?;
    let arc = Sum::constant(both.wrapping_neg(), distance.bits());
    Some(Requirement::at_most(distance.offset(-before.cast_signed()), arc))
}
