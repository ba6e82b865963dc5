//! Which accesses of a loop may overlap, without comparing each with each.
//!
//! An address is a base and a constant. Of one base, the accesses near a place are found by their constants. Two bases are compared
//! once in a function: how far apart they are ([`Access::distances`]) does not depend on the loop, nor does the base of an access, so that
//! the enclosing loops of a loop need not find out again.
//!
//! # Cost
//!
//! For each place that is asked about, one step for each base of the loop; bases of one loop are compared at most as often as
//! [`Options::promote_max_pairs`](crate::Options::promote_max_pairs) says.

use crate::analysis::inst::number::mask;
use crate::analysis::memory::alias::{Access, PrivateSlots};
use crate::analysis::scev::linear_expr::{Sum, are_disjoint};
use cranelift_codegen::ir::{AliasRegion, Function, Inst};
use cranelift_codegen::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::ops::Deref;
use std::rc::Rc;

/// An address without its constant, by a number.
type Base = usize;

/// An address: equal places are equal addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    base: Base,
    constant: u64,
}

/// A load or a store, and where it is.
#[derive(Clone, Debug)]
pub(super) struct Located {
    access: Access,
    pub(super) place: Place,
}

impl Deref for Located {
    type Target = Access;

    fn deref(&self) -> &Access {
        &self.access
    }
}

/// The addresses of a function, as far as a loop has been looked at.
pub(super) struct Addresses {
    pub(super) private: PrivateSlots,
    located: FxHashMap<Inst, Rc<Located>>,
    numbers: FxHashMap<Sum, Base>,
    /// The first access of each base.
    bases: Vec<Rc<Located>>,
    /// How far bases are apart.
    distances: FxHashMap<[Base; 2], Option<Vec<u64>>>,
}

impl Addresses {
    pub(super) fn new(private: PrivateSlots) -> Self {
        Self {
            private,
            located: FxHashMap::default(),
            numbers: FxHashMap::default(),
            bases: Vec::new(),
            distances: FxHashMap::default(),
        }
    }

    /// The plain load or store `inst`. What was found for an inner loop still holds, unless a value of the address has become another.
    pub(super) fn locate(&mut self, func: &Function, inst: Inst) -> Option<Rc<Located>> {
        if let Some(located) = self.located.get(&inst).filter(|located| is_current(func, &located.address)) {
            return Some(located.clone());
        }
        let access = Access::of(func, inst)?;
        let constant = access.address.constant_part();
        let base = access.address.clone().offset(constant.cast_signed().wrapping_neg());
        let number = *self.numbers.entry(base).or_insert(self.bases.len());
        let located = Rc::new(Located { access, place: Place { base: number, constant } });
        if number == self.bases.len() {
            self.bases.push(located.clone());
        }
        self.located.insert(inst, located.clone());
        Some(located)
    }

    /// How far base `a` is from base `b`, as in [`Access::distances`]. Takes one from `left` if that has to be found out.
    fn distances(&mut self, [a, b]: [Base; 2], left: &mut usize) -> Result<Option<&[u64]>, TooManyPairs> {
        let Self { private, bases, distances, .. } = self;
        let found = match distances.entry([a, b]) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(vacant) => {
                *left = left.checked_sub(1).ok_or(TooManyPairs)?;
                let [a, b] = [a, b].map(|base| &bases[base]);
                let between = b.place.constant.wrapping_sub(a.place.constant);
                let bits = a.address.bits();
                let without_constants = |distance: u64| distance.wrapping_add(between) & mask(bits);
                let all = a.distances(b, private);
                vacant.insert(all.map(|all| all.into_iter().map(without_constants).collect()))
            }
        };
        Ok(found.as_deref())
    }
}

/// Whether no value of `address` is an alias of another by now.
fn is_current(func: &Function, address: &Sum) -> bool {
    let mut current = true;
    address.each_value(&mut |value| current &= func.dfg.resolve_aliases(value) == value);
    current
}

/// That a loop has more pairs of bases than may be compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooManyPairs;

/// The accesses of one kind to one base that carry one region.
#[derive(Debug)]
struct Class {
    /// In the order of their constants.
    members: Vec<Rc<Located>>,
}

/// The accesses of one loop, by what they may overlap.
#[derive(Debug)]
pub(super) struct Neighbours {
    loads: Vec<Class>,
    stores: Vec<Class>,
    /// How many bytes the largest access touches.
    widest: u32,
    /// How many bases may still be compared.
    left: usize,
}

