//! Which accesses one guard is for: what [`consolidate_guards`](super) makes, and what `version` asks before it removes guards.

use crate::analysis::cfg::edges::edges_from;
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::inst::effects::Effects;
use crate::analysis::memory::alias::{Access, LoopStores};
use crate::analysis::memory::checked_memory::{CheckedMemory, Root};
use crate::analysis::scev::linear_expr::Sum;
use crate::fault::fault;
use crate::pass::consolidate_guards::MAX_SPAN;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, Function, Inst, Value};
use cranelift_codegen::{Context, FxHashMap};
use smallvec::SmallVec;

/// Accesses that one guard is for.
pub(crate) struct Group<'a> {
    pub(crate) memory: &'a CheckedMemory,
    /// The operand that the first address is made of, and the constant part of that.
    pub(crate) address: Value,
    pub(crate) origin: i64,
    pub(crate) block: Block,
    /// The loop of which each iteration runs through the block.
    pub(crate) always_in: Option<Loop>,
    /// From where to where, in bytes from the operand.
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) accesses: SmallVec<[Access; 4]>,
}

/// The access that an instruction is, if it needs a guard, and of which memory.
type Unguarded<'a, 'c> = dyn FnMut(Inst) -> Option<(Access, &'a CheckedMemory)> + 'c;

/// Gathers the groups.
pub(crate) struct Finder<'a, 'c> {
    pub(crate) ctx: &'c Context,
    pub(crate) forest: &'c LoopForest,
    /// What needs a guard.
    pub(crate) unguarded: &'c mut Unguarded<'a, 'c>,
    /// Whether what is after an instruction need not be reached.
    pub(crate) is_barrier: &'c dyn Fn(Inst) -> bool,
}

impl<'a> Finder<'a, '_> {
    /// The groups of these blocks, which come in reverse postorder.
    pub(crate) fn find(self, blocks: impl Iterator<Item = Block>) -> Vec<Group<'a>> {
        let Self { ctx, forest, .. } = self;
        let func = &ctx.func;
        let mut found = Found { ctx, forest, groups: Vec::new(), by_address: FxHashMap::default() };
        // For each loop, from which on its groups may get larger in a later block.
        let mut floors = SecondaryMap::<Loop, usize>::new();
        for block in blocks {
            let lp = forest.innermost(block);
            let always_in = lp.filter(|&lp| always_executes(ctx, forest, lp, block));
            let mut open = always_in.map_or(found.groups.len(), |lp| floors[lp]);
            // An inner loop need not end.
            let around = lp.and_then(|lp| forest.data(lp).parent);
            all_around(forest, around).for_each(|around| floors[around] = found.groups.len());
            for inst in func.layout.block_insts(block) {
                if let Some(access) = (self.unguarded)(inst) {
                    found.add((block, always_in, open), access);
                }
                if (self.is_barrier)(inst) {
                    open = found.groups.len();
                    all_around(forest, lp).for_each(|lp| floors[lp] = open);
                }
            }
            if let Some(lp) =
                lp.filter(|&lp| edges_from(func, block).any(|edge| !forest.contains(lp, edge.target(func))))
            {
                floors[lp] = found.groups.len();
            }
        }
        found.groups
    }
}

/// A loop and its enclosing loops.
fn all_around(forest: &LoopForest, lp: Option<Loop>) -> impl Iterator<Item = Loop> {
    std::iter::successors(lp, |&lp| forest.data(lp).parent)
}

/// Whether each iteration of `lp` that ends runs through `block`, unless something before it traps, leaves the loop or does not end.
fn always_executes(ctx: &Context, forest: &LoopForest, lp: Loop, block: Block) -> bool {
    forest.irreducible().is_empty() && forest.is_in_each_iteration(&ctx.func, &ctx.domtree, lp, block)
}

/// Whether what is after `inst` need not be reached.
pub(crate) fn is_barrier(func: &Function, inst: Inst) -> bool {
    let effects = Effects::of(func, inst);
    effects.traps || effects.diverges
}

/// Whether base and length of a memory are the same all through a loop that does this to memory.
pub(crate) fn is_quiet(func: &Function, stores: &LoopStores, memory: &CheckedMemory) -> bool {
    let is_same = |root: &Root| {
        let mut flags = root.loads();
        flags.all(|flags| stores.not_kept_apart(func, func.dfg.mem_flags[flags]).is_none())
    };
    stores.fence.is_none() && [&memory.base, &memory.length].into_iter().all(is_same)
}

/// The groups found so far.
struct Found<'a, 'c> {
    ctx: &'c Context,
    forest: &'c LoopForest,
    groups: Vec<Group<'a>>,
    /// Those of addresses that differ by constants.
    by_address: FxHashMap<Sum, SmallVec<[usize; 2]>>,
}

impl<'a> Found<'a, '_> {
    /// Adds an access to a group of its address that covers it or may get larger, or to a new one.
    fn add(
        &mut self,
        (block, always_in, open): (Block, Option<Loop>, usize),
        (access, memory): (Access, &'a CheckedMemory),
    ) {
        let constant = access.address.constant_part().cast_signed();
        let known = self.by_address.entry(access.address.clone().offset(constant.wrapping_neg())).or_default();
        let offset = self.ctx.func.dfg.insts[access.inst].load_store_offset().map_or(0, i64::from);
        let origin = access.address.constant_part().cast_signed().wrapping_sub(offset);
        let size = i64::from(access.size);
        // Where the access is in a group, unless it is far from it.
        let span = |origin: i64| {
            let start = access.address.constant_part().cast_signed().wrapping_sub(origin);
            i32::try_from(start).is_ok().then_some((start, start + size))
        };
        let found = known.iter().copied().find(|&index| {
            let group = &self.groups[index];
            // Two memories may begin at one address, and end at two.
            if !std::ptr::eq(group.memory, memory) && !fault!(OneMemoryForAll) {
                return false;
            }
            let Some((start, end)) = span(group.origin) else { return false };
            let is_same = group.block == block || (always_in.is_some() && group.always_in == always_in);
            let is_near = group.end.max(end) - group.start.min(start) <= MAX_SPAN;
            let is_open = index >= open && is_same && is_near;
            // What a guard in a loop gives does not leave it.
            let is_inside = || self.forest.innermost(group.block).is_none_or(|lp| self.forest.contains(lp, block));
            let covers = || {
                let dominates = || self.ctx.domtree.block_dominates(group.block, block);
                group.start <= start && end <= group.end && dominates() && is_inside()
            };
            is_open || covers()
        });
        let index = found.unwrap_or_else(|| {
            let (address, accesses) = (access.operand, SmallVec::new());
            let (start, end) = (offset, offset + size);
            self.groups.push(Group { memory, address, origin, block, always_in, start, end, accesses });
            known.push(self.groups.len() - 1);
            self.groups.len() - 1
        });
        let group = &mut self.groups[index];
        let (start, end) = span(group.origin).expect("an offset has 32 bits");
        (group.start, group.end) = (group.start.min(start), group.end.max(end));
        group.accesses.push(access);
    }
}
