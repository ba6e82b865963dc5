//! `bisect` and `reduce` on optimizers that are wrong on purpose, and on one that is not.

use anyhow::Result;
use clap::Parser as _;
use cranelift_codegen::ir::{BlockArg, Function, Inst, InstBuilder as _, InstructionData, Opcode, immediates::Imm64};
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{CodegenError, CodegenResult, Context};
use jit_harness::bisect::{self, Bisection, Culprit};
use jit_harness::cli::Cli;
use jit_harness::command::{self, Ending};
use jit_harness::input::{calls, image};
use jit_harness::probe::{Kind, Suspect, probe};
use jit_harness::reduce::{self, Reduced, Reduction};
use loopopt::oracle::{Case, Program, Settings};
use loopopt::{LoopOptimizer, Options, Remark, Report};
use std::fs;
use std::time::Duration;

/// Two functions with five loops. All faults below can be seen in it.
const PROGRAM: &str = "function %fill(i64, i64) -> i64 {
    fn0 = %host(i64) -> i64
block0(v0: i64, v1: i64):
    v2 = iconst.i64 0
    v3 = iconst.i64 3
    v25 = iconst.i64 1
    jump block1(v2, v2)
block1(v4: i64, v5: i64):
    v6 = icmp slt v4, v1
    brif v6, block2, block3
block2:
    v7 = imul v4, v3
    v8 = ishl v4, v3
    v9 = iadd v0, v8
    store v7, v9
    v10 = iadd v5, v7
    v11 = iadd v4, v25
    jump block1(v11, v10)
block3:
    v12 = call fn0(v5)
    jump block4(v2, v5)
block4(v13: i64, v14: i64):
    v15 = icmp slt v13, v1
    brif v15, block5(v2, v14), block8
block5(v16: i64, v17: i64):
    v18 = icmp slt v16, v13
    brif v18, block6, block7
block6:
    v19 = iadd v0, v16
    v20 = uload8.i64 v19
    v21 = bxor v17, v20
    v22 = iadd v16, v25
    jump block5(v22, v21)
block7:
    v23 = iadd v13, v25
    jump block4(v23, v17)
block8:
    v24 = iadd v14, v12
    return v24
}
; run: %fill(mem, 9) == 216
; call: %fill(mem+64, 0)
; trap: %fill(-65536, 1) == heap_oob

function %scale(i64, i64, f64) -> f64 {
block0(v0: i64, v1: i64, v2: f64):
    v3 = iconst.i64 0
    v4 = f64const 0x1.8p0
    jump block1(v3, v2)
block1(v5: i64, v6: f64):
    v7 = icmp ult v5, v1
    brif v7, block2, block3
block2:
    v8 = iadd v0, v5
    v9 = uload8.i64 v8
    v10 = fcvt_from_sint.f64 v9
    v11 = fmul v10, v4
    v12 = fadd v6, v11
    istore8 v5, v8
    v13 = iconst.i64 1
    v14 = iadd v5, v13
    jump block1(v14, v12)
block3:
    jump block4(v1, v6)
block4(v15: i64, v16: f64):
    brif v15, block5, block6
block5:
    v17 = fadd v16, v4
    v18 = iconst.i64 -1
    v19 = iadd v15, v18
    jump block4(v19, v17)
block6:
    return v16
}
; bench: %scale(mem, 12, 0x1.0p1)
";

/// What the faults do can be endless.
fn short() -> Settings {
    Settings { limit: Duration::from_millis(200), ..Settings::default() }
}

/// Breaks a function. Returns whether there was something to break.
type Fault = fn(&mut Function) -> bool;

const FAULTS: [Fault; 4] = [drop_store, change_constant, swap_ways, pass_wrong_value];

fn insts(func: &Function) -> Vec<Inst> {
    func.layout.blocks().flat_map(|block| func.layout.block_insts(block)).collect()
}

fn drop_store(func: &mut Function) -> bool {
    let store = insts(func).into_iter().find(|&inst| func.dfg.insts[inst].opcode().can_store());
    store.is_some_and(|inst| {
        let is_call = func.dfg.insts[inst].opcode().is_call();
        if !is_call {
            func.layout.remove_inst(inst);
        }
        !is_call
    })
}

