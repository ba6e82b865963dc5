//! A run beside one that was kept: which ratios have changed.

use super::saved::{Saved, SavedProgram};
use super::table::Columns;
use crate::listing::count;
use crate::stats::geomean;
use std::io::{self, Write};

/// The most names in a line about programs that only one run has.
const MAX_NAMES: usize = 12;

/// What became of a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Noise,
    Faster,
    Slower,
}

impl Change {
    /// A change counts if the intervals do not overlap, and if it is larger than noise is in both runs.
    fn of(then: &SavedProgram, now: &SavedProgram) -> Self {
        let overlap = then.low <= now.high && now.low <= then.high;
        let change = (now.ratio / then.ratio - 1.0).abs();
        match now.ratio < then.ratio {
            _ if overlap || change <= then.margin.max(now.margin) => Self::Noise,
            true => Self::Faster,
            false => Self::Slower,
        }
    }

    fn mark(self) -> &'static str {
        match self {
            Self::Noise => "≈",
            Self::Faster => "faster",
            Self::Slower => "slower",
        }
    }
}

/// Prints what has changed since the run that is called `name`.
pub fn print(name: &str, then: &Saved, now: &Saved, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\ncompared with {name}\n")?;
    let pairs = pairs(then, now);
    if pairs.is_empty() {
        writeln!(out, "no program is in both runs")?;
    } else {
        print_pairs(&pairs, out)?;
    }
    for (whose, names) in [(name, missing(then, now)), ("this run", missing(now, then))] {
        if !names.is_empty() {
            writeln!(out, "only in {whose}: {}", listed(&names))?;
        }
    }
    if then.options != now.options {
        writeln!(out, "options of {name}: {}; of this run: {}", then.options, now.options)?;
    }
    Ok(())
}

fn print_pairs(pairs: &[(&SavedProgram, &SavedProgram)], out: &mut dyn Write) -> io::Result<()> {
    let mut table = Columns::new(&["program", "then", "95 % interval", "now", "95 % interval", "change", ":"]);
    let interval = |program: &SavedProgram| format!("{:.3} - {:.3}", program.low, program.high);
    for (then, now) in pairs {
        table.add(&[
            now.name.clone(),
            format!("{:.3}", then.ratio),
            interval(then),
            format!("{:.3}", now.ratio),
            interval(now),
            format!("{:+.1} %", 100.0 * (now.ratio / then.ratio - 1.0)),
            Change::of(then, now).mark().to_owned(),
        ]);
    }
    writeln!(out, "{table}\n")?;
    let [then, now] = [0, 1].map(|run| geomean(pairs.iter().map(|pair| [pair.0, pair.1][run].ratio)));
    let changes: Vec<Change> = pairs.iter().map(|(then, now)| Change::of(then, now)).collect();
    let number = |change| changes.iter().filter(|other| **other == change).count();
    writeln!(
        out,
        "{} in both runs: geometric mean {then:.4} then, {now:.4} now; {} faster, {} slower, {} ≈",
        count(pairs.len(), "program"),
        number(Change::Faster),
        number(Change::Slower),
        number(Change::Noise),
    )?;
    writeln!(out, "≈ no change: the intervals overlap, or the change is below 0.5 % or the noise of the program")
}

/// The programs that are in both runs, as they were and are.
fn pairs<'a>(then: &'a Saved, now: &'a Saved) -> Vec<(&'a SavedProgram, &'a SavedProgram)> {
    let earlier = |name: &str| then.programs.iter().find(|program| program.name == name);
    now.programs.iter().filter_map(|program| Some((earlier(&program.name)?, program))).collect()
}

/// The names of the programs of one run that the other one has not.
fn missing<'a>(of: &'a Saved, from: &Saved) -> Vec<&'a str> {
    let names = of.programs.iter().map(|program| &program.name[..]);
    names.filter(|name| from.programs.iter().all(|other| other.name != *name)).collect()
}

fn listed(names: &[&str]) -> String {
    let shown = names.len().min(MAX_NAMES);
    let text = names[..shown].join(", ");
    if shown < names.len() { format!("{text} and {} more", names.len() - shown) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(ratio: f64, half: f64, margin: f64) -> SavedProgram {
        SavedProgram { name: "a".to_owned(), ratio, low: ratio - half, high: ratio + half, margin }
    }

    #[test]
    fn a_change_is_one_if_it_is_larger_than_noise() {
        let then = program(0.5, 0.01, 0.005);
        assert_eq!(Change::of(&then, &program(0.4, 0.01, 0.005)), Change::Faster);
        assert_eq!(Change::of(&then, &program(0.6, 0.01, 0.005)), Change::Slower);
        assert_eq!(Change::of(&then, &program(0.515, 0.01, 0.005)), Change::Noise, "the intervals overlap");
        assert_eq!(Change::of(&then, &program(0.6, 0.01, 0.3)), Change::Noise, "the program is noisy");
        assert_eq!(Change::of(&program(0.5, 0.0, 0.005), &program(0.501, 0.0, 0.005)), Change::Noise);
    }

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(listed(&["a", "b"]), "a, b");
        assert!(listed(&["a"; 20]).ends_with("a and 8 more"));
    }
}
