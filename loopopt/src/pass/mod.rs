//! The passes. Each proves that a rewrite is legal, judges whether it pays, and applies it.

pub(crate) mod again;
pub(crate) mod apply_profile;
pub(crate) mod canon;
pub(crate) mod cleanup;
pub(crate) mod consolidate_guards;
pub(crate) mod copying;
pub(crate) mod elide_checks;
pub(crate) mod extend_loads;
pub(crate) mod final_values;
pub(crate) mod forward_select_load;
pub(crate) mod full_unroll;
pub(crate) mod fuse_exit_tests;
pub(crate) mod guard_to_trap;
pub(crate) mod gvn_sink;
pub(crate) mod hoist_header_stores;
pub(crate) mod if_convert;
pub(crate) mod layout;
pub(crate) mod leave_canonical_form;
pub(crate) mod licm;
pub(crate) mod load_elimination;
mod marks;
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
pub(crate) mod select;
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
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::memory::alias::PrivateSlots;
use crate::analysis::memory::checked_memory::{CheckedMemories, Roots};
use crate::analysis::memory::disjoint::Disjoint;
use crate::analysis::pressure::UseCounts;
use crate::analysis::scev::exit_count::{self, TripCount};
use crate::analysis::scev::view::View;
use crate::change::Change;
use crate::claim::Claim;
use crate::edit::cfg::unreachable::remove_unreachable;
use crate::embedder::SpectreGuards;
use crate::fuel::Fuel;
use crate::ir::num_insts;
use crate::options::Options;
use crate::pass::again::Again;
use crate::pass::apply_profile::Recorded;
use crate::pass::marks::LoopMarks;
use crate::refusal::{Refusal, Shown};
use crate::remark::RemarkLog;
use crate::report::Analyses;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{Block, Function, Inst};
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{CodegenResult, Context, FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
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

/// Which Spectre guards may be removed once their conditions are proved.
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

/// How often a loop takes its back edge on average.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Usual {
    /// As a profile says.
    Recorded(u64),
    /// From what it counts to.
    Estimated(u64),
}

