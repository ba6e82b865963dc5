//! Iterations that stand one behind the other compute their numbers from those of the first.
//!
//! ```text
//!     v4 = iadd v3, 8   ; the next v3            v4 = iadd v3, 8
//!     v5 = load.i64 v3                           v5 = load.i64 v3
//!     jump block2(v4)                            jump block2(v4)
//! block2(v13):                         ──►   block2(v13):
//!     v14 = iadd v13, 8                          v14 = iadd v3, 16
//!     v15 = load.i64 v13                         v15 = load.i64 v3+8
//! ```
//!
//! A number that grows by `d` in each iteration is larger by `k · d` in the copy number `k`, modulo two to its bits. So it need not
//! be counted up from copy to copy, nor its products: one addition makes it, or the offset of an access. What does more than to compute
//! a number, such as a sum that traps, stays in each copy.

use crate::analysis::address::{Sum, Term, mask};
use crate::analysis::effects::Effects;
use crate::analysis::loops::def_block;
use crate::analysis::memory::address_operand;
use crate::analysis::strides::Strides;
use crate::edit::clone::Copies;
use crate::edit::offsets::set_address;
use crate::edit::rename::each_use;
use cranelift_codegen::FxHashSet;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Block, Function, Inst, InstBuilder, Opcode, Value, types};

/// Does it in `copies` of the loop of `blocks`, each entered from the one before and the first from the loop itself. `always` says
/// which blocks of the loop come before each of its back edges. Gives what the copies may need no longer.
pub(crate) fn stride(
    func: &mut Function,
    blocks: &[Block],
    copies: &[Copies],
    strides: &Strides,
    always: impl Fn(Block) -> bool,
) -> Vec<Value> {
    let insts: Vec<Inst> = blocks.iter().flat_map(|&block| func.layout.block_insts(block)).collect();
    let wanted = wanted(func, &insts, strides);
    let known = |func: &Function, value| {
        let stride = strides.get(value)?;
        let base = Base::of(func, blocks[0], value);
        def_block(func, base.value).filter(|&block| always(block)).map(|_| (base, stride))
    };
    let mut before = Vec::new();
    for (copy, times) in copies.iter().zip(1..) {
        let copied = |block: &Block| func.layout.block_insts(copy.block(*block));
        let copied: Vec<Inst> = blocks.iter().flat_map(copied).collect();
        for (&inst, &copied) in insts.iter().zip(&copied) {
            if let Some(address) = address_operand(func, inst)
                && let Some((base, stride)) = known(func, address)
                && let Some(offset) = base.offset(func, inst, stride, times)
            {
                before.extend(address_operand(func, copied));
                set_address(func, copied, (base.value, offset.into()));
            }
            if let &[result] = func.dfg.inst_results(inst)
                && !stays(func, inst)
                && let Some((base, stride)) = known(func, result)
            {
                if wanted.contains(&result) {
                    before.extend_from_slice(func.dfg.inst_args(copied));
                    base.replace(func, copied, stride.wrapping_mul(times));
                } else {
                    before.extend_from_slice(func.dfg.inst_results(copied));
                }
            }
        }
    }
    before
}

/// The numbers of the loop that something else needs than other such numbers, and accesses whose offset says it.
fn wanted(func: &Function, insts: &[Inst], strides: &Strides) -> FxHashSet<Value> {
    let mut wanted = FxHashSet::default();
    for &inst in insts {
        let is_number = func.dfg.inst_results(inst).first().is_some_and(|&result| strides.get(result).is_some());
        if !is_number || stays(func, inst) {
            let address = address_operand(func, inst).filter(|&value| func.dfg.value_type(value) == types::I64);
            each_use(func, inst, |value| {
                if Some(value) != address && strides.get(value).is_some() {
                    wanted.insert(value);
                }
            });
        }
    }
    wanted
}

/// Whether the copies do what `inst` does: the low half of a number costs nothing once that is there, and a sum that traps, or has
/// a second result, is more than a number.
fn stays(func: &Function, inst: Inst) -> bool {
    let is_low_half = func.dfg.insts[inst].opcode() == Opcode::Ireduce;
    is_low_half || func.dfg.inst_results(inst).len() != 1 || !Effects::of(func, inst).is_pure()
}

/// What a number of the loop is computed from in the copies: a parameter of the header, or itself.
struct Base {
    value: Value,
    plus: u64,
}

impl Base {
    fn of(func: &Function, header: Block, value: Value) -> Self {
        let sum = Sum::of(func, value);
        match sum.terms() {
            [(Term::Value(param), 1)] if func.dfg.block_params(header).contains(param) => {
                let is_as_wide = func.dfg.value_type(*param) == func.dfg.value_type(value);
                if is_as_wide { Self { value: *param, plus: sum.constant_part() } } else { Self { value, plus: 0 } }
            }
            _ => Self { value, plus: 0 },
        }
    }

    /// The offset of the access `inst`, so many strides later.
    fn offset(&self, func: &Function, inst: Inst, stride: u64, times: u64) -> Option<i32> {
        if func.dfg.value_type(self.value) != types::I64 {
            return None;
        }
        let old = i64::from(func.dfg.insts[inst].load_store_offset()?);
        let way = self.plus.wrapping_add(stride.wrapping_mul(times)).cast_signed();
        i32::try_from(old.checked_add(way)?).ok()
    }

    /// Lets `inst` add `way` to what it is computed from.
    fn replace(&self, func: &mut Function, inst: Inst, way: u64) {
        let ty = func.dfg.value_type(self.value);
        let way = self.plus.wrapping_add(way) & mask(ty.bits());
        let srcloc = func.srcloc(inst);
        let way = FuncCursor::new(func).at_inst(inst).with_srcloc(srcloc).ins().iconst(ty, way.cast_signed());
        func.replace(inst).iadd(self.value, way);
    }
}
