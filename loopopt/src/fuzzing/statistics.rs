//! What happened in a run: how often each pass fired, and what became of the calls.

use super::generate::{Shape, TestCase};
use crate::Report;
use crate::claim::Claim;
use crate::ir::num_insts;
use crate::oracle::{Agreement, Case, Compiled, Outcome, Pipeline, Settings};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Counts over many programs.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Programs that were compared, or looked at.
    pub programs: usize,
    /// Programs in which a loop was found.
    pub with_loops: usize,
    /// Loops that were found.
    pub loops: usize,
    /// Instructions of all programs.
    pub insts: usize,
    /// Programs that have something that a pass may look for.
    pub shapes: BTreeMap<Shape, usize>,
    /// Calls that all arms agree on.
    pub compared: usize,
    /// Calls among them that the interpreter agrees on as well.
    pub interpreted: usize,
    /// Calls of a sample of the programs, one in [`SAMPLE`](Self::SAMPLE), that were made once more to see how they end.
    pub sampled: usize,
    /// Calls among the sampled that trapped.
    pub trapped: usize,
    /// Calls among the sampled in which an exception was handled.
    pub thrown: usize,
    /// Calls that did not end in time.
    pub timed_out: usize,
    /// Calls that ran out of stack.
    pub overflowed: usize,
    /// Programs that hold assertions of a claim.
    pub claims: BTreeMap<Claim, usize>,
    /// Programs in which a pass fired.
    pub fired: BTreeMap<&'static str, usize>,
    /// The same of the programs that are not [special](TestCase::is_special).
    pub ordinary: Ordinary,
    /// Loops that a pass declined, by pass and reason.
    pub declined: BTreeMap<(&'static str, &'static str), usize>,
    /// Programs that are compiled in different ways by Cranelift alone, with what is different.
    pub upstream: Vec<String>,
}

/// What ordinary programs have.
#[derive(Clone, Debug, Default)]
pub struct Ordinary {
    /// How many there are.
    pub programs: usize,
    /// Those that have something that a pass may look for.
    pub shapes: BTreeMap<Shape, usize>,
    /// Those in which a pass fired.
    pub fired: BTreeMap<&'static str, usize>,
}

impl Ordinary {
    fn add(&mut self, case: &TestCase, fired: impl Iterator<Item = &'static str>) {
        self.programs += 1;
        add_all(&mut self.shapes, case.shapes.iter().map(|&shape| (shape, 1)));
        add_all(&mut self.fired, fired.map(|pass| (pass, 1)));
    }

    fn merge(&mut self, other: Self) {
        self.programs += other.programs;
        add_all(&mut self.shapes, other.shapes);
        add_all(&mut self.fired, other.fired);
    }

    /// In how many percent of them a pass fired.
    pub fn share(&self, pass: &str) -> f64 {
        percent(self.fired.get(pass).copied(), self.programs)
    }

    /// How many percent of them have this.
    pub fn share_with(&self, shape: Shape) -> f64 {
        percent(self.shapes.get(&shape).copied(), self.programs)
    }
}

fn add_all<K: Ord>(counts: &mut BTreeMap<K, usize>, more: impl IntoIterator<Item = (K, usize)>) {
    for (key, count) in more {
        *counts.entry(key).or_default() += count;
    }
}

fn percent(part: Option<usize>, all: usize) -> f64 {
    100.0 * part.unwrap_or(0) as f64 / all.max(1) as f64
}

impl Statistics {
    /// How many programs there are for one in the sample.
    pub const SAMPLE: usize = 16;

    pub(super) fn add(&mut self, case: &TestCase, agreement: &Agreement) {
        if self.programs.is_multiple_of(Self::SAMPLE) && !case.endless {
            self.sample(case);
        }
        let functions = case.program.functions().iter();
        self.insts += functions.map(num_insts).sum::<usize>();
        add_all(&mut self.shapes, case.shapes.iter().map(|&shape| (shape, 1)));
        self.compared += agreement.compared;
        self.interpreted += agreement.interpreted;
        self.timed_out += agreement.timed_out;
        self.overflowed += agreement.overflowed;
        let fired = self.add_reports(agreement.reports.iter().map(|(_, report)| report));
        if !case.is_special {
            self.ordinary.add(case, fired.into_iter());
        }
    }

