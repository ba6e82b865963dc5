//! Accesses that a test before their loop has proved disjoint.
//!
//! Or that their addresses have proved disjoint, before `widen_indices` made others of them: in each iteration, and so from one entry
//! of the loop to where it is left.
//!
//! `version` knows of the fast loop what the flags and addresses of accesses do not say: a cell at an address that is the same in each iteration, and
//! another access that never touches it there. Both are remembered here by their instructions, which stay what they are wherever passes move them,
//! and [`Access::may_alias`](crate::analysis::memory::alias::Access::may_alias) asks.
//!
//! # What is said
//!
//! Of a pair of a cell and another access: while the loop runs, the fast one if there are two, from one entry to where it is left, the bytes of the other access are none of
//! those of the cell. So an execution of the one and one of the other never overlap if the address of the cell is the same value for both: the cell of
//! the one entry is that of the other then, and the other access has been tested against it, whether that entry executes it or not. That is what `may_alias` is
//! asked for, and it is why a cell that was hoisted out of the loop is still proved disjoint from what stays inside, also for those who look at an enclosing loop.
//!
//! Two accesses that both move may be *far apart*: in each iteration, the one touches no byte within a number of bytes around the other, the *reach*. If
//! one of them moves by `s` in an iteration, they do not overlap in two iterations between which it moves by no more than the reach.
//!
//! # Copies
//!
//! A copy of an instruction is unknown here, and so may overlap anything. Copies of an enclosing loop run one after another: there the cell of one copy
//! would be taken for that of another. The slow loop is a copy, too. Of the copies of an iteration in an unrolled group it is known
//! ([`add_iterations`](Disjoint::add_iterations)): they are a few iterations apart, and a cell whose address is the same in all of them is one cell. That need
//! not be so: if the loop that had the cell was removed, as it runs once only, the unrolled one is the outer loop, in each iteration of which the cell may be another.

use cranelift_codegen::ir::Inst;
use cranelift_codegen::{FxHashMap, FxHashSet};

/// Pairs of accesses that are proved disjoint.
#[derive(Clone, Debug, Default)]
pub struct Disjoint {
    /// The instructions of all pairs.
    members: FxHashSet<Inst>,
    /// The one to the cell first.
    pairs: FxHashSet<[Inst; 2]>,
    /// Accesses that move, each with one that is far from it, and the reach in bytes.
    far: FxHashMap<[Inst; 2], u64>,
}

impl Disjoint {
    /// Remembers of an access to a cell and another one that they do not overlap.
    pub fn add(&mut self, cell: Inst, other: Inst) {
        self.members.extend([cell, other]);
        self.pairs.insert([cell, other]);
    }

    /// Whether two accesses are proved disjoint.
    pub fn are_disjoint(&self, a: Inst, b: Inst) -> bool {
        !self.pairs.is_empty() && [[a, b], [b, a]].iter().any(|pair| self.pairs.contains(pair))
    }

    /// Remembers that in each iteration, `other` touches no byte within `reach` around those of `moving`.
    pub fn add_far(&mut self, moving: Inst, other: Inst, reach: u64) {
        self.members.extend([moving, other]);
        self.far.insert([moving, other], reach);
    }

    /// Whether two accesses do not overlap where both run in one iteration, `moving` before `other`, or in one unrolled group.
    pub fn are_far(&self, moving: Inst, other: Inst) -> bool {
        !self.far.is_empty() && self.far.contains_key(&[moving, other])
    }

    /// Gets to know the copies that an unrolled group has of its first iteration: `insts` are the instructions of that, `copies` those of each
    /// copy in the same order. `step` says by how much the address of an access grows in each iteration, if that is known: 0 if it is the same in all.
    pub fn add_iterations(&mut self, insts: &[Inst], copies: &[Vec<Inst>], step: impl Fn(Inst) -> Option<i64>) {
        let members: Vec<_> = (0..insts.len()).filter(|&place| self.is_member(insts[place])).collect();
        let of = |place: usize| [insts[place]].into_iter().chain(copies.iter().map(move |copy| copy[place]));
        let iterations = copies.len() as u64;
        for (&a, &b) in members.iter().flat_map(|a| members.iter().map(move |b| (a, b))) {
            let all = || of(a).flat_map(|one| of(b).map(move |other| (one, other)));
            let is_cell = step(insts[a]) == Some(0);
            if is_cell && self.pairs.contains(&[insts[a], insts[b]]) {
                all().for_each(|(cell, other)| self.add(cell, other));
            }
            let Some(&reach) = self.far.get(&[insts[a], insts[b]]) else { continue };
            let distance = step(insts[a]).and_then(|step| step.unsigned_abs().checked_mul(iterations));
            if distance.is_some_and(|distance| distance <= reach) {
                all().for_each(|(moving, other)| self.add_far(moving, other, reach));
            }
        }
    }

