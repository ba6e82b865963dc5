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
//! The loads are removed whenever the value is known: from the stores, and from one load before the loop. The stores are removed as well if
//! nobody can see memory in the meantime. If they have to stay, an iteration still need not wait for the store of the one before.
//!
//! A cell may also move along: `a[i]` is stored, and is `a[i - 1]` in the next iteration ([`recurrence`]).
//!
//! # Needs
//!
//! Canonical form. Closed form still holds afterwards, unless an exit leaves the outer loop as well: the store there uses an address that
//! may be of that loop.
//!
//! # Legal when
//!
//! For the loads:
//!
//! * (L1) the address of the cell is the same in each iteration, and all its accesses in the loop are of one type and byte
//!   order;
//! * (L2) no other store of the loop may overlap it, as flags and addresses say, or a test before the loop; no call, fence or atomic
//!   is in the loop, unless it is in a stack slot that nobody else knows; the embedder does not list its region as written by others; none of
//!   its loads is a [poll](crate::analysis::memory::exit_polls) of the loop, of an inner one or of an enclosing one, be it one that no pass looks at, unless each iteration of that overwrites what others may write,
//!   with something that is made of it, or of what the iteration before has stored, by what does not [settle](crate::analysis::memory::exit_polls::settles): a loop that waits, and stores now and
//!   then, or a constant, or the same again, waits for somebody else;
//! * (L3) the load before the loop may be done: one of its accesses runs on each entry of the loop, and before anything that
//!   can be observed if it may trap; or a load is `notrap` and `can_move`. A few loads that come before it and may trap are done once more before the
//!   loop, in their order, as they are in the first iteration: then the first to trap is the same one. It has the region of the cell only if all accesses have: the region of an access that
//!   never runs would say that it is disjoint from accesses that it may overlap. So all have one region if one is of a memory whose accesses are
//!   guarded by their regions ([`crate::pass::consolidate_guards`]).
//!
//! For the stores also:
//!
//! * (L4) nothing in the loop can observe the memory: nothing traps, and no other load may overlap. A slot that nobody
//!   else knows is not observed by traps;
//! * (L5) a store is certain on each exit edge: one of them dominates it. Nothing is written that was not written before. In a slot that
//!   nobody else knows, nobody can tell, if the cell is sure to be in it: a store, or a load that may trap, runs on each entry of the loop, or the
//!   address is a constant. What is after a test of an index may be anywhere if the test fails, and that a load there is harmless, and was put
//!   before the loop for it, says nothing of a store;
//! * (L6) neither the loop nor an inner one waits for others: it has no [polls](crate::analysis::memory::exit_polls) but those that the loop itself makes advance. They may write what it waits for
//!   once they have seen what it has stored. Of any other loop, what it stores is seen once it has ended: a loop that never ends is not required to have stored. For that there are
//!   atomics.
//!
//! # Pays when
//!
//! (P1) a load that is removed is not cold, or the stores are removed; (P2) a register is left.
//!
//! # Cost
//!
//! Linear in the size of the loop, for each level of a nest and for each cell that is carried, after which the loop is looked at again; but for what overlaps: see
//! [`neighbours`].
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

mod awaited;
mod carry;
mod flow;
mod memory;
mod neighbours;
mod observers;
mod recurrence;
mod why;

use crate::analysis::cfg::loops::{Loop, LoopData, LoopForest};
use crate::analysis::cfg::must_execute::Order;
use crate::analysis::memory::alias::{Access, cell_type};
use crate::analysis::memory::loop_polls::LoopPolls;
use crate::analysis::pressure::Pressure;
use crate::change::Change;
use crate::claim::Claim;
use crate::edit::materialize::narrow::narrow;
use crate::fault::fault;
use crate::pass::licm::MAX_HEIGHT;
use crate::pass::{Form, Pass, PassCx};
use crate::refusal::Said;
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Function, Inst, MemFlagsData, Opcode, StackSlot, Type};
use cranelift_codegen::{CodegenResult, Context, FxHashMap, FxHashSet};
use memory::Memory;
use neighbours::{Addresses, Located};
use observers::Seen;
use std::rc::Rc;
use why::Decline;

