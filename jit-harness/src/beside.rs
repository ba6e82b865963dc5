//! Two listings side by side: which line is beside which.
//!
//! Lines that are from the same instruction are the same, whatever they hold; other lines are the same if they have the same text. Of
//! copies of an instruction, those in cold blocks are beside nothing if there are others: they are a slow version of what is shown.

use crate::traced::Line;
use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::collections::BTreeSet;

/// What is said of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It is in both listings as it is.
    Same,
    /// The line beside it is from the same instruction, with another text.
    Changed,
    /// It is in one listing only.
    Alone,
    /// It is from an instruction that has a line in the other listing as well, which is somewhere else.
    Elsewhere,
}

/// A line of each listing, or nothing where there is none.
pub type Row = [Option<(usize, Kind)>; 2];

/// What distinguishes lines.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Key<'a> {
    From(u32),
    /// The name of a block, without its parameters, or other text.
    Text(&'a str),
    /// The same as no other line: a slow version.
    None(usize),
}

impl<'a> Key<'a> {
    fn of(line: &'a Line) -> Self {
        let text = line.text.trim_start();
        let name = if text.starts_with("block") { text.split(['(', ':', ' ']).next().unwrap_or(text) } else { text };
        line.from.map_or(Key::Text(name), Key::From)
    }

    fn all(lines: &'a [Line]) -> Vec<Self> {
        let hot: BTreeSet<u32> = lines.iter().filter(|line| !line.is_cold).filter_map(|line| line.from).collect();
        let is_slow = |line: &Line| line.is_cold && line.from.is_some_and(|number| hot.contains(&number));
        let key = |(at, line)| if is_slow(line) { Key::None(at) } else { Key::of(line) };
        lines.iter().enumerate().map(key).collect()
    }
}

/// Puts lines beside each other.
pub fn align(before: &[Line], after: &[Line]) -> Vec<Row> {
    let keys = [before, after].map(Key::all);
    let numbers = [before, after].map(|lines| lines.iter().filter_map(|line| line.from).collect::<BTreeSet<u32>>());
    let alone = |side: usize, line: &Line| match line.from {
        Some(number) if numbers[1 - side].contains(&number) => Kind::Elsewhere,
        _ => Kind::Alone,
    };
    let mut rows = Vec::new();
    for op in capture_diff_slices(Algorithm::Patience, &keys[0], &keys[1]) {
        let (_, old, new) = op.as_tag_tuple();
        if let DiffOp::Equal { .. } = op {
            rows.extend(old.zip(new).map(|(old, new)| {
                let kind = if before[old].text == after[new].text { Kind::Same } else { Kind::Changed };
                [Some((old, kind)), Some((new, kind))]
            }));
            continue;
        }
        for place in 0..old.len().max(new.len()) {
            let left = old.clone().nth(place).map(|at| (at, alone(0, &before[at])));
            let right = new.clone().nth(place).map(|at| (at, alone(1, &after[at])));
            rows.push([left, right]);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[(u32, &str)]) -> Vec<Line> {
        let from = |number: u32| (number > 0).then_some(number);
        text.iter()
            .map(|&(number, text)| Line { from: from(number), text: text.to_owned(), is_cold: text.ends_with("slow") })
            .collect()
    }

    #[test]
    fn lines_are_beside_what_they_are_from() {
        let before = lines(&[(0, "block0(v1: i64):"), (1, "a"), (2, "b"), (3, "c")]);
        let after = lines(&[(0, "block0:"), (7, "new"), (2, "b"), (3, "d"), (2, "copy")]);
        let rows = align(&before, &after);
        let changed = |old, new| [Some((old, Kind::Changed)), Some((new, Kind::Changed))];
        let expected = [
            changed(0, 0),
            [Some((1, Kind::Alone)), Some((1, Kind::Alone))],
            [Some((2, Kind::Same)), Some((2, Kind::Same))],
            changed(3, 3),
            [None, Some((4, Kind::Elsewhere))],
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn a_slow_version_stands_beside_nothing() {
        let before = lines(&[(1, "a"), (2, "b")]);
        let after = lines(&[(1, "a slow"), (2, "b slow"), (1, "a"), (2, "b")]);
        let right: Vec<_> = align(&before, &after).iter().map(|row| (row[0].is_some(), row[1])).collect();
        let slow = |at| (false, Some((at, Kind::Elsewhere)));
        assert_eq!(right, [slow(0), slow(1), (true, Some((2, Kind::Same))), (true, Some((3, Kind::Same)))]);
    }

    #[test]
    fn each_line_is_in_one_row() {
        let before = lines(&[(1, "a"), (2, "b"), (3, "c"), (0, "x")]);
        let after = lines(&[(3, "c"), (0, "x"), (1, "a"), (0, "y"), (2, "b")]);
        let rows = align(&before, &after);
        for (side, lines) in [before, after].iter().enumerate() {
            let seen: Vec<usize> = rows.iter().filter_map(|row| row[side].map(|(at, _)| at)).collect();
            assert_eq!(seen, (0..lines.len()).collect::<Vec<_>>());
        }
    }
}
