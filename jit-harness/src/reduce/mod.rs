//! Makes a program that fails smaller, as long as it fails in the same way.
//!
//! A draft is the program and its calls. Each group of edits is one file; an edit changes one thing, and
//! is kept if the draft is smaller then, valid, and still fails. Edits are tried many at once, then fewer, then one by
//! one, in rounds until a round changes nothing or the time is up.

mod constants;
mod control;
mod draft;
mod insts;
mod params;
mod program;
mod text;

use crate::error::guard;
use crate::probe::{Failure, Innocent, Kind, Suspects, hurry, loopopt, probe};
use anyhow::{Result, bail};
use draft::{Draft, Edit};
use loopopt::Options;
use loopopt::oracle::{Agreement, Case, Program, Settings};
use std::time::{Duration, Instant};

/// The time limits of a call that are tried, the shortest first: edits make endless loops, each of which costs as much.
const LIMITS: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(200)];

/// How many edits are tried at once, one after the other.
const CHUNKS: [usize; 3] = [16, 4, 1];

/// The groups of edits, in the order in which they are tried.
const GROUPS: [fn(&Draft) -> Vec<Edit>; 5] =
    [program::edits, control::edits, params::edits, insts::edits, constants::edits];

/// A program that was made smaller.
#[derive(Debug)]
pub struct Reduced {
    /// The functions and their calls, as a CLIF file.
    pub text: String,
    /// How the program fails now.
    pub failure: Failure,
    /// How many smaller programs were tried.
    pub candidates: usize,
    /// Whether the time was up before everything was tried.
    pub out_of_time: bool,
    /// Whether the text alone fails, with the memory of the first call: text does not keep everything.
    pub stands_alone: bool,
}

/// What came of it.
#[derive(Debug)]
pub enum Reduction {
    /// There is nothing to do: all arms do the same.
    Agrees(Agreement),
    /// The program is as small as it gets.
    Reduced(Box<Reduced>),
}

/// Makes a program smaller that fails with loopopt, or without it, for at most so long.
///
/// The error is for programs that cannot be compiled or called, whatever loopopt does.
pub fn run(program: &Program, cases: &[Case], options: &Options, budget: Duration) -> Result<Reduction> {
    run_with(program, cases, Settings::default(), &loopopt(options), budget)
}

/// Like [`run`], with something in the place of loopopt and with other settings.
pub fn run_with(
    program: &Program,
    cases: &[Case],
    settings: Settings,
    suspects: &Suspects<'_>,
    budget: Duration,
) -> Result<Reduction> {
    let settings = hurry(program, cases, settings);
    let failure = match probe(program, cases, settings, suspects(None)).result {
        Ok(agreement) => return Ok(Reduction::Agrees(agreement)),
        Err(failure) => failure,
    };
    let innocent = probe(program, cases, settings, Box::new(Innocent)).result;
    if let Err(foreign) = innocent
        && !foreign.kind().is_difference()
    {
        bail!("{foreign}");
    }
    let mut judge = Judge { suspects, kind: failure.kind().clone(), settings };
    judge.choose_limit(program, cases);
    let best = Draft::new(program, cases);
    let deadline = Instant::now() + budget;
    let mut search = Search { best, failure, judge, deadline, candidates: 0 };
    search.shrink();
    Ok(Reduction::Reduced(Box::new(search.finish())))
}

/// Whether a program fails as the first one does.
struct Judge<'a> {
    suspects: &'a Suspects<'a>,
    kind: Kind,
    settings: Settings,
}

impl Judge<'_> {
    /// Takes the shortest limit with which the failure is still seen.
    fn choose_limit(&mut self, program: &Program, cases: &[Case]) {
        // A call that takes too long has to take too long for certain.
        let limits = if self.kind.is_timeout() { &LIMITS[1..] } else { &LIMITS };
        let longest = self.settings.limit;
        for &limit in limits.iter().filter(|&&limit| limit < longest) {
            self.settings.limit = limit;
            if self.failure(program, cases).is_some() {
                return;
            }
        }
        self.settings.limit = longest;
    }

    /// How the program fails, if it is in the same way.
    fn failure(&self, program: &Program, cases: &[Case]) -> Option<Failure> {
        let failure = probe(program, cases, self.settings, (self.suspects)(None)).result.err()?;
        let is_same = *failure.kind() == self.kind && (self.kind.is_difference() || self.is_blameless(program, cases));
        is_same.then_some(failure)
    }

    /// Whether all is well without loopopt. An error may be that of a program that cannot be run.
    fn is_blameless(&self, program: &Program, cases: &[Case]) -> bool {
        probe(program, cases, self.settings, Box::new(Innocent)).result.is_ok()
    }
}

/// The smallest program so far, and what is still to be done.
struct Search<'a> {
    best: Draft,
    failure: Failure,
    judge: Judge<'a>,
    deadline: Instant,
    candidates: usize,
}

impl Search<'_> {
    fn shrink(&mut self) {
        if let Some(case) = self.failure.case() {
            self.attempt(&[program::only_case(case)]);
        }
        loop {
            let before = self.best.size();
            for group in GROUPS {
                let edits = group(&self.best);
                for size in CHUNKS {
                    edits.chunks(size).for_each(|chunk| self.attempt(chunk));
                }
            }
            if self.best.size() == before || self.is_late() {
                return;
            }
        }
    }

    fn is_late(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// Keeps these edits if the result is smaller and still fails.
    fn attempt(&mut self, edits: &[Edit]) {
        if self.is_late() {
            return;
        }
        let mut draft = self.best.clone();
        // What an edit leaves behind may be of a form that Cranelift does not expect.
        let attempt = guard(|| {
            let applied = edits.iter().filter(|edit| edit(&mut draft).is_some()).count();
            if applied == 0 || draft.size() >= self.best.size() {
                return Ok(None);
            }
            self.candidates += 1;
            let program = draft.program()?;
            Ok(self.judge.failure(&program, &draft.cases))
        });
        if let Ok(Some(failure)) = attempt {
            self.best = draft;
            self.failure = failure;
        }
    }

    fn finish(mut self) -> Reduced {
        let out_of_time = self.is_late();
        let (judge, cases) = (&self.judge, &self.best.cases);
        let mut failure_of = |text: &str| {
            self.candidates += 1;
            let (program, cases) = text::parse(text, cases).ok()?;
            judge.failure(&program, &cases)
        };
        let text = text::render(&self.best, judge.settings);
        let stands_alone = failure_of(&text).is_some();
        let text = if stands_alone { text::shorten(text, |text| failure_of(text).is_some()) } else { text };
        let failure = if stands_alone { failure_of(&text) } else { None };
        Reduced {
            text,
            failure: failure.unwrap_or(self.failure),
            candidates: self.candidates,
            out_of_time,
            stands_alone,
        }
    }
}
