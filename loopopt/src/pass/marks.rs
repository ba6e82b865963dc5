//! What passes have said of loops, by the block that is the header now: what the loop was when the function came in, and why others leave it unchanged.

use crate::analysis::cfg::loops::{Loop, LoopData, LoopForest};
use crate::fault::fault;
use crate::profile::LoopProfile;
use cranelift_codegen::ir::Block;
use cranelift_codegen::{FxHashMap, FxHashSet};

/// Why passes that can make a loop faster leave it as it is, without a remark: another loop is what they speak of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It runs only if something did not hold that the same loop without checks rests on.
    Slow,
    /// It encloses a fast loop, and returns to that from the rare part that has left it.
    AroundFast,
    /// It encloses strips, which are counted by a test of their own, or by that of the loop.
    AroundStrips { has_own_test: bool },
}

/// What passes have said of loops.
#[derive(Default)]
pub(crate) struct LoopMarks {
    /// For each header that a pass made, the header of the same loop in the function as it came in.
    origins: FxHashMap<Block, Block>,
    /// Why loops are left as they are.
    roles: FxHashMap<Block, Role>,
    /// For headers of loops that were peeled, how many iterations were taken out.
    peeled: FxHashMap<Block, usize>,
    /// The headers of remainder loops, by `split_iterations`.
    rests: FxHashSet<Block>,
    /// The headers of loops of which an iteration is several of the loop as it came in, by `partial_unroll`.
    pub(crate) unrolled: FxHashSet<Block>,
    /// For headers of loops of the function as it came in, how many loops they have become, if that is more than one.
    versions: FxHashMap<Block, usize>,
    /// The headers, as the function came in, of loops that have a fast and a slow version, and whether the fast one may get versions once more.
    versioned: FxHashMap<Block, bool>,
    /// The headers, as the function came in, of loops that only the passes of [`Effort::Quick`](crate::Effort::Quick) look at.
    quick: FxHashSet<Block>,
    /// For headers of the function as it came in, how often the loop took its back edge each time that it was entered, on average, when it was recorded.
    usual: FxHashMap<Block, u64>,
}

impl LoopMarks {
    /// Remembers that the loop of `old` has the header `new` now, or that `new` is that of a copy. What is said of the one is said of the other, but that it
    /// is unrolled: the remainder loop of such a loop is not. `old` keeps what was said of it: it is no header any more, or that of the loop that was copied.
    pub(crate) fn header_moved(&mut self, old: Block, new: Block) {
        self.origins.insert(new, self.origin(old));
        if let Some(&role) = self.roles.get(&old) {
            self.roles.insert(new, role);
        }
        if let Some(&iterations) = self.peeled.get(&old) {
            self.peeled.insert(new, iterations);
        }
        if self.rests.contains(&old) {
            self.rests.insert(new);
        }
    }

    /// Whether a pass made this header.
    pub(crate) fn is_new_header(&self, header: Block) -> bool {
        self.origins.contains_key(&header)
    }

    /// What the header of the loop was when the function came in.
    pub(crate) fn origin(&self, header: Block) -> Block {
        self.origins.get(&header).copied().unwrap_or(header)
    }

    /// Remembers that the loop of `header` is a slow version.
    pub(crate) fn add_slow(&mut self, header: Block) {
        self.roles.insert(header, Role::Slow);
    }

    /// Remembers that the loop of `header` has a fast and a slow version, and whether the fast one may get versions once more: it may not do so a second time.
    pub(crate) fn add_versions(&mut self, header: Block, once_more: bool) {
        let origin = self.origin(header);
        let is_first = !self.versioned.contains_key(&origin);
        self.versioned.insert(origin, once_more && is_first);
    }

    /// Whether the loop of `header` may get a fast and a slow version.
    pub(crate) fn may_get_versions(&self, header: Block) -> bool {
        self.versioned.get(&self.origin(header)).is_none_or(|once_more| *once_more)
    }

    /// Remembers that `header` is that of a loop that encloses a fast one.
    pub(crate) fn add_around(&mut self, header: Block) {
        self.roles.insert(header, Role::AroundFast);
    }

    /// The headers of loops that enclose strips.
    pub(crate) fn around_strips(&self) -> FxHashSet<Block> {
        let around = self.roles.iter().filter(|(_, role)| matches!(role, Role::AroundStrips { .. }));
        around.map(|(&header, _)| header).collect()
    }

    /// The headers of loops that enclose fast ones.
    pub(crate) fn around_fast(&self) -> FxHashSet<Block> {
        let around = self.roles.iter().filter(|&(_, &role)| role == Role::AroundFast);
        around.map(|(&header, _)| header).collect()
    }

    /// Remembers that `header` is that of a loop that encloses strips, and whether a test of their own counts them.
    pub(crate) fn add_strips(&mut self, header: Block, has_own_test: bool) {
        self.roles.insert(header, Role::AroundStrips { has_own_test });
    }

