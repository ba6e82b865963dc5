//! Why a loop keeps its rare part.

use crate::remark::Refusal;
use cranelift_codegen::ir::{Block, Inst, Value};
use std::borrow::Cow;
use std::fmt;

/// Why a loop keeps its rare part.
pub(super) enum Decline {
    /// (P1) No edge leads to a cold block.
    NoRareWay,
    /// (P2) Without its cold blocks it does not go around.
    AlwaysRare,
    /// (L3) There is a cycle inside that has two entries.
    Irreducible,
    /// (L2) A load decides alone whether the rare part is reached, or whether the loop ends.
    Polls(Value),
    /// (L2) A load of a region that the embedder lists.
    Asynchronous(Inst),
    /// (P3) Nothing but the rare part would leave the loop.
    NothingToWin,
    /// (P6) The loop inside is the one to be made fast.
    LongInnerLoop { header: Block, max: usize },
    /// (P4) Too much would be copied.
    TooLarge { insts: usize, max: usize },
    /// (P5) The loop is cold.
    ColdLoop,
}

impl Refusal for Decline {
    fn slug(&self) -> &'static str {
        match self {
            Self::NoRareWay => "no-rare-way",
            Self::AlwaysRare => "always-rare",
            Self::Irreducible => "irreducible",
            Self::Polls(_) => "polls",
            Self::Asynchronous(_) => "asynchronous",
            Self::NothingToWin => "nothing-to-win",
            Self::LongInnerLoop { .. } => "long-inner-loop",
            Self::TooLarge { .. } => "too-large",
            Self::ColdLoop => "cold-loop",
        }
    }

    fn message(&self) -> Cow<'static, str> {
        match self {
            Self::NoRareWay => "no edge in the loop leads to a cold block".into(),
            _ => self.to_string().into(),
        }
    }

    fn help(&self) -> &'static str {
        match self {
            Self::NoRareWay => "mark blocks cold that hardly ever run",
            Self::TooLarge { .. } => "raise Options::transfer_max_insts if the loop is hot",
            Self::ColdLoop => "do not mark the loop cold if it runs often",
            Self::AlwaysRare
            | Self::Irreducible
            | Self::Polls(_)
            | Self::Asynchronous(_)
            | Self::NothingToWin
            | Self::LongInnerLoop { .. } => "",
        }
    }
}

impl fmt::Display for Decline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRareWay => write!(f, "no edge in the loop leads to a cold block"),
            Self::AlwaysRare => write!(f, "without its cold blocks, the loop does not go around"),
            Self::Irreducible => write!(f, "a cycle in the loop can be entered at two blocks"),
            Self::Polls(load) => {
                write!(
                    f,
                    "{load} may hang on what others write while the loop waits, and the rare part keeps the load there"
                )
            }
            Self::Asynchronous(load) => write!(f, "{load} is a load of what others may write at any time"),
            Self::NothingToWin => write!(f, "without its cold blocks, the loop would be no faster"),
            Self::LongInnerLoop { header, max } => {
                write!(f, "the loop of {header} inside may go around more than {max} times, and is the one that counts")
            }
            Self::TooLarge { insts, max } => write!(f, "{insts} instructions would be copied, more than {max}"),
            Self::ColdLoop => write!(f, "the loop is cold"),
        }
    }
}
