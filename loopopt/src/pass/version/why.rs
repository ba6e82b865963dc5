//! Why a loop has no second version.

use crate::analysis::scev::predication::Obstacle;
use crate::analysis::scev::requirement::Requirement;
use crate::remark::Refusal;
use cranelift_codegen::ir::{Inst, Value};
use std::fmt;

/// Why a loop has no second version.
#[derive(Clone)]
pub(super) enum Decline {
    /// Nothing in the loop is a check.
    NoCheck,
    /// (L2) What is checked changes in a way that no formula tells.
    Changes { check: Inst, value: Value },
    /// (L2) No test says how often the loop goes around.
    NotCounted { check: Option<Inst> },
    /// (L2) A sum has too many terms.
    TooComplex { check: Inst },
    /// The check is known to fail in some iteration, if that is reached.
    NeverHolds { check: Inst, requirement: Box<Requirement> },
    /// (P1) Most of what is checked in the nest can only be tested in front of an inner loop.
    FewChecks { gone: u64, all: u64 },
    /// (P1) Most of the tests are the same in each iteration.
    SameTest { gone: u64, nearer: u64 },
    /// (P2) Too much would be copied.
    TooLarge { insts: usize, max: usize },
    /// (P3) The test would be too long.
    TooManyTests { requirements: usize, max: usize },
    /// (P4) The loop is cold.
    ColdLoop,
    /// (P5) The loop ends soon.
    FewIterations { around: u128, min: usize },
    /// (P5) The loop may end soon, and the test is longer than what it saves in one iteration.
    EndsEarly { requirements: usize, checks: usize },
    /// (L1) An instruction stands for one place in the program.
    NotDuplicable(String),
}

impl Decline {
    /// What is in the way of `check`.
    pub(super) fn of_obstacle(why: Obstacle, check: Inst) -> Self {
        match why {
            Obstacle::Changes(value) => Self::Changes { check, value },
            Obstacle::NoCount => Self::NotCounted { check: Some(check) },
            Obstacle::TooLong => Self::TooComplex { check },
        }
    }
}

impl Refusal for Decline {
    fn slug(&self) -> &'static str {
        match self {
            Self::NoCheck => "no-check",
            Self::Changes { .. } => "changes",
            Self::NotCounted { .. } => "not-counted",
            Self::TooComplex { .. } => "too-complex",
            Self::NeverHolds { .. } => "never-holds",
            Self::FewChecks { .. } => "few-checks",
            Self::SameTest { .. } => "same-test",
            Self::TooLarge { .. } => "too-large",
            Self::TooManyTests { .. } => "too-many-tests",
            Self::ColdLoop => "cold-loop",
            Self::FewIterations { .. } => "few-iterations",
            Self::EndsEarly { .. } => "ends-early",
            Self::NotDuplicable(_) => "not-duplicable",
        }
    }

    fn fixed(&self) -> Option<&'static str> {
        matches!(self, Self::NoCheck).then_some("nothing in the loop is a check")
    }

    fn help(&self) -> &'static str {
        match self {
            Self::Changes { .. } => {
                "let what is checked be a counter, a multiple of one, or something that does not change"
            }
            Self::NotCounted { .. } => {
                "end the loop by a comparison of its counter with something that does not change"
            }
            Self::TooLarge { .. } => "Options::version_max_insts is the limit",
            Self::TooManyTests { .. } => "Options::version_max_requirements is the limit",
            Self::ColdLoop => "do not mark the loop cold if it runs often",
            _ => "",
        }
    }
}

impl fmt::Display for Decline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCheck => f.write_str(self.fixed().unwrap_or_default()),
            Self::Changes { check, value } => {
                write!(f, "the check {check} depends on {value}, which changes in no known way")
            }
            Self::NotCounted { check: Some(check) } => {
                write!(f, "for the check {check}: no test tells how often the loop goes around")
            }
            Self::NotCounted { check: None } => write!(f, "the loop is entered in several places"),
            Self::TooComplex { check } => write!(f, "what the check {check} compares is a sum of too many parts"),
            Self::NeverHolds { check, requirement } => {
                write!(f, "the check {check} would need {requirement}, which is never so")
            }
            Self::FewChecks { gone, all } => {
                write!(
                    f,
                    "{gone} of {all} weighted checks can be tested in front of this loop, the others further inside"
                )
            }
            Self::SameTest { gone, nearer } => write!(
                f,
                "the tests in front of the loops inside do not change, but for {nearer} of {gone} weighted checks"
            ),
            Self::TooLarge { insts, max } => write!(f, "{insts} instructions would be copied, more than {max}"),
            Self::TooManyTests { requirements, max } => {
                write!(f, "the test would compare {requirements} times, more than {max}")
            }
            Self::ColdLoop => write!(f, "the loop is cold"),
            Self::FewIterations { around, min } => {
                write!(f, "the loop goes around {around} times at most, fewer than {min}")
            }
            Self::EndsEarly { requirements, checks } => write!(
                f,
                "the loop may end at any time, and the test would compare {requirements} times for {checks} checks"
            ),
            Self::NotDuplicable(opcode) => write!(f, "{opcode} stands for one place in the program"),
        }
    }
}
