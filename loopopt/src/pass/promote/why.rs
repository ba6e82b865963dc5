//! Why a cell stays in memory, or its stores do.

use crate::analysis::pressure::ByClass;
use crate::refusal::refusals;
use cranelift_codegen::ir::{Block, Inst};

refusals! {
    /// Why a cell stays in memory.
    #[derive(Clone)]
    pub(super) enum Decline {
        /// The loop stores nothing.
        NothingStored => "nothing-stored", "the loop stores nothing";
        /// The loop has more loads and stores than the options allow.
        TooManyAccesses { accesses: usize, max: usize }
            => "too-many-accesses", "the loop has {accesses} loads and stores, more than {max}",
            help "raise Options::promote_max_accesses";
        /// Too many pairs of addresses would have to be compared for this cell.
        TooManyPairs { access: Inst, max: usize }
            => "too-many-pairs", "whether {access} is alone takes more than {max} comparisons of addresses",
            help "give accesses that never overlap different alias regions";
        /// A cycle inside the loop has no header, and so no place for what its iterations pass.
        Irreducible { entry: Block }
            => "irreducible", "the cycle through {entry} inside the loop can be entered elsewhere too",
            help "enter the cycle at one block only";
        /// (L1) The cell is accessed with different types or byte orders.
        MixedTypes { a: Inst, b: Inst } => "mixed-types", "{a} and {b} take the same memory for different types";
        /// (L2) Another store may overlap it.
        Aliased { access: Inst, other: Inst } => "aliased", "{other} may overwrite the memory of {access}",
            help "give the two different alias regions, if they never overlap";
        /// (L2) A call, a fence or an atomic is in the loop.
        Fenced { access: Inst, fence: Inst } => "fenced", "the memory of {access} may change at {fence}";
        /// (L2) The embedder says that others write to the region.
        Asynchronous { access: Inst } => "asynchronous", "{access} is to a region that changes at any time";
        /// (L2) The loop waits for what others store there.
        Poll { load: Inst } => "poll", "the loop may wait for somebody else to change what {load} reads";
        /// (L3) It cannot be loaded before the loop.
        NotCertain { access: Inst }
            => "not-certain", "the memory of {access} may not be there if the loop does not get to it",
            help "flag the load notrap and can_move, if it may be done at any time";
        /// (L3) What is accessed elsewhere would not be known to need a guard.
        GuardedRegions { a: Inst, b: Inst }
            => "guarded-regions", "{a} and {b} have two alias regions, and guards are consolidated by these";
        /// (L4) The stores have to stay in the loop: another load may read them.
        MayBeRead { store: Inst, load: Inst } => "store-stays", "{store} stays in the loop: {load} may read it",
            help "give the two different alias regions, if they never overlap";
        /// (L4) The same: a trap would show them.
        MayTrap { store: Inst, trap: Inst }
            => "store-stays", "{store} stays in the loop: {trap} may trap, and a trap shows all memory",
            help "flag accesses notrap that cannot trap";
        /// (L5) The same: no store is certain to come before this exit.
        NotStored { store: Inst, block: Block }
            => "store-stays", "{store} stays in the loop: it may not have run when {block} leaves it";
        /// (L6) The same: others may look at them while the loop waits.
        Waits { store: Inst, load: Inst }
            => "store-while-waiting",
            "{store} stays in the loop: the loop may wait for somebody else to change what {load} reads, and that may happen once {store} is seen";
        /// (P1) Its accesses are cold.
        Cold { access: Inst } => "cold", "{access} is in a cold block";
        /// (P2) The loop is short of registers.
        Pressure { access: Inst, needed: ByClass, available: ByClass }
            => "pressure", "the cell of {access} needs a register, and {needed} are taken throughout the loop, of {available}";
    }
    shared { TooDeep(max: usize), Withheld }
}
