//! Programs with loops of which the iterations before and after some number differ: a branch in each innermost loop compares what the header gets with something
//! loop-invariant, often with what ends the loop, sometimes both with another width, and each of its arms does something else.
//!
//! What was done is kept in a stack slot, and passed to a host function at each return.

use super::addition::{Draws, import_ask, tell_at_returns};
use crate::analysis::cfg::loops::{Loop, LoopForest};
use cranelift_codegen::Context;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    Block, Function, InstBuilder, InstructionData, StackSlot, StackSlotData, StackSlotKind, Type, Value, types,
};

/// A loop to get a branch.
struct Target {
    header: Block,
    /// An integer that the header gets.
    number: Value,
    /// What it may be compared with.
    bounds: Vec<Value>,
}

/// `value`, of 32 or 64 bits, with the other width.
fn resized(pos: &mut FuncCursor<'_>, value: Value, is_signed: bool) -> Value {
    match pos.func.dfg.value_type(value) {
        types::I64 => pos.ins().ireduce(types::I32, value),
        _ if is_signed => pos.ins().sextend(types::I64, value),
        _ => pos.ins().uextend(types::I64, value),
    }
}

/// Lets the innermost loops of `func` differ in some iterations. Which and how is up to `seed`.
pub(super) fn halve(func: &mut Function, seed: u64) {
    let mut context = Context::for_function(func.clone());
    context.flowgraph();
    let forest = LoopForest::new(&context.func, &context.cfg, &context.domtree);
    let innermost = forest.loops().filter(|&lp| forest.is_innermost(lp));
    let mut halving = Halving { func, draws: Draws::new(seed), slot: None };
    let targets: Vec<_> = innermost.filter_map(|lp| halving.target(&forest, lp)).collect();
    for target in targets {
        halving.differ(&target);
    }
    halving.show();
}

struct Halving<'a> {
    func: &'a mut Function,
    draws: Draws,
    slot: Option<StackSlot>,
}

impl Halving<'_> {
    /// A number below `limit` that depends on the seed.
    fn draw(&mut self, limit: usize) -> usize {
        self.draws.draw(limit as u64) as usize
    }

    fn target(&mut self, forest: &LoopForest, lp: Loop) -> Option<Target> {
        let header = forest.data(lp).header;
        let func = &*self.func;
        let is_number = |&value: &Value| matches!(func.dfg.value_type(value), types::I32 | types::I64);
        let numbers: Vec<Value> = func.dfg.block_params(header).iter().copied().filter(is_number).collect();
        let insts = forest.blocks(lp).iter().flat_map(|&block| func.layout.block_insts(block));
        let tests = insts.filter(|&inst| matches!(func.dfg.insts[inst], InstructionData::IntCompare { .. }));
        let sides = tests.flat_map(|inst| func.dfg.inst_args(inst).iter().copied());
        let params = func.layout.entry_block().map_or(&[][..], |entry| func.dfg.block_params(entry));
        let bounds: Vec<Value> = sides.filter(|&side| forest.is_from_outside(func, lp, side)).collect();
        let bounds: Vec<Value> = bounds.into_iter().chain(params.iter().copied()).collect();
        let number = *numbers.get(self.draw(numbers.len().max(1)))?;
        let ty = self.func.dfg.value_type(number);
        let bounds = bounds.into_iter().filter(|&bound| self.func.dfg.value_type(bound) == ty).collect();
        Some(Target { header, number, bounds })
    }

    /// Lets each iteration begin with a branch with two arms.
    fn differ(&mut self, target: &Target) {
        let Some(first) = self.func.layout.first_inst(target.header) else { return };
        let ty = self.func.dfg.value_type(target.number);
        let cond = self.condition();
        let resize = (self.draw(4) == 0).then(|| self.draw(2));
        let (ahead, back) = (self.draw(4) as i64, self.draw(4) as i64 - 2);
        let rest = self.func.dfg.make_block();
        self.func.layout.split_block(rest, first);
        let arms = [0, 1].map(|_| {
            let arm = self.func.dfg.make_block();
            self.func.layout.insert_block(arm, rest);
            arm
        });
        let bound = self.bound(target, ty);
        let mut pos = FuncCursor::new(self.func).at_bottom(target.header);
        let number = pos.ins().iadd_imm_s(target.number, ahead);
        let bound = pos.ins().iadd_imm_s(bound, back);
        let [number, bound] = match resize {
            Some(how) => [number, bound].map(|value| resized(&mut pos, value, how == 0)),
            None => [number, bound],
        };
        let condition = pos.ins().icmp(cond, number, bound);
        pos.ins().brif(condition, arms[0], &[], arms[1], &[]);
        for (arm, factor) in arms.into_iter().zip([3, 5]) {
            self.keep(arm, (target.number, ty), factor);
            FuncCursor::new(self.func).at_bottom(arm).ins().jump(rest, &[]);
        }
    }

    fn condition(&mut self) -> IntCC {
        use IntCC::{
            Equal, NotEqual, SignedGreaterThan, SignedGreaterThanOrEqual, SignedLessThan, SignedLessThanOrEqual,
            UnsignedGreaterThan, UnsignedGreaterThanOrEqual, UnsignedLessThan, UnsignedLessThanOrEqual,
        };
        let all = [
            Equal,
            NotEqual,
            SignedGreaterThan,
            SignedGreaterThanOrEqual,
            SignedLessThan,
            SignedLessThanOrEqual,
            UnsignedGreaterThan,
            UnsignedGreaterThanOrEqual,
            UnsignedLessThan,
            UnsignedLessThanOrEqual,
        ];
        all[self.draw(all.len())]
    }

    /// What the branch compares with, before the end of its block: a bound, or a small number.
    fn bound(&mut self, target: &Target, ty: Type) -> Value {
        let choice = self.draw(target.bounds.len() + 1);
        let small = self.draw(12) as i64;
        match target.bounds.get(choice) {
            Some(&bound) => bound,
            None => FuncCursor::new(self.func).at_bottom(target.header).ins().iconst(ty, small),
        }
    }

    /// Lets `block` mix a number into what is kept.
    fn keep(&mut self, block: Block, (number, ty): (Value, Type), factor: i64) {
        let slot = *self.slot.get_or_insert_with(|| {
            self.func.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, 8, 3))
        });
        let mut pos = FuncCursor::new(self.func).at_bottom(block);
        let kept = pos.ins().stack_load(types::I64, types::I64, slot, 0);
        let times = pos.ins().imul_imm_s(kept, factor);
        let number = if ty == types::I64 { number } else { pos.ins().uextend(types::I64, number) };
        let more = pos.ins().iadd(times, number);
        pos.ins().stack_store(types::I64, more, slot, 0);
    }

    /// Starts what is kept with a number, and passes it to a host function at each return.
    fn show(&mut self) {
        let (Some(slot), Some(entry)) = (self.slot, self.func.layout.entry_block()) else { return };
        let ask = import_ask(self.func);
        let mut pos = FuncCursor::new(self.func).at_first_insertion_point(entry);
        let one = pos.ins().iconst(types::I64, 1);
        pos.ins().stack_store(types::I64, one, slot, 0);
        tell_at_returns(self.func, slot, ask);
    }
}
