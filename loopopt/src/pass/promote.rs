//! Scalar promotion: a memory cell that a loop reads and writes again and again is carried in a parameter.
//!
//! ```text
//! preheader:                             preheader:
//!     jump header                            v9 = load.i64 v0
//! header:                                    jump header(v9)
//!     v1 = load.i64 v0                   header(v1: i64):
//!     v2 = iadd v1, v5          ──►          v2 = iadd v1, v5
//!     store v2, v0                           brif v3, header(v2), exit(v2)
//!     brif v3, header, exit              exit(v8: i64):
//! exit:                                      store v8, v0
//! ```
//!
//! The loads go whenever the value is known: from the stores, and from one load before the loop. The stores go as well if
//! nobody can see memory in the meantime. If they have to stay, an iteration still need not wait for the store of the one before.
//!
//! A cell may also move along: `a[i]` is stored, and is `a[i - 1]` in the next iteration ([`recurrence`]).
//!
//! # Needs
//!
//! Canonical form; closed form still holds afterwards.
//!
//! # Legal when
//!
//! For the loads:
//!
//! * (L1) the address of the cell is the same in each iteration, and all its accesses in the loop are of one type and byte
//!   order;
//! * (L2) no other store of the loop may overlap it, and no call, fence or atomic is in the loop, unless it is in a stack slot
//!   that nobody else knows; the embedder does not list its region as written by others;
//! * (L3) the load before the loop may be done: one of its accesses runs on each entry of the loop, and before anything that
//!   can be observed if it may trap; or a load is `notrap` and `can_move`.
//!
//! For the stores also:
//!
//! * (L4) nothing in the loop can observe the memory: nothing traps, and no other load may overlap. A slot that nobody
//!   else knows is not observed by traps;
//! * (L5) a store is certain on each way out: one of them dominates it. Nothing is written that was not written before.
//!
//! A loop that does not end is not required to have stored: nobody is there to see it but other threads, and for them there are
//! atomics and [`Options::asynchronous_regions`](crate::Options::asynchronous_regions).
//!
//! # Pays when
//!
//! (P1) a load that goes is not cold, or the stores go; (P2) a register is left.
//!
//! # Changes
//!
//! Instructions, and parameters of blocks. The order of stores at an exit is that of the loop.
//!
//! # Not done
//!
//! Stores in loops with traps: `version` will take the checks out first.
//!
//! # References
//!
//! LLVM's `promoteLoopAccessesToScalars` for the conditions; Lu and Cooper, "Register promotion in C programs", 1997; llvm#57780,
//! llvm#106367, GCC PR94988 for what goes wrong.

mod carry;
mod recurrence;

use crate::analysis::address::Sum;
use crate::analysis::effects::Effects;
use crate::analysis::entry::{FirstIteration, in_order};
use crate::analysis::loops::{Loop, LoopForest};
use crate::analysis::memory::{Access, LoopMemory, PrivateSlots, memory_type};
use crate::analysis::pressure::Pressure;
use crate::change::Change;
use crate::edit::rename::def_block;
use crate::fault::fault;
use crate::pass::PassCx;
use crate::pass::licm::MAX_HEIGHT;
use crate::remark::Refusal;
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, MemFlagsData, Type};
use cranelift_codegen::{CodegenResult, Context};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// The name of this pass.
pub(crate) const NAME: &str = "promote";

/// The reasons for which it leaves a loop alone.
pub(crate) const REASONS: &[&str] = &[
    "nothing-stored",
    "too-many-accesses",
    "mixed-types",
    "aliased",
    "fenced",
    "asynchronous",
    "not-certain",
    "store-stays",
    "cold",
    "pressure",
    "too-deep",
    "withheld",
];

