//! What loads and stores touch, and which of them can touch the same memory.
//!
//! An access is an address ([`Sum`]: base, terms, constant offset), a size, and a region. Two accesses do not overlap if one of
//! these says so:
//!
//! | why | rule |
//! |---|---|
//! | readonly | nothing writes what a load flagged `readonly` reads |
//! | region | both carry an alias region, and not the same one |
//! | slot | each is at a constant place in a stack slot, and these are two |
//! | private slot | one is in a slot whose address never leaves the function, the other's address is not made from it |
//! | distance | their addresses differ by a constant that is larger than the access at the lower address |
//! | extent | they differ by constants and extended numbers, and are disjoint whatever these are ([`extent`](crate::analysis::scev::extent)) |
//! | proved disjoint | a test before their loop has said so, or their addresses before they were widened ([`Disjoint`]) |
//!
//! In any other case they may. **An access without a region may overlap any access**: Cranelift 0.135 itself takes it for
//! disjoint from accesses with one (wasmtime#14323 is open); this does not.
//!
//! # Types
//!
//! CLIF has no types in memory. A front end says what it knows by alias regions, and the rules of type-based alias analysis
//! (Diwan, McKinley and Moss, "Type-based alias analysis", 1998) become these:
//!
//! | two accesses | may overlap | regions that say so |
//! |---|---|---|
//! | through an unsafe pointer, and any | always | none |
//! | fields `p.f`, `q.f` | if `p`, `q` may be the same | one region for each field |
//! | fields `p.f`, `q.g` | never | one region for each field |
//! | a field `p.f` and a dereference `*q` of its type | if the field's address is taken | one for both then, two if not |
//! | an element `a[i]` and a dereference `*q` of its type | if an element's address is taken | one for both then, two if not |
//! | a field and an element | never | two |
//! | elements `a[i]`, `b[j]` of one type | if `a`, `b` may be the same; for one base the distance decides | one for each element type |

use crate::analysis::cfg::loops::Loop;
use crate::analysis::inst::effects::Effects;
use crate::analysis::memory::disjoint::Disjoint;
use crate::analysis::memory::slots::observed_slots;
use crate::analysis::scev::extent::are_always_disjoint;
use crate::analysis::scev::linear_expr::{Sum, Term, are_disjoint};
use crate::analysis::scev::view::View;
use crate::embedder::Writers;
use crate::fault::fault;
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::ir::{
    AliasRegion, Block, Function, Inst, InstructionData, MemFlagsData, Opcode, StackSlot, Type, Value, types,
};
use std::cell::OnceCell;
use std::rc::Rc;

/// A load or a store.
#[derive(Clone, Debug)]
pub struct Access {
    /// The instruction.
    pub inst: Inst,
    /// Where it starts.
    pub address: Sum,
    /// The operand that the address is made of, with an offset.
    pub operand: Value,
    /// How many bytes it touches.
    pub size: u32,
    /// What it stores, nothing if it is a load.
    pub stored: Option<Value>,
    /// Its flags.
    pub flags: MemFlagsData,
}

impl Access {
    /// The access that `inst` is, if it is a plain load or store. Atomics and calls are not.
    pub fn of(func: &Function, inst: Inst) -> Option<Self> {
        let (arg, stored, flags, offset) = match func.dfg.insts[inst] {
            InstructionData::Load { arg, flags, offset, .. } => (arg, None, flags, offset),
            InstructionData::Store { args: [stored, arg], flags, offset, .. } => (arg, Some(stored), flags, offset),
            _ => return None,
        };
        Some(Self {
            inst,
            address: Sum::of(func, arg).offset(offset.into()),
            operand: arg,
            size: memory_type(func, inst)?.bytes(),
            stored,
            flags: func.dfg.mem_flags[flags],
        })
    }

