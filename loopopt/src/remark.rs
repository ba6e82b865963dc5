//! Remarks: what was done to which loop, what was not, and why.
//!
//! Remarks are the only record that passes keep. Counters are counted from them, tests read them, and `jit-harness
//! explain` prints them, so that the three never disagree.

use crate::claim::Claim;
use crate::refusal::Refusal;
use cranelift_codegen::ir::{Block, Function, SourceLoc};
use cranelift_codegen::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// What a remark says about its loop.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The pass changed the loop.
    Fired,
    /// The pass left the loop unchanged.
    Declined {
        /// A short name for the reason, in kebab-case: the key for statistics, and the name of the reason's test.
        reason: &'static str,
        /// What the author of the program, or of the front end, could do about it. Empty if there is nothing to do.
        help: &'static str,
    },
}

/// One thing that one pass did, or did not do, to one loop.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Remark {
    /// The name of the pass, one of [`pass_names`](crate::pass_names).
    pub pass: &'static str,
    /// The header of the loop in the function as it came in, also if a pass has moved it since. For irreducible cycles,
    /// one of their entries; for stack slots, and for what is outside of loops, the entry block of the function.
    pub header: Block,
    /// The source location of the header's first instruction, the default location if there is none.
    pub srcloc: SourceLoc,
    /// What happened.
    pub verdict: Verdict,
    /// The same in words, with the values of this loop.
    pub message: Cow<'static, str>,
    claims: &'static [Claim],
}

impl Remark {
    /// Whether the pass changed the loop.
    pub fn fired(&self) -> bool {
        self.verdict == Verdict::Fired
    }

    /// What the change rests on, nothing if there was none. [`Options::assert_claims`](crate::Options::assert_claims) checks it
    /// while the program runs.
    pub fn claims(&self) -> &'static [Claim] {
        self.claims
    }

    /// The reason for which the pass left the loop unchanged, if it did.
    pub fn reason(&self) -> Option<&'static str> {
        match self.verdict {
            Verdict::Fired => None,
            Verdict::Declined { reason, .. } => Some(reason),
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pass, header, message, .. } = self;
        match &self.verdict {
            Verdict::Fired => write!(f, "{header}: {pass}: {message}"),
            Verdict::Declined { reason, .. } => {
                write!(f, "{header}: {pass}: not done ({reason}): {message}")
            }
        }
    }
}

/// The remarks of one run, in the order in which they were made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remarks(Vec<Remark>);

impl Remarks {
    /// All remarks.
    pub fn iter(&self) -> std::slice::Iter<'_, Remark> {
        self.0.iter()
    }

    /// How often each pass fired; passes that did not fire are absent.
    pub fn fired_counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for remark in self.iter().filter(|remark| remark.fired()) {
            *counts.entry(remark.pass).or_default() += 1;
        }
        counts
    }

    /// Forgets what was done, if the function is as it came in after all.
    pub(crate) fn forget_fired(&mut self) {
        self.0.retain(|remark| !remark.fired());
    }

    /// Whether a pass fired.
    pub fn any_fired(&self) -> bool {
        self.iter().any(Remark::fired)
    }
}

impl<'a> IntoIterator for &'a Remarks {
    type Item = &'a Remark;
    type IntoIter = std::slice::Iter<'a, Remark>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Remarks while passes run. A pass can look at a loop again, and then what it said against it no longer counts.
#[derive(Debug, Default)]
pub(crate) struct RemarkLog {
    /// In the order in which they were made, nothing for those that no longer count.
    all: Vec<Option<Remark>>,
    /// The loops that each pass has changed.
    changed: FxHashSet<(&'static str, Block)>,
    /// For each pass and loop, and subject, where the reason is.
    declined: FxHashMap<(&'static str, Block, u32), usize>,
}

impl RemarkLog {
    /// Makes room for the remarks of two loops: most functions with loops have not more.
    pub(crate) fn reserve(&mut self) {
        self.all.reserve(48);
        self.changed.reserve(14);
        self.declined.reserve(56);
    }

    /// Records that `pass`, whose rewrites rest on `claims`, changed the loop at `header`.
    pub(crate) fn fired(
        &mut self,
        func: &Function,
        (pass, claims): (&'static str, &'static [Claim]),
        header: Block,
        message: impl Into<Cow<'static, str>>,
    ) {
        let srcloc = header_srcloc(func, header);
        self.all.push(Some(Remark { pass, header, srcloc, verdict: Verdict::Fired, message: message.into(), claims }));
        self.changed.insert((pass, header));
    }

    /// Records that `pass` left the loop at `header` unchanged, in the place of what it said of it before.
    pub(crate) fn declined(&mut self, func: &Function, pass: &'static str, header: Block, why: &dyn Refusal) {
        let verdict = Verdict::Declined { reason: why.slug(), help: why.help() };
        let srcloc = header_srcloc(func, header);
        let before = self.declined.insert((pass, header, why.subject()), self.all.len());
        self.all.push(Some(Remark { pass, header, srcloc, verdict, message: why.message(func), claims: &[] }));
        self.forget(before);
    }

    /// Whether `pass` changed the loop at `header`.
    pub(crate) fn has_fired(&self, pass: &'static str, header: Block) -> bool {
        self.changed.contains(&(pass, header))
    }

    /// Forgets why `pass` left the loop at `header`, or a `subject` of it, unchanged.
    pub(crate) fn retract(&mut self, pass: &'static str, header: Block, subject: u32) {
        let before = self.declined.remove(&(pass, header, subject));
        self.forget(before);
    }

    /// All that still counts, in order.
    pub(crate) fn finish(self) -> Remarks {
        Remarks(self.all.into_iter().flatten().collect())
    }

    fn forget(&mut self, place: Option<usize>) {
        if let Some(place) = place {
            self.all[place] = None;
        }
    }
}

fn header_srcloc(func: &Function, header: Block) -> SourceLoc {
    func.layout.first_inst(header).map_or_else(SourceLoc::default, |inst| func.srcloc(inst))
}
