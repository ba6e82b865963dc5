//! Load elimination in unrolled loops: what one iteration of a group has loaded or stored, the next ones need not load.
//!
//! ```text
//! header(v1: i64):                          header(v1: i64):
//!     v2 = load.f64 v1-8                        v2 = load.f64 v1-8
//!     v3 = load.f64 v1                          v3 = load.f64 v1
//!     v4 = load.f64 v1+8                        v4 = load.f64 v1+8
//!     ...                              ──►      ...
//!     v12 = load.f64 v1      ; the second       v14 = load.f64 v1+16
//!     v13 = load.f64 v1+8    ; iteration        ; v12 is v3, and v13 is v4
//!     v14 = load.f64 v1+16
//! ```
//!
//! A filter with three points loads each of them three times. In a group of four iterations six loads do for twelve. Nothing is carried from one group to the
//! next: that would take registers in which to wait, and moves between them.
//!
//! # Needs
//!
//! Nothing.
//!
//! # Legal when
//!
//! (L1) What memory holds is [known](crate::analysis::memory::available) from an access before it in the same group. Where a store comes between, it
//! is [told apart](crate::analysis::memory::told_apart): [`version`](crate::pass::version) tests that for such loops.
//!
//! # Pays when
//!
//! Always: a load less in each group, and the value is needed in a register a little longer.
//!
//! # Changes
//!
//! Instructions.
//!
//! # Not done
//!
//! Loops that are not unrolled: a value that waits for the next iteration takes a move, and a load is not more than that.
//!
//! # References
//!
//! Callahan, Carr and Kennedy, "Improving register allocation for subscripted variables", 1990; V8's `LoadElimination`.

use crate::analysis::cfg::must_execute::Order;
use crate::analysis::memory::available::KnownLoads;
use crate::change::Change;
use crate::claim::Claim;
use crate::edit::materialize::known_loads::replace_loads;
use crate::pass::{Pass, PassCx};
use crate::refusal::refusals;
use cranelift_codegen::{CodegenResult, Context};

/// The name of this pass.
pub(crate) const NAME: &str = "load_elimination";

/// The pass.
pub(crate) const PASS: Pass =
    Pass { name: NAME, run, reasons: &[Decline::REASONS], claims: &[Claim::CellHolds], ..Pass::OPTIONAL };

/// Does it in all loops that are unrolled. Linear in their size.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    if cx.unrolled.is_empty() {
        return Ok(Change::Nothing);
    }
    let forest = cx.forest(ctx);
    let headers = forest.loops().map(|lp| (lp, forest.data(lp).header));
    let groups: Vec<_> = headers.filter(|(_, header)| cx.unrolled.contains(header)).collect();
    let (order, private, options) = (Order::of(&ctx.func, &ctx.domtree), cx.private_slots(ctx), cx.options);
    let mut known = KnownLoads::new(ctx, &forest, options, &private);
    let mut found = Vec::new();
    for (lp, header) in groups {
        let loads = known.in_iteration(&order.sorted(forest.blocks(lp)));
        if loads.is_empty() {
            cx.declined(&ctx.func, NAME, header, &Decline::NothingReloaded);
        } else if !cx.fuel.take() {
            cx.declined(&ctx.func, NAME, header, &Decline::Withheld);
        } else {
            cx.retract(NAME, header);
            let loaded = if loads.len() == 1 { "one load".into() } else { format!("{} loads", loads.len()) };
            cx.fired(&ctx.func, &PASS, header, format!("{loaded} of what the iterations before have in registers"));
            found.extend(loads);
        }
    }
    if found.is_empty() {
        return Ok(Change::Nothing);
    }
    replace_loads(&mut ctx.func, found);
    Ok(Change::Insts)
}

refusals! {
    /// Why no load of a group goes.
    pub(crate) enum Decline {
        /// No iteration loads what one before it in the group has loaded or stored, as far as can be seen.
        NothingReloaded => "nothing-reloaded",
            "no iteration of a group loads what one before it has loaded or stored, or a store in between may change it";
    }
    shared { Withheld }
}