    /// Whether the two may touch the same byte, one of them in an earlier iteration of a loop than the other or not, as
    /// long as the values that their addresses are made of are the same for both.
    ///
    /// What a test has [proved disjoint](crate::analysis::memory::disjoint) is so in the iterations of the tested loop: where that loop is removed, two
    /// addresses that vary in the outer one may be the same in different iterations of that.
    pub fn may_alias(&self, other: &Self, private: &PrivateSlots) -> bool {
        if self.is_kept_apart(other) || private.disjoint.are_disjoint(self.inst, other.inst) {
            return false;
        }
        let bits = self.address.bits();
        let apart = |difference| are_disjoint(difference, bits, self.size, other.size);
        match self.distances(other, private) {
            Some(all) => !all.into_iter().all(apart),
            None => !self.is_always_disjoint(other),
        }
    }

    /// Whether the two do not overlap whatever the numbers are that their addresses extend.
    pub fn is_always_disjoint(&self, other: &Self) -> bool {
        let (address, other_address) = (&self.address, &other.address);
        let extends = |sum: &Sum| sum.terms().iter().any(|(term, _)| matches!(term, Term::Extended { .. }));
        (extends(address) || extends(other_address))
            && address.bits() == other_address.bits()
            && address.minus(other_address).is_some_and(|far| are_always_disjoint(&far, self.size, other.size))
    }

    /// Whether the flags of the two say that they do not overlap, whatever their addresses are.
    pub fn is_kept_apart(&self, other: &Self) -> bool {
        if fault!(NothingAliases) || self.flags.readonly() || other.flags.readonly() {
            return true;
        }
        let regions = self.flags.alias_region().zip(other.flags.alias_region());
        regions.is_some_and(|(a, b)| a != b)
    }

    /// How far this address can be from that of `other`, if that is known; nowhere near it if there are no such numbers.
    pub fn distances(&self, other: &Self, private: &PrivateSlots) -> Option<Vec<u64>> {
        let slots = self.place_in_slot().zip(other.place_in_slot());
        if private.keeps_apart(self.operand, other.operand) || slots.is_some_and(|(a, b)| a != b) {
            return Some(Vec::new());
        }
        self.address.differences(&other.address)
    }

    /// The stack slot that the address is a constant distance from the start of. That of two slots is nowhere in the other; what is added to the address
    /// of one that others know may lead to any place, though, as the distance of another one may.
    fn place_in_slot(&self) -> Option<StackSlot> {
        self.address.slot().filter(|_| self.address.terms().len() == 1)
    }
}

/// The operand that the address of a plain load or store is made of, with an offset.
pub fn address_operand(func: &Function, inst: Inst) -> Option<Value> {
    match func.dfg.insts[inst] {
        InstructionData::Load { arg, .. } | InstructionData::Store { args: [_, arg], .. } => Some(arg),
        _ => None,
    }
}

/// Whether a plain load or store is at the same address in all iterations of a loop.
pub fn has_one_address(view: View<'_>, lp: Loop, inst: Inst) -> bool {
    let address = address_operand(view.func(), inst).and_then(|address| view.sum(address));
    address.is_some_and(|address| view.is_invariant(lp, &address))
}

/// The type of a value that stands for the bytes that a plain load or store touches. None for loads that widen vectors.
pub fn cell_type(func: &Function, inst: Inst) -> Option<Type> {
    use Opcode::{Sload8x8, Sload16x4, Sload32x2, Uload8x8, Uload16x4, Uload32x2};
    let widens =
        matches!(func.dfg.insts[inst].opcode(), Uload8x8 | Sload8x8 | Uload16x4 | Sload16x4 | Uload32x2 | Sload32x2);
    memory_type(func, inst).filter(|_| !widens)
}

