//! [`Totals`]: the sums of reports.

use crate::report::Report;
use std::collections::BTreeMap;
use std::time::Duration;

/// What was done to several functions: the sums of their [`Report`]s.
///
/// ```
/// use loopopt::{Report, Totals};
///
/// let mut totals = Totals::default();
/// totals.add(&Report::default()); // one for each run
/// assert_eq!((totals.functions, totals.changed), (1, 0));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Functions that were looked at.
    pub functions: usize,
    /// Functions that are another than before.
    pub changed: usize,
    /// Loops that the functions had before, irreducible cycles not counted.
    pub loops: usize,
    /// How often each pass fired. Passes that did not are absent.
    pub fired: BTreeMap<&'static str, usize>,
    /// Time that the passes took. What a run does beside them is not in it.
    pub time: Duration,
}

impl Totals {
    /// Adds one report. Costs time linear in the number of its remarks.
    pub fn add(&mut self, report: &Report) {
        self.functions += 1;
        self.changed += usize::from(report.changed);
        self.loops += report.loops;
        for remark in report.remarks.iter().filter(|remark| remark.fired()) {
            *self.fired.entry(remark.pass).or_default() += 1;
        }
        self.time += report.timings.iter().map(|(_, time)| *time).sum::<Duration>();
    }
}
