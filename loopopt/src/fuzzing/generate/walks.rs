//! Walks: accesses at an index that counts, each after a check of the index.
//!
//! A loop may have an array that it walks over. The index is a multiple of a counter, which can go up or down and have any
//! type, or `i * n + j` of two loops. How long the array is, is chosen so that a check fails in a certain iteration: in the
//! first, the second, the last, or in none; it is a constant, loaded, or what the loop itself tests its counter against. No
//! length is larger than there is room for, so what a check lets pass is in range whatever the values.

use super::features::{Feature, Shape};
use super::guarded_code;
use super::memory::{HIGH, LOW, Part};
use super::outline::{Draft, End, On, Successor};
use super::plan::{Plan, Progress, Unknown};
use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Opcode, TrapCode, Type, Value, types};

/// An array that a loop walks over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    /// The parameter that counts.
    counter: Value,
    /// The index is this many times the counter, and so much more.
    times: i128,
    more: i128,
    /// After how many of such elements, for each unit of the index of that frame, the walk begins.
    row: Option<(usize, Value)>,
    /// The number of elements, of type `i64`.
    len: Value,
    /// The same, if it is a constant.
    known_len: Option<i128>,
    /// What there is to note of the length, besides.
    found: Option<Shape>,
    /// Whether each access reloads the number, and how many there are at most.
    reloads: Option<i128>,
    part: Part,
    /// The size of an element, as a power of two.
    shift: u32,
}

/// What an index does in the iterations of a loop.
struct Steps {
    first: i128,
    len: i128,
}

/// What becomes of a check that fails.
#[derive(Clone, Copy, Debug)]
enum Form {
    Trap,
    Branch,
    Call,
    Guard,
    Leave,
    Rejoin,
}

const FORMS: [(usize, Form); 6] =
    [(5, Form::Trap), (3, Form::Branch), (3, Form::Call), (4, Form::Guard), (1, Form::Leave), (3, Form::Rejoin)];

impl Steps {
    /// The index grows by `stride` in each iteration, and is outside of the array in the iteration `failing`, but not before.
    fn failing_at(failing: i128, stride: i128, first: i128, more: i128) -> Self {
        if stride >= 0 {
            return Self { first, len: first + stride * failing };
        }
        match failing {
            0 => Self { first, len: first },
            _ => {
                let first = -stride * (failing - 1);
                Self { first, len: first + 1 + more }
            }
        }
    }
}