    /// Forgets what no longer holds where the first block of a loop becomes its last: an iteration then has that block as the next one had it.
    /// `is_first` says of an access of the loop whether that block has it, and `is_fixed` whether it is at the same address in all iterations of the loop.
    pub fn shift(&mut self, is_first: impl Fn(Inst) -> Option<bool>, is_fixed: impl Fn(Inst) -> bool) {
        let stay_together = |[a, b]: &[Inst; 2]| is_first(*a).zip(is_first(*b)).is_none_or(|(a, b)| a == b);
        self.pairs.retain(|pair| stay_together(pair) || is_fixed(pair[0]));
        self.far.retain(|pair, _| stay_together(pair));
    }

    /// Whether an access is one of a pair.
    pub fn is_member(&self, inst: Inst) -> bool {
        self.members.contains(&inst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs() {
        let [a, b, c] = [1, 2, 3].map(Inst::from_u32);
        let mut disjoint = Disjoint::default();
        assert!(!disjoint.are_disjoint(a, b) && !disjoint.is_member(a));
        disjoint.add(b, a);
        disjoint.add(b, c);
        assert!(disjoint.are_disjoint(a, b) && disjoint.are_disjoint(b, a) && disjoint.are_disjoint(b, c));
        assert!(!disjoint.are_disjoint(a, c) && !disjoint.are_disjoint(a, a) && disjoint.is_member(c));
    }

    #[test]
    fn what_comes_to_be_of_two_iterations() {
        let [cell, other, load, store] = [1, 2, 3, 4].map(Inst::from_u32);
        let shifted = |first: &[Inst], inside: &[Inst], fixed: bool| {
            let mut disjoint = Disjoint::default();
            disjoint.add(cell, other);
            disjoint.add_far(load, store, 8);
            disjoint.shift(|inst| inside.contains(&inst).then(|| first.contains(&inst)), |_| fixed);
            (disjoint.are_disjoint(cell, other), disjoint.are_far(load, store))
        };
        let all = [cell, other, load, store];
        assert_eq!(shifted(&[cell, load], &all, false), (false, false));
        assert_eq!(shifted(&[other, store], &all, false), (false, false));
        assert_eq!(shifted(&[other, store], &all, true), (true, false));
        assert_eq!(shifted(&[], &all, false), (true, true), "all behind the header");
        assert_eq!(shifted(&all, &all, false), (true, true), "all in the header");
        assert_eq!(shifted(&[other], &[other, load, store], false), (true, true), "the cell is in front of the loop");
    }

    #[test]
    fn iterations_of_a_group() {
        let [load, store, cell, load1, store1, cell1, load2, store2, cell2] =
            [1, 2, 3, 4, 5, 6, 7, 8, 9].map(Inst::from_u32);
        let mut disjoint = Disjoint::default();
        disjoint.add_far(load, store, 16);
        disjoint.add(cell, store);
        let group = |disjoint: &Disjoint, step: i64, cells: i64| {
            let mut disjoint = disjoint.clone();
            let copies = [vec![load1, store1, cell1], vec![load2, store2, cell2]];
            disjoint
                .add_iterations(&[load, store, cell], &copies, |inst| Some(if inst == cell { cells } else { step }));
            disjoint
        };
        for step in [-8, 8] {
            let near = group(&disjoint, step, 0);
            assert!(near.are_far(load, store2) && near.are_far(load2, store) && near.are_far(load1, store1));
            assert!(near.are_disjoint(cell, store2) && near.are_disjoint(store1, cell2) && near.is_member(cell1));
            assert!(!near.are_far(store, load) && !near.are_disjoint(load1, store1));
        }
        let out_of_reach = group(&disjoint, 9, 0);
        assert!(out_of_reach.are_far(load, store) && !out_of_reach.are_far(load, store1));
        assert!(!out_of_reach.are_far(load1, store1) && out_of_reach.are_disjoint(cell1, store));
        let moves = group(&disjoint, 8, 8);
        assert!(
            moves.are_disjoint(cell, store) && !moves.are_disjoint(cell, store1) && !moves.are_disjoint(cell1, store)
        );
    }
}
