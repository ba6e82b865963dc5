//! What loads and stores touch, and which of them can touch the same memory.
//!
//! An access is an address ([`Sum`]: base, terms, constant offset), a size, and a region. Two accesses do not overlap if one of
//! these says so:
//!
//! | why | rule |
//! |---|---|
//! | readonly | nothing writes what a load flagged `readonly` reads |
//! | region | both carry an alias region, and not the same one |
//! | slot | they are in different stack slots |
//! | private slot | one is in a slot whose address never leaves the function, the other's address is not made from it |
//! | distance | their addresses differ by a constant that is larger than the access below |
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

use crate::analysis::address::{Sum, are_apart};
use crate::analysis::effects::Effects;
use crate::fault::fault;
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::{EntitySet, SecondaryMap, packed_option::PackedOption};
use cranelift_codegen::ir::{
    Block, DebugTag, Function, Inst, InstructionData, MemFlagsData, Opcode, StackSlot, Type, Value, types,
};

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
    pub fn may_alias(&self, other: &Self, private: &PrivateSlots) -> bool {
        if fault!(NothingAliases) || self.flags.readonly() || other.flags.readonly() {
            return false;
        }
        if let (Some(a), Some(b)) = (self.flags.alias_region(), other.flags.alias_region())
            && a != b
        {
            return false;
        }
        if private.slot_of(self) != private.slot_of(other) {
            return false;
        }
        if let (Some(a), Some(b)) = (self.address.slot(), other.address.slot())
            && a != b
        {
            return false;
        }
        let bits = self.address.bits();
        let apart = |difference| are_apart(difference, bits, self.size, other.size);
        !self.address.differences(&other.address).is_some_and(|all| all.into_iter().all(apart))
    }
}

/// The operand that the address of a plain load or store is made of, with an offset.
pub fn address_operand(func: &Function, inst: Inst) -> Option<Value> {
    match func.dfg.insts[inst] {
        InstructionData::Load { arg, .. } | InstructionData::Store { args: [_, arg], .. } => Some(arg),
        _ => None,
    }
}

/// The type of a value that stands for the bytes that a plain load or store touches. None for loads that widen vectors.
pub fn cell_type(func: &Function, inst: Inst) -> Option<Type> {
    use Opcode::{Sload8x8, Sload16x4, Sload32x2, Uload8x8, Uload16x4, Uload32x2};
    let widens =
        matches!(func.dfg.insts[inst].opcode(), Uload8x8 | Sload8x8 | Uload16x4 | Sload16x4 | Uload32x2 | Sload32x2);
    memory_type(func, inst).filter(|_| !widens)
}

/// The type of the bytes that a plain load or store touches.
fn memory_type(func: &Function, inst: Inst) -> Option<Type> {
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

/// The stack slots that nobody but the plain loads and stores of the function can touch.
#[derive(Clone, Debug, Default)]
pub struct PrivateSlots {
    slots: EntitySet<StackSlot>,
    /// The slot that a value is an address in: for private slots, this knows all such values.
    made_from: SecondaryMap<Value, PackedOption<StackSlot>>,
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
            for inst in func.layout.block_insts(block) {
                private.visit(func, inst);
            }
        }
        private
    }

    fn visit(&mut self, func: &Function, inst: Inst) {
        let Self { slots: private, made_from } = self;
        let slots: Vec<_> = func.dfg.inst_values(inst).filter_map(|value| made_from[value].expand()).collect();
        match func.dfg.insts[inst] {
            InstructionData::StackAddr { stack_slot, .. } => {
                made_from[func.dfg.first_result(inst)] = stack_slot.into();
            }
            InstructionData::Binary { opcode: Opcode::Iadd | Opcode::Isub, .. } if slots.len() == 1 => {
                made_from[func.dfg.first_result(inst)] = slots[0].into();
            }
            InstructionData::Load { .. } => {}
            InstructionData::Store { args: [stored, _], .. } => {
                if let Some(slot) = made_from[stored].expand() {
                    private.remove(slot);
                }
            }
            _ => slots.into_iter().for_each(|slot| {
                private.remove(slot);
            }),
        }
        for entry in func.dfg.user_stack_map_entries(inst).into_iter().flatten() {
            private.remove(entry.slot);
        }
        for tag in func.debug_tags.get(inst) {
            if let DebugTag::StackSlot(slot) = *tag {
                private.remove(slot);
            }
        }
    }

    /// The private slot that an access is to.
    pub fn slot_of(&self, access: &Access) -> Option<StackSlot> {
        self.made_from[access.operand].expand().filter(|&slot| self.slots.contains(slot))
    }
}

/// All that a loop does to memory, the loops inside it included.
#[derive(Clone, Debug, Default)]
pub struct LoopMemory {
    /// Its plain loads and stores.
    pub accesses: Vec<Access>,
    /// The first thing that memory may not be moved across: a call, an atomic, a fence.
    pub fence: Option<Inst>,
    /// The first call.
    pub call: Option<Inst>,
}

impl LoopMemory {
    /// What the instructions of `blocks` do. Linear in their number.
    pub fn of(func: &Function, blocks: &[Block]) -> Self {
        Self::collect(func, blocks, |effects| effects.reads || effects.writes)
    }

    /// The same without the loads.
    pub fn stores(func: &Function, blocks: &[Block]) -> Self {
        Self::collect(func, blocks, |effects| effects.writes)
    }

    fn collect(func: &Function, blocks: &[Block], wanted: impl Fn(Effects) -> bool) -> Self {
        let mut memory = Self::default();
        for inst in blocks.iter().flat_map(|&block| func.layout.block_insts(block)) {
            let opcode = func.dfg.insts[inst].opcode();
            if !(opcode.can_load() || opcode.can_store() || opcode.is_call() || opcode.other_side_effects()) {
                continue;
            }
            let effects = Effects::of(func, inst);
            if effects.diverges {
                memory.call.get_or_insert(inst);
            }
            if effects.fences {
                memory.fence.get_or_insert(inst);
            } else if wanted(effects) {
                memory.accesses.extend(Access::of(func, inst));
            }
        }
        memory
    }

    /// Something in the loop that may change what `load` reads, if there is anything.
    pub fn clobber(&self, load: &Access, private: &PrivateSlots) -> Option<Inst> {
        self.clobber_among(load, private, self.fence, |_| true)
    }

    /// The same, if only calls and stores to its region write it ([`Writers::Calls`](crate::Writers::Calls)).
    pub fn clobber_of_its_region(&self, load: &Access, private: &PrivateSlots) -> Option<Inst> {
        let region = load.flags.alias_region();
        self.clobber_among(load, private, self.call, |store| store.flags.alias_region() == region)
    }

    fn clobber_among(
        &self,
        load: &Access,
        private: &PrivateSlots,
        fence: Option<Inst>,
        is_writer: impl Fn(&Access) -> bool,
    ) -> Option<Inst> {
        if load.flags.readonly() {
            return None;
        }
        let is_private = private.slot_of(load).is_some();
        if let Some(fence) = fence.filter(|_| !is_private) {
            return Some(fence);
        }
        /// Stores that a load is compared with; of a loop with more, each may be to any place. LLVM stops after 100.
        const MAX_STORES: usize = 100;
        let mut stores = self.accesses.iter().filter(|access| access.stored.is_some() && is_writer(access));
        if let Some(store) = stores.clone().nth(MAX_STORES) {
            return Some(store.inst);
        }
        stores.find(|store| store.may_alias(load, private)).map(|store| store.inst)
    }
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
        let accesses = LoopMemory::of(&ctx.func, &blocks).accesses;
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
}
