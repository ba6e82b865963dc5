//! Why a loop is not unswitched.

use crate::remark::Refusal;
use std::borrow::Cow;
use std::fmt;

/// Why a loop is not unswitched.
pub(super) enum Decline {
    /// (L1) No branch in it goes the same way each time.
    NothingInvariant,
    /// (P1) The branch leads to a trap.
    Check,
    /// (P5) A select takes less time than its values are worth.
    SmallGain { insts: usize, min: usize },
    /// (P6) The loop has another one inside, and the branch does not stand in that.
    BesideLoop,
    /// (P2) Too much would be copied.
    TooLarge { insts: usize, versions: usize, max: usize },
    /// (P3) There would be too many versions of it.
    TooManyVersions { versions: usize, max: usize },
    /// (L2) An instruction stands for one place in the program.
    NotDuplicable(String),
    /// (P4) The loop, or the branch, is cold.
    Cold,
    /// (P8) There are more branches than were looked at.
    SearchTooLong { others: usize },
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

impl Refusal for Decline {
    fn slug(&self) -> &'static str {
        match self {
            Self::NothingInvariant => "nothing-invariant",
            Self::Check => "check",
            Self::SmallGain { .. } => "small-gain",
            Self::BesideLoop => "beside-loop",
            Self::TooLarge { .. } => "too-large",
            Self::TooManyVersions { .. } => "too-many-versions",
            Self::NotDuplicable(_) => "not-duplicable",
            Self::Cold => "cold",
            Self::SearchTooLong { .. } => "search-too-long",
        }
    }

    fn message(&self) -> Cow<'static, str> {
        match self {
            Self::NothingInvariant => "no branch goes the same way in each iteration".into(),
            _ => self.to_string().into(),
        }
    }

    fn help(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "raise Options::unswitch_max_insts if the loop is hot",
            Self::TooManyVersions { .. } => "raise Options::unswitch_max_versions if the loop is hot",
            Self::SearchTooLong { .. } => "split the loop, or raise Options::unswitch_max_looks",
            Self::Cold => "do not mark the loop or the branch cold if it runs often",
            Self::NothingInvariant
            | Self::Check
            | Self::BesideLoop
            | Self::SmallGain { .. }
            | Self::NotDuplicable(_) => "",
        }
    }
}

impl fmt::Display for Decline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingInvariant => write!(f, "no branch goes the same way in each iteration"),
            Self::Check => write!(f, "the branch that goes the same way in each iteration checks for a trap"),
            Self::SmallGain { insts, min } => {
                write!(f, "without the select, the loop has {insts} instructions less; it should be {min}")
            }
            Self::BesideLoop => {
                write!(f, "the branch that goes the same way in each iteration stands beside the loop inside")
            }
            Self::TooLarge { insts, versions, max } => {
                write!(
                    f,
                    "it would grow by {insts} instructions or more, and has {versions} versions; the product may be {max}"
                )
            }
            Self::TooManyVersions { versions, max } => {
                write!(f, "there would be {versions} versions of the loop; there may be {max}")
            }
            Self::NotDuplicable(opcode) => write!(f, "the loop holds {opcode}, which must not be copied"),
            Self::SearchTooLong { others } => write!(
                f,
                "{others} of the branches that go the same way in each iteration were not looked at: the search takes too long"
            ),
            Self::Cold => write!(f, "the loop, or its branch that goes the same way in each iteration, is cold"),
        }
    }
}