impl Shown for Usual {
    fn shown<'a>(&'a self, _: &'a Function) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| match self {
            Self::Recorded(times) => write!(f, "its back edge was taken {times} times on average when it was recorded"),
            Self::Estimated(times) => {
                write!(f, "it counts up to a constant, in about {times} steps if it starts at zero or above")
            }
        })
    }
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
    /// Checks that nothing implies. To ask again in each round would cost more than it gives, but where `cleanup` has run.
    pub(crate) open_checks: FxHashSet<Inst>,
    /// Whether some are to be looked at again.
    pub(crate) has_reopened: bool,
    /// How often what passes look at was made.
    pub(crate) analyses: Analyses,
    /// Whether no two blocks can be merged: all were, and no edge has changed since.
    pub(crate) is_merged: bool,
    /// The headers of loops that are not looked at.
    skipped: FxHashSet<Block>,
    /// What passes have said of loops.
    pub(crate) marks: LoopMarks,
    /// Whether the function came in with a Spectre guard. Without one, it never has any.
    pub(crate) has_guards: bool,
    /// The memories whose guards may be consolidated.
    pub(crate) memories: Rc<CheckedMemories>,
    forest: Option<Rc<LoopForest>>,
    named: Option<NamedBlocks>,
    edges: KnownEdges,
    /// Exit counts by formula, by their headers, for the function as it is now.
    bounds: FxHashMap<Block, TripCount>,
    /// Accesses that a test before their loop proves disjoint.
    pub(crate) disjoint: Rc<Disjoint>,
    /// What [`Pressure`](crate::analysis::pressure::Pressure) counts with.
    pub(crate) use_counts: Rc<Cell<UseCounts>>,
    /// Whether the loops have got their counters, or what was recorded of them.
    pub(crate) is_profiled: bool,
    /// What was recorded of the loops, for `specialize`.
    pub(crate) recorded: Option<Recorded>,
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
            open_checks: FxHashSet::default(),
            has_reopened: false,
            analyses: Analyses::default(),
            is_merged: false,
            skipped: FxHashSet::default(),
            marks: LoopMarks::default(),
            has_guards: true,
            memories: Rc::default(),
            forest: None,
            named: None,
            edges: KnownEdges::default(),
            bounds: FxHashMap::default(),
            disjoint: Rc::default(),
            use_counts: Rc::default(),
            is_profiled: false,
            recorded: None,
        }
    }

    /// Whether there are Spectre guards that may not be removed for good: what a branch proves of a number may not take the place of it then.
    pub(crate) fn keeps_guards(&self) -> bool {
        self.has_guards && self.options.embedder.spectre_guards() != SpectreGuards::Drop
    }

    /// Which Spectre guards may be removed.
    pub(crate) fn guard_policy(&self) -> GuardPolicy<'a> {
        GuardPolicy { options: self.options, has_guards: self.has_guards, memories: self.memories.clone() }
    }

    /// Takes the loop of `header` from those that passes look at.
    pub(crate) fn skip(&mut self, header: Block) {
        self.skipped.insert(header);
        self.forget_forest();
    }

    /// Lets the loops be recomputed.
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

    /// The stack slots that only the accesses of the function can touch, and which of these are proved disjoint.
    pub(crate) fn private_slots(&self, ctx: &Context) -> PrivateSlots {
        PrivateSlots::of(&ctx.func, &ctx.domtree).with(self.disjoint.clone())
    }

    /// The exit count of a loop of the function as it is now, by formula.
    pub(crate) fn bound(&mut self, ctx: &Context, lp: Loop) -> TripCount {
        let forest = self.forest(ctx);
        let compute = || exit_count::bound(ctx, &forest, lp);
        *self.bounds.entry(forest.data(lp).header).or_insert_with(compute)
    }

    /// Whether `pass` has changed the loop of `header`.
    pub(crate) fn has_fired(&self, pass: &'static str, header: Block) -> bool {
        self.remarks.has_fired(pass, self.marks.origin(header))
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

    /// By how many instructions copies of loops may let the function grow. Linear in its size.
    pub(crate) fn room(&self, func: &Function) -> usize {
        self.options.max_function_insts.saturating_sub(num_insts(func))
    }

    /// How often `lp` takes its back edge on average, if a profile or an estimate says that this is less than `min` times.
    pub(crate) fn usually_short(&self, view: View<'_>, lp: Loop, min: usize) -> Option<Usual> {
        if self.options.ignore_cost || min == 0 {
            return None;
        }
        let recorded = self.marks.usual(view.forest.data(lp).header).map(Usual::Recorded);
        let usual = recorded.or_else(|| exit_count::estimate(view, lp).map(Usual::Estimated))?;
        let (Usual::Recorded(times) | Usual::Estimated(times)) = usual;
        (times < min as u64).then_some(usual)
    }

    /// Records that `pass` changed the loop of `header`.
    pub(crate) fn fired(&mut self, func: &Function, pass: &Pass, header: Block, message: impl Into<Cow<'static, str>>) {
        self.has_paid |= pass.pays_alone;
        self.remarks.fired(func, (pass.name, pass.claims), self.marks.origin(header), message);
    }

    /// Forgets why `pass` declined the loop of `header`.
    pub(crate) fn retract(&mut self, pass: &'static str, header: Block) {
        let origin = self.marks.origin(header);
        self.remarks.retract(pass, origin, 0);
    }

    /// Records that `pass` left the loop of `header` unchanged, if that is wanted.
    pub(crate) fn declined(&mut self, func: &Function, pass: &'static str, header: Block, why: &dyn Refusal) {
        if self.options.refusals {
            self.remarks.declined(func, pass, self.marks.origin(header), why);
        }
    }
}
