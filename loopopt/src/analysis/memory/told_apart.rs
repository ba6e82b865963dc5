//! Accesses of which a test in front of their loop has said that they do not overlap.
//!
//! `version` knows of the fast loop what the flags and addresses of accesses do not say: a cell at an address that is the same in each iteration, and
//! another access that never touches it there. Both are remembered here by their instructions, which stay what they are wherever passes move them,
//! and [`Access::may_alias`](crate::analysis::memory::alias::Access::may_alias) asks.
//!
//! # What is said
//!
//! Of a pair of a cell and another access: while the fast loop runs, from one entry to where it is left, the bytes of the other access are none of
//! those of the cell. So a run of the one and a run of the other never overlap if the address of the cell is the same value for both: the cell of
//! the one entry is that of the other then, and the other access has been tested against it. That is what `may_alias` is asked for, and it is
//! why a cell that was hoisted out of the loop is still told apart from what stays inside, also by those who look at a loop around.
//!
//! # Copies
//!
//! A copy of an instruction is unknown here, and so may overlap anything, unless it is said to be one ([`copy`](ToldApart::copy)). That may be said only of
//! copies that run in the place of the loop on some of its entries. Copies of a loop around run behind one another: there the cell of one copy would
//! be taken for that of another.

use cranelift_codegen::ir::Inst;
use cranelift_codegen::{FxHashMap, FxHashSet};

/// Pairs of accesses that are told apart.
#[derive(Clone, Debug, Default)]
pub struct ToldApart {
    /// For each instruction of a pair, and each copy of one, the instruction that the pair was made for.
    members: FxHashMap<Inst, Inst>,
    /// The smaller one first.
    pairs: FxHashSet<[Inst; 2]>,
}

impl ToldApart {
    /// Remembers of two accesses, one of them to a cell, that they do not overlap.
    pub fn add(&mut self, a: Inst, b: Inst) {
        self.members.insert(a, a);
        self.members.insert(b, b);
        self.pairs.insert(ordered(a, b));
    }

    /// Remembers that `copy` runs in the place of `inst` on some of the entries of its loop.
    pub fn copy(&mut self, inst: Inst, copy: Inst) {
        if let Some(&first) = self.members.get(&inst) {
            self.members.insert(copy, first);
        }
    }

    /// Whether two accesses are told apart.
    pub fn are_apart(&self, a: Inst, b: Inst) -> bool {
        if self.pairs.is_empty() {
            return false;
        }
        let members = self.members.get(&a).zip(self.members.get(&b));
        members.is_some_and(|(&a, &b)| self.pairs.contains(&ordered(a, b)))
    }

    /// Whether an access is one of a pair, or a copy of one.
    pub fn is_member(&self, inst: Inst) -> bool {
        self.members.contains_key(&inst)
    }

    /// Whether there is no pair.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}

fn ordered(a: Inst, b: Inst) -> [Inst; 2] {
    if a <= b { [a, b] } else { [b, a] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_and_copies() {
        let [a, b, c, d] = [1, 2, 3, 4].map(Inst::from_u32);
        let mut told = ToldApart::default();
        assert!(told.is_empty() && !told.are_apart(a, b));
        told.add(b, a);
        told.copy(a, c);
        told.copy(d, d);
        assert!(told.are_apart(a, b) && told.are_apart(b, a) && told.are_apart(b, c));
        assert!(!told.are_apart(a, c) && !told.are_apart(a, d) && !told.are_apart(a, a));
    }
}
