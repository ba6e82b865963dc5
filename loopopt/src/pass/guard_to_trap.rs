//! Unguarding: a checked access through a Spectre guard becomes a check that traps, and a plain access after it.
//!
//! ```text
//! v1 = icmp ugt index, last               v1 = icmp ugt index, last
//! v2 = iadd base, index                   v2 = iadd base, index
//! v3 = select_spectre_guard v1, 0, v2     trapnz v1, heap_oob
//! load heap v3                      ──►   load notrap heap v2
//! ```
//!
//! A guard costs a comparison, a conditional move and a register for each access, and the address waits for both: a check costs a
//! comparison and a jump that is not taken, for which nothing waits. And a check is what the other passes can do something about: what
//! it proves holds for all that it dominates, so that `elide_checks` removes those it implies, and the access does not trap any more.
//!
//! This is for the whole function: what is outside of its loops may be in a loop that calls it. Remarks on that are at its entry.
//!
//! # Needs
//!
//! Nothing.
//!
//! # Legal when
//!
//! (L1) The embedder says that guards may be removed once their condition is proved. After the check it is: where the guard would have
//! given 0, the check has trapped, at the same place and with the code with which the access at 0 traps, as the embedder says of
//! checked accesses ([`Embedder::is_checked`](crate::Embedder::is_checked)). A guard stays for accesses that are not plain loads
//! and stores, and for those with an offset, which need not trap at 0.
//!
//! # Pays when
//!
//! Always.
//!
//! # Changes
//!
//! Instructions.
//!
//! # References
//!
//! Wasmtime's `bounds_checks.rs`, which emits the one or the other, by a setting for all code.

use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::memory::alias::address_operand;
use crate::analysis::memory::spectre_guard::{self, Guard};
use crate::change::Change;
use crate::edit::materialize::dce::remove_unused;
use crate::edit::materialize::drop_trap_flags::trust_at;
use crate::embedder::SpectreGuards;
use crate::fault::fault;
use crate::options::Options;
use crate::pass::{Pass, PassCx};
use crate::refusal::refusals;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::ir::{Block, Function, Inst, InstBuilder, TrapCode, Value};
use cranelift_codegen::{CodegenResult, Context, FxHashMap};
use smallvec::SmallVec;

/// The name of this pass.
pub(crate) const NAME: &str = "guard_to_trap";

/// The pass.
pub(crate) const PASS: Pass = Pass { name: NAME, run, reasons: &[Decline::REASONS], claims: &[], ..Pass::OPTIONAL };

/// Checks of one guard that are remembered. 8: a field of an object that is read and written, in both arms of a branch.
const MAX_REMEMBERED: usize = 8;

/// Unguards all accesses.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let forest = cx.forest(ctx);
    let any_checked = cx.options.has_checked(&ctx.func);
    let mut checked = Checked::default();
    let mut addresses = Vec::new();
    for place in forest.loops().map(Some).chain([None]) {
        if place.is_some_and(|lp| cx.marks.is_in_slow_version(&forest, lp)) {
            continue;
        }
        let accesses = if any_checked { accesses(&ctx.func, cx, &forest, place) } else { Vec::new() };
        let header = place.map(|lp| forest.data(lp).header).or(ctx.func.layout.entry_block());
        let Some(header) = header.filter(|_| place.is_some() || !accesses.is_empty()) else { continue };
        for access in granted(ctx, cx, header, accesses) {
            addresses.push(access.address);
            access.apply(&mut ctx.func, &ctx.domtree, &mut checked);
        }
    }
    if addresses.is_empty() {
        return Ok(Change::Nothing);
    }
    remove_unused(&mut ctx.func, addresses);
    Ok(Change::Insts)
}

/// Whether there is something to do in a function, whatever its loops are.
pub(crate) fn has_guards(func: &Function, options: &Options) -> bool {
    options.embedder.spectre_guards() == SpectreGuards::Drop && spectre_guard::has_guards(func)
}

