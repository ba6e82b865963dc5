//! Which addresses of a loop are computed in 64 bits, and how.

use super::gain::Gain;
use super::why::Decline;
use crate::analysis::cfg::loops::Loop;
use crate::analysis::facts::known::Place;
use crate::analysis::facts::nowrap::{Counter, Exact, Extents, Leaf, MayWrap};
use crate::analysis::inst::effects::is_constant;
use crate::analysis::memory::alias::address_operand;
use crate::analysis::pressure::Pressure;
use crate::analysis::scev::invariant::invariant_chain;
use crate::analysis::scev::linear_expr::{Sum, Term};
use crate::analysis::scev::view::View;
use crate::pass::PassCx;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::{Block, Inst, Opcode, StackSlot, Value, types};
use smallvec::SmallVec;

/// A number of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Wide {
    /// A value.
    Value(Value),
    /// The address of a stack slot.
    Slot(StackSlot),
    /// A narrower value that is extended where it is needed.
    Extended(Leaf),
    /// The counter of 64 bits that takes the place of a narrower one.
    Counted(Leaf),
}

impl Wide {
    /// The value that it is made of.
    pub(super) fn value(self) -> Option<Value> {
        match self {
            Self::Value(value) | Self::Extended(Leaf { value, .. }) | Self::Counted(Leaf { value, .. }) => Some(value),
            Self::Slot(_) => None,
        }
    }
}

/// Numbers, each with a factor.
pub(super) type Terms = SmallVec<[(Wide, u64); 4]>;

/// Accesses of which the addresses differ by constants only.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// What is loop-invariant: the base.
    pub(super) fixed: Terms,
    /// The part of the constant that is no offset of an access.
    pub(super) far: i64,
    /// What varies.
    pub(super) moving: Terms,
    pub(super) accesses: Vec<(Inst, Offset32)>,
}

impl Group {
    /// The value that is the base already, if there is one.
    pub(super) fn plain_base(&self) -> Option<Value> {
        match self.fixed[..] {
            [(Wide::Value(value), 1)] if self.far == 0 => Some(value),
            _ => None,
        }
    }

    /// Whether a base has to be computed before the loop.
    pub(super) fn makes_base(&self) -> bool {
        self.plain_base().is_none() && (!self.fixed.is_empty() || self.far != 0)
    }
}

/// What is to be done to one loop.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) lp: Loop,
    pub(super) groups: Vec<Group>,
    /// The counters that it needs in 64 bits.
    pub(super) counters: Vec<(Leaf, Counter)>,
    gain: Gain,
}

/// An address: what it adds up, apart from the constant, and that.
type Address = (Terms, i64);

/// Gathers the groups of one loop.
struct Finder<'a, 'e> {
    view: View<'a>,
    lp: Loop,
    extents: &'e mut Extents<'a>,
    groups: Vec<Group>,
    /// The addresses as sums: many accesses have one that another has.
    sums: FxHashMap<Value, Option<Sum>>,
    places: FxHashMap<(Terms, i64), usize>,
    counters: FxHashMap<Leaf, Counter>,
    /// Why the first address that cannot be widened cannot.
    obstacle: Option<(Inst, MayWrap)>,
    /// Whether an address would be added up otherwise than it is.
    adds_up: bool,
}

