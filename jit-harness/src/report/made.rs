//! How often loopopt made what its passes look at.

use loopopt::Report;
use serde::Serialize;

/// Sums over functions.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Made {
    /// See [`loopopt::Analyses`].
    pub flow_graphs: usize,
    /// See [`loopopt::Analyses`].
    pub dominator_trees: usize,
    /// See [`loopopt::Analyses`].
    pub loop_forests: usize,
    /// See [`loopopt::Analyses`].
    pub egraph_runs: usize,
    /// Rounds, those of each function.
    pub rounds: usize,
    /// Functions with more than one round.
    pub with_rounds: usize,
}

impl Made {
    /// Of one function.
    pub fn of(report: &Report) -> Self {
        let loopopt::Analyses { flow_graphs, dominator_trees, loop_forests, egraph_runs, .. } = report.analyses;
        let (rounds, with_rounds) = (report.rounds, usize::from(report.rounds > 1));
        Self { flow_graphs, dominator_trees, loop_forests, egraph_runs, rounds, with_rounds }
    }

    /// Adds another sum.
    pub fn add(&mut self, other: &Self) {
        self.flow_graphs += other.flow_graphs;
        self.dominator_trees += other.dominator_trees;
        self.loop_forests += other.loop_forests;
        self.egraph_runs += other.egraph_runs;
        self.rounds += other.rounds;
        self.with_rounds += other.with_rounds;
    }

    /// The numbers with their names, for a table.
    pub fn list(&self) -> [(&'static str, usize); 6] {
        [
            ("flow graphs", self.flow_graphs),
            ("dominator trees alone", self.dominator_trees),
            ("loop forests", self.loop_forests),
            ("egraph runs", self.egraph_runs),
            ("rounds", self.rounds),
            ("functions with several rounds", self.with_rounds),
        ]
    }
}
