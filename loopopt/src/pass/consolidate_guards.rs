//! Guards again what lost its Spectre guard: one guard for all accesses to one address and near it, instead of one for each.
//!
//! ```text
//!     v8 = iadd v6, v7                            v8 = iadd v6, v7
//!     v9 = load.f64 notrap heap v8                v20 = isub v8, base
//!     v10 = load.f64 notrap heap v8+8     ──►     v21 = icmp uge v20, length - 15
//!     v11 = fadd v9, v10                          v22 = select_spectre_guard v21, 0, v8
//!                                                 v9 = load.f64 notrap heap v22
//!                                                 v10 = load.f64 notrap heap v22+8
//!                                                 v11 = fadd v9, v10
//! ```
//!
//! `version`, `elide_checks` and the rest remove the guards of checks that are proved, if this pass can put others in their place
//! ([`CheckedMemories`]): so addresses are sums that all passes understand, loads move, cells live in registers, iterations are unrolled. What is
//! left then is guarded here by what the address itself is, compared with the memory. Where the original has a guard for each of five accesses
//! of a stencil, or for each iteration, there is one for a row of it, or for an unrolled group.
//!
//! # What a wrong path may touch
//!
//! The processor may run ahead of any branch: the test before a fast loop, the test that ends it, one inside, all at once, and in any
//! order. What it computes from registers there is what the instructions say. Before, each access of the memory is at the result of a
//! guard, which is the address 0, or one at which the access lies within the base and the length that the registers hold.
//!
//! Afterwards too, for each access by itself, whatever path led to it: (S1) it is at the result of a guard of its own, as it came in; or
//! (S2) it is at the result of a guard of a group, plus less than [`MAX_SPAN`] bytes: the guard gives an address from which all of the span
//! lies within base and length, or 0, and at 0 and the [`MAX_SPAN`] bytes after it there is nothing; or (S3) it is at a constant distance from
//! the base, within the least length. In (S2) the comparison and the choice depend on the address by data, not by a branch: `select_spectre_guard` is a
//! conditional move. No proof of a pass is a part of this argument, so no branch that a proof rests on can be mispredicted to its harm.
//! [`check`] asks (S1) to (S3) of the function that comes out, wherever functions are verified.
//!
//! Index masking in WebKit and V8 and speculative load hardening in LLVM (C. Carruth, 2018) rest on the same: what is made safe is the address, by data
//! that the path itself has computed. They guard each access, or carry along whether the path is wrong.
//!
//! # Needs
//!
//! Canonical form.
//!
//! # Legal when
//!
//! (L1) The guard never gives 0 where an access of the group executes: each lies within the memory, and all of a group execute if the first one does. So a
//! group is accesses to one memory and of one block, or of blocks that each iteration of a loop runs through, with nothing between them that may trap, not return or leave
//! the loop, and no inner loop; or such that a guard before them, which has passed, covers.
//! A guard may be placed anywhere: what it gives is used by the accesses only. (L2) The length is that at the accesses: it is loaded right there, or before a loop in
//! which nothing is called and nothing is stored to where base and length are loaded from. What the program has asked, it may have asked before a call,
//! with the length as it was then: so a length that is loaded never gets smaller ([`CheckedMemories`]), and no access is made at a base from before
//! what has moved the memory, as the embedder says with [`SpectreGuards::Consolidate`](crate::SpectreGuards::Consolidate). (L3) Base and length are loaded where the
//! program may load them: right at an access, which was made with both; or where their flags allow that, or the embedder of a length; or where the
//! program has loaded them before, through the same pointers: one that is loaded itself is `readonly`. A pointer that they are loaded from may be null where
//! nothing is accessed.
//!
//! # Pays when
//!
//! It is no choice: what was removed has to be replaced.
//!
//! # Changes
//!
//! Instructions.
//!
//! # References
//!
//! P. Kocher et al., "Spectre Attacks", 2019; C. Carruth, "Speculative Load Hardening", LLVM 2018; F. Pizlo, "What Spectre and Meltdown mean for WebKit", 2018.

mod groups;
mod guard;

use crate::analysis::cfg::loops::{Loop, LoopForest, def_block};
use crate::analysis::memory::alias::Access;
use crate::analysis::memory::available::KnownLoads;
use crate::analysis::memory::checked_memory::{CheckedMemories, NULL_PAGE, Roots};
use crate::analysis::memory::spectre_guard::Guard;
use crate::change::Change;
use crate::claim::Claim;
use crate::edit::materialize::known_loads::replace_loads;
use crate::fault::fault;
use crate::ir::all_insts;
use crate::options::Options;
use crate::pass::{Form, Pass, PassCx};
use crate::refusal::refusals;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::Inst;
use cranelift_codegen::{CodegenError, CodegenResult, Context};
pub(crate) use groups::{Finder, Group, is_barrier, is_quiet};
use guard::guard;
use std::collections::BTreeMap;

/// The name of this pass.
pub(crate) const NAME: &str = "consolidate_guards";

/// The pass.
pub(crate) const PASS: Pass = Pass {
    name: NAME,
    run,
    reasons: &[Decline::REASONS],
    claims: &[Claim::CheckHolds, Claim::CellHolds],
    is_mandatory: true,
    needs: Form::Canonical,
    ..Pass::OPTIONAL
};