impl Plan {
    pub(super) fn find<'a>(
        view: View<'a>,
        lp: Loop,
        extents: &mut Extents<'a>,
        cx: &PassCx<'_>,
    ) -> Result<Self, Decline> {
        let func = view.func();
        let insts = view.forest.own_blocks(lp).flat_map(|block| func.layout.block_insts(block));
        let accesses: Vec<_> = insts.filter_map(|inst| Some((inst, address_operand(func, inst)?))).collect();
        let max = cx.options.widen_indices_max_accesses;
        if accesses.len() > max {
            return Err(Decline::TooManyAccesses { accesses: accesses.len(), max });
        }
        extents.allow(cx.options.widen_indices_max_questions);
        let (groups, counters) = (Vec::new(), FxHashMap::default());
        let (places, obstacle) = (FxHashMap::default(), None);
        let sums = FxHashMap::default();
        let mut finder = Finder { view, lp, extents, groups, sums, places, counters, obstacle, adds_up: false };
        for (inst, address) in accesses {
            finder.add(inst, address);
        }
        let Finder { groups, counters, obstacle, adds_up, .. } = finder;
        if groups.is_empty() {
            return Err(obstacle.map_or(Decline::NothingExtended, |(access, why)| Decline::MayWrap { access, why }));
        }
        if !adds_up && !cx.options.ignore_cost {
            return Err(Decline::NothingAdded);
        }
        let mut plan = Self { lp, groups, counters: Vec::new(), gain: Gain::default() };
        plan.judge(view, cx)?;
        plan.counters = counters.into_iter().filter(|(leaf, _)| plan.uses(*leaf)).collect();
        plan.counters.sort_unstable_by_key(|(leaf, _)| *leaf);
        Ok(plan)
    }

    /// Leaves out what there is no register for.
    fn judge(&mut self, view: View<'_>, cx: &PassCx<'_>) -> Result<(), Decline> {
        let func = view.func();
        let uses = Gain::uses(func, view.forest.blocks(self.lp));
        self.gain = Gain::of(view, self.lp, &self.groups, &uses);
        if cx.options.ignore_cost {
            return Ok(());
        }
        let mut short = None;
        let mut pressure = None;
        // Without a new base, it does not matter how many registers there are.
        while self.gain.bases > 0 {
            let pressure =
                pressure.get_or_insert_with(|| Pressure::of(func, view.forest, self.lp, cx.isa, &cx.use_counts));
            let ([needed, _], [available, _]) = pressure.needed();
            let [across_calls, _] = pressure.across_calls();
            let is_worth_it = self.gain.saves_for_each_base(cx.options.widen_indices_min_saved_per_base);
            let fits_across_calls = across_calls >= available || self.gain.fits_exactly(needed, across_calls);
            if self.gain.fits(needed, available) && (fits_across_calls || is_worth_it) {
                break;
            }
            let available = available.min(across_calls);
            let rarest = |group: &&(usize, &Group)| group.1.accesses.len();
            let with_base = self.groups.iter().enumerate().filter(|(_, group)| group.makes_base());
            let Some((place, _)) = with_base.collect::<Vec<_>>().iter().rev().min_by_key(rarest).copied() else {
                break;
            };
            short = Some(Decline::NoRegister { bases: self.gain.bases, needed, available });
            self.groups.remove(place);
            self.gain = Gain::of(view, self.lp, &self.groups, &uses);
        }
        match short {
            Some(short) if self.groups.is_empty() => Err(short),
            _ if self.gain.after >= self.gain.before => {
                Err(Decline::NoGain { before: self.gain.before, after: self.gain.after })
            }
            _ => Ok(()),
        }
    }

    fn uses(&self, leaf: Leaf) -> bool {
        let terms = self.groups.iter().flat_map(|group| group.fixed.iter().chain(&group.moving));
        terms.into_iter().any(|(wide, _)| *wide == Wide::Counted(leaf))
    }

    pub(super) fn describe(&self) -> String {
        let Gain { before, after, bases, released } = self.gain;
        let accesses: usize = self.groups.iter().map(|group| group.accesses.len()).sum();
        let counters: Vec<_> = self.counters.iter().map(|(leaf, _)| leaf.value.to_string()).collect();
        let counters = match &counters[..] {
            [] => String::new(),
            counters => format!("{} in 64 bits; ", counters.join(", ")),
        };
        format!(
            "{counters}addresses of 64 bits: {accesses}, instructions for them: {after} instead of {before}, \
             registers: {bases} more, {released} fewer"
        )
    }
}

impl Finder<'_, '_> {
    /// Adds an access, if its address can be widened.
    fn add(&mut self, inst: Inst, address: Value) {
        let func = self.view.func();
        if func.dfg.value_type(address) != types::I64 {
            return;
        }
        let is_extended = |(term, _): &(Term, u64)| matches!(term, Term::Extended { .. });
        let find = || self.view.sum(address).filter(|sum| sum.terms().iter().any(is_extended));
        let Some(sum) = self.sums.entry(address).or_insert_with(find).take() else { return };
        let offset = func.dfg.insts[inst].load_store_offset().unwrap_or(0);
        match self.widened(address, &sum, Place::Before(inst)) {
            Ok((terms, constant)) => {
                self.adds_up |= !is_plain(&sum) || terms.iter().any(|(wide, _)| matches!(wide, Wide::Counted(_)));
                self.group((inst, offset), (terms, constant));
            }
            Err(why) => drop(self.obstacle.get_or_insert((inst, why))),
        }
        self.sums.insert(address, Some(sum));
    }

    /// What `sum`, of 64 bits, which is `address`, is without extended sums, but those that are loop-invariant.
    fn widened(&mut self, address: Value, sum: &Sum, place: Place) -> Result<Address, MayWrap> {
        let mut terms = Terms::new();
        let mut constant = sum.constant_part().cast_signed();
        for (term, factor) in sum.terms() {
            let wide = match term {
                Term::Value(value) => Wide::Value(*value),
                Term::Slot(slot) => Wide::Slot(*slot),
                Term::Extended { signed, sum } => {
                    let Exact { terms: leaves, constant: own } = match self.extents.exact(sum, *signed, place) {
                        Ok(exact) => exact,
                        Err(why) => {
                            let value = self.fixed_extension(address, (sum, *signed)).ok_or(why)?;
                            add_term(&mut terms, Wide::Value(value), *factor);
                            continue;
                        }
                    };
                    constant = constant.wrapping_add(own.wrapping_mul(factor.cast_signed()));
                    for (leaf, count) in leaves {
                        let wide = self.wide(leaf);
                        add_term(&mut terms, wide, count.cast_unsigned().wrapping_mul(*factor));
                    }
                    continue;
                }
                Term::Quotient { .. } | Term::Product(..) => {
                    return Err(MayWrap { sum: sum.clone(), value: None });
                }
            };
            add_term(&mut terms, wide, *factor);
        }
        terms.sort_unstable();
        Ok((terms, constant))
    }

