//! Why a loop keeps its rare part.

use crate::refusal::refusals;
use cranelift_codegen::ir::{Block, Value};

refusals! {
    /// Why the rare part of a loop stays in it.
    pub(super) enum Decline {
        /// (P1) Nothing in an iteration is skipped in another.
        OnePath => "one-path", "each iteration takes the same path";
        /// (P1) No edge leads to a cold block, and there is hardly a reason for one.
        NoCall => "no-call", "no edge in the loop leads to a cold block, and nothing in it calls";
        /// (P1) No edge leads to a cold block.
        NoColdEdge => "no-cold-edge", "no edge in the loop leads to a cold block", help "mark blocks cold that hardly ever run";
        /// (P1) Many edges do.
        ManyColdEdges { edges: usize, max: usize } => "many-cold-edges",
            "{edges} edges in the loop lead to cold blocks, more than {max}";
        /// (P2) Without its cold blocks it is no loop.
        AlwaysRare => "always-rare", "each path to the back edge passes a cold block";
        /// (L3) There is a cycle inside that has two entries.
        Irreducible => "irreducible", "a cycle in the loop can be entered at two blocks";
        /// (L2) A load decides alone whether the rare part is reached, or whether the loop ends.
        Polls(load: Value)
            => "polls",
            "{load} may depend on what others write while the loop waits, and the rare part keeps the load there";
        /// (P3) Nothing but the rare part would leave the loop.
        NothingToWin => "nothing-to-win", "without its cold blocks, the loop would be no faster";
        /// (P6) The inner loop is the one to be made fast.
        LongInnerLoop { header: Block, max: usize }
            => "long-inner-loop",
            "the inner loop of {header} may take its back edge more than {max} times, and is the one that counts";
        /// (P4) Too much would be copied.
        TooLarge { insts: usize, max: usize } => "too-large", "{insts} instructions would be copied, more than {max}",
            help "raise Options::transfer_max_insts if the loop is hot";
    }
    shared { ColdLoop }
}
