//! The report as a page in Markdown: means by front end and mode, then all programs.

use crate::programs::level_in_words;
use crate::report::{Measured, Record};
use jit_harness::stats::geomean;
use jit_harness::target::cpu;
use std::fmt::Write as _;

/// A ratio from which a program counts as slower.
const SLOWER: f64 = 1.03;

/// A program: one record for each mode.
pub struct Line {
    /// The name of the program.
    pub name: String,
    /// How well its front end optimized.
    pub level: String,
    /// The same modes in all lines, in the same order.
    pub records: Vec<Record>,
}

/// The page.
pub fn write(lines: &[Line]) -> String {
    let Some(first) = lines.first() else { return "No programs.\n".to_owned() };
    let modes: Vec<&str> = first.records.iter().map(|record| record.mode.as_str()).collect();
    let mut page = format!(
        "{} modules, on {}. Time with loopopt divided by time without: the geometric mean, and the worst program.\n\n",
        lines.len(),
        cpu()
    );
    write_means(lines, &modes, &mut page);
    write_modes(lines, &modes, &mut page);
    write_sizes(lines, &modes, &mut page);
    write_programs(lines, &modes, &mut page);
    write_differences(lines, &mut page);
    page
}

/// A table with the modes as columns.
fn write_head(first: &str, modes: &[&str], page: &mut String) {
    writeln!(page, "| {first} | {} |", modes.join(" | ")).expect("a string takes all");
    writeln!(page, "|---|{}", "---:|".repeat(modes.len())).expect("a string takes all");
}

fn write_row(first: &str, cells: impl IntoIterator<Item = String>, page: &mut String) {
    let cells: Vec<String> = cells.into_iter().collect();
    writeln!(page, "| {first} | {} |", cells.join(" | ")).expect("a string takes all");
}

/// The levels that there are, in the order in which they come first.
fn levels(lines: &[Line]) -> Vec<&str> {
    let mut levels = Vec::new();
    for line in lines {
        if !levels.contains(&line.level.as_str()) {
            levels.push(&line.level);
        }
    }
    levels.sort_unstable();
    levels
}

fn write_means(lines: &[Line], modes: &[&str], page: &mut String) {
    write_head("front end", modes, page);
    for level in levels(lines) {
        let of_level: Vec<&Line> = lines.iter().filter(|line| line.level == level).collect();
        let name = format!("{} ({})", level_in_words(level), of_level.len());
        write_row(&name, (0..modes.len()).map(|mode| mean(&of_level, mode)), page);
    }
    let all: Vec<&Line> = lines.iter().collect();
    write_row("**all**", (0..modes.len()).map(|mode| mean(&all, mode)), page);
}

fn mean(lines: &[&Line], mode: usize) -> String {
    let ratios = || lines.iter().filter_map(|line| Some(line.records[mode].measured.as_ref()?.ratio));
    match ratios().reduce(f64::max) {
        Some(worst) => format!("{:.3}, {worst:.3}", geomean(ratios())),
        None => "-".to_owned(),
    }
}

/// What each mode costs: the time of a program by that of the same program in the first mode, in each arm.
fn write_modes(lines: &[Line], modes: &[&str], page: &mut String) {
    let [first, _, ..] = modes else { return };
    for (arm, with) in [(0, "without"), (1, "with")] {
        let cost = |mode: usize| {
            let ns = |record: &Record| Some(record.measured.as_ref()?.ns[arm]);
            let costs = lines.iter().filter_map(|line| Some(ns(&line.records[mode])? / ns(&line.records[0])?));
            format!("{:.3}", geomean(costs))
        };
        write_row(&format!("time by that in `{first}`, {with} loopopt"), (0..modes.len()).map(cost), page);
    }
}

/// What it costs in each mode.
fn write_sizes(lines: &[Line], modes: &[&str], page: &mut String) {
    let records = |mode: usize| lines.iter().map(move |line| &line.records[mode]);
    let size = |mode, arm: usize| records(mode).map(|record| record.code_bytes[arm] as f64).sum::<f64>();
    let time = |mode, arm: usize| records(mode).map(|record| record.compile_ns[arm] as f64).sum::<f64>();
    write_row("code size, all together", (0..modes.len()).map(|mode| ratio(size(mode, 1), size(mode, 0))), page);
    write_row("compile time, all together", (0..modes.len()).map(|mode| ratio(time(mode, 1), time(mode, 0))), page);
    page.push('\n');
}

fn ratio(with: f64, without: f64) -> String {
    format!("{:.3}", with / without)
}

fn write_programs(lines: &[Line], modes: &[&str], page: &mut String) {
    page.push_str("≈: no more than noise. Bold: slower.\n\n");
    write_head("program", modes, page);
    for line in lines {
        let cell = |record: &Record| record.measured.as_ref().map_or_else(|| "DIFFERS".to_owned(), figure);
        write_row(&line.name, line.records.iter().map(cell), page);
    }
}

fn figure(measured: &Measured) -> String {
    match measured.ratio {
        ratio if measured.no_gain => format!("≈ {ratio:.3}"),
        ratio if ratio > SLOWER => format!("**{ratio:.3}**"),
        ratio => format!("{ratio:.3}"),
    }
}

fn write_differences(lines: &[Line], page: &mut String) {
    for record in lines.iter().flat_map(|line| &line.records) {
        if let Some(difference) = &record.difference {
            write!(page, "\n{} ({}) differs: {difference}\n", record.name, record.mode).expect("a string takes all");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn line(name: &str, level: &str, ratio: f64) -> Line {
        let measured = Measured { ns: [1.0; 2], ratio, low: ratio, high: ratio, noise: 1.0, no_gain: false, turns: 3 };
        let record = Record {
            name: name.to_owned(),
            mode: "guard".to_owned(),
            agree: true,
            difference: None,
            outcome: "returned".to_owned(),
            code_bytes: [100, 110],
            compile_ns: [10, 12],
            fired: BTreeMap::new(),
            measured: Some(measured),
        };
        Line { name: name.to_owned(), level: level.to_owned(), records: vec![record] }
    }

    #[test]
    fn modes_are_compared_with_the_first() {
        let mut both = line("a", "o0", 0.5);
        let mut epochs = both.records[0].clone();
        epochs.mode = "epochs".to_owned();
        epochs.measured.as_mut().expect("it was measured").ns = [1.5, 1.25];
        both.records.push(epochs);
        let page = write(&[both]);
        assert!(page.contains("| time by that in `guard`, without loopopt | 1.000 | 1.500 |"), "{page}");
        assert!(page.contains("| time by that in `guard`, with loopopt | 1.000 | 1.250 |"), "{page}");
    }

    #[test]
    fn means_are_by_front_end() {
        let page = write(&[line("a", "o0", 0.5), line("b", "o2", 1.0), line("c", "o0", 2.0)]);
        for row in [
            "| simple front ends (2) | 1.000, 2.000 |",
            "| -O2 (1) | 1.000, 1.000 |",
            "| **all** | 1.000, 2.000 |",
            "| code size, all together | 1.100 |",
            "| compile time, all together | 1.200 |",
            "| a | 0.500 |",
            "| c | **2.000** |",
        ] {
            assert!(page.contains(row), "{row} is not in\n{page}");
        }
    }
}
