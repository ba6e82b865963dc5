//! Checks on numbers of one width in loops that are ended by numbers of another one, in all directions and at the edges of both.
//!
//! What `version` asks for before such a loop is made of both: starts and ends cancel, constants and factors overflow. Each program is
//! called where what is asked for just holds, just does not, and where the range from the start to the end wraps around.

use anyhow::{Context as _, Result, ensure};
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::settings::{self, Configurable};
use loopopt::fault::{self, Fault};
use loopopt::oracle::{Case, Program, check};
use loopopt::{LoopOptimizer, Options, Verdict};

/// Bytes that the programs may read.
const MEMORY: usize = 4096;

/// The bound that is checked against.
const LENGTH: i64 = 100;

/// Compares all calls of a program. Gives whether `version` did something.
fn run(text: &str, calls: &[String]) -> Result<bool> {
    let mut options = Options::default();
    options.ignore_cost = true;
    let program = Program::parse(text)?;
    let memory: Vec<u8> = (0..MEMORY).map(|at| (at * 7 + at / 64) as u8).collect();
    let case = |call: &String| Ok(Case { call: program.parse_call(call)?, memory: memory.clone() });
    let cases = calls.iter().map(case).collect::<Result<Vec<_>>>()?;
    let agreement = check(&program, &cases, &options).context(text.to_owned())?;
    ensure!(agreement.timed_out == 0, "a call did not end in time: {text}");
    let mut flags = settings::builder();
    flags.set("opt_level", "speed")?;
    let isa = cranelift_native::builder().map_err(anyhow::Error::msg)?.finish(settings::Flags::new(flags))?;
    let func = cranelift_reader::parse_functions(text)?.pop().context("there is a function")?;
    let mut ctx = Context::for_function(func);
    ctx.optimize(&*isa, &mut ControlPlane::default())?;
    let report = LoopOptimizer::new(options).run(&mut ctx, &*isa, &mut ControlPlane::default())?;
    Ok(report.remarks.iter().any(|remark| remark.pass == "version" && matches!(remark.verdict, Verdict::Fired)))
}

/// Numbers of so many bits at which a range may begin or end.
fn edges(bits: u32) -> Vec<i64> {
    let half = 1_i64 << (bits - 1);
    vec![0, 1, 5, 10, 50, 99, 100, 101, -1, -2, -100, half - 1, -half]
}

/// `for (i = extend(a); i cond extend(b); i += step) { check(unsigned(narrow(i)) * 2^shift < length); … }`, with the test at the top or at
/// the bottom.
fn walk([wide, narrow, extend, cond]: [&str; 4], step: i64, shift: u32, at_bottom: bool) -> String {
    let (top, bottom, result) = match at_bottom {
        true => ("jump block2".into(), format!("v9 = icmp {cond} v17, v5\nbrif v9, block1(v17, v15), block3"), "v15"),
        false => {
            (format!("v9 = icmp {cond} v7, v5\nbrif v9, block2, block3"), String::from("jump block1(v17, v15)"), "v8")
        }
    };
    format!(
        "function %f(i64, {narrow}, {narrow}, i64) -> i64 {{
        block0(v0: i64, v1: {narrow}, v2: {narrow}, v3: i64):
            v4 = {extend}.{wide} v1
            v5 = {extend}.{wide} v2
            v6 = iconst.i64 0
            jump block1(v4, v6)
        block1(v7: {wide}, v8: i64):
            {top}
        block2:
            v10 = ireduce.{narrow} v7
            v11 = uextend.i64 v10
            v20 = iconst.i64 {shift}
            v21 = ishl v11, v20
            v12 = icmp ult v21, v3
            trapz v12, user7
            v13 = iadd v0, v21
            v14 = uload8.i64 v13
            v15 = iadd v8, v14
            v16 = iconst.{wide} {step}
            v17 = iadd v7, v16
            {bottom}
        block3:
            return {result}
        }}"
    )
}

