//! A loop of which an iteration counts down in inner loops that take much of what a poll may wait: its strips are short, and have loops
//! that count as a strip does. The last of them may leave the loop in its middle.

use super::features::Shape;
use super::outline::{Draft, End, On, Successor};
use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Opcode, Value, types};

/// A loop that counts down to zero.
struct Down {
    header: Block,
    left: Value,
    up: Value,
    carried: Value,
}

impl Draft<'_, '_, '_> {
    /// Such a loop. Gives the block after it.
    pub(super) fn countdowns(&mut self, at: Block) -> Option<Block> {
        self.note(Shape::Countdown);
        let numbers = [16, 256].map(|limit| self.small_number(at, limit));
        let limit = self.small_number(at, 256);
        let step = self.random.pick(&[1, 1, 4, 16]);
        let zero = self.constant(at, types::I64, 0);
        let (header, body, out) = (self.block(), self.block(), self.block());
        self.outline.headers.insert(header);
        let [index, sum] = [(); 2].map(|()| self.pos.func.dfg.append_block_param(header, types::I64));
        let to = |block: Block, values: &[Value]| Successor {
            block,
            args: values.iter().map(|&value| Some(BlockArg::Value(value))).collect(),
        };
        self.finish(at, End::Jump(to(header, &[zero, numbers[0]])));
        self.frames.push(super::entries::frame(out, true));
        for block in [header, body] {
            self.outline.depths.insert(block, self.depth());
        }
        self.absorb(header, sum);
        self.pos.goto_bottom(header);
        let next = self.pos.ins().iadd_imm_s(index, step);
        let stays = self.pos.ins().icmp(IntCC::UnsignedLessThan, next, numbers[1]);
        self.finish(header, End::Branch(On::Just(stays), [Successor::to(body), Successor::to(out)]));

        let count = self.random.pick(&[2, 3, 5, 8, 20, 60, 150, 300]);
        let first = self.down(body, count, index, sum);
        let (latch, carried) = self.end_down(first, numbers[0], None);
        let count = self.random.pick(&[1, 2, 3, 4, 7, 7, 9]);
        let second = self.down(latch, count, index, carried);
        let early = self.random.chance(70).then_some((limit, out));
        let (latch, carried) = self.end_down(second, numbers[0], early);
        self.finish(latch, End::Jump(to(header, &[next, carried])));
        self.frames.pop();
        let last = self.random.pick(&[index, sum]);
        self.absorb(out, last);
        Some(out)
    }

    /// A loop of so many iterations, entered from `at`.
    fn down(&mut self, at: Block, count: i128, index: Value, carried: Value) -> Down {
        let count = self.constant(at, types::I64, count);
        let header = self.block();
        self.outline.depths.insert(header, self.depth() + 1);
        self.outline.headers.insert(header);
        let [left, up, carry] = [(); 3].map(|()| self.pos.func.dfg.append_block_param(header, types::I64));
        let args = [count, index, carried].map(|value| Some(BlockArg::Value(value)));
        self.finish(at, End::Jump(Successor { block: header, args: args.into() }));
        Down { header, left, up, carried: carry }
    }

    /// Ends it, with a chain of operations in each iteration, and an exit from the outer loop where its index reaches a number. Gives the
    /// block after it and what it has computed.
    fn end_down(&mut self, down: Down, operand: Value, early: Option<(Value, Block)>) -> (Block, Value) {
        let Down { header, left, up, carried } = down;
        let length = 1 + self.random.below(if early.is_some() { 16 } else { 3 });
        let test = if early.is_some() { Some(self.block()) } else { None };
        let at = test.unwrap_or(header);
        self.outline.depths.insert(at, self.depth() + 1);
        let exit = self.block();
        self.pos.goto_bottom(header);
        let fewer = self.pos.ins().iadd_imm_s(left, -1);
        self.pos.goto_bottom(at);
        let mut value = carried;
        for index in 0..length {
            let opcode = self.random.pick(&[Opcode::Imul, Opcode::Bxor, Opcode::Iadd, Opcode::Isub]);
            let other = if index % 2 == 0 { operand } else { up };
            let (inst, dfg) = self.pos.ins().Binary(opcode, types::I64, value, other);
            value = dfg.first_result(inst);
        }
        let more = self.pos.ins().iadd_imm_s(up, 1);
        let back =
            Successor { block: header, args: [fewer, more, value].map(|value| Some(BlockArg::Value(value))).into() };
        let (Some(test), Some((limit, out))) = (test, early) else {
            self.finish(header, End::Branch(On::Just(fewer), [back, Successor::to(exit)]));
            return (exit, value);
        };
        self.finish(header, End::Branch(On::Just(fewer), [Successor::to(test), Successor::to(exit)]));
        let condition = self.random.pick(&[IntCC::UnsignedLessThan, IntCC::UnsignedLessThan, IntCC::NotEqual]);
        let goes_on = self.pos.ins().icmp(condition, more, limit);
        self.finish(test, End::Branch(On::Just(goes_on), [back, Successor::to(out)]));
        (exit, carried)
    }
}
