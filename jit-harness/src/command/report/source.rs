//! The file, with each remark on the lines that it is about.

use super::super::explain::{LoopRecord, RemarkRecord};
use crate::traced::{indented, without_place};
use maud::{Markup, html};
use std::collections::BTreeMap;

/// A remark, with the name of its place on the page.
pub(super) struct Placed<'a> {
    pub(super) remark: &'a RemarkRecord,
    pub(super) id: String,
}

/// The lines of a function, with the passes that have said something of each. Those of `loops` have names, too.
pub(super) fn source(lines: &[(usize, String)], remarks: &[Placed<'_>], loops: &[LoopRecord]) -> Markup {
    let mut on_line = BTreeMap::<usize, Vec<&Placed<'_>>>::new();
    for placed in remarks {
        let places = placed.remark.places.iter().map(|place| place.line);
        let mut lines: Vec<usize> = placed.remark.line.into_iter().chain(places).collect();
        lines.sort_unstable();
        lines.dedup();
        for line in lines {
            on_line.entry(line).or_default().push(placed);
        }
    }
    let is_named = |number: &usize| {
        let begins_loop = loops.iter().any(|lp| lp.line == Some(*number));
        (begins_loop || on_line.contains_key(number)).then(|| format!("L{number}"))
    };
    // A browser counts the lines.
    let first = lines.first().map(|(number, _)| number);
    html! {
        ol.box.source tabindex="0" start=[first] {
            @for (number, text) in lines {
                li id=[is_named(number)] {
                    (text)
                    @for Placed { remark, id } in on_line.get(number).into_iter().flatten() {
                        " " a class=(if remark.done { "chip done" } else { "chip" }) href={ "#" (id) } title=(shortened(&remark.message)) { (remark.pass) }
                    }
                }
            }
        }
    }
}

/// The beginning of a message, of as many characters as can be read while the pointer is there. All of it is beside the source.
fn shortened(message: &str) -> String {
    match message.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}

/// The numbers and texts of the lines of each function of a file, in their order. What Cranelift has printed with source locations is shown
/// without them, and where lines begin in files.
pub(super) fn functions(text: &str) -> Vec<Vec<(usize, String)>> {
    let mut functions: Vec<Vec<(usize, String)>> = Vec::new();
    let is_printed = text.lines().any(|line| without_place(line).0.is_some());
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("function ") {
            functions.push(Vec::new());
        }
        if let Some(function) = functions.last_mut() {
            let shown = if is_printed { indented(without_place(line).1) } else { line.to_owned() };
            function.push((number, shown));
        }
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_belong_to_the_function_above() {
        let found = functions("; a file\nfunction %a() {\n}\n\nfunction %b() {\n}\n; run: %b()\n");
        let numbers: Vec<Vec<usize>> =
            found.iter().map(|lines| lines.iter().map(|(number, _)| *number).collect()).collect();
        assert_eq!(numbers, [vec![2, 3, 4], vec![5, 6, 7]]);
    }

    #[test]
    fn lines_are_where_they_are_in_files() {
        let texts = |text: &str| functions(text).remove(0).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        let printed = "function %a() {\n          block0:\n@0001         return\n}\n";
        assert_eq!(texts(printed), ["function %a() {", "block0:", "    return", "}"]);
        let written = "function %a() {\n  block0:\n      return ; @1\n}";
        assert_eq!(texts(written), written.lines().collect::<Vec<_>>());
    }
}
