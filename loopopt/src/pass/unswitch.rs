//! Unswitching: a branch that takes the same edge in each iteration is decided once, before the loop.
//!
//! ```text
//! preheader                      preheader: v1?
//!     │                          /           \
//!     ▼                         ▼             ▼
//!   header ◄──┐             header ◄──┐    header' ◄──┐
//!     │ v1?   │                 │     │       │       │
//!    / \      │      ──►        a     │       b'      │
//!   a   b     │                 │     │       │       │
//!    \ /      │               latch ──┘     latch' ───┘
//!   latch ────┘                 │             │
//!     │                         └──► exit ◄───┘
//!     ▼
//!    exit
//! ```
//!
//! Each arm of the branch gets a version of the loop that holds what can be reached through it. The largest of them is the loop
//! itself, the others are copies of just what they need: a branch that leaves the loop at once costs no copy at all (LLVM calls
//! that trivial). All versions are equal: none is slow, and the other passes go on with each.
//!
//! A `br_table` gets one version for each of its targets, and a `select` two, if it pays. A branch on what a branch before the loop
//! has tested already is settled without a copy.
//!
//! Other branches on the same condition are settled along with the first.
//!
//! Of a branch on `a & b` or `a | b`, of which one side is loop-invariant, one version asks for the other side, and the other one for nothing.
//!
//! # Needs
//!
//! Canonical form, and makes it if there is something to do and it was lost.
//!
//! # Legal when
//!
//! (L1) The condition is computed outside the loop, or by a few pure instructions that can move before it. Computing it early
//! is no effect: there is no undefined value in CLIF. A condition that depends on a load in the loop waits for `licm`. (L2) What is in
//! more than one version may be copied. (L3) A `select` of which a Spectre guard asks stays, unless guards may be dropped: the branch that would decide it
//! can be mispredicted, and a choice by data cannot ([`asked_by_guards`]). (L4) A part of a condition decides it if both parts are 0 or 1: `a & b` is 0 if `a` is, and
//! `b` if not; `a | b` is 1 if `a` is, and `b` if not.
//!
//! # Pays when
//!
//! (P1) both arms go on normally: a branch to a trap is a check, and checks are `version`'s, which keeps the loop that traps out
//! of the way; (P2) the instructions that the versions add, times the versions that the loop has already, are not many:
//! so they cannot multiply; (P3) there are not too many versions; (P4) neither the loop nor the branch is cold; (P5) a `select` is
//! enough to do without: the instructions for the other value are deleted as well. (P6) If there is an inner loop, the branch is
//! in it, or costs nothing to decide: beside a loop it takes no time. (P7) The function may not grow without limit. (P8) The search
//! may not take long: of each loop some branches are looked at, and each look takes blocks of an allowance that grows with the function.
//!
//! The branch leaves the outermost loop for which that holds, one loop at a time otherwise.
//!
//! # Changes
//!
//! Blocks and edges. What the decisions have left unused is removed at once.
//!
//! # Not done
//!
//! A `select` on a condition of which a part is invariant. A part of a part.
//!
//! # References
//!
//! LLVM `SimpleLoopUnswitch.cpp` (50 instructions, a cost multiplier for the copies there are), GCC `tree-ssa-loop-unswitch.cc`
//! (50), HotSpot `loopUnswitch.cpp` (3 times); llvm#50387, llvm#63962, openj9#17249 for what goes wrong.

mod apply;
mod candidates;
mod why;

use crate::analysis::cfg::edges::{Edge, code_size, copied_size};
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::memory::spectre_guard::asked_by_guards;
use crate::change::Change;
use crate::claim::Claim;
use crate::options::Options;
use crate::pass::copying::{Denied, granted};
use crate::pass::{Pass, PassCx};
use apply::apply;
use candidates::{Candidate, Deciders, Decision, Found, MAX_CANDIDATES, candidates, known_arm};
use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::ir::{Block, Function, Inst};
use cranelift_codegen::{CodegenResult, Context, FxHashSet};
use std::cell::{Cell, OnceCell};
use std::fmt::Write;
use why::Decline;

/// The name of this pass.
pub(crate) const NAME: &str = "unswitch";

/// The pass.
pub(crate) const PASS: Pass = Pass {
    name: NAME,
    run,
    reasons: &[Decline::REASONS, Denied::REASONS],
    claims: &[Claim::BranchTaken, Claim::ConditionKnown],
    copies: true,
    ..Pass::OPTIONAL
};

