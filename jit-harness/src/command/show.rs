//! `show`: CLIF and machine code, before and after loopopt.

use super::Ending;
use crate::cli::ShowArgs;
use crate::input::Input;
use crate::listing::{listing, summary};
use crate::machine;
use anyhow::Result;
use comfy_table::{ContentArrangement, Table, presets};
use loopopt::oracle::{CompiledFunction, Pipeline};
use similar::TextDiff;
use std::io::{self, Write};

/// Terminals of this width have room for two columns.
const WIDE: u16 = 140;

pub(super) fn run(args: &ShowArgs, out: &mut dyn Write) -> Result<Ending> {
    let options = args.optimizer.options()?;
    let input = Input::open(&args.file)?;
    let names = input.selected(args.function.as_deref())?;
    let (before, after) = (input.compile(Pipeline::Speed)?, input.compile(Pipeline::LoopOpt(&options))?);
    for (before, after) in before.functions().iter().zip(after.functions()) {
        if names.contains(&before.name) {
            show(args, [before, after], out)?;
        }
    }
    Ok(Ending::Fine)
}

fn show(args: &ShowArgs, functions: [&CompiledFunction; 2], out: &mut dyn Write) -> io::Result<()> {
    let name = &functions[0].name;
    if args.clif || !args.asm {
        let text = functions.map(|function| function.clif.display().to_string());
        print(args.diff, &format!("CLIF of %{name}"), &text, out)?;
    }
    if args.asm || !args.clif {
        let text = functions.map(|function| listing(&function.code));
        print(args.diff, &format!("machine code of %{name}"), &text, out)?;
        for (when, function) in ["before", "after "].iter().zip(functions) {
            writeln!(out, "{when}: {}", inner_loops(&function.code))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The innermost loops in one line.
fn inner_loops(code: &[u8]) -> String {
    let loops = machine::loops(code);
    let inner: Vec<String> = loops.iter().filter(|lp| lp.is_innermost).map(summary).collect();
    if inner.is_empty() { "no loop".to_owned() } else { inner.join("; ") }
}

fn print(as_diff: bool, title: &str, [before, after]: &[String; 2], out: &mut dyn Write) -> io::Result<()> {
    if as_diff {
        let (old, new) = (format!("{title} before loopopt"), format!("{title} after loopopt"));
        let diff = TextDiff::from_lines(&before[..], &after[..]).unified_diff().header(&old, &new).to_string();
        return if diff.is_empty() { writeln!(out, "{title}: no change\n") } else { writeln!(out, "{diff}") };
    }
    if Table::new().width().is_some_and(|width| width >= WIDE) {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header([format!("{title} before"), "after loopopt".to_owned()]);
        table.add_row([before, after]);
        return writeln!(out, "{}\n", table.trim_fmt());
    }
    if before == after {
        return writeln!(out, "{title}, which loopopt does not change\n\n{}\n", before.trim_end());
    }
    writeln!(out, "{title} before loopopt\n\n{}\n", before.trim_end())?;
    writeln!(out, "{title} after loopopt\n\n{}\n", after.trim_end())
}
