//! Why something is not hoisted.

use crate::analysis::cfg::must_execute::Interruption;
use crate::analysis::pressure::ByClass;
use crate::refusal::{Shown, refusals};
use cranelift_codegen::ir::{Function, Inst, Opcode};
use std::fmt;

refusals! {
    /// Why something is not hoisted.
    pub(super) enum Decline {
        /// Nothing in the loop is the same in each iteration.
        NothingInvariant => "nothing-invariant", "nothing that could move is the same in each iteration";
        /// (L2) A store in the loop may write what is loaded.
        Aliased { load: Inst, store: Inst } => "aliased", "{load} may read what {store} writes",
            help "give the two different alias regions, if they never overlap; if they are one variable, see what promote says of it";
        /// (L2) A call, an atomic or a fence is in the loop.
        Fenced { load: Inst, fence: Inst } => "fenced", "{load} cannot move across {fence}",
            help "if that instruction does not change what is loaded, load it before the loop; or flag it readonly if nothing writes it";
        /// (L2) The embedder says that others write to the region.
        Asynchronous { load: Inst } => "asynchronous", "{load} reads a region that changes at any time";
        /// (L2) An exit of the loop depends on it alone.
        Polls { load: Inst }
            => "polls", "whether the loop ends depends on {load} alone, and someone may write there",
            help "load it before the loop, if nobody else writes there";
        /// (L3) Something can be observed before it.
        NotFirst { inst: Inst, before: Inst } => "not-first", "{inst} may trap, and before it comes {before}",
            help "move it before the first effect that can be observed, or before the loop";
        /// (L2) It does not run on every entry of the loop.
        NotCertain { inst: Inst } => "not-certain", "{inst} does not run on every entry of the loop",
            help "flag the load notrap and can_move, if it may be done at any time";
        /// (L3) It divides, and does not run on every entry of the loop.
        DividesUncertainly { inst: Inst } => "division-not-certain",
            "{inst} may trap, and does not run on every entry of the loop",
            help "make sure that the divisor is not 0, with `bor v, 1` for one that is odd, or branch on it before the loop";
        /// (L3) It traps, and does not run on every entry of the loop.
        TrapsUncertainly { inst: Inst } => "trap-not-certain",
            "{inst} may trap, and does not run on every entry of the loop",
            help "check before the loop, if a trap may come earlier";
        /// (L2), (L3) The same, for this reason.
        MayBeSkipped { inst: Inst, interruption: Interruption } => "not-certain", "{inst} may not run, because of {interruption}";
        /// (P1) It is in a cold block.
        Cold { inst: Inst } => "cold", "{inst} is in a cold block";
        /// (P2) It costs nothing where it is.
        Folds => "folds", "what is the same in each iteration costs nothing where it is";
        /// (P3) The loop is short of registers.
        Pressure { inst: Inst, needed: ByClass, available: ByClass }
            => "pressure", "{inst} needs a register, and {needed} are taken throughout the loop, of {available}";
    }
    shared { TooDeep(max: usize), Withheld }
}

impl Shown for Interruption {
    fn shown<'a>(&'a self, func: &'a Function) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| match self {
            Self::Inst(before) => write!(f, "{}", before.shown(func)),
            Self::Loop(header) => write!(f, "the loop of {header}, which may not end"),
        })
    }
}

impl Decline {
    /// That an instruction that may trap does not run on every entry of the loop.
    pub(super) fn not_certain(func: &Function, inst: Inst) -> Self {
        match func.dfg.insts[inst].opcode() {
            Opcode::Udiv | Opcode::Urem | Opcode::Sdiv | Opcode::Srem => Self::DividesUncertainly { inst },
            opcode if opcode.can_load() => Self::NotCertain { inst },
            _ => Self::TrapsUncertainly { inst },
        }
    }

    /// How much the reason says to the author of a program, compared with others.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::NothingInvariant | Self::TooDeep(_) => 0,
            Self::Folds => 1,
            Self::Withheld | Self::Cold { .. } => 2,
            Self::Pressure { .. } => 3,
            Self::NotCertain { .. }
            | Self::DividesUncertainly { .. }
            | Self::TrapsUncertainly { .. }
            | Self::MayBeSkipped { .. }
            | Self::NotFirst { .. } => 4,
            Self::Fenced { .. } | Self::Asynchronous { .. } | Self::Polls { .. } => 5,
            Self::Aliased { .. } => 6,
        }
    }
}