/// The most conditions that are taken out of one loop, or of those that it has become, before the other passes look again.
const MAX_RUNS: usize = 8;

/// Unswitches all loops that can be and should be.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let (mut touched, mut pending) = (None, Change::Nothing);
    for _ in 0..MAX_RUNS {
        let plans =
            granted(ctx, cx, NAME, |ctx, cx| plan(ctx, cx, touched.as_ref()), |plan| (plan.header, plan.copied))?;
        if plans.is_empty() {
            break;
        }
        touched = Some(apply(ctx, cx, &plans)?);
        pending = Change::Insts;
    }
    Ok(pending)
}

/// The loops to unswitch, none inside another. If there are any `touched`, only these headers' loops and their enclosing loops: for the
/// others, the answer is what it was.
fn plan(ctx: &Context, cx: &mut PassCx<'_>, touched: Option<&FxHashSet<Block>>) -> Vec<Plan> {
    let mut plans = Vec::new();
    let forest = cx.forest(ctx);
    let wanted = touched.map(|touched| with_loops_around(&forest, touched));
    let is_wanted = |lp: Loop| wanted.as_ref().is_none_or(|wanted| wanted.contains(lp));
    let (options, asked) = (cx.options, OnceCell::new());
    let stays = |select: Inst| {
        let asked = asked.get_or_init(|| asked_by_guards(ctx, options));
        asked.contains(ctx.func.dfg.first_result(select))
    };
    let mut found = candidates(&ctx.func, &forest, options, (is_wanted, stays));
    let any = found.values().flat_map(|found| &found.candidates).any(|candidate| candidate.why_not().is_none());
    let sizes = if any { sizes(&ctx.func, &forest) } else { Sizes::default() };
    let deciders = if any { Deciders::of(&ctx.func, &forest, stays) } else { Deciders::default() };
    let blocks = ctx.func.dfg.num_blocks();
    let left = Cell::new(*cx.unswitch_looks.get_or_insert(blocks.saturating_mul(cx.options.unswitch_max_looks)));
    let mut done = EntitySet::new();
    for lp in forest.loops() {
        let data = forest.data(lp);
        if data.parent.is_some_and(|parent| done.contains(parent)) {
            done.insert(lp);
            continue;
        }
        if !is_wanted(lp) || !cx.marks.has_full_effort(data.header) {
            continue;
        }
        let [entry] = data.entries[..] else { continue };
        let (options, versions) = (cx.options, cx.marks.versions(data.header));
        let search = Search { ctx, forest: &forest, sizes: &sizes, deciders: &deciders, left: &left, options };
        match (Looks { search, lp, entry, versions }).best(found.remove(&lp).unwrap_or_default()) {
            Ok(plan) => {
                done.insert(lp);
                plans.push(plan);
            }
            Err(why) if !cx.has_fired(NAME, data.header) => cx.declined(&ctx.func, NAME, data.header, &why),
            Err(_) => {}
        }
    }
    cx.unswitch_looks = Some(left.get());
    plans
}

/// The loops of these headers, and all enclosing loops.
fn with_loops_around(forest: &LoopForest, headers: &FxHashSet<Block>) -> EntitySet<Loop> {
    let mut loops = EntitySet::with_capacity(forest.len());
    for lp in forest.loops().filter(|&lp| headers.contains(&forest.data(lp).header)) {
        let mut next = Some(lp);
        while let Some(lp) = next.filter(|&lp| loops.insert(lp)) {
            next = forest.data(lp).parent;
        }
    }
    loops
}

/// What is known of the function, for all of its loops.
#[derive(Clone, Copy)]
struct Search<'a> {
    ctx: &'a Context,
    forest: &'a LoopForest,
    options: &'a Options,
    sizes: &'a Sizes,
    deciders: &'a Deciders,
    /// How many blocks may still be looked at.
    left: &'a Cell<usize>,
}

/// A loop, and what decides about it.
struct Looks<'a> {
    search: Search<'a>,
    lp: Loop,
    entry: Edge,
    /// How many loops there are that were this one when the function came in.
    versions: usize,
}