/// The type of the bytes that a plain load or store touches.
pub fn memory_type(func: &Function, inst: Inst) -> Option<Type> {
    use Opcode::{
        Istore8, Istore16, Istore32, Load, Sload8, Sload8x8, Sload16, Sload16x4, Sload32, Sload32x2, Store, Uload8,
        Uload8x8, Uload16, Uload16x4, Uload32, Uload32x2,
    };
    Some(match func.dfg.insts[inst].opcode() {
        Load => func.dfg.value_type(func.dfg.first_result(inst)),
        Store => func.dfg.value_type(func.dfg.inst_args(inst)[0]),
        Uload8 | Sload8 | Istore8 => types::I8,
        Uload16 | Sload16 | Istore16 => types::I16,
        Uload32 | Sload32 | Istore32 => types::I32,
        Uload8x8 | Sload8x8 | Uload16x4 | Sload16x4 | Uload32x2 | Sload32x2 => types::I64,
        _ => return None,
    })
}

/// The stack slots that nobody but the plain loads and stores of the function can touch, and what else is known of its accesses.
///
/// This is what the function was when it was looked at. A pass that keeps it while it adds values may add no other use of an address
/// than there was, and tells it of the copies that it makes ([`add_copy`](Self::add_copy)); of other new values it says that they may
/// be addresses in any slot.
#[derive(Clone, Debug, Default)]
pub struct PrivateSlots {
    slots: EntitySet<StackSlot>,
    origins: SecondaryMap<Value, Origin>,
    disjoint: Rc<Disjoint>,
}

/// Which private slot a value is an address in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Origin {
    /// Any or none: a value that did not exist when the function was looked at.
    #[default]
    Unknown,
    /// None.
    Elsewhere,
    /// This one, if it is private.
    Slot(StackSlot),
}

impl PrivateSlots {
    /// The slots of `func` whose address is only ever the address of a plain load or store, or one term of it, and that no
    /// stack map, no debug tag and no debugger (by a key) names. Linear in the size of the function; nothing to do without slots.
    pub fn of(func: &Function, domtree: &DominatorTree) -> Self {
        let mut private = Self::default();
        let unobserved = func.sized_stack_slots.iter().filter(|(_, data)| data.key.is_none());
        private.slots.extend(unobserved.map(|(slot, _)| slot));
        if private.slots.is_empty() {
            return private;
        }
        // In reverse postorder, operands come before what is made of them.
        for &block in domtree.cfg_rpo() {
            func.dfg.block_params(block).iter().for_each(|&param| private.origins[param] = Origin::Elsewhere);
            for inst in func.layout.block_insts(block) {
                private.visit(func, inst);
            }
        }
        private
    }

    /// The same, with pairs of accesses that are known not to overlap besides.
    pub fn with(self, disjoint: Rc<Disjoint>) -> Self {
        Self { disjoint, ..self }
    }

    /// These pairs.
    pub fn disjoint(&self) -> Rc<Disjoint> {
        self.disjoint.clone()
    }

    /// Gets to know what a pass has added: a copy of an instruction that computes an address from values that are known.
    pub fn add_copy(&mut self, func: &Function, inst: Inst) {
        let is_known = |value: Value| self.origins[value] != Origin::Unknown;
        if !self.is_empty() && func.dfg.inst_values(inst).all(is_known) {
            self.visit(func, inst);
        }
    }

    fn visit(&mut self, func: &Function, inst: Inst) {
        let Self { slots: private, origins, .. } = self;
        let slot_of = |value: Value| match origins[value] {
            Origin::Slot(slot) => Some(slot),
            Origin::Elsewhere | Origin::Unknown => None,
        };
        let slots: Vec<_> = func.dfg.inst_values(inst).filter_map(slot_of).collect();
        func.dfg.inst_results(inst).iter().for_each(|&result| origins[result] = Origin::Elsewhere);
        match func.dfg.insts[inst] {
            InstructionData::StackAddr { stack_slot, .. } => {
                origins[func.dfg.first_result(inst)] = Origin::Slot(stack_slot);
            }
            InstructionData::Binary { opcode: Opcode::Iadd | Opcode::Isub, .. } if slots.len() == 1 => {
                origins[func.dfg.first_result(inst)] = Origin::Slot(slots[0]);
            }
            InstructionData::Load { .. } => {}
            InstructionData::Store { args: [stored, _], .. } => {
                if let Origin::Slot(slot) = origins[stored] {
                    private.remove(slot);
                }
            }
            _ => slots.into_iter().for_each(|slot| {
                private.remove(slot);
            }),
        }
        for slot in observed_slots(func, inst) {
            private.remove(slot);
        }
    }

