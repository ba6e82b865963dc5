//! A name of its own for each function of a file.
//!
//! Files that are only compiled may have several functions of one name. The second `%f` becomes `%f_2`, and so on: in its first
//! line, and in the calls of the comments after it, which are calls to it. Calls in functions are to the first.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The words of comments that make calls.
const DIRECTIVES: [&str; 5] = ["run:", "print:", "call:", "trap:", "bench:"];

/// The text with a name of its own for each function. Lines keep their numbers.
pub fn with_unique_names(text: &str) -> Cow<'_, str> {
    let mut taken: HashSet<String> = text.lines().filter_map(defined).map(|(_, name)| name.to_owned()).collect();
    if taken.len() == text.lines().filter_map(defined).count() {
        return Cow::Borrowed(text);
    }
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut current: HashMap<&str, String> = HashMap::new();
    let mut result = String::with_capacity(text.len() + 64);
    for line in text.lines() {
        if let Some((at, name)) = defined(line) {
            let count = counts.entry(name).or_default();
            *count += 1;
            if *count > 1 {
                current.insert(name, fresh(name, *count, &mut taken));
            }
            push_renamed(&mut result, line, (at, name), &current);
        } else if let Some(called) = called(line) {
            push_renamed(&mut result, line, called, &current);
        } else {
            result.push_str(line);
        }
        result.push('\n');
    }
    Cow::Owned(result)
}

/// The name of the function that begins in this line, without `%`, and where it is.
fn defined(line: &str) -> Option<(usize, &str)> {
    let at = line.find("function %").filter(|&at| line[..at].trim().is_empty())?;
    name_at(line, at + "function %".len())
}

/// The name of the function that a comment calls, without `%`, and where it is.
fn called(line: &str) -> Option<(usize, &str)> {
    let comment = line.trim_start().strip_prefix(';')?.trim_start_matches([' ', ';']);
    let call = DIRECTIVES.iter().find_map(|word| comment.strip_prefix(word))?.trim_start();
    let call = call.strip_prefix('%').unwrap_or(call);
    name_at(line, line.len() - call.len())
}

fn name_at(line: &str, at: usize) -> Option<(usize, &str)> {
    let rest = &line[at..];
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    (end > 0).then_some((at, &rest[..end]))
}

/// A name that no function has.
fn fresh(name: &str, count: usize, taken: &mut HashSet<String>) -> String {
    let name = (count..).map(|number| format!("{name}_{number}")).find(|name| !taken.contains(name));
    let name = name.expect("some number is free");
    taken.insert(name.clone());
    name
}

fn push_renamed(result: &mut String, line: &str, (at, name): (usize, &str), current: &HashMap<&str, String>) {
    result.push_str(&line[..at]);
    result.push_str(current.get(name).map_or(name, String::as_str));
    result.push_str(&line[at + name.len()..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_of_one_name_gets_another() {
        let text = "function %f() {\n; run: %f() == 1\nfunction %f_2() {\nfunction %f() {\n;; trap: f() == user1\n; bench: %f_2()\n";
        let expected = "function %f() {\n; run: %f() == 1\nfunction %f_2() {\nfunction %f_3() {\n;; trap: f_3() == user1\n; bench: %f_2()\n";
        assert_eq!(with_unique_names(text), expected);
    }

    #[test]
    fn other_text_stays() {
        let text = "function %f() {\n    fn0 = %f()\n; run: %g() == 1\nfunction u0:1() {\n";
        assert!(matches!(with_unique_names(text), Cow::Borrowed(same) if same == text));
    }
}
