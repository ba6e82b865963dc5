//! `explain`: what was done to each loop, and what was not and why, in words.

mod emitted;
mod gains;
mod json;
mod origin;

use super::Ending;
use crate::cli::{ExplainArgs, ShownArgs};
use crate::error::{guard, in_file};
use crate::input::{Input, Lines, cannot_compile};
use crate::listing::{self, count};
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use anyhow::{Result, anyhow};
use comfy_table::Table;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{Block, Function};
use cranelift_codegen::isa::TargetIsa;
use emitted::{Emitted, in_words};
pub(super) use gains::gain;
pub(super) use json::{FunctionRecord, LoopRecord, RemarkRecord};
use loopopt::analysis::cfg::loops::{Loop, LoopForest};
use loopopt::analysis::inst::num_insts;
use loopopt::oracle::require_passes;
use loopopt::{LoopOptimizer, Options, Remark, Report, Verdict};
use origin::Origins;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{self, Write};
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::LazyLock;
use std::thread::{self, ScopedJoinHandle};

/// The most characters of a line, as far as words allow.
const WIDTH: usize = 120;

/// What a line has at least, however narrow the terminal is.
const NARROW: usize = 40;

/// The characters of a line on this terminal.
static LINE: LazyLock<usize> = LazyLock::new(|| {
    Table::new().width().filter(|&width| width > 0).map_or(WIDTH, |width| usize::from(width).clamp(NARROW, WIDTH))
});

/// The most instructions of a function whose machine code is looked at. 20,000: they take a second, and Cranelift's register allocator takes time
/// that grows with the square of the size of functions without branches in their loops.
const MAX_LOWERED: usize = 20_000;

/// The functions that a thread compiles before what is said of them is printed. 16: nobody waits long for the first ones.
const FUNCTIONS_AT_A_TIME: usize = 16;

/// The most lines of the file behind a remark.
const MAX_PLACES: usize = 4;

pub(super) fn run(args: &ExplainArgs, out: &mut dyn Write) -> Result<Ending> {
    let shown = Shown::of(&args.shown)?;
    let input = Input::open(&args.file)?;
    let options = args.optimizer.options_for(&input)?;
    let names = input.selected(args.function.as_deref())?;
    let colours = AutoStream::choice(&io::stdout()) != ColorChoice::Never;
    if args.shown.json {
        let functions = records(&input, &names, &options, shown)?;
        writeln!(out, "{}", serde_json::to_string_pretty(&json::Record { functions })?)?;
        return Ok(Ending::Fine);
    }
    let depth = if shown.passes.is_empty() { Depth::MachineCode } else { Depth::Remarks };
    let print = |name: &str, lines: &Lines<'_>, explained: &Explained| {
        let mut text = Vec::new();
        Printer { shown, name, lines, colours, explained }.print(&mut text)?;
        Ok(text)
    };
    each_function((&input, &names), (&options, depth), print, |text| Ok(out.write_all(&text)?))?;
    Ok(Ending::Fine)
}

/// What is said of these functions, with all refusals.
pub(super) fn records(
    input: &Input,
    names: &[String],
    options: &Options,
    shown: Shown<'_>,
) -> Result<Vec<FunctionRecord>> {
    let mut records = Vec::new();
    let record = |name: &str, lines: &Lines<'_>, explained: &Explained| {
        Ok(Printer { shown, name, lines, colours: false, explained }.record())
    };
    each_function((input, names), (options, Depth::MachineCode), record, |record| {
        records.push(record);
        Ok(())
    })?;
    Ok(records)
}

/// What is looked at of a function.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// What is said of its loops.
    Remarks,
    /// And what becomes of them in machine code.
    MachineCode,
}