/// Promotes in all loops, the inner ones first.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let forest = cx.lend_forest(ctx);
    let private = PrivateSlots::of(&ctx.func, &ctx.domtree);
    let mut position = SecondaryMap::<Block, u32>::with_capacity(ctx.func.dfg.num_blocks());
    for (index, &block) in (0..).zip(ctx.domtree.cfg_rpo()) {
        position[block] = index;
    }
    let heights = forest.heights();
    let mut changed = false;
    for lp in forest.loops().rev() {
        let header = forest.data(lp).header;
        let blocks = in_order(&forest, lp, |block| position[block]);
        let mut here = Here::new(ctx, &forest, &private, lp, &blocks);
        let result = match heights[lp] <= MAX_HEIGHT {
            true => here.promote(cx),
            false => Err(Decline::TooDeep),
        };
        if !here.done.is_empty() {
            changed = true;
            let done = std::mem::take(&mut here.done);
            cx.fired(&ctx.func, NAME, header, done.join("; "));
        }
        match result {
            Err(why) => cx.declined(&ctx.func, NAME, header, &Because { func: &ctx.func, why }),
            Ok(()) => cx.retract(NAME, header),
        }
    }
    cx.return_forest(forest);
    if changed {
        ctx.func.dfg.resolve_all_aliases();
    }
    Ok(if changed { Change::Insts } else { Change::Nothing })
}

/// One loop, and what is needed to look at it and to change it.
struct Here<'a> {
    func: &'a mut Function,
    cfg: &'a ControlFlowGraph,
    domtree: &'a DominatorTree,
    forest: &'a LoopForest,
    private: &'a PrivateSlots,
    lp: Loop,
    /// The blocks of the loop in reverse postorder.
    blocks: &'a [Block],
    /// Made when the first cell needs a register.
    pressure: Option<Pressure>,
    /// The first instruction of each exit before stores were put there.
    exit_points: HashMap<Block, Inst>,
    /// What was done, in words.
    done: Vec<String>,
}

/// A cell whose address is the same in each iteration, with all its accesses in the loop, in the order in which they run.
struct Cell {
    accesses: Vec<Access>,
    /// The type of its bytes.
    ty: Type,
    /// The offset from the address operand of the first access.
    offset: i32,
    /// Flags for the load before the loop, if (L3) holds.
    entry: Option<MemFlagsData>,
    /// A store is certain before any load of an iteration, so that none is needed before the loop.
    starts_with_store: bool,
    /// Why the stores have to stay, if so.
    stays: Option<Decline>,
}

impl<'a> Here<'a> {
    fn new(
        ctx: &'a mut Context,
        forest: &'a LoopForest,
        private: &'a PrivateSlots,
        lp: Loop,
        blocks: &'a [Block],
    ) -> Self {
        let Context { func, cfg, domtree, .. } = ctx;
        Self {
            func,
            cfg,
            domtree,
            forest,
            private,
            lp,
            blocks,
            pressure: None,
            exit_points: HashMap::new(),
            done: Vec::new(),
        }
    }

    fn promote(&mut self, cx: &mut PassCx<'_>) -> Result<(), Decline> {
        let mut opcodes = self
            .blocks
            .iter()
            .flat_map(|&block| self.func.layout.block_insts(block))
            .map(|inst| &self.func.dfg.insts[inst]);
        if !opcodes.any(|data| matches!(data, InstructionData::Store { .. })) {
            return Err(Decline::NothingStored);
        }
        let memory = LoopMemory::of(self.func, self.blocks);
        if memory.accesses.len() > cx.options.promote_max_accesses {
            let (accesses, max) = (memory.accesses.len(), cx.options.promote_max_accesses);
            return Err(Decline::TooManyAccesses { accesses, max });
        }
        let mut why = None;
        for group in self.groups(&memory) {
            let cell = match self.prove(cx, &memory, group) {
                Ok(cell) => cell,
                Err(reason) => {
                    why.get_or_insert(reason);
                    continue;
                }
            };
            match self.judge(cx, &cell) {
                Ok(()) if cx.fuel.take() => why = self.apply(&cell).or(why),
                Ok(()) => why = Some(Decline::Withheld),
                Err(reason) => why = Some(reason),
            }
        }
        let moving = self.promote_recurrences(cx, &memory);
        let why = why.or(moving);
        why.map_or(Ok(()), Err)
    }

    /// The accesses to each address that is the same in each iteration and is stored to.
    fn groups(&self, memory: &LoopMemory) -> Vec<Vec<Access>> {
        let mut groups = BTreeMap::<&Sum, Vec<&Access>>::new();
        for access in &memory.accesses {
            groups.entry(&access.address).or_default().push(access);
        }
        let mut groups: Vec<Vec<Access>> = groups
            .into_values()
            .filter(|group| group.iter().any(|access| access.stored.is_some()))
            .filter(|group| self.is_invariant(&group[0].address))
            .map(|group| group.into_iter().cloned().collect())
            .collect();
        // In the order in which they are first stored to, so that stores at the exits keep that order.
        let rank = |inst: Inst| memory.accesses.iter().position(|access| access.inst == inst);
        groups.sort_by_key(|group| {
            group.iter().find(|access| access.stored.is_some()).and_then(|store| rank(store.inst))
        });
        groups
    }

