//! A test of bits that does not keep alive what they are computed from.
//!
//! ```text
//!     v4 = band v2, v3                         v4 = band v2, v3          and rdi, rax
//!     v5 = icmp ne v4, 0            ──►        v5 = icmp ugt v4, 0       test rdi, rdi
//!     brif v5, block2(v4), block3              brif v5, block2(v4), block3
//! ```
//!
//! Cranelift's lowering for x86-64 makes one `test` of a `band` that is compared with zero for equality, whoever else uses the result: it reads both
//! operands at the branch, so that none of them leaves its register to the next value. A comparison by order tests the result.
//!
//! Legal as an unsigned number is not zero if it is above zero.

use super::Latch;
use crate::analysis::cfg::edges::edges_of;
use crate::analysis::inst::number::constant_of;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockArg, Function, Inst, InstBuilder, InstructionData, Opcode, Value};

/// What the branch of a latch tests, if it is a `band` that it also passes as a block argument.
pub(super) struct Bits {
    /// The result of the `band`.
    bits: Value,
    /// The comparison with zero, if there is one.
    compare: Option<Inst>,
}

impl Bits {
    pub(super) fn find(func: &Function, latch: &Latch) -> Option<Self> {
        let InstructionData::Brif { arg, .. } = func.dfg.insts[latch.branch] else { return None };
        let def = func.dfg.value_def(arg).inst()?;
        let (bits, compare) = match func.dfg.insts[def] {
            InstructionData::IntCompare { cond: IntCC::Equal | IntCC::NotEqual, args: [bits, zero], .. } => {
                (bits, Some((constant_of(func, zero) == Some(0)).then_some(def)?))
            }
            _ => (arg, None),
        };
        let band = func.dfg.value_def(bits).inst()?;
        let is_passed =
            || edges_of(func, latch.branch).any(|edge| edge.args(func).any(|arg| arg == BlockArg::Value(bits)));
        let is_band = func.dfg.insts[band].opcode() == Opcode::Band && func.dfg.value_type(bits).bits() <= 64;
        (is_band && func.layout.inst_block(band) == Some(latch.block) && is_passed()).then_some(Self { bits, compare })
    }

    pub(super) fn describe(&self) -> String {
        format!("{} is tested by itself, not by what it is computed from", self.bits)
    }

    pub(super) fn apply(&self, func: &mut Function, latch: &Latch) {
        if let Some(compare) = self.compare {
            if let InstructionData::IntCompare { cond, .. } = &mut func.dfg.insts[compare] {
                *cond = match cond {
                    IntCC::NotEqual => IntCC::UnsignedGreaterThan,
                    _ => IntCC::UnsignedLessThanOrEqual,
                };
            }
            return;
        }
        let ty = func.dfg.value_type(self.bits);
        let srcloc = func.srcloc(latch.branch);
        let mut cursor = FuncCursor::new(func).at_inst(latch.branch).with_srcloc(srcloc);
        let zero = cursor.ins().iconst(ty, 0);
        let is_above = cursor.ins().icmp(IntCC::UnsignedGreaterThan, self.bits, zero);
        cursor.func.dfg.inst_args_mut(latch.branch)[0] = is_above;
    }
}
