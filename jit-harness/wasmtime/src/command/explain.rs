//! `explain`: what was done to each loop, and what was not and why.

use crate::arm::{CompiledArm, Program, Setup};
use crate::cli::ExplainArgs;
use crate::hook::Compiled;
use anyhow::{Context as _, Result};
use jit_harness::command::Ending;
use jit_harness::command::explain::{Shown, print_remark, refusal};
use jit_harness::listing::{count, listing};
use jit_harness::report::json::write_json;
use jit_harness::schedule::Arm;
use loopopt::{Remark, Report};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// Ends of the names of files: without loopopt, and with it.
const WHICH: [&str; 2] = ["before", "after"];

pub(super) fn run(args: &ExplainArgs, out: &mut dyn Write) -> Result<Ending> {
    let shown = Shown::of(&args.shown)?;
    let program = Program::open(&args.file)?;
    let mut records = Vec::new();
    if let Some(folder) = &args.code {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    for setup in args.setup.setups()? {
        let setup = Setup { keep_clif: args.code.is_some(), ..setup };
        let arm = CompiledArm::new(&program, &setup, Arm::LoopOpt)?;
        let baseline = args.code.is_some().then(|| CompiledArm::new(&program, &setup, Arm::Baseline)).transpose()?;
        if !args.shown.json {
            writeln!(out, "{} ({})", program.name, setup.mode)?;
        }
        for function in &arm.compilation.functions {
            let Some(index) = function.index else { continue };
            let name = arm.function_name(index);
            if args.function.as_ref().is_some_and(|wanted| *wanted != name && *wanted != index.to_string()) {
                continue;
            }
            if !function.report.remarks.iter().any(|_| true) {
                continue;
            }
            match args.shown.json {
                true => {
                    records.push(FunctionRecord::new(&setup.mode.to_string(), (&name, index), &function.report, shown))
                }
                false => print((&name, index), &function.report, shown, out)?,
            }
            if let (Some(folder), Some(baseline)) = (&args.code, &baseline) {
                let path = folder.join(format!("{}-{index}", setup.mode));
                write_clif(&path, function)?;
                write_machine_code(&path, index, [baseline, &arm])?;
            }
        }
    }
    if args.shown.json {
        write_json(out, &records)?;
    }
    Ok(Ending::Fine)
}

/// What is said of a function, for machines.
#[derive(Serialize)]
struct FunctionRecord {
    mode: String,
    index: usize,
    name: String,
    loops: usize,
    changed: bool,
    remarks: Vec<RemarkRecord>,
}

#[derive(Serialize)]
struct RemarkRecord {
    pass: &'static str,
    /// The header of the loop, and where it comes from in the module.
    header: String,
    offset: Option<u32>,
    done: bool,
    message: String,
    reason: Option<&'static str>,
    help: Option<&'static str>,
    rests_on: Vec<&'static str>,
}

impl FunctionRecord {
    /// All remarks, or those of the passes that are asked for.
    fn new(mode: &str, (name, index): (&str, usize), report: &Report, shown: Shown<'_>) -> Self {
        let remark = |remark: &Remark| {
            let (reason, help) = refusal(remark);
            RemarkRecord {
                pass: remark.pass,
                header: remark.header.to_string(),
                offset: (!remark.srcloc.is_default()).then(|| remark.srcloc.bits()),
                done: remark.fired(),
                message: remark.message.to_string(),
                reason,
                help,
                rests_on: remark.claims().iter().map(|claim| claim.text()).collect(),
            }
        };
        let wanted = report.remarks.iter().filter(|remark| shown.of_passes(remark));
        Self {
            mode: mode.to_owned(),
            index,
            name: name.to_owned(),
            loops: report.loops,
            changed: report.changed,
            remarks: wanted.map(remark).collect(),
        }
    }
}

fn print((name, index): (&str, usize), report: &Report, shown: Shown<'_>, out: &mut dyn Write) -> Result<()> {
    let change = if report.changed { "changed" } else { "left as it is" };
    writeln!(out, "\nfunction {index} {name}: {}, {change}", count(report.loops, "loop"))?;
    let mut by_loop: BTreeMap<_, Vec<&Remark>> = BTreeMap::new();
    for remark in &report.remarks {
        by_loop.entry(remark.header).or_default().push(remark);
    }
    let mut hidden = 0;
    for (header, mut remarks) in by_loop {
        let (srcloc, all) = (remarks[0].srcloc, remarks.len());
        remarks.retain(|remark| shown.holds(remark));
        hidden += all - remarks.len();
        if remarks.is_empty() {
            continue;
        }
        let place = if srcloc.is_default() { String::new() } else { format!(" (offset {:#x})", srcloc.bits()) };
        writeln!(out, "\n    at {header}{place}")?;
        for remark in remarks {
            print_remark("    ", remark, out)?;
        }
    }
    if let Some(text) = shown.hidden(hidden) {
        writeln!(out, "\n    {text}")?;
    }
    Ok(())
}

fn write_clif(path: &Path, function: &Compiled) -> Result<()> {
    for (text, which) in function.clif.iter().flatten().zip(WHICH) {
        write(path, &format!("{which}.clif"), text)?;
    }
    Ok(())
}

/// Writes where the function lies in its module, which alignment depends on, and its instructions.
fn write_machine_code(path: &Path, index: usize, arms: [&CompiledArm; 2]) -> Result<()> {
    for (arm, which) in arms.into_iter().zip(WHICH) {
        let function =
            arm.module.functions().nth(index).context("Wasmtime compiled the function and has no code of it")?;
        let code = &arm.module.text()[function.offset..][..function.len];
        write(path, &format!("{which}.asm"), &format!("; at {:#x} in the module\n{}", function.offset, listing(code)))?;
    }
    Ok(())
}

fn write(path: &Path, extension: &str, text: &str) -> Result<()> {
    let path = path.with_extension(extension);
    std::fs::write(&path, text).with_context(|| path.display().to_string())
}
