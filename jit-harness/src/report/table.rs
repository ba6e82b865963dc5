//! The results of `bench` as a table.

use super::json::{Bench, Measured, Record};
use comfy_table::ColumnConstraint::{self, LowerBoundary};
use comfy_table::Width::Fixed;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use std::fmt;
use std::io::{self, Write};

/// A spread over placements from which it is shown.
const LARGE_SPREAD: f64 = 1.10;
/// The natural logarithm of what lies between two ratios that should be the same.
const UNSTEADY: f64 = 0.05;
/// A time of a call below which the clock is a part of it, in nanoseconds.
const TOO_SHORT: f64 = 5_000.0;
/// The width of a column below which its text is not wrapped, in characters.
const NARROW: u16 = 20;

/// A table in the style of the harness: columns and no lines. On a terminal that is too narrow, columns of text are wrapped.
pub struct Columns {
    table: Table,
    alignments: Vec<CellAlignment>,
}

impl Columns {
    /// An empty table. Columns are for numbers, except for the first and those whose title ends with a colon.
    pub fn new(titles: &[&str]) -> Self {
        let is_text = |column: usize| column == 0 || titles[column].ends_with(':');
        let alignment = |column| if is_text(column) { CellAlignment::Left } else { CellAlignment::Right };
        let alignments: Vec<CellAlignment> = (0..titles.len()).map(alignment).collect();
        let mut columns = Self { table: Table::new(), alignments };
        columns.table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        let titles: Vec<String> = titles.iter().map(|title| title.trim_end_matches(':').to_owned()).collect();
        columns.table.set_header(columns.cells(&titles));
        let is_whole = |column: usize| column == 0 || !is_text(column);
        let width =
            |column| if is_whole(column) { ColumnConstraint::ContentWidth } else { LowerBoundary(Fixed(NARROW)) };
        columns.table.set_constraints((0..titles.len()).map(width));
        columns
    }

    /// Adds a row.
    pub fn add(&mut self, row: &[String]) {
        self.table.add_row(self.cells(row));
    }

    fn cells(&self, row: &[String]) -> Vec<Cell> {
        row.iter().zip(&self.alignments).map(|(text, &side)| Cell::new(text).set_alignment(side)).collect()
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table.trim_fmt())
    }
}

/// Prints the table, the means below it, and what is to be known to read it.
pub fn print(bench: &Bench, native: bool, out: &mut dyn Write) -> io::Result<()> {
    let checked = bench.vs_unchecked_geomean.is_some();
    let lines: Vec<Vec<String>> = bench.programs.iter().map(line).collect();
    let is_asked = |column: &usize| match TITLES[*column] {
        "vs unchecked" => checked,
        "native" | "loopopt/native" => native,
        _ => true,
    };
    let asked: Vec<usize> = (0..TITLES.len()).filter(is_asked).collect();
    let shown = match Table::new().width().filter(|&width| width > 0) {
        Some(width) => fitting(&asked, &lines, width.into()),
        None => asked.clone(),
    };
    let titles: Vec<&str> = shown.iter().map(|&column| TITLES[column]).collect();
    let mut table = Columns::new(&titles);
    for line in &lines {
        let cells: Vec<String> = shown.iter().map(|&column| line[column].clone()).collect();
        table.add(&cells);
    }
    writeln!(out, "{table}")?;
    let hidden = asked.iter().filter(|column| !shown.contains(column)).map(|&column| TITLES[column]);
    let hidden: Vec<&str> = hidden.map(|title| title.trim_end_matches(':')).collect();
    if !hidden.is_empty() {
        writeln!(out, "\nthe terminal has no room for: {}; --csv and --json have them", hidden.join(", "))?;
    }
    print_means(bench, out)?;
    print_notes(bench, out)
}

/// All columns of the table.
const TITLES: [&str; 14] = [
    "program",
    "baseline",
    "loopopt",
    "ratio",
    "95 % interval",
    "",
    "best",
    "loops",
    "stack",
    "placement",
    "vs unchecked",
    "native",
    "loopopt/native",
    "fired:",
];

/// Those that a narrow terminal does without, the least important first.
const DISPENSABLE: [&str; 7] = ["fired:", "placement", "stack", "best", "loops", "95 % interval", "baseline"];

