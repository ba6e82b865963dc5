//! The one rewrite that breaks a program, by bisection over [`Options::fuel`].

use crate::probe::{Failure, Innocent, Rewritten, Suspects, Trial, hurry, loopopt, probe};
use anyhow::{Result, bail};
use loopopt::oracle::{Case, Program, Settings};
use loopopt::{Options, Remark};

/// What the search found.
#[derive(Debug)]
pub enum Bisection {
    /// Nothing: all arms do the same.
    Agrees {
        /// How many optional rewrites there are.
        rewrites: u64,
        /// Calls that were compared.
        compared: usize,
        /// Calls that could not be compared, because they did not end in time or used up the stack.
        undecided: usize,
    },
    /// The program fails without loopopt as well.
    Foreign(Failure),
    /// The program fails with loopopt, but without any optional rewrite: by what passes do in any case, or by how they
    /// look at their input.
    NoRewrite(Failure),
    /// The rewrite.
    Found(Box<Culprit>),
}

/// The rewrite that breaks a program.
#[derive(Debug)]
pub struct Culprit {
    /// How many optional rewrites there are.
    pub rewrites: u64,
    /// The number of this one, from 1: the program agrees if the fuel is one less, and fails with this fuel.
    pub number: u64,
    /// The function that was rewritten, with `%`.
    pub function: String,
    /// What the pass says of it. If loopopt failed, what it said when it was not allowed to do it.
    pub remark: Option<Remark>,
    /// How the program fails.
    pub failure: Failure,
    /// The function as it comes out without the rewrite, as text.
    pub before: String,
    /// The function as it comes out with it, unless loopopt failed.
    pub after: Option<String>,
}

/// Finds the rewrite of loopopt that breaks a program.
///
/// The error is for programs that cannot be compiled or called, whatever loopopt does.
pub fn run(program: &Program, cases: &[Case], options: &Options) -> Result<Bisection> {
    run_with(program, cases, Settings::default(), &loopopt(options))
}

/// Like [`run`], with something in the place of loopopt and with other settings.
pub fn run_with(program: &Program, cases: &[Case], settings: Settings, suspects: &Suspects<'_>) -> Result<Bisection> {
    let settings = hurry(program, cases, settings);
    let search = Search { program, cases, settings, suspects };
    let all = search.trial(None);
    let failure = match all.result {
        Err(failure) => failure,
        Ok(agreement) => {
            let undecided = agreement.timed_out + agreement.overflowed;
            return Ok(Bisection::Agrees { rewrites: all.rewrites, compared: agreement.compared, undecided });
        }
    };
    if let Err(failure) = probe(program, cases, settings, Box::new(Innocent)).result {
        if !failure.kind().is_difference() {
            bail!("{failure}");
        }
        return Ok(Bisection::Foreign(failure));
    }
    if let Err(failure) = search.trial(Some(0)).result {
        return Ok(Bisection::NoRewrite(failure));
    }
    match search.find(all.rewrites) {
        Some((number, [before, after])) => Ok(Bisection::Found(Box::new(culprit(all.rewrites, number, before, after)))),
        None => bail!("the outcome is not the same each time, or does not depend on the rewrites: {failure}"),
    }
}

/// A program, and what it is tried with.
struct Search<'a> {
    program: &'a Program,
    cases: &'a [Case],
    settings: Settings,
    suspects: &'a Suspects<'a>,
}

impl Search<'_> {
    fn trial(&self, fuel: Option<u64>) -> Trial {
        probe(self.program, self.cases, self.settings, (self.suspects)(fuel))
    }

    /// A number with which the program fails, but not with one less, and both trials.
    ///
    /// What a rewrite breaks another can mend, so there may be several such numbers, and the middle says nothing of those
    /// beyond it. But between fuel that is enough to agree and fuel that is enough to fail there is always one.
    fn find(&self, rewrites: u64) -> Option<(u64, [Trial; 2])> {
        let (mut agrees, mut fails) = (0, rewrites);
        while fails > agrees + 1 {
            let middle = agrees + (fails - agrees) / 2;
            if self.trial(Some(middle)).result.is_ok() {
                agrees = middle;
            } else {
                fails = middle;
            }
        }
        self.pair(fails).or_else(|| (1..=rewrites).find_map(|number| self.pair(number)))
    }

    /// The trials without and with this rewrite, if it is one that breaks the program.
    fn pair(&self, number: u64) -> Option<(u64, [Trial; 2])> {
        let before = self.trial(Some(number.checked_sub(1)?));
        let after = self.trial(Some(number));
        (before.result.is_ok() && after.result.is_err()).then_some((number, [before, after]))
    }
}

fn culprit(rewrites: u64, number: u64, mut before: Trial, mut after: Trial) -> Culprit {
    let failure = after.result.expect_err("a pair ends with a failure");
    // Up to the rewrite both trials did the same, so its run is at the same place in both.
    let at = after.runs.iter().rposition(|run| run.earlier < number).expect("the rewrite was done in a run");
    let (before, after) = (before.runs.swap_remove(at), after.runs.swap_remove(at));
    Culprit {
        rewrites,
        number,
        failure,
        remark: new_remark(&before, &after).or_else(|| withheld(&before)),
        function: after.function,
        before: before.clif.expect("loopopt did not fail in a trial that agrees"),
        after: after.clif,
    }
}

/// The remark on the first rewrite for which there was no fuel.
fn withheld(run: &Rewritten) -> Option<Remark> {
    run.remarks.iter().find(|remark| remark.reason() == Some("withheld")).cloned()
}

/// The last remark on a rewrite that is in the second run only.
fn new_remark(before: &Rewritten, after: &Rewritten) -> Option<Remark> {
    let mut known: Vec<&Remark> = before.remarks.iter().filter(|remark| remark.fired()).collect();
    let mut new = None;
    for remark in after.remarks.iter().filter(|remark| remark.fired()) {
        match known.iter().position(|known| *known == remark) {
            Some(at) => {
                known.swap_remove(at);
            }
            None => new = Some(remark.clone()),
        }
    }
    new
}