impl Neighbours {
    /// For the loop with these accesses, of which `max` pairs of bases may be compared.
    pub(super) fn of(accesses: &[Rc<Located>], max: usize) -> Self {
        let classes = |is_store: bool| {
            let mut places = FxHashMap::<(Base, Option<AliasRegion>), usize>::default();
            let mut classes = Vec::<Class>::new();
            for access in accesses.iter().filter(|access| access.stored.is_some() == is_store) {
                // Nothing overlaps it.
                if access.flags.readonly() {
                    continue;
                }
                let place = places.entry((access.place.base, access.flags.alias_region())).or_insert(classes.len());
                if *place == classes.len() {
                    classes.push(Class { members: Vec::new() });
                }
                classes[*place].members.push(access.clone());
            }
            classes.iter_mut().for_each(|class| class.members.sort_by_key(|member| member.place.constant));
            classes
        };
        let widest = accesses.iter().map(|access| access.size).max().unwrap_or(0);
        Self { loads: classes(false), stores: classes(true), widest, left: max }
    }

    /// A store that may overlap `access`, of those that are `other`.
    pub(super) fn store(
        &mut self,
        addresses: &mut Addresses,
        access: &Located,
        other: impl Fn(&Located) -> bool,
    ) -> Result<Option<Inst>, TooManyPairs> {
        find(&self.stores, (addresses, &mut self.left), (access, self.widest), other)
    }

    /// All stores that may overlap `access`, it and those to its place too.
    pub(super) fn stores(
        &mut self,
        addresses: &mut Addresses,
        access: &Located,
    ) -> Result<FxHashSet<Inst>, TooManyPairs> {
        let all = RefCell::new(FxHashSet::default());
        // None is the one that is looked for, so that all are looked at.
        let is_last = |store: &Located| {
            all.borrow_mut().insert(store.inst);
            false
        };
        self.store(addresses, access, is_last)?;
        Ok(all.into_inner())
    }

    /// A load that may, of those that are `other`.
    pub(super) fn load(
        &mut self,
        addresses: &mut Addresses,
        access: &Located,
        other: impl Fn(&Located) -> bool,
    ) -> Result<Option<Inst>, TooManyPairs> {
        find(&self.loads, (addresses, &mut self.left), (access, self.widest), other)
    }
}

/// A member of `classes`, none of which is of more than `widest` bytes, that may overlap `access`.
fn find(
    classes: &[Class],
    (addresses, left): (&mut Addresses, &mut usize),
    (access, widest): (&Located, u32),
    other: impl Fn(&Located) -> bool,
) -> Result<Option<Inst>, TooManyPairs> {
    for class in classes {
        let Some(first) = class.members.first().filter(|first| !first.is_kept_apart(access)) else { continue };
        let found = match (access.place.base, first.place.base) {
            (a, b) if a == b => class.near(access, 0, widest).find(|&member| other(member)),
            pair => match addresses.distances(pair.into(), left)? {
                None => class.members.iter().find(|&member| other(member) && !access.is_always_disjoint(member)),
                Some(all) => all.iter().find_map(|&by| class.near(access, by, widest).find(|&member| other(member))),
            },
        };
        if let Some(found) = found {
            return Ok(Some(found.inst));
        }
    }
    Ok(None)
}

