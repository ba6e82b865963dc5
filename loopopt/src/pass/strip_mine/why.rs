//! Why a loop polls in each iteration.

use crate::pass::Usual;
use crate::refusal::refusals;
use cranelift_codegen::ir::{Block, Inst, Value};

refusals! {
    /// Why a loop polls in each iteration.
    pub(super) enum Decline {
        /// No poll was found.
        NoPoll => "no-poll", "no iteration starts with a poll: a branch to rare code on memory that others write, or on fuel that runs out";
        /// An iteration starts with a branch to rare code, on nothing that is known as a poll.
        UnknownPoll(branch: Inst) => "unknown-poll", "{branch} leads to rare code, and is no poll for memory that others write, or for fuel that runs out",
            help "give what is polled a region of its own, which Embedder::writers says is written by others; carry fuel as a value, from which each path takes constants";
        /// (L3) What is polled is used.
        LoadUsed(load: Inst) => "load-used", "{load} is used for more than the poll";
        /// A cycle in the loop has two entries.
        Irreducible => "irreducible", "a cycle in the loop can be entered at two blocks";
        /// (L1) An iteration calls, or is fenced.
        Fenced(fence: Inst) => "fenced", "what {fence} does may be what the poll waits for";
        /// (L1) An iteration writes.
        WritesPolled(store: Inst) => "writes-polled", "{store} may write what the poll loads";
        /// (L1) An inner loop may run for any time.
        EndlessInnerLoop(header: Block) => "endless-inner-loop", "nothing bounds how long the inner loop of {header} runs";
        /// (P6) What counts down is an index.
        UsedOtherwise(number: Value) => "used-otherwise", "{number} counts down to where the rare code is, and is used for more than that";
        /// (P3) The strip's counter would only take the place of the poll.
        NotCounted => "not-counted", "no test of each iteration compares a recurrence with a loop-invariant number";
        /// (P3) It may find what it looks for soon.
        Searches(exit: Inst) => "searches", "{exit} may end the loop before its count does, so that it may be too short for a strip";
        /// (P4) The loop ends soon.
        FewIterations { most: u64, min: usize }
            => "few-iterations", "there are {most} iterations at most, fewer than {min}: setting up a strip takes as long as their polls";
        /// (L4) An inner loop polls something else.
        OtherFlagInside(branch: Inst) => "other-flag-inside", "{branch} in an inner loop tests something else than the polls of this loop";
        /// (P2) No two iterations fit.
        LongIteration { insts: usize, max: usize }
            => "long-iteration",
            "an iteration may execute {insts} instructions, and two polls may be {max} apart for two iterations in a strip",
            help "allow more by Embedder::poll_latency";
        /// (L2) Several numbers run out.
        SeveralFuels(fuel: Value) => "several-fuels", "another poll tests another number than {fuel}, or the same one by another comparison";
        /// (L2) What an iteration takes is not known.
        FuelUnknown(fuel: Value) => "fuel-unknown", "what an iteration takes of {fuel}, inner loops included, is no small sum of constants";
    }
    shared { ColdLoop, Withheld, UsuallyShort(usual: Usual, min: usize) }
}

impl Decline {
    /// Whether what looks like fuel is why.
    pub(super) fn is_of_fuel(&self) -> bool {
        matches!(self, Self::UsedOtherwise(_) | Self::SeveralFuels(_) | Self::FuelUnknown(_))
    }
}
