//! What was recorded of the loops of a function ([`profile`](crate::profile)), for the passes that follow.
//!
//! ```text
//!     block3:                         block3 cold:
//!         …               ──►             …
//! ```
//!
//! # Needs
//!
//! Canonical form, which the loops had when they were recorded. It does nothing but for [`Profiling::Use`].
//!
//! # Legal when
//!
//! Always. A block is marked as cold, which says nothing of what it does. All else is remembered for passes that ask if something pays.
//! A loop is found by a hash of its instructions: where these have changed, it is `stale`. If the hash were the same by chance, or the file was
//! written by hand, what follows is slower and not wrong.
//!
//! # Pays when
//!
//! (P1) A block is cold if it ran less than once in so many iterations ([`Options::profile_cold_ratio`](crate::Options::profile_cold_ratio)),
//! and so did all blocks that it dominates, those of inner loops among them, and there were enough to know. An exit block of an inner loop that is not rare
//! is not cold either.
//!
//! # Changes
//!
//! Marks of blocks.
//!
//! # References
//!
//! GCC and LLVM for coldness from profiles (`hot-bb-count-fraction`, `profile-summary-cutoff-cold`).

use crate::analysis::profiled::{Frequencies, MAX_INSTS, sites};
use crate::change::Change;
use crate::pass::{Form, Pass, PassCx};
use crate::profile::{LoopProfile, LoopSites, Profiling};
use crate::refusal::refusals;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::Block;
use cranelift_codegen::{CodegenResult, Context, FxHashMap, FxHashSet};

/// The name of this pass.
pub(crate) const NAME: &str = "apply_profile";

/// The pass.
pub(crate) const PASS: Pass = Pass {
    name: NAME,
    run,
    reasons: &[Decline::REASONS, Unrecorded::REASONS],
    pays_alone: false,
    needs: Form::Canonical,
    keeps: Form::Canonical,
    ..Pass::OPTIONAL
};

/// How often a loop has to have reached its header for its blocks to be judged. 100: with a share of 1 %, a block that did not run.
const MIN_ITERATIONS: u64 = 100;

/// Does it for all loops, once. Linear in the size of the function.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let Profiling::Use(profile) = &cx.options.profiling else { return Ok(Change::Nothing) };
    if std::mem::replace(&mut cx.is_profiled, true) {
        return Ok(Change::Nothing);
    }
    let forest = cx.forest(ctx);
    let recorded = profile.functions.get(&ctx.func.name.to_string()).map_or(&[][..], |function| &function.loops);
    // Of several with one key, the first counts.
    let by_key: FxHashMap<&str, &LoopProfile> = recorded.iter().rev().map(|lp| (&*lp.key, lp)).collect();
    let all = sites(ctx, &forest);
    decline_large(ctx, cx, &all, NAME);
    let mut found = Vec::new();
    for sites in all {
        match by_key.get(&*sites.key).map(|&lp| (lp, lp.fits(&sites))) {
            Some((lp, true)) => found.push((sites, lp.clone())),
            Some((_, false)) => cx.declined(&ctx.func, NAME, sites.header, &Decline::Damaged),
            None => cx.declined(&ctx.func, NAME, sites.header, &Decline::Stale),
        }
    }
    let frequencies = Frequencies::of(&forest, &found);
    let mut change = Change::Nothing;
    for (sites, recorded) in &found {
        if recorded.entries() == 0 && recorded.back_edges == 0 {
            cx.declined(&ctx.func, NAME, sites.header, &Decline::NeverRan);
            continue;
        }
        let rare = rare(ctx, cx, sites, &frequencies);
        if !cx.fuel.take() {
            cx.declined(&ctx.func, NAME, sites.header, &Decline::Withheld);
            continue;
        }
        cx.fired(&ctx.func, &PASS, sites.header, describe(recorded, &rare));
        for block in rare {
            ctx.func.layout.set_cold(block);
            change = Change::Insts;
        }
        cx.marks.add_usual(sites.header, recorded);
    }
    cx.recorded = Some(Recorded { loops: found, frequencies });
    Ok(change)
}

