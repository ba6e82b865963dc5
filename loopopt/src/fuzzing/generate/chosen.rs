//! Loads at addresses that are chosen. An argument is the address of the memory image, or null; where it is null, another address is
//! chosen. The loads are flagged `can_move`: they can be done wherever the address is there that is chosen in the end.
//!
//! Besides, loads at an address that is selected from two that were loaded just before.

use super::features::Shape;
use super::memory::{LOW, SLOT_REGION};
use super::outline::{Draft, End, On, Successor};
use super::pointers::Small;
use crate::edit::materialize::pin::pin_all;
use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, Inst, InstBuilder, Type, Value, types};

/// A loop that may be in another one.
pub(super) struct SmallNest {
    outer: Option<Small>,
    pub(super) inner: Small,
}

impl Draft<'_, '_, '_> {
    /// A loop with such a load. Gives the block after it, if a path continues.
    pub(super) fn chosen(&mut self, at: Block) -> Option<Block> {
        let which = self.random.below(6);
        if which == 5 {
            return self.selected_of_loaded(at);
        }
        self.note(Shape::ChosenLoad);
        let [pointer, other] = self.two_addresses(at);
        if which == 4 {
            return self.first_chosen(at, pointer, other);
        }
        let nest = self.small_nest(at);
        let lp = &nest.inner;
        let latch = match which {
            0 | 1 => self.selected(lp.header, pointer, other),
            2 => self.joined(lp.header, pointer, other),
            _ => self.in_a_variable(lp.header, pointer, other),
        };
        self.end_small_nest(latch, &nest)
    }

    /// The argument that may be null, and an address in the part of the image that is never written.
    fn two_addresses(&mut self, at: Block) -> [Value; 2] {
        let image = self.image();
        let entry = self.pos.func.layout.entry_block().expect("there is a block");
        let pointer = *self.pos.func.dfg.block_params(entry).last().expect("it has the argument that may be null");
        let start = 8 * self.random.below(4) as i64;
        self.pos.goto_bottom(at);
        let other = self.pos.ins().iadd_imm_s(image, start);
        self.outline.private.push(other);
        [pointer, other]
    }

    /// Loads at a chosen address, with an offset or a sum. Gives the load.
    fn load_chosen(&mut self, at: Block, address: Value) -> Inst {
        let mut flags = self.trusted(0).with_can_move();
        if self.random.chance(60) {
            flags = flags.with_readonly();
        }
        let offset = 8 * self.random.below(4) as i32;
        self.pos.goto_bottom(at);
        let (address, offset) = if self.random.chance(30) {
            let sum = self.pos.ins().iadd_imm_s(address, i64::from(offset));
            self.outline.private.push(sum);
            (sum, 0)
        } else {
            (address, offset)
        };
        let ty = self.random.pick(&[types::I64, types::I64, types::I32, types::I8]);
        let loaded = self.pos.ins().load(ty, flags, address, offset);
        let load = self.pos.func.dfg.value_def(loaded).inst().expect("it is loaded");
        let loaded = if ty == types::I64 { loaded } else { self.pos.ins().uextend(types::I64, loaded) };
        self.absorb(at, loaded);
        load
    }

    /// Two arms between which the address decides, each with some statements. Gives the block in which they meet, where an address may be passed, and whether
    /// both reach it.
    fn arms(&mut self, at: Block, on: Value, passed: Option<[Value; 2]>) -> (Block, bool) {
        let [yes, no, meet] = [(); 3].map(|()| self.block());
        if self.random.chance(40) {
            self.pos.func.layout.set_cold(no);
        }
        self.finish(at, End::Branch(On::Just(on), [Successor::to(yes), Successor::to(no)]));
        let mut meeting = 0;
        for (index, block) in [yes, no].into_iter().enumerate() {
            if let Some(end) = self.some(block, 25) {
                meeting += usize::from(self.reaches(block, end));
                let args = passed.map(|values| Some(BlockArg::Value(values[index])));
                self.finish(end, End::Jump(Successor { block: meet, args: args.into_iter().collect() }));
            }
        }
        (meet, meeting == 2)
    }

    /// Selected, and decided by a branch that may get a loop for each of its arms.
    fn selected(&mut self, at: Block, pointer: Value, other: Value) -> Option<Block> {
        self.pos.goto_bottom(at);
        let is_there = self.pos.ins().icmp_imm_u(IntCC::NotEqual, pointer, 0);
        let condition = if self.random.chance(50) { pointer } else { is_there };
        let address = self.pos.ins().select(condition, pointer, other);
        self.outline.private.push(address);
        if self.random.chance(50) {
            self.load_chosen(at, address);
            return Some(at);
        }
        let is_early = self.random.chance(50);
        if is_early {
            self.load_chosen(at, address);
        }
        let (meet, _) = self.arms(at, condition, None);
        if !is_early {
            self.load_chosen(meet, address);
        }
        Some(meet)
    }

    /// Passed by the arms of a branch.
    fn joined(&mut self, at: Block, pointer: Value, other: Value) -> Option<Block> {
        self.pos.goto_bottom(at);
        if self.random.chance(20) {
            let code = self.random.below(4) as u8 + 1;
            let code = cranelift_codegen::ir::TrapCode::unwrap_user(code);
            self.pos.ins().trapz(pointer, code);
        }
        let (meet, is_chosen) = self.arms(at, pointer, Some([pointer, other]));
        let address = self.first_param(meet);
        // If only one arm comes here, Cranelift replaces the parameter by its block argument: that may be null, and is there everywhere.
        if is_chosen {
            self.load_chosen(meet, address);
        }
        Some(meet)
    }

    fn first_param(&mut self, meet: Block) -> Value {
        let address = self.pos.func.dfg.append_block_param(meet, types::I64);
        self.outline.private.push(address);
        address
    }

    /// In a variable that both arms write.
    fn in_a_variable(&mut self, at: Block, pointer: Value, other: Value) -> Option<Block> {
        let flags = self.trusted(SLOT_REGION);
        let (_, variable) = self.zeroed_slot(at, 8);
        let [yes, no, meet] = [(); 3].map(|()| self.block());
        self.finish(at, End::Branch(On::Just(pointer), [Successor::to(yes), Successor::to(no)]));
        for (block, address) in [(yes, pointer), (no, other)] {
            self.pos.goto_bottom(block);
            self.pos.ins().store(flags, address, variable, 0);
            self.finish(block, End::Jump(Successor::to(meet)));
        }
        let meet = self.some(meet, 25)?;
        self.pos.goto_bottom(meet);
        let address = self.pos.ins().load(types::I64, flags, variable, 0);
        self.outline.private.push(address);
        self.load_chosen(meet, address);
        Some(meet)
    }

    /// One address in the first iteration, and the other in all others. The loop runs if the first is there.
    fn first_chosen(&mut self, at: Block, pointer: Value, other: Value) -> Option<Block> {
        let [before, behind] = [(); 2].map(|()| self.block());
        self.finish(at, End::Branch(On::Just(pointer), [Successor::to(before), Successor::to(behind)]));
        let lp = self.small_loop(before, 7);
        let address = self.carry(before, lp.header, pointer);
        self.outline.private.push(address);
        let load = self.load_chosen(lp.header, address);
        let latch = self.some(lp.header, 25);
        // If there is no second iteration, it is the first address for Cranelift, which is there before the branch.
        if !latch.is_some_and(|latch| self.reaches(lp.header, latch)) {
            pin_all(self.pos.func, [load]);
        }
        if let Some(exit) = self.end_nest(latch, &lp) {
            self.pass(latch.unwrap_or(lp.header), lp.header, other);
            self.finish(exit, End::Jump(Successor::to(behind)));
        }
        Some(behind)
    }

    /// A loop for a few iterations, maybe in another one.
    pub(super) fn small_nest(&mut self, at: Block) -> SmallNest {
        let outer = if self.random.chance(40) { Some(self.small_loop(at, 3)) } else { None };
        let inner = self.small_loop(outer.as_ref().map_or(at, |outer| outer.header), 7);
        SmallNest { outer, inner }
    }

    /// The end of these loops.
    pub(super) fn end_small_nest(&mut self, latch: Option<Block>, nest: &SmallNest) -> Option<Block> {
        let exit = self.end_nest(latch, &nest.inner);
        self.end_around(exit, nest)
    }

    /// The end of the outer loop, if there is one. `exit` is after the inner one.
    pub(super) fn end_around(&mut self, exit: Option<Block>, nest: &SmallNest) -> Option<Block> {
        match &nest.outer {
            Some(outer) => self.end_nest(exit, outer),
            None => exit,
        }
    }

    /// The end of a loop whose body may not reach it.
    pub(super) fn end_nest(&mut self, latch: Option<Block>, lp: &Small) -> Option<Block> {
        match latch {
            Some(latch) => Some(self.end_small_loop(latch, lp)),
            None => {
                self.frames.pop();
                None
            }
        }
    }

    /// The greater of two elements, or the smaller one, loaded once more.
    fn selected_of_loaded(&mut self, at: Block) -> Option<Block> {
        self.note(Shape::SelectedLoad);
        let numbers = [(); 2].map(|()| self.small_number(at, 8));
        let lp = self.small_loop(at, 7);
        let flags = self.trusted(LOW.index);
        let ty: Type = self.random.pick(&[types::I64, types::I64, types::I32]);
        let size = i64::from(ty.bytes());
        let places = numbers.map(|number| {
            let moves = self.random.chance(50);
            self.pos.goto_bottom(lp.header);
            let index = if moves { self.pos.ins().iadd(number, lp.counter) } else { number };
            self.outline.private.push(index);
            self.element(lp.header, LOW.start.into(), index, size)
        });
        let loaded = places.map(|place| self.pos.ins().load(ty, flags, place, 0));
        let greater = self.pos.ins().icmp(IntCC::UnsignedGreaterThan, loaded[0], loaded[1]);
        if self.random.chance(50) {
            let place = self.random.pick(&places);
            let more = self.pos.ins().iadd_imm_s(loaded[0], 5);
            self.pos.ins().store(flags, more, place, 0);
        }
        let address = self.pos.ins().select(greater, places[0], places[1]);
        self.outline.private.push(address);
        let again = self.pos.ins().load(ty, flags, address, 0);
        let again = if ty == types::I64 { again } else { self.pos.ins().uextend(types::I64, again) };
        self.absorb(lp.header, again);
        let latch = self.some(lp.header, 25);
        self.end_nest(latch, &lp)
    }
}
