//! Loops for which what is known before them says that they end after a few iterations.
//!
//! The test at the end of each iteration compares `first + k * step` with something loop-invariant, in iteration `k`. If a branch or the range of the
//! bound says that this does not hold for some `k`, iteration `k` is the last one, if it is reached: whatever numbers wrap before.

use super::size_up_to;
use crate::analysis::cfg::loops::Loop;
use crate::analysis::facts::known::{Conditions, Place};
use crate::analysis::scev::exit_count::{Simulation, TripCount};
use crate::analysis::scev::exit_test::ExitTest;
use crate::analysis::scev::recurrence::Recurrences;
use crate::analysis::scev::view::View;
use crate::fault::fault;
use crate::options::Options;
use cranelift_codegen::Context;
use cranelift_codegen::ir::condcodes::CondCode;
use std::collections::BTreeMap;

/// What is known before the loops of a function.
pub(super) struct Few<'a> {
    conditions: Conditions<'a>,
    options: &'a Options,
}

impl<'a> Few<'a> {
    pub(super) fn new(ctx: &'a Context, options: &'a Options) -> Self {
        let mut conditions = Conditions::new(&ctx.func, &ctx.cfg, &ctx.domtree).with_options(options);
        conditions.set_thorough(false);
        Self { conditions, options }
    }

    /// The iterations of an innermost loop if it is known to end after a few of them: in the last one, it is known which edge the test takes.
    pub(super) fn iterations(&mut self, view: View<'_>, lp: Loop) -> Option<Simulation> {
        let (func, forest) = (view.func(), view.forest);
        let data = forest.data(lp);
        let [back_edge] = data.back_edges[..] else { return None };
        let exit =
            data.exits.iter().find(|exit| exit.branch == back_edge.branch).filter(|_| forest.is_innermost(lp))?;
        let preheader = forest.preheader(func, lp)?;
        let test = ExitTest::of(func, *exit)?.counted(view, lp, &Recurrences::with_constant_steps(view, lp))?;
        let step = test.step.as_constant().filter(|_| test.requires.is_none())?;
        let place = Place::end(func, preheader);
        let mut ends = |iteration: usize| {
            let number = test.first.clone().offset(step.wrapping_mul(iteration as u64).cast_signed());
            self.conditions.holds(place, test.cond.complement(), [&number, &test.bound])
        };
        let size = size_up_to(func, forest.blocks(lp), self.options.full_unroll_max_insts_of_few);
        let max = self.options.full_unroll_max_insts_of_few / size.max(1);
        let most = max.min(self.options.full_unroll_max_few).checked_sub(1)?;
        // Most loops are answered by one question.
        let last = if ends(most) { (0..=most).find(|&last| ends(last))? } else { return None };
        let last = last - usize::from(last > 0 && fault!(FewerIterations));
        let mut decided = vec![BTreeMap::new(); last + 1];
        decided[last].insert(exit.branch, exit.slot);
        Some(Simulation { count: TripCount::AtMost(last as u128), decided, insts: size * (last + 1) })
    }
}