impl Looks<'_> {
    /// The candidate that adds the fewest instructions, as far as they are looked at.
    fn best(&self, found: Found) -> Result<Plan, Decline> {
        let Found { candidates, mut others } = found;
        let mut best: Result<Plan, Decline> = Err(Decline::NothingInvariant);
        for candidate in candidates {
            if self.search.left.get() == 0 {
                others += 1;
                continue;
            }
            let least = best.as_ref().map_or(usize::MAX, |best| best.copied);
            let plan = self.prove(candidate, least).and_then(|plan| self.judge(plan));
            best = match (best, plan) {
                (Ok(best), Ok(plan)) if plan.copied < best.copied => Ok(plan),
                (Ok(best), _) => Ok(best),
                (Err(_), Ok(plan)) => Ok(plan),
                (Err(one), Err(other)) => Err(if other.rank() > one.rank() { other } else { one }),
            };
        }
        if others > 0 { best.map_err(|_| Decline::SearchTooLong { others }) } else { best }
    }

    /// Whether it is legal. It is not looked at to the end if it copies `least` instructions or more: another is as good.
    fn prove(&self, candidate: Candidate, least: usize) -> Result<Plan, Decline> {
        let Self { search: Search { ctx, forest, options, .. }, lp, entry, .. } = *self;
        let func = &ctx.func;
        if let Some(why) = candidate.why_not() {
            return Err(why);
        }
        let max = options.unswitch_max_versions.max(MAX_CANDIDATES);
        if candidate.arms() > max {
            return Err(Decline::TooManyVersions { versions: candidate.arms(), max });
        }
        let header = forest.data(lp).header;
        let decision = Decision::of(func, self.search.deciders, &candidate, |block| forest.contains(lp, block));
        let known = known_arm(ctx, &candidate, entry.source(func));
        let arms: Vec<usize> = known.map_or_else(|| (0..candidate.arms()).collect(), |arm| vec![arm]);
        let mut parts: Vec<Part> = arms.into_iter().map(|arm| Part::new(func, arm, header)).collect();
        let growth = self.walk(&mut parts, &decision, least)?;
        let stays = (0..parts.len()).rev().max_by_key(|&index| parts[index].copied).expect("a branch has an arm");
        parts.swap(0, stays);
        let blocks = forest.blocks(lp);
        let twice = |&&block: &&Block| parts.iter().filter(|part| part.blocks.contains(block)).count() > 1;
        let mut insts = blocks.iter().filter(twice).flat_map(|&block| func.layout.block_insts(block));
        if let Some(inst) = insts.find(|&inst| !forest.is_duplicable(func, inst)) {
            return Err(Decline::NotDuplicable(func.dfg.insts[inst].opcode()));
        }
        // What is in one version only may move there, but for a block that is named.
        let moves = |block: &Block| parts[1..].iter().any(|part| part.blocks.contains(*block));
        if let Some(&block) = blocks.iter().find(|&&block| moves(&block) && forest.is_named(block)) {
            let call = func.layout.last_inst(block).expect("a block that is named ends in a call");
            return Err(Decline::NotDuplicable(func.dfg.insts[call].opcode()));
        }
        Ok(Plan {
            header,
            entry,
            inner: blocks.iter().filter_map(|&block| forest.loop_of_header(block)).collect(),
            size: blocks.iter().map(|&block| self.search.sizes[block].counted as usize).sum(),
            growth,
            copied: parts[1..].iter().map(|part| part.copied).sum(),
            all_blocks: blocks.to_vec(),
            candidate,
            decision,
            parts,
        })
    }

    /// Walks through the loop for each of these arms, and returns by how many instructions the loop grows: by what the arms have in
    /// common. They go side by side, so that much in common is found early, and a large loop is not walked through for nothing.
    fn walk(&self, parts: &mut [Part], decision: &Decision, least: usize) -> Result<usize, Decline> {
        let Search { ctx, options, sizes, left, .. } = self.search;
        let max = if options.ignore_cost { usize::MAX } else { options.unswitch_max_insts };
        let mut seen = EntitySet::with_capacity(ctx.func.dfg.num_blocks());
        let (mut growth, mut goes_on) = (0_usize, true);
        while goes_on {
            goes_on = false;
            for part in &mut *parts {
                let Some(block) = part.stack.pop() else { continue };
                goes_on = true;
                left.set(left.get().saturating_sub(1));
                part.step(block, self, decision);
                if !seen.insert(block) {
                    growth += sizes[block].counted as usize;
                }
            }
            // The largest part stays as it is. What the others hold only grows.
            let largest = parts.iter().map(|part| part.copied).max().unwrap_or(0);
            let copied = parts.iter().map(|part| part.copied).sum::<usize>() - largest;
            if growth.saturating_mul(self.versions) > max || copied >= least {
                return Err(Decline::TooLarge { insts: growth, versions: self.versions, max });
            }
        }
        Ok(growth)
    }

    fn judge(&self, plan: Plan) -> Result<Plan, Decline> {
        let Search { ctx, options, .. } = self.search;
        let loops = plan.parts.iter().filter(|part| part.loops).count();
        let versions = self.versions + loops.saturating_sub(1);
        if versions > options.unswitch_max_versions.max(self.versions) {
            return Err(Decline::TooManyVersions { versions, max: options.unswitch_max_versions });
        }
        if options.ignore_cost && plan.copied > options.unswitch_max_copied {
            let max = options.unswitch_max_copied;
            return Err(Decline::TooLarge { insts: plan.growth, versions: self.versions, max });
        }
        if plan.growth > 0 && plan.candidate.is_beside_loop && !options.ignore_cost {
            return Err(Decline::BesideLoop);
        }
        if plan.parts.len() > 1 && !options.ignore_cost && ctx.func.is_effectively_cold(plan.header) {
            return Err(Decline::Cold);
        }
        Ok(plan)
    }
}

