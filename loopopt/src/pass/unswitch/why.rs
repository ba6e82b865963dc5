//! Why a loop is not unswitched.

use crate::refusal::refusals;
use cranelift_codegen::ir::Opcode;

refusals! {
    /// Why a loop is not unswitched.
    pub(super) enum Decline {
        /// (L1) No branch in it takes the same edge each time.
        NothingInvariant => "nothing-invariant", "the loop has no invariant branch";
        /// (P1) The branch leads to a trap.
        Check => "check", "the invariant branch checks for a trap";
        /// (P5) A select takes less time than its values are worth.
        SmallGain { insts: usize, min: usize }
            => "small-gain", "without the select, the loop has {insts} instructions less; it should be {min}";
        /// (P6) The loop has an inner loop, and the branch is not in that.
        BesideLoop => "beside-loop", "the invariant branch is not in the inner loop";
        /// (P2) Too much would be copied.
        TooLarge { insts: usize, versions: usize, max: usize }
            => "too-large",
            "it would grow by {insts} instructions or more, and has {versions} versions; the product may be {max}",
            help "raise Options::unswitch_max_insts if the loop is hot";
        /// (P3) There would be too many versions of it.
        TooManyVersions { versions: usize, max: usize }
            => "too-many-versions", "there would be {versions} versions of the loop; there may be {max}",
            help "raise Options::unswitch_max_versions if the loop is hot";
        /// (P4) The loop, or the branch, is cold.
        Cold => "cold", "the loop, or its invariant branch, is cold",
            help "do not mark the loop or the branch cold if it runs often";
        /// (P8) There are more branches than were looked at.
        SearchTooLong { others: usize }
            => "search-too-long",
            "{others} invariant branches were not looked at: the search takes too long",
            help "split the loop, or raise Options::unswitch_max_looks";
    }
    shared { NotDuplicable(opcode: Opcode) }
}

impl Decline {
    /// How much it says: of several reasons the one that says most is remarked.
    pub(super) fn rank(&self) -> usize {
        match self {
            Self::NothingInvariant => 0,
            Self::SmallGain { .. } | Self::BesideLoop => 1,
            Self::Check => 2,
            Self::Cold => 3,
            Self::NotDuplicable(_) => 4,
            Self::TooManyVersions { .. } => 5,
            Self::TooLarge { .. } => 6,
            Self::SearchTooLong { .. } => 7,
        }
    }
}