    /// Whether the loop of `header` is a slow version, or encloses a fast one or strips. A pass that can make a loop faster leaves
    /// it as it is, without a remark: the fast version, or the strip, is what it speaks of.
    pub(crate) fn is_left_alone(&self, header: Block) -> bool {
        self.roles.contains_key(&header)
    }

    /// Whether there is such a loop.
    pub(crate) fn has_left_alone(&self) -> bool {
        !self.roles.is_empty()
    }

    /// Whether this loop, or an enclosing one, is a slow version.
    pub(crate) fn is_in_slow_version(&self, forest: &LoopForest, lp: Loop) -> bool {
        let is_slow = |lp: &Loop| self.roles.get(&forest.data(*lp).header) == Some(&Role::Slow);
        self.has_left_alone() && std::iter::successors(Some(lp), |&lp| forest.data(lp).parent).any(|lp| is_slow(&lp))
    }

    /// The header of the outer loop, if `lp` is one of its strips, which a test of its own counts. A loop of the program that a strip held, and
    /// that is in the place of it once the strip is unrolled, is none: strips are what the outer loop was when the function came in.
    pub(crate) fn strips_around(&self, forest: &LoopForest, lp: Loop) -> Option<Block> {
        let LoopData { header, parent, .. } = *forest.data(lp);
        let around = forest.data(parent?).header;
        let is_strip = self.origin(header) == self.origin(around) || fault!(AnyLoopIsAStrip);
        (is_strip && self.roles.get(&around) == Some(&Role::AroundStrips { has_own_test: true })).then_some(around)
    }

    /// Leaves the loop of `header`, of the function as it came in, to the passes of [`Effort::Quick`](crate::Effort::Quick).
    pub(crate) fn add_quick(&mut self, header: Block) {
        self.quick.insert(header);
    }

    /// Whether passes that cost much look at the loop of `header`: it is not [left unchanged](Self::is_left_alone), and something may be gained.
    pub(crate) fn has_full_effort(&self, header: Block) -> bool {
        !self.is_left_alone(header) && !self.quick.contains(&self.origin(header))
    }

    /// The same, and no enclosing loop is a slow version.
    pub(crate) fn has_full_effort_inside(&self, forest: &LoopForest, lp: Loop) -> bool {
        self.has_full_effort(forest.data(lp).header) && !self.is_in_slow_version(forest, lp)
    }

    /// Remembers that so many iterations were taken out of the loop of `header`.
    pub(crate) fn add_peeled(&mut self, header: Block, iterations: usize) {
        *self.peeled.entry(header).or_default() += iterations;
    }

    /// How many iterations were taken out of the loop of `header`.
    pub(crate) fn peeled(&self, header: Block) -> usize {
        self.peeled.get(&header).copied().unwrap_or(0)
    }

    /// Remembers that the loop of `header` is the remainder loop of another loop, which was split from it.
    pub(crate) fn add_rest(&mut self, header: Block) {
        self.rests.insert(header);
    }

    /// Whether the loop of `header` is such a loop.
    pub(crate) fn is_rest(&self, header: Block) -> bool {
        self.rests.contains(&header)
    }

    /// Remembers that there is one more loop that was the loop of `header` when the function came in.
    pub(crate) fn add_version(&mut self, header: Block) {
        *self.versions.entry(self.origin(header)).or_insert(1) += 1;
    }

    /// How many loops there are that were the loop of `header` when the function came in.
    pub(crate) fn versions(&self, header: Block) -> usize {
        self.versions.get(&self.origin(header)).copied().unwrap_or(1)
    }

    /// Remembers how often the loop of `header` takes its back edge.
    pub(crate) fn add_usual(&mut self, header: Block, recorded: &LoopProfile) {
        let origin = self.origin(header);
        self.usual.extend(recorded.usual_back_edges().map(|usual| (origin, usual)));
    }

    /// How often the loop of `header` takes its back edge on average, if a profile says.
    pub(crate) fn usual(&self, header: Block) -> Option<u64> {
        self.usual.get(&self.origin(header)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{block, context, forest};

    #[test]
    fn a_loop_of_the_program_is_no_strip() {
        // A loop in strips (block2), and one that each of its iterations holds (block3), whose enclosing strip is removed.
        let ctx = context(
            "function %f(i64) {
            block0(v0: i64):
                jump block1
            block1:
                jump block2
            block2:
                brif v0, block2, block3
            block3:
                brif v0, block3, block4
            block4:
                brif v0, block1, block5
            block5:
                return
            }",
        );
        let forest = forest(&ctx);
        let mut marks = LoopMarks::default();
        marks.header_moved(block(1), block(2));
        marks.add_strips(block(1), true);
        let strips_around = |header: u32| {
            let lp = forest.loop_of_header(block(header)).expect("a loop");
            marks.strips_around(&forest, lp)
        };
        assert_eq!(strips_around(2), Some(block(1)));
        assert_eq!(strips_around(3), None);
        assert_eq!(strips_around(1), None);
        #[cfg(feature = "fuzzing")]
        assert_eq!(crate::fault::with(crate::fault::Fault::AnyLoopIsAStrip, || strips_around(3)), Some(block(1)));
    }
}
