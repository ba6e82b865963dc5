//! `explain`: what was done to each loop, and what was not and why, in words.

mod emitted;
mod gains;
mod json;
mod origin;
mod printer;
mod unit;

use super::Ending;
use crate::cli::{ExplainArgs, ShownArgs};
use crate::error::in_file;
use crate::input::{Input, Lines, functions_for_any_target};
use crate::progress::{hidden, progress};
use crate::{listing, target};
use anstream::{AutoStream, ColorChoice};
use anyhow::Result;
use cranelift_codegen::isa::OwnedTargetIsa;
pub(super) use gains::gain;
pub(super) use json::{FunctionRecord, LoopRecord, RemarkRecord};
use loopopt::oracle::require_passes;
use loopopt::{Options, Remark, Verdict};
use printer::Printer;
pub use printer::print_remark;
use std::collections::BTreeSet;
use std::io::{self, Write};
use unit::{Depth, Explained, Unit};

/// The number of functions above which it says how far it is. 1,000: they take half a second.
const MANY_FUNCTIONS: usize = 1_000;

pub(super) fn run(args: &ExplainArgs, out: &mut dyn Write) -> Result<Ending> {
    let shown = Shown::of(&args.shown)?;
    if let Some(target) = &args.target {
        let isa = &*target::named(target)?;
        let (file, text, functions) = functions_for_any_target(&args.file, args.function.as_deref())?;
        let options = &args.optimizer.options_of(&file, &text)?;
        let unit = Unit { file: &file, lines: &Lines::new(&text), functions: functions.iter().collect(), isa };
        return say(&unit, (options, Depth::Remarks), (shown, args.shown.json), out);
    }
    let input = Input::open(&args.file)?;
    let options = args.optimizer.options_for(&input)?;
    let names = input.selected(args.function.as_deref())?;
    let is_whole = shown.passes.is_empty() || args.shown.json;
    let depth = if is_whole { Depth::MachineCode } else { Depth::Remarks };
    let isa = &*host(&input)?;
    let lines = Lines::new(&input.text);
    let unit = Unit::of(&input, &names, &lines, isa);
    say(&unit, (&options, depth), (shown, args.shown.json), out)
}

/// Prints what is said, as text or as JSON.
fn say(
    unit: &Unit<'_>,
    (options, depth): (&Options, Depth),
    (shown, as_json): (Shown<'_>, bool),
    out: &mut dyn Write,
) -> Result<Ending> {
    if as_json {
        let functions = unit.records((options, depth), shown)?;
        writeln!(out, "{}", serde_json::to_string_pretty(&json::Record { functions })?)?;
        return Ok(Ending::Fine);
    }
    let colours = AutoStream::choice(&io::stdout()) != ColorChoice::Never;
    let print = |name: &str, lines: &Lines<'_>, explained: &Explained| {
        let mut text = Vec::new();
        Printer { shown, name, lines, colours, explained }.print(&mut text)?;
        Ok((text, explained.report.remarks.fired_counts()))
    };
    let count = unit.functions.len();
    let progress = if count > MANY_FUNCTIONS { progress(count) } else { hidden() };
    progress.set_message("functions");
    let mut fired = BTreeSet::new();
    unit.each_function((options, depth), print, |(text, counts)| {
        fired.extend(counts.into_keys());
        progress.inc(1);
        Ok(out.write_all(&text)?)
    })?;
    progress.finish_and_clear();
    if shown.passes.is_empty() {
        printer::print_gains(&fired, out)?;
    }
    Ok(Ending::Fine)
}

/// What is said of these functions, with all refusals.
pub(super) fn records(
    input: &Input,
    names: &[String],
    options: &Options,
    shown: Shown<'_>,
) -> Result<Vec<FunctionRecord>> {
    let isa = &*host(input)?;
    let lines = Lines::new(&input.text);
    Unit::of(input, names, &lines, isa).records((options, Depth::MachineCode), shown)
}

/// The machine that a program is for.
fn host(input: &Input) -> Result<OwnedTargetIsa> {
    let isa = input.program.isa();
    isa.map_err(|error| in_file(&input.name, &error, "the function cannot be compiled for this host"))
}

/// Which remarks are asked for.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// Those of these passes, or of all if there are none.
    passes: &'a [String],
    /// Those that nothing can be done about too.
    all: bool,
}

impl<'a> Shown<'a> {
    /// All.
    pub const ALL: Self = Self { passes: &[], all: true };

    /// Those that are asked for. The error is for a pass that there is not.
    pub fn of(args: &'a ShownArgs) -> Result<Self> {
        require_passes(args.filter.iter().map(String::as_str))?;
        Ok(Self { passes: &args.filter, all: args.all })
    }

    /// Whether a remark is of one of the passes that are asked for.
    pub fn of_passes(&self, remark: &Remark) -> bool {
        self.passes.is_empty() || self.passes.iter().any(|pass| pass == remark.pass)
    }

    /// Whether a remark is printed: what was done, and what was refused if it can be helped, or whatever is asked for.
    pub fn holds(&self, remark: &Remark) -> bool {
        if !self.passes.is_empty() {
            return self.of_passes(remark);
        }
        self.all
            || match &remark.verdict {
                Verdict::Fired => true,
                Verdict::Declined { help, .. } => !help.is_empty(),
            }
    }

    /// What is said of so many remarks that were left out.
    pub fn hidden(&self, count: usize) -> Option<String> {
        let refusals = listing::count(count, "refusal");
        let text = || format!("{refusals} about which nothing can be done: --all shows them");
        (count > 0 && self.passes.is_empty()).then(text)
    }
}

/// The reason of a refusal, and what would help, if anything would. Nothing of what was done.
pub fn refusal(remark: &Remark) -> (Option<&'static str>, Option<&'static str>) {
    match remark.verdict {
        Verdict::Fired => (None, None),
        Verdict::Declined { reason, help } => (Some(reason), Some(help).filter(|help| !help.is_empty())),
    }
}