/// The columns for which there is room.
fn fitting(asked: &[usize], lines: &[Vec<String>], room: usize) -> Vec<usize> {
    /// What is between two columns.
    const GAP: usize = 2;
    let needs = |&column: &usize| {
        let title = TITLES[column].trim_end_matches(':').chars().count();
        let longest = lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0).max(title);
        // Text is wrapped.
        GAP + if TITLES[column].ends_with(':') { longest.min(NARROW.into()) } else { longest }
    };
    let mut shown = asked.to_vec();
    for dispensable in DISPENSABLE {
        if shown.iter().map(needs).sum::<usize>() <= room {
            break;
        }
        shown.retain(|&column| TITLES[column] != dispensable);
    }
    shown
}

/// What the columns say of a program.
fn line(record: &Record) -> Vec<String> {
    let mut cells = vec![record.name.clone()];
    match &record.measured {
        None => {
            let word = record.wrong().map_or("", |(word, _)| word);
            cells.extend(["-", "-", word, "", "", "", "", "", "", ""].map(str::to_owned));
        }
        Some(measured) => cells.extend([
            time(measured.baseline_ns),
            time(measured.loopopt_ns),
            format!("{:.3}", measured.ratio),
            format!("{:.3} - {:.3}", measured.low, measured.high),
            mark(measured.no_gain, measured.ratio).to_owned(),
            format!("{:.3}", measured.best),
            change(measured.loop_insts),
            if measured.loop_stack_accesses == [0; 2] { String::new() } else { change(measured.loop_stack_accesses) },
            spread(measured.spread),
            measured.vs_unchecked.map_or(String::new(), |ratio| format!("{ratio:.3}")),
        ]),
    }
    let ratio = record.native_ns.zip(record.measured.as_ref()).map(|(ns, measured)| measured.shortest_ns()[1] / ns);
    cells.push(record.native_ns.map_or("-".to_owned(), time));
    cells.push(ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}")));
    let fired: Vec<String> = record.fired.iter().map(|(pass, count)| format!("{pass} {count}")).collect();
    cells.push(fired.join(", "));
    cells
}

fn change([before, after]: [usize; 2]) -> String {
    format!("{before} -> {after}")
}

fn mark(no_gain: bool, ratio: f64) -> &'static str {
    match ratio {
        _ if no_gain => "≈",
        ratio if ratio > 1.02 => "slower",
        _ => "",
    }
}

fn spread(spread: [f64; 2]) -> String {
    let large = spread.iter().any(|&spread| spread > LARGE_SPREAD);
    if large { format!("x{:.2} -> x{:.2}", spread[0], spread[1]) } else { String::new() }
}

/// The ratio of the shortest times, if it is another than that of all: the processor then runs the same code in a fast and
/// in a slow way, depending on what ran before.
fn unsteady(measured: &Measured) -> Option<f64> {
    let [baseline, loopopt] = measured.shortest_ns();
    let ratio = loopopt / baseline;
    ((ratio / measured.ratio).ln().abs() > UNSTEADY).then_some(ratio)
}

/// A time in the unit that suits it.
pub fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{:.2} µs", ns / 1e3),
        ns if ns < 1e9 => format!("{:.2} ms", ns / 1e6),
        ns => format!("{:.2} s", ns / 1e9),
    }
}

/// Prints the means over all programs.
pub(super) fn print_means(bench: &Bench, out: &mut dyn Write) -> io::Result<()> {
    let measured = || bench.programs.iter().filter_map(|record| Some((&record.name, record.measured.as_ref()?)));
    if let (Some(mean), Some((name, worst))) =
        (bench.geomean, measured().max_by(|(_, a), (_, b)| a.ratio.total_cmp(&b.ratio)))
    {
        writeln!(out, "\ngeometric mean {mean:.4}, worst {:.3} ({name})", worst.ratio)?;
    }
    if let Some(growth) = bench.code_growth {
        writeln!(out, "code of all programs together: {growth:.3} of the baseline's")?;
    }
    print_checked(bench, out)?;
    if let (Some(mean), Some((low, high))) = (bench.noise_geomean, bench.noise_range()) {
        writeln!(out, "noise floor: baseline against itself, geomean {mean:.4}, worst {low:.3}..{high:.3}")?;
    }
    Ok(())
}

