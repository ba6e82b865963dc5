//! Whether two versions of a loop pay.

use super::plan::Plan;
use super::returning_guards::guards_come_back;
use super::why::Decline;
use crate::analysis::cfg::jumps::leads_to_failure;
use crate::analysis::cfg::loops::LoopForest;
use crate::analysis::scev::exit_count;
use crate::analysis::scev::view::View;
use crate::embedder::SpectreGuards;
use crate::options::Options;
use crate::pass::{GuardPolicy, PassCx};
use cranelift_codegen::Context;
use cranelift_codegen::ir::Function;

impl Plan {
    /// Why it does not pay to test anything before the loop, whatever that may be.
    pub(super) fn ruled_out(&self, func: &Function, options: &Options) -> Option<Decline> {
        let (insts, max) = (self.copied, options.version_max_insts);
        match options.ignore_cost {
            true => None,
            false if func.is_effectively_cold(self.header) => Some(Decline::ColdLoop),
            false => (insts > max).then_some(Decline::TooLarge { insts, max }),
        }
    }

    /// (P1), (P3), what (P5) says of counts that are known, and (P8); (P2) and (P4) are those of `ruled_out`.
    pub(super) fn judge(self, view: View<'_>, guards: &GuardPolicy<'_>) -> Result<Self, Decline> {
        let (View { ctx, forest }, options) = (view, guards.options);
        if options.ignore_cost {
            return Ok(self);
        }
        let copies = !self.requires.is_empty();
        if copies {
            self.judge_copy(ctx, forest, options)?;
        }
        let others = self.extensions().count() + self.overlaps().count();
        if options.embedder.spectre_guards() == SpectreGuards::Consolidate
            && others < self.checks.len()
            && let Some([guards, back]) = guards_come_back(view, self.lp, (&self.checks, copies), guards)
        {
            return Err(Decline::GuardsComeBack { guards, back });
        }
        let (requirements, checks) = (self.requires.len(), self.checks.len());
        if requirements > checks && self.headers.len() == 1 && self.may_end_early(&ctx.func, forest) {
            return Err(Decline::EndsEarly { requirements, checks });
        }
        Ok(self)
    }

    /// Whether the loop may end before it is where it is counted: elsewhere, or at all if only a check counts it.
    fn may_end_early(&self, func: &Function, forest: &LoopForest) -> bool {
        let exits = &forest.data(self.lp).exits;
        let is_counted_by_check = self.counted_by.values().any(|checks| !checks.is_empty());
        forest.may_end_early(func, self.lp)
            || is_counted_by_check && exits.iter().any(|exit| !leads_to_failure(func, exit.target(func)))
    }

    /// Whether a second version may pay.
    fn judge_copy(&self, ctx: &Context, forest: &LoopForest, options: &Options) -> Result<(), Decline> {
        if self.gone < self.weight.saturating_sub(self.gone) {
            return Err(Decline::FewChecks { gone: self.gone, all: self.weight });
        }
        if self.nearer < self.gone.saturating_sub(self.nearer) {
            return Err(Decline::SameTest { gone: self.gone, nearer: self.nearer });
        }
        let max = self.max_requirements(options);
        if self.requires.len() > max {
            return Err(Decline::TooManyTests { requirements: self.requires.len(), max });
        }
        if self.headers.len() == 1
            && let Some(around) = exit_count::bound(ctx, forest, self.lp).most()
            && around < options.version_min_iterations as u128
        {
            return Err(Decline::FewIterations { around, min: options.version_min_iterations });
        }
        Ok(())
    }

    /// (P5) An innermost loop does not end soon, as far as a profile or an estimate says.
    pub(super) fn runs_often(self, view: View<'_>, cx: &PassCx<'_>) -> Result<Self, Decline> {
        let min =
            if self.headers.len() == 1 && !self.requires.is_empty() { cx.options.version_min_iterations } else { 0 };
        match cx.usually_short(view, self.lp, min) {
            Some(usual) => Err(Decline::UsuallyShort(usual, min)),
            None => Ok(self),
        }
    }
}
