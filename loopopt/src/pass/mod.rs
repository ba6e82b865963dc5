//! The passes. Each proves that a rewrite is legal, judges whether it pays, and applies it.

pub(crate) mod again;
pub(crate) mod apply_profile;
pub(crate) mod canon;
pub(crate) mod cleanup;
pub(crate) mod consolidate_guards;
pub(crate) mod copying;
pub(crate) mod elide_checks;
pub(crate) mod final_values;
pub(crate) mod forward_select_load;
pub(crate) mod full_unroll;
pub(crate) mod fuse_exit_tests;
pub(crate) mod guard_to_trap;
pub(crate) mod gvn_sink;
pub(crate) mod layout;
pub(crate) mod leave_canonical_form;
pub(crate) mod licm;
pub(crate) mod load_elimination;
pub(crate) mod mem2reg;
pub(crate) mod order_latch;
pub(crate) mod partial_unroll;
pub(crate) mod peel;
pub(crate) mod promote;
pub(crate) mod propagate_equality;
pub(crate) mod reassociate;
pub(crate) mod record_profile;
pub(crate) mod rotate;
pub(crate) mod save_at_cold_calls;
pub(crate) mod sink;
pub(crate) mod specialize;
pub(crate) mod split_at_cold_edges;
pub(crate) mod split_iterations;
pub(crate) mod split_latch;
pub(crate) mod split_live_ranges;
pub(crate) mod strip_mine;
pub(crate) mod tail_duplicate;
pub(crate) mod thread_jumps;
pub(crate) mod transfer;
pub(crate) mod unswitch;
pub(crate) mod version;
pub(crate) mod widen_indices;

use crate::analysis::cfg::flow::KnownEdges;
use crate::analysis::cfg::handlers::NamedBlocks;
use crate::analysis::cfg::loops::{Loop, LoopData, LoopForest};
use crate::analysis::memory::alias::PrivateSlots;
use crate::analysis::memory::checked_memory::{CheckedMemories, Roots};
use crate::analysis::memory::told_apart::ToldApart;
use crate::analysis::pressure::UseCounts;
use crate::analysis::scev::exit_count::{self, TripCount};
use crate::change::Change;
use crate::claim::Claim;
use crate::edit::cfg::unreachable::remove_unreachable;
use crate::embedder::SpectreGuards;
use crate::fault::fault;
use crate::fuel::Fuel;
use crate::optimizer::Analyses;
use crate::options::Options;
use crate::pass::again::Again;
use crate::pass::apply_profile::Recorded;
use crate::profile::LoopProfile;
use crate::refusal::Refusal;
use crate::remark::RemarkLog;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{Block, Function, Inst};
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{CodegenResult, Context, FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;

/// How far the loops of a function are in the form that passes need, each including those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Form {
    /// Whatever the program has.
    Any,
    /// Loop-closed form: values leave loops through parameters of exit blocks.
    Closed,
    /// Canonical form: also one preheader, one back edge and dedicated exits for each loop.
    Canonical,
}

/// Which Spectre guards may go once their conditions are proved.
#[derive(Clone)]
pub(crate) struct GuardPolicy<'a> {
    pub(crate) options: &'a Options,
    /// Whether there is any.
    pub(crate) has_guards: bool,
    pub(crate) memories: Rc<CheckedMemories>,
}

impl GuardPolicy<'_> {
    /// Whether any may. Asked first: what follows is asked of each access.
    pub(crate) fn may_drop_any(&self) -> bool {
        self.has_guards
            && match self.options.embedder.spectre_guards() {
                SpectreGuards::Keep => false,
                SpectreGuards::Consolidate => !self.memories.is_empty(),
                SpectreGuards::Drop => true,
            }
    }

    /// Whether `guard` may: for good, or because [`consolidate_guards`] puts another one in its place.
    pub(crate) fn may_drop(&self, ctx: &Context, guard: Inst) -> bool {
        match self.options.embedder.spectre_guards() {
            SpectreGuards::Keep => false,
            SpectreGuards::Consolidate => self.memories.covers(Roots::new(ctx, self.options), guard),
            SpectreGuards::Drop => true,
        }
    }
}

