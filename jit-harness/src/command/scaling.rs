//! `bench --scaling`: whether compile time grows faster than the function, in each direction in which a function can grow.
//!
//! A pass that looks at each pair of something takes four times as long if there is twice as much of it, which a mean over real
//! programs does not show. So each direction has functions of sizes that double, with little else in them. The exponent is the binary
//! logarithm of the growth of the time from one size to the next: 1 if time is linear, 2 if it grows with the square.

use super::Ending;
use super::compile_time::{Meter, Row, Work};
use crate::cli::BenchArgs;
use crate::progress::progress;
use crate::report::table::{Columns, time};
use crate::report::whole::WholeFile;
use crate::scaling::{DIRECTIONS, Direction};
use crate::target;
use anyhow::{Context as _, Result, bail};
use cranelift_reader::parse_functions;
use serde::Serialize;
use std::io::{self, Write};

/// All that is measured.
#[derive(Debug, Serialize)]
struct Scaling {
    directions: Vec<Growth>,
    /// The processor.
    cpu: String,
}

/// One direction.
#[derive(Debug, Serialize)]
struct Growth {
    name: &'static str,
    sizes: Vec<usize>,
    rows: Vec<Row>,
}

pub(super) fn run(args: &BenchArgs, out: &mut dyn Write) -> Result<Ending> {
    let options = args.optimizer.options()?;
    let isa = target::host()?;
    let filter = args.filter.as_deref().unwrap_or_default();
    let directions: Vec<&Direction> = DIRECTIONS.iter().filter(|direction| direction.name.contains(filter)).collect();
    if directions.is_empty() {
        let names: Vec<_> = DIRECTIONS.iter().map(|direction| direction.name).collect();
        bail!("no direction has `{filter}` in its name; there are {}", names.join(", "));
    }
    let file = args.json.as_deref().map(WholeFile::new).transpose()?;
    let repeat = if args.quick { 3 } else { 9 };
    let work = |direction: &Direction| {
        let functions = direction.sizes.iter().map(|&size| work(direction, size, repeat));
        functions.collect::<Result<Vec<_>>>()
    };
    let work: Vec<Vec<Work>> = directions.iter().map(|direction| work(direction)).collect::<Result<_>>()?;
    let size = work.iter().flatten().map(Work::size).sum();
    let meter = Meter { isa: &*isa, options: &options, progress: &progress(size) };
    let mut scaling = Scaling { directions: Vec::new(), cpu: target::cpu() };
    for (direction, work) in directions.iter().zip(&work) {
        let rows = work.iter().map(|work| meter.row(work)).collect::<Result<_>>()?;
        scaling.directions.push(Growth { name: direction.name, sizes: direction.sizes.to_vec(), rows });
    }
    meter.progress.finish_and_clear();
    print(&scaling, out)?;
    if let Some(file) = file {
        file.finish(&scaling)?;
    }
    Ok(Ending::Fine)
}

/// The function of a direction in one size.
fn work(direction: &Direction, size: usize, repeat: usize) -> Result<Work> {
    let functions = parse_functions(&direction.function(size)).context("a generated function")?;
    let function = functions.into_iter().next().context("the text has a function")?;
    Ok(Work::of_one(&format!("{size} {}", direction.name), function, repeat))
}

fn print(scaling: &Scaling, out: &mut dyn Write) -> io::Result<()> {
    let header =
        ["direction", "size", "baseline", "loopopt", "ratio", "exponents", "loop passes", "lower", "most time in:"];
    let mut table = Columns::new(&header);
    for Growth { name, sizes, rows } in &scaling.directions {
        for (index, (size, row)) in sizes.iter().zip(rows).enumerate() {
            let before = index.checked_sub(1).map(|before| &rows[before]);
            table.add(&[
                if index == 0 { (*name).to_owned() } else { String::new() },
                size.to_string(),
                time(row.baseline_ns),
                time(row.loopopt_ns),
                format!("{:.2}", row.loopopt_ns / row.baseline_ns),
                before.map_or(String::new(), |before| exponents(before, row)),
                format!("{:.0} %", 100.0 * row.run_ns / row.baseline_ns),
                format!("{:.2}", row.lower_ns[1] / row.lower_ns[0]),
                slowest_passes(row),
            ]);
        }
    }
    writeln!(out, "{table}\n")?;
    writeln!(out, "exponents of the baseline and of the loop passes: 1 is linear, 2 is quadratic in the size")?;
    writeln!(
        out,
        "lower: time to lower the code with loopopt by that without; shares are of the baseline's compile time"
    )
}

/// How the baseline and the loop passes have grown since the size before.
fn exponents(before: &Row, row: &Row) -> String {
    let exponent = |time: fn(&Row) -> f64| (time(row) / time(before)).log2();
    format!("{:.1} {:.1}", exponent(|row| row.baseline_ns), exponent(|row| row.run_ns))
}

/// The two passes that take the most time.
fn slowest_passes(row: &Row) -> String {
    let mut passes = row.passes.clone();
    passes.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let shares = passes.iter().take(2).map(|(pass, ns)| format!("{pass} {:.0} %", 100.0 * ns / row.baseline_ns));
    shares.collect::<Vec<_>>().join(", ")
}
