//! Cranelift's own mid-end once more.
//!
//! Copies of blocks have constants where the original had parameters: guards fold, values repeat, checks were done
//! before. Cranelift's egraph pass knows all that, so it runs again instead of a GVN and folder of ours.
//!
//! # Needs
//!
//! Nothing.
//!
//! # Pays when
//!
//! A pass has left something to fold ([`PassCx::wants_cleanup`]). It takes as long as the first run of the egraph pass, half
//! the time of all loop passes together, so it is not done on suspicion. Not in functions in which Cranelift would go wrong.
//!
//! # Changes
//!
//! Everything that `Context::optimize` changes, but NaN canonicalization, which ran before.

use crate::change::Change;
use crate::edit::forget::forget_removed_insts;
use crate::edit::params::remove_redundant_params;
use crate::pass::PassCx;
use cranelift_codegen::ir::{Function, Opcode, types};
use cranelift_codegen::settings::OptLevel;
use cranelift_codegen::{CodegenResult, Context};

/// The name of this pass.
pub(crate) const NAME: &str = "cleanup";

/// The reasons for which it leaves a loop alone.
pub(crate) const REASONS: &[&str] = &[];

/// Runs it if it is wanted, unless the embedder compiles without optimization. Asks for another round: a loop inside another
/// one may have gone, and a header that was too large may be small enough.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let wanted = std::mem::take(&mut cx.wants_cleanup);
    if !wanted || !is_possible(&ctx.func, cx) {
        return Ok(Change::Nothing);
    }
    remove_redundant_params(ctx);
    ctx.egraph_pass(cx.isa, cx.ctrl_plane)?;
    ctx.eliminate_unreachable_code(cx.isa)?;
    forget_removed_insts(&mut ctx.func);
    cx.wants_another_round = true;
    Ok(Change::Cfg)
}

/// Whether it would run if it were wanted.
pub(crate) fn is_possible(func: &Function, cx: &PassCx<'_>) -> bool {
    cx.isa.flags().opt_level() != OptLevel::None && is_safe(func)
}

/// Whether Cranelift 0.135.8 can be trusted with what another run may find. Not so
///
/// * if loads without an alias region and stores with one are in the function: the pass takes them for independent, and
///   forwards what was loaded before the store (wasmtime#14323, undecided there);
/// * if there is a `select` of 128 bits: with its comparison, the pass makes a minimum or maximum of it, which x86-64 cannot
///   lower.
///
/// The first run may have met neither, because edges or blocks stood between.
fn is_safe(func: &Function) -> bool {
    let (mut bare_load, mut tagged_store, mut wide_select) = (false, false, false);
    for block in &func.layout {
        for inst in func.layout.block_insts(block) {
            let data = &func.dfg.insts[inst];
            let is_tagged = || data.memflags().is_some_and(|flags| func.dfg.mem_flags[flags].alias_region().is_some());
            bare_load |= data.opcode().can_load() && !is_tagged();
            tagged_store |= data.opcode().can_store() && is_tagged();
            wide_select |= data.opcode() == Opcode::Select && func.dfg.ctrl_typevar(inst) == types::I128;
        }
    }
    let goes_wrong = (bare_load && tagged_store) || wide_select;
    !goes_wrong
}