/// What can be reached in a loop if a branch takes one arm.
struct Part {
    arm: usize,
    blocks: EntitySet<Block>,
    /// Blocks of it from which the walk has not gone on yet.
    stack: Vec<Block>,
    /// Whether its back edge stays.
    loops: bool,
    /// Instructions without constants and jumps.
    size: usize,
    /// All instructions.
    copied: usize,
}

impl Part {
    fn new(func: &Function, arm: usize, header: Block) -> Self {
        let mut blocks = EntitySet::with_capacity(func.dfg.num_blocks());
        blocks.insert(header);
        Self { arm, blocks, stack: vec![header], loops: false, size: 0, copied: 0 }
    }

    /// Goes on from a block of it.
    fn step(&mut self, block: Block, looks: &Looks<'_>, decision: &Decision) {
        let Looks { search: Search { ctx, forest, sizes, .. }, lp, .. } = *looks;
        let header = forest.data(lp).header;
        self.size += sizes[block].counted as usize;
        self.copied += sizes[block].all as usize;
        decision.successors_in_arm(&ctx.func, block, self.arm, |next| {
            self.loops |= next == header;
            if forest.contains(lp, next) && self.blocks.insert(next) {
                self.stack.push(next);
            }
        });
    }
}

/// How many instructions a block holds.
#[derive(Clone, Copy, Default)]
struct Size {
    all: u32,
    /// Without constants and jumps.
    counted: u32,
}

/// The sizes of the blocks in loops.
type Sizes = SecondaryMap<Block, Size>;

fn sizes(func: &Function, forest: &LoopForest) -> Sizes {
    let mut sizes = Sizes::with_capacity(func.dfg.num_blocks());
    for block in func.layout.blocks().filter(|&block| forest.innermost(block).is_some()) {
        let size = &mut sizes[block];
        for inst in func.layout.block_insts(block) {
            let [all, counted] = [copied_size(func, inst), code_size(func, inst)].map(|size| size as u32);
            (size.all, size.counted) = (size.all.saturating_add(all), size.counted.saturating_add(counted));
        }
    }
    sizes
}

/// An unswitching that is legal.
struct Plan {
    header: Block,
    /// The jump of the preheader.
    entry: Edge,
    all_blocks: Vec<Block>,
    /// The loop and its inner loops.
    inner: Vec<Loop>,
    candidate: Candidate,
    decision: Decision,
    /// The versions of the loop, the loop itself first. One only if the arm is known.
    parts: Vec<Part>,
    /// Instructions in the loop, without constants and jumps.
    size: usize,
    /// What the versions have in common, counted in the same way: the largest of them is the loop as it was, or less.
    growth: usize,
    /// Instructions in the copies.
    copied: usize,
}

impl Plan {
    fn describe(&self, func: &Function) -> String {
        let what = if self.candidate.is_select() { "select" } else { "branch" };
        let at = self.candidate.inst;
        let block = func.layout.inst_block(at).expect("an instruction of the loop");
        let mut text = format!("the {what} of {block} on {} is ", self.candidate.condition);
        let added = self.parts[1..].iter().map(|part| part.size).sum::<usize>();
        let _ = match self.parts.len() {
            1 => write!(text, "decided before the loop already"),
            arms => write!(text, "decided before the loop, with {arms} successors"),
        };
        if added > 0 {
            let _ = write!(text, " (instructions: {} before, {added} in copies)", self.size);
        }
        text
    }
}
