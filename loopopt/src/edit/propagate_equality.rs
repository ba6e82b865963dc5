//! Put constants where the condition of a branch is known.
//!
//! ```text
//!     v2 = icmp eq v1, 0                        v2 = icmp eq v1, 0
//!     brif v2, block2(v2), block1(v2)   ──►     brif v2, block2(1), block1(0)
//! block1(v3: i8):                           block1(v3: i8):
//!     v4 = uextend.i32 v2                       v4 = 0
//! ```
//!
//! A comparison that a branch tests is 1 behind the one edge, and 0 behind the other. If a branch tests a number, the same holds
//! of a comparison of that number with zero. What is behind an edge is what it passes, and all that its target dominates if no
//! other edge enters that.
//!
//! A front end that returns a flag from the middle of a loop keeps the comparison as a value, beside the flags of the processor that
//! the branch reads. On x86-64 that takes a `setcc` in each iteration, which writes a part of its register: an iteration then
//! waits for whatever was in the rest of it. On `red-black-tree-o1` in Wasmtime, whose lookups otherwise overlap, the whole
//! program took 1.13 of the time with the value carried around its loop.
//!
//! Conditions of other branches, traps and guards stay: those are for the passes that say what they do with them.
//!
//! # References
//!
//! `propagateEquality` of LLVM's GVN.

use crate::analysis::cfg::edges::{Edge, each_use, edges_of, only_edge_into};
use crate::analysis::scev::linear_expr::constant_of;
use crate::claim::Claim;
use crate::edit::materialize::assertion::assert_truth;
use crate::edit::ssa::rename::{rename_args, rename_uses};
use cranelift_codegen::Context;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, InstBuilder, InstructionData, Opcode, Value, types};
use smallvec::SmallVec;

/// Does that in all of the function. Needs `ctx.cfg` and `ctx.domtree`, and keeps them. Returns whether there was anything to do.
/// Linear in the size of the function.
pub(crate) fn know_conditions(ctx: &mut Context) -> bool {
    let conditions = Conditions::of(&ctx.func);
    if conditions.branches.is_empty() {
        return false;
    }
    let mut known = Vec::new();
    for block in ctx.func.layout.blocks() {
        for inst in ctx.func.layout.block_insts(block) {
            let mut uses_any = false;
            each_use(&ctx.func, inst, |value| uses_any |= conditions.has(&ctx.func, value));
            if uses_any {
                conditions.each_known(ctx, (block, inst), |found| known.push(found));
            }
        }
    }
    let func = &mut ctx.func;
    let mut constants = Constants::default();
    let any = !known.is_empty();
    for Known { inst, slot, value, is } in known {
        let constant = constants.get(func, is);
        let rename = |used| if used == value { constant } else { used };
        if slot.is_none() {
            assert_truth(func, inst, Claim::ConditionKnown, (value, is));
        }
        match slot {
            Some(slot) => rename_args(func, Edge { branch: inst, slot }, rename),
            None if func.dfg.insts[inst].opcode() == Opcode::Uextend && is_one_constant(func, inst) => {
                let ty = func.dfg.value_type(func.dfg.first_result(inst));
                func.replace(inst).iconst(ty, i64::from(is));
            }
            None => rename_uses(func, inst, rename),
        }
    }
    any
}

/// Whether the result of `inst` could be a constant that is one instruction.
fn is_one_constant(func: &Function, inst: Inst) -> bool {
    func.dfg.value_type(func.dfg.first_result(inst)).bits() <= 64
}

/// A use of a condition where it is known: an operand of an instruction, or an argument of an edge.
struct Known {
    inst: Inst,
    slot: Option<usize>,
    value: Value,
    is: bool,
}

/// A number that is tested to be zero.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Tested {
    number: Value,
    /// Whether the value is true where the number is zero.
    inverted: bool,
}

impl Tested {
    /// What `value` says: of another number if it compares that with zero, else of itself.
    fn of(func: &Function, value: Value) -> Self {
        let itself = Self { number: value, inverted: false };
        let Some(def) = func.dfg.value_def(value).inst() else { return itself };
        match func.dfg.insts[def] {
            InstructionData::IntCompare {
                cond: cond @ (IntCC::Equal | IntCC::NotEqual), args: [number, zero], ..
            } if constant_of(func, zero) == Some(0) => Self { number, inverted: cond == IntCC::Equal },
            _ => itself,
        }
    }
}

/// The conditions of branches: where which number is tested.
struct Conditions {
    branches: FxHashMap<Value, SmallVec<[Inst; 2]>>,
}

impl Conditions {
    fn of(func: &Function) -> Self {
        /// Branches on one number that are looked at for each use, so that time is linear.
        const MAX_BRANCHES: usize = 8;
        let mut branches = FxHashMap::<_, SmallVec<[Inst; 2]>>::default();
        for branch in func.layout.blocks().filter_map(|block| func.layout.last_inst(block)) {
            if func.dfg.insts[branch].opcode() == Opcode::Brif {
                let Tested { number, .. } = Tested::of(func, func.dfg.inst_args(branch)[0]);
                let known = branches.entry(number).or_default();
                if known.len() < MAX_BRANCHES {
                    known.push(branch);
                }
            }
        }
        Self { branches }
    }

