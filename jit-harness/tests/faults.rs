//! Bisect and reduce on mistakes that the passes are told to make (`loopopt::fault`).

use anyhow::{Context as _, Result, bail, ensure};
use jit_harness::bisect::{self, Bisection};
use jit_harness::reduce::{self, Reduction};
use loopopt::Options;
use loopopt::fault::{self, Fault};
use loopopt::oracle::{Case, Program};
use std::time::Duration;

/// Three loops, one in another, with something for each pass, and more around them than a mistake needs.
const PROGRAM: &str = "
function %f(i64, i64) -> i64 {
    fn0 = %host_note(i64) -> i64
block0(v0: i64, v1: i64):
    v2 = iconst.i64 0
    v3 = iconst.i64 1
    v4 = call fn0(v0)
    jump block1(v2, v4)
block1(v5: i64, v6: i64):
    v7 = icmp ult v5, v0
    brif v7, block2, block6
block2:
    jump block3(v2, v6)
block3(v8: i64, v9: i64):
    v10 = icmp ult v8, v5
    brif v10, block4, block5
block4:
    v11 = imul v8, v5
    v12 = iadd v9, v11
    v13 = iadd v8, v3
    jump block3(v13, v12)
block5:
    v14 = call fn0(v9)
    v15 = iadd v5, v3
    jump block1(v15, v9)
block6:
    jump block7(v6, v1)
block7(v16: i64, v17: i64):
    v18 = isub v17, v3
    v19 = icmp sgt v18, v2
    brif v19, block8, block9
block8:
    v20 = iadd v16, v17
    jump block7(v20, v18)
block9:
    v21 = bxor v16, v18
    return v21
}";

fn program() -> Result<(Program, Vec<Case>)> {
    let program = Program::parse(PROGRAM)?;
    let calls = ["f(0, 0)", "f(4, 3)", "f(7, 2)"];
    let cases = calls.iter().map(|call| Ok(Case { call: program.parse_call(call)?, memory: vec![0; 64] }));
    let cases = cases.collect::<Result<_>>()?;
    Ok((program, cases))
}

/// All passes but the one that leaves the loops nothing to do: their ends are known by formula.
fn options() -> Options {
    let passes = loopopt::pass_names().filter(|name| *name != "final_values");
    let mut options = Options::default();
    options.passes = Some(passes.map(str::to_owned).collect());
    options
}

/// Bisects and reduces the program under `fault`, which is a mistake of `pass`.
fn find(fault: Fault, pass: &str) -> Result<()> {
    let (program, cases) = program()?;
    fault::with(fault, || {
        let Bisection::Found(culprit) = bisect::run(&program, &cases, &options())? else {
            bail!("{fault:?} is not found");
        };
        let remark = culprit.remark.as_ref().context("the rewrite has a remark")?;
        ensure!(remark.pass == pass, "{fault:?} is found in {}: {remark}", remark.pass);
        ensure!((1..=culprit.rewrites).contains(&culprit.number));

        let Reduction::Reduced(reduced) = reduce::run(&program, &cases, &options(), Duration::from_secs(20))? else {
            bail!("{fault:?} is not there to reduce");
        };
        let blocks = |text: &str| text.lines().filter(|line| line.starts_with("block")).count();
        ensure!(2 * blocks(&reduced.text) <= blocks(PROGRAM), "{fault:?}:\n{}", reduced.text);
        Ok(())
    })
}

#[test]
fn an_exit_value_of_the_other_copy() -> Result<()> {
    find(Fault::ExitValueOfCopy, "rotate")
}

#[test]
fn a_back_edge_argument_of_the_first_iteration() -> Result<()> {
    find(Fault::StaleBackEdge, "rotate")
}

#[test]
fn a_test_that_is_off_by_one() -> Result<()> {
    find(Fault::OffByOneTest, "layout")
}

#[test]
fn nothing_without_a_fault() -> Result<()> {
    let (program, cases) = program()?;
    let bisection = bisect::run(&program, &cases, &options())?;
    ensure!(matches!(bisection, Bisection::Agrees { .. }));
    Ok(())
}