#[test]
fn ranges_in_a_wider_type() -> Result<()> {
    let tests = [
        ("uextend", "ne", 1),
        ("uextend", "ne", -1),
        ("uextend", "ne", 4),
        ("uextend", "ult", 1),
        ("uextend", "ult", 3),
        ("uextend", "ule", 1),
        ("uextend", "ugt", -1),
        ("uextend", "uge", -3),
        ("sextend", "ne", 1),
        ("sextend", "ne", -1),
        ("sextend", "slt", 1),
        ("sextend", "sge", -2),
    ];
    let mut fired = 0;
    for (wide, narrow, bits) in [
        ("i64", "i32", 32),
        ("i64", "i16", 16),
        ("i64", "i8", 8),
        ("i32", "i16", 16),
        ("i32", "i8", 8),
        ("i16", "i8", 8),
    ] {
        let ends = edges(bits);
        let pairs = ends.iter().flat_map(|a| ends.iter().map(move |b| (a, b)));
        let calls: Vec<_> = pairs.map(|(a, b)| format!("%f(mem, {a}, {b}, {LENGTH})")).collect();
        for (number, (extend, cond, step)) in tests.into_iter().enumerate() {
            for at_bottom in [false, true] {
                let text = walk([wide, narrow, extend, cond], step, number as u32 % 3, at_bottom);
                fired += u32::from(run(&text, &calls)?);
            }
        }
    }
    ensure!(fired > 72, "only {fired} of 144 loops have two versions");
    Ok(())
}

/// A loop that is ended by one counter, from `start` by `step`, and checks another one of another width.
fn beside(ends: &str, checked: &str, cond: &str, [start, step, own_step]: [i64; 3]) -> String {
    let extended = if checked == "i64" { "v7 = iadd v5, v6" } else { "v7 = uextend.i64 v5" };
    format!(
        "function %f(i64, {ends}, {checked}, i64) -> i64 {{
        block0(v0: i64, v1: {ends}, v2: {checked}, v3: i64):
            v6 = iconst.i64 0
            v10 = iconst.{ends} {start}
            jump block1(v10, v2, v6)
        block1(v4: {ends}, v5: {checked}, v8: i64):
            {extended}
            v12 = icmp ult v7, v3
            trapz v12, user7
            v13 = iadd v0, v7
            v14 = uload8.i64 v13
            v15 = iadd v8, v14
            v16 = iconst.{ends} {step}
            v17 = iadd v4, v16
            v18 = iconst.{checked} {own_step}
            v19 = iadd v5, v18
            v9 = icmp {cond} v17, v1
            brif v9, block1(v17, v19, v15), block3
        block3:
            return v15
        }}"
    )
}

#[test]
fn counters_of_two_widths() -> Result<()> {
    let tests = [
        ("ult", [0, 1, 1]),
        ("ne", [0, 1, 1]),
        ("ne", [0, -1, 1]),
        ("ult", [0, 1, 4]),
        ("ult", [0, 1, -1]),
        ("ugt", [0, -1, 1]),
        ("slt", [-5, 1, 1]),
        ("ule", [1, 2, 3]),
        ("ne", [0, 2, 2]),
        ("ult", [0, 1, 64]),
    ];
    let types = [("i64", 64), ("i32", 32), ("i16", 16), ("i8", 8)];
    let mut fired = 0;
    for (ends, bits) in types {
        for (checked, own_bits) in types {
            // 64 times as far as the last but one leads, modulo, nowhere.
            let numbers = [0, 1, 5, 95, 100, -1, -5, (1 << (bits - 6)) + 1, 1_i64 << (bits - 1)];
            let starts = [0, 1, 10, 98, -3, if own_bits == 64 { i64::MAX } else { (1 << (own_bits - 1)) - 1 }];
            let pairs = numbers.iter().flat_map(|end| starts.iter().map(move |start| (end, start)));
            let calls: Vec<_> = pairs.map(|(end, start)| format!("%f(mem, {end}, {start}, {LENGTH})")).collect();
            for (cond, steps) in tests {
                fired += u32::from(run(&beside(ends, checked, cond, steps), &calls)?);
            }
        }
    }
    ensure!(fired > 80, "only {fired} of 160 loops have two versions");
    Ok(())
}

/// What is not asked for shows itself in one of these programs.
#[test]
fn mistakes_are_seen() {
    let is_seen =
        |fault| fault::with(fault, || ranges_in_a_wider_type().and_then(|()| counters_of_two_widths())).is_err();
    assert!(is_seen(Fault::TermsCancel));
    assert!(is_seen(Fault::FactorsVanish));
}