impl Class {
    /// The members that overlap `access` if its base is `distance` above theirs.
    fn near<'a>(&'a self, access: &'a Located, distance: u64, widest: u32) -> impl Iterator<Item = &'a Rc<Located>> {
        let bits = access.address.bits();
        let start = distance.wrapping_add(access.place.constant);
        let above = move |low: u64, member: &Located| member.place.constant.wrapping_sub(low) & mask(bits);
        // The largest one that ends after the start begins here.
        let low = start.wrapping_sub(u64::from(widest)) & mask(bits);
        let span = u64::from(widest) + u64::from(access.size);
        let (below, from) = self.members.split_at(self.members.partition_point(|member| member.place.constant < low));
        let window = from.iter().chain(below).take_while(move |member| above(low, member) <= span);
        window.filter(move |member| {
            let difference = start.wrapping_sub(member.place.constant) & mask(bits);
            !are_disjoint(difference, bits, access.size, member.size)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::all_insts;
    use crate::testing::context;

    /// Bases, offsets and regions in many combinations.
    fn accesses() -> String {
        let regions = ["", "region0", "region1"];
        let types = ["i64", "i32", "i8", "i8x16"];
        let bases = ["v0", "v1", "v10", "v11", "v12", "v13", "v14", "v16"];
        let mut text = String::new();
        for number in 0..240_usize {
            let base = bases[number * 7 % bases.len()];
            let offset = (number * 13 % 37) as i64 * 3 - 24;
            let (region, ty) = (regions[number * 11 % 3], types[number * 5 / 3 % 4]);
            let sign = if offset < 0 { "" } else { "+" };
            if number % 3 == 0 {
                let stored = ["v2", "v3", "v4", "v5"][number * 5 / 3 % 4];
                text.push_str(&format!("store notrap {region} {stored}, {base}{sign}{offset}\n"));
            } else {
                text.push_str(&format!("v{} = load.{ty} notrap {region} {base}{sign}{offset}\n", 100 + number));
            }
        }
        text
    }

    #[test]
    fn finds_what_comparing_each_with_each_finds() {
        let ctx = context(&format!(
            "function %f(i64, i64, i64, i32, i8, i8x16, i32) {{
                region0 = 0 \"a\"
                region1 = 1 \"b\"
                ss0 = explicit_slot 256
                ss1 = explicit_slot 256
                ss2 = explicit_slot 256
            block0(v0: i64, v1: i64, v2: i64, v3: i32, v4: i8, v5: i8x16, v6: i32):
                v10 = iadd v0, v1
                v7 = uextend.i64 v6
                v11 = iadd v0, v7
                v8 = iconst.i32 40
                v9 = iadd v6, v8
                v17 = uextend.i64 v9
                v12 = iadd v0, v17
                v13 = stack_addr.i64 ss0
                v14 = stack_addr.i64 ss1
                v15 = stack_addr.i64 ss2
                v16 = iadd v15, v1
                store v14, v0
                {}
                return
            }}",
            accesses()
        ));
        let mut addresses = Addresses::new(PrivateSlots::of(&ctx.func, &ctx.domtree));
        let insts = all_insts(&ctx.func);
        let all: Vec<_> = insts.filter_map(|inst| addresses.locate(&ctx.func, inst)).collect();
        assert_eq!(all.len(), 241);
        let mut neighbours = Neighbours::of(&all, 1_000);
        let (mut found, mut none) = (0, 0);
        for own in &all {
            let is_other = |other: &Located| other.place != own.place;
            let overlaps = |stores: bool| {
                let mut others = all.iter().filter(|other| other.stored.is_some() == stores && is_other(other));
                others.any(|other| own.may_alias(other, &addresses.private))
            };
            let expected = [overlaps(true), overlaps(false)];
            let store = neighbours.store(&mut addresses, own, is_other).expect("few pairs");
            let load = neighbours.load(&mut addresses, own, is_other).expect("few pairs");
            assert_eq!([store, load].map(|found| found.is_some()), expected, "{}", ctx.func.dfg.display_inst(own.inst));
            found += expected.iter().filter(|&&any| any).count();
            none += expected.iter().filter(|&&any| !any).count();
            for other in [store, load].into_iter().flatten() {
                let other = addresses.locate(&ctx.func, other).expect("an access");
                assert!(own.may_alias(&other, &addresses.private));
            }
        }
        assert!(found > 30 && none > 30, "{found} {none}");
    }

    #[test]
    fn pairs_are_compared_once() {
        let ctx = context(
            "function %f(i64, i64, i64) {
            block0(v0: i64, v1: i64, v2: i64):
                store v2, v0
                store v2, v1
                store v2, v0+8
                return
            }",
        );
        let mut addresses = Addresses::new(PrivateSlots::of(&ctx.func, &ctx.domtree));
        let insts = all_insts(&ctx.func);
        let all: Vec<_> = insts.filter_map(|inst| addresses.locate(&ctx.func, inst)).collect();
        let ask = |neighbours: &mut Neighbours, addresses: &mut Addresses, own: &Located| {
            neighbours.store(addresses, own, |other| other.place != own.place).map(|found| found.is_some())
        };
        let mut none = Neighbours::of(&all, 0);
        assert!(ask(&mut none, &mut addresses, &all[0]).is_err());
        let mut one = Neighbours::of(&all, 1);
        assert_eq!(ask(&mut one, &mut addresses, &all[0]).ok(), Some(true));
        assert_eq!(ask(&mut one, &mut addresses, &all[2]).ok(), Some(true));
        assert_eq!(ask(&mut none, &mut addresses, &all[0]).ok(), Some(true), "another loop has compared the two");
    }
}