/// Remarks why nothing is recorded of the loops that are not among `all`.
pub(super) fn decline_large(ctx: &Context, cx: &mut PassCx<'_>, all: &[LoopSites], pass: &'static str) {
    let recorded: FxHashSet<Block> = all.iter().map(|sites| sites.header).collect();
    let forest = cx.forest(ctx);
    for header in forest.loops().map(|lp| forest.data(lp).header).filter(|header| !recorded.contains(header)) {
        cx.declined(&ctx.func, pass, header, &Unrecorded::TooLarge { max: MAX_INSTS });
    }
}

/// What was recorded of the loops of a function.
pub(crate) struct Recorded {
    pub(crate) loops: Vec<(LoopSites, LoopProfile)>,
    pub(crate) frequencies: Frequencies,
}

/// The blocks of a loop that hardly ever run, do not lead to one that does, and are not marked as cold.
fn rare(ctx: &Context, cx: &mut PassCx<'_>, sites: &LoopSites, frequencies: &Frequencies) -> Vec<Block> {
    let iterations = frequencies.of_block(sites.header);
    let forest = cx.forest(ctx);
    let Some(lp) = forest.loop_of_header(sites.header).filter(|_| iterations >= MIN_ITERATIONS) else {
        return Vec::new();
    };
    let ratio = cx.options.profile_cold_ratio.max(1);
    let is_hot = |block: Block| frequencies.of_block(block) >= (iterations / ratio).max(1);
    let mut hot: Vec<Block> = forest.blocks(lp).iter().copied().filter(|&block| is_hot(block)).collect();
    // A loop that is seldom entered may run for long: it is left as seldom.
    for inner in hot.clone().into_iter().filter_map(|block| forest.loop_of_header(block)).filter(|&inner| inner != lp) {
        let data = forest.data(inner);
        let entries: u64 = data.entries.iter().map(|entry| frequencies.of_block(entry.source(&ctx.func))).sum();
        let ends = data.exits.iter().map(|exit| exit.target(&ctx.func));
        hot.extend(ends.filter(|&end| forest.contains(lp, end) && frequencies.of_block(end) >= entries / ratio));
    }
    let mut leads_to_hot = EntitySet::new();
    for block in hot {
        let mut next = Some(block);
        while let Some(block) = next.filter(|&block| leads_to_hot.insert(block) && block != sites.header) {
            next = ctx.domtree.idom(block);
        }
    }
    let is_rare = |&block: &Block| !leads_to_hot.contains(block) && !ctx.func.layout.is_cold(block);
    sites.blocks.iter().copied().filter(is_rare).collect()
}

fn describe(recorded: &LoopProfile, rare: &[Block]) -> String {
    let entries = recorded.entries();
    let usual = match recorded.usual_back_edges() {
        None => "it was never left".to_owned(),
        Some(usual) => format!("entered {entries} times, it took its back edge {usual} times on average"),
    };
    match rare {
        [] => usual,
        _ => format!("{usual}; {} blocks are cold", rare.len()),
    }
}

refusals! {
    /// Why nothing is recorded of a loop.
    pub(super) enum Unrecorded {
        /// There is too much to tell it by.
        TooLarge { max: usize } => "too-large", "the loop has more than {max} instructions";
    }
}

refusals! {
    /// Why what was recorded of a loop is not used.
    enum Decline {
        /// There is nothing about a loop like this.
        Stale => "stale", "the profile has no such loop in a function of this name",
            help "record it again: the loop, or its function's name, has changed";
        /// It cannot have been recorded of this loop.
        Damaged => "damaged", "what the profile says of the loop is about other numbers of blocks and values",
            help "record it again: the profile was edited, or comes from another version of loopopt";
        /// The loop was not run.
        NeverRan => "never-ran", "the loop did not run when the profile was recorded";
    }
    shared { Withheld }
}