    fn is_invariant(&self, address: &Sum) -> bool {
        let mut invariant = true;
        address.each_value(&mut |value| {
            invariant &= def_block(self.func, value).is_some_and(|def| !self.forest.contains(self.lp, def));
        });
        invariant
    }

    /// (L1) to (L5)
    fn prove(&self, cx: &PassCx<'_>, memory: &LoopMemory, accesses: Vec<Access>) -> Result<Cell, Decline> {
        let first = &accesses[0];
        let ty = memory_type(self.func, first.inst).expect("a plain access has a type");
        let is_like_first = |access: &&Access| {
            memory_type(self.func, access.inst) == Some(ty)
                && access.flags.explicit_endianness() == first.flags.explicit_endianness()
        };
        if let Some(other) = accesses.iter().find(|access| !is_like_first(access)) {
            return Err(Decline::MixedTypes { a: first.inst, b: other.inst });
        }
        if accesses.iter().any(|access| cx.options.is_asynchronous(self.func, access.flags)) {
            return Err(Decline::Asynchronous { access: first.inst });
        }
        let is_private = first.address.slot().is_some_and(|slot| self.private.contains(slot));
        if let Some(fence) = memory.fence.filter(|_| !is_private) {
            return Err(Decline::Fenced { access: first.inst, fence });
        }
        let is_own = |access: &Access| accesses.iter().any(|own| own.inst == access.inst);
        let mut overlapping = memory.accesses.iter().filter(|other| !is_own(other)).filter(|other| {
            // One region, or none, need not be that of all accesses to the cell.
            accesses.iter().any(|own| own.may_alias(other, self.private))
        });
        let (mut seen_by, mut clobber) = (None, None);
        overlapping.by_ref().for_each(|other| {
            let place = if other.stored.is_some() { &mut clobber } else { &mut seen_by };
            place.get_or_insert(other.inst);
        });
        if let Some(other) = clobber {
            return Err(Decline::Aliased { access: first.inst, other });
        }
        let starts_with_store = self.starts_with_store(&accesses);
        let entry = self.entry_flags(&accesses);
        if !self.is_made_of(carry::address_of(self.func, first.inst), &|_| false) {
            return Err(Decline::NotCertain { access: first.inst });
        }
        if entry.is_none() && !starts_with_store {
            return Err(Decline::NotCertain { access: first.inst });
        }
        let invisible = is_private && !starts_with_store;
        let stays = self.prove_stores(&accesses, invisible, seen_by);
        let offset = self.func.dfg.insts[first.inst].load_store_offset().expect("a plain access");
        Ok(Cell { ty, offset, accesses, entry, starts_with_store, stays })
    }

    /// Whether a store comes before all other accesses in each iteration.
    fn starts_with_store(&self, accesses: &[Access]) -> bool {
        let first = &accesses[0];
        first.stored.is_some()
            && accesses.iter().all(|access| self.domtree.dominates(first.inst, access.inst, &self.func.layout))
    }

    /// (L3): the flags of a load of the cell that may be done before the loop.
    fn entry_flags(&self, accesses: &[Access]) -> Option<MemFlagsData> {
        let movable = accesses.iter().find(|a| a.stored.is_none() && a.flags.notrap() && a.flags.can_move());
        if let Some(load) = movable {
            return Some(load.flags);
        }
        let mut first = FirstIteration::new(self.func, self.forest, self.domtree, self.lp);
        for &block in self.blocks {
            first.enter(block);
            for inst in self.func.layout.block_insts(block) {
                if let Some(access) = accesses.iter().find(|access| access.inst == inst) {
                    let certain = first.reaches(block) && first.detour().is_none();
                    let unseen = access.flags.notrap() || first.observable().is_none();
                    return (certain && unseen).then_some(access.flags);
                }
                first.pass(self.func, inst);
            }
        }
        None
    }

