//! Load elimination: what an iteration has loaded or stored, it need not load again.
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
//! It runs twice. Before [`promote`](crate::pass::promote) carries to the next iteration what one has loaded, in all innermost loops: `cleanup` has looked for such loads, but before the egraph pass
//! made equal addresses one value and `widen_indices` put them in a form in which more of them are known not to overlap, and what is loaded once makes
//! an iteration smaller. And in the unrolled loops, for what their iterations share.
//!
//! # Needs
//!
//! Nothing.
//!
//! # Legal when
//!
//! (L1) What memory holds is [known](crate::analysis::memory::available) from an access before it in the same iteration, or group of iterations. Where a store
//! comes between, it is [proved disjoint](crate::analysis::memory::disjoint): [`version`](crate::pass::version) tests that for loops that are unrolled.
//!
//! # Pays when
//!
//! Always: a load less in each iteration, and the value is needed in a register a little longer.
//!
//! # Changes
//!
//! Instructions.
//!
//! # Not done
//!
//! What the iteration before has loaded, if it is in another group: a value that waits for the next iteration takes a move, and a load is not more than that.
//!
//! # References
//!
//! Callahan, Carr and Kennedy, "Improving register allocation for subscripted variables", 1990; V8's `LoadElimination`.

use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::cfg::must_execute::Order;
use crate::analysis::memory::available::{KnownLoads, Scope};
use crate::change::Change;
use crate::claim::Claim;
use crate::edit::materialize::known_loads::replace_loads;
use crate::pass::{Pass, PassCx};
use crate::refusal::refusals;
use cranelift_codegen::{CodegenResult, Context};

/// The name of this pass.
pub(crate) const NAME: &str = "load_elimination";

/// The pass, as it runs before anything is carried, and loops are unrolled.
pub(crate) const PASS: Pass =
    Pass { name: NAME, run, reasons: &[Decline::REASONS], claims: &[Claim::CellHolds], ..Pass::OPTIONAL };

/// The pass, as it runs after that.
pub(crate) const IN_GROUPS: Pass = Pass { run: run_in_groups, ..PASS };

/// Does it in all innermost loops. Linear in their size. Loops that load nothing twice get no remark.
fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let forest = cx.forest(ctx);
    let innermost = forest.loops().filter(|&lp| forest.is_innermost(lp)).collect();
    Ok(eliminate(ctx, cx, (&forest, innermost), Scope::Iteration))
}

/// Does it in all loops that are unrolled. Linear in their size.
fn run_in_groups(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    if cx.marks.unrolled.is_empty() {
        return Ok(Change::Nothing);
    }
    let forest = cx.forest(ctx);
    let groups = forest.loops().filter(|&lp| cx.marks.unrolled.contains(&forest.data(lp).header)).collect();
    Ok(eliminate(ctx, cx, (&forest, groups), Scope::Group))
}

/// Does it in `loops`, each of which has an iteration of this kind.
fn eliminate(
    ctx: &mut Context,
    cx: &mut PassCx<'_>,
    (forest, loops): (&LoopForest, Vec<Loop>),
    scope: Scope,
) -> Change {
    let (order, private, options) = (Order::of(&ctx.func, &ctx.domtree), cx.private_slots(ctx), cx.options);
    let mut known = KnownLoads::new(ctx, forest, options, &private);
    let mut found = Vec::new();
    for lp in loops {
        let header = forest.data(lp).header;
        let loads = known.inside(scope, &order.sorted(forest.blocks(lp)));
        if loads.is_empty() {
            if cx.marks.unrolled.contains(&header) {
                cx.declined(&ctx.func, NAME, header, &Decline::NothingReloaded);
            }
        } else if !cx.fuel.take() {
            cx.declined(&ctx.func, NAME, header, &Decline::Withheld);
        } else {
            cx.retract(NAME, header);
            let loaded = if loads.len() == 1 { "one load".into() } else { format!("{} loads", loads.len()) };
            cx.fired(&ctx.func, &PASS, header, format!("{loaded} of what is in registers already"));
            if scope == Scope::Iteration {
                // Checks of what was loaded twice are one check.
                cx.reopen_checks(&ctx.func, forest.blocks(lp));
            }
            found.extend(loads);
        }
    }
    if found.is_empty() {
        return Change::Nothing;
    }
    replace_loads(&mut ctx.func, found);
    Change::Insts
}

refusals! {
    /// Why no load of a group is removed.
    pub(crate) enum Decline {
        /// No iteration loads what one before it in the group has loaded or stored, as far as can be seen.
        NothingReloaded => "nothing-reloaded",
            "no iteration of a group loads what one before it has loaded or stored, or a store in between may change it";
    }
    shared { Withheld }
}
