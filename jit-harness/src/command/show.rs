//! `show`: CLIF and machine code, before and after loopopt.

use super::Ending;
use crate::cli::ShowArgs;
use crate::dot::graph;
use crate::error::{guard, in_file};
use crate::input::{Input, functions_for_any_target, plain_name};
use crate::listing::{listing, summary};
use crate::{machine, target};
use anyhow::{Context as _, Error, Result, anyhow};
use comfy_table::{ContentArrangement, Table, presets};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{CodegenError, Context};
use loopopt::oracle::Pipeline;
use loopopt::{LoopOptimizer, Options};
use similar::TextDiff;
use std::io::{self, Write};

/// Terminals of this width have room for two columns.
const WIDE: u16 = 140;

pub(super) fn run(args: &ShowArgs, out: &mut dyn Write) -> Result<Ending> {
    if let Some(target) = &args.target {
        return show_foreign(args, target, out);
    }
    let input = Input::open(&args.file)?;
    let options = args.optimizer.options_for(&input)?;
    let names = input.selected(args.function.as_deref())?;
    let (before, after) = (input.compile(Pipeline::Speed)?, input.compile(Pipeline::LoopOpt(&options))?);
    for (before, after) in before.functions().iter().zip(after.functions()) {
        if names.contains(&before.name) {
            let arms = [before, after];
            show(args, &before.name, [&before.clif, &after.clif], arms.map(|arm| listing(&arm.code)), out)?;
            if has_asm(args) {
                for (when, function) in ["before", "after "].iter().zip(arms) {
                    writeln!(out, "{when}: {}", inner_loops(&function.code))?;
                }
                writeln!(out)?;
            }
        }
    }
    Ok(Ending::Fine)
}

/// The same for another machine, with its code as Cranelift prints it.
fn show_foreign(args: &ShowArgs, target: &str, out: &mut dyn Write) -> Result<Ending> {
    let isa = target::named(target)?;
    let (file, text, functions) = functions_for_any_target(&args.file, args.function.as_deref())?;
    let options = args.optimizer.options_of(&file, &text)?;
    for function in functions {
        let name = plain_name(&function);
        let arms = guard(|| foreign_arms(function, &*isa, &options));
        let [before, after] = arms.map_err(|error| {
            in_file(&file, &error.context(format!("%{name}")), &format!("use what Cranelift supports for {target}"))
        })?;
        show(args, &name, [&before.0, &after.0], [before.1, after.1], out)?;
    }
    Ok(Ending::Fine)
}

/// CLIF and machine code without and with loopopt.
fn foreign_arms(function: Function, isa: &dyn TargetIsa, options: &Options) -> Result<[(Function, String); 2]> {
    let plane = &mut ControlPlane::default();
    let mut ctx = Context::for_function(function);
    ctx.optimize(isa, plane).map_err(pretty)?;
    let before = (ctx.func.clone(), disassembly(&ctx, isa)?);
    LoopOptimizer::new(options.clone()).run(&mut ctx, isa, plane).map_err(pretty)?;
    let code = disassembly(&ctx, isa)?;
    Ok([before, (ctx.func, code)])
}

fn disassembly(ctx: &Context, isa: &dyn TargetIsa) -> Result<String> {
    let plane = &mut ControlPlane::default();
    let code = isa.compile_function(&ctx.func, &ctx.domtree, &mut Default::default(), true, plane).map_err(pretty)?;
    code.vcode.context("Cranelift gives no disassembly")
}

/// What Cranelift says, with the first thing that the verifier has found.
fn pretty(error: CodegenError) -> Error {
    match error {
        CodegenError::Verifier(errors) => match errors.0.first() {
            Some(first) => anyhow!("not valid CLIF: {first}"),
            None => anyhow!("not valid CLIF"),
        },
        other => other.into(),
    }
}

fn has_asm(args: &ShowArgs) -> bool {
    args.asm || !args.clif && !args.dot
}

/// CLIF and machine code of a function, before and after.
fn show(args: &ShowArgs, name: &str, clif: [&Function; 2], code: [String; 2], out: &mut dyn Write) -> io::Result<()> {
    if args.dot {
        return write!(out, "{}", graph(name, clif));
    }
    if args.clif || !args.asm {
        let text = clif.map(|function| function.display().to_string());
        print(args.diff, &format!("CLIF of %{name}"), &text, out)?;
    }
    if has_asm(args) {
        print(args.diff, &format!("machine code of %{name}"), &code, out)?;
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
