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
//! A copy of an instruction is unknown here, and so may overlap anything. Copies of a loop around run behind one another: there the cell of one copy
//! would be taken for that of another. The slow loop is a copy, too.

use cranelift_codegen::FxHashSet;
use cranelift_codegen::ir::Inst;

/// Pairs of accesses that are told apart.
#[derive(Clone, Debug, Default)]
pub struct ToldApart {
    /// The instructions of all pairs.
    members: FxHashSet<Inst>,
    /// The smaller one first.
    pairs: FxHashSet<[Inst; 2]>,
}

impl ToldApart {
    /// Remembers of two accesses, one of them to a cell, that they do not overlap.
    pub fn add(&mut self, a: Inst, b: Inst) {
        self.members.extend([a, b]);
        self.pairs.insert(ordered(a, b));
    }

    /// Whether two accesses are told apart.
    pub fn are_apart(&self, a: Inst, b: Inst) -> bool {
        !self.pairs.is_empty() && self.pairs.contains(&ordered(a, b))
    }

    /// Whether an access is one of a pair.
    pub fn is_member(&self, inst: Inst) -> bool {
        self.members.contains(&inst)
    }
}

fn ordered(a: Inst, b: Inst) -> [Inst; 2] {
    if a <= b { [a, b] } else { [b, a] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs() {
        let [a, b, c] = [1, 2, 3].map(Inst::from_u32);
        let mut told_apart = ToldApart::default();
        assert!(!told_apart.are_apart(a, b) && !told_apart.is_member(a));
        told_apart.add(b, a);
        told_apart.add(b, c);
        assert!(told_apart.are_apart(a, b) && told_apart.are_apart(b, a) && told_apart.are_apart(b, c));
        assert!(!told_apart.are_apart(a, c) && !told_apart.are_apart(a, a) && told_apart.is_member(c));
    }
}
