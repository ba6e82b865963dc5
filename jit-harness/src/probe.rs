//! One run of the oracle on a program, with all that is needed to find and to keep a failure.

use crate::error::{Panicked, guard, one_line};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{CodegenResult, Context};
use loopopt::oracle::{Agreement, Arm, Case, Difference, Mismatch, Outcome, Program, Settings, check_with};
use loopopt::{LoopOptimizer, Options, Remark, Report};
use std::fmt;
use std::time::Duration;

/// loopopt, or something in its place.
pub trait Suspect {
    /// Rewrites a function that `Context::optimize` has been through.
    fn rewrite(&mut self, context: &mut Context, isa: &dyn TargetIsa) -> CodegenResult<Report>;

    /// How many optional rewrites it has done so far.
    fn rewrites(&self) -> u64;
}

impl Suspect for LoopOptimizer {
    fn rewrite(&mut self, context: &mut Context, isa: &dyn TargetIsa) -> CodegenResult<Report> {
        self.run(context, isa, &mut ControlPlane::default())
    }

    fn rewrites(&self) -> u64 {
        self.rewrites()
    }
}

/// Makes a suspect that does at most so many optional rewrites, or as many as it likes. With one more, those before are
/// the same.
pub type Suspects<'a> = dyn Fn(Option<u64>) -> Box<dyn Suspect> + 'a;

/// loopopt with these options.
pub fn loopopt(options: &Options) -> impl Fn(Option<u64>) -> Box<dyn Suspect> + '_ {
    move |fuel| {
        let mut options = options.clone();
        options.fuel = fuel.or(options.fuel);
        Box::new(LoopOptimizer::new(options))
    }
}

/// The time limit of a call, if all of them are quick without loopopt.
const SHORT_LIMIT: Duration = Duration::from_millis(200);

/// The settings with a short limit, if all calls end in it without loopopt: a rewrite can make a loop endless.
pub fn hurry(program: &Program, cases: &[Case], settings: Settings) -> Settings {
    let short = Settings { limit: SHORT_LIMIT.min(settings.limit), ..settings };
    let is_quick =
        probe(program, cases, short, Box::new(Innocent)).result.is_ok_and(|agreement| agreement.timed_out == 0);
    if is_quick { short } else { settings }
}

/// Does nothing: what fails with it is not of loopopt's making.
pub struct Innocent;

impl Suspect for Innocent {
    fn rewrite(&mut self, _: &mut Context, _: &dyn TargetIsa) -> CodegenResult<Report> {
        Ok(Report::default())
    }

    fn rewrites(&self) -> u64 {
        0
    }
}

/// What came of a run.
#[derive(Debug)]
pub struct Trial {
    /// What the oracle says.
    pub result: Result<Agreement, Failure>,
    /// How many optional rewrites there were.
    pub rewrites: u64,
    /// Every function that the suspect was given. It gets each one twice: as it is, and its own output.
    pub runs: Vec<Rewritten>,
}

/// What a suspect did to a function.
#[derive(Debug)]
pub struct Rewritten {
    /// The name of the function, with `%`.
    pub function: String,
    /// How many optional rewrites there were before.
    pub earlier: u64,
    /// What it said. Empty if it failed.
    pub remarks: Vec<Remark>,
    /// The function afterwards, as text. Nothing if it failed.
    pub clif: Option<String>,
}

/// Holds a suspect to the oracle.
pub fn probe(program: &Program, cases: &[Case], settings: Settings, mut suspect: Box<dyn Suspect>) -> Trial {
    let mut runs = Vec::new();
    let result = guard(|| {
        check_with(program, cases, settings, &mut |context, isa| {
            let function = context.func.name.to_string();
            runs.push(Rewritten { function, earlier: suspect.rewrites(), remarks: Vec::new(), clif: None });
            let report = suspect.rewrite(context, isa)?;
            if let Some(run) = runs.last_mut() {
                run.remarks = report.remarks.iter().cloned().collect();
                run.clif = Some(context.func.to_string());
            }
            Ok(report)
        })
    });
    Trial { result: result.map_err(Failure::new), rewrites: suspect.rewrites(), runs }
}

/// How a program fails.
#[derive(Debug)]
pub struct Failure {
    what: String,
    kind: Kind,
    case: Option<usize>,
}

/// What a program keeps of its failure while it is made smaller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Two arms do not do the same.
    Behavior {
        /// The arms.
        arms: [Arm; 2],
        /// What is not the same, without the values.
        aspect: Aspect,
    },
    /// loopopt's report is wrong.
    Unreported,
    /// loopopt changes its own output.
    Unsettled,
    /// An error, without names and numbers.
    Error(String),
    /// A panic, by its place if that is known.
    Panic(String),
}

