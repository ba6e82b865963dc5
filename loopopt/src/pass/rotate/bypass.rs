//! Iterations that bypass the inner loops.
//!
//! ```text
//!  while p < end {
//!      c = *p++
//!      if is_space(c) { continue }                     jumps to the test: one jump
//!      while p < end && !is_space(*p) { p++ }
//!  }                                                   jumps to the test, too
//! ```
//!
//! Such an iteration is as short as one of an innermost loop, and takes one jump as long as the test is at the top. At the bottom, all paths
//! back share the test and take a second jump from there: [`tail_duplicate`](crate::pass::tail_duplicate) gives each path a test of its own in
//! innermost loops only.

use crate::analysis::cfg::edges::{edges_and_targets, edges_into};
use crate::analysis::cfg::jumps::only_jumps_to;
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::scev::exit_test::ExitTest;
use crate::analysis::scev::recurrence::Recurrences;
use crate::analysis::scev::view::View;
use cranelift_codegen::Context;
use cranelift_codegen::ir::Block;
use std::collections::BTreeSet;

/// Whether an iteration can bypass all inner loops of `lp`, where several paths back meet in a latch that does nothing else. Not so if there is
/// no inner loop.
pub(super) fn is_bypassed(ctx: &Context, forest: &LoopForest, lp: Loop) -> bool {
    let func = &ctx.func;
    let latch = forest.latch(func, lp).expect("canonical form");
    let gathers = only_jumps_to(func, latch).is_some() && edges_into(func, &ctx.cfg, latch).nth(1).is_some();
    if forest.is_innermost(lp) || !gathers {
        return false;
    }
    let (mut seen, mut open) = (BTreeSet::new(), vec![forest.data(lp).header]);
    while let Some(block) = open.pop() {
        if block == latch {
            return true;
        }
        let inside = |target: Block| forest.innermost(target) == Some(lp);
        open.extend(
            edges_and_targets(func, block)
                .map(|(_, target)| target)
                .filter(|&target| inside(target) && seen.insert(target)),
        );
    }
    false
}

/// Whether the header compares a number that changes by the same step in each iteration with one that is loop-invariant.
pub(super) fn is_counted(view: View<'_>, lp: Loop) -> bool {
    let header = view.forest.data(lp).header;
    let mut exits = view.forest.data(lp).exits.iter().filter(|exit| exit.source(view.func()) == header);
    let recurrences = Recurrences::of(view, lp);
    exits
        .any(|&exit| ExitTest::of(view.func(), exit).is_some_and(|test| test.counted(view, lp, &recurrences).is_some()))
}