/// Those of the accesses that may be unguarded.
fn granted(ctx: &Context, cx: &mut PassCx<'_>, header: Block, accesses: Vec<Guarded>) -> Vec<Guarded> {
    let may_go = cx.options.embedder.spectre_guards() == SpectreGuards::Drop;
    let count = accesses.len();
    let granted: Vec<_> = accesses.into_iter().filter(|_| may_go && cx.fuel.take()).collect();
    match (count, granted.len()) {
        (_, done @ 1..) => {
            cx.retract(NAME, header);
            cx.fired(&ctx.func, &PASS, header, format!("{done} accesses are checked by a branch, and not guarded"));
        }
        (0, _) if cx.has_fired(NAME, header) => {}
        (0, _) => cx.declined(&ctx.func, NAME, header, &Decline::NoGuardedAccess),
        (count, _) if !may_go => cx.declined(&ctx.func, NAME, header, &Decline::GuardsStay { count }),
        _ => cx.declined(&ctx.func, NAME, header, &Decline::Withheld),
    }
    granted
}

/// An access through a guard.
struct Guarded {
    inst: Inst,
    /// What the guard gives.
    address: Value,
    guard: Guard,
    code: TrapCode,
}

/// The checks that were made, by the condition, whether it has to hold, and the trap.
type Checked = FxHashMap<(Value, bool, TrapCode), SmallVec<[Inst; 2]>>;

/// The accesses that are checked by a guard: in a loop without its inner loops, or outside of all loops.
fn accesses(func: &Function, cx: &PassCx<'_>, forest: &LoopForest, place: Option<Loop>) -> Vec<Guarded> {
    let find = |block| func.layout.block_insts(block).filter_map(|inst| Guarded::of(func, cx, inst));
    match place {
        Some(lp) => forest.own_blocks(lp).flat_map(find).collect(),
        None => func.layout.blocks().filter(|&block| forest.innermost(block).is_none()).flat_map(find).collect(),
    }
}

impl Guarded {
    fn of(func: &Function, cx: &PassCx<'_>, inst: Inst) -> Option<Self> {
        let address = address_operand(func, inst)?;
        let guard = Guard::that_gives(func, address)?;
        let flags = func.dfg.mem_flags[func.dfg.insts[inst].memflags()?];
        let is_plain = func.dfg.insts[inst].load_store_offset() == Some(0) && cx.options.is_checked(func, flags);
        is_plain.then_some(Self { inst, address, guard, code: flags.trap_code()? })
    }

    /// Makes the check, unless it has been made on the path here, and removes the guard of the access.
    fn apply(&self, func: &mut Function, domtree: &DominatorTree, checked: &mut Checked) {
        let Guard { condition, holds, gives } = self.guard;
        let before = checked.entry((condition, holds, self.code)).or_default();
        if !before.iter().any(|&check| domtree.dominates(check, self.inst, &func.layout)) {
            let srcloc = func.srcloc(self.inst);
            let mut cursor = FuncCursor::new(func).at_inst(self.inst).with_srcloc(srcloc);
            let is_inverted = fault!(UnguardedInverted);
            let check = match holds != is_inverted {
                true => cursor.ins().trapz(condition, self.code),
                false => cursor.ins().trapnz(condition, self.code),
            };
            if before.len() < MAX_REMEMBERED {
                before.push(check);
            }
        }
        trust_at(func, self.inst, gives);
    }
}

refusals! {
    /// Why a Spectre guard stays.
    enum Decline {
        /// No access in the loop is at what a guard gives, or none of which the embedder knows that it is checked.
        NoGuardedAccess => "no-guarded-access", "no access is known to be checked by a guard";
        /// (L1) The embedder wants them to stay.
        GuardsStay { count: usize } => "guards-stay", "{count} accesses are guarded, and the embedder wants that",
            help "say `SpectreGuards::Drop` in `Embedder::spectre_guards` if the guards need not hold in speculation";
    }
    shared { Withheld }
}