/// A pass and its contract.
///
/// `ctx.cfg` and `ctx.domtree` are valid when it runs, no block is unreachable and no value is an alias. The driver restores that after
/// it, as the change that it returns demands.
pub(crate) struct Pass {
    /// Also the name of its module, and of the pass in options and remarks.
    pub(crate) name: &'static str,
    /// Does it. Returns the part of its changes that graph, dominator tree and loops do not know yet.
    pub(crate) run: fn(&mut Context, &mut PassCx<'_>) -> CodegenResult<Change>,
    /// Whether it runs whatever the options enable, because others rest on it. It takes no fuel.
    pub(crate) is_mandatory: bool,
    /// Whether a function is changed for its sake alone. If not, a function in which nothing else fired stays as it came in.
    pub(crate) pays_alone: bool,
    /// Whether its rewrites make code larger by copies of it. Where size counts, it does not run.
    pub(crate) copies: bool,
    /// The form in which the loops are when it runs. Checked if each pass is verified.
    pub(crate) needs: Form,
    /// The form that it brings all loops into. If they are in it, it does not run. Checked if each pass is verified.
    pub(crate) makes: Form,
    /// The form that is kept if it changes edges.
    pub(crate) keeps: Form,
    /// The reasons for which it leaves a loop as it is: the tables of its refusals.
    pub(crate) reasons: &'static [&'static [&'static str]],
    /// What its rewrites rest on.
    pub(crate) claims: &'static [Claim],
}

impl Pass {
    /// What most passes have in common.
    pub(crate) const OPTIONAL: Self = Self {
        name: "",
        run: |_, _| Ok(Change::Nothing),
        is_mandatory: false,
        pays_alone: true,
        copies: false,
        needs: Form::Any,
        makes: Form::Any,
        keeps: Form::Any,
        reasons: &[],
        claims: &[],
    };
}

/// What passes share in one run.
pub(crate) struct PassCx<'a> {
    pub(crate) options: &'a Options,
    pub(crate) isa: &'a dyn TargetIsa,
    pub(crate) ctrl_plane: &'a mut ControlPlane,
    pub(crate) remarks: RemarkLog,
    pub(crate) fuel: &'a mut Fuel,
    /// Whether a pass has left something to fold, so that `cleanup` pays.
    pub(crate) wants_cleanup: bool,
    /// What is looked at in another round.
    again: Again,
    /// The form that all loops are in.
    pub(crate) form: Form,
    /// How much the pass that runs has changed, as far as graph, dominator tree and loops know it.
    changed: Change,
    /// Whether a pass fired that is worth a change of the function.
    pub(crate) has_paid: bool,
    /// Whether the function has to stay as it was after all.
    pub(crate) gave_up: bool,
    /// How many blocks `unswitch` may still look at. Nothing as long as it has not looked.
    pub(crate) unswitch_looks: Option<usize>,
    /// For each header that a pass made, the header of the same loop in the function as it came in.
    origins: FxHashMap<Block, Block>,
    /// For headers of loops that were peeled, how many iterations were taken out.
    peeled: FxHashMap<Block, usize>,
    /// For headers of loops of the function as it came in, how many loops they have become, if that is more than one.
    versions: FxHashMap<Block, usize>,
    /// Checks that nothing implies. To ask again in each round would cost more than it gives.
    pub(crate) open_checks: FxHashSet<Inst>,
    /// The headers of loops that run only if something did not hold that the same loop without checks rests on.
    slow: FxHashSet<Block>,
    /// The headers of loops around a fast loop, which they come back to from the rare part that has left it.
    around: FxHashSet<Block>,
    /// The headers of loops that do what is left after another loop, by `split_iterations`.
    rests: FxHashSet<Block>,
    /// The headers of loops of which an iteration is several of the loop as it came in, by `partial_unroll`.
    pub(crate) unrolled: FxHashSet<Block>,
    /// The headers of loops around strips, and whether the strip is counted by a test of its own.
    strips: FxHashMap<Block, bool>,
    /// How often what passes look at was made.
    pub(crate) analyses: Analyses,
    /// Whether no two blocks can be merged: all were, and no edge has changed since.
    pub(crate) is_merged: bool,
    /// The headers of loops that are not looked at.
    skipped: FxHashSet<Block>,
    /// The headers, as the function came in, of loops that only the passes of [`Effort::Quick`](crate::Effort::Quick) look at.
    quick: FxHashSet<Block>,
    /// Whether the function came in with a Spectre guard. Without one, it never has any.
    pub(crate) has_guards: bool,
    /// The memories whose guards may be consolidated.
    pub(crate) memories: Rc<CheckedMemories>,
    forest: Option<Rc<LoopForest>>,
    named: Option<NamedBlocks>,
    edges: KnownEdges,
    /// Exit counts by formula, by their headers, for the function as it is now.
    bounds: FxHashMap<Block, TripCount>,
    /// Accesses that a test in front of their loop tells apart.
    pub(crate) told_apart: Rc<ToldApart>,
    /// What [`Pressure`](crate::analysis::pressure::Pressure) counts with.
    pub(crate) use_counts: Rc<Cell<UseCounts>>,
    /// Whether the loops have got their counters, or what was recorded of them.
    pub(crate) is_profiled: bool,
    /// What was recorded of the loops, for `specialize`.
    pub(crate) recorded: Option<Recorded>,
    /// For headers of the function as it came in, how often the loop took its back edge each time that it was entered, on average, when it was recorded.
    usual: FxHashMap<Block, u64>,
}

impl<'a> PassCx<'a> {
    pub(crate) fn new(
        options: &'a Options,
        fuel: &'a mut Fuel,
        isa: &'a dyn TargetIsa,
        ctrl_plane: &'a mut ControlPlane,
    ) -> Self {
        Self {
            fuel,
            options,
            isa,
            ctrl_plane,
            remarks: RemarkLog::default(),
            has_paid: false,
            gave_up: false,
            unswitch_looks: None,
            wants_cleanup: false,
            again: Again::default(),
            form: Form::Any,
            changed: Change::Nothing,
            origins: FxHashMap::default(),
            peeled: FxHashMap::default(),
            versions: FxHashMap::default(),
            open_checks: FxHashSet::default(),
            slow: FxHashSet::default(),
            around: FxHashSet::default(),
            rests: FxHashSet::default(),
            unrolled: FxHashSet::default(),
            strips: FxHashMap::default(),
            analyses: Analyses::default(),
            is_merged: false,
            skipped: FxHashSet::default(),
            quick: FxHashSet::default(),
            has_guards: true,
            memories: Rc::default(),
            forest: None,
            named: None,
            edges: KnownEdges::default(),
            bounds: FxHashMap::default(),
            told_apart: Rc::default(),
            use_counts: Rc::default(),
            is_profiled: false,
            recorded: None,
            usual: FxHashMap::default(),
        }
    }