/// What is not the same in two arms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aspect {
    /// How the call ended.
    Ending([Ending; 2]),
    /// The memory, at the end or when a host function is called.
    Memory,
    /// The calls to host functions, apart from the memory.
    HostCall,
    /// One accessed what cannot be accessed, where no trap is possible.
    Fault,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It returned.
    Returned,
    /// It trapped.
    Trapped,
    /// It took too long.
    TimedOut,
}

impl Failure {
    /// The failure that an error of the oracle, or of [`guard`], stands for.
    pub fn new(error: anyhow::Error) -> Self {
        let what = one_line(&error);
        if let Some(difference) = error.downcast_ref::<Difference>() {
            return Self::of_difference(difference);
        }
        if error.downcast_ref::<Panicked>().is_some() {
            let place = what.rsplit_once(" (").map(|(_, place)| place.to_owned());
            return Self { kind: Kind::Panic(place.unwrap_or_else(|| without_numbers(&what))), what, case: None };
        }
        let cause = without_numbers(&error.root_cause().to_string());
        let by_loopopt = error.chain().any(|cause| cause.to_string().starts_with("loopopt fails"));
        let who = if by_loopopt { "loopopt" } else { "another" };
        Self { what, kind: Kind::Error(format!("{who}: {cause}")), case: None }
    }

    fn of_difference(difference: &Difference) -> Self {
        match difference {
            Difference::Behavior { case, call, arms, mismatch } => {
                let what = format!("{call}: {} and {} differ: {mismatch}", arms[0], arms[1]);
                Self { what, kind: Kind::Behavior { arms: *arms, aspect: aspect(mismatch) }, case: Some(*case) }
            }
            Difference::Unreported { function, .. } => {
                let what = format!("loopopt says that it left {function} alone, but changed it");
                Self { what, kind: Kind::Unreported, case: None }
            }
            Difference::Unsettled { function, .. } => {
                let what = format!("loopopt changes its own output of {function}");
                Self { what, kind: Kind::Unsettled, case: None }
            }
        }
    }

    /// Which of the cases it was, if it was a call.
    pub fn case(&self) -> Option<usize> {
        self.case
    }

    /// What kind of failure this is.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }
}

impl Kind {
    /// Whether the program was compiled and called, and did something else.
    pub fn is_difference(&self) -> bool {
        !matches!(self, Self::Error(_) | Self::Panic(_))
    }

    /// Whether a call took too long that should not.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Behavior { aspect: Aspect::Ending(ends), .. } if ends.contains(&Ending::TimedOut))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

fn aspect(mismatch: &Mismatch) -> Aspect {
    match mismatch {
        Mismatch::Outcome(outcomes) => Aspect::Ending(outcomes.each_ref().map(ending)),
        Mismatch::Memory { .. } => Aspect::Memory,
        Mismatch::Fault(_) => Aspect::Fault,
        Mismatch::HostCall { calls, .. } => match &**calls {
            [Some(a), Some(b)] if a.name == b.name && a.args == b.args => Aspect::Memory,
            _ => Aspect::HostCall,
        },
    }
}

fn ending(outcome: &Outcome) -> Ending {
    match outcome {
        Outcome::Returned(_) => Ending::Returned,
        Outcome::Trapped { .. } => Ending::Trapped,
        Outcome::TimedOut => Ending::TimedOut,
    }
}

/// The first sentence of a message without the words that are different in each program.
fn without_numbers(text: &str) -> String {
    // The verifier puts the instruction in parentheses before what it says.
    let text = text.lines().next().unwrap_or_default();
    let text = text.rsplit_once("): ").map_or(text, |(_, rest)| rest);
    let is_name = |word: &&str| word.contains(|c: char| c.is_ascii_digit() || c == '%');
    text.split_whitespace().filter(|word| !is_name(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_same_kind_are_equal() {
        let one = "inst4 (v7 = iadd.i64 v3, v9): uses value v9 from non-dominating inst12";
        let other = "inst2 (jump block3(v1)): uses value v1 from non-dominating inst3";
        assert_eq!(without_numbers(one), without_numbers(other));
        assert_eq!(without_numbers("%f faults at +0x12, where no trap is"), "faults at where no trap is");
    }

    #[test]
    fn a_panic_is_known_by_its_place() {
        let failure = Failure::new(Panicked::new("panic: index 7 (src/pass/rotate.rs:12)").into());
        assert_eq!(failure.kind(), &Kind::Panic("src/pass/rotate.rs:12)".to_owned()));
    }
}
