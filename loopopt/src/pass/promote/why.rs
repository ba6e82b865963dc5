//! Why a cell stays in memory, or its stores do.

use crate::pass::licm::MAX_HEIGHT;
use crate::remark::Refusal;
use cranelift_codegen::ir::{Block, Function, Inst};
use std::fmt;

/// Why a cell stays in memory, or its stores do.
#[derive(Clone, Debug)]
pub(super) enum Decline {
    /// The loop stores nothing.
    NothingStored,
    /// The loop has more loads and stores than the options allow.
    TooManyAccesses { accesses: usize, max: usize },
    /// Too many pairs of addresses would have to be compared for this cell.
    TooManyPairs { access: Inst, max: usize },
    /// A cycle inside the loop has no header, and so no place for what its iterations pass on.
    Irreducible { entry: Block },
    /// (L1) The cell is accessed with different types or byte orders.
    MixedTypes { a: Inst, b: Inst },
    /// (L2) Another store may overlap it.
    Aliased { access: Inst, other: Inst },
    /// (L2) A call, a fence or an atomic is in the loop.
    Fenced { access: Inst, fence: Inst },
    /// (L2) The embedder says that others write to the region.
    Asynchronous { access: Inst },
    /// (L3) It cannot be loaded before the loop.
    NotCertain { access: Inst },
    /// (L4), (L5) The stores have to stay in the loop.
    StoreStays { store: Inst, because: Observer },
    /// (P1) Its accesses are cold.
    Cold { access: Inst },
    /// (P2) The loop is short of registers.
    Pressure { access: Inst, needed: [usize; 2], available: [usize; 2] },
    /// Too many loops are inside this one.
    TooDeep,
    /// Fuel is used up, or stress mode says no.
    Withheld,
}

/// Who could tell that a store is late.
#[derive(Clone, Copy, Debug)]
pub(super) enum Observer {
    /// Another load that may overlap.
    Load(Inst),
    /// Something that may trap.
    Trap(Inst),
    /// The way out of this block, which no store is certain to come before.
    Exit(Block),
}

/// A reason, with the function that its instructions are in.
pub(super) struct Because<'a> {
    pub(super) func: &'a Function,
    pub(super) why: Decline,
}

impl Refusal for Because<'_> {
    fn slug(&self) -> &'static str {
        match self.why {
            Decline::NothingStored => "nothing-stored",
            Decline::TooManyAccesses { .. } => "too-many-accesses",
            Decline::TooManyPairs { .. } => "too-many-pairs",
            Decline::Irreducible { .. } => "irreducible",
            Decline::MixedTypes { .. } => "mixed-types",
            Decline::Aliased { .. } => "aliased",
            Decline::Fenced { .. } => "fenced",
            Decline::Asynchronous { .. } => "asynchronous",
            Decline::NotCertain { .. } => "not-certain",
            Decline::StoreStays { .. } => "store-stays",
            Decline::Cold { .. } => "cold",
            Decline::Pressure { .. } => "pressure",
            Decline::TooDeep => "too-deep",
            Decline::Withheld => "withheld",
        }
    }

    fn help(&self) -> &'static str {
        match self.why {
            Decline::TooManyAccesses { .. } => "raise Options::promote_max_accesses",
            Decline::TooManyPairs { .. } => "give accesses that never overlap different alias regions",
            Decline::Irreducible { .. } => "enter the cycle at one block only",
            Decline::Aliased { .. } | Decline::StoreStays { because: Observer::Load(_), .. } => {
                "give the two different alias regions, if they never overlap"
            }
            Decline::StoreStays { because: Observer::Trap(_), .. } => "flag accesses notrap that cannot trap",
            Decline::NotCertain { .. } => "flag the load notrap and can_move, if it may be done at any time",
            _ => "",
        }
    }

    fn fixed(&self) -> Option<&'static str> {
        matches!(self.why, Decline::NothingStored).then_some("the loop stores nothing")
    }
}

impl fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |inst| self.func.dfg.display_inst(inst);
        match self.why {
            Decline::NothingStored => f.write_str(self.fixed().unwrap_or_default()),
            Decline::TooManyAccesses { accesses, max } => {
                write!(f, "the loop has {accesses} loads and stores, more than {max}")
            }
            Decline::TooManyPairs { access, max } => {
                write!(f, "whether \"{}\" is alone takes more than {max} comparisons of addresses", show(access))
            }
            Decline::Irreducible { entry } => {
                write!(f, "the cycle through {entry} inside the loop can be entered elsewhere too")
            }
            Decline::MixedTypes { a, b } => {
                write!(f, "\"{}\" and \"{}\" take the same memory for different types", show(a), show(b))
            }
            Decline::Aliased { access, other } => {
                write!(f, "\"{}\" may overwrite the memory of \"{}\"", show(other), show(access))
            }
            Decline::Fenced { access, fence } => {
                write!(f, "the memory of \"{}\" may change at \"{}\"", show(access), show(fence))
            }
            Decline::Asynchronous { access } => {
                write!(f, "\"{}\" is to a region that changes at any time", show(access))
            }
            Decline::NotCertain { access } => {
                write!(f, "the memory of \"{}\" may not be there if the loop does not get to it", show(access))
            }
            Decline::StoreStays { store, because: Observer::Load(load) } => {
                write!(f, "\"{}\" stays in the loop: \"{}\" may read it", show(store), show(load))
            }
            Decline::StoreStays { store, because: Observer::Trap(trap) } => {
                write!(
                    f,
                    "\"{}\" stays in the loop: \"{}\" may trap, and a trap shows all memory",
                    show(store),
                    show(trap)
                )
            }
            Decline::StoreStays { store, because: Observer::Exit(block) } => {
                write!(f, "\"{}\" stays in the loop: it may not have run when {block} leaves it", show(store))
            }
            Decline::Cold { access } => write!(f, "\"{}\" is in a cold block", show(access)),
            Decline::Pressure { access, needed: [ints, floats], available: [of_ints, of_floats] } => write!(
                f,
                "the cell of \"{}\" needs a register, and {ints} of {of_ints} for integers and {floats} of {of_floats} \
                 for floats are taken throughout the loop",
                show(access)
            ),
            Decline::TooDeep => write!(f, "more than {MAX_HEIGHT} loops are inside this one"),
            Decline::Withheld => write!(f, "withheld: the fuel is used up, or stress mode says no"),
        }
    }
}
