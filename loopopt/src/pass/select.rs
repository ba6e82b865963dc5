//! Which loops are optimized: those in which a pass can gain something.
//!
//! Called once, before anything is built. A loop that is skipped is no loop for the passes: it gets no canonical form, and its blocks are code
//! like that outside of loops. It is a cycle that [the forest](crate::analysis::cfg::loops) does not know, as an irreducible one is, so that no
//! analysis can rest on there being none. Its inner loops are loops as before. No loop is skipped inside one that is not.
//!
//! # Skipped are
//!
//! * Loops that dispatch: each iteration reaches a `br_table` on what it computed, and most paths from there go back to the header by
//!   themselves. Interpreters are such loops, and functions that can be resumed, as those of Go are. Their time is spent in mispredicted
//!   branches; no path through the loop knows what the next one is, so that there is little to gain, and copying or moving code makes the
//!   prediction worse as often as better.
//! * Loops with very many instructions of their own, those of their inner loops not counted. What is saved in one iteration is little
//!   beside the rest, and each pass would look at all of it.
//! * Loops that spend their time in what they call: each iteration makes a call, or enters a loop that is of one of these kinds, and has few
//!   other instructions for each of them. If there is an inner loop of another kind, such a loop is not skipped: the range of its counter is
//!   what makes that one faster.
//!
//! A function with dynamic vectors stays as it is: Cranelift says that they have 0 bytes, and an access of 0 bytes overlaps no other one.
//!
//! # Left to the passes that cost little
//!
//! Larger loops that call often, in whatever branch, get the passes of [`Effort::Quick`](crate::Effort::Quick): what a call may change ends what is
//! known of memory and registers, so that rotation and the order of blocks are most of what can be won, and the time of the other passes grows
//! with the size of the loop.
//!
//! With `Options::ignore_cost` all passes look at all loops; in stress mode some nests are skipped, at random.

use crate::analysis::cfg::edges::{Edge, edges_into};
use crate::analysis::cfg::loops::{Loop, LoopData, LoopForest};
use crate::ir::all_mem_flags;
use crate::options::Options;
use crate::pass::PassCx;
use crate::refusal::refusals;
use cranelift_codegen::Context;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::Block;

/// Whether the function stays as it is, whatever loops and stack slots it has; says so of each loop in the name of the pass `name`. Linear in the number of its values.
pub(crate) fn leaves_alone(ctx: &Context, cx: &mut PassCx<'_>, name: &'static str) -> bool {
    /// Kinds of memory flags above which a function stays as it is. Cranelift numbers them with 16 bits and panics beyond that, and passes make a few of
    /// each.
    const MAX_FLAGS: usize = 10_000;
    let dfg = &ctx.func.dfg;
    let why = if all_mem_flags(&ctx.func).nth(MAX_FLAGS).is_some() {
        Skip::TooManyFlags { max: MAX_FLAGS }
    } else if dfg.values().any(|value| dfg.value_type(value).is_dynamic_vector()) {
        Skip::DynamicVectors
    } else {
        return false;
    };
    let forest = cx.forest(ctx);
    for lp in forest.loops() {
        cx.declined(&ctx.func, name, forest.data(lp).header, &why);
    }
    true
}

/// Settles which loops are looked at, and says why others are not in the name of the pass `name`. Returns whether there is anything to look at.
/// Linear in the function's size.
pub(crate) fn run(ctx: &Context, cx: &mut PassCx<'_>, name: &'static str) -> bool {
    let forest = cx.forest(ctx);
    let Some(first) = forest.loops().next() else { return !forest.irreducible().is_empty() };
    let (loops, max) = (forest.len(), cx.options.max_loops);
    if loops > max {
        cx.declined(&ctx.func, name, forest.data(first).header, &Skip::TooManyLoops { loops, max });
        return false;
    }
    let judged = judge(ctx, cx, &forest);
    if let Some(insts) = cx.options.too_many_insts(&ctx.func) {
        let why = Skip::LargeFunction { insts, max: cx.options.full_effort_max_insts };
        for lp in forest.loops().filter(|&lp| forest.data(lp).parent.is_none()) {
            cx.declined(&ctx.func, name, forest.data(lp).header, &why);
        }
    }
    let rest = loops - judged.iter().filter(|judged| judged.is_skipped).count();
    for Judged { header, why, is_skipped } in judged {
        if let Some(why) = why {
            cx.declined(&ctx.func, name, header, &why);
        }
        match is_skipped {
            true => cx.skip(header),
            false => cx.marks.add_quick(header),
        }
    }
    rest > 0 || !forest.irreducible().is_empty()
}

