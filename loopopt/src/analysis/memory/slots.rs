//! How a function uses its stack slots: which addresses stay inside the function, and which bytes each access touches.
//!
//! An address is `stack_addr`, or such an address plus or minus a constant. Addresses are followed in reverse postorder, in
//! which each is met before its uses. Whoever uses one for anything but the address of a plain load or store may keep it,
//! so that loads and stores through other pointers, calls and other threads reach the slot. Without such a use nobody but
//! the accesses found here does: distinct slots do not overlap, and the program cannot guess an address.
//!
//! Not all that reaches a slot does so by its address: a collector rewrites what a stack map names, and a debugger reads
//! slots that have a key, or that a debug tag names.

use crate::analysis::inst::number::{constant_of, signed};
use crate::analysis::memory::alias::cell_type;
use crate::fault::fault;
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{DebugTag, Endianness, Function, Inst, InstructionData, Opcode, StackSlot, Type, Value};

/// One load or store of a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) inst: Inst,
    /// The type of what is in memory. An extending load gives, and a truncating store takes, a wider one.
    pub(crate) ty: Type,
    /// The first byte.
    pub(crate) start: u32,
}

impl Access {
    /// The byte after the last one.
    fn end(self) -> u32 {
        self.start + self.ty.bytes()
    }

    fn range(self) -> (u32, u32) {
        (self.start, self.end())
    }
}

/// Why the accesses found are not all that happens to a slot, or why they cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// This instruction uses the address for something else than an access.
    Escapes(Inst),
    /// A debugger or a collector may look at it.
    Observed,
    /// This access touches bytes outside of the slot.
    OutOfBounds(Inst),
    /// This access is of a kind that is not followed.
    Unsupported(Inst),
}

/// The uses of one slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlotUse {
    /// The loads and stores, in reverse postorder.
    pub(crate) accesses: Vec<Access>,
    /// What computes addresses of it.
    pub(crate) addresses: Vec<Inst>,
    /// The first obstacle.
    pub(crate) obstacle: Option<Obstacle>,
}

/// A range of bytes that the accesses of other parts do not touch, and that cannot be split.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// The accesses in it, in reverse postorder.
    pub(crate) accesses: Vec<Access>,
    /// Two accesses that overlap, but are not of the same bytes, if there are such.
    pub(crate) clash: Option<[Inst; 2]>,
}

impl SlotUse {
    /// Splits the bytes that are accessed into as many parts as possible.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let mut sorted = self.accesses.clone();
        // Stable: accesses of the same bytes stay in order.
        sorted.sort_by_key(|access| access.range());
        let mut parts = Vec::<Part>::new();
        let mut end = 0;
        for access in sorted {
            match parts.last_mut() {
                Some(part) if access.start < end && !splits_anyway(part, access) => {
                    let first = part.accesses[0];
                    if first.range() != access.range() {
                        part.clash.get_or_insert([first.inst, access.inst]);
                    }
                    part.accesses.push(access);
                }
                _ => parts.push(Part { accesses: vec![access], clash: None }),
            }
            end = end.max(access.end());
        }
        parts
    }
}

/// The mistake of taking overlapping places for distinct ones.
fn splits_anyway(part: &Part, access: Access) -> bool {
    fault!(IgnoredOverlap) && part.accesses[0].range() != access.range()
}

/// The uses of all slots of a function.
pub(crate) struct SlotUses(SecondaryMap<StackSlot, SlotUse>);

impl SlotUses {
    /// Looks at each instruction once. Needs a function without value aliases.
    pub(crate) fn new(func: &Function, domtree: &DominatorTree, native: Endianness) -> Self {
        let mut collector = Collector { func, native, places: SecondaryMap::new(), uses: SecondaryMap::new() };
        for (slot, data) in &func.sized_stack_slots {
            if data.key.is_some() {
                collector.block(slot, Obstacle::Observed);
            }
        }
        for &block in domtree.cfg_rpo() {
            for inst in func.layout.block_insts(block) {
                collector.visit(inst);
            }
        }
        Self(collector.uses)
    }

