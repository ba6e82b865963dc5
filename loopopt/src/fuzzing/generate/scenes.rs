//! Scenes: nests of loops of several blocks that proofs went wrong with. A program is made around one of them, in loops and beside
//! other statements as they come.
//!
//! After the memory image there are [`STAGE`](super::memory::STAGE) bytes that only scenes access.

use super::features::Feature;
use super::memory::{IMAGE, STAGE};
use super::outline::{Draft, End, Successor};
use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::ir::{
    AbiParam, AliasRegion, AliasRegionData, Block, BlockArg, ExtFuncData, ExternalName, FuncRef, InstBuilder,
    MemFlagsData, Signature, StackSlot, StackSlotData, StackSlotKind, Value, types,
};
use cranelift_codegen::isa::CallConv;
use std::collections::HashSet;

/// Where what is loaded is put together.
const SUM: i32 = IMAGE as i32 + STAGE as i32 - 24;

impl Draft<'_, '_, '_> {
    /// A scene. Gives the block after it, if one of its paths continues.
    pub(super) fn scene(&mut self, at: Block, scene: Feature) -> Option<Block> {
        let work = self.work;
        // They run for some iterations, in two loops.
        self.work /= 32;
        let was_bare = std::mem::replace(&mut self.is_bare, self.random.chance(60));
        let end = match scene {
            Feature::MidExits => self.mid_exit(at),
            Feature::Chosen => self.chosen(at),
            Feature::Countdowns => self.countdowns(at),
            Feature::Variants => self.variants(at),
            Feature::Beyond => self.beyond(at),
            Feature::Stencils => self.stencil(at),
            Feature::ShortIfs => self.short_ifs(at),
            Feature::Exchanges => self.exchange(at),
            Feature::Objects => self.object(at),
            Feature::Links => self.links(at),
            _ => self.twins(at),
        };
        (self.work, self.is_bare) = (work, was_bare);
        end
    }

    /// A secret number below a power of two that the arguments say.
    pub(super) fn small_number(&mut self, at: Block, limit: i64) -> Value {
        let param = self.random.pick(&self.params);
        let param = self.resized(at, param, types::I64);
        let shift = self.random.pick(&[0, 0, 3]);
        let shifted = self.pos.ins().ushr_imm_u(param, shift);
        let number = self.pos.ins().band_imm_u(shifted, limit - 1);
        self.outline.private.extend([shifted, number]);
        number
    }

    /// An address, so many bytes from the start of the memory image and some elements of so many bytes.
    pub(super) fn element(&mut self, at: Block, start: i64, index: Value, size: i64) -> Value {
        let image = self.image();
        self.pos.goto_bottom(at);
        let distance = self.pos.ins().imul_imm_s(index, size);
        let base = self.pos.ins().iadd_imm_s(image, start);
        let address = self.pos.ins().iadd(base, distance);
        self.outline.private.extend([distance, base, address]);
        address
    }

    /// Flags of accesses that never trap, to this part of the image.
    pub(super) fn trusted(&self, part: usize) -> MemFlagsData {
        MemFlagsData::trusted().with_alias_region(self.outline.regions[part])
    }

    /// Lets a number of 64 bits make a difference.
    pub(super) fn absorb(&mut self, at: Block, value: Value) {
        let image = self.image();
        let flags = self.stage_flags(10);
        self.pos.goto_bottom(at);
        let old = self.pos.ins().load(types::I64, flags, image, SUM);
        let times = self.pos.ins().imul_imm_s(old, 3);
        let new = self.pos.ins().iadd(times, value);
        self.pos.ins().store(flags, new, image, SUM);
        self.outline.private.extend([old, times, new]);
    }

    /// Flags of accesses to something after the image, which is in a region of this number if the program has regions.
    pub(super) fn stage_flags(&mut self, user_id: u32) -> MemFlagsData {
        let region = self.features().has(Feature::Regions).then(|| self.region_of_its_own(user_id));
        MemFlagsData::trusted().with_alias_region(region)
    }

    /// The alias region of this number, which is none of those of the image.
    pub(super) fn region_of_its_own(&mut self, user_id: u32) -> AliasRegion {
        self.pos.func.dfg.alias_regions.insert(AliasRegionData { user_id, description: "".into() })
    }

    /// A slot of so many bytes, each of which is zero.
    pub(super) fn zeroed_slot(&mut self, at: Block, size: u32) -> (StackSlot, Value) {
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, size, 3);
        let slot = self.pos.func.create_sized_stack_slot(data);
        self.pos.goto_bottom(at);
        let address = self.pos.ins().stack_addr(types::I64, slot, 0);
        let zero = self.pos.ins().iconst(types::I64, 0);
        for offset in (0..size as i32).step_by(8) {
            self.pos.ins().store(MemFlagsData::trusted(), zero, address, offset);
        }
        self.outline.private.extend([address, zero]);
        (slot, address)
    }

    /// A host function that two numbers are passed to and that gives one.
    pub(super) fn host_named(&mut self, name: &str) -> FuncRef {
        let name = ExternalName::testcase(name);
        let known = self.pos.func.dfg.ext_funcs.iter().find(|(_, data)| data.name == name).map(|(known, _)| known);
        known.unwrap_or_else(|| {
            let mut signature = Signature::new(CallConv::SystemV);
            signature.params.extend([AbiParam::new(types::I64); 2]);
            signature.returns.push(AbiParam::new(types::I64));
            let signature = self.pos.func.import_signature(signature);
            self.pos.func.import_function(ExtFuncData { name, signature, colocated: false, patchable: false })
        })
    }

    /// A few statements. If none of their paths continues, nothing comes after them.
    pub(super) fn some(&mut self, at: Block, percent: usize) -> Option<Block> {
        if self.random.chance(percent) { self.region(at, 1) } else { Some(at) }
    }

    /// Whether control may come from one block to another by what is drafted.
    pub(super) fn reaches(&self, from: Block, to: Block) -> bool {
        let (mut open, mut seen) = (vec![from], HashSet::new());
        while let Some(block) = open.pop() {
            if block == to {
                return true;
            }
            if seen.insert(block) {
                let successors = self.outline.ends.get(&block).map_or(&[][..], End::successors);
                open.extend(successors.iter().map(|successor| successor.block));
            }
        }
        false
    }

    /// Gives the header of a loop another parameter, with this first value. `at` is where the loop is entered.
    pub(super) fn carry(&mut self, at: Block, header: Block, first: Value) -> Value {
        let ty = self.pos.func.dfg.value_type(first);
        let param = self.pos.func.dfg.append_block_param(header, ty);
        self.pass(at, header, first);
        param
    }

    /// Passes another argument on the edges from a block that ends to another one.
    pub(super) fn pass(&mut self, from: Block, to: Block, value: Value) {
        let add = |successor: &mut Successor| {
            if successor.block == to {
                successor.args.push(Some(BlockArg::Value(value)));
            }
        };
        match self.outline.ends.get_mut(&from) {
            Some(End::Jump(successor)) => add(successor),
            Some(End::Branch(_, successors)) => successors.iter_mut().for_each(add),
            _ => {}
        }
    }
}