/// The means over programs with checks.
fn print_checked(bench: &Bench, out: &mut dyn Write) -> io::Result<()> {
    let (Some(mean), Some(by_unchecked)) = (bench.checked_geomean, bench.vs_unchecked_geomean) else { return Ok(()) };
    let ratios =
        || bench.programs.iter().filter_map(|record| Some((&record.name, record.measured.as_ref()?.vs_unchecked?)));
    let Some((name, worst)) = ratios().max_by(|(_, a), (_, b)| a.total_cmp(b)) else { return Ok(()) };
    let count = ratios().count();
    writeln!(
        out,
        "{count} with checks: geometric mean {mean:.4}; by the same without checks, also with loopopt, {by_unchecked:.4}, worst \
         {worst:.3} ({name})"
    )
}

fn print_notes(bench: &Bench, out: &mut dyn Write) -> io::Result<()> {
    let measured = || bench.programs.iter().filter_map(|record| record.measured.as_ref());
    if measured().any(|measured| measured.no_gain) {
        writeln!(out, "≈ no gain: the interval includes 1, or the change is below 0.5 % or the program's own noise")?;
    }
    writeln!(
        out,
        "best: the ratio of the times at each arm's best placement; loops: instructions of all innermost loops together, of remainder loops and \
         slow versions too (`explain` has those of an iteration); stack: those of them that access the stack frame"
    )?;
    if bench.vs_unchecked_geomean.is_some() {
        writeln!(out, "vs unchecked: time by that of the same program without its checks, both with loopopt")?;
    }
    if measured().any(|measured| !spread(measured.spread).is_empty()) {
        writeln!(out, "placement: slowest by fastest of the places in a cache line at which the code was put")?;
    }
    let unsteady =
        bench.programs.iter().filter_map(|record| Some((&record.name, unsteady(record.measured.as_ref()?)?)));
    let unsteady: Vec<String> = unsteady.map(|(name, ratio)| format!("{name} {ratio:.3}")).collect();
    if !unsteady.is_empty() {
        writeln!(out, "unsteady, and the ratio of the shortest times: {}", unsteady.join(", "))?;
    }
    for record in &bench.programs {
        if record.measured.as_ref().is_some_and(|measured| measured.baseline_ns < TOO_SHORT) {
            writeln!(out, "{}: the call is too short for a reliable ratio; let it do more work", record.name)?;
        }
        if let Some((word, what)) = record.wrong() {
            writeln!(out, "{}: {word}: {what}", record.name)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_unit_that_suits_them() {
        assert_eq!(time(12.3), "12 ns");
        assert_eq!(time(12_345.0), "12.35 µs");
        assert_eq!(time(12_345_678.0), "12.35 ms");
        assert_eq!(time(2e9), "2.00 s");
    }

    #[test]
    fn text_is_on_the_left_and_numbers_are_on_the_right() {
        let mut columns = Columns::new(&["name", "number", "about:"]);
        columns.add(&["a".to_owned(), "1".to_owned(), "b".to_owned()]);
        assert_eq!(columns.to_string(), " name  number  about\n a          1  b");
    }

    #[test]
    fn columns_go_where_there_is_no_room() {
        let line: Vec<String> = TITLES.iter().map(|_| "x".repeat(10)).collect();
        let titles = |asked: &[usize], room| {
            let shown = fitting(asked, std::slice::from_ref(&line), room);
            shown.into_iter().map(|column| TITLES[column]).collect::<Vec<_>>()
        };
        let all: Vec<usize> = (0..TITLES.len()).collect();
        assert_eq!(titles(&all, 1000), TITLES);
        assert_eq!(titles(&[0, 1, 2, 3, 4, 13], 63), ["program", "baseline", "loopopt", "ratio", "95 % interval"]);
        assert_eq!(titles(&[0, 1, 2, 3, 4, 13], 10), ["program", "loopopt", "ratio"]);
        assert!(DISPENSABLE.iter().all(|title| TITLES.contains(title)));
    }

    #[test]
    fn marks() {
        assert_eq!((mark(true, 1.5), mark(false, 1.03), mark(false, 1.01)), ("≈", "slower", ""));
    }
}