/// The last constant, which is that of a loop's step, gets another bit.
fn change_constant(func: &mut Function) -> bool {
    for inst in insts(func).into_iter().rev() {
        if let InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } = func.dfg.insts[inst] {
            let ty = func.dfg.ctrl_typevar(inst);
            func.replace(inst).iconst(ty, Imm64::new(imm.bits() ^ 2));
            return true;
        }
    }
    false
}

/// The first branch takes the other edge.
fn swap_ways(func: &mut Function) -> bool {
    for inst in insts(func) {
        if let InstructionData::Brif { blocks: [then, other], .. } = &mut func.dfg.insts[inst] {
            std::mem::swap(then, other);
            return true;
        }
    }
    false
}

/// A branch passes its second value for the first as well, if their types are equal.
fn pass_wrong_value(func: &mut Function) -> bool {
    for inst in insts(func).into_iter().rev() {
        let dfg = &mut func.dfg;
        let calls = dfg.insts[inst].branch_destination(&dfg.jump_tables, &dfg.exception_tables).to_vec();
        for (number, call) in calls.into_iter().enumerate() {
            let mut args: Vec<BlockArg> = call.args(&dfg.value_lists).collect();
            if let [BlockArg::Value(first), BlockArg::Value(second), ..] = args[..]
                && first != second
                && dfg.value_type(first) == dfg.value_type(second)
            {
                args[1] = args[0];
                let call = dfg.block_call(call.block(&dfg.value_lists), &args);
                dfg.insts[inst].branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables)[number] = call;
                return true;
            }
        }
    }
    false
}

/// Whether a fault shows in the function of this name, after this was done to it.
type Shows = Box<dyn Fn(&str, &Report) -> bool>;

/// loopopt with a fault that shows once it has made a certain rewrite.
struct Faulty {
    loops: LoopOptimizer,
    shows: Shows,
    fault: Fault,
}

impl Suspect for Faulty {
    fn rewrite(&mut self, context: &mut Context, isa: &dyn TargetIsa) -> CodegenResult<Report> {
        let report = self.loops.rewrite(context, isa)?;
        if (self.shows)(&context.func.name.to_string(), &report) {
            (self.fault)(&mut context.func);
            context.flowgraph();
            context.compute_loop_analysis();
        }
        Ok(report)
    }

    fn rewrites(&self) -> u64 {
        self.loops.rewrites()
    }
}

/// Without `partial_unroll`: the first or last place of a function in which these mistakes can be made is to be one that is always run.
fn optimizer(fuel: Option<u64>) -> LoopOptimizer {
    let mut options = Options::default();
    options.passes = Some(loopopt::pass_names().filter(|&name| name != "partial_unroll").map(String::from).collect());
    options.fuel = fuel;
    LoopOptimizer::new(options)
}

/// Faulty from this rewrite of this function on.
fn faulty_by(function: &str, remark: &Remark, fault: Fault) -> impl Fn(Option<u64>) -> Box<dyn Suspect> {
    let (function, remark) = (format!("%{function}"), remark.clone());
    move |fuel| {
        let (function, remark) = (function.clone(), remark.clone());
        let shows = move |name: &str, report: &Report| name == function && fired(report).any(|other| *other == remark);
        Box::new(Faulty { loops: optimizer(fuel), shows: Box::new(shows), fault })
    }
}

/// Faulty in each function in which a pass does something.
fn faulty_after(pass: &'static str, fault: Fault) -> impl Fn(Option<u64>) -> Box<dyn Suspect> {
    move |fuel| {
        let shows = move |_: &str, report: &Report| fired(report).any(|remark| remark.pass == pass);
        Box::new(Faulty { loops: optimizer(fuel), shows: Box::new(shows), fault })
    }
}

fn fired(report: &Report) -> impl Iterator<Item = &Remark> {
    report.remarks.iter().filter(|remark| remark.fired())
}

fn parse(text: &str) -> (Program, Vec<Case>) {
    let program = Program::parse(text).expect("the program is valid");
    let calls = calls(&program, text).expect("its calls are right");
    let cases = calls.into_iter().map(|(_, call)| Case { call, memory: image() }).collect();
    (program, cases)
}

