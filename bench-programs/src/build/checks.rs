//! Checks, in the shapes that front ends give them.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Block, InstBuilder, Opcode, SourceLoc, TrapCode, Value};

use super::{Emitter, Operand};
use crate::Checks;

/// The trap of a failed bounds check.
pub(super) const OUT_OF_BOUNDS: TrapCode = TrapCode::unwrap_user(1);
/// The trap of a failed null check.
const NULL: TrapCode = TrapCode::unwrap_user(2);
/// The trap of an operation that overflows.
const OVERFLOW: TrapCode = TrapCode::unwrap_user(3);

/// What happens if a check fails.
#[derive(Clone, Copy)]
pub(super) enum Check {
    /// There is none.
    None,
    /// `trapnz`.
    Trap,
    /// A branch to a block that traps.
    Branch,
    /// A branch to a cold block that calls a function of the runtime, which does not return.
    Call,
    /// The access goes to address 0 instead, even if the processor only guesses that the check holds.
    Guard,
}

/// The block of a failed branching check.
pub(super) struct Failure {
    block: Block,
    location: SourceLoc,
    /// The index and the length, if the runtime is told of them.
    told: Option<[Value; 2]>,
}

impl Emitter<'_> {
    /// Whether checks are left out.
    pub(super) fn is_unchecked(&self) -> bool {
        self.checks == Checks::Off
    }

    /// Does not go on if `outside` holds for an index and a length.
    pub(super) fn bounds_check(&mut self, check: Check, outside: Value, told: [Value; 2]) {
        match check {
            Check::None | Check::Guard => {}
            Check::Trap => {
                self.ins().trapnz(outside, OUT_OF_BOUNDS);
            }
            Check::Branch => self.branch_to_failure(outside, None),
            Check::Call => self.branch_to_failure(outside, Some(told)),
        }
    }

    /// Each failure has the place of its check, so that the place of a trap says which one failed.
    fn branch_to_failure(&mut self, outside: Value, told: Option<[Value; 2]>) {
        let (block, inside) = (self.builder.create_block(), self.builder.create_block());
        self.branch(outside, block, inside);
        self.failures.push(Failure { block, location: self.builder.srcloc(), told });
        self.switch_to(inside);
    }

    /// Fills the blocks of failed checks.
    pub(super) fn emit_failures(&mut self) {
        for Failure { block, location, told } in std::mem::take(&mut self.failures) {
            self.switch_to(block);
            if let Some(told) = told {
                self.builder.set_cold_block(block);
                self.call_host("host_out_of_bounds", &told);
            }
            self.builder.set_srcloc(location);
            self.builder.ins().trap(OUT_OF_BOUNDS);
        }
    }

    /// Traps unless `x < y`, unsigned.
    pub(crate) fn require_below(&mut self, x: impl Into<Operand>, y: impl Into<Operand>) {
        if !self.is_unchecked() {
            let (x, y) = self.pair(x.into(), y.into());
            let outside = self.is_outside(x, y);
            self.ins().trapnz(outside, OUT_OF_BOUNDS);
        }
    }

    /// Traps if a pointer is null.
    pub(crate) fn null_check(&mut self, pointer: Value) {
        if !self.is_unchecked() {
            self.ins().trapz(pointer, NULL);
        }
    }

    /// `x / y`, unsigned; without a check, `y` is taken for another number than 0 by whoever wrote the program.
    pub(crate) fn divide(&mut self, x: impl Into<Operand>, y: impl Into<Operand>) -> Value {
        let (x, y) = self.pair(x.into(), y.into());
        if !self.is_unchecked() {
            self.ins().trapz(y, TrapCode::INTEGER_DIVISION_BY_ZERO);
        }
        self.ins().udiv(x, y)
    }

    /// `x + y` of signed numbers, which traps if it overflows.
    pub(crate) fn add_signed(&mut self, x: impl Into<Operand>, y: impl Into<Operand>) -> Value {
        self.add_checked(Opcode::SaddOverflow, x.into(), y.into())
    }

    /// `x + y` of unsigned numbers, which traps if it overflows.
    pub(crate) fn add_unsigned(&mut self, x: impl Into<Operand>, y: impl Into<Operand>) -> Value {
        self.add_checked(Opcode::UaddOverflow, x.into(), y.into())
    }

    fn add_checked(&mut self, opcode: Opcode, x: Operand, y: Operand) -> Value {
        let (x, y) = self.pair(x, y);
        if self.is_unchecked() {
            return self.ins().iadd(x, y);
        }
        let ty = self.builder.func.dfg.value_type(x);
        let (inst, dfg) = self.ins().Binary(opcode, ty, x, y);
        let (sum, overflows) = (dfg.inst_results(inst)[0], dfg.inst_results(inst)[1]);
        self.ins().trapnz(overflows, OVERFLOW);
        sum
    }

    /// `x + y` of unsigned numbers as one instruction that traps if it overflows.
    pub(super) fn add_or_trap(&mut self, x: Value, y: i64) -> Value {
        let y = self.value(Operand::Int(y), I64);
        self.ins().uadd_overflow_trap(x, y, OUT_OF_BOUNDS)
    }

    /// `address`, or 0 if `outside` holds.
    pub(super) fn guarded(&mut self, outside: Value, address: Value) -> Value {
        let null = self.ins().iconst(I64, 0);
        self.ins().select_spectre_guard(outside, null, address)
    }

    /// Whether an index is not below a length.
    pub(crate) fn is_outside(&mut self, index: impl Into<Operand>, len: impl Into<Operand>) -> Value {
        self.icmp(IntCC::UnsignedGreaterThanOrEqual, index, len)
    }
}