/// The name of this pass.
pub(crate) const NAME: &str = "promote";

/// The pass.
pub(crate) const PASS: Pass = Pass {
    name: NAME,
    run,
    reasons: &[Decline::REASONS],
    claims: &[Claim::CellHolds],
    needs: Form::Canonical,
    ..Pass::OPTIONAL
};

/// Promotes in all loops, the inner ones first.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let forest = cx.forest(ctx);
    let (mut addresses, mut polls) = (Addresses::new(cx.private_slots(ctx)), LoopPolls::default());
    let order = Order::of(&ctx.func, &ctx.domtree);
    let heights = forest.heights();
    let known = ctx.func.dfg.num_insts();
    let mut changed = false;
    for lp in forest.loops().rev() {
        let header = forest.data(lp).header;
        if cx.marks.is_left_alone(header) {
            continue;
        }
        if heights[lp] > MAX_HEIGHT {
            cx.declined(&ctx.func, NAME, header, &Decline::TooDeep(MAX_HEIGHT));
            continue;
        }
        let blocks = order.sorted(forest.blocks(lp));
        let mut here = Here::new(ctx, (&forest, lp), (&mut addresses, &mut polls), &blocks);
        let result = here.promote(cx);
        if !here.done.is_empty() {
            changed = true;
            let done = std::mem::take(&mut here.done);
            cx.fired(&ctx.func, &PASS, header, done.join("; "));
            if leaves_parent(&ctx.func, &forest, lp) {
                cx.keep_form(Form::Any);
            }
        }
        match result {
            Err(why) => cx.declined(&ctx.func, NAME, header, &why),
            Ok(()) => cx.retract(NAME, header),
        }
    }
    if changed {
        ctx.func.dfg.resolve_all_aliases();
        let reductions = reductions_since(&ctx.func, known);
        narrow(&mut ctx.func, &reductions);
    }
    Ok(if changed { Change::Insts } else { Change::Nothing })
}

/// The instructions that truncate numbers, of those that were made since there were `known` instructions.
fn reductions_since(func: &Function, known: usize) -> Vec<Inst> {
    let made = (known..func.dfg.num_insts()).map(Inst::new);
    let is_there = |inst: &Inst| func.layout.inst_block(*inst).is_some();
    made.filter(|inst| func.dfg.insts[*inst].opcode() == Opcode::Ireduce).filter(is_there).collect()
}

/// One loop, and what is needed to look at it and to change it.
struct Here<'a> {
    func: &'a mut Function,
    cfg: &'a ControlFlowGraph,
    domtree: &'a DominatorTree,
    forest: &'a LoopForest,
    addresses: &'a mut Addresses,
    lp: Loop,
    /// The blocks of the loop in reverse postorder.
    blocks: &'a [Block],
    /// The loop as it is, once that is needed. Forgotten when a cell is carried.
    seen: Option<Seen>,
    /// Of all loops that were asked for.
    polls: &'a mut LoopPolls,
    /// Whether the loop and its inner ones are known to have none, and so never will.
    has_no_polls: bool,
    /// Made when the first cell needs a register.
    pressure: Option<Pressure>,
    /// The loads that were repeated before the loop.
    repeated: FxHashSet<Inst>,
    /// The first instruction of each exit before stores were put there.
    exit_points: FxHashMap<Block, Inst>,
    /// What was done, in words.
    done: Vec<String>,
}

/// (L3): that what is accessed before or after the loop, with the region that all accesses have, is known as one of a memory that is guarded.
fn prove_known_memory<'a>(
    cx: &PassCx<'_>,
    mut accesses: impl Iterator<Item = &'a Access> + Clone,
) -> Result<(), Decline> {
    let mut others = accesses.clone();
    let Some(first) = accesses.next() else { return Ok(()) };
    let is_other = |access: &&Access| access.flags.alias_region() != first.flags.alias_region();
    match others.find(is_other) {
        Some(other) if cx.memories.is_of(first) || cx.memories.is_of(other) => {
            Err(Decline::GuardedRegions { a: first.inst, b: other.inst })
        }
        _ => Ok(()),
    }
}