    /// The uses of `slot`.
    pub(crate) fn of(&self, slot: StackSlot) -> &SlotUse {
        &self.0[slot]
    }
}

/// An address in a slot.
#[derive(Clone, Copy)]
struct Place {
    slot: StackSlot,
    offset: i64,
}

struct Collector<'a> {
    func: &'a Function,
    native: Endianness,
    /// Where the values point that are addresses in slots.
    places: SecondaryMap<Value, Option<Place>>,
    uses: SecondaryMap<StackSlot, SlotUse>,
}

impl Collector<'_> {
    fn visit(&mut self, inst: Inst) {
        self.visit_observers(inst);
        if let Some(place) = self.computed_address(inst) {
            self.places[self.func.dfg.first_result(inst)] = Some(place);
            self.uses[place.slot].addresses.push(inst);
            return;
        }
        match self.func.dfg.insts[inst] {
            InstructionData::Load { arg, .. } => self.access(inst, arg),
            InstructionData::Store { args: [value, address], .. } => {
                self.access(inst, address);
                self.escape(inst, value);
            }
            _ => self.func.dfg.inst_values(inst).for_each(|value| self.escape(inst, value)),
        }
    }

    /// Those who see a slot without its address.
    fn visit_observers(&mut self, inst: Inst) {
        observed_slots(self.func, inst).for_each(|slot| self.block(slot, Obstacle::Observed));
    }

    /// The address that `inst` computes, if it is one.
    fn computed_address(&self, inst: Inst) -> Option<Place> {
        match self.func.dfg.insts[inst] {
            InstructionData::StackAddr { stack_slot, offset, .. } => {
                Some(Place { slot: stack_slot, offset: offset.into() })
            }
            InstructionData::Binary { opcode: Opcode::Iadd, args: [a, b] } => match (self.places[a], self.places[b]) {
                (Some(place), None) => self.moved(place, self.constant(b)?),
                (None, Some(place)) => self.moved(place, self.constant(a)?),
                _ => None,
            },
            InstructionData::Binary { opcode: Opcode::Isub, args: [a, b] } => {
                self.moved(self.places[a]?, self.constant(b)?.checked_neg()?)
            }
            _ => None,
        }
    }

    fn moved(&self, place: Place, by: i64) -> Option<Place> {
        Some(Place { offset: place.offset.checked_add(by)?, ..place })
    }

    /// The value of a constant, with its sign.
    fn constant(&self, value: Value) -> Option<i64> {
        Some(signed(constant_of(self.func, value)?, self.func.dfg.value_type(value).bits()))
    }

    /// Records what the load or store `inst` does, if `address` is one of a slot.
    fn access(&mut self, inst: Inst, address: Value) {
        let Some(Place { slot, offset }) = self.places[address] else { return };
        let Some(ty) = self.memory_type(inst) else { return self.block(slot, Obstacle::Unsupported(inst)) };
        let own = self.func.dfg.insts[inst].load_store_offset().unwrap_or(0);
        let size = self.func.sized_stack_slots[slot].size;
        let start = offset.checked_add(own.into()).and_then(|start| u32::try_from(start).ok());
        match start.filter(|start| start.checked_add(ty.bytes()).is_some_and(|end| end <= size)) {
            Some(start) => self.uses[slot].accesses.push(Access { inst, ty, start }),
            None => self.block(slot, Obstacle::OutOfBounds(inst)),
        }
    }

    /// The type of what the load or store `inst` finds or leaves in memory, if it is known how to do the same without memory.
    fn memory_type(&self, inst: Inst) -> Option<Type> {
        let ty = cell_type(self.func, inst)?;
        // Of smaller and larger vectors, not all ISAs have constants.
        let has_zero = ty.is_int() || ty.is_float() || (ty.is_vector() && ty.bits() == 128);
        let explicit =
            self.func.dfg.insts[inst].memflags().and_then(|flags| self.func.dfg.mem_flags[flags].explicit_endianness());
        let in_order = ty.bytes() == 1 || explicit.is_none_or(|order| order == self.native);
        (has_zero && in_order).then_some(ty)
    }

    /// Records that `inst` uses `value` in a way that is not followed.
    fn escape(&mut self, inst: Inst, value: Value) {
        let Some(place) = self.places[value] else { return };
        if fault!(IgnoredEscape) && self.func.dfg.insts[inst].opcode() == Opcode::Iadd {
            return;
        }
        self.block(place.slot, Obstacle::Escapes(inst));
    }

    fn block(&mut self, slot: StackSlot, obstacle: Obstacle) {
        self.uses[slot].obstacle.get_or_insert(obstacle);
    }
}

