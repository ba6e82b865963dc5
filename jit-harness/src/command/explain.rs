//! `explain`: what was done to each loop, and what was not and why, in words.

use super::Ending;
use crate::cli::ExplainArgs;
use crate::error::in_file;
use crate::input::Input;
use crate::listing::count;
use crate::machine::InnermostLoops;
use crate::target;
use anyhow::{Result, anyhow};
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{Block, Function};
use cranelift_codegen::isa::TargetIsa;
use loopopt::analysis::cfg::loops::{Loop, LoopForest};
use loopopt::{LoopOptimizer, Options, Remark, Report, Verdict};
use std::collections::HashMap;
use std::io::{self, Write};

/// The most characters of a line, as far as words allow.
const WIDTH: usize = 120;

pub(super) fn run(args: &ExplainArgs, out: &mut dyn Write) -> Result<Ending> {
    let options = args.optimizer.options()?;
    let input = Input::open(&args.file)?;
    let names = input.selected(args.function.as_deref())?;
    let isa = target::host()?;
    let lines = input.block_lines();
    for (name, function) in input.function_names().iter().zip(input.program.functions()) {
        if names.contains(name) {
            let explained = Explained::new(function, &*isa, &options)
                .map_err(|error| in_file(&input.name, &error, "the function cannot be compiled for this host"))?;
            explained.print(name, &lines, out)?;
        }
    }
    Ok(Ending::Fine)
}

/// A function with its loops as they were, and what became of them.
struct Explained {
    before: LoopForest,
    after: LoopForest,
    report: Report,
    /// The innermost loops of the machine code, without and with loopopt.
    emitted: [InnermostLoops; 2],
}

impl Explained {
    fn new(function: &Function, isa: &dyn TargetIsa, options: &Options) -> Result<Self> {
        let plane = &mut ControlPlane::default();
        let mut ctx = Context::for_function(function.clone());
        ctx.optimize(isa, plane).map_err(|error| anyhow!("{}: {error}", function.name))?;
        let before = LoopForest::new(&ctx.func, &ctx.cfg, &ctx.domtree);
        let emitted_before = emit(&ctx, isa)?;
        let report = LoopOptimizer::new(options.clone())
            .run(&mut ctx, isa, plane)
            .map_err(|error| anyhow!("{}: loopopt fails: {error}", function.name))?;
        let after = LoopForest::new(&ctx.func, &ctx.cfg, &ctx.domtree);
        let emitted = [emitted_before, emit(&ctx, isa)?];
        Ok(Self { before, after, report, emitted })
    }

    fn print(&self, name: &str, lines: &HashMap<(String, Block), usize>, out: &mut dyn Write) -> io::Result<()> {
        if self.before.is_empty() && self.before.irreducible().is_empty() {
            return writeln!(out, "function %{name}: no loops, nothing to do\n");
        }
        let change = if self.report.changed { "changed" } else { "left as it is" };
        writeln!(out, "function %{name}: {}, {change}", count(self.before.len(), "loop"))?;
        for lp in self.before.loops() {
            let data = self.before.data(lp);
            let indent = "    ".repeat(data.depth as usize);
            let line =
                lines.get(&(name.to_owned(), data.header)).map_or(String::new(), |line| format!(" (line {line})"));
            let kind = if data.depth == 1 { "loop" } else { "inner loop" };
            writeln!(out, "\n{indent}{kind} at {}{line}", data.header)?;
            self.print_remarks(&indent, |remark| self.owner(remark.header) == Some(lp), out)?;
        }
        let of_cycle = |remark: &Remark| self.before.irreducible().contains(&remark.header);
        let of_none = |remark: &Remark| self.owner(remark.header).is_none() && !of_cycle(remark);
        self.print_section("cycles that are no loops", of_cycle, out)?;
        self.print_section("the function as a whole", of_none, out)?;
        self.print_gains(out)?;
        self.print_emitted(out)?;
        writeln!(out)
    }

    /// The size of the innermost loops, and how much they spill.
    fn print_emitted(&self, out: &mut dyn Write) -> io::Result<()> {
        let [before, after] = self.emitted;
        writeln!(out, "\n    machine code of innermost loops")?;
        writeln!(out, "      instructions: {} -> {}", before.insts, after.insts)?;
        writeln!(out, "      accesses to the stack frame: {} -> {}", before.stack_accesses, after.stack_accesses)
    }

    /// What it is good for that passes fired, once for the function.
    fn print_gains(&self, out: &mut dyn Write) -> io::Result<()> {
        let fired = self.report.remarks.fired_counts();
        let mut gains = loopopt::pass_names().filter(|pass| fired.contains_key(pass)).filter_map(gain).peekable();
        if gains.peek().is_some() {
            writeln!(out, "\n    what this gives")?;
        }
        for gain in gains {
            print_wrapped("      ", gain, out)?;
        }
        Ok(())
    }

