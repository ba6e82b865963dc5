//! Why a loop is not unrolled by a factor.

use crate::remark::Refusal;
use cranelift_codegen::ir::Opcode;
use std::fmt;

/// Why a loop is not unrolled by a factor.
pub(super) enum Decline {
    /// (L1) No test at its end counts it.
    NotCounted,
    /// (P3) There is a loop inside.
    NotInnermost,
    /// (P1) The unrolled loop would be too large.
    TooLarge { insts: usize, max: usize },
    /// (P5) There are hardly enough iterations for the unrolled loop to run twice.
    FewIterations { most: Option<u128>, factor: usize },
    /// (P2) It calls a function.
    Calls,
    /// (P2) It does something that takes the time.
    Slow(Opcode),
    /// (P5) It is left at more than one place.
    EndsEarly,
    /// (P4) The loop is cold.
    ColdLoop,
    /// (L2) An instruction stands for one place in the program.
    NotDuplicable(String),
}

impl Refusal for Decline {
    fn slug(&self) -> &'static str {
        match self {
            Self::NotCounted => "not-counted",
            Self::NotInnermost => "not-innermost",
            Self::TooLarge { .. } => "too-large",
            Self::FewIterations { .. } => "few-iterations",
            Self::Calls => "calls",
            Self::Slow(_) => "slow",
            Self::EndsEarly => "ends-early",
            Self::ColdLoop => "cold-loop",
            Self::NotDuplicable(_) => "not-duplicable",
        }
    }

    fn help(&self) -> &'static str {
        match self {
            Self::NotCounted => {
                "end the loop by comparing a number that grows by a constant with one that does not change"
            }
            Self::TooLarge { .. } => "raise Options::partial_unroll_max_insts if the loop is hot",
            Self::Calls => "let the front end inline what is called, if it is short",
            Self::ColdLoop => "do not mark the loop cold if it runs often",
            Self::NotInnermost
            | Self::FewIterations { .. }
            | Self::NotDuplicable(_)
            | Self::Slow(_)
            | Self::EndsEarly => "",
        }
    }

    fn fixed(&self) -> Option<&'static str> {
        match self {
            Self::NotCounted => Some("no test at the end of each iteration counts the loop"),
            Self::NotInnermost => Some("there is a loop inside"),
            Self::Calls => Some("it calls a function, which takes the time"),
            Self::EndsEarly => {
                Some("something else than its count can end it, so that nothing is known of how often it runs")
            }
            Self::ColdLoop => Some("the loop is cold"),
            _ => None,
        }
    }
}

impl fmt::Display for Decline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { insts, max } => {
                write!(f, "the unrolled loop would hold {insts} instructions; there may be {max}")
            }
            Self::FewIterations { most: Some(most), factor } => {
                write!(f, "there are {most} iterations at most, and the unrolled loop would have {factor}")
            }
            Self::FewIterations { most: None, factor } => write!(f, "there are never {factor} iterations"),
            Self::Slow(opcode) => write!(f, "each iteration waits for {opcode}, which takes the time"),
            Self::NotDuplicable(opcode) => write!(f, "the loop holds {opcode}, which must not be copied"),
            _ => f.write_str(self.fixed().unwrap_or_default()),
        }
    }
}