    /// The extension of `sum`, which is loop-invariant, that `address` is made of.
    fn fixed_extension(&self, address: Value, (sum, signed): (&Sum, bool)) -> Option<Value> {
        /// Instructions that an address is looked for in. 16: of each of the terms that a sum may have, a product and an addition.
        const MAX_INSTS: usize = 16;
        let func = self.view.func();
        if !self.view.is_invariant(self.lp, sum) {
            return None;
        }
        let (mut stack, mut looked_at) = (vec![address], 0);
        while let Some(value) = stack.pop().filter(|_| looked_at < MAX_INSTS) {
            looked_at += 1;
            let Some(inst) = func.dfg.value_def(value).inst() else { continue };
            let args = func.dfg.inst_args(inst);
            let opcode = func.dfg.insts[inst].opcode();
            if opcode == if signed { Opcode::Sextend } else { Opcode::Uextend } {
                // The amount of a shift may be of any type.
                if func.dfg.value_type(value) == types::I64
                    && self.view.sum(args[0]).is_some_and(|own| own == *sum)
                    && is_fixed(self.view, self.lp, Wide::Value(value))
                {
                    return Some(value);
                }
            } else if matches!(opcode, Opcode::Iadd | Opcode::Isub | Opcode::Ishl | Opcode::Imul) {
                stack.extend_from_slice(args);
            }
        }
        None
    }

    /// A leaf as a number of 64 bits.
    fn wide(&mut self, leaf: Leaf) -> Wide {
        let Some(counter) = self.extents.counter(leaf.value, leaf.signed) else { return Wide::Extended(leaf) };
        if !self.view.forest.encloses(counter.lp, self.lp) {
            return Wide::Extended(leaf);
        }
        self.counters.insert(leaf, counter);
        Wide::Counted(leaf)
    }

    fn group(&mut self, (inst, offset): (Inst, i32), (terms, constant): Address) {
        /// What an offset can be.
        const NEAR: i64 = i32::MAX as i64;
        let (view, lp) = (self.view, self.lp);
        let constant = constant.wrapping_add(offset.into());
        let (far, near) = match i32::try_from(constant) {
            Ok(near) => (0, near),
            Err(_) => (constant & !NEAR, (constant & NEAR) as i32),
        };
        let groups = &mut self.groups;
        let place = *self.places.entry((terms, far)).or_insert_with_key(|(terms, far)| {
            let (fixed, moving) = terms.iter().copied().partition(|(wide, _)| is_fixed(view, lp, *wide));
            groups.push(Group { fixed, far: *far, moving, accesses: Vec::new() });
            groups.len() - 1
        });
        self.groups[place].accesses.push((inst, near.into()));
    }
}

/// Whether an address is, apart from an offset, one number or the sum of two, of which one is extended: as an addressing mode has it.
fn is_plain(sum: &Sum) -> bool {
    let is_leaf = |term: &Term| match term {
        Term::Extended { sum, .. } => sum.constant_part() == 0 && matches!(sum.terms(), [(Term::Value(_), 1)]),
        _ => true,
    };
    let is_near = i32::try_from(sum.constant_part().cast_signed()).is_ok();
    sum.terms().len() <= 2 && is_near && sum.terms().iter().all(|(term, factor)| *factor == 1 && is_leaf(term))
}

/// Adds `factor` times `wide`.
fn add_term(terms: &mut Terms, wide: Wide, factor: u64) {
    match terms.iter_mut().find(|(own, _)| *own == wide) {
        Some((_, own)) => *own = own.wrapping_add(factor),
        None => terms.push((wide, factor)),
    }
    terms.retain(|(_, factor)| *factor != 0);
}

/// Whether a number can be computed before the loop: it is defined there, or made by a few instructions of the loop of what is, such as an
/// operation with a constant, which Cranelift recomputes in each block, and what has become invariant since `licm` ran.
fn is_fixed(view: View<'_>, lp: Loop, wide: Wide) -> bool {
    /// Instructions that are recomputed. 3: an extended index that is scaled is made of two.
    const MAX_REPEATED: usize = 3;
    let func = view.func();
    let Some(value) = wide.value() else { return true };
    if view.is_from_outside(lp, value) {
        return true;
    }
    let Some(chain) = invariant_chain(func, view.forest, lp, value) else { return false };
    let made = chain.iter().filter(|&&inst| !is_constant(func, inst)).count();
    made <= MAX_REPEATED && chain.iter().all(|&inst| func.dfg.inst_results(inst).len() == 1)
}

/// The outermost loop that encloses `lp`, itself included, in which all of these are invariant, so that they can be added up before it.
pub(super) fn home(view: View<'_>, lp: Loop, fixed: &Terms) -> Block {
    let mut home = lp;
    while let Some(around) = view.forest.data(home).parent {
        if !fixed.iter().all(|(wide, _)| is_fixed(view, around, *wide)) {
            break;
        }
        home = around;
    }
    view.forest.preheader(view.func(), home).expect("canonical form")
}