    /// Whether there are Spectre guards that may not go for good: what a branch proves of a number may not take the place of it then.
    pub(crate) fn keeps_guards(&self) -> bool {
        self.has_guards && self.options.embedder.spectre_guards() != SpectreGuards::Drop
    }

    /// Which Spectre guards may go.
    pub(crate) fn guard_policy(&self) -> GuardPolicy<'a> {
        GuardPolicy { options: self.options, has_guards: self.has_guards, memories: self.memories.clone() }
    }

    /// Takes the loop of `header` from those that passes look at.
    pub(crate) fn skip(&mut self, header: Block) {
        self.skipped.insert(header);
        self.forget_forest();
    }

    /// Leaves the loop of `header`, of the function as it came in, to the passes of [`Effort::Quick`](crate::Effort::Quick).
    pub(crate) fn add_quick(&mut self, header: Block) {
        self.quick.insert(header);
    }

    /// Whether passes that cost much look at the loop of `header`: it is no slow version (see [`is_slow`](Self::is_slow)), and something may be won.
    pub(crate) fn has_full_effort(&self, header: Block) -> bool {
        !self.is_slow(header) && !self.quick.contains(&self.origin(header))
    }

    /// The same, and none of the loops around is a slow version.
    pub(crate) fn has_full_effort_inside(&self, forest: &LoopForest, lp: Loop) -> bool {
        self.has_full_effort(forest.data(lp).header) && !self.is_in_slow_loop(forest, lp)
    }

    /// Lets the loops be found anew.
    pub(crate) fn forget_forest(&mut self) {
        self.forest = None;
    }

    /// The loops of the function as it is now, without those that are skipped.
    pub(crate) fn forest(&mut self, ctx: &Context) -> Rc<LoopForest> {
        if self.forest.is_none() {
            self.analyses.loop_forests += 1;
            let named = self.named(&ctx.func);
            let graphs = (&ctx.cfg, &ctx.domtree);
            self.forest = Some(Rc::new(LoopForest::without(&ctx.func, graphs, named, &self.skipped)));
        }
        self.forest.clone().expect("the forest was made")
    }

    /// The blocks that instructions of the function name.
    pub(crate) fn named(&mut self, func: &Function) -> NamedBlocks {
        self.named.get_or_insert_with(|| NamedBlocks::of(func)).clone()
    }

