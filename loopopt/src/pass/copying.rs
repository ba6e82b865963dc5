//! What the passes that copy loops have in common: they need canonical form, room in the function, and fuel for each loop.

use crate::change::Change;
use crate::pass::{PassCx, canon};
use crate::remark::Refusal;
use cranelift_codegen::ir::Block;
use cranelift_codegen::{CodegenResult, Context};
use std::fmt;

/// What `plan` finds to do for `pass`, with canonical form made first if there is anything and it was lost, as far as there is room
/// and fuel. Says of the others why not. `size` gives the header of the loop of a plan, and how many instructions the copies add.
pub(crate) fn granted<P>(
    ctx: &mut Context,
    cx: &mut PassCx<'_>,
    pass: &'static str,
    mut plan: impl FnMut(&Context, &mut PassCx<'_>) -> Vec<P>,
    size: impl Fn(&P) -> (Block, usize),
) -> CodegenResult<(Vec<P>, Change)> {
    let mut change = Change::Nothing;
    let mut plans = plan(ctx, cx);
    if !plans.is_empty() && !cx.is_canonical {
        change = canon::restore(ctx, cx)?;
        plans = plan(ctx, cx);
    }
    let mut room = if plans.is_empty() { 0 } else { cx.room(&ctx.func) };
    plans.retain(|plan| {
        let (header, copied) = size(plan);
        let denied = if copied > room {
            Denied::FunctionTooLarge { copied, max: cx.options.max_function_insts }
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
    Ok((plans, change))
}

/// Why a copy that would be made is not.
enum Denied {
    /// The function has grown too much already.
    FunctionTooLarge { copied: usize, max: usize },
    /// Fuel is used up, or stress mode says no.
    Withheld,
}

impl Refusal for Denied {
    fn slug(&self) -> &'static str {
        match self {
            Self::FunctionTooLarge { .. } => "function-too-large",
            Self::Withheld => "withheld",
        }
    }

    fn help(&self) -> &'static str {
        match self {
            Self::FunctionTooLarge { .. } => "split the function, or raise Options::max_function_insts",
            Self::Withheld => "",
        }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FunctionTooLarge { copied, max } => {
                write!(f, "with {copied} instructions more, the function would have more than {max}")
            }
            Self::Withheld => write!(f, "withheld: the fuel is used up, or stress mode says no"),
        }
    }
}