/// Lines that are not empty.
fn lines(text: &str) -> usize {
    text.lines().filter(|line| !line.is_empty()).count()
}

#[track_caller]
fn culprit(bisection: Result<Bisection>) -> Culprit {
    match bisection.expect("the program can be run") {
        Bisection::Found(culprit) => *culprit,
        other => panic!("a rewrite should be found, not {other:?}"),
    }
}

#[track_caller]
fn reduced(reduction: Result<Reduction>) -> Reduced {
    match reduction.expect("the program can be run") {
        Reduction::Reduced(reduced) => *reduced,
        Reduction::Agrees(_) => panic!("the program should fail"),
    }
}

/// Each rewrite is made the one that breaks the program, in one of the ways that can be seen.
#[test]
fn the_broken_rewrite_is_found() {
    let (program, cases) = parse(PROGRAM);
    let agreement = probe(&program, &cases, Settings::default(), Box::new(optimizer(None))).result;
    let reports = agreement.expect("loopopt is right").reports;
    let rewrites = reports.iter().flat_map(|(name, report)| fired(report).map(move |remark| (name, remark)));
    let mut seen = [0; FAULTS.len()];
    for (number, (name, remark)) in (1..).zip(rewrites) {
        let fault = (number..).map(|number| number % FAULTS.len()).take(FAULTS.len()).find(|&fault| {
            let suspects = faulty_by(name, remark, FAULTS[fault]);
            probe(&program, &cases, short(), suspects(None)).result.is_err()
        });
        let fault = fault.expect("a wrong branch is always seen");
        seen[fault] += 1;
        let culprit = culprit(bisect::run_with(&program, &cases, short(), &faulty_by(name, remark, FAULTS[fault])));
        assert_eq!((culprit.number, culprit.remark.as_ref()), (number as u64, Some(remark)));
        assert_eq!(culprit.function, format!("%{name}"));
        assert_ne!(Some(culprit.before), culprit.after);
    }
    assert!(seen.iter().all(|&seen| seen >= 1), "seen {seen:?} times");
    assert!(seen.iter().sum::<usize>() >= 10, "seen {seen:?} times");
}

#[test]
fn a_rewrite_that_fails_is_found() {
    /// Fails in the place of the fourth rewrite.
    struct Failing(LoopOptimizer, fn() -> CodegenError);
    impl Suspect for Failing {
        fn rewrite(&mut self, context: &mut Context, isa: &dyn TargetIsa) -> CodegenResult<Report> {
            let report = self.0.rewrite(context, isa)?;
            if self.0.rewrites() >= 4 { Err(self.1()) } else { Ok(report) }
        }

        fn rewrites(&self) -> u64 {
            self.0.rewrites()
        }
    }
    let (program, cases) = parse(PROGRAM);
    let failures: [fn() -> CodegenError; 2] =
        [|| CodegenError::Unsupported("too many cooks".to_owned()), || panic!("too many cooks")];
    for (failure, is_panic) in failures.into_iter().zip([false, true]) {
        let culprit =
            culprit(bisect::run_with(&program, &cases, short(), &|fuel| Box::new(Failing(optimizer(fuel), failure))));
        assert_eq!((culprit.number, culprit.after), (4, None));
        assert!(culprit.remark.is_some_and(|remark| !remark.fired()), "what was not done has a remark");
        assert!(culprit.failure.to_string().contains("too many cooks"), "{}", culprit.failure);
        assert_eq!(matches!(culprit.failure.kind(), Kind::Panic(_)), is_panic);
    }
}

/// What one rewrite breaks, the next one mends, until the last one breaks it again.
#[test]
fn the_search_ends_at_a_rewrite_that_breaks() {
    struct Fickle(LoopOptimizer);
    impl Suspect for Fickle {
        fn rewrite(&mut self, context: &mut Context, isa: &dyn TargetIsa) -> CodegenResult<Report> {
            let report = self.0.rewrite(context, isa)?;
            if self.0.rewrites() % 2 == 1 && context.func.name.to_string() == "%fill" {
                swap_ways(&mut context.func);
                context.flowgraph();
            }
            Ok(report)
        }

        fn rewrites(&self) -> u64 {
            self.0.rewrites()
        }
    }
    let (program, cases) = parse(PROGRAM);
    let suspects = |fuel: Option<u64>| -> Box<dyn Suspect> { Box::new(Fickle(optimizer(fuel.or(Some(5))))) };
    let number = culprit(bisect::run_with(&program, &cases, short(), &suspects)).number;
    let fails = |fuel| probe(&program, &cases, short(), suspects(Some(fuel))).result.is_err();
    assert!(fails(number) && !fails(number - 1), "{number}");
}