    /// These remarks under a title, if there are any.
    fn print_section(&self, title: &str, select: impl Fn(&Remark) -> bool, out: &mut dyn Write) -> io::Result<()> {
        if !self.report.remarks.iter().any(&select) {
            return Ok(());
        }
        writeln!(out, "\n    {title}")?;
        self.print_remarks("    ", select, out)
    }

    fn print_remarks(&self, indent: &str, select: impl Fn(&Remark) -> bool, out: &mut dyn Write) -> io::Result<()> {
        let mut remarks = self.report.remarks.iter().filter(|remark| select(remark)).peekable();
        if remarks.peek().is_none() {
            writeln!(out, "{indent}  no pass found anything to do")?;
        }
        for remark in remarks {
            print_remark(indent, remark, out)?;
        }
        Ok(())
    }

    /// The loop that a header belongs to. Passes make other blocks headers, of which some are new: those belong to the
    /// outermost of the loops that their loop's old blocks are from.
    fn owner(&self, header: Block) -> Option<Loop> {
        if self.before.irreducible().contains(&header) {
            return None;
        }
        self.before.innermost(header).or_else(|| {
            let now = self.after.innermost(header)?;
            let old = self.after.blocks(now).iter().filter_map(|&block| self.before.innermost(block));
            old.min_by_key(|&lp| self.before.data(lp).depth)
        })
    }
}

/// Lowers the function as it is.
fn emit(ctx: &Context, isa: &dyn TargetIsa) -> Result<InnermostLoops> {
    let plane = &mut ControlPlane::default();
    let code = isa
        .compile_function(&ctx.func, &ctx.domtree, &mut Default::default(), false, plane)
        .map_err(|error| anyhow!("{}: {error}", ctx.func.name))?;
    Ok(InnermostLoops::of(code.buffer.data()))
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

/// Prints a text in lines that are not too wide; all but the first stand further in. Entry tests of loops with many checks are
/// long.
fn print_wrapped(indent: &str, text: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut line = indent.to_owned();
    let mut is_empty = true;
    for word in text.split(' ') {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
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

/// What it is good for that a pass fired, each sentence behind the name of the pass.
const GAINS: &[&str] = &[
    "forward_select_load: the value is selected from two that are loaded already, and is not loaded again from an address that has \
     to be selected first",
    "propagate_equality: a condition that a branch has decided is a constant. It is not kept as a value beside the flags of the \
     processor",
    "mem2reg: variables that were stored and loaded again at each use are in registers, as far as there are enough, and \
     what other passes can find out about values they can find out about these too",
    "rotate: the loop tests at its end, so an iteration has one jump where it had two. A first test decides whether \
     the loop runs at all: values that are computed before the loop are computed only if it runs",
    "elide_checks: a check that the tests before it imply cannot fail. It is not done any more, and what stood behind it is free \
     to move",
    "guard_to_trap: an access does not wait for a guard to choose its address. A check that traps says where it may go on, and \
     what it says holds for what is behind it",
    "licm: what gives the same in each iteration is computed once, before the loop, and waits there in a register. A \
     check that is done before the loop is not done in it",
    "unswitch: a branch that goes the same way in each iteration is decided once, before the loop; each way has a loop of its \
     own, which does nothing for the others",
    "version: one test before the loop, of first and last values, takes the place of a check in each iteration. If it fails, \
     the loop runs as it was, with its checks, so that it traps where it did. Without the checks, loads and stores of the \
     fast loop are free to move",
    "transfer: an iteration that needs the rare part is finished in a copy, and the loop is entered anew. What only the rare \
     part changes is read once in between",
    "widen_indices: an index is counted and added up in 64 bits, as the machine adds it up in an address, so that nothing is extended \
     in each iteration",
    "promote: an iteration does not wait for the store of the one before it to be loaded again. If the store has left \
     the loop too, nothing is written until the end",
    "sink: what only one exit of the loop uses, or only a rare block, is computed there and not in each iteration",
    "full_unroll: the iterations stand one behind the other, so nothing counts them, and what depends on the count alone is \
     constant",
    "partial_unroll: several iterations share a test, a jump and the steps of counters; the loop as it was does the rest",
    "reassociate: what an iteration adds is put together before it is added, so that an iteration waits for one operation of the one before",
    "peel: the first iterations stand before the loop. What they have checked, loaded or computed for all others is not \
     done again",
    "tail_duplicate: each way through the loop ends in a test of its own, and not in a jump to a common one",
    "layout: the code of the loop is in one piece, and goes on without a jump as long as the loop does",
    "order_latch: the old value is not needed any more when the new one is made, so both can be in the same register, \
     and no iteration moves one to the other",
];

/// What it is good for that a pass fired.
fn gain(pass: &str) -> Option<&'static str> {
    GAINS.iter().copied().find(|gain| gain.split_once(':').is_some_and(|(name, _)| name == pass))
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