    /// (L4), (L5): why the stores have to stay, if so.
    fn prove_stores(&self, accesses: &[Access], invisible: bool, seen_by: Option<Inst>) -> Option<Decline> {
        let store = accesses.iter().find(|access| access.stored.is_some()).expect("a cell is stored to").inst;
        let stays = |because| Some(Decline::StoreStays { store, because });
        if let Some(load) = seen_by.filter(|_| !fault!(UnseenStores)) {
            return stays(Observer::Load(load));
        }
        if invisible {
            return None;
        }
        let observes = |&inst: &Inst| {
            let effects = Effects::of(self.func, inst);
            effects.traps || effects.fences || effects.diverges
        };
        let mut insts = self.blocks.iter().flat_map(|&block| self.func.layout.block_insts(block));
        if let Some(trap) = insts.find(observes).filter(|_| !fault!(StoresPassTraps)) {
            return stays(Observer::Trap(trap));
        }
        let is_certain = |exit: Block| {
            let mut stores = accesses.iter().filter(|access| access.stored.is_some());
            stores.any(|store| {
                let home = self.func.layout.inst_block(store.inst).expect("an access is in the layout");
                self.domtree.block_dominates(home, exit)
            })
        };
        let exits = &self.forest.data(self.lp).exits;
        let uncertain = exits.iter().map(|exit| exit.source(self.func)).find(|&exit| !is_certain(exit));
        uncertain.filter(|_| !fault!(InventedStore)).and_then(|exit| stays(Observer::Exit(exit)))
    }

    /// (P1), (P2)
    fn judge(&mut self, cx: &PassCx<'_>, cell: &Cell) -> Result<(), Decline> {
        let load = cell.accesses.iter().find(|access| access.stored.is_none());
        if let (None, Some(why)) = (load, &cell.stays) {
            return Err(why.clone());
        }
        if cx.options.ignore_cost {
            return Ok(());
        }
        let header_is_hot = !self.func.is_effectively_cold(self.forest.data(self.lp).header);
        let is_cold = |access: &Access| {
            let block = self.func.layout.inst_block(access.inst).expect("an access is in the layout");
            header_is_hot && self.func.is_effectively_cold(block)
        };
        if cell.accesses.iter().all(is_cold) {
            return Err(Decline::Cold { access: cell.accesses[0].inst });
        }
        self.take_register(cx, cell.ty, cell.accesses[0].inst)
    }

    /// (P2): takes a register for the cell of `access`, if there is one.
    fn take_register(&mut self, cx: &PassCx<'_>, ty: Type, access: Inst) -> Result<(), Decline> {
        let (func, forest, lp) = (&*self.func, self.forest, self.lp);
        let pressure = self.pressure.get_or_insert_with(|| Pressure::of(func, forest, lp, cx.isa));
        if pressure.take(ty) {
            return Ok(());
        }
        let (needed, available) = pressure.needed();
        Err(Decline::Pressure { access, needed, available })
    }
}

/// Why a cell stays in memory, or its stores do.
#[derive(Clone, Debug)]
enum Decline {
    /// The loop stores nothing.
    NothingStored,
    /// The loop has more loads and stores than the options allow.
    TooManyAccesses { accesses: usize, max: usize },
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
enum Observer {
    /// Another load that may overlap.
    Load(Inst),
    /// Something that may trap.
    Trap(Inst),
    /// The way out of this block, which no store is certain to come before.
    Exit(Block),
}

/// A reason, with the function that its instructions are in.
struct Because<'a> {
    func: &'a Function,
    why: Decline,
}

impl Refusal for Because<'_> {
    fn slug(&self) -> &'static str {
        match self.why {
            Decline::NothingStored => "nothing-stored",
            Decline::TooManyAccesses { .. } => "too-many-accesses",
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
            Decline::Aliased { .. } | Decline::StoreStays { because: Observer::Load(_), .. } => {
                "give the two different alias regions, if they never overlap"
            }
            Decline::StoreStays { because: Observer::Trap(_), .. } => "flag accesses notrap that cannot trap",
            Decline::NotCertain { .. } => "flag the load notrap and can_move, if it may be done at any time",
            _ => "",
        }
    }
}

impl fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |inst| self.func.dfg.display_inst(inst);
        match self.why {
            Decline::NothingStored => write!(f, "the loop stores nothing"),
            Decline::TooManyAccesses { accesses, max } => {
                write!(f, "the loop has {accesses} loads and stores, more than {max}")
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
