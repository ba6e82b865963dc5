//! That loopopt changes nothing that can be seen: what has to hold before anything is timed.

use crate::error::guard;
use crate::input::cannot_compile;
use crate::subject::Subject;
use anyhow::{Result, bail};
use cranelift_codegen::data_value::{DataValue, DisplayDataValues};
use loopopt::Report;
use loopopt::oracle::{
    Call, Case, Compiled, Difference, Expectation, Observation, Outcome, Pipeline, Program, Run, Settings, check,
};

/// A program of which all arms do the same.
pub struct Agreed<'a> {
    /// The program.
    pub subject: &'a Subject,
    /// What loopopt did to each function.
    pub reports: Vec<(String, Report)>,
    /// What the large call must give, if the program says.
    expected: Option<(Vec<DataValue>, Vec<u8>)>,
}

/// What the comparison says. The error is for programs that cannot be compared.
pub enum Verdict<'a> {
    /// All is well.
    Agreed(Agreed<'a>),
    /// What is not the same, in one line.
    Differs(String),
    /// All arms do the same, which is not what a line of the file says.
    Failed(String),
}

/// Compares all arms with each other on the small call, also those without checks or by hand if there are any, and if they agree, makes them ready for the large
/// one.
pub fn agree(subject: &Subject) -> Result<Verdict<'_>> {
    let options = &subject.options;
    let compare = |program| guard(|| check(program, std::slice::from_ref(&subject.small), options));
    let mut others = subject.unchecked.iter().chain(&subject.by_hand);
    let others = others.try_for_each(|program| compare(program).map(|_| ()));
    let agreement = match others.and_then(|()| compare(&subject.program)) {
        Ok(agreement) => agreement,
        Err(error) => {
            let differs = difference(error).map(Verdict::Differs);
            return differs.map_err(|error| cannot_compile(&subject.name, &error));
        }
    };
    if agreement.compared == 0 {
        let (name, call, limit) = (&subject.name, &subject.small.call, Settings::default().limit.as_secs());
        bail!(
            "{name}: {call} did not end in {limit} seconds of processor time, or used up the stack; give it less to do"
        );
    }
    // A value that Cranelift alone does not return either is the file's mistake.
    if let Some(wrong) = wrong_run(subject, Pipeline::Speed)? {
        return Ok(Verdict::Failed(wrong));
    }
    if let Some(wrong) = wrong_run(subject, Pipeline::LoopOpt(options))? {
        return Ok(Verdict::Differs(wrong));
    }
    let agreed = Agreed { subject, reports: agreement.reports, expected: subject.expected(true) };
    Ok(Verdict::Agreed(agreed))
}

/// The first call of a `; run:` or `; trap:` line that does not end as the line says.
fn wrong_run(subject: &Subject, pipeline: Pipeline<'_>) -> Result<Option<String>> {
    if subject.runs.is_empty() {
        return Ok(None);
    }
    let compile = || Compiled::new(&subject.program, pipeline, Settings::default());
    let mut compiled = guard(compile).map_err(|error| cannot_compile(&subject.name, &error))?;
    for Run { line, call, expectation } in &subject.runs {
        let outcome = compiled.observe(call, &subject.large.memory)?.outcome;
        if !expectation.is_met(&outcome) {
            let seen = describe(&outcome, &subject.program, call);
            return Ok(Some(format!("line {line}: {call}: {seen}, expected {}", expected(expectation))));
        }
    }
    Ok(None)
}

/// The results with their types, or the trap.
pub fn describe(outcome: &Outcome, program: &Program, call: &Call) -> String {
    match outcome {
        Outcome::Returned(values) if values.is_empty() => "returned".to_owned(),
        Outcome::Returned(values) => {
            let returns = program.function(&call.function).map(|function| &function.signature.returns[..]);
            let types = returns.unwrap_or_default().iter().map(|result| result.value_type);
            let values: Vec<String> = values.iter().zip(types).map(|(value, ty)| format!("{value} ({ty})")).collect();
            values.join(", ")
        }
        Outcome::Trapped { code, function, .. } => format!("trap: {code} in %{function}"),
        Outcome::TimedOut => {
            format!("did not end in {} seconds of processor time", Settings::default().limit.as_secs())
        }
    }
}

/// How a call should end, in words.
pub fn expected(expectation: &Expectation) -> String {
    let list = |values: &[DataValue]| {
        let values: Vec<String> = values.iter().map(DataValue::to_string).collect();
        values.join(", ")
    };
    match expectation {
        Expectation::Equal(values) => list(values),
        Expectation::NotEqual(values) => format!("anything but {}", list(values)),
        Expectation::Anything => "a return".to_owned(),
        Expectation::Trap(code) => format!("trap: {code}"),
    }
}

/// What the oracle found, in one line, or the error if it is something else.
pub fn difference(error: anyhow::Error) -> Result<String> {
    let text = match error.downcast_ref::<Difference>() {
        Some(difference) => difference.to_string(),
        None => return Err(error),
    };
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

impl Agreed<'_> {
    /// Whether one arm does on the large call what it should; if not, what is wrong.
    ///
    /// If the program does not say what should come out, `first` is what another arm did. The error is for calls that do
    /// not return.
    pub fn mismatch(&self, seen: &Observation, first: Option<&Observation>) -> Result<Option<String>> {
        let Case { call, .. } = &self.subject.large;
        let values = match &seen.outcome {
            Outcome::Returned(values) => values,
            other => bail!("{}: {call} {other}; a call that is timed must return", self.subject.name),
        };
        let expected = match (&self.expected, first) {
            (Some((values, memory)), _) => Some((values, memory)),
            (None, Some(Observation { outcome: Outcome::Returned(values), memory, .. })) => Some((values, memory)),
            (None, _) => None,
        };
        Ok(expected.and_then(|(expected, memory)| {
            if !Expectation::Equal(expected.clone()).holds(values) {
                let (seen, expected) = (DisplayDataValues(values), DisplayDataValues(expected));
                Some(format!("{call} returned {seen} instead of {expected}"))
            } else {
                let at = seen.memory.iter().zip(memory).position(|(a, b)| a != b)?;
                Some(format!("{call} left another value at mem+{at}: {} instead of {}", seen.memory[at], memory[at]))
            }
        }))
    }
}
