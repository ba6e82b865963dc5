//! Copies of an iteration compute their numbers from those of the first.
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
//!
//! Where the number is added to what the next iteration depends on, such as a loop-carried sum, it is computed by a subtraction. Cranelift
//! would make one `lea` of three parts of two additions, and that takes a cycle more than an addition, in each iteration
//! (`downward` on an AMD EPYC: 1.12 of Cranelift's time, and 1.00 with a number of its own; `jit-harness bench --filter downward`). The first
//! iteration may have such a number as well, which the second one starts with (`numbered`: 1.06, and 1.00).

use crate::analysis::cfg::edges::Edge;
use crate::analysis::cfg::loops::def_block;
use crate::analysis::inst::effects::Effects;
use crate::analysis::inst::number::mask;
use crate::analysis::memory::alias::address_operand;
use crate::analysis::scev::linear_expr::offset;
use crate::analysis::scev::recurrence::Steps;
use crate::claim::{Claim, is_marked};
use crate::edit::inst::clone::{Copies, repeat_before};
use crate::edit::inst::rename::each_use;
use crate::edit::materialize::assertion::assert_equal;
use crate::edit::materialize::offsets::set_address;
use cranelift_codegen::FxHashSet;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Block, Function, Inst, InstBuilder, Opcode, Value, types};

/// Does it in `copies` of the loop of `blocks` with this back edge, each entered from the previous one and the first from the loop itself. `always` says
/// which blocks of the loop come before each of its back edges. Gives what the copies may need no longer.
pub(crate) fn stride(
    func: &mut Function,
    (blocks, back_edge): (&[Block], Edge),
    copies: &[Copies],
    steps: &Steps,
    always: impl Fn(Block) -> bool,
) -> Vec<Value> {
    let insts: Vec<Inst> = blocks.iter().flat_map(|&block| func.layout.block_insts(block)).collect();
    let wanted = wanted(func, &insts, steps);
    let apart = added_to_carried(func, (blocks[0], back_edge), &insts, steps);
    let known = |func: &Function, value| {
        let stride = steps.get(value)?;
        let base = Base::of(func, value);
        def_block(func, base.value).filter(|&block| always(block)).map(|_| (base, stride))
    };
    let mut before = Vec::new();
    for &inst in &insts {
        if let &[number] = func.dfg.inst_results(inst)
            && apart.contains(&number)
            && !stays(func, inst)
            && let Some((base, _)) = known(func, number).filter(|(base, _)| base.value != number)
        {
            before.extend_from_slice(func.dfg.inst_args(inst));
            base.replace(func, inst, (0, true));
        }
    }
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
                    base.replace(func, copied, (stride.wrapping_mul(times), apart.contains(&result)));
                } else {
                    before.extend_from_slice(func.dfg.inst_results(copied));
                }
            }
        }
    }
    before
}

/// The numbers of the loop that something else needs than other such numbers, and accesses whose offset says it.
fn wanted(func: &Function, insts: &[Inst], steps: &Steps) -> FxHashSet<Value> {
    let mut wanted = FxHashSet::default();
    for &inst in insts {
        let is_number = func.dfg.inst_results(inst).first().is_some_and(|&result| steps.get(result).is_some());
        if !is_number || stays(func, inst) {
            let address = address_operand(func, inst).filter(|&value| func.dfg.value_type(value) == types::I64);
            each_use(func, inst, |value| {
                if Some(value) != address && steps.get(value).is_some() {
                    wanted.insert(value);
                }
            });
        }
    }
    wanted
}

/// The numbers that are added to what is computed from a loop-carried number of the loop of `header` that does not grow by the same
/// step. Through loads, which take longer than an addition anyway, and through parameters of other blocks it is not followed.
fn added_to_carried(
    func: &Function,
    (header, back_edge): (Block, Edge),
    insts: &[Inst],
    steps: &Steps,
) -> FxHashSet<Value> {
    let is_number = |value: &Value| steps.get(*value).is_some();
    let params = func.dfg.block_params(header);
    let mut carried: FxHashSet<Value> = params.iter().copied().filter(|param| !is_number(param)).collect();
    let mut added = FxHashSet::default();
    for &inst in insts {
        let args = func.dfg.inst_args(inst);
        if !Effects::of(func, inst).is_pure() || !args.iter().any(|arg| carried.contains(arg)) {
            continue;
        }
        if func.dfg.insts[inst].opcode() == Opcode::Iadd {
            added.extend(args.iter().copied().filter(is_number));
        }
        carried.extend(func.dfg.inst_results(inst));
    }
    // In a copy, a parameter is what the previous iteration has passed.
    let passed = params.iter().zip(back_edge.args(func)).filter(|(param, _)| added.contains(*param));
    let passed: Vec<_> = passed.filter_map(|(_, arg)| arg.as_value()).collect();
    added.extend(passed);
    added
}

/// Whether the copies do what `inst` does: the low half of a number costs nothing once that is there, and a sum that traps, or has
/// a second result, is more than a number.
fn stays(func: &Function, inst: Inst) -> bool {
    let is_low_half = func.dfg.insts[inst].opcode() == Opcode::Ireduce;
    is_low_half || func.dfg.inst_results(inst).len() != 1 || !Effects::of(func, inst).is_pure()
}

