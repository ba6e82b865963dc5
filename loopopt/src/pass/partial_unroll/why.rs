//! Why a loop is not unrolled by a factor.

use crate::pass::Usual;
use crate::refusal::refusals;
use cranelift_codegen::ir::{Inst, Opcode, Value};

refusals! {
    /// Why a loop is not unrolled by a factor.
    pub(super) enum Decline {
        /// (L1) No test at its end counts it.
        NotCounted => "not-counted", "no test at the end of each iteration counts the loop",
            help "end the loop by comparing a number that grows by a constant with one that does not change. If only its data \
                can tell where it ends, as of a list, iterations have nothing to share";
        /// (P1) The iterations would be too large.
        TooLarge { insts: usize, max: usize }
            => "too-large", "the unrolled iterations would hold {insts} instructions; there may be {max}",
            help "raise Options::partial_unroll_max_insts if the loop is hot";
        /// (P1) The same, of a loop that no count ends.
        SearchTooLarge { insts: usize, max: usize }
            => "too-large", "each iteration keeps its tests, and two of them would hold {insts} instructions; there may be {max}",
            help "raise Options::partial_unroll_max_uncounted_insts if the loop is hot";
        /// (P1) The same, with what is cold and what is moved to other parameters.
        CopiesTooMuch { insts: usize, max: usize }
            => "too-large", "with their rare code and what they move, two iterations would hold {insts} instructions, more than {max}",
            help "raise Options::partial_unroll_max_copied if the loop is hot";
        /// The options allow no two iterations at a time.
        NoGroups { most: usize }
            => "no-groups", "the options allow {most} iterations at a time; unrolling needs at least 2",
            help "raise Options::partial_unroll_max_iterations";
        /// (P5) There are hardly enough iterations to run the unrolled loop twice.
        FewIterations { most: u128, factor: usize }
            => "few-iterations", "there are {most} iterations at most, and the unrolled loop would do {factor} at a time";
        /// (P5) The unrolled loop would never run.
        NeverEnough { factor: usize } => "few-iterations", "there are never {factor} iterations";
        /// (P2) It calls a function.
        Calls => "calls", "it calls a function, in which the time is spent",
            help "let the front end inline what is called, if it is short";
        /// (P2) It does something that takes the time.
        Slow(opcode: Opcode) => "slow", "each iteration waits for {opcode}, which takes the time";
        /// (P7) Nothing is won where each iteration waits for the one before.
        Waits(value: Value) => "waits", "the loop is not counted, and each iteration waits for the value that the one before has computed from {value}",
            help "nothing: unrolling would save the jump and the steps of counters, and the time is spent elsewhere";
        /// (P7) It is left at many places, as what it loads says.
        ManySearches { exits: usize, max: usize }
            => "many-searches", "{exits} branches leave the loop as what it loads says, more than {max}: it mostly ends soon, and nothing predicts which of them ends it",
            help "nothing: unrolling would save the jump and the steps of counters, and have twice the branches to predict";
        /// (P8) It exchanges what its iterations compare.
        Sorts { store: Inst }
            => "sorts", "where it branches depends on what it loads, and {store} is to where an iteration before has loaded that: \
                one branch learns what several would learn worse";
        /// (P1), (P5) It is left at more than one place, and large.
        EndsEarly => "ends-early",
            "something else than its count can end it, so that each iteration keeps its tests, and two such iterations are too large",
            help "raise Options::partial_unroll_max_uncounted_insts if the loop is hot. If it hardly ever ends so, mark what it leaves to as cold. If it is a search, its own exit stays in each iteration \
                whatever is done: test several elements at once, as 8 bytes of one load, and look for the one when they have it";
    }
    shared { NotInnermost, ColdLoop, NotDuplicable(opcode: Opcode), UsuallyShort(usual: Usual, min: usize) }
}