impl Draft<'_, '_, '_> {
    /// An array for a loop that is entered from `at`.
    pub(super) fn walk_over(&mut self, at: Block, plan: &Plan) -> Option<Walk> {
        if !self.features().has(Feature::Checks) || !self.random.chance(85) {
            return None;
        }
        if let Some(unknown) = plan.unknown {
            return Some(self.walk_to_unknown(at, plan, unknown));
        }
        let counting = |index: &usize| self.outline.counters.contains_key(&plan.controls[*index].param);
        let counting: Vec<usize> = (0..plan.controls.len()).filter(counting).collect();
        if counting.is_empty() {
            return None;
        }
        let counter = plan.controls[self.random.pick(&counting)].param;
        let ty = self.pos.func.dfg.value_type(counter);
        (ty != types::I128).then(|| self.walk_by(at, counter, ty))
    }

    /// For a counter whose values are known.
    fn walk_by(&mut self, at: Block, counter: Value, ty: Type) -> Walk {
        let Progress { start, step, count } = self.outline.counters[&counter];
        let times = self.random.weighted(&[(6, 1), (1, 2), (1, 4)]);
        let last = i128::from(count) - 4;
        let failing = match self.random.below(20) {
            0 => 0,
            1 => 1,
            2 => (last - 1).max(0),
            3 => self.random.below(last.max(0) as usize + 1) as i128,
            4..=9 => last + 1 + self.random.below(4) as i128,
            _ => last,
        };
        let (first, spare) = (self.random.pick(&[0, 0, 0, 1, 5]), self.random.pick(&[0, 0, 1, 8]));
        let steps = Steps::failing_at(failing, times * step, first, spare);
        let mut walk = self.array(counter, steps.len.max(steps.first + 1));
        let rows = if self.random.chance(90) { self.rows() } else { None };
        let room = i128::from(walk.part.len >> walk.shift);
        let mut len = steps.len.clamp(0, room);
        if let Some((frame, rows)) = rows {
            walk.row = Some((frame, self.amount(at, types::I64, len)));
            len = (len * rows).min(room);
        }
        (walk.times, walk.more) = (times, super::choices::wrap(steps.first - times * start, ty.bits()));
        if self.features().has(Feature::Memory) && self.random.chance(35) {
            walk.len = self.loaded_len(at, len.max(1));
            walk.found = Some(Shape::LoadedLength);
            walk.reloads = self.random.chance(40).then(|| len.max(1));
        } else {
            walk.len = self.amount(at, types::I64, len);
            walk.known_len = walk.row.is_none().then_some(len);
        }
        walk
    }

    /// For a counter that goes up to a value, or down from it.
    fn walk_to_unknown(&mut self, at: Block, plan: &Plan, unknown: Unknown) -> Walk {
        let counter = plan.controls[unknown.control].param;
        let ty = self.pos.func.dfg.value_type(counter);
        let mut walk = self.array(counter, 16);
        walk.more = super::choices::wrap(unknown.lag - unknown.first, ty.bits());
        self.pos.goto_bottom(at);
        let wide = if ty == types::I64 { unknown.bound } else { self.pos.ins().uextend(types::I64, unknown.bound) };
        if self.random.chance(40)
            && let Some((frame, _)) = self.rows()
        {
            let rows = self.frames[frame].walk.map_or(wide, |outer| outer.len);
            let len = self.pos.ins().imul(wide, rows);
            walk.row = Some((frame, wide));
            walk.len = self.at_most(at, len, i128::from(walk.part.len >> walk.shift));
            return walk;
        }
        if unknown.is_small && self.random.chance(70) {
            walk.found = Some(if unknown.lag > 0 { Shape::LagBound } else { Shape::OwnBound });
            walk.len = wide;
            return walk;
        }
        let other = self.random.pick(&[1, -1, 0, 4]);
        let other = self.pos.ins().iadd_imm_s(wide, other);
        walk.len = self.at_most(at, other, i128::from(walk.part.len >> walk.shift));
        walk
    }

    /// An array of elements of such a size that so many of them fit, if there is one.
    fn array(&mut self, counter: Value, len: i128) -> Walk {
        let part = self.random.pick(&[HIGH, LOW]);
        let mut shift = self.random.pick(&[3, 3, 2, 1, 0]);
        while shift > 0 && len > i128::from(part.len >> shift) {
            shift -= 1;
        }
        Walk {
            counter,
            times: 1,
            more: 0,
            row: None,
            len: counter,
            known_len: None,
            found: None,
            reloads: None,
            part,
            shift,
        }
    }

    /// An enclosing loop of which each iteration can have a row, and how many there are.
    fn rows(&mut self) -> Option<(usize, i128)> {
        let counts = |index: &usize| self.frames[*index].walk.is_some_and(|walk| walk.row.is_none());
        let index = (0..self.frames.len()).rev().find(counts)?;
        Some((index, self.frames[index].walk?.known_len.unwrap_or(4)))
    }

    /// A length that is loaded: at most so large.
    fn loaded_len(&mut self, at: Block, most: i128) -> Value {
        self.pos.goto_bottom(at);
        let memory = self.memory();
        let offset = 8 * self.random.below(8) as i32;
        let part = self.random.pick(&[None, Some(LOW), Some(HIGH)]);
        let flags = MemFlagsData::trusted();
        let (flags, offset) = match part {
            None => (flags.with_readonly().with_can_move().with_alias_region(self.outline.regions[0]), offset),
            Some(part) => (flags.with_alias_region(self.outline.regions[part.index]), offset + part.start as i32),
        };
        let loaded = self.pos.ins().uload8(types::I64, flags, memory, offset);
        // The memory is often zero.
        let more = self.random.pick(&[4, 16, 64, 0]);
        let more = self.pos.ins().iadd_imm_s(loaded, more);
        self.at_most(at, more, most)
    }

    fn at_most(&mut self, at: Block, value: Value, most: i128) -> Value {
        let most = self.constant(at, types::I64, most);
        self.pos.ins().umin(value, most)
    }

    fn memory(&self) -> Value {
        let entry = self.pos.func.layout.entry_block().expect("there is a block");
        self.pos.func.dfg.block_params(entry)[0]
    }

    pub(super) fn note(&mut self, shape: Shape) {
        self.outline.shapes.insert(shape);
    }

    /// An enclosing loop that walks, mostly the innermost.
    fn walking(&mut self) -> Option<usize> {
        let walking: Vec<usize> = (0..self.frames.len()).filter(|&index| self.frames[index].walk.is_some()).collect();
        let last = walking.len().checked_sub(1)?;
        Some(walking[if self.random.chance(75) { last } else { self.random.below(last + 1) }])
    }

    /// Checked accesses of a walk, of which some are to the same element or to neighbours. Gives the block after them.
    pub(super) fn walked(&mut self, at: Block) -> Option<Block> {
        let frame = self.walking()?;
        let mut at = self.checked_access(at, frame, 0);
        for _ in 0..self.random.below(3) {
            let ahead = self.random.pick(&[0, 1, 0, 1, 2, 0, 1, -1]);
            at = self.checked_access(at, frame, ahead);
        }
        Some(at)
    }

    fn checked_access(&mut self, at: Block, frame: usize, ahead: i128) -> Block {
        let walk = self.frames[frame].walk.expect("the loop walks");
        let found = walk.row.map(|_| Shape::RowMajor);
        self.outline.shapes.extend(found.into_iter().chain(walk.found));
        let mut form = self.random.weighted(&FORMS);
        if matches!(form, Form::Call | Form::Rejoin) && !self.features().has(Feature::Hosts) {
            form = Form::Branch;
        }
        // Where an access that may trap is lowered with others, it traps at the place of one of them.
        let has_memory = self.features().has(Feature::Memory);
        if matches!(form, Form::Guard) && (!has_memory || self.features().has(Feature::Marks)) {
            form = Form::Trap;
        }
        let index = self.index_in(at, frame, ahead);
        let index = self.masked(at, index);
        let walk_len = walk.reloads.map_or(walk.len, |most| self.loaded_len(at, most));
        self.pos.goto_bottom(at);
        let ty = self.pos.func.dfg.value_type(index);
        let (checked, len, wide) = if ty != types::I64 && self.random.chance(40) {
            let len = self.pos.ins().ireduce(ty, walk_len);
            (index, len, self.pos.ins().uextend(types::I64, index))
        } else {
            let wide = self.widened(index);
            (wide, walk_len, wide)
        };
        match form {
            Form::Trap => {
                self.note(Shape::CheckTrap);
                self.trap_unless_below(checked, len);
                self.access(&walk, wide, None);
                at
            }
            Form::Guard => {
                self.note(Shape::CheckGuard);
                let outside = self.pos.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, checked, len);
                self.access(&walk, wide, Some(outside));
                at
            }
            _ => {
                let next = self.branch_unless_below(at, form, checked, len);
                self.pos.goto_bottom(next.0);
                self.access(&walk, wide, None);
                if let Some(join) = next.1 {
                    self.finish(next.0, End::Jump(Successor::to(join)));
                }
                next.1.unwrap_or(next.0)
            }
        }
    }

    /// Now and then only some bits of an index, as of a table, or all but the lowest, or those where others are shifted out.
    fn masked(&mut self, at: Block, index: Value) -> Value {
        if !self.random.chance(10) {
            return index;
        }
        let ty = self.pos.func.dfg.value_type(index);
        let (opcode, by) = self.random.pick(&[
            (Opcode::Band, 3),
            (Opcode::Band, 7),
            (Opcode::Band, 63),
            (Opcode::Band, -4),
            (Opcode::Band, -2),
            (Opcode::Ushr, 1),
            (Opcode::Ushr, 3),
            (Opcode::Sshr, 2),
        ]);
        let by = self.constant(at, ty, by);
        let (inst, dfg) = self.pos.ins().Binary(opcode, ty, index, by);
        dfg.first_result(inst)
    }

    /// The index of a walk in this iteration, or so many elements from it.
    fn index_in(&mut self, at: Block, frame: usize, ahead: i128) -> Value {
        let walk = self.frames[frame].walk.expect("the loop walks");
        let ty = self.pos.func.dfg.value_type(walk.counter);
        self.pos.goto_bottom(at);
        let mut index = match walk.times {
            1 => walk.counter,
            times if self.random.chance(50) => self.pos.ins().ishl_imm_u(walk.counter, i64::from(times.ilog2())),
            times => self.pos.ins().imul_imm_s(walk.counter, times as i64),
        };
        let more = super::choices::wrap(walk.more + ahead, ty.bits());
        if more != 0 {
            let more = self.constant(at, ty, more);
            index = self.pos.ins().iadd(index, more);
        }
        let Some((outer, row)) = walk.row else { return index };
        let outer = self.index_in(at, outer, 0);
        let (outer, index) = (self.widened(outer), self.widened(index));
        let start = self.pos.ins().imul(outer, row);
        self.pos.ins().iadd(start, index)
    }

    fn widened(&mut self, index: Value) -> Value {
        if self.pos.func.dfg.value_type(index) == types::I64 {
            return index;
        }
        let opcode = self.random.pick(&[Opcode::Uextend, Opcode::Sextend]);
        let (inst, dfg) = self.pos.ins().Unary(opcode, types::I64, index);
        dfg.first_result(inst)
    }

    fn trap_code(&mut self) -> TrapCode {
        TrapCode::unwrap_user(1 + self.random.below(4) as u8)
    }

    fn trap_unless_below(&mut self, index: Value, len: Value) {
        let code = self.trap_code();
        let trapnz = |draft: &mut Self, condition, a, b| {
            let outside = draft.pos.ins().icmp(condition, a, b);
            draft.pos.ins().trapnz(outside, code);
        };
        match self.random.below(5) {
            0 => {
                let inside = self.pos.ins().icmp(IntCC::UnsignedLessThan, index, len);
                self.pos.ins().trapz(inside, code);
            }
            1 => {
                let ty = self.pos.func.dfg.value_type(index);
                let zero = self.pos.ins().iconst(ty, 0);
                trapnz(self, IntCC::SignedLessThan, index, zero);
                trapnz(self, IntCC::UnsignedGreaterThanOrEqual, index, len);
            }
            2 => trapnz(self, IntCC::UnsignedLessThanOrEqual, len, index),
            _ => trapnz(self, IntCC::UnsignedGreaterThanOrEqual, index, len),
        }
    }

    /// Gives the block in which the index is below the length, and the one in which the paths meet again, if they do.
    fn branch_unless_below(&mut self, at: Block, form: Form, index: Value, len: Value) -> (Block, Option<Block>) {
        let is_inside = self.random.chance(50);
        let condition = if is_inside { IntCC::UnsignedLessThan } else { IntCC::UnsignedGreaterThanOrEqual };
        let condition = self.pos.ins().icmp(condition, index, len);
        let inside = self.block();
        let join = matches!(form, Form::Rejoin).then(|| self.block());
        let failed = match form {
            Form::Leave => self.leave(at),
            _ => Successor::to(self.failure(form, join)),
        };
        let successors = if is_inside { [Successor::to(inside), failed] } else { [failed, Successor::to(inside)] };
        self.finish(at, End::Branch(On::Just(condition), successors));
        (inside, join)
    }

    /// The block of a failed check.
    fn failure(&mut self, form: Form, join: Option<Block>) -> Block {
        let block = self.block();
        if !matches!(form, Form::Branch) {
            self.pos.func.layout.set_cold(block);
            self.outline.calling.insert(block);
        }
        self.note(match form {
            Form::Rejoin => Shape::CheckRejoins,
            Form::Call => Shape::CheckCall,
            _ => Shape::CheckBranch,
        });
        self.finish(block, join.map_or(End::Trap, |join| End::Jump(Successor::to(join))));
        block
    }

    /// An access to the element of this index, at address 0 if it is outside.
    fn access(&mut self, walk: &Walk, index: Value, outside: Option<Value>) {
        if !self.features().has(Feature::Memory) {
            return;
        }
        let memory = self.memory();
        let offset = match walk.shift {
            0 => index,
            shift => self.pos.ins().ishl_imm_u(index, i64::from(shift)),
        };
        let mut address = self.pos.ins().iadd(memory, offset);
        self.outline.private.push(address);
        let region = self.outline.regions[walk.part.index];
        let mut flags = MemFlagsData::new().with_aligned().with_alias_region(region);
        let mut start = walk.part.start as i32;
        if let Some(outside) = outside {
            let null = self.pos.ins().iconst(types::I64, 0);
            address = self.pos.ins().iadd_imm_s(address, i64::from(start));
            self.outline.private.push(address);
            address = self.pos.ins().select_spectre_guard(outside, null, address);
            flags = flags.with_trap_code(Some(guarded_code()));
            self.outline.private.push(address);
            start = 0;
        } else {
            flags = flags.with_notrap();
        }
        let ty = [types::I8, types::I16, types::I32, types::I64][walk.shift as usize];
        if self.random.chance(60) {
            self.pos.ins().load(ty, flags, address, start);
            return;
        }
        let value = if ty == types::I64 { index } else { self.pos.ins().ireduce(ty, index) };
        self.pos.ins().store(flags, value, address, start);
    }

    /// A check of something else than bounds: of a sum, a divisor, a pointer.
    pub(super) fn arithmetic_check(&mut self, at: Block) -> Option<()> {
        let frame = self.walking()?;
        let index = self.index_in(at, frame, 0);
        let ty = self.pos.func.dfg.value_type(index);
        let code = self.trap_code();
        match self.random.below(5) {
            0..=2 => {
                self.note(Shape::CheckOverflow);
                let by = self.near_overflow(at, ty);
                self.pos.goto_bottom(at);
                if (ty == types::I32 || ty == types::I64) && self.random.chance(30) {
                    self.pos.ins().uadd_overflow_trap(index, by, code);
                    return Some(());
                }
                let opcode = self.random.pick(&[Opcode::SaddOverflow, Opcode::UaddOverflow, Opcode::UmulOverflow]);
                let (inst, dfg) = self.pos.ins().Binary(opcode, ty, index, by);
                let overflows = dfg.inst_results(inst)[1];
                self.pos.ins().trapnz(overflows, code);
            }
            choice => {
                self.note(Shape::CheckZero);
                let param = self.random.pick(&self.params);
                let param = self.resized(at, param, ty);
                let param = if self.random.chance(80) { self.pos.ins().bor_imm_u(param, 1) } else { param };
                self.pos.ins().trapz(param, code);
                if choice == 3 {
                    self.pos.ins().udiv(index, param);
                }
            }
        }
        Some(())
    }

    /// What a small number can be added to, or multiplied with, without overflow, or not quite.
    fn near_overflow(&mut self, at: Block, ty: Type) -> Value {
        let most = if self.random.chance(50) { (1 << (ty.bits() - 1)) - 1 } else { (1 << ty.bits()) - 1 };
        let number = match self.random.below(3) {
            0 => i128::from(self.random.pick(&[1_i8, 2, 8, 100])),
            _ => most - self.random.below(40) as i128,
        };
        self.amount(at, ty, super::choices::wrap(number, ty.bits()))
    }

    /// A cold path that calls and comes back.
    pub(super) fn rare_call(&mut self, at: Block) -> Block {
        self.note(Shape::RareCall);
        let (rare, next) = (self.block(), self.block());
        self.pos.func.layout.set_cold(rare);
        self.outline.calling.insert(rare);
        self.finish(rare, End::Jump(Successor::to(next)));
        self.finish(at, End::Branch(On::Data, [Successor::to(rare), Successor::to(next)]));
        next
    }
}
