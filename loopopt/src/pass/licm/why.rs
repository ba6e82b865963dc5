//! Why something is not hoisted.

use super::MAX_HEIGHT;
use crate::analysis::cfg::must_execute::Detour;
use crate::remark::Refusal;
use cranelift_codegen::ir::{Function, Inst};
use std::fmt;

/// Why something is not hoisted.
#[derive(Debug)]
pub(super) enum Decline {
    /// Nothing in the loop is the same in each iteration.
    NothingInvariant,
    /// (L2) A store in the loop may write what is loaded.
    Aliased { load: Inst, store: Inst },
    /// (L2) A call, an atomic or a fence is in the loop.
    Fenced { load: Inst, fence: Inst },
    /// (L2) The embedder says that others write to the region.
    Asynchronous { load: Inst },
    /// (L2) A way out of the loop hangs on it alone.
    Polls { load: Inst },
    /// (L3) Something can be observed before it.
    NotFirst { inst: Inst, before: Inst },
    /// (L2), (L3) It does not run on every entry of the loop.
    NotCertain { inst: Inst, detour: Option<Detour> },
    /// (P1) It stands in a cold block.
    Cold { inst: Inst },
    /// (P2) It costs nothing where it is.
    Folds,
    /// (P3) The loop is short of registers.
    Pressure { inst: Inst, needed: [usize; 2], available: [usize; 2] },
    /// Too many loops are inside this one.
    TooDeep,
    /// Fuel is used up, or stress mode says no.
    Withheld,
}

impl Decline {
    /// How much the reason says to the author of a program, compared with others.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::NothingInvariant | Self::TooDeep => 0,
            Self::Folds => 1,
            Self::Withheld | Self::Cold { .. } => 2,
            Self::Pressure { .. } => 3,
            Self::NotCertain { .. } | Self::NotFirst { .. } => 4,
            Self::Fenced { .. } | Self::Asynchronous { .. } | Self::Polls { .. } => 5,
            Self::Aliased { .. } => 6,
        }
    }
}

/// A reason, with the function that its instructions are in.
pub(super) struct Because<'a> {
    pub(super) func: &'a Function,
    pub(super) why: Decline,
}

impl Refusal for Because<'_> {
    fn slug(&self) -> &'static str {
        match self.why {
            Decline::NothingInvariant => "nothing-invariant",
            Decline::Aliased { .. } => "aliased",
            Decline::Fenced { .. } => "fenced",
            Decline::Asynchronous { .. } => "asynchronous",
            Decline::Polls { .. } => "polls",
            Decline::NotFirst { .. } => "not-first",
            Decline::NotCertain { .. } => "not-certain",
            Decline::Cold { .. } => "cold",
            Decline::Folds => "folds",
            Decline::Pressure { .. } => "pressure",
            Decline::TooDeep => "too-deep",
            Decline::Withheld => "withheld",
        }
    }

    fn fixed(&self) -> Option<&'static str> {
        // Nearly every loop says one of these.
        match self.why {
            Decline::NothingInvariant => Some("nothing that could move is the same in each iteration"),
            Decline::Folds => Some("what is the same in each iteration costs nothing where it is"),
            _ => None,
        }
    }

    fn help(&self) -> &'static str {
        match self.why {
            Decline::Aliased { .. } => "give the two different alias regions, if they never overlap",
            Decline::Fenced { .. } => "load it before the loop, if the call does not change it, or flag it readonly",
            Decline::Polls { .. } => "load it before the loop, if nobody else writes there",
            Decline::NotFirst { .. } => "do it before what can be observed, or before the loop",
            Decline::NotCertain { detour: None, .. } => {
                "flag the load notrap and can_move, if it may be done at any time"
            }
            Decline::TooDeep => "nest less deeply",
            _ => "",
        }
    }
}

impl fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |inst| self.func.dfg.display_inst(inst);
        match self.why {
            Decline::Aliased { load, store } => {
                write!(f, "\"{}\" may read what \"{}\" writes", show(load), show(store))
            }
            Decline::Fenced { load, fence } => {
                write!(f, "\"{}\" may not pass \"{}\"", show(load), show(fence))
            }
            Decline::Asynchronous { load } => {
                write!(f, "\"{}\" reads a region that changes at any time", show(load))
            }
            Decline::Polls { load } => {
                write!(f, "whether the loop ends hangs on \"{}\" alone, and someone may write there", show(load))
            }
            Decline::NotFirst { inst, before } => {
                write!(f, "\"{}\" may trap, and before it comes \"{}\"", show(inst), show(before))
            }
            Decline::NotCertain { inst, detour: None } => {
                write!(f, "\"{}\" does not run on every entry of the loop", show(inst))
            }
            Decline::NotCertain { inst, detour: Some(Detour::Inst(before)) } => {
                write!(f, "\"{}\" may not run at all, because of \"{}\"", show(inst), show(before))
            }
            Decline::NotCertain { inst, detour: Some(Detour::Loop(header)) } => {
                write!(f, "\"{}\" runs only if the loop of {header} ends", show(inst))
            }
            Decline::Cold { inst } => write!(f, "\"{}\" is in a cold block", show(inst)),
            Decline::NothingInvariant | Decline::Folds => f.write_str(self.fixed().unwrap_or_default()),
            Decline::Pressure { inst, needed: [ints, floats], available: [of_ints, of_floats] } => write!(
                f,
                "\"{}\" needs a register, and {ints} of {of_ints} for integers and {floats} of {of_floats} for floats \
                 are taken throughout the loop",
                show(inst)
            ),
            Decline::TooDeep => write!(f, "more than {MAX_HEIGHT} loops are inside this one"),
            Decline::Withheld => write!(f, "withheld: the fuel is used up, or stress mode says no"),
        }
    }
}