    /// Makes the control-flow graph and the dominator tree of the function as it is now.
    pub(crate) fn flowgraph(&mut self, ctx: &mut Context) {
        self.analyses.flow_graphs += 1;
        self.edges.update(&ctx.func, &mut ctx.cfg);
        ctx.compute_domtree();
    }

    /// Takes the control-flow graph of `ctx` for that of the function as it is now.
    pub(crate) fn trust_flowgraph(&mut self, ctx: &Context) {
        self.edges.see(&ctx.func);
    }

    /// The stack slots that only the accesses of the function can touch, and which of these are told apart.
    pub(crate) fn private_slots(&self, ctx: &Context) -> PrivateSlots {
        PrivateSlots::of(&ctx.func, &ctx.domtree).with(self.told_apart.clone())
    }

    /// The exit count of a loop of the function as it is now, by formula.
    pub(crate) fn bound(&mut self, ctx: &Context, lp: Loop) -> TripCount {
        let forest = self.forest(ctx);
        let compute = || exit_count::bound(ctx, &forest, lp);
        *self.bounds.entry(forest.data(lp).header).or_insert_with(compute)
    }

    /// Whether `pass` has changed the loop of `header`.
    pub(crate) fn has_fired(&self, pass: &'static str, header: Block) -> bool {
        self.remarks.has_fired(pass, self.origin(header))
    }

    /// Remembers that nothing but `form` may be relied on.
    pub(crate) fn keep_form(&mut self, form: Form) {
        self.form = self.form.min(form);
    }

    /// How much has changed since this was asked last.
    pub(crate) fn take_changed(&mut self) -> Change {
        std::mem::take(&mut self.changed)
    }

    /// Brings `ctx` and the loops up to date after `change`.
    pub(crate) fn invalidate(&mut self, ctx: &mut Context, change: Change) {
        self.changed = self.changed.max(change);
        if change != Change::Nothing {
            self.bounds.clear();
        }
        match change {
            Change::Nothing | Change::Insts => return,
            Change::Order => {
                self.analyses.dominator_trees += 1;
                ctx.compute_domtree();
            }
            Change::Cfg => self.flowgraph(ctx),
        }
        self.forget_loops(change);
    }

    /// Brings the loops up to date after `change`, which changes edges, if `ctx` is so already.
    pub(crate) fn forget_loops(&mut self, change: Change) {
        self.changed = self.changed.max(change);
        self.bounds.clear();
        self.forest = None;
        self.is_merged = false;
    }

    /// The same after edges were taken away: removes what cannot be reached any more.
    pub(crate) fn invalidate_and_prune(&mut self, ctx: &mut Context) -> CodegenResult<()> {
        self.invalidate(ctx, Change::Cfg);
        remove_unreachable(ctx, self.isa)
    }

    /// Remembers that the loop of `old` has the header `new` now.
    pub(crate) fn header_moved(&mut self, old: Block, new: Block) {
        self.origins.insert(new, self.origin(old));
        if let Some(&iterations) = self.peeled.get(&old) {
            self.peeled.insert(new, iterations);
        }
        for marked in [&mut self.slow, &mut self.around, &mut self.rests] {
            if marked.contains(&old) {
                marked.insert(new);
            }
        }
    }

    /// By how many instructions copies of loops may let the function grow. Linear in its size.
    pub(crate) fn room(&self, func: &Function) -> usize {
        let insts: usize = func.layout.blocks().map(|block| func.layout.block_insts(block).count()).sum();
        self.options.max_function_insts.saturating_sub(insts)
    }

    /// Remembers that so many iterations were taken out of the loop of `header`.
    pub(crate) fn add_peeled(&mut self, header: Block, iterations: usize) {
        *self.peeled.entry(header).or_default() += iterations;
    }

    /// How many iterations were taken out of the loop of `header`.
    pub(crate) fn peeled(&self, header: Block) -> usize {
        self.peeled.get(&header).copied().unwrap_or(0)
    }

    /// Remembers how often the loop of `header` takes its back edge.
    pub(crate) fn add_usual(&mut self, header: Block, recorded: &LoopProfile) {
        let origin = self.origin(header);
        self.usual.extend(recorded.usual_back_edges().map(|usual| (origin, usual)));
    }

