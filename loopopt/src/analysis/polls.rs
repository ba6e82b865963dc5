//! Loads that alone decide whether a loop goes on: it may be waiting for someone to write there.
//!
//! ```text
//! header:
//!     v1 = load.i32 v0       a poll
//!     v2 = icmp eq v1, v3
//!     brif v2, header, exit
//! ```
//!
//! CLIF does not say so: a plain load may be taken for one that gives the same each time, and then the loop never ends. A
//! program that waits like that should use atomics, but programs do, and an engine stops its guests by a flag that is a
//! plain load to Cranelift (wasmtime's epochs). No loop is worth much in which such a condition is free.

use crate::analysis::effects::Effects;
use crate::analysis::loops::{Loop, LoopForest};
use cranelift_codegen::ir::{Function, Inst, InstructionData, Value, ValueDef};

/// Instructions that are looked at for one way out. What is behind more is not taken for a poll.
const MAX_INSTS: usize = 64;

/// The loads of `lp` on which a way out of it hangs, and on nothing else in the loop.
pub fn polls(func: &Function, forest: &LoopForest, lp: Loop) -> Vec<Inst> {
    let mut polls = Vec::new();
    for exit in &forest.data(lp).exits {
        if let InstructionData::Brif { arg, .. } | InstructionData::BranchTable { arg, .. } =
            func.dfg.insts[exit.branch]
        {
            polls.extend(loads_behind(func, forest, lp, arg).into_iter().flatten());
        }
    }
    polls.sort_unstable();
    polls.dedup();
    polls
}

/// The loads that `condition` is made of, if it is made of nothing else that changes in the loop.
fn loads_behind(func: &Function, forest: &LoopForest, lp: Loop, condition: Value) -> Option<Vec<Inst>> {
    let mut loads = Vec::new();
    let mut stack = vec![condition];
    for _ in 0..MAX_INSTS {
        let Some(value) = stack.pop() else { return Some(loads) };
        // A parameter that is not from outside changes.
        let inst = match func.dfg.value_def(value).inst() {
            Some(inst) => inst,
            None if is_outside(func, forest, lp, value) => continue,
            None => return None,
        };
        if !func.layout.inst_block(inst).is_some_and(|block| forest.contains(lp, block)) {
            continue;
        }
        match func.dfg.insts[inst] {
            InstructionData::Load { .. } => loads.push(inst),
            _ if Effects::of(func, inst).is_pure() => {}
            _ => return None,
        }
        stack.extend(func.dfg.inst_args(inst));
    }
    None
}

fn is_outside(func: &Function, forest: &LoopForest, lp: Loop, param: Value) -> bool {
    let home = func.dfg.value_def(param);
    matches!(home, ValueDef::Param(block, _) if !forest.contains(lp, block))
}
