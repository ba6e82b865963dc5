//! What is printed of a function, and how lines are broken.

use super::emitted::in_words;
use super::unit::{Explained, MAX_LOWERED, Said};
use super::{Shown, gain, origin};
use crate::input::Lines;
use crate::listing::count;
use anstyle::{AnsiColor, Style};
use comfy_table::Table;
use cranelift_codegen::ir::Block;
use loopopt::analysis::cfg::loops::Loop;
use loopopt::{Remark, Verdict};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::io::{self, Write};
use std::sync::LazyLock;

/// The most characters of a line, as far as words allow.
const WIDTH: usize = 120;

/// What a line has at least, however narrow the terminal is.
const NARROW: usize = 40;

/// The characters of a line on this terminal.
static LINE: LazyLock<usize> = LazyLock::new(|| {
    Table::new().width().filter(|&width| width > 0).map_or(WIDTH, |width| usize::from(width).clamp(NARROW, WIDTH))
});

/// The most lines of the file after a remark.
const MAX_PLACES: usize = 4;

/// What is printed of a function, and how.
pub(super) struct Printer<'a> {
    pub(super) shown: Shown<'a>,
    pub(super) name: &'a str,
    pub(super) lines: &'a Lines<'a>,
    pub(super) colours: bool,
    pub(super) explained: &'a Explained,
}

impl Printer<'_> {
    pub(super) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let Explained { before, report, .. } = self.explained;
        let title = self.paint(Style::new().bold(), &format!("function %{}", self.name));
        if before.is_empty() && before.irreducible().is_empty() && report.remarks.iter().len() == 0 {
            return writeln!(out, "{title}: no loops, nothing to do\n");
        }
        let change = if report.changed { "changed" } else { "left as it is" };
        writeln!(out, "{title}: {}, {change}", count(before.len(), "loop"))?;
        let (mut hidden, mut said) = (0, Refusals::new());
        for lp in before.loops() {
            hidden += self.print_loop(lp, &mut said, out)?;
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
                self.print_remark("    ", remark, &mut said, out)?;
            }
        }
        if self.shown.passes.is_empty() {
            match (self.explained.is_lowered, self.explained.stack_accesses) {
                (true, [0, 0]) => {}
                (true, [before, after]) => {
                    let text = format!(
                        "accesses to the stack frame in innermost loops, without cold blocks: {before} → {after}"
                    );
                    print_paragraph(&text, out)?;
                }
                (false, _) => {
                    let text = format!(
                        "machine code: not looked at, which is done for this machine and up to {MAX_LOWERED} instructions; `show --asm` has all"
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
    fn print_loop(&self, lp: Loop, said: &mut Refusals, out: &mut dyn Write) -> io::Result<usize> {
        let data = self.explained.before.data(lp);
        /// Levels up to which loops are indented more than the outer one: deeper ones say how deep they are.
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
            self.print_remark(&indent, remark, said, out)?;
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
    pub(super) fn line(&self, block: Block) -> Option<usize> {
        self.lines.of(self.name, &block.to_string())
    }

    /// The lines of the file that define the values of a message, but for the function's arguments, and those of its instructions.
    pub(super) fn places(&self, remark: &Remark) -> Vec<(usize, &str)> {
        let arguments = self.explained.entry.and_then(|entry| self.line(entry));
        let values = origin::names(&remark.message).filter(|name| name.starts_with('v'));
        let lines = values.filter_map(|name| self.lines.of(self.name, name)).filter(|&line| Some(line) != arguments);
        let named = origin::instructions(&remark.message);
        let named = named.filter_map(|(opcode, block)| self.lines.of_opcode(self.name, block, opcode));
        let lines: BTreeSet<usize> = lines.chain(named).collect();
        lines.into_iter().take(MAX_PLACES).map(|line| (line, self.lines.instruction(line))).collect()
    }

    fn print_remark(&self, indent: &str, said: &Said, refusals: &mut Refusals, out: &mut dyn Write) -> io::Result<()> {
        let mut remark = said.remark.clone();
        if said.times > 1 && remark.fired() {
            remark.message = format!("{} ({} times)", remark.message, said.times).into();
        }
        if let Verdict::Declined { help, .. } = &mut remark.verdict
            && !refusals.insert((remark.pass, remark.message.clone()))
        {
            (remark.message, *help) = ("as above".into(), "");
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

/// What was refused in a function, by which pass: it is said at length once.
type Refusals = HashSet<(&'static str, Cow<'static, str>)>;

/// Prints what it is good for that these passes fired.
pub(super) fn print_gains(fired: &BTreeSet<&'static str>, out: &mut dyn Write) -> io::Result<()> {
    let mut gains = loopopt::pass_names().filter(|pass| fired.contains(pass)).filter_map(gain).peekable();
    if gains.peek().is_none() {
        return Ok(());
    }
    writeln!(out, "what this gives")?;
    for gain in gains {
        print_wrapped("  ", gain, out)?;
    }
    writeln!(out)
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

/// Prints a text in lines that are not too wide; all but the first are indented. Entry tests of loops with many checks are
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
