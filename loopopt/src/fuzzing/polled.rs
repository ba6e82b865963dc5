//! Programs that are interrupted: each loop asks for a flag, for fuel, or for both, as Wasmtime's front end lets them.
//!
//! The flag is a word on the stack whose address a host function knows, in a region that others write. Nobody does while a test runs but the rare code
//! of the polls, which sets and clears it: a flag that is set is found as often as before. In one program of five, every other loop asks for a second flag; in one function of four, loops take fuel before they ask for it; in one of three, it counts down. What is left of the fuel is passed to a host function at each
//! return. In one loop of four, an iteration first stores what the loop carries, and the rare code shows it to a host function: so do references that a garbage
//! collector looks for.

use super::addition::{Draws, import_ask, tell_at_returns};
use crate::analysis::cfg::loops::LoopForest;
use crate::{Embedder, Writers};
use cranelift_codegen::Context;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AliasRegion, AliasRegionData, Block, BlockArg, FuncRef, Function, InstBuilder, MemFlagsData, StackSlot,
    StackSlotData, StackSlotKind, Type, Value, types,
};

/// The number of the region of flags.
const FLAGS: u32 = 0xF1A6;

/// The number of the region of what iterations store before they ask.
const KEPT: u32 = 0xF1A7;

/// Where that is, in bytes after the first flag.
const KEPT_OFFSET: i32 = 16;

/// An embedder who says how late a flag may be seen.
#[derive(Debug)]
pub(super) struct Interrupting {
    pub(super) latency: u32,
}

impl Embedder for Interrupting {
    fn writers(&self, region: &AliasRegionData) -> Writers {
        if region.user_id == FLAGS { Writers::Others } else { Writers::Any }
    }

    fn poll_latency(&self) -> u32 {
        self.latency
    }
}

/// What a function is interrupted by.
struct Interrupts<'a> {
    func: &'a mut Function,
    draws: Draws,
    flag: Option<(StackSlot, AliasRegion)>,
    /// Where the next loop finds its flag, in bytes after the first.
    offset: i32,
    fuel: Option<StackSlot>,
    /// What a loop takes of it before it asks.
    taken_first: u64,
    /// Whether it counts down.
    counts_down: bool,
    /// Where the next loop keeps what it carries, in bytes after the first flag, and of which type that is, if it does.
    kept_offset: i32,
    kept: Option<Type>,
    ask: FuncRef,
}

/// Lets each loop of `func` ask, or only those that are in no other one. Which for what is up to `seed`.
pub(super) fn interrupt(func: &mut Function, seed: u64, outermost_only: bool) {
    let mut context = Context::for_function(func.clone());
    context.flowgraph();
    let forest = LoopForest::new(&context.func, &context.cfg, &context.domtree);
    let asks = |lp: &_| !outermost_only || forest.data(*lp).parent.is_none();
    let headers: Vec<Block> = forest.loops().filter(asks).map(|lp| forest.data(lp).header).collect();
    let ask = import_ask(func);
    let mut slot = || func.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, 8, 3));
    let kind = seed % 4;
    let fuel = (kind != 0).then(&mut slot);
    let flag_slot = (kind != 1).then(&mut slot);
    let has_second_flag = seed % 5 == 4;
    if let Some(slot) = flag_slot {
        func.sized_stack_slots[slot].size = KEPT_OFFSET as u32 + 8 * headers.len() as u32;
    }
    let flag = flag_slot.map(|slot| {
        let data = AliasRegionData { user_id: FLAGS, description: "flags".into() };
        (slot, func.dfg.alias_regions.insert(data))
    });
    // In one function of four.
    let taken_first = if seed >> 8 & 3 == 3 { 1 + (seed >> 10 & 7) } else { 0 };
    let counts_down = (seed >> 16) % 3 == 2;
    let (draws, offset, kept_offset, kept) = (Draws::new(seed), 0, 0, None);
    let mut interrupts =
        Interrupts { func, draws, flag, offset, fuel, taken_first, counts_down, kept_offset, kept, ask };
    interrupts.spend();
    for (index, header) in headers.into_iter().enumerate() {
        // One loop and the next do not ask for the same.
        interrupts.offset = if has_second_flag && index % 2 == 1 { 8 } else { 0 };
        interrupts.kept_offset = KEPT_OFFSET + 8 * index as i32;
        interrupts.ask_at(header);
    }
    interrupts.begin(has_second_flag.then_some(seed >> 20 & 1));
}