/// Compiles these functions of a file, several at a time, and takes what is made of each in their order.
fn each_function<T: Send>(
    (input, names): (&Input, &[String]),
    (options, depth): (&Options, Depth),
    make: impl Fn(&str, &Lines<'_>, &Explained) -> Result<T> + Sync,
    mut take: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    let isa = &*input
        .program
        .isa()
        .map_err(|error| in_file(&input.name, &error, "the function cannot be compiled for this host"))?;
    let lines = &input.lines();
    let names: HashSet<&String> = names.iter().collect();
    let all = input.function_names();
    let wanted = all.iter().zip(input.program.functions()).filter(|(name, _)| names.contains(name));
    let one = |(name, function): &(&String, &Function)| {
        let is_known = |entity: &str| lines.of(name, entity).is_some();
        let explained = guard(|| Explained::new(function, isa, (options, depth), &is_known))
            .map_err(|error| cannot_compile(&format!("{}: %{name}", input.name), &error))?;
        make(name, lines, &explained)
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    for group in wanted.collect::<Vec<_>>().chunks(threads * FUNCTIONS_AT_A_TIME) {
        let size = group.len().div_ceil(threads);
        let made: Vec<T> = thread::scope(|scope| {
            let one = &one;
            let spawn =
                group.chunks(size).map(|part| scope.spawn(move || part.iter().map(one).collect::<Result<Vec<T>>>()));
            let parts: Vec<_> = spawn.collect();
            let join =
                |part: ScopedJoinHandle<'_, Result<Vec<T>>>| part.join().unwrap_or_else(|panic| resume_unwind(panic));
            parts.into_iter().map(join).collect::<Result<Vec<_>>>().map(|parts| parts.into_iter().flatten().collect())
        })?;
        made.into_iter().try_for_each(&mut take)?;
    }
    Ok(())
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

/// What is said of a loop.
struct Said {
    remark: Remark,
    /// How often: of a loop and its copies the same can be said.
    times: usize,
}

/// A function with its loops as they were, and what became of them.
struct Explained {
    before: LoopForest,
    /// The block with the function's arguments.
    entry: Option<Block>,
    report: Report,
    /// For each loop, and for what is of none, the remarks.
    remarks: HashMap<Option<Loop>, Vec<Said>>,
    /// For each loop, the loops of machine code that it was and that it has become.
    emitted: HashMap<Loop, [Vec<Emitted>; 2]>,
    /// Whether machine code was looked at.
    is_lowered: bool,
    /// Accesses to the stack frame in innermost loops, without and with loopopt.
    stack_accesses: [usize; 2],
}

impl Explained {
    /// Compiles the function. `is_known` says which blocks and values the file has.
    fn new(
        function: &Function,
        isa: &dyn TargetIsa,
        (options, depth): (&Options, Depth),
        is_known: &dyn Fn(&str) -> bool,
    ) -> Result<Self> {
        let plane = &mut ControlPlane::default();
        let mut ctx = Context::for_function(function.clone());
        ctx.optimize(isa, plane).map_err(|error| anyhow!("{}: {error}", function.name))?;
        let before = LoopForest::new(&ctx.func, &ctx.cfg, &ctx.domtree);
        let is_lowered = depth == Depth::MachineCode && num_insts(&ctx.func) <= MAX_LOWERED;
        // Copies of an instruction keep its source location, and nothing depends on it.
        emitted::number_blocks(&mut ctx.func);
        let emit = |ctx: &mut Context| match is_lowered {
            true => emitted::innermost(ctx, &before, isa),
            false => Ok(Vec::new()),
        };
        let emitted_before = emit(&mut ctx)?;
        origin::label(&mut ctx.func, |value| is_known(&value.to_string()));
        let report = LoopOptimizer::new(options.clone())
            .run(&mut ctx, isa, plane)
            .map_err(|error| anyhow!("{}: loopopt fails: {error}", function.name))?;
        let origins = Origins::new(&ctx.func, is_known);
        let remarks = report.remarks.iter().map(|remark| origins.renamed(remark)).collect();
        ctx.func.dfg.values_labels = None;
        let emitted = [emitted_before, emit(&mut ctx)?];
        let stack_accesses = emitted.each_ref().map(|all| all.iter().map(|lp| lp.stack_accesses).sum());
        let entry = ctx.func.layout.entry_block();
        let mut explained = Self {
            before,
            entry,
            report,
            is_lowered,
            stack_accesses,
            remarks: HashMap::new(),
            emitted: HashMap::new(),
        };
        explained.assign(remarks, emitted);
        Ok(explained)
    }

    /// Finds the loop that each remark and each loop of machine code belongs to.
    fn assign(&mut self, remarks: Vec<Remark>, emitted: [Vec<Emitted>; 2]) {
        let mut places = HashMap::new();
        for remark in remarks {
            let is_cycle = self.before.irreducible().contains(&remark.header);
            let owner = if is_cycle { None } else { self.before.innermost(remark.header) };
            let known = self.remarks.entry(owner).or_default();
            let place =
                *places.entry((owner, remark.pass, remark.fired(), remark.message.clone())).or_insert(known.len());
            match known.get_mut(place) {
                Some(said) => said.times += 1,
                None => known.push(Said { remark, times: 1 }),
            }
        }
        for (when, loops) in emitted.into_iter().enumerate() {
            for lp in loops {
                if let Some(origin) = lp.origin {
                    self.emitted.entry(origin).or_default()[when].push(lp);
                }
            }
        }
    }

    /// The remarks of a loop, or of none.
    fn remarks(&self, lp: Option<Loop>) -> impl Iterator<Item = &Said> {
        self.remarks.get(&lp).into_iter().flatten()
    }

    /// How many iterations at a time the fast loop of `lp` does, if that is one number. `partial_unroll` says it first.
    fn unrolled(&self, lp: Loop) -> Option<usize> {
        let is_unrolled = |said: &&Said| said.remark.pass == "partial_unroll" && said.remark.fired();
        let mut fired = self.remarks(Some(lp)).filter(is_unrolled);
        let Said { remark, times } = fired.next()?;
        let number = remark.message.split(' ').next()?.parse().ok();
        number.filter(|_| *times == 1 && fired.next().is_none())
    }
}

/// What is printed of a function, and how.
struct Printer<'a> {
    shown: Shown<'a>,
    name: &'a str,
    lines: &'a Lines<'a>,
    colours: bool,
    explained: &'a Explained,
}

impl Printer<'_> {
    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let Explained { before, report, .. } = self.explained;
        let title = self.paint(Style::new().bold(), &format!("function %{}", self.name));
        if before.is_empty() && before.irreducible().is_empty() && report.remarks.iter().len() == 0 {
            return writeln!(out, "{title}: no loops, nothing to do\n");
        }
        let change = if report.changed { "changed" } else { "left as it is" };
        writeln!(out, "{title}: {}, {change}", count(before.len(), "loop"))?;
        let mut hidden = 0;
        for lp in before.loops() {
            hidden += self.print_loop(lp, out)?;
        }
        let (of_cycles, of_none): (Vec<&Said>, Vec<&Said>) =
            self.explained.remarks(None).partition(|said| before.irreducible().contains(&said.remark.header));
        for (title, remarks) in [("cycles that are no loops", of_cycles), ("the function as a whole", of_none)] {
            let shown: Vec<&Said> = remarks.iter().copied().filter(|said| self.shown.holds(&said.remark)).collect();
            hidden += remarks.len() - shown.len();
            if !shown.is_empty() {
                writeln!(out, "\n    {title}")?;
            }
            for remark in shown {
                self.print_remark("    ", remark, out)?;
            }
        }
        if self.shown.passes.is_empty() {
            self.print_gains(out)?;
            match (self.explained.is_lowered, self.explained.stack_accesses) {
                (true, [before, after]) => {
                    let text = format!("accesses to the stack frame in innermost loops: {before} → {after}");
                    print_paragraph(&text, out)?;
                }
                (false, _) => {
                    let text = format!(
                        "machine code: not looked at, the function has more than {MAX_LOWERED} instructions; `show --asm` does"
                    );
                    print_paragraph(&text, out)?;
                }
            }
        }
        if let Some(text) = self.shown.hidden(hidden) {
            print_paragraph(&text, out)?;
        }
        writeln!(out)
    }

    /// Prints what is to be said of a loop. Returns how many remarks were left out.
    fn print_loop(&self, lp: Loop, out: &mut dyn Write) -> io::Result<usize> {
        let data = self.explained.before.data(lp);
        /// Levels up to which loops stand further in than the one around: deeper ones say how deep they are.
        const MAX_INDENT: usize = 8;
        let depth = data.depth as usize;
        let indent = "    ".repeat(depth.min(MAX_INDENT));
        let kind = match depth {
            1 => "loop".to_owned(),
            2..=MAX_INDENT => "inner loop".to_owned(),
            _ => format!("inner loop of depth {depth}"),
        };
        let line = self.line(data.header).map_or(String::new(), |line| format!(" (line {line})"));
        let title = self.paint(Style::new().bold(), &format!("{kind} at {}{line}", data.header));
        writeln!(out, "\n{indent}{title}")?;
        let all: Vec<&Said> = self.explained.remarks(Some(lp)).collect();
        let shown: Vec<&Said> = all.iter().copied().filter(|said| self.shown.holds(&said.remark)).collect();
        if shown.is_empty() {
            let what = if all.is_empty() { "no pass found anything to do" } else { "nothing was done" };
            writeln!(out, "{indent}  {what}")?;
        }
        for remark in &shown {
            self.print_remark(&indent, remark, out)?;
        }
        if self.shown.passes.is_empty()
            && let Some([before, after]) = self.explained.emitted.get(&lp)
            && let Some(words) = in_words(before, after, self.explained.unrolled(lp))
        {
            print_wrapped(&format!("{indent}  "), &format!("machine code: instructions {words}"), out)?;
        }
        Ok(all.len() - shown.len())
    }

    /// The line of a block, if the file has the block.
    fn line(&self, block: Block) -> Option<usize> {
        self.lines.of(self.name, &block.to_string())
    }

    /// The lines of the file that define the values of a message, but for the function's arguments.
    fn places(&self, remark: &Remark) -> Vec<(usize, &str)> {
        let arguments = self.explained.entry.and_then(|entry| self.line(entry));
        let values = origin::names(&remark.message).filter(|name| name.starts_with('v'));
        let lines = values.filter_map(|name| self.lines.of(self.name, name)).filter(|&line| Some(line) != arguments);
        let lines: BTreeSet<usize> = lines.collect();
        lines.into_iter().take(MAX_PLACES).map(|line| (line, self.lines.instruction(line))).collect()
    }

    /// What it is good for that passes fired, once for the function.
    fn print_gains(&self, out: &mut dyn Write) -> io::Result<()> {
        let fired = self.explained.report.remarks.fired_counts();
        let mut gains = loopopt::pass_names().filter(|pass| fired.contains_key(pass)).filter_map(gain).peekable();
        if gains.peek().is_some() {
            writeln!(out, "\n    what this gives")?;
        }
        for gain in gains {
            print_wrapped("      ", gain, out)?;
        }
        Ok(())
    }

    fn print_remark(&self, indent: &str, said: &Said, out: &mut dyn Write) -> io::Result<()> {
        let mut remark = said.remark.clone();
        if said.times > 1 && remark.fired() {
            remark.message = format!("{} ({} times)", remark.message, said.times).into();
        }
        let mut text = Vec::new();
        print_remark(indent, &remark, &mut text)?;
        for (line, instruction) in self.places(&said.remark) {
            print_wrapped(&format!("{indent}      "), &format!("line {line}: {instruction}"), &mut text)?;
        }
        let text = String::from_utf8_lossy(&text);
        let (word, colour) = match remark.fired() {
            true => ("done:", AnsiColor::Green),
            false => ("not done:", AnsiColor::Yellow),
        };
        let text = text.replacen(word, &self.paint(Style::new().fg_color(Some(colour.into())), word), 1);
        let help = "what would help:";
        let cyan = Style::new().fg_color(Some(AnsiColor::Cyan.into()));
        write!(out, "{}", text.replacen(help, &self.paint(cyan, help), 1))
    }

    /// The text in this style, if colours are wanted.
    fn paint(&self, style: Style, text: &str) -> String {
        if self.colours { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// The reason of a refusal, and what would help, if anything would. Nothing of what was done.
pub fn refusal(remark: &Remark) -> (Option<&'static str>, Option<&'static str>) {
    match remark.verdict {
        Verdict::Fired => (None, None),
        Verdict::Declined { reason, help } => (Some(reason), Some(help).filter(|help| !help.is_empty())),
    }
}

/// Prints what a pass did or did not do.
pub fn print_remark(indent: &str, remark: &Remark, out: &mut dyn Write) -> io::Result<()> {
    let Remark { pass, message, .. } = remark;
    match &remark.verdict {
        Verdict::Fired => {
            print_wrapped(&format!("{indent}  "), &format!("{pass}: done: {message}"), out)?;
            let claims: Vec<_> = remark.claims().iter().map(|claim| claim.text()).collect();
            if claims.is_empty() {
                return Ok(());
            }
            print_wrapped(&format!("{indent}      "), &format!("rests on: {}", claims.join("; ")), out)
        }
        Verdict::Declined { reason, help } => {
            print_wrapped(&format!("{indent}  "), &format!("{pass}: not done: {message} ({reason})"), out)?;
            if help.is_empty() {
                return Ok(());
            }
            print_wrapped(&format!("{indent}      "), &format!("what would help: {help}"), out)
        }
    }
}

/// Prints what is said of a function below its loops.
fn print_paragraph(text: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out)?;
    print_wrapped("    ", text, out)
}

/// Prints a text in lines that are not too wide; all but the first stand further in. Entry tests of loops with many checks are
/// long.
fn print_wrapped(indent: &str, text: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut line = indent.to_owned();
    let mut is_empty = true;
    for word in text.split(' ') {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > *LINE {
            writeln!(out, "{line}")?;
            line = format!("{indent}    ");
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    writeln!(out, "{line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str) -> String {
        let mut out = Vec::new();
        print_wrapped("  ", text, &mut out).expect("there is room");
        String::from_utf8(out).expect("it is text")
    }

    #[test]
    fn short_texts_are_one_line() {
        assert_eq!(wrapped("rotate: done: a loop"), "  rotate: done: a loop\n");
    }

    #[test]
    fn long_texts_are_indented_lines() {
        let tests: Vec<String> = (0..12).map(|number| format!("last{number} < len{number}")).collect();
        let text = wrapped(&format!("version: done: fast if {}", tests.join(" and ")));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() > 1 && lines.iter().all(|line| line.len() <= WIDTH), "{text}");
        assert!(lines[0].starts_with("  version: ") && lines[0].len() > 100, "{text}");
        assert!(lines[1..].iter().all(|line| line.starts_with("      ") && !line[6..].starts_with(' ')), "{text}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&text).join(" "), format!("version: done: fast if {}", tests.join(" and ")));
    }

    #[test]
    fn long_words_stay_in_one_piece() {
        let word = "x".repeat(200);
        assert_eq!(wrapped(&format!("a {word} b")), format!("  a\n      {word}\n      b\n"));
    }
}
