//! Which nests of loops another round looks at: those in which a pass has asked for it.
//!
//! A pass that makes something possible for one before it asks for the loops that it changed. The next round looks at the nests that hold
//! one of these, or a loop that is new. All others are as their last round left them, and so are the answers about them: they are settled, and
//! [skipped](crate::select) until the rounds are over. What is skipped may lose its form, so that the form is rebuilt then.
//!
//! # Not done
//!
//! A nest is not looked at again for what has become known of values before it, unless `cleanup` ran, which asks for all loops.

use crate::pass::{Form, PassCx};
use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::{Block, Function};
use cranelift_codegen::{Context, FxHashSet};

/// What passes have asked for in this round, and what is settled.
#[derive(Default)]
pub(crate) struct Again {
    /// Whether another round looks at all loops.
    all: bool,
    /// The headers, as the function came in, of loops that another round looks at with all that is in their nests.
    origins: FxHashSet<Block>,
    /// The headers of the loops that are settled.
    settled: Vec<Block>,
    /// The first block that was made in this round.
    first_new: usize,
    /// Whether there were irreducible cycles, of which each can become a loop once an edge is removed.
    was_irreducible: bool,
}

impl PassCx<'_> {
    /// Starts a round.
    pub(crate) fn start_round(&mut self, ctx: &Context) {
        self.again.first_new = ctx.func.dfg.num_blocks();
        self.again.all = false;
        self.again.origins.clear();
    }

    /// Whether a pass has asked for another round.
    pub(crate) fn wants_another_round(&self) -> bool {
        self.again.all || !self.again.origins.is_empty()
    }

    /// Asks for another round for the nest of `header`, the header of a loop before it is changed.
    pub(crate) fn look_again(&mut self, ctx: &Context, header: Block) {
        let forest = self.forest(ctx);
        let outermost = forest.loop_of_header(header).map(|lp| forest.data(forest.outermost(lp)).header);
        for header in outermost.into_iter().chain([header]) {
            let origin = self.marks.origin(header);
            self.again.origins.insert(origin);
        }
    }

    /// Remembers that there are irreducible cycles.
    pub(crate) fn add_irreducible(&mut self) {
        self.again.was_irreducible = true;
    }

    /// Lets `elide_checks` look at the checks in these blocks again, which it left unchanged earlier: more is known there now.
    pub(crate) fn reopen_checks(&mut self, func: &Function, blocks: &[Block]) {
        for inst in blocks.iter().flat_map(|&block| func.layout.block_insts(block)) {
            self.has_reopened |= self.open_checks.remove(&inst);
        }
    }

    /// Asks for another round for all loops, in which values have been replaced: what was not implied before may be implied now.
    pub(crate) fn look_again_at_all(&mut self) {
        self.again.all = true;
        self.open_checks.clear();
    }

    /// Leaves the nests for which no pass has asked out of the next round.
    pub(crate) fn settle(&mut self, ctx: &Context) {
        if self.again.all || self.again.was_irreducible {
            return self.unsettle();
        }
        let forest = self.forest(ctx);
        let asked: FxHashSet<_> =
            forest.loops().filter(|&lp| self.is_asked(forest.data(lp).header)).map(|lp| forest.outermost(lp)).collect();
        let rest = forest.loops().filter(|&lp| !asked.contains(&forest.outermost(lp)));
        let settled: Vec<_> = rest.map(|lp| forest.data(lp).header).collect();
        for &header in &settled {
            self.skip(header);
        }
        self.again.settled.extend(settled);
    }

    /// Looks at all nests again, in whatever form they are.
    pub(crate) fn unsettle(&mut self) {
        if self.again.settled.is_empty() {
            return;
        }
        for header in std::mem::take(&mut self.again.settled) {
            self.skipped.remove(&header);
        }
        self.forget_forest();
        self.keep_form(Form::Any);
    }

    /// Whether the loop of `header` is one that a pass has asked for, or is new and no slow version.
    fn is_asked(&self, header: Block) -> bool {
        let is_new = header.index() >= self.again.first_new && !self.marks.is_new_header(header);
        (is_new && !self.marks.is_left_alone(header)) || self.again.origins.contains(&self.marks.origin(header))
    }
}
