//! Why a loop has no second version, and what one is for.

use super::check::Check;
use super::plan::Plan;
use crate::analysis::scev::predication::Obstacle;
use crate::analysis::scev::requirement::Requirement;
use crate::pass::Usual;
use crate::refusal::{Shown, refusals};
use cranelift_codegen::ir::{Function, Inst, Opcode, Value};
use std::fmt;

refusals! {
    /// Why a loop has no second version.
    #[derive(Clone)]
    pub(super) enum Decline {
        /// Nothing in the loop is a check.
        NoCheck => "no-check", "there is no check in the loop";
        /// (P9) Sums of addresses could be added up in 64 bits, and are few of the instructions.
        FewSums { insts: usize, sums: usize, max: usize }
            => "few-sums", "{insts} instructions for {sums} sums of addresses that are added up in 32 bits, more than {max} for each",
            help "Options::version_max_insts_per_extension is the limit";
        /// (L2) What is checked varies in a way that no formula tells.
        Changes { check: Inst, value: Value }
            => "changes", "the check {check} depends on {value}, and it is not known how that changes",
            help "let what is checked be a counter, a multiple of one, or loop-invariant";
        /// (L2) No test says how often the loop runs.
        NotCounted { check: Inst } => "not-counted", "for the check {check}: no test tells how often the loop runs",
            help "end the loop by a comparison of its counter with something loop-invariant";
        /// (L2) The loop has no preheader.
        SeveralEntries => "not-counted", "the loop is entered in several places";
        /// (L2) A sum has too many terms.
        TooComplex { check: Inst } => "too-complex", "what the check {check} compares is a sum of too many parts";
        /// The check is known to fail in some iteration, if that is reached.
        NeverHolds { check: Inst, requirement: Box<Requirement> }
            => "never-holds", "the check {check} would need {requirement}, which is never so";
        /// (L2) Without the check, nothing ends the loop.
        LastExit { check: Inst } => "last-exit", "only the check {check}, and others that would be removed with it, end the loop";
        /// (P1) Most of what is checked in the nest can only be tested before an inner loop.
        FewChecks { gone: u64, all: u64 }
            => "few-checks",
            "{gone} of {all} weighted checks can be tested before this loop, the others before an inner loop";
        /// (P1) Most of the tests are the same in each iteration.
        SameTest { gone: u64, nearer: u64 }
            => "same-test",
            "the tests before the inner loops are invariant, but for {nearer} of {gone} weighted checks";
        /// (P2) Too much would be copied.
        TooLarge { insts: usize, max: usize } => "too-large", "{insts} instructions would be copied, more than {max}",
            help "Options::version_max_insts is the limit";
        /// (P3) The test would be too long.
        TooManyTests { requirements: usize, max: usize }
            => "too-many-tests", "the test would compare {requirements} times, more than {max}",
            help "Options::version_max_requirements is the limit";
        /// (P5) The loop ends soon.
        FewIterations { around: u128, min: usize }
            => "few-iterations", "the back edge is taken {around} times at most, fewer than {min}";
        /// (P8) Nothing would be won.
        GuardsComeBack { guards: usize, back: usize }
            => "guards-come-back", "{back} Spectre guards would come back for {guards} that are there, and not be executed more seldom";
        /// (P5) The loop may end soon, and the test is longer than what it saves in one iteration.
        EndsEarly { requirements: usize, checks: usize }
            => "ends-early",
            "the loop may end at any time, and the test would compare {requirements} times for {checks} checks",
            help "compare the end of the range with the length once, before the loop; that comparison implies the checks in the loop";
    }
    shared { ColdLoop, NotDuplicable(opcode: Opcode), UsuallyShort(usual: Usual, min: usize) }
}

impl Shown for Box<Requirement> {
    fn shown<'a>(&'a self, _: &'a Function) -> impl fmt::Display + 'a {
        self
    }
}

impl Decline {
    /// What is an obstacle to `check`.
    pub(super) fn of_obstacle(why: Obstacle, check: Inst) -> Self {
        match why {
            Obstacle::Changes(value) => Self::Changes { check, value },
            Obstacle::NoCount => Self::NotCounted { check },
            Obstacle::TooLong => Self::TooComplex { check },
        }
    }
}

impl Plan {
    /// What is done, in words.
    pub(super) fn describe(&self, func: &Function) -> String {
        /// Checks that are named.
        const NAMED: usize = 3;
        let extensions = self.extensions().count();
        let number = |count: usize, one: &str, more: &str| match count {
            0 => None,
            1 => Some(format!("one {one}")),
            _ => Some(format!("{count} {more}")),
        };
        let windows = self.overlaps().filter(|(_, cell)| cell.reach.is_some()).count();
        let overlaps = self.overlaps().count() - windows;
        let others = extensions + overlaps + windows;
        let is_removed = |check: &&Check| check.extension().is_none() && check.cell().is_none();
        let name = |check: &Check| format!("`{}` in {}", func.dfg.insts[check.inst].opcode(), check.block);
        let mut names: Vec<String> = self.checks.iter().filter(is_removed).take(NAMED).map(name).collect();
        names.extend((self.checks.len() - others > NAMED).then(|| "…".to_owned()));
        let checks = number(self.checks.len() - others, "check is removed", "checks are removed")
            .map(|words| format!("{words} ({})", names.join(", ")));
        let sums =
            number(extensions, "sum of an address is added up in 64 bits", "sums of addresses are added up in 64 bits");
        let apart = number(overlaps, "access does not overlap a cell", "accesses do not overlap cells");
        let far = number(
            windows,
            "store is away from what later iterations load again",
            "stores are away from what later iterations load again",
        );
        let checks = checks.into_iter().chain(sums).chain(apart).chain(far).collect::<Vec<_>>().join(", ");
        if self.requires.is_empty() {
            return format!("{checks}: always fulfilled");
        }
        let words: Vec<_> = self.requires.iter().map(Requirement::to_string).collect();
        format!("{checks}; fast if {} ({} instructions in the slow version)", words.join(", "), self.copied)
    }
}