    /// The private slot that an access is to.
    pub fn slot_of(&self, access: &Access) -> Option<StackSlot> {
        self.slot_at(access.operand)
    }

    /// The private slot that `address` is in, if it is sure to be in one.
    fn slot_at(&self, address: Value) -> Option<StackSlot> {
        match self.origin(address) {
            Origin::Slot(slot) => Some(slot),
            Origin::Elsewhere | Origin::Unknown => None,
        }
    }

    /// Whether one of the two addresses is sure to be in a private slot that the other is not in.
    fn keeps_apart(&self, a: Value, b: Value) -> bool {
        let (a, b) = (self.origin(a), self.origin(b));
        a != b && a != Origin::Unknown && b != Origin::Unknown
    }

    /// Which private slot `address` is in.
    fn origin(&self, address: Value) -> Origin {
        match self.origins[address] {
            Origin::Slot(slot) if !self.slots.contains(slot) => Origin::Elsewhere,
            Origin::Unknown if self.is_empty() => Origin::Elsewhere,
            origin => origin,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

/// All that a loop does to memory, its inner loops included.
#[derive(Clone, Debug, Default)]
pub struct LoopMemory {
    /// Its plain loads and stores.
    pub accesses: Vec<Inst>,
    /// The first thing that memory may not be moved across: a call, an atomic, a fence.
    pub fence: Option<Inst>,
}

impl LoopMemory {
    /// What the instructions of `blocks` do. Linear in their number.
    pub fn of(func: &Function, blocks: &[Block]) -> Self {
        Self::collect(func, blocks, |_| true)
    }

    /// The same, without the loads if there is a fence. For those who do nothing about memory that a fence may change.
    pub fn without_fenced_loads(func: &Function, blocks: &[Block]) -> Self {
        Self::collect(func, blocks, |fence| fence.is_none())
    }

    fn collect(func: &Function, blocks: &[Block], takes_loads: impl Fn(Option<Inst>) -> bool) -> Self {
        let (mut insts, mut fence) = (Vec::new(), None);
        for (inst, effects) in effects_on_memory(func, blocks) {
            if effects.fences {
                fence.get_or_insert(inst);
            } else if address_operand(func, inst).is_some() {
                insts.push((inst, effects));
            }
        }
        let takes_loads = takes_loads(fence);
        let taken = insts.into_iter().filter(|(_, effects)| takes_loads || effects.writes);
        Self { accesses: taken.map(|(inst, _)| inst).collect(), fence }
    }
}

/// All by which a loop may change memory, its inner loops included.
#[derive(Clone, Debug, Default)]
pub struct LoopStores {
    /// Its plain stores. Where they store to is found when the first load is compared with them: many loops have a fence.
    stores: Vec<(Inst, OnceCell<Option<Access>>)>,
    /// The first thing that memory may not be moved across: a call, an atomic, a fence.
    pub fence: Option<Inst>,
    /// The first call.
    call: Option<Inst>,
    /// The atomics that write, with their regions.
    atomics: Vec<(Inst, Option<AliasRegion>)>,
}

impl LoopStores {
    /// What the instructions of `blocks` do. Linear in their number.
    pub fn of(func: &Function, blocks: &[Block]) -> Self {
        let mut all = Self::default();
        for (inst, effects) in effects_on_memory(func, blocks) {
            if effects.diverges {
                all.call.get_or_insert(inst);
            }
            if effects.fences {
                all.fence.get_or_insert(inst);
                all.atomics.extend(written_region(func, inst).map(|region| (inst, region)));
            } else if effects.writes && matches!(func.dfg.insts[inst], InstructionData::Store { .. }) {
                all.stores.push((inst, OnceCell::new()));
            }
        }
        all
    }

    /// A store that `flags` do not prove disjoint from an access with them, if there is one.
    pub fn not_kept_apart(&self, func: &Function, flags: MemFlagsData) -> Option<Inst> {
        let is_disjoint = |store: Inst| {
            let stored = func.dfg.insts[store].memflags().and_then(|flags| func.dfg.mem_flags[flags].alias_region());
            stored.zip(flags.alias_region()).is_some_and(|(a, b)| a != b)
        };
        self.stores.iter().map(|(store, _)| *store).find(|&store| !is_disjoint(store))
    }

    /// Something in the loop that may change what `load` reads, if there is anything.
    pub fn clobber(&self, func: &Function, load: &Access, private: &PrivateSlots) -> Option<Inst> {
        let fence = self.fence_for((load.operand, load.flags), Writers::Any, private);
        fence.or_else(|| self.clobbering_store(func, load, Writers::Any, private))
    }

    /// The call or fence that a load from this address, with these flags, may not be moved across, if `writers` write what it reads.
    pub fn fence_for(
        &self,
        (address, flags): (Value, MemFlagsData),
        writers: Writers,
        private: &PrivateSlots,
    ) -> Option<Inst> {
        let fence = match writers {
            Writers::Calls => self.call.or_else(|| self.atomic_of(flags)),
            _ => self.fence,
        };
        fence.filter(|_| !flags.readonly() && private.slot_at(address).is_none())
    }

    /// An atomic that writes to the region of these flags.
    fn atomic_of(&self, flags: MemFlagsData) -> Option<Inst> {
        self.atomics.iter().find(|(_, region)| *region == flags.alias_region()).map(|(atomic, _)| *atomic)
    }

    /// A store that may change what `load` reads, if there is one.
    pub fn clobbering_store(
        &self,
        func: &Function,
        load: &Access,
        writers: Writers,
        private: &PrivateSlots,
    ) -> Option<Inst> {
        /// Stores that a load is compared with; of a loop with more, each may be to any place. LLVM stops after 100.
        const MAX_STORES: usize = 100;
        if load.flags.readonly() {
            return None;
        }
        let region = load.flags.alias_region();
        let region_of =
            |inst: Inst| func.dfg.insts[inst].memflags().map(|flags| func.dfg.mem_flags[flags].alias_region());
        let is_writer = |inst: Inst| writers != Writers::Calls || region_of(inst) == Some(region);
        let mut stores = self.stores.iter().filter(|(inst, _)| is_writer(*inst));
        if let Some((store, _)) = stores.clone().nth(MAX_STORES) {
            return Some(*store);
        }
        let found = stores.find(|(inst, store)| {
            let store = store.get_or_init(|| Access::of(func, *inst));
            store.as_ref().is_some_and(|store| store.may_alias(load, private))
        });
        found.map(|(inst, _)| *inst)
    }
}

/// The region that `inst` writes to if it is an atomic that writes.
pub fn written_region(func: &Function, inst: Inst) -> Option<Option<AliasRegion>> {
    let data = &func.dfg.insts[inst];
    let writes = data.opcode().can_store() && !data.opcode().is_call();
    data.memflags().filter(|_| writes).map(|flags| func.dfg.mem_flags[flags].alias_region())
}

/// The instructions of `blocks` that may have to do with memory, in order.
fn effects_on_memory<'a>(func: &'a Function, blocks: &'a [Block]) -> impl Iterator<Item = (Inst, Effects)> + 'a {
    let insts = blocks.iter().flat_map(|&block| func.layout.block_insts(block));
    insts.filter_map(|inst| {
        let may_touch = Effects::may_touch_memory(func.dfg.insts[inst].opcode());
        may_touch.then(|| (inst, Effects::of(func, inst)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::context;

    /// For each pair of accesses, in order, whether they may overlap.
    fn overlaps(text: &str) -> Vec<bool> {
        let ctx = context(text);
        let private = PrivateSlots::of(&ctx.func, &ctx.domtree);
        let blocks: Vec<_> = ctx.func.layout.blocks().collect();
        let insts = LoopMemory::of(&ctx.func, &blocks).accesses;
        let accesses: Vec<_> = insts.into_iter().filter_map(|inst| Access::of(&ctx.func, inst)).collect();
        let pairs = accesses.iter().enumerate().flat_map(|(n, a)| accesses[n + 1..].iter().map(move |b| (a, b)));
        pairs.map(|(a, b)| a.may_alias(b, &private)).collect()
    }

    #[test]
    fn regions_and_distances() {
        let all = overlaps(
            "function %f(i64, i64) {
                region0 = 0 \"\"
                region1 = 1 \"\"
            block0(v0: i64, v1: i64):
                v2 = load.i64 region0 v0
                v3 = load.i64 region1 v1
                v4 = load.i64 v0+8
                v5 = load.i32 region0 v0+4
                return
            }",
        );
        // In order: 01 02 03, 12 13, 23.
        assert_eq!(all, [false, false, true, true, false, false]);
    }

    #[test]
    fn slots() {
        let all = overlaps(
            "function %f(i64, i64) {
                ss0 = explicit_slot 16
                ss1 = explicit_slot 16
            block0(v0: i64, v1: i64):
                v2 = stack_addr.i64 ss0
                v3 = stack_addr.i64 ss1
                v4 = iadd v2, v1
                store v3, v0
                store v0, v4
                store v0, v3
                return
            }",
        );
        assert_eq!(all, [false, true, false], "ss1 is known to others, ss0 is not");
    }

    #[test]
    fn readonly_memory_is_not_written() {
        let all = overlaps(
            "function %f(i64) {
            block0(v0: i64):
                v2 = load.i64 notrap readonly v0
                store v0, v0
                return
            }",
        );
        assert_eq!(all, [false]);
    }

    #[test]
    fn a_new_address_may_be_in_any_slot_until_it_is_told_of() {
        let mut ctx = context(
            "function %f(i64, i64) {
                ss0 = explicit_slot 16
            block0(v0: i64, v1: i64):
                v2 = stack_addr.i64 ss0
                v3 = iadd v2, v0
                v4 = load.i64 v3
                v5 = load.i64 v1
                return
            }",
        );
        let mut private = PrivateSlots::of(&ctx.func, &ctx.domtree);
        let block = ctx.func.layout.entry_block().expect("a block");
        let insts: Vec<_> = ctx.func.layout.block_insts(block).collect();
        let [sum, inside, outside] = [insts[1], insts[2], insts[3]];
        let copy = ctx.func.dfg.clone_inst(sum);
        ctx.func.layout.insert_inst(copy, inside);
        let again = ctx.func.dfg.first_result(copy);
        let load = ctx.func.dfg.clone_inst(inside);
        ctx.func.layout.insert_inst(load, outside);
        ctx.func.dfg.inst_args_mut(load)[0] = again;
        let [inside, outside, load] = [inside, outside, load].map(|inst| Access::of(&ctx.func, inst).expect("a load"));
        assert!(!inside.may_alias(&outside, &private));
        assert!(load.may_alias(&outside, &private) && load.may_alias(&inside, &private));
        assert_eq!(private.slot_of(&load), None);
        private.add_copy(&ctx.func, copy);
        assert!(!load.may_alias(&outside, &private) && load.may_alias(&inside, &private));
        assert_eq!(private.slot_of(&load), private.slot_of(&inside));
    }
}