#[test]
fn what_is_not_a_rewrite_is_told_apart() {
    struct Breaking;
    impl Suspect for Breaking {
        fn rewrite(&mut self, context: &mut Context, _: &dyn TargetIsa) -> CodegenResult<Report> {
            swap_ways(&mut context.func);
            context.flowgraph();
            Ok(Report::default())
        }

        fn rewrites(&self) -> u64 {
            0
        }
    }
    let (program, cases) = parse(PROGRAM);
    match bisect::run_with(&program, &cases, short(), &|_| Box::new(Breaking)) {
        Ok(Bisection::NoRewrite(failure)) => assert!(failure.kind().is_difference(), "{failure}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn failing_programs_get_small() {
    let (program, cases) = parse(PROGRAM);
    let long = lines(PROGRAM);
    assert!(long >= 60);
    for (fault, pass) in [(drop_store as Fault, "rotate"), (change_constant, "layout"), (pass_wrong_value, "rotate")] {
        let suspects = faulty_after(pass, fault);
        let before = probe(&program, &cases, short(), suspects(None)).result.expect_err("it fails");
        let reduced = reduced(reduce::run_with(&program, &cases, short(), &suspects, Duration::from_secs(120)));
        assert!(reduced.stands_alone && !reduced.out_of_time);
        assert!(lines(&reduced.text) * 3 <= long, "{}", reduced.text);
        let (program, cases) = parse(&reduced.text);
        let after = probe(&program, &cases, short(), suspects(None)).result.expect_err("it still fails");
        assert_eq!(after.kind(), before.kind(), "{}", reduced.text);
        assert_eq!(cases.len(), 1, "{}", reduced.text);
    }
}

/// Nothing is endless but what is to be found.
#[test]
fn a_program_that_does_not_end_gets_small() {
    let text = "function %f(i64, i64) -> i64 {
block0(v0: i64, v6: i64):
    v1 = iconst.i64 1
    store v0, v6
    v7 = uload8.i64 v6
    store v7, v6
    jump block1(v1, v0)
block1(v2: i64, v3: i64):
    brif v3, block2, block3
block2:
    v4 = isub v3, v1
    v5 = bor v2, v3
    jump block1(v5, v4)
block3:
    return v2
}
; run: %f(5, mem) == 7
";
    let (program, cases) = parse(text);
    let suspects = faulty_after("rotate", pass_wrong_value);
    let before = probe(&program, &cases, short(), suspects(None)).result.expect_err("it fails");
    assert!(before.kind().is_timeout(), "{before}");
    let reduced = reduced(reduce::run_with(&program, &cases, short(), &suspects, Duration::from_secs(120)));
    assert!(reduced.failure.kind().is_timeout(), "{}", reduced.failure);
    assert!(reduced.stands_alone && lines(&reduced.text) + 3 <= lines(text), "{}", reduced.text);
}

#[test]
fn a_program_that_makes_loopopt_panic_gets_small() {
    struct Panicking(LoopOptimizer);
    impl Suspect for Panicking {
        fn rewrite(&mut self, context: &mut Context, isa: &dyn TargetIsa) -> CodegenResult<Report> {
            let mut opcodes = insts(&context.func).into_iter().map(|inst| context.func.dfg.insts[inst].opcode());
            assert!(!opcodes.any(|opcode| opcode == Opcode::Istore8), "no such instruction");
            self.0.rewrite(context, isa)
        }

        fn rewrites(&self) -> u64 {
            self.0.rewrites()
        }
    }
    let (program, cases) = parse(PROGRAM);
    let reduction = reduce::run_with(
        &program,
        &cases,
        short(),
        &|fuel| Box::new(Panicking(optimizer(fuel))),
        Duration::from_secs(60),
    );
    let reduced = reduced(reduction);
    assert!(reduced.text.contains("istore8") && lines(&reduced.text) <= 6, "{}", reduced.text);
}

#[test]
fn there_may_be_nothing_to_find() {
    let (program, cases) = parse(PROGRAM);
    let options = Options::default();
    match bisect::run(&program, &cases, &options) {
        Ok(Bisection::Agrees { rewrites, compared: 4, undecided: 0 }) => assert!(rewrites > 0),
        other => panic!("{other:?}"),
    }
    match reduce::run(&program, &cases, &options, Duration::from_secs(5)) {
        Ok(Reduction::Agrees(agreement)) => assert_eq!(agreement.compared, 4),
        other => panic!("{other:?}"),
    }
}

/// Runs a command in this process. The error is the line that the user would see.
fn harness(text: &str, args: &[&str]) -> Result<(Ending, String)> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("p.clif");
    fs::write(&path, text)?;
    let path = path.display().to_string();
    let command: Vec<&str> = args.iter().map(|&arg| if arg == "FILE" { &path[..] } else { arg }).collect();
    let cli = Cli::try_parse_from([&["jit-harness"], &command[..]].concat())?;
    let mut out = Vec::new();
    let ending = command::run(&cli, &mut out)?;
    Ok((ending, String::from_utf8(out)?))
}