/// Bytes that the accesses of a group span: what is sure to trap at address 0.
pub(crate) const MAX_SPAN: i64 = NULL_PAGE as i64;

/// Guards all that needs it.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    if let Some(obstacle) = cx.memories.obstacle {
        decline(ctx, cx, obstacle);
    }
    if cx.memories.is_empty() {
        return Ok(Change::Nothing);
    }
    let change = if fault!(GuardsForgotten) { Change::Nothing } else { guard_all(ctx, cx) };
    if cx.options.verify_each_pass {
        check(ctx, &cx.memories, cx.options).map_err(|what| CodegenError::Unsupported(format!("{NAME}: {what}")))?;
    }
    Ok(change)
}

fn guard_all(ctx: &mut Context, cx: &mut PassCx<'_>) -> Change {
    let forest = cx.forest(ctx);
    let memories = cx.memories.clone();
    let groups = all_groups(ctx, &forest, &memories, cx.options);
    remark(ctx, cx, &forest, &groups);
    let made = guard(ctx, &forest, cx.options, &groups);
    reuse_loads(ctx, cx, &forest, &made);
    if groups.is_empty() { Change::Nothing } else { Change::Insts }
}

fn all_groups<'a>(
    ctx: &Context,
    forest: &LoopForest,
    memories: &'a CheckedMemories,
    options: &Options,
) -> Vec<Group<'a>> {
    let func = &ctx.func;
    let finder = Finder {
        ctx,
        forest,
        unguarded: &mut |inst| memories.unguarded(Roots::new(ctx, options), inst),
        is_barrier: &|inst| is_barrier(func, inst),
    };
    finder.find(ctx.domtree.cfg_rpo().copied())
}

/// Lets the loads that were `made` be what the program has loaded, where that is known and lives in the same loop or an enclosing one.
fn reuse_loads(ctx: &mut Context, cx: &PassCx<'_>, forest: &LoopForest, made: &EntitySet<Inst>) {
    if made.is_empty() {
        return;
    }
    let private = cx.private_slots(ctx);
    let mut known = KnownLoads::new(ctx, forest, cx.options, &private).everywhere();
    known.retain(|&(load, value)| {
        let (home, block) = (def_block(&ctx.func, value), ctx.func.layout.inst_block(load));
        let lives = |home, block| forest.innermost(home).is_none_or(|lp| forest.contains(lp, block));
        made.contains(load) && home.zip(block).is_some_and(|(home, block)| lives(home, block))
    });
    replace_loads(&mut ctx.func, known);
}

/// Says of each loop with a guard, of which nothing may be removed, why that is.
fn decline(ctx: &Context, cx: &mut PassCx<'_>, obstacle: Inst) {
    let (func, forest) = (&ctx.func, cx.forest(ctx));
    for lp in forest.loops() {
        let mut insts = forest.own_blocks(lp).flat_map(|block| func.layout.block_insts(block));
        if insts.any(|inst| Guard::of(func, inst).is_some() && !cx.guard_policy().may_drop(ctx, inst)) {
            cx.declined(func, NAME, forest.data(lp).header, &Decline::UnknownMemory { obstacle });
        }
    }
}

fn remark(ctx: &Context, cx: &mut PassCx<'_>, forest: &LoopForest, groups: &[Group<'_>]) {
    let mut fired = BTreeMap::<Loop, [usize; 2]>::new();
    for group in groups {
        if let Some(lp) = forest.innermost(group.block) {
            let [guards, accesses] = fired.entry(lp).or_default();
            (*guards, *accesses) = (*guards + 1, *accesses + group.accesses.len());
        }
    }
    for (lp, [guards, accesses]) in fired {
        let (guard, access) =
            (if guards == 1 { "guard" } else { "guards" }, if accesses == 1 { "access" } else { "accesses" });
        cx.fired(&ctx.func, &PASS, forest.data(lp).header, format!("{guards} {guard} for {accesses} {access}"));
    }
}

/// Says which access the processor could run ahead with, if any: for `Options::verify_each_pass`.
fn check(ctx: &Context, memories: &CheckedMemories, options: &Options) -> Result<(), String> {
    if memories.is_empty() {
        return Ok(());
    }
    let func = &ctx.func;
    for inst in all_insts(func) {
        let Some(access) = Access::of(func, inst).filter(|access| memories.is_of(access)) else { continue };
        let offset = func.dfg.insts[inst].load_store_offset().map_or(0, i64::from);
        let roots = Roots::new(ctx, options);
        if memories.unguarded(roots, inst).is_some() {
            return Err(format!("{inst} is not guarded"));
        }
        if roots.is_guarded(access.operand) && !(0..=MAX_SPAN - i64::from(access.size)).contains(&offset) {
            return Err(format!("{inst} is far from what its guard gives"));
        }
    }
    Ok(())
}

refusals! {
    /// Why Spectre guards stay as they are.
    enum Decline {
        /// Not each access of a memory is guarded, or something else is made of a guard, or the length may get smaller.
        UnknownMemory { obstacle: Inst }
            => "unknown-memory", "guards stay: {obstacle} touches a memory that is not guarded by one base and one length alone, which only grows",
            help "guard each access to a region, by its distance from one base and one length, and use what the guard gives for it only; and say of a \
                length that is loaded in `Embedder::never_shrinks` if calls let it grow only";
    }
}
