//! Remove what cannot be reached, and forget what is not in the layout.
//!
//! An instruction that was replaced stays in the data-flow graph, and can share the argument lists of its branch with the
//! instruction that replaced it: Cranelift's egraph pass makes a `jump` of a `brif` like that. Once the list of the one
//! grows or shrinks, that of the other is invalid, and `resolve_all_aliases`, which looks at all instructions, panics.
//!
//! The address of a handler stays where it is when the block that it names cannot be reached and is removed. The call of
//! that block is never on the stack, so nobody resumes there, and any number will do; lowering the address would panic. It becomes one that
//! is not null, as addresses of code are not, and where there is no code.

use crate::analysis::cfg::handlers::{all_insts, named_by};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::ir::{Function, InstBuilder, InstructionData, Opcode};
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{CodegenResult, Context};

/// Removes the blocks that cannot be reached. Needs `ctx.cfg` and `ctx.domtree`, and keeps them.
pub(crate) fn remove_unreachable(ctx: &mut Context, isa: &dyn TargetIsa) -> CodegenResult<()> {
    if !ctx.func.dfg.exception_tables.is_empty() {
        forget_unreachable_handlers(&mut ctx.func, &ctx.domtree);
    }
    ctx.eliminate_unreachable_code(isa)?;
    forget_removed_insts(&mut ctx.func);
    Ok(())
}

/// Makes each instruction that is not in the layout a `nop`.
pub(crate) fn forget_removed_insts(func: &mut Function) {
    for inst in all_insts(func) {
        if func.layout.inst_block(inst).is_none() {
            func.dfg.insts[inst] = InstructionData::NullAry { opcode: Opcode::Nop };
        }
    }
}

/// Makes constants of the addresses of handlers of calls that cannot be reached.
fn forget_unreachable_handlers(func: &mut Function, domtree: &DominatorTree) {
    for inst in all_insts(func) {
        if named_by(&func.dfg.insts[inst]).is_some_and(|block| !domtree.is_reachable(block)) {
            let ty = func.dfg.value_type(func.dfg.first_result(inst));
            func.replace(inst).iconst(ty, -1);
        }
    }
}
