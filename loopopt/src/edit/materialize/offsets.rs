//! Constants in indices become offsets of loads and stores.
//!
//! ```text
//!     v3 = iadd v2, 1
//!     v4 = ishl v3, 3                  v8 = ishl v2, 3
//!     v5 = iadd v1, v4         ──►     v9 = iadd v1, v8
//!     v6 = load.i64 v5                 v6 = load.i64 v9+8
//! ```
//!
//! While a check needs the index, Cranelift keeps it and computes the address from it. With the check removed, neighbours can share
//! an address, and an addressing mode takes the offset.

use crate::analysis::cfg::loops::def_block;
use crate::analysis::inst::number::{added_constant, constant_of};
use crate::analysis::memory::alias::address_operand;
use crate::edit::materialize::assertion::assert_same_place;
use crate::fault::fault;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::{Block, Function, Inst, InstBuilder, InstructionData, Opcode, Value, types};
use cranelift_codegen::{FxHashMap, FxHashSet};

/// Plain loads and stores with a constant in the index of their addresses, which are computed in their own blocks.
pub(crate) struct Offsets {
    found: Vec<(Inst, Indexed)>,
}

/// An address of 64 bits: `base + ((index + plus) << shift)`.
struct Indexed {
    base: Value,
    index: Value,
    shift: u32,
    /// `plus << shift`, together with the offset of the access.
    offset: Offset32,
    /// What the address is made of: itself, `(index + plus) << shift`, and `index + plus`.
    parts: [Value; 3],
}

impl Offsets {
    /// Those in `blocks`. Linear in the size of the blocks.
    pub(crate) fn of(func: &Function, blocks: impl IntoIterator<Item = Block>) -> Self {
        let mut found = Vec::new();
        for block in blocks {
            for inst in func.layout.block_insts(block) {
                if let Some(address) = address_operand(func, inst)
                    && let Some(offset) = func.dfg.insts[inst].load_store_offset()
                    && def_block(func, address) == Some(block)
                    && let Some(indexed) = Indexed::of(func, address, offset)
                {
                    found.push((inst, indexed));
                }
            }
        }
        Self { found }
    }

    /// Those of indices that nothing else uses, so that there is one value less. `uses` are all uses of values.
    pub(crate) fn only_unshared(mut self, uses: &SecondaryMap<Value, u32>) -> Self {
        let mut folded = FxHashMap::<Value, u32>::default();
        for (_, indexed) in &self.found {
            *folded.entry(indexed.parts[0]).or_default() += 1;
        }
        // What all users of a value no longer need is used by nothing.
        for [user, used] in [[0, 1], [1, 2]] {
            let mut seen = FxHashSet::default();
            for (_, Indexed { parts, .. }) in &self.found {
                let (user, used) = (parts[user], parts[used]);
                if user != used && folded.get(&user) == Some(&uses[user]) && seen.insert(user) {
                    *folded.entry(used).or_default() += 1;
                }
            }
        }
        self.found.retain(|(_, Indexed { parts: [.., sum], .. })| folded.get(sum) == Some(&uses[*sum]));
        self
    }

    /// The blocks in which they are, in their order.
    pub(crate) fn blocks(&self, func: &Function) -> Vec<Block> {
        let mut blocks: Vec<_> = self.found.iter().filter_map(|(inst, _)| func.layout.inst_block(*inst)).collect();
        blocks.dedup();
        blocks
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.found.len()
    }

    /// Folds them. Gives the addresses that they had.
    pub(crate) fn fold(self, func: &mut Function) -> Vec<Value> {
        let fold = |(inst, indexed): (Inst, Indexed)| {
            let [before, ..] = indexed.parts;
            indexed.apply(func, inst);
            before
        };
        self.found.into_iter().map(fold).collect()
    }
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
        let with = |base, scaled| Self::with(func, (address, base, scaled), offset);
        with(a, b).or_else(|| with(b, a))
    }

    fn with(func: &Function, (address, base, scaled): (Value, Value, Value), offset: i32) -> Option<Self> {
        let (sum, shift) = match operands(func, scaled, Opcode::Ishl) {
            Some([sum, by]) => (sum, u32::try_from(constant_of(func, by)?).ok().filter(|&shift| shift < 64)?),
            None => (scaled, 0),
        };
        let (index, plus) = added_constant(func, func.dfg.value_def(sum).inst()?)?;
        let scale = if fault!(ConstantUnscaled) { 0 } else { shift };
        let bytes = plus.checked_shl(scale)?.cast_signed().checked_add(offset.into())?;
        let offset = i32::try_from(bytes).ok()?.into();
        Some(Self { base, index, shift, offset, parts: [address, scaled, sum] })
    }

    fn apply(self, func: &mut Function, inst: Inst) {
        let Self { base, index, shift, offset: folded, .. } = self;
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
