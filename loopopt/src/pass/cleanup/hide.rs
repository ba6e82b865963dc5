//! Takes out of the sight of Cranelift's egraph pass what it handles wrongly in functions that passes have changed.
//!
//! ```text
//!     v2 = load.i64 v1+8                     v2 = call fn0(v1)
//!     store v3, v2              ◄──►         call fn0(v3, v2)
//!     atomic_store v3, v1                    call fn0(v3, v1)
//! ```
//!
//! Each instruction that reads or writes memory becomes a call of the same operands and results, and is put back afterwards with the
//! operands that the pass has given it. To the pass, a call is an effect that it knows nothing of: it stays where it is, whatever
//! comes of its results, it is never equal to another one, and its operands are rewritten in place (`is_pure_for_egraph` and
//! `is_mergeable_for_egraph` in `inst_predicates.rs`, `optimize_skeleton_inst` in `egraph/mod.rs`). With no load and no store left, the
//! pass's alias analysis has nothing to say. What belongs to the instruction (its results, source location, debug tags, stack map) is
//! known by its number, which it keeps. Nobody asks for the callee: the verifier, which would, runs when all is back.
//!
//! Two kinds of instructions are special:
//!
//! * A load that is `readonly`, `notrap` and `can_move` stays in sight. It is a function of its address, as the author of the program says:
//!   no store changes it, and it may be placed wherever its address is known. The pass does nothing else with it.
//! * A `select` of 128 bits goes out of sight as well: of one with its comparison, the pass makes a minimum or a maximum,
//!   which x86-64 cannot lower.

use crate::edit::materialize::dce::remove_unused;
use crate::ir::all_insts;
use cranelift_codegen::entity::EntityList;
use cranelift_codegen::ir::{FuncRef, Function, Inst, InstructionData, Opcode, Value, types};

/// The instructions that are out of sight.
pub(super) struct Hidden(Vec<(Inst, InstructionData)>);

impl Hidden {
    /// Takes them out of sight. Until they are [put back](Self::put_back), `func` is for the egraph pass only.
    pub(super) fn take(func: &mut Function) -> Self {
        let mut hidden = Vec::new();
        let insts = all_insts(func);
        hidden.extend(insts.filter(|&inst| is_hidden(func, inst)).map(|inst| (inst, func.dfg.insts[inst])));
        for &(inst, _) in &hidden {
            let mut operands = [Value::from_u32(0); MAX_OPERANDS];
            let count = func.dfg.inst_args(inst).len();
            operands[..count].copy_from_slice(func.dfg.inst_args(inst));
            let args = EntityList::from_slice(&operands[..count], &mut func.dfg.value_lists);
            let func_ref = FuncRef::from_u32(0);
            func.dfg.insts[inst] = InstructionData::Call { opcode: Opcode::Call, args, func_ref };
        }
        Self(hidden)
    }

    /// Puts them back.
    pub(super) fn put_back(self, func: &mut Function) {
        let mut chosen = Vec::new();
        for (inst, data) in self.0 {
            let InstructionData::Call { mut args, .. } = func.dfg.insts[inst] else {
                unreachable!("the egraph pass leaves calls alone")
            };
            let mut operands = [Value::from_u32(0); MAX_OPERANDS];
            let count = args.len(&func.dfg.value_lists);
            operands[..count].copy_from_slice(args.as_slice(&func.dfg.value_lists));
            args.clear(&mut func.dfg.value_lists);
            func.dfg.insts[inst] = data;
            func.dfg.inst_args_mut(inst).copy_from_slice(&operands[..count]);
            if data.opcode() == Opcode::Select && func.layout.inst_block(inst).is_some() {
                chosen.push(func.dfg.first_result(inst));
            }
        }
        if !chosen.is_empty() {
            remove_unused(func, chosen);
        }
    }
}

/// The most operands of an instruction that is hidden: those of a compare-and-swap.
const MAX_OPERANDS: usize = 3;

/// Whether `inst` must not be seen.
fn is_hidden(func: &Function, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    let opcode = data.opcode();
    if opcode == Opcode::Select {
        return func.dfg.ctrl_typevar(inst) == types::I128;
    }
    let is_memory = (opcode.can_load() || opcode.can_store()) && !opcode.is_call() && !opcode.is_terminator();
    is_memory && !is_pure_load(func, data) && func.dfg.inst_args(inst).len() <= MAX_OPERANDS
}

/// Whether it is a load that gives the same for the same address, anywhere and at any time.
fn is_pure_load(func: &Function, data: &InstructionData) -> bool {
    let flags = data.memflags().map(|flags| func.dfg.mem_flags[flags]);
    let is_free = flags.is_some_and(|flags| flags.readonly() && flags.notrap() && flags.can_move());
    data.opcode() == Opcode::Load && is_free
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::context;

    #[test]
    fn all_is_as_it_was() {
        let ctx = context(
            "function %f(i64, i64, i128, i128) -> i64 {
                region0 = 0 \"a\"
                ss0 = explicit_slot 8
                sig0 = (i64)
                fn0 = %g(i64)
            block0(v0: i64, v1: i64, v2: i128, v3: i128):
            @0011 v4 = load.i64 notrap aligned region0 v0+8
            @0012 v5 = uload8.i64 v4
            @0013 store.i64 little user5 v5, v0-8
                istore16 v5, v1
                v6 = atomic_rmw.i64 add v0, v5
                v7 = atomic_cas.i64 v0, v5, v6
                v8 = atomic_load.i64 v7
                atomic_store.i64 v8, v0
                fence
                v9 = load.i64 notrap readonly can_move v0
                call fn0(v9), stack_map=[i64 @ ss0+0]
                v10 = icmp slt v2, v3
                v11 = select v10, v2, v3
                store.i128 v11, v0
                v12 = stack_addr.i64 ss0
                return v9
            }",
        );
        let mut func = ctx.func.clone();
        let hidden = Hidden::take(&mut func);
        let entry = func.layout.entry_block().expect("a block");
        let opcodes: Vec<_> = func.layout.block_insts(entry).map(|inst| func.dfg.insts[inst].opcode()).collect();
        assert!(opcodes.iter().all(|opcode| *opcode == Opcode::Load || !opcode.can_load() || opcode.is_call()));
        assert!(!opcodes.contains(&Opcode::Select));
        hidden.put_back(&mut func);
        assert_eq!(func.display().to_string(), ctx.func.display().to_string());
    }

    #[test]
    fn a_choice_that_nothing_uses_goes() {
        let mut ctx = context(
            "function %f(i128, i128) {
            block0(v0: i128, v1: i128):
                v2 = icmp slt v0, v1
                v3 = select v2, v0, v1
                return
            }",
        );
        Hidden::take(&mut ctx.func).put_back(&mut ctx.func);
        assert!(!ctx.func.display().to_string().contains("select"));
    }
}
