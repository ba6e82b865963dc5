//! What a run did: its [`Report`].

use crate::claim::Claim;
use crate::remark::Remarks;
use std::collections::BTreeMap;
use std::time::Duration;

/// How often a run made each of its analyses, and what takes as long as one. Those that an edit keeps up to date do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Analyses {
    /// The control-flow graph, the dominator tree with it.
    pub flow_graphs: usize,
    /// The dominator tree alone.
    pub dominator_trees: usize,
    /// The loops.
    pub loop_forests: usize,
    /// Cranelift's egraph pass.
    pub egraph_runs: usize,
}

/// What a run did.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Loops that the function had before the run, irreducible cycles not counted.
    pub loops: usize,
    /// Whether the function is another than before. If not, it is the same to the letter.
    pub changed: bool,
    /// What was done, and what was not.
    pub remarks: Remarks,
    /// How many assertions of each claim the function holds, if [`Options::assert_claims`](crate::Options::assert_claims) is on.
    pub claims: BTreeMap<Claim, usize>,
    /// How often what passes look at was made.
    pub analyses: Analyses,
    /// How often the repeated part of the pipeline ran, of the passes that make something possible for each other. 0 if there was nothing to look at.
    pub rounds: usize,
    /// Time that each pass took in all its runs, in the order of the first ones.
    pub timings: Vec<(&'static str, Duration)>,
    /// If [`Options::dumps`](crate::Options::dumps) is on: `("input", text)`, then one entry for each pass that changed the function.
    pub dumps: Vec<(&'static str, String)>,
}
