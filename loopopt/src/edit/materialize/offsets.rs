//! Constants in indices become offsets of loads and stores.
//!
//! ```text
//!     v3 = iadd v2, 1
//!     v4 = ishl v3, 3                  v8 = ishl v2, 3
//!     v5 = iadd v1, v4         ──►     v9 = iadd v1, v8
//!     v6 = load.i64 v5                 v6 = load.i64 v9+8
//! ```
//!
//! While a check needs the index, Cranelift keeps it and makes the address of it. With the check gone, neighbours can share
//! an address, and an addressing mode takes the offset. What is subtracted stays: the next value of a counter that steps down is computed anyway, and
//! with it in the offset, the sample `insertion-sort` takes 0.97 of Cranelift's time and not 0.73.

use crate::analysis::cfg::loops::def_block;
use crate::analysis::inst::number::{added_constant, constant_of};
use crate::analysis::memory::alias::address_operand;
use crate::edit::materialize::assertion::assert_same_place;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::{Block, Function, Inst, InstBuilder, InstructionData, Opcode, Value, types};

/// An address `base + ((index + plus) << shift)`.
struct Indexed {
    base: Value,
    index: Value,
    shift: u32,
    /// `plus << shift`, together with the offset of the access.
    offset: Offset32,
}

/// Does it for the plain loads and stores of `blocks` whose addresses, of 64 bits, are computed in their own blocks. Gives the
/// addresses that they had. Linear in the size of the blocks.
pub(crate) fn fold_offsets(func: &mut Function, blocks: &[Block]) -> Vec<Value> {
    let mut before = Vec::new();
    for &block in blocks {
        let mut next = func.layout.first_inst(block);
        while let Some(inst) = next {
            next = func.layout.next_inst(inst);
            if let Some(address) = address_operand(func, inst)
                && let Some(offset) = func.dfg.insts[inst].load_store_offset()
                && def_block(func, address) == Some(block)
                && let Some(indexed) = Indexed::of(func, address, offset)
            {
                indexed.apply(func, inst);
                before.push(address);
            }
        }
    }
    before
}

/// The operands of `value`, if it is the result of such an operation.
fn operands(func: &Function, value: Value, opcode: Opcode) -> Option<[Value; 2]> {
    match func.dfg.insts[func.dfg.value_def(value).inst()?] {
        InstructionData::Binary { opcode: of, args } if of == opcode => Some(args),
        _ => None,
    }
}

impl Indexed {
    fn of(func: &Function, address: Value, offset: i32) -> Option<Self> {
        if func.dfg.value_type(address) != types::I64 {
            return None;
        }
        let [a, b] = operands(func, address, Opcode::Iadd)?;
        Self::with(func, (a, b), offset).or_else(|| Self::with(func, (b, a), offset))
    }

    fn with(func: &Function, (base, scaled): (Value, Value), offset: i32) -> Option<Self> {
        let (sum, shift) = match operands(func, scaled, Opcode::Ishl) {
            Some([sum, by]) => (sum, u32::try_from(constant_of(func, by)?).ok().filter(|&shift| shift < 64)?),
            None => (scaled, 0),
        };
        let (index, plus) = added_constant(func, func.dfg.value_def(sum).inst()?)?;
        let bytes = plus.checked_shl(shift)?.cast_signed().checked_add(offset.into())?;
        Some(Self { base, index, shift, offset: i32::try_from(bytes).ok()?.into() })
    }

    fn apply(self, func: &mut Function, inst: Inst) {
        let Self { base, index, shift, offset: folded } = self;
        let srcloc = func.srcloc(inst);
        let mut cursor = FuncCursor::new(func).at_inst(inst).with_srcloc(srcloc);
        let scaled = match shift {
            0 => index,
            _ => {
                let by = cursor.ins().iconst(types::I64, i64::from(shift));
                cursor.ins().ishl(index, by)
            }
        };
        let address = cursor.ins().iadd(base, scaled);
        set_address(func, inst, (address, folded));
    }
}

/// Lets the plain load or store `inst` touch another address.
pub(crate) fn set_address(func: &mut Function, inst: Inst, (address, new_offset): (Value, Offset32)) {
    assert_same_place(func, inst, (address, new_offset));
    match &mut func.dfg.insts[inst] {
        InstructionData::Load { arg, offset, .. } | InstructionData::Store { args: [_, arg], offset, .. } => {
            (*arg, *offset) = (address, new_offset);
        }
        _ => unreachable!("only accesses have an address"),
    }
}