/// What a number of the loop is computed from in the copies: another such number, or itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Base {
    pub(crate) value: Value,
    pub(crate) plus: u64,
}

impl Base {
    /// What `value` is made of by additions of constants.
    pub(crate) fn of(func: &Function, value: Value) -> Self {
        let (value, plus) = offset(func, None, value);
        Self { value, plus: plus as u64 }
    }

    /// The offset of the access `inst`, so many strides later.
    fn offset(&self, func: &Function, inst: Inst, stride: u64, times: u64) -> Option<i32> {
        if func.dfg.value_type(self.value) != types::I64 {
            return None;
        }
        let old = i64::from(func.dfg.insts[inst].load_store_offset()?);
        let distance = self.plus.wrapping_add(stride.wrapping_mul(times)).cast_signed();
        i32::try_from(old.checked_add(distance)?).ok()
    }

    /// Lets `inst` add `distance` to what it is computed from, `apart` from what is added to it.
    fn replace(&self, func: &mut Function, inst: Inst, (distance, apart): (u64, bool)) {
        let counted = is_marked(func).then(|| repeat_before(func, inst, inst));
        let ty = func.dfg.value_type(self.value);
        let distance = self.plus.wrapping_add(distance);
        let distance = if apart { distance.wrapping_neg() } else { distance } & mask(ty.bits());
        let srcloc = func.srcloc(inst);
        let distance = FuncCursor::new(func).at_inst(inst).with_srcloc(srcloc).ins().iconst(ty, distance.cast_signed());
        match apart {
            true => func.replace(inst).isub(self.value, distance),
            false => func.replace(inst).iadd(self.value, distance),
        };
        if let (Some(counted), Some(next)) = (counted, func.layout.next_inst(inst)) {
            assert_equal(func, next, Claim::Recurrence, [counted, func.dfg.first_result(inst)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::cfg::edges::edges_from;
    use crate::analysis::scev::recurrence::Recurrences;
    use crate::analysis::scev::view::View;
    use crate::edit::cfg::split_edges::retarget;
    use crate::edit::copy::copy_iterations::{clone_iterations, copied_edge};
    use crate::edit::materialize::dce::remove_unused;
    use crate::testing::{block, context, forest, verify};

    /// Two copies: the access has an offset, what is stored is one addition, the sum that traps is as it was, and so is what is
    /// computed from a number that may not be there.
    #[test]
    fn numbers_of_copies_follow_from_the_first() {
        let mut ctx = context(
            "function %f(i64) {
            block0(v0: i64):
                jump block1(v0)
            block1(v1: i64):
                v2 = iconst.i64 3
                v3 = imul v1, v2
                v4 = load.i64 v1+4
                store v3, v1
                v5 = uadd_overflow_trap v1, v0, user1
                brif v4, block2, block3
            block2:
                v6 = imul v1, v2
                v7 = isub v0, v6
                v8 = load.i64 v7
                jump block3
            block3:
                v9 = iconst.i64 8
                v10 = iadd v1, v9
                brif v4, block1(v10), block4
            block4:
                return
            }",
        );
        let forest = forest(&ctx);
        let lp = forest.loop_of_header(block(1)).expect("a loop");
        let view = View { ctx: &ctx, forest: &forest };
        let steps = Recurrences::of(view, lp).steps(view);
        let blocks = [1, 2, 3].map(block);
        let func = &mut ctx.func;
        let back_edge = edges_from(func, block(3)).next().expect("the back edge");
        let copies = clone_iterations(func, &blocks, back_edge, 2);
        retarget(func, back_edge, copies[0].block(block(1)));
        let again = copied_edge(func, &copies[1], back_edge);
        retarget(func, again, block(1));
        let unused = stride(func, (&blocks, back_edge), &copies, &steps, |of| of != block(2));
        remove_unused(func, unused);
        ctx.flowgraph();
        verify(&ctx);
        let func = &ctx.func;
        let text = |of| {
            let insts = func.layout.block_insts(copies[1].block(of));
            insts.map(|inst| func.dfg.display_inst(inst).to_string()).collect::<Vec<_>>().join("\n")
        };
        let constants = |of: &str| of.matches("iconst.i64").count();
        let (first, rare, last) = (text(block(1)), text(block(2)), text(block(3)));
        assert!(first.contains("v1+20") && first.contains("v1+16"), "offsets of two strides:\n{first}");
        assert!(first.contains("iadd.i64 v3, ") && first.contains("iconst.i64 48"), "twice 24 more:\n{first}");
        assert!(first.contains("uadd_overflow_trap") && !first.contains("imul"), "{first}");
        assert!(rare.contains("imul"), "the first may not have been there:\n{rare}");
        assert!(last.contains("iadd.i64 v1, ") && last.contains("iconst.i64 24"), "{last}");
        assert_eq!(constants(&last), 1, "the step is not needed:\n{last}");
    }
}