#[test]
fn commands_say_that_there_is_nothing() {
    let (ending, text) = harness(PROGRAM, &["bisect", "FILE"]).expect("the file is right");
    assert_eq!(ending, Ending::Fine);
    assert!(text.contains("rewrites, all arms agree on 4 calls"), "{text}");
    let (ending, text) = harness(PROGRAM, &["reduce", "FILE", "--function", "scale"]).expect("the file is right");
    assert_eq!((ending, &text[..]), (Ending::Fine, "nothing to reduce: all arms agree on 1 call\n"));
    let invoke = ["bisect", "FILE", "--invoke", "fill(mem, 1)", "--invoke", "fill(mem, 2)", "--passes", "layout"];
    let (_, text) = harness(PROGRAM, &invoke).expect("the file is right");
    assert!(text.contains("agree on 2 calls"), "{text}");
    let (_, text) = harness(PROGRAM, &["bisect", "sum"]).expect("there is such a sample program");
    assert!(text.contains("agree on 1 call"), "{text}");
}

#[test]
fn commands_complain_in_one_line() {
    let silent = "function %f() {\nblock0:\n    return\n}\n";
    let wrong = PROGRAM.replace("; call: %fill(mem+64, 0)", "; call: %fill(mem+64)");
    let unsupported = "function %f(f16) -> f16 {\nblock0(v0: f16):\n    return v0\n}\n; call: %f(0x1.0p0)\n";
    let endless = "function %f() {\nblock0:\n    jump block1\nblock1:\n    jump block1\n}\n; call: %f()\n";
    for command in ["bisect", "reduce"] {
        let complaints: [(&str, &[&str], &str); 8] = [
            ("", &["FILE"], "there is no function"),
            (silent, &["FILE"], "there is no call to compare; add a line like `; call: %f(…)`"),
            (&wrong, &["FILE"], "p.clif:42: %fill takes 2 arguments, not 1; write it as in"),
            (PROGRAM, &["FILE", "--function", "g"], "there is no function %g; the functions of this file are"),
            (PROGRAM, &["FILE", "--invoke", "fill(1)"], "%fill takes 2 arguments"),
            (PROGRAM, &["FILE", "--passes", "fold"], "unknown pass `fold`; "),
            (unsupported, &["FILE"], "; use what Cranelift and the harness support"),
            (endless, &["FILE"], "no call ended in time and within the stack; give it less to do"),
        ];
        for (text, args, complaint) in complaints {
            let error = harness(text, &[&[command], args].concat()).expect_err(complaint);
            let error = jit_harness::error::one_line(&error);
            assert!(error.contains(complaint), "{command} {args:?}: `{complaint}` is not in: {error}");
        }
    }
    harness(PROGRAM, &["reduce", "FILE", "--seconds", "0"]).expect_err("there is no time");
    harness(PROGRAM, &["reduce", "FILE", "-o", "missing/folder/out.clif"]).expect_err("there is no such folder");
}