    /// How often the loop of `header` takes its back edge on average, if a profile says that this is less than `min` times.
    pub(crate) fn usually_short(&self, header: Block, min: usize) -> Option<u64> {
        let usual = self.usual.get(&self.origin(header)).copied().filter(|_| !self.options.ignore_cost)?;
        (usual < min as u64).then_some(usual)
    }

    /// Remembers that there is one more loop that was the loop of `header` when the function came in.
    pub(crate) fn add_version(&mut self, header: Block) {
        *self.versions.entry(self.origin(header)).or_insert(1) += 1;
    }

    /// How many loops there are that were the loop of `header` when the function came in.
    pub(crate) fn versions(&self, header: Block) -> usize {
        self.versions.get(&self.origin(header)).copied().unwrap_or(1)
    }

    /// Remembers that the loop of `header` is a slow version, which stays as it is.
    pub(crate) fn add_slow(&mut self, header: Block) {
        self.slow.insert(header);
    }

    /// Remembers that the loop of `header` does what is left after another loop, which was split from it.
    pub(crate) fn add_rest(&mut self, header: Block) {
        self.rests.insert(header);
    }

    /// Whether the loop of `header` is such a loop.
    pub(crate) fn is_rest(&self, header: Block) -> bool {
        self.rests.contains(&header)
    }

    /// Remembers that `header` is that of a loop around a fast one, which stays as it is.
    pub(crate) fn add_around(&mut self, header: Block) {
        self.around.insert(header);
    }

    /// Remembers that `header` is that of a loop around strips, which stays as it is, and whether a test of their own counts them.
    pub(crate) fn add_strips(&mut self, header: Block, has_own_test: bool) {
        self.strips.insert(header, has_own_test);
    }

    /// Whether there is any loop around strips.
    pub(crate) fn has_any_strips(&self) -> bool {
        !self.strips.is_empty()
    }

    /// The header of the loop around, if `lp` is one of its strips, which a test of its own counts. A loop of the program that a strip held, and
    /// that is in the place of it once the strip is unrolled, is none: strips are what the loop around was when the function came in.
    pub(crate) fn strips_around(&self, forest: &LoopForest, lp: Loop) -> Option<Block> {
        let LoopData { header, parent, .. } = *forest.data(lp);
        let strips = forest.data(parent?).header;
        let is_strip = self.origin(header) == self.origin(strips) || fault!(AnyLoopIsAStrip);
        (is_strip && self.strips.get(&strips) == Some(&true)).then_some(strips)
    }

    /// Whether the loop of `header` is a slow version, or the loop around a fast one or around strips. A pass that can make a loop faster leaves
    /// it as it is, without a word: the fast version, or the strip, is what it speaks of.
    pub(crate) fn is_slow(&self, header: Block) -> bool {
        self.slow.contains(&header) || self.around.contains(&header) || self.strips.contains_key(&header)
    }

    /// Whether this loop, or one around it, is a slow version.
    pub(crate) fn is_in_slow_loop(&self, forest: &LoopForest, lp: Loop) -> bool {
        let mut around = Some(lp);
        while let Some(lp) = around {
            if self.slow.contains(&forest.data(lp).header) {
                return true;
            }
            around = forest.data(lp).parent;
        }
        false
    }

    /// Whether there is a slow version of any loop.
    pub(crate) fn has_slow(&self) -> bool {
        !self.slow.is_empty() || !self.around.is_empty() || !self.strips.is_empty()
    }

    /// Whether a pass made this header.
    pub(crate) fn is_new_header(&self, header: Block) -> bool {
        self.origins.contains_key(&header)
    }

    fn origin(&self, header: Block) -> Block {
        self.origins.get(&header).copied().unwrap_or(header)
    }

    /// Records that `pass` changed the loop of `header`.
    pub(crate) fn fired(&mut self, func: &Function, pass: &Pass, header: Block, message: impl Into<Cow<'static, str>>) {
        self.has_paid |= pass.pays_alone;
        self.remarks.fired(func, (pass.name, pass.claims), self.origin(header), message);
    }

    /// Forgets why `pass` declined the loop of `header`.
    pub(crate) fn retract(&mut self, pass: &'static str, header: Block) {
        let origin = self.origin(header);
        self.remarks.retract(pass, origin, 0);
    }

    /// Records that `pass` left the loop of `header` alone.
    pub(crate) fn declined(&mut self, func: &Function, pass: &'static str, header: Block, why: &dyn Refusal) {
        self.remarks.declined(func, pass, self.origin(header), why);
    }
}