/// A loop that not all passes look at.
struct Judged {
    header: Block,
    /// Stress mode needs no reason.
    why: Option<Skip>,
    /// Whether no pass looks at it, or those that cost little do.
    is_skipped: bool,
}

/// The loops that not all passes look at.
fn judge(ctx: &Context, cx: &PassCx<'_>, forest: &LoopForest) -> Vec<Judged> {
    let reasons = if cx.options.ignore_cost { SecondaryMap::new() } else { reasons(ctx, cx.options, forest) };
    let mut skipped = SecondaryMap::<Loop, bool>::with_capacity(forest.len());
    let mut judged = Vec::new();
    for lp in forest.loops() {
        let LoopData { header, parent, .. } = *forest.data(lp);
        let why = reasons[lp];
        let is_futile = match cx.options.ignore_cost {
            true => cx.fuel.skips(header.as_u32()),
            false => why.is_some_and(Skip::is_futile),
        };
        let is_skipped = is_futile && parent.is_none_or(|parent| skipped[parent]);
        skipped[lp] = is_skipped;
        if is_skipped || why.is_some_and(|why| !why.is_futile()) {
            judged.push(Judged { header, why, is_skipped });
        }
    }
    judged
}

/// For each loop in which little or nothing is to be won, why.
fn reasons(ctx: &Context, options: &Options, forest: &LoopForest) -> SecondaryMap<Loop, Option<Skip>> {
    let mut reasons = SecondaryMap::<Loop, Option<Skip>>::with_capacity(forest.len());
    let mut inside = SecondaryMap::<Loop, Inside>::with_capacity(forest.len());
    for lp in forest.loops().rev() {
        let own = Own::of(ctx, forest, lp);
        let paths = if own.dispatches { paths_back(ctx, forest, lp) } else { 0 };
        let (insts, max_insts) = (own.insts, options.select_max_own_insts);
        let calls = own.calls + inside[lp].futile;
        reasons[lp] = if paths > options.select_max_dispatched {
            Some(Skip::Dispatches { paths })
        } else if insts > max_insts {
            Some(Skip::TooLarge { insts, max: max_insts })
        } else if calls > 0 && !inside[lp].has_other && insts <= calls.saturating_mul(options.select_max_insts_per_call)
        {
            Some(Skip::SpentInCalls)
        } else if insts > options.full_effort_min_insts
            && insts <= own.hot_calls.saturating_mul(options.full_effort_min_insts_per_call)
        {
            Some(Skip::CallsOften { insts, calls: own.hot_calls })
        } else {
            None
        };
        let Some(parent) = forest.data(lp).parent else { continue };
        inside[parent].has_other |= !reasons[lp].is_some_and(Skip::is_futile);
        inside[parent].futile +=
            usize::from(forest.is_in_each_iteration(&ctx.func, &ctx.domtree, parent, forest.data(lp).header));
    }
    reasons
}

/// The loops directly inside a loop.
#[derive(Clone, Copy, Default)]
struct Inside {
    /// Those that each iteration enters.
    futile: usize,
    /// Whether there is something to be won in one of them.
    has_other: bool,
}

