//! Live-range splitting: a loop that does not call has values of its own in a loop that does.
//!
//! ```text
//! outer:                              outer:
//!     brif v1, rare, next                 brif v1, rare, next
//! rare cold:                          rare cold:
//!     call f()                            call f()
//!     jump next                           jump next
//! next:                               next:
//!     jump header                         jump header(v2)
//! header:  ◄──────────┐      ──►      header(v9):  ◄──────────┐
//!     v3 = load v2    │                   v3 = load v9        │
//!     …               │                   …                   │
//!     brif v4, header ┘                   brif v4, header(v9) ┘
//!             else outer                          else outer
//! ```
//!
//! A value that lives across a call and gets no preserved register is on the stack there. Cranelift's allocator (regalloc2 0.15) splits its live
//! range at the call and at uses, not where the inner loop is entered, and then often loads the value in each iteration and stores it again,
//! though it is loop-invariant. A parameter that the loop passes to itself has a live range without the call: it is loaded once, where the loop
//! is entered. Where it can share the register of the value, it costs nothing.
//!
//! # Needs
//!
//! Nothing. Comes last: a parameter that is always the same value would be removed by passes that look for such.
//!
//! # Legal when
//!
//! Always: the parameter is the value.
//!
//! # Pays when
//!
//! (P1) The loop does not call, and is the outermost such loop in one that does, in cold code or not. (P2) It uses values from outside of that one, which
//! are no constants: these are recomputed where they are used. (P3) There are registers for them in the loop.
//!
//! # Changes
//!
//! Parameters and arguments.
//!
//! # References
//!
//! Region splitting around loops, as LLVM's greedy allocator does it (`SplitKit`, `RAGreedy::tryRegionSplit`).

use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::inst::effects::calls;
use crate::analysis::pressure::{Pressure, used_from_outside};
use crate::change::Change;
use crate::edit::ssa::own_values::give_own_values;
use crate::pass::{Pass, PassCx};
use crate::refusal::refusals;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Function, Value};
use cranelift_codegen::{CodegenResult, Context};

/// The name of this pass.
pub(crate) const NAME: &str = "split_live_ranges";

/// The pass.
pub(crate) const PASS: Pass =
    Pass { name: NAME, run, reasons: &[Decline::REASONS], claims: &[], pays_alone: false, ..Pass::OPTIONAL };

/// Splits the live ranges of all loops where it pays.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let forest = cx.forest(ctx);
    let calling = loops_that_call(&ctx.func, &forest);
    let mut change = Change::Nothing;
    for lp in forest.loops() {
        let Some(around) = forest.data(lp).parent.filter(|&around| calling[around] && !calling[lp]) else { continue };
        let header = forest.data(lp).header;
        match Plan::judge(ctx, &forest, (lp, around), cx) {
            Ok(plan) if cx.fuel.take() => {
                let message = format!("{} values have a live range of their own in the loop", plan.values.len());
                cx.fired(&ctx.func, &PASS, header, message);
                let data = forest.data(lp);
                let edges = [&data.entries[..], &data.back_edges[..]];
                give_own_values(&mut ctx.func, (header, forest.blocks(lp)), edges, &plan.values);
                change = Change::Insts;
            }
            Ok(_) => cx.declined(&ctx.func, NAME, header, &Decline::Withheld),
            Err(why) => cx.declined(&ctx.func, NAME, header, &why),
        }
    }
    Ok(change)
}

/// For each loop whether it calls, be it in an inner loop.
fn loops_that_call(func: &Function, forest: &LoopForest) -> SecondaryMap<Loop, bool> {
    let mut found = SecondaryMap::new();
    for lp in forest.loops().rev() {
        found[lp] |= forest.own_blocks(lp).any(|block| calls(func, block));
        if let Some(parent) = forest.data(lp).parent {
            found[parent] |= found[lp];
        }
    }
    found
}

struct Plan {
    /// What the loop uses from outside of the outer loop.
    values: Vec<Value>,
}

impl Plan {
    fn judge(ctx: &Context, forest: &LoopForest, (lp, around): (Loop, Loop), cx: &PassCx<'_>) -> Result<Self, Decline> {
        let func = &ctx.func;
        let data = forest.data(lp);
        if func.is_effectively_cold(data.header) {
            return Err(Decline::ColdLoop);
        }
        let values = used_from_outside(func, forest, (lp, around));
        if values.is_empty() {
            return Err(Decline::NothingLives);
        }
        let (needed, available) = Pressure::of(func, forest, lp, cx.isa, &cx.use_counts).needed();
        if !cx.options.ignore_cost && (0..2).any(|class| needed[class] > available[class]) {
            return Err(Decline::Pressure);
        }
        Ok(Self { values })
    }
}

refusals! {
    /// Why a loop uses the values of the outer loop.
    enum Decline {
        /// (P2) Nothing from outside is used.
        NothingLives => "nothing-lives", "it uses no value that is live across the calls of the enclosing loop";
        /// (P3) There are not enough registers.
        Pressure => "pressure", "more lives through the loop than there are registers";
    }
    shared { ColdLoop, Withheld }
}