/// The slots that a collector or a debugger may look at, as `inst` says.
pub(in crate::analysis) fn observed_slots(func: &Function, inst: Inst) -> impl Iterator<Item = StackSlot> {
    let entries = func.dfg.user_stack_map_entries(inst).into_iter().flatten();
    let tags = func.debug_tags.get(inst).iter().filter_map(|tag| match *tag {
        DebugTag::StackSlot(slot) => Some(slot),
        _ => None,
    });
    entries.map(|entry| entry.slot).chain(tags)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::context;
    use cranelift_codegen::ir::types;

    fn uses(text: &str) -> (Function, SlotUse) {
        let ctx = context(text);
        let uses = SlotUses::new(&ctx.func, &ctx.domtree, Endianness::Little);
        let slot = ctx.func.sized_stack_slots.keys().next().expect("ss0");
        let found = uses.of(slot).clone();
        (ctx.func, found)
    }

    #[test]
    fn addresses_are_followed_through_sums() {
        let (_, found) = uses(
            "function %f(i64) -> i64 {
                ss0 = explicit_slot 32
            block0(v0: i64):
                v1 = stack_addr.i64 ss0+4
                v2 = iconst.i64 12
                v3 = iadd v2, v1
                store v0, v3-8
                v4 = iconst.i64 -8
                v5 = isub v3, v4
                v6 = load.i64 v5
                v7 = iadd v5, v4
                istore8 v0, v7
                return v6
            }",
        );
        assert_eq!(found.obstacle, None);
        let starts: Vec<_> = found.accesses.iter().map(|access| (access.start, access.ty)).collect();
        assert_eq!(starts, [(8, types::I64), (24, types::I64), (16, types::I8)]);
        assert_eq!(found.addresses.len(), 4);
    }

    #[test]
    fn the_other_byte_order_is_not_followed() {
        let obstacle = |access: &str| {
            let (_, found) = uses(&format!(
                "function %f(i64) {{
                    ss0 = explicit_slot 8
                block0(v0: i64):
                    v1 = stack_addr.i64 ss0
                    {access} v0, v1
                    return
                }}"
            ));
            found.obstacle
        };
        assert!(matches!(obstacle("store big"), Some(Obstacle::Unsupported(_))));
        assert!(matches!(obstacle("istore16 big"), Some(Obstacle::Unsupported(_))));
        assert_eq!(obstacle("istore8 big"), None, "a byte has no order");
        assert_eq!(obstacle("store little"), None);
    }

    #[test]
    fn parts_are_as_small_as_possible() {
        let (func, found) = uses(
            "function %f(i64, f32) {
                ss0 = explicit_slot 32
            block0(v0: i64, v1: f32):
                v2 = stack_addr.i64 ss0
                store v0, v2+8
                store v1, v2+20
                store v0, v2
                store v0, v2+16
                istore32 v0, v2+24
                store v0, v2+8
                return
            }",
        );
        let parts = found.parts();
        let sizes: Vec<_> = parts.iter().map(|part| (part.accesses[0].start, part.accesses.len())).collect();
        assert_eq!(sizes, [(0, 1), (8, 2), (16, 2), (24, 1)]);
        let clashes: Vec<_> = parts.iter().filter_map(|part| part.clash).collect();
        let [[wide, narrow]] = clashes[..] else { panic!("two accesses clash") };
        assert_eq!(func.dfg.display_inst(wide).to_string(), "store.i64 v0, v2+16");
        assert_eq!(func.dfg.display_inst(narrow).to_string(), "store.f32 v1, v2+20");
    }
}
