//! The draft as a file: its text, and what can only be made smaller there.

use super::draft::Draft;
use crate::input;
use anyhow::Result;
use cranelift_codegen::data_value::DataValue;
use loopopt::oracle::{Case, Compiled, Outcome, Pipeline, Program, Settings};
use std::collections::HashMap;

/// The functions and their calls. A call that returns without loopopt says what it returns.
pub(super) fn render(draft: &Draft, settings: Settings) -> String {
    let mut text = draft.target_lines().to_owned();
    for func in &draft.functions {
        // An instruction is followed by the constants that it uses.
        for line in func.display().to_string().lines() {
            text.push_str(line.split("  ; ").next().unwrap_or_default());
            text.push('\n');
        }
        text.push('\n');
    }
    let mut compiled = draft.program().and_then(|program| Compiled::new(&program, Pipeline::None, settings));
    for Case { call, memory } in &draft.cases {
        let outcome = compiled.as_mut().ok().and_then(|compiled| compiled.observe(call, memory).ok());
        let line = match outcome.map(|observation| observation.outcome) {
            Some(Outcome::Returned(values)) => format!("; run: {call} == {}", list(&values)),
            _ => format!("; call: {call}"),
        };
        text.push_str(&line);
        text.push('\n');
    }
    format!("{}\n", text.trim_end())
}

fn list(values: &[DataValue]) -> String {
    let values: Vec<String> = values.iter().map(DataValue::to_string).collect();
    if let [value] = &values[..] { value.clone() } else { format!("[{}]", values.join(", ")) }
}

/// The program of a text and the calls in it, on the memory of the first of these cases.
pub(super) fn parse(text: &str, cases: &[Case]) -> Result<(Program, Vec<Case>)> {
    let program = Program::parse(text)?;
    let calls = input::calls(&program, text)?;
    let memory = cases.first().map_or_else(input::image, |case| case.memory.clone());
    let cases = calls.into_iter().map(|(_, call)| Case { call, memory: memory.clone() }).collect();
    Ok((program, cases))
}

/// Shorter texts, each made from the best one so far: without a line of the declarations, without the marks of cold
/// blocks, and with entities numbered from 0.
pub(super) fn shorten(text: String, mut fails: impl FnMut(&str) -> bool) -> String {
    let mut best = text;
    // What a declaration refers to is declared before it.
    for line in (0..best.lines().count()).rev() {
        if let Some(candidate) = without_declaration(&best, line).filter(|candidate| fails(candidate)) {
            best = candidate;
        }
    }
    let changes: [fn(&str) -> String; 3] =
        [|text| text.replace(" cold:", ":"), |text| text.replace("{\n\n", "{\n"), renumbered];
    for change in changes {
        let candidate = change(&best);
        if candidate != best && fails(&candidate) {
            best = candidate;
        }
    }
    best
}

/// The text without this line, if it is a declaration.
fn without_declaration(text: &str, number: usize) -> Option<String> {
    let line = text.lines().nth(number)?.trim_start();
    let is_declaration = ["sig", "fn", "ss", "gv", "const", "region"].iter().any(|kind| {
        let rest = line.strip_prefix(kind);
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()) && rest.contains(" = "))
    });
    let rest = text.lines().enumerate().filter(|&(at, _)| at != number);
    is_declaration.then(|| rest.fold(String::new(), |text, (_, line)| text + line + "\n"))
}

/// Gives entities of each function numbers in the order in which they appear.
fn renumbered(text: &str) -> String {
    let mut names: HashMap<&str, String> = HashMap::new();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    let mut last = '\n';
    while let Some(next) = rest.chars().next() {
        if rest.starts_with("function ") {
            names.clear();
            counts.clear();
        }
        let word_len = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (word, after) = rest.split_at(word_len.max(next.len_utf8()));
        match entity(word).filter(|_| !"%@.".contains(last)) {
            Some(kind) => {
                let count = counts.entry(kind).or_default();
                let name = names.entry(word).or_insert_with(|| {
                    *count += 1;
                    format!("{kind}{}", *count - 1)
                });
                result.push_str(name);
            }
            None => result.push_str(word),
        }
        last = word.chars().next_back().unwrap_or(' ');
        rest = after;
    }
    result
}

/// The kind of entity that a word names.
fn entity(word: &str) -> Option<&str> {
    let kind = word.trim_end_matches(|c: char| c.is_ascii_digit());
    (kind.len() < word.len() && ["v", "block", "sig", "fn", "ss"].contains(&kind)).then_some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_in_order() {
        let text = "function %v9(i64) {\n    sig7 = () fast\nblock4(v12: i64):\n    v3 = iadd v12, v12\n}\nfunction %g() {\nblock4:\n";
        let expected = "function %v9(i64) {\n    sig0 = () fast\nblock0(v0: i64):\n    v1 = iadd v0, v0\n}\nfunction %g() {\nblock0:\n";
        assert_eq!(renumbered(text), expected);
    }

    #[test]
    fn only_declarations_are_dropped() {
        let text = "function %f() {\n    ss0 = explicit_slot 8\nblock0:\n    v0 = f32const 1.0\n}\n";
        let dropped: Vec<bool> = (0..5).map(|line| without_declaration(text, line).is_some()).collect();
        assert_eq!(dropped, [false, true, false, false, false]);
    }
}