    /// Whether `value` is the condition of a branch and a comparison, or compares the number that a branch tests with zero.
    fn has(&self, func: &Function, value: Value) -> bool {
        let is_comparison = |inst| matches!(func.dfg.insts[inst].opcode(), Opcode::Icmp | Opcode::Fcmp);
        func.dfg.value_type(value) == types::I8
            && func.dfg.value_def(value).inst().is_some_and(is_comparison)
            && self.branches.contains_key(&Tested::of(func, value).number)
    }

    /// Calls `visit` with each use of a condition in `inst` that is known there.
    fn each_known(&self, ctx: &Context, (block, inst): (Block, Inst), mut visit: impl FnMut(Known)) {
        let func = &ctx.func;
        let mut used = SmallVec::<[Value; 4]>::new();
        each_use(func, inst, |value| {
            if self.has(func, value) && !used.contains(&value) {
                used.push(value);
            }
        });
        let opcode = func.dfg.insts[inst].opcode();
        for value in used {
            if !opcode.is_branch() {
                let is_check = opcode.can_trap() || opcode == Opcode::SelectSpectreGuard;
                if let Some(is) = self.known_in(ctx, block, value).filter(|_| !is_check) {
                    visit(Known { inst, slot: None, value, is });
                }
                continue;
            }
            for edge in edges_of(func, inst) {
                if edge.args(func).any(|arg| arg == BlockArg::Value(value))
                    && let Some(is) = said_by(func, edge, value).or_else(|| self.known_in(ctx, block, value))
                {
                    visit(Known { inst, slot: Some(edge.slot), value, is });
                }
            }
        }
    }

    /// What `value` is in `block`.
    fn known_in(&self, ctx: &Context, block: Block, value: Value) -> Option<bool> {
        let Tested { number, .. } = Tested::of(&ctx.func, value);
        let branches = self.branches.get(&number)?;
        branches.iter().flat_map(|&branch| edges_of(&ctx.func, branch)).find_map(|edge| {
            let is = said_by(&ctx.func, edge, value)?;
            is_behind(ctx, edge, block).then_some(is)
        })
    }
}

/// What the comparison `value` is on `edge`, if the branch there says.
fn said_by(func: &Function, edge: Edge, value: Value) -> Option<bool> {
    if func.dfg.insts[edge.branch].opcode() != Opcode::Brif {
        return None;
    }
    let condition = Tested::of(func, func.dfg.inst_args(edge.branch)[0]);
    let asked = Tested::of(func, value);
    let is = (edge.slot == 0) ^ condition.inverted ^ asked.inverted;
    (condition.number == asked.number).then_some(is)
}

/// Whether each way to `block` goes along `edge`.
fn is_behind(ctx: &Context, edge: Edge, block: Block) -> bool {
    let target = edge.target(&ctx.func);
    ctx.domtree.block_dominates(target, block) && only_edge_into(&ctx.func, &ctx.cfg, target) == Some(edge)
}

/// The constants that were made, at the top of the function.
#[derive(Default)]
struct Constants([Option<Value>; 2]);

impl Constants {
    fn get(&mut self, func: &mut Function, is: bool) -> Value {
        *self.0[usize::from(is)].get_or_insert_with(|| {
            let entry = func.layout.entry_block().expect("a function with a branch");
            FuncCursor::new(func).at_first_insertion_point(entry).ins().iconst(types::I8, i64::from(is))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, verify};

    /// The function with what is known of its conditions.
    fn known(text: &str) -> (String, bool) {
        let mut ctx = context(text);
        let any = know_conditions(&mut ctx);
        verify(&ctx);
        (ctx.func.to_string(), any)
    }

    #[test]
    fn a_comparison_is_known_on_both_edges_and_behind_them() {
        let (text, any) = known(
            "function %f(i32) -> i8 {
             block0(v0: i32):
                 v1 = iconst.i32 7
                 v2 = icmp eq v0, v1
                 brif v2, block1(v2), block2(v2)
             block1(v3: i8):
                 v4 = iadd v3, v2
                 return v4
             block2(v5: i8):
                 v6 = uextend.i16 v2
                 v9 = ireduce.i8 v6
                 return v9
             }",
        );
        assert!(any);
        assert!(text.contains("; v10 = 1, v11 = 0") || text.contains("; v11 = 1, v10 = 0"), "{text}");
        assert!(text.contains("v6 = iconst.i16 0"), "{text}");
        assert_eq!(text.matches("v2").count(), 2, "{text}");
    }

    #[test]
    fn a_number_that_is_tested_is_compared_with_zero() {
        let (text, any) = known(
            "function %f(i32) -> i32, i8 {
             block0(v0: i32):
                 v1 = iconst.i32 0
                 v2 = icmp eq v0, v1
                 v3 = icmp ne v0, v1
                 brif v0, block1(v0, v2), block1(v0, v3)
             block1(v4: i32, v5: i8):
                 return v4, v5
             }",
        );
        assert!(any);
        assert!(text.contains("brif v0, block1(v0, v6), block1(v0, v6)  ; v6 = 0, v6 = 0"), "{text}");
    }

    #[test]
    fn a_block_with_another_way_in_knows_nothing() {
        let text = "function %f(i32, i32) -> i8 {
             block0(v0: i32, v1: i32):
                 v2 = icmp eq v0, v1
                 brif v0, block1, block3
             block1:
                 brif v2, block2, block3
             block2:
                 brif v1, block3, block3
             block3:
                 return v2
             }";
        let before = context(text).func.to_string();
        assert_eq!(known(text), (before, false));
    }
}