    /// Counts how the calls of a program end.
    fn sample(&mut self, case: &TestCase) {
        let Ok(mut compiled) = Compiled::new(&case.program, Pipeline::None, Settings::default()) else { return };
        for Case { call, memory } in &case.cases {
            let Ok(observation) = compiled.observe(call, memory) else { continue };
            self.sampled += 1;
            self.trapped += usize::from(matches!(observation.outcome, Outcome::Trapped { .. }));
            self.thrown += usize::from(observation.calls.iter().any(|call| call.thrown));
        }
    }

    /// Counts a program that has this.
    pub(super) fn note(&mut self, shape: Shape) {
        *self.shapes.entry(shape).or_default() += 1;
    }

    /// Counts a program of which nothing else is counted.
    pub(super) fn add_program(&mut self) {
        self.programs += 1;
    }

    pub(super) fn add_upstream(&mut self, what: String) {
        self.programs += 1;
        self.upstream.push(what);
    }

    /// Gives the passes that fired.
    fn add_reports<'r>(&mut self, reports: impl Iterator<Item = &'r Report>) -> BTreeSet<&'static str> {
        let (mut fired, mut claims) = (BTreeSet::new(), BTreeSet::new());
        let mut loops = 0;
        for report in reports {
            loops += report.loops;
            fired.extend(report.remarks.fired_counts().into_keys());
            claims.extend(report.claims.keys().copied());
            for remark in &report.remarks {
                if let Some(reason) = remark.reason() {
                    *self.declined.entry((remark.pass, reason)).or_default() += 1;
                }
            }
        }
        self.programs += 1;
        self.loops += loops;
        self.with_loops += usize::from(loops > 0);
        add_all(&mut self.fired, fired.iter().map(|&pass| (pass, 1)));
        add_all(&mut self.claims, claims.into_iter().map(|claim| (claim, 1)));
        fired
    }

    /// Adds what another thread counted.
    pub fn merge(&mut self, other: Self) {
        self.programs += other.programs;
        self.with_loops += other.with_loops;
        self.loops += other.loops;
        self.insts += other.insts;
        self.ordinary.merge(other.ordinary);
        add_all(&mut self.shapes, other.shapes);
        self.compared += other.compared;
        self.interpreted += other.interpreted;
        self.sampled += other.sampled;
        self.trapped += other.trapped;
        self.thrown += other.thrown;
        self.timed_out += other.timed_out;
        self.overflowed += other.overflowed;
        add_all(&mut self.claims, other.claims);
        add_all(&mut self.fired, other.fired);
        add_all(&mut self.declined, other.declined);
        self.upstream.extend(other.upstream);
    }

    /// In how many percent of the programs a pass fired.
    pub fn share(&self, pass: &str) -> f64 {
        percent(self.fired.get(pass).copied(), self.programs)
    }

    /// How many percent of the programs have this.
    pub fn share_with(&self, shape: Shape) -> f64 {
        percent(self.shapes.get(&shape).copied(), self.programs)
    }
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} programs, {} with {} loops", self.programs, self.with_loops, self.loops)?;
        writeln!(f, "{:.1} instructions per program", self.insts as f64 / self.programs.max(1) as f64)?;
        for shape in self.shapes.keys() {
            writeln!(f, "{shape:?} in {:.1} %", self.share_with(*shape))?;
        }
        writeln!(
            f,
            "{} calls agree, {} of them interpreted; {} timed out, {} ran out of stack",
            self.compared, self.interpreted, self.timed_out, self.overflowed
        )?;
        writeln!(
            f,
            "{} of {} sampled calls trapped, in {} an exception was handled",
            self.trapped, self.sampled, self.thrown
        )?;
        for (claim, programs) in &self.claims {
            let share = percent(Some(*programs), self.programs);
            writeln!(f, "{claim:?} asserted in {share:.1} %")?;
        }
        for pass in self.fired.keys() {
            writeln!(f, "{pass} fired in {:.1} %", self.share(pass))?;
        }
        for ((pass, reason), count) in &self.declined {
            writeln!(f, "{pass} declined {count} loops: {reason}")?;
        }
        writeln!(f, "{} programs differ without loopopt", self.upstream.len())
    }
}