/// What a loop has of its own, without its inner loops.
#[derive(Default)]
struct Own {
    insts: usize,
    /// Calls that each iteration makes.
    calls: usize,
    /// Calls in blocks that are not cold.
    hot_calls: usize,
    /// Whether each iteration reaches a `br_table` on what the loop computes.
    dispatches: bool,
}

impl Own {
    fn of(ctx: &Context, forest: &LoopForest, lp: Loop) -> Self {
        let (func, mut own) = (&ctx.func, Self::default());
        for block in forest.own_blocks(lp) {
            let mut calls = 0;
            for inst in func.layout.block_insts(block) {
                own.insts += 1;
                calls += usize::from(func.dfg.insts[inst].opcode().is_call());
            }
            if !func.layout.is_cold(block) {
                own.hot_calls += calls;
            }
            let dispatches = forest.dispatches_at(func, lp, block);
            if (calls > 0 || dispatches) && forest.is_in_each_iteration(&ctx.func, &ctx.domtree, lp, block) {
                own.calls += calls;
                own.dispatches |= dispatches;
            }
        }
        own
    }
}

/// How many edges that are not cold lead to the end of an iteration: back edges, or edges into the latch if there is one.
fn paths_back(ctx: &Context, forest: &LoopForest, lp: Loop) -> usize {
    let func = &ctx.func;
    let is_hot = |edge: &Edge| !func.layout.is_cold(edge.source(func));
    match forest.latch(func, lp) {
        Some(latch) => edges_into(func, &ctx.cfg, latch).filter(is_hot).count(),
        None => forest.data(lp).back_edges.iter().filter(|edge| is_hot(edge)).count(),
    }
}

impl Skip {
    /// Whether nothing is to be won, and not just little.
    fn is_futile(self) -> bool {
        !matches!(self, Self::CallsOften { .. })
    }
}

refusals! {
    /// Why a loop is not looked at, or not by all passes.
    #[derive(Clone, Copy)]
    pub(crate) enum Skip {
        /// There are more loops than [`Options::max_loops`](crate::Options::max_loops) allows.
        TooManyLoops { loops: usize, max: usize } => "too-many-loops",
            "the function has {loops} loops, more than {max}",
            help "raise Options::max_loops, or split the function";
        /// The function has more kinds of memory flags than there is room for.
        TooManyFlags { max: usize } => "too-many-memory-flags",
            "the function has more than {max} kinds of memory flags, and there may be no room for those that passes need",
            help "let the front end use fewer alias regions in one function";
        /// The function has vectors of which nobody knows the size.
        DynamicVectors => "dynamic-vectors", "the function has dynamic vectors, which may overlap anything: nothing says how many bytes they have";
        /// The function has more instructions than [`Options::full_effort_max_insts`](crate::Options::full_effort_max_insts) allows.
        LargeFunction { insts: usize, max: usize } => "large-function",
            "the function has {insts} instructions, more than {max}: only the passes that cost little look at its loops",
            help "raise Options::full_effort_max_insts, or split the function";
        /// A table picks the path through each iteration.
        Dispatches { paths: usize } => "dispatch-loop", "in each iteration a table picks one of {paths} paths back to the header",
            help "raise Options::select_max_dispatched if one path is taken nearly always";
        /// Each iteration calls, and does little else.
        SpentInCalls => "spent-in-calls", "each iteration calls a function, or enters a loop that does, and does little else",
            help "let the front end inline what is called, if it is short; or lower Options::select_max_insts_per_call";
        /// The loop calls so often that the passes that cost much would find little.
        CallsOften { insts: usize, calls: usize } => "calls-often",
            "{calls} calls in {insts} instructions: only the passes that cost little look at the loop",
            help "let the front end inline what is called, or mark the blocks of calls that are rare as cold";
        /// The loop has so much code of its own that little can be saved.
        TooLarge { insts: usize, max: usize } => "too-large",
            "the loop has {insts} instructions of its own, more than {max}",
            help "raise Options::select_max_own_insts if few of them run in one iteration";
    }
}