/// Whether an exit of `lp` leaves the outer loop as well.
fn leaves_parent(func: &Function, forest: &LoopForest, lp: Loop) -> bool {
    let LoopData { parent, exits, .. } = forest.data(lp);
    parent.is_some_and(|parent| exits.iter().any(|exit| !forest.contains(parent, exit.target(func))))
}

/// A load before the loop.
#[derive(Clone, Copy)]
struct EntryLoad {
    flags: MemFlagsData,
    /// So many of the loads that [come first](Seen::traps_before) have to be repeated before it.
    traps_before: usize,
}

/// A cell whose address is the same in each iteration, with all its accesses in the loop, in the order in which they run.
struct Cell {
    accesses: Vec<Rc<Located>>,
    /// The type of its bytes.
    ty: Type,
    /// The offset from the address operand of the first access.
    offset: i32,
    /// The load before the loop, if (L3) holds.
    entry: Option<EntryLoad>,
    /// A store is certain before any load of an iteration, so that none is needed before the loop.
    starts_with_store: bool,
    /// Why the stores have to stay, if so.
    stays: Option<Decline>,
    /// Whether it is known where the cell is, also if a load runs that the program did not execute: what it holds can be asserted.
    is_located: bool,
}

impl<'a> Here<'a> {
    fn new(
        ctx: &'a mut Context,
        (forest, lp): (&'a LoopForest, Loop),
        (addresses, polls): (&'a mut Addresses, &'a mut LoopPolls),
        blocks: &'a [Block],
    ) -> Self {
        let Context { func, cfg, domtree, .. } = ctx;
        Self {
            func,
            cfg,
            domtree,
            forest,
            addresses,
            lp,
            blocks,
            seen: None,
            polls,
            has_no_polls: false,
            pressure: None,
            repeated: FxHashSet::default(),
            exit_points: FxHashMap::default(),
            done: Vec::new(),
        }
    }

    fn promote(&mut self, cx: &mut PassCx<'_>) -> Result<(), Said> {
        let mut memory = self.memory(cx).map_err(|why| self.say(why))?;
        // What is said last, in words once the function changes.
        let (mut said, mut last) = (None, None);
        for group in self.groups(&memory) {
            let why = match self.prove(cx, &mut memory, group).and_then(|cell| self.judge(cx, &cell).map(|()| cell)) {
                Ok(cell) if cx.fuel.take() => {
                    said = cell.stays.clone().or(last.take()).map(|why| self.say(why)).or(said);
                    self.apply(&cell);
                    continue;
                }
                Ok(_) => Decline::Withheld,
                Err(why) => why,
            };
            last = Some(why);
        }
        said = last.map(|why| self.say(why)).or(said);
        said = said.or(self.promote_recurrences(cx, &mut memory));
        said.map_or(Ok(()), Err)
    }

    fn say(&self, why: Decline) -> Said {
        Said::new(self.func, &why)
    }

    /// (L1) to (L6)
    fn prove(&mut self, cx: &PassCx<'_>, memory: &mut Memory, accesses: Vec<Rc<Located>>) -> Result<Cell, Decline> {
        let first = &accesses[0];
        let ty = self.cell_type(&accesses)?;
        if accesses.iter().any(|access| cx.options.is_asynchronous(self.func, access.flags)) {
            return Err(Decline::Asynchronous { access: first.inst });
        }
        let is_private = self.addresses.private.slot_of(first).is_some();
        if let Some(fence) = memory.fence.filter(|_| !is_private) {
            return Err(Decline::Fenced { access: first.inst, fence });
        }
        let seen_by = self.prove_alone(memory, &accesses)?;
        let starts_with_store = self.starts_with_store(&accesses);
        if !is_private {
            self.prove_unawaited(&accesses)?;
        }
        prove_known_memory(cx, accesses.iter().map(|access| &***access))?;
        let entry = self.entry_load(&accesses);
        if !self.is_made_of(carry::address_of(self.func, first.inst), &|_, _| None) {
            return Err(Decline::NotCertain { access: first.inst });
        }
        if entry.is_none() && !starts_with_store {
            return Err(Decline::NotCertain { access: first.inst });
        }
        let is_located = !is_private || self.is_in_slot(&accesses);
        let invisible = is_private && !starts_with_store && is_located;
        let mut stays = self.prove_stores(&accesses, invisible, seen_by);
        if stays.is_none() && !is_private {
            stays = self.prove_no_wait(memory, &accesses);
        }
        let offset = self.func.dfg.insts[first.inst].load_store_offset().expect("a plain access");
        Ok(Cell { ty, offset, accesses, entry, starts_with_store, stays, is_located })
    }

    /// (L1): the type of the bytes of the cell.
    fn cell_type(&self, accesses: &[Rc<Located>]) -> Result<Type, Decline> {
        let first = &accesses[0];
        let Some(ty) = cell_type(self.func, first.inst) else {
            return Err(Decline::MixedTypes { a: first.inst, b: first.inst });
        };
        let is_like_first = |access: &&Rc<Located>| {
            cell_type(self.func, access.inst) == Some(ty)
                && access.flags.explicit_endianness() == first.flags.explicit_endianness()
        };
        match accesses.iter().find(|access| !is_like_first(access)) {
            Some(other) => Err(Decline::MixedTypes { a: first.inst, b: other.inst }),
            None => Ok(ty),
        }
    }

    /// Forgets what was known of the loop as it was.
    fn forget(&mut self) {
        self.seen = None;
        self.polls.loads_have_gone();
    }

    /// Whether a store comes before all other accesses in each iteration.
    fn starts_with_store(&self, accesses: &[Rc<Located>]) -> bool {
        let first = &accesses[0];
        first.stored.is_some()
            && accesses.iter().all(|access| self.domtree.dominates(first.inst, access.inst, &self.func.layout))
    }

    /// (L3): a load of the cell that may be done before the loop.
    fn entry_load(&mut self, accesses: &[Rc<Located>]) -> Option<EntryLoad> {
        let movable = accesses.iter().find(|a| a.stored.is_none() && a.flags.notrap() && a.flags.can_move());
        let (first, traps_before) = match movable {
            Some(movable) => (movable, 0),
            None => {
                let first = accesses.first()?;
                (first, *self.seen().first.get(&first.inst)?)
            }
        };
        let flags = carry::merged_load_flags(accesses.iter().map(|access| &***access), first.flags);
        Some(EntryLoad { flags, traps_before })
    }

    /// Whether a cell of which each access that runs is in a slot is there even if none runs. A load that never traps says nothing: it may run here
    /// though the program did not execute it.
    fn is_in_slot(&mut self, accesses: &[Rc<Located>]) -> bool {
        let Access { address, size, .. } = &**accesses[0];
        let fits = |slot: StackSlot| {
            let end = address.constant_part().checked_add((*size).into());
            end.is_some_and(|end| end <= self.func.sized_stack_slots[slot].size.into())
        };
        let is_constant = address.terms().len() == 1 && address.slot().is_some_and(fits);
        let is_original = |access: &Located| {
            access.stored.is_some() || access.flags.trap_code().is_some() || fault!(MovedLoadProvesSlot)
        };
        is_constant
            || accesses.iter().any(|access| is_original(access) && self.seen().first.get(&access.inst) == Some(&0))
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
        let is_cold = |access: &Rc<Located>| {
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
        self.prove_room(cx, ty, access)?;
        self.pressure(cx).take(ty);
        Ok(())
    }

    /// (P2), which costs less to find out than what is to be proved.
    fn prove_room(&mut self, cx: &PassCx<'_>, ty: Type, access: Inst) -> Result<(), Decline> {
        let pressure = self.pressure(cx);
        if pressure.has_room(ty) {
            return Ok(());
        }
        let (needed, available) = pressure.needed();
        Err(Decline::Pressure { access, needed, available })
    }

    fn pressure(&mut self, cx: &PassCx<'_>) -> &mut Pressure {
        let (func, forest, lp) = (&*self.func, self.forest, self.lp);
        self.pressure.get_or_insert_with(|| Pressure::of(func, forest, lp, cx.isa, &cx.use_counts))
    }
}