impl Interrupts<'_> {
    fn flags(&self) -> MemFlagsData {
        let region = self.flag.map(|(_, region)| region);
        MemFlagsData::new().with_notrap().with_alias_region(region)
    }

    /// A number below `limit` that depends on the seed.
    fn draw(&mut self, limit: u64) -> u64 {
        self.draws.draw(limit)
    }

    /// What is added to take so much fuel.
    fn taken(&self, cost: u64) -> i64 {
        if self.counts_down { -cost.cast_signed() } else { cost.cast_signed() }
    }

    /// Sets flags and fuel where the function begins: the second flag, if there is one, to what is said.
    fn begin(&mut self, second: Option<u64>) {
        let entry = self.func.layout.entry_block().expect("a function has a block");
        let (set, left, counts_down) = (self.draw(8) == 0, self.draw(1000) as i64, self.counts_down);
        let flags = self.flags();
        let mut pos = FuncCursor::new(self.func).at_first_insertion_point(entry);
        if let Some((slot, _)) = self.flag {
            let address = pos.ins().stack_addr(types::I64, slot, 0);
            let value = pos.ins().iconst(types::I64, i64::from(set));
            pos.ins().store(flags, value, address, 0);
            pos.ins().call(self.ask, &[address, value]);
            if let Some(second) = second {
                let value = pos.ins().iconst(types::I64, second.cast_signed());
                pos.ins().store(flags, value, address, 8);
            }
        }
        if let Some(slot) = self.fuel {
            let value = pos.ins().iconst(types::I64, if counts_down { left - 7 } else { 7 - left });
            pos.ins().stack_store(types::I64, value, slot, 0);
        }
    }

    /// Lets blocks take fuel, and says at each return what is left.
    fn spend(&mut self) {
        let Some(slot) = self.fuel else { return };
        let entry = self.func.layout.entry_block().expect("a function has a block");
        let params = self.func.dfg.block_params(entry).iter().copied();
        let number = params.into_iter().find(|&param| self.func.dfg.value_type(param) == types::I64);
        for block in self.func.layout.blocks().collect::<Vec<_>>() {
            let cost = self.draw(12);
            let cost = self.taken(cost);
            let other = number.filter(|_| self.draw(32) == 0);
            if cost != 0 && block != entry {
                let mut pos = FuncCursor::new(self.func).at_first_insertion_point(block);
                let left = pos.ins().stack_load(types::I64, types::I64, slot, 0);
                let left = add(&mut pos, left, cost);
                // Now and then the fuel is set to another number, so that what is left after the block is no sum of what was left before.
                pos.ins().stack_store(types::I64, other.unwrap_or(left), slot, 0);
            }
        }
        tell_at_returns(self.func, slot, self.ask);
    }

    /// Lets the loop of `header` ask where an iteration starts.
    fn ask_at(&mut self, header: Block) {
        let Some(first) = self.func.layout.first_inst(header) else { return };
        if self.func.layout.entry_block() == Some(header) {
            return;
        }
        let rest = self.func.dfg.make_block();
        self.func.layout.split_block(rest, first);
        self.kept = if self.draw(4) == 0 { self.keep_carried(header) } else { None };
        let mut from = header;
        let flag_comes_first = self.draw(2) == 0;
        for is_flag in [flag_comes_first, !flag_comes_first] {
            from = if is_flag { self.ask_flag(from, rest) } else { self.ask_fuel(from, rest) };
        }
        FuncCursor::new(self.func).at_bottom(from).ins().jump(rest, &[]);
    }

    /// Stores a number that the loop of `header` carries where an iteration starts. Returns its type.
    fn keep_carried(&mut self, header: Block) -> Option<Type> {
        let (slot, _) = self.flag?;
        let is_number = |&param: &Value| matches!(self.func.dfg.value_type(param), types::I32 | types::I64);
        let params: Vec<_> = self.func.dfg.block_params(header).iter().copied().filter(is_number).collect();
        let param = *params.get(self.draw(4) as usize % params.len().max(1))?;
        let (offset, flags) = (self.kept_offset, self.kept_flags());
        let mut pos = FuncCursor::new(self.func).at_bottom(header);
        let address = pos.ins().stack_addr(types::I64, slot, offset);
        pos.ins().store(flags, param, address, 0);
        Some(self.func.dfg.value_type(param))
    }

    fn kept_flags(&mut self) -> MemFlagsData {
        let data = AliasRegionData { user_id: KEPT, description: "kept".into() };
        let region = self.func.dfg.alias_regions.insert(data);
        MemFlagsData::trusted().with_alias_region(Some(region))
    }

    /// What the iteration has kept, loaded at the end of `block`, or `otherwise` if it has not.
    fn kept(&mut self, block: Block, otherwise: Value) -> Value {
        let (Some(ty), Some((slot, _))) = (self.kept, self.flag) else { return otherwise };
        let (offset, flags) = (self.kept_offset, self.kept_flags());
        let mut pos = FuncCursor::new(self.func).at_bottom(block);
        let address = pos.ins().stack_addr(types::I64, slot, offset);
        let kept = pos.ins().load(ty, flags, address, 0);
        if ty == types::I64 { kept } else { pos.ins().uextend(types::I64, kept) }
    }

    /// Asks at the end of `from`, in blocks before `rest`, whether there is fuel. Returns the block in which to go on.
    fn ask_fuel(&mut self, from: Block, rest: Block) -> Block {
        let Some(slot) = self.fuel else { return from };
        let [next, rare] = [0, 1].map(|_| self.block_before(rest));
        let (cond, least) = self.out_of_fuel();
        let taken_first = self.taken(self.taken_first);
        let mut pos = FuncCursor::new(self.func).at_bottom(from);
        let mut left = pos.ins().stack_load(types::I64, types::I64, slot, 0);
        if taken_first != 0 {
            left = add(&mut pos, left, taken_first);
            pos.ins().stack_store(types::I64, left, slot, 0);
        }
        let least = pos.ins().iconst(types::I64, least);
        let is_out = pos.ins().icmp(cond, left, least);
        pos.ins().brif(is_out, rare, &[], next, &[]);
        let more = 100 + self.draw(400);
        let more = -self.taken(more);
        let sets_flag = self.flag.filter(|_| self.draw(4) == 0);
        let flags = self.flags();
        let mut pos = FuncCursor::new(self.func).at_bottom(rare);
        let more = pos.ins().iconst(types::I64, more);
        let call = pos.ins().call(self.ask, &[left, more]);
        let left = pos.func.dfg.first_result(call);
        pos.ins().stack_store(types::I64, left, slot, 0);
        if let Some((flag, _)) = sets_flag {
            let address = pos.ins().stack_addr(types::I64, flag, 0);
            pos.ins().store(flags, more, address, 0);
        }
        pos.ins().jump(next, &[]);
        next
    }

    /// When the next loop is out of fuel.
    fn out_of_fuel(&mut self) -> (IntCC, i64) {
        if !self.counts_down {
            return (IntCC::SignedGreaterThanOrEqual, 0);
        }
        match self.draw(4) {
            0 | 1 => (IntCC::SignedLessThan, 0),
            2 => (IntCC::SignedLessThanOrEqual, 0),
            _ => (IntCC::UnsignedLessThan, 1 + self.draw(20).cast_signed()),
        }
    }

    /// The same for the flag.
    fn ask_flag(&mut self, from: Block, rest: Block) -> Block {
        let Some((slot, _)) = self.flag else { return from };
        let flags = self.flags();
        let [next, rare] = [0, 1].map(|_| self.block_before(rest));
        let is_two_stage = self.draw(2) == 0;
        let resets = self.draw(2) == 0;
        self.func.layout.set_cold(rare);
        let mut pos = FuncCursor::new(self.func).at_bottom(from);
        let address = pos.ins().stack_addr(types::I64, slot, self.offset);
        let flag = pos.ins().load(types::I64, flags, address, 0);
        pos.ins().brif(flag, rare, &[], next, &[] as &[BlockArg]);
        let call = if is_two_stage { self.block_before(rest) } else { rare };
        self.func.layout.set_cold(call);
        if is_two_stage {
            let mut pos = FuncCursor::new(self.func).at_bottom(rare);
            let again = pos.ins().load(types::I64, flags, address, 0);
            pos.ins().brif(again, call, &[], next, &[] as &[BlockArg]);
        }
        let told = self.kept(call, flag);
        let mut pos = FuncCursor::new(self.func).at_bottom(call);
        pos.ins().call(self.ask, &[flag, told]);
        if resets {
            let zero = pos.ins().iconst(types::I64, 0);
            pos.ins().store(flags, zero, address, 0);
        }
        pos.ins().jump(next, &[]);
        next
    }

    fn block_before(&mut self, block: Block) -> Block {
        let new = self.func.dfg.make_block();
        self.func.layout.insert_block(new, block);
        new
    }
}

/// The sum of both. An even number below zero is subtracted with the other sign.
fn add(pos: &mut FuncCursor<'_>, number: Value, added: i64) -> Value {
    let subtracts = added < 0 && added % 2 == 0;
    let constant = pos.ins().iconst(types::I64, if subtracts { -added } else { added });
    if subtracts { pos.ins().isub(number, constant) } else { pos.ins().iadd(number, constant) }
}
