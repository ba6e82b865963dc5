//! Values of a loop that are computed from what is loop-invariant.

use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::inst::effects::Effects;
use crate::fault::fault;
use cranelift_codegen::ir::{Block, Function, Inst, Value, ValueDef};
use smallvec::SmallVec;

/// Instructions of one such value. A comparison of two fields with a mask has five.
const MAX_INSTS: usize = 16;

/// The instructions of `lp` that compute `value` from what is loop-invariant, operands first. Nothing if it varies, or
/// cannot be computed before the loop, or takes more than a few.
pub fn invariant_chain(func: &Function, forest: &LoopForest, lp: Loop, value: Value) -> Option<Vec<Inst>> {
    let is_inside = |block: Option<Block>| block.is_some_and(|block| forest.contains(lp, block));
    let mut chain = Vec::new();
    let mut stack = SmallVec::<[(Value, bool); 16]>::from_slice(&[(value, false)]);
    let mut seen = 0;
    while let Some((value, operands_done)) = stack.pop() {
        let inst = match func.dfg.value_def(value) {
            ValueDef::Result(inst, _) => inst,
            ValueDef::Param(block, _) if !is_inside(Some(block)) => continue,
            ValueDef::Param(block, _) if fault!(ConditionOfFirstIteration) && block == forest.data(lp).header => {
                continue;
            }
            ValueDef::Param(..) | ValueDef::Union(..) => return None,
        };
        if !is_inside(func.layout.inst_block(inst)) || chain.contains(&inst) {
            continue;
        }
        if operands_done {
            chain.push(inst);
            continue;
        }
        seen += 1;
        if seen > MAX_INSTS || !Effects::of(func, inst).is_pure() {
            return None;
        }
        stack.push((value, true));
        stack.extend(func.dfg.inst_args(inst).iter().map(|&operand| (operand, false)));
    }
    Some(chain)
}
