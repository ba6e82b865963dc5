//! What the passes that copy loops have in common: they need canonical form, room in the function, and fuel for each loop.

use crate::pass::{Form, PassCx, canon};
use crate::refusal::refusals;
use cranelift_codegen::ir::Block;
use cranelift_codegen::{CodegenResult, Context};

/// What `plan` finds to do for `pass`, with canonical form made first if there is anything and it was lost, as far as there is room
/// and fuel. Says of the others why not. `size` gives the header of the loop of a plan, and how many instructions the copies add.
pub(crate) fn granted<P>(
    ctx: &mut Context,
    cx: &mut PassCx<'_>,
    pass: &'static str,
    mut plan: impl FnMut(&Context, &mut PassCx<'_>) -> Vec<P>,
    size: impl Fn(&P) -> (Block, usize),
) -> CodegenResult<Vec<P>> {
    let mut plans = plan(ctx, cx);
    if !plans.is_empty() && cx.form < Form::Canonical {
        canon::restore(ctx, cx)?;
        plans = plan(ctx, cx);
    }
    let mut room = if plans.is_empty() { 0 } else { cx.room(&ctx.func) };
    plans.retain(|plan| {
        let (header, copied) = size(plan);
        let denied = if copied > room {
            Denied::FunctionTooLarge(copied, cx.options.max_function_insts)
        } else if !cx.fuel.take() {
            Denied::Withheld
        } else {
            room -= copied;
            return true;
        };
        cx.declined(&ctx.func, pass, header, &denied);
        false
    });
    if cx.gave_up {
        plans.clear();
    }
    Ok(plans)
}

refusals! {
    /// Why a copy that would be made is not.
    pub(crate) enum Denied {}
    shared { FunctionTooLarge(copied: usize, max: usize), Withheld }
}
