//! Loops, branches and returns.

use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Block, BlockCall, InstBuilder, JumpTableData, Value};

use super::{Emitter, Local, Operand};

/// Blocks to leave or to continue the innermost loop.
pub(super) struct LoopBlocks {
    header: Block,
    exit: Block,
}

impl Emitter<'_> {
    /// `while condition { body }`, tested in the header.
    pub(crate) fn while_loop(&mut self, condition: impl FnOnce(&mut Self) -> Value, body: impl FnOnce(&mut Self)) {
        let (header, first, exit) =
            (self.builder.create_block(), self.builder.create_block(), self.builder.create_block());
        self.jump(header);
        self.switch_to(header);
        let condition = condition(self);
        self.branch(condition, first, exit);
        self.switch_to(first);
        self.loops.push(LoopBlocks { header, exit });
        body(self);
        self.loops.pop();
        self.jump(header);
        self.switch_to(exit);
    }

    /// `for i in start..end { body(i) }` as a while loop with a counter of the type of `end`.
    pub(crate) fn for_range(
        &mut self,
        start: impl Into<Operand>,
        end: impl Into<Operand>,
        body: impl FnOnce(&mut Self, Local),
    ) {
        let end = end.into();
        let ty = self.type_of(end).unwrap_or(I64);
        let i = self.local(ty, start);
        self.while_loop(
            |f| f.less(i, end),
            |f| {
                body(f, i);
                f.increase(i, 1);
            },
        );
    }

    /// Does it all over again, because one walk over an array that fits into the cache is too short to be timed.
    pub(crate) fn repeat(&mut self, rounds: Value, body: impl FnOnce(&mut Self)) {
        self.for_range(0, rounds, |f, _| body(f));
    }

    /// `if condition { then }`.
    pub(crate) fn if_then(&mut self, condition: Value, then: impl FnOnce(&mut Self)) {
        let (yes, join) = (self.builder.create_block(), self.builder.create_block());
        self.branch(condition, yes, join);
        self.switch_to(yes);
        then(self);
        self.jump(join);
        self.switch_to(join);
    }

    /// `if condition { then }` that hardly ever happens.
    pub(crate) fn if_rarely(&mut self, condition: Value, then: impl FnOnce(&mut Self)) {
        self.if_then(condition, |f| {
            let block = f.builder.current_block().expect("the branch is being emitted");
            f.builder.set_cold_block(block);
            then(f);
        });
    }

    /// `if condition { then } else { otherwise }`; one of the two has to continue after it.
    pub(crate) fn if_else(
        &mut self,
        condition: Value,
        then: impl FnOnce(&mut Self),
        otherwise: impl FnOnce(&mut Self),
    ) {
        let (yes, no, join) = (self.builder.create_block(), self.builder.create_block(), self.builder.create_block());
        self.branch(condition, yes, no);
        self.switch_to(yes);
        then(self);
        self.jump(join);
        self.switch_to(no);
        otherwise(self);
        self.jump(join);
        self.switch_to(join);
    }

    /// A jump table: the case of this number, of 32 bits, or none of them.
    pub(crate) fn switch(&mut self, number: Value, cases: &[&dyn Fn(&mut Self)]) {
        let blocks: Vec<Block> = cases.iter().map(|_| self.builder.create_block()).collect();
        let join = self.builder.create_block();
        let lists = &mut self.builder.func.dfg.value_lists;
        let mut call = |block| BlockCall::new(block, [], lists);
        let table: Vec<BlockCall> = blocks.iter().map(|&block| call(block)).collect();
        let table = JumpTableData::new(call(join), &table);
        let table = self.builder.create_jump_table(table);
        self.ins().br_table(number, table);
        self.is_open = false;
        for (block, case) in blocks.into_iter().zip(cases) {
            self.switch_to(block);
            case(self);
            self.jump(join);
        }
        self.switch_to(join);
    }

    /// `if condition { break }`.
    pub(crate) fn break_if(&mut self, condition: Value) {
        let exit = self.loops.last().expect("break stands in a loop").exit;
        let next = self.builder.create_block();
        self.branch(condition, exit, next);
        self.switch_to(next);
    }

    /// `if condition { continue }`.
    pub(crate) fn continue_if(&mut self, condition: Value) {
        let header = self.loops.last().expect("continue stands in a loop").header;
        let next = self.builder.create_block();
        self.branch(condition, header, next);
        self.switch_to(next);
    }

    /// Returns without a result.
    pub(crate) fn ret_nothing(&mut self) {
        self.ins().return_(&[]);
        self.is_open = false;
    }

    /// Returns a value.
    pub(crate) fn ret(&mut self, result: impl Into<Operand>) {
        let ty = self.builder.func.signature.returns[0].value_type;
        let value = self.value(result.into(), ty);
        self.ins().return_(&[value]);
        self.is_open = false;
    }
}
