//! What no front end should make, or only a machine does: functions that are not valid, huge functions, targets unlike the
//! host. Each gives an error or a right function, in time that grows with the size of the function.
//!
//! `cargo test --release -p loopopt --test bad_input -- --nocapture` prints the times of the large functions.

use anyhow::{Context as _, Result, ensure};
use cpu_time::ThreadTime;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, BlockCall, Function, InstBuilder, JumpTableData, MemFlagsData, Signature, TrapCode,
    UserFuncName, Value, ValueDef, types,
};
use cranelift_codegen::isa::{self, CallConv, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use loopopt::{LoopOptimizer, Options, Report, Verdict};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Processor time for one run on one large function. In the dev profile on a slow machine, so it is far above what it takes.
const LIMIT: Duration = Duration::from_secs(20);

fn isa(settings: &[(&str, &str)]) -> Result<OwnedTargetIsa> {
    let builder = cranelift_native::builder().map_err(anyhow::Error::msg)?;
    Ok(builder.finish(flags(settings)?)?)
}

fn flags(settings: &[(&str, &str)]) -> Result<settings::Flags> {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed")?;
    for (name, value) in settings {
        flags.set(name, value)?;
    }
    Ok(settings::Flags::new(flags))
}

fn run(func: Function, isa: &OwnedTargetIsa, options: Options) -> Result<(Function, Report)> {
    let mut ctx = Context::for_function(func);
    let report = LoopOptimizer::new(options).run(&mut ctx, &**isa, &mut ControlPlane::default())?;
    Ok((ctx.func, report))
}

/// The functions of all CLIF files.
fn functions() -> Result<Vec<(PathBuf, Vec<Function>)>> {
    let mut found = Vec::new();
    for folder in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clif"))? {
        for file in std::fs::read_dir(folder?.path())? {
            let path = file?.path();
            let functions = cranelift_reader::parse_functions(&std::fs::read_to_string(&path)?)?;
            found.push((path, functions));
        }
    }
    Ok(found)
}

/// Other architectures, other byte orders, other systems, and pointers of 32 bits.
const TARGETS: [&str; 10] = [
    "x86_64-unknown-linux-gnu",
    "x86_64-pc-windows-msvc",
    "x86_64-apple-darwin",
    "aarch64-unknown-linux-gnu",
    "aarch64-apple-darwin",
    "riscv64gc-unknown-linux-gnu",
    "s390x-unknown-linux-gnu",
    "pulley64",
    "pulley32",
    "pulley32be",
];

/// What Cranelift compiles for a target, loopopt compiles too.
#[test]
fn other_targets() -> Result<()> {
    let mut options = Options::default();
    options.verify_each_pass = true;
    let files = functions()?;
    for target in TARGETS {
        let builder = cranelift_codegen::isa::lookup_by_name(target).context(target)?;
        let isa = builder.finish(flags(&[("enable_llvm_abi_extensions", "true")])?)?;
        let (mut compiled, mut changed) = (0, 0);
        for (path, functions) in &files {
            for func in functions {
                let func = for_pointers_of(isa.pointer_bits(), func)?;
                if !compiles(&func, &isa) {
                    continue;
                }
                let what = || format!("{target}: {} in {}", func.name, path.display());
                let mut loops = LoopOptimizer::new(options.clone());
                let mut ctx = Context::for_function(func.clone());
                let code = loops.compile(&mut ctx, &*isa, &mut ControlPlane::default());
                let code = code.map_err(|error| error.inner).with_context(what)?;
                ensure!(!code.code_buffer().is_empty(), what());
                compiled += 1;
                changed += usize::from(loops.rewrites() > 0);
            }
        }
        println!("{target}: {compiled} functions compiled, {changed} of them changed");
        ensure!(changed > 20, "{target}: only {changed} functions of {compiled} were changed");
    }
    Ok(())
}

/// Whether Cranelift alone compiles it. Pulley panics at some loads that may trap.
fn compiles(func: &Function, isa: &OwnedTargetIsa) -> bool {
    let compile = || Context::for_function(func.clone()).compile(&**isa, &mut ControlPlane::default()).is_ok();
    catch_unwind(AssertUnwindSafe(compile)).unwrap_or(false)
}

/// The function with all 64-bit numbers made 32 bits, or as it is if that cannot be.
fn for_pointers_of(bits: u8, func: &Function) -> Result<Function> {
    if bits == 64 {
        return Ok(func.clone());
    }
    let text = func.to_string().replace("i64", "i32");
    let parsed = cranelift_reader::parse_functions(&text).ok().and_then(|functions| functions.into_iter().next());
    Ok(parsed.unwrap_or_else(|| func.clone()))
}

#[test]
fn contexts_that_were_not_optimized() -> Result<()> {
    let mut options = Options::default();
    options.verify_each_pass = true;
    let speed = isa(&[("enable_llvm_abi_extensions", "true")])?;
    for level in ["none", "speed"] {
        let isa = isa(&[("opt_level", level), ("enable_llvm_abi_extensions", "true")])?;
        for (path, functions) in functions()? {
            for func in functions {
                let what = || format!("opt_level {level}: {} in {}", func.name, path.display());
                let (func, _) = run(func.clone(), &speed, options.clone()).with_context(what)?;
                Context::for_function(func.clone())
                    .compile(&*isa, &mut ControlPlane::default())
                    .map_err(|error| anyhow::anyhow!("{:?}", error.inner))
                    .with_context(what)?;
            }
        }
    }
    Ok(())
}

/// Not those that alone keep copies from growing without end: `max_function_insts`, the iterations that are tried out.
fn limits(options: &mut Options) -> Vec<&mut usize> {
    vec![
        &mut options.rotate_max_header_insts,
        &mut options.rotate_max_dispatched,
        &mut options.mem2reg_max_live,
        &mut options.layout_max_exits,
        &mut options.tail_duplicate_max_insts,
        &mut options.thread_jumps_max_insts,
        &mut options.tail_duplicate_max_copies,
        &mut options.sink_max_places,
        &mut options.sink_max_values,
        &mut options.full_unroll_max_insts,
        &mut options.peel_max_insts,
        &mut options.peel_max_insts_per_gain,
        &mut options.peel_max_copied,
        &mut options.unswitch_max_insts,
        &mut options.unswitch_min_saved,
        &mut options.transfer_max_insts,
        &mut options.transfer_max_inner_iterations,
        &mut options.transfer_min_values,
        &mut options.version_max_requirements,
        &mut options.if_convert_max_insts,
        &mut options.version_min_iterations,
        &mut options.strip_mine_min_iterations,
        &mut options.strip_mine_min_whole,
        &mut options.strip_mine_max_nest_fuel,
        &mut options.partial_unroll_min_iterations,
        &mut options.partial_unroll_max_insts,
        &mut options.partial_unroll_max_uncounted_insts,
        &mut options.partial_unroll_max_copied,
        &mut options.partial_unroll_max_iterations,
        &mut options.full_unroll_max_copied,
        &mut options.widen_indices_max_accesses,
        &mut options.widen_indices_min_saved_per_base,
        &mut options.widen_indices_max_questions,
        &mut options.promote_max_accesses,
        &mut options.promote_max_pairs,
        &mut options.save_at_cold_calls_max_calls,
        &mut options.save_at_cold_calls_max_saved,
        &mut options.specialize_max_values,
        &mut options.specialize_max_insts,
    ]
}

/// What is counted against a limit may be as large as the limit: no sum and no product of both wraps.
#[test]
fn limits_of_any_size() -> Result<()> {
    let isa = isa(&[("enable_llvm_abi_extensions", "true")])?;
    let files = functions()?;
    for (limit, ignore_cost) in [0, 1, usize::MAX].into_iter().flat_map(|limit| [(limit, false), (limit, true)]) {
        let mut options = Options::default();
        (options.verify_each_pass, options.ignore_cost) = (true, ignore_cost);
        limits(&mut options).into_iter().for_each(|each| *each = limit);
        let numbers = [
            &mut options.specialize_min_share,
            &mut options.specialize_max_insts_per_gain,
            &mut options.specialize_min_gain,
        ];
        numbers.into_iter().for_each(|each| *each = limit as u64);
        for (path, functions) in &files {
            for func in functions {
                let what = || format!("limits of {limit}: {} in {}", func.name, path.display());
                run(func.clone(), &isa, options.clone()).with_context(what)?;
            }
        }
    }
    Ok(())
}

#[test]
fn functions_without_code() -> Result<()> {
    let isa = isa(&[])?;
    let empty = Function::new();
    let mut declared = Function::new();
    declared.dfg.make_block();
    let mut blocks = Function::new();
    for _ in 0..3 {
        let block = blocks.dfg.make_block();
        blocks.layout.append_block(block);
    }
    for func in [empty, declared, blocks] {
        let before = func.to_string();
        if let Ok((after, report)) = run(func, &isa, Options::default()) {
            ensure!(!report.changed && after.to_string() == before);
        }
    }
    Ok(())
}

/// A while loop with an exit block that takes the counter, to be made invalid.
const LOOP: &str = "function %f(i64, i32) -> i64 {
    fn0 = %g(i64) -> i64
block0(v0: i64, v1: i32):
    v2 = iconst.i64 0
    v3 = iconst.i64 1
    jump block1(v2)
block1(v4: i64):
    v5 = icmp slt v4, v0
    brif v5, block2, block3(v4)
block2:
    v6 = iadd v4, v3
    jump block1(v6)
block3(v7: i64):
    return v7
}";

/// `(a line of LOOP, what is there instead)`.
const WRONG: &[(&str, &str)] = &[
    ("jump block1(v2)", "jump block1"),
    ("jump block1(v2)", "jump block1(v2, v3)"),
    ("jump block1(v2)", "jump block1(v1)"),
    ("jump block1(v2)", "jump block1(v6)"),
    ("jump block1(v6)", "jump block1"),
    ("jump block1(v6)", "jump block1(v6, v6)"),
    ("jump block1(v6)", "jump block1(v5)"),
    ("jump block1(v6)", "jump block1(v7)"),
    ("jump block1(v6)", "jump block0(v6, v1)"),
    ("jump block1(v6)", "jump block0"),
    ("jump block1(v6)", "br_table v1, block1(v6), [block1, block3(v6)]"),
    ("jump block1(v6)", "br_table v1, block1(v6), [block3, block3(v1)]"),
    ("jump block1(v6)", "br_table v6, block1(v6), [block3(v6)]"),
    ("jump block1(v6)", "br_table v1, block0(v6, v1), [block1(v6)]"),
    ("brif v5, block2, block3(v4)", "brif v5, block2(v4), block3(v4)"),
    ("brif v5, block2, block3(v4)", "brif v5, block2, block3"),
    ("brif v5, block2, block3(v4)", "brif v5, block3(v6), block2"),
    ("brif v5, block2, block3(v4)", "brif.i64 v7, block2, block3(v4)"),
    ("v5 = icmp slt v4, v0", "v5 = icmp slt v4, v1"),
    ("v5 = icmp slt v4, v0", "v5 = icmp.i64 slt v6, v0"),
    ("v6 = iadd v4, v3", "v6 = iadd v4, v1"),
    ("v6 = iadd v4, v3", "v6 = iadd.i64 v6, v3"),
    ("v6 = iadd v4, v3", "v6 = call fn0(v4, v4)"),
    ("v6 = iadd v4, v3", "v6 = call fn0()"),
    ("v6 = iadd v4, v3", "v6 = call fn0(v5)"),
    ("return v7", "return"),
    ("return v7", "return v5"),
    ("return v7", "return v7, v7"),
    ("return v7", "return v6"),
    ("return v7", "return v7\nblock4:\n jump block1(v9)\nblock5(v9: i32):\n jump block4"),
    ("return v7", "return v7\nblock4:\n return v1"),
    ("return v7", "return v7\nblock4:\n jump block0"),
    ("return v7", "return v7\nblock4(v9: i64):\n jump block4"),
];

#[test]
fn invalid_text() -> Result<()> {
    let cases = WRONG.iter().map(|(right, wrong)| {
        let text = LOOP.replace(right, wrong);
        let func = cranelift_reader::parse_functions(&text).with_context(|| wrong.to_string())?.remove(0);
        Ok(((*wrong).to_string(), func))
    });
    refused(cases.collect::<Result<_>>()?)
}

/// Cranelift does not ask where values of unreachable blocks come from.
#[test]
fn unreachable_blocks_that_enter_the_loop() -> Result<()> {
    let isa = isa(&[])?;
    let garbage = "return v7\nblock4:\n v8 = iadd.i64 v9, v9\n v9 = iadd v8, v8\n brif v9, block1(v8), block5\n\
        block5:\n brif v8, block4, block2";
    let func = cranelift_reader::parse_functions(&LOOP.replace("return v7", garbage))?.remove(0);
    let mut options = Options::default();
    options.verify_each_pass = true;
    let (func, report) = run(func, &isa, options)?;
    ensure!(report.changed && !func.to_string().contains("v9"), "{func}");
    Ok(())
}

/// Cranelift counts parameters with 16 bits. So many values of a loop are used after it, or in the body of a loop that has
/// as many parameters as can be, that an edit that makes one for each would make too many.
#[test]
fn more_values_than_a_block_can_have_parameters() -> Result<()> {
    let isa = isa(&[("enable_verifier", "false")])?;
    let mut options = Options::default();
    options.ignore_cost = true;
    let mut failures = Vec::new();
    for (what, func) in [("behind", values_behind(70_000, 2)), ("carried", full_header(65_536))] {
        let start = Instant::now();
        match catch_unwind(AssertUnwindSafe(|| run(func, &isa, options.clone()))) {
            Err(_) => failures.push(format!("{what}: a panic")),
            Ok(result) => {
                let (func, report) = result?;
                println!("{what}: {:.1?}, {:?}", start.elapsed(), report.timings);
                if let Err(errors) = cranelift_codegen::verify_function(&func, &*isa) {
                    failures.push(format!("{what}: {:?}", errors.0.first()));
                }
            }
        }
    }
    ensure!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

type Change = fn(&mut Function);

/// Cranelift numbers memory flags with 16 bits, and panics if there are more: passes make some of those that they find.
#[test]
fn no_room_for_memory_flags() -> Result<()> {
    let isa = isa(&[])?;
    for (kinds, changed) in [(100, true), (usize::from(u16::MAX) - 1, false)] {
        let mut text = String::from("function %f(i64, i64) -> i64 {\n");
        (0..kinds).for_each(|kind| text.push_str(&format!("region{kind} = {kind} \"r{kind}\"\n")));
        text.push_str("block0(v0: i64, v1: i64):\nv2 = iconst.i64 0\nv3 = iconst.i64 1\njump block1(v2, v2)\n");
        text.push_str(
            "block1(v4: i64, v5: i64):\nv6 = iadd v0, v4\nv7 = load.i64 notrap can_move region0 v6\nv8 = iadd v5, v7\n",
        );
        text.push_str("v9 = iadd v4, v3\nv10 = icmp ult v9, v1\nbrif v10, block1(v9, v8), block2\nblock2:\n");
        (1..kinds).for_each(|kind| text.push_str(&format!("store region{kind} v8, v0\n")));
        text.push_str("return v8\n}");
        let func = cranelift_reader::parse_functions(&text)?.remove(0);
        let (_, report) = run(func, &isa, Options::default())?;
        ensure!(report.changed == changed, "{kinds} kinds of flags");
        ensure!(declines(&report, "too-many-memory-flags") != changed, "{kinds} kinds of flags");
    }
    Ok(())
}

fn declines(report: &Report, why: &str) -> bool {
    report.remarks.iter().any(|remark| matches!(&remark.verdict, Verdict::Declined { reason, .. } if *reason == why))
}

/// Cranelift says that a dynamic vector has 0 bytes. Taken at its word, its accesses overlap nothing: a load of what the previous iteration stored would leave the
/// loop, be it a vector or a part of one, in stack slots too.
#[test]
fn dynamic_vectors_are_left_alone() -> Result<()> {
    let isa = isa::lookup_by_name("aarch64-unknown-linux-gnu")?.finish(flags(&[("opt_level", "speed")])?)?;
    let types = "gv0 = dyn_scale_target_const.i32x4\ndt0 = i32x4*gv0\n";
    let looping = |body: &str| {
        format!(
            "function %f(i64, i64, i64) {{
            ss0 = explicit_slot 32
            {types}
            block0(v0: i64, v1: i64, v2: i64):
                v3 = iconst.i64 0
                v4 = iconst.i64 1
                jump block1(v3)
            block1(v10: i64):
                {body}
                v24 = iadd v10, v4
                v25 = icmp ult v24, v1
                brif v25, block1(v24), block2
            block2:
                return
            }}"
        )
    };
    let bodies = [
        "v20 = load.dt0 notrap v0\nv21 = load.dt0 notrap v2\nv22 = iadd v20, v21\nstore notrap v22, v0",
        "v20 = load.i64 notrap v0+4\nstore notrap v20, v2\nv21 = load.dt0 notrap v2\nstore notrap v21, v0",
        "v18 = stack_addr.i64 ss0\nv20 = load.dt0 notrap v18\nv21 = load.dt0 notrap v2\nv22 = iadd v20, v21\nstore notrap v22, v18",
    ];
    for body in bodies {
        let func = cranelift_reader::parse_functions(&looping(body))?.remove(0);
        let (_, report) = run(func, &isa, Options::default())?;
        ensure!(!report.changed && declines(&report, "dynamic-vectors"), "{body}");
    }
    Ok(())
}

#[test]
fn invalid_data() -> Result<()> {
    let changes: &[(&str, Change)] = &[
        ("no terminator in the latch", |func| drop_last(func, block(2))),
        ("no terminator in the header", |func| drop_last(func, block(1))),
        ("no terminator in the exit", |func| drop_last(func, block(3))),
        ("a latch without instructions", |func| {
            drop_last(func, block(2));
            drop_last(func, block(2));
        }),
        ("a definition that is not there", |func| {
            let add = func.layout.first_inst(block(2)).expect("an addition");
            func.layout.remove_inst(add);
        }),
        ("a terminator in the middle", |func| {
            let jump = func.layout.last_inst(block(2)).expect("a jump");
            FuncCursor::new(func).at_inst(jump).ins().jump(block(3), &[BlockArg::Value(Value::from_u32(4))]);
        }),
        ("an instruction behind the terminator", |func| {
            FuncCursor::new(func).at_bottom(block(2)).ins().iconst(types::I64, 1);
        }),
        ("a branch to a block that is not in the layout", |func| {
            let elsewhere = func.dfg.make_block();
            drop_last(func, block(2));
            FuncCursor::new(func).at_bottom(block(2)).ins().jump(elsewhere, &[]);
        }),
        ("a branch to a block that does not exist", |func| {
            drop_last(func, block(2));
            FuncCursor::new(func).at_bottom(block(2)).ins().jump(block(1000), &[]);
        }),
        ("an empty block", |func| {
            let empty = func.dfg.make_block();
            func.layout.append_block(empty);
        }),
        ("a loop of empty blocks", |func| {
            let ends: Vec<_> = (0..3).map(|_| func.dfg.make_block()).collect();
            ends.iter().for_each(|&end| func.layout.append_block(end));
            FuncCursor::new(func).at_bottom(ends[0]).ins().jump(ends[1], &[]);
        }),
        ("a header that is removed from the layout", |func| func.layout.remove_block_and_insts(block(1))),
    ];
    let make = |change: Change| -> Result<Function> {
        let mut func = cranelift_reader::parse_functions(LOOP)?.remove(0);
        change(&mut func);
        Ok(func)
    };
    refused(changes.iter().map(|&(what, change)| Ok((what.to_string(), make(change)?))).collect::<Result<_>>()?)
}

fn block(number: u32) -> Block {
    Block::from_u32(number)
}

fn drop_last(func: &mut Function, block: Block) {
    let last = func.layout.last_inst(block).expect("an instruction");
    func.layout.remove_inst(last);
}

/// Each function gives an error, or is left as it was.
fn refused(cases: Vec<(String, Function)>) -> Result<()> {
    let isa = isa(&[])?;
    let mut failures = Vec::new();
    for (what, func) in cases {
        let mut ctx = Context::for_function(func);
        // A function can be too wrong to be written.
        let text = |func: &Function| catch_unwind(AssertUnwindSafe(|| func.to_string())).ok();
        let before = text(&ctx.func);
        let mut loops = LoopOptimizer::new(Options::default());
        let result = catch_unwind(AssertUnwindSafe(|| loops.run(&mut ctx, &*isa, &mut ControlPlane::default())));
        match result {
            Err(_) => failures.push(format!("{what}: a panic")),
            Ok(Ok(report)) if report.changed => failures.push(format!("{what}: changed")),
            Ok(_) if text(&ctx.func) != before => failures.push(format!("{what}: not as it was")),
            Ok(_) => {}
        }
    }
    ensure!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

/// A function `(i64) -> i64` in the making.
struct Maker {
    func: Function,
    /// Where code is added.
    block: Block,
    /// Its argument.
    arg: Value,
}

impl Maker {
    fn new() -> Self {
        let mut signature = Signature::new(CallConv::Fast);
        signature.params.push(AbiParam::new(types::I64));
        signature.returns.push(AbiParam::new(types::I64));
        let mut func = Function::with_name_signature(UserFuncName::testcase("large"), signature);
        let block = func.dfg.make_block();
        func.layout.append_block(block);
        let arg = func.dfg.append_block_param(block, types::I64);
        Self { func, block, arg }
    }

    fn block(&mut self) -> Block {
        let block = self.func.dfg.make_block();
        self.func.layout.append_block(block);
        block
    }

    fn param(&mut self, block: Block) -> Value {
        self.func.dfg.append_block_param(block, types::I64)
    }

    fn at(&mut self) -> FuncCursor<'_> {
        FuncCursor::new(&mut self.func).at_bottom(self.block)
    }

    fn constant(&mut self, number: usize) -> Value {
        self.at().ins().iconst(types::I64, number as i64)
    }

    fn add(&mut self, a: Value, b: Value) -> Value {
        self.at().ins().iadd(a, b)
    }

    fn product(&mut self, a: Value, b: Value) -> Value {
        self.at().ins().imul(a, b)
    }

    /// Traps unless the two compare so.
    fn check(&mut self, cond: IntCC, a: Value, b: Value) {
        let holds = self.at().ins().icmp(cond, a, b);
        self.at().ins().trapz(holds, TrapCode::HEAP_OUT_OF_BOUNDS);
    }

    fn jump(&mut self, target: Block, args: &[Value]) {
        let args: Vec<_> = args.iter().map(|&value| BlockArg::Value(value)).collect();
        self.at().ins().jump(target, &args);
    }

    /// Goes to `to` with `args` if `a` and `b` are equal, and on in a new block.
    fn leave_if_equal(&mut self, a: Value, b: Value, to: Block, args: &[Value]) {
        let next = self.block();
        self.branch(IntCC::Equal, [a, b], (to, args), (next, &[]));
        self.block = next;
    }

    fn branch(&mut self, cc: IntCC, [a, b]: [Value; 2], then: (Block, &[Value]), other: (Block, &[Value])) {
        let [then, other] = [then, other].map(|(block, args)| {
            let args: Vec<_> = args.iter().map(|&value| BlockArg::Value(value)).collect();
            (block, args)
        });
        let condition = self.at().ins().icmp(cc, a, b);
        self.at().ins().brif(condition, then.0, &then.1, other.0, &other.1);
    }

    fn table(&mut self, index: Value, default: (Block, &[Value]), entries: &[(Block, Vec<Value>)]) {
        let pool = &mut self.func.dfg.value_lists;
        let mut call = |block, args: &[Value]| BlockCall::new(block, args.iter().map(|&v| BlockArg::Value(v)), pool);
        let default = call(default.0, default.1);
        let entries: Vec<_> = entries.iter().map(|(block, args)| call(*block, args)).collect();
        let table = self.func.create_jump_table(JumpTableData::new(default, &entries));
        let index = self.at().ins().ireduce(types::I32, index);
        self.at().ins().br_table(index, table);
    }

    /// A while loop that counts to the argument. Continues after it.
    fn while_loop(&mut self, body: impl FnOnce(&mut Self, Value)) -> Value {
        let zero = self.constant(0);
        self.while_loop_between(zero, self.arg, body)
    }

    /// The same from `start` to `end`.
    fn while_loop_between(&mut self, start: Value, end: Value, body: impl FnOnce(&mut Self, Value)) -> Value {
        let (header, inside, exit) = (self.block(), self.block(), self.block());
        self.jump(header, &[start]);
        let counter = self.param(header);
        self.block = header;
        self.branch(IntCC::SignedLessThan, [counter, end], (inside, &[]), (exit, &[]));
        self.block = inside;
        body(self, counter);
        let one = self.constant(1);
        let next = self.add(counter, one);
        self.jump(header, &[next]);
        self.block = exit;
        counter
    }

    /// Returns the argument from here.
    fn finish_block(&mut self) {
        let arg = self.arg;
        self.at().ins().return_(&[arg]);
    }

    fn finish(mut self, result: Value) -> Function {
        self.at().ins().return_(&[result]);
        self.func
    }

    fn finish_with_arg(self) -> Function {
        let arg = self.arg;
        self.finish(arg)
    }

    fn chain(&mut self, start: Value, count: usize) -> Value {
        (0..count).fold(start, |value, _| self.add(value, self.arg))
    }
}

fn straight(size: usize) -> Function {
    let mut maker = Maker::new();
    let sum = maker.chain(maker.arg, size);
    maker.finish(sum)
}

fn loops_in_a_row(size: usize) -> Function {
    let mut maker = Maker::new();
    for _ in 0..size / 25 {
        maker.while_loop(|maker, counter| {
            maker.chain(counter, 20);
        });
    }
    maker.finish_with_arg()
}

fn large_body(size: usize) -> Function {
    let mut maker = Maker::new();
    maker.while_loop(|maker, counter| {
        maker.chain(counter, size);
    });
    maker.finish_with_arg()
}

/// The sum that the latch makes is what the back edge carries.
fn large_latch(size: usize) -> Function {
    let mut maker = Maker::new();
    let (header, exit) = (maker.block(), maker.block());
    maker.jump(header, &[maker.arg]);
    let counter = maker.param(header);
    maker.block = header;
    let next = maker.chain(counter, size);
    maker.branch(IntCC::SignedLessThan, [next, maker.arg], (header, &[next]), (exit, &[]));
    maker.block = exit;
    maker.finish(next)
}

fn large_header(size: usize) -> Function {
    let mut maker = Maker::new();
    let (header, inside, exit) = (maker.block(), maker.block(), maker.block());
    maker.jump(header, &[maker.arg]);
    let counter = maker.param(header);
    maker.block = header;
    let sum = maker.chain(counter, size);
    maker.branch(IntCC::SignedLessThan, [sum, maker.arg], (inside, &[]), (exit, &[]));
    maker.block = inside;
    maker.jump(header, &[sum]);
    maker.block = exit;
    maker.finish(sum)
}

fn parsed(text: &str) -> Function {
    cranelift_reader::parse_functions(text).expect("it is valid").remove(0)
}

/// Loops of which many values leave by two exits, after a chain of so many branches.
fn values_of_loops_behind_a_chain(branches: usize) -> Function {
    const LOOPS: usize = 20;
    const VALUES: usize = 40;
    let mut text = String::from("function %f(i64, i64) -> i64 {\nblock0(v0: i64, v1: i64):\n jump block10\n");
    for at in 0..branches {
        text += &format!("block{2}:\n v{0} = load.i32 v0\n brif v{0}, block{1}, block1\n", 100 + at, 11 + at, 10 + at);
    }
    let first = 10 + branches;
    for at in 0..LOOPS {
        let [start, header, rest, latch] = [0, 1, 2, 3].map(|block| first + 6 * at + block);
        let [left, right, next] = [4, 5, 6].map(|block| first + 6 * at + block);
        let value = |index: usize| 20_000 + 1_000 * at + index;
        text += &format!("block{start}:\n jump block{header}(v0)\nblock{header}(v{}: i64):\n", value(900));
        (0..VALUES).for_each(|index| text += &format!("v{} = load.i64 v{}+{}\n", value(index), value(900), 8 * index));
        text += &format!("v{} = icmp ugt v{}, v1\n", value(901), value(900));
        text += &format!("brif v{}, block{left}, block{rest}\nblock{rest}:\n", value(901));
        text += &format!("brif v{}, block{right}, block{latch}\nblock{latch}:\n", value(0));
        text += &format!("v{} = iadd v{}, v1\n jump block{header}(v{})\n", value(902), value(900), value(902));
        text += &format!("block{left}:\n store v0, v1\n jump block{right}\nblock{right}:\n");
        (0..VALUES).for_each(|index| text += &format!("store v{}, v1+{}\n", value(index), 8 * index));
        text += &format!("jump block{next}\n");
    }
    text += &format!("block{}:\n return v1\nblock1:\n return v0\n}}", first + 6 * LOOPS);
    parsed(&text)
}

/// A loop that may wait, and a number that is squared so often in each iteration.
fn squares_of_one_number(count: usize) -> Function {
    let mut text = String::from(
        "function %f(i64, i64) -> i64 {
        block0(v0: i64, v1: i64):
            v3 = iconst.i64 1
            jump block1(v1)
        block1(v4: i64):
            v5 = load.i64 notrap v0
            v1000 = iadd v4, v3
        ",
    );
    (1000..1000 + count).for_each(|at| text += &format!("v{} = imul v{at}, v{at}\n", at + 1));
    let last = 1000 + count;
    text += &format!("v6 = icmp ugt v5, v{last}\n brif v6, block1(v{last}), block2\nblock2:\n return v4\n}}");
    parsed(&text)
}

/// Values that leave a loop by one of two exits, and are used after a nest of this depth.
fn values_behind_a_nest(depth: usize) -> Function {
    const VALUES: usize = 60;
    let mut text = String::from(
        "function %f(i64, i64) -> i64 {
        block0(v0: i64, v1: i64):
            jump block1(v0)
        block1(v2: i64):
            v3 = load.i64 v1
        ",
    );
    (0..VALUES).for_each(|at| text += &format!("v{} = iadd v3, v2\n", 100 + at));
    text += "brif v3, block2, block100
        block2:
            v4 = iadd v2, v0
            v5 = load.i64 v1+8
            brif v5, block1(v4), block100
        ";
    (0..depth).for_each(|at| text += &format!("block{}:\n jump block{}\n", 100 + at, 101 + at));
    for at in 0..depth {
        let [this, next] = [100 + depth + at, 101 + depth + at];
        text += &format!("block{this}:\n v{this}000 = load.i64 v1+8000\n");
        text += &format!("brif v{this}000, block{}, block{next}\n", 99 + depth - at);
    }
    text += &format!("block{}:\n v6 = bxor v0, v1\n", 100 + 2 * depth);
    (0..VALUES).for_each(|at| text += &format!("store.i64 v{}, v1+{}\n", 100 + at, 8 * at));
    text += "return v6\n}";
    parsed(&text)
}

fn nest(depth: usize) -> Function {
    fn inside(maker: &mut Maker, depth: usize) {
        if depth > 0 {
            maker.while_loop(|maker, _| inside(maker, depth - 1));
        }
    }
    let mut maker = Maker::new();
    inside(&mut maker, depth);
    maker.finish_with_arg()
}

/// The innermost of so many loops checks each of their counters twice.
fn checks_in_a_nest(depth: usize) -> Function {
    fn inside(maker: &mut Maker, depth: usize, counters: &[Value]) {
        if depth > 0 {
            maker.while_loop(|maker, counter| inside(maker, depth - 1, &[counters, &[counter]].concat()));
            return;
        }
        for &counter in counters {
            for far in [100, 200] {
                let most = maker.constant(far);
                maker.check(IntCC::UnsignedLessThan, counter, most);
            }
        }
    }
    let mut maker = Maker::new();
    inside(&mut maker, depth, &[]);
    maker.finish_with_arg()
}

/// Each loop begins where the outer one is, and has an end of its own. The innermost checks a sum of four counters.
fn triangular_nest(depth: usize) -> Function {
    fn inside(maker: &mut Maker, ends: &[Value], counters: &[Value]) {
        let &start = counters.last().expect("where the first one begins");
        let Some((&end, others)) = ends.split_first() else {
            let last = counters.iter().rev().take(4).copied();
            let sum = last.reduce(|a, b| maker.add(a, b)).expect("some");
            maker.check(IntCC::UnsignedLessThan, sum, maker.arg);
            return;
        };
        maker.while_loop_between(start, end, |maker, counter| {
            inside(maker, others, &[counters, &[counter]].concat());
        });
    }
    let mut maker = Maker::new();
    let zero = maker.constant(0);
    let ends: Vec<_> = (0..depth)
        .map(|number| {
            let factor = maker.constant(2 * number + 3);
            maker.product(maker.arg, factor)
        })
        .collect();
    inside(&mut maker, &ends, &[zero]);
    maker.finish_with_arg()
}

/// In a nest of ten, so many loop-invariant numbers are checked against one.
fn checks_against_one_number(count: usize) -> Function {
    fn inside(maker: &mut Maker, depth: usize, numbers: &[Value], end: Value) {
        if depth > 0 {
            maker.while_loop(|maker, counter| inside(maker, depth - 1, numbers, counter));
            return;
        }
        for &number in numbers {
            let sum = maker.add(number, end);
            maker.check(IntCC::UnsignedLessThanOrEqual, sum, maker.arg);
        }
    }
    let mut maker = Maker::new();
    let numbers: Vec<_> = (0..count)
        .map(|number| {
            let by = maker.constant(2 * number + 3);
            let arg = maker.arg;
            maker.at().ins().bxor(arg, by)
        })
        .collect();
    let arg = maker.arg;
    inside(&mut maker, 10, &numbers, arg);
    maker.finish_with_arg()
}

/// A number is checked that is the sum of two products of the sum of two products.
fn products_of_sums(levels: usize) -> Function {
    let mut maker = Maker::new();
    let (arg, two) = (maker.arg, maker.constant(2));
    let other = maker.at().ins().bxor(arg, two);
    maker.while_loop(|maker, counter| {
        let mut value = counter;
        for _ in 0..levels {
            let [a, b] = [maker.arg, other].map(|factor| maker.product(value, factor));
            value = maker.add(a, b);
        }
        maker.check(IntCC::UnsignedLessThan, value, other);
    });
    maker.finish_with_arg()
}

/// A value of each of so many loops in a row, which have two exits each, is used at the end.
fn values_of_loops_in_a_row(count: usize) -> Function {
    let mut maker = Maker::new();
    let mut values = Vec::new();
    for _ in 0..count {
        let (header, latch, exit) = (maker.block(), maker.block(), maker.block());
        maker.jump(header, &[maker.arg]);
        let counter = maker.param(header);
        maker.block = header;
        let next = maker.chain(counter, 1);
        values.push(next);
        maker.branch(IntCC::Equal, [next, counter], (exit, &[]), (latch, &[]));
        maker.block = latch;
        maker.branch(IntCC::SignedLessThan, [next, maker.arg], (header, &[next]), (exit, &[]));
        maker.block = exit;
    }
    let sum = values.into_iter().reduce(|a, b| maker.add(a, b)).expect("a value");
    maker.finish(sum)
}

/// The counter is checked by bits of sums of bits of sums.
fn bits_of_sums(levels: usize) -> Function {
    let mut maker = Maker::new();
    let mut values: Vec<_> = (0..8).map(|number| maker.chain(maker.arg, number)).collect();
    for _ in 0..levels {
        let sum = values.iter().copied().reduce(|a, b| maker.add(a, b)).expect("eight values");
        values = (0..8)
            .map(|number| {
                let by = maker.constant(2 * number + 3);
                let more = maker.add(sum, by);
                maker.at().ins().bor(sum, more)
            })
            .collect();
    }
    maker.while_loop(|maker, counter| {
        for value in values {
            maker.check(IntCC::UnsignedLessThan, counter, value);
        }
    });
    maker.finish_with_arg()
}

/// What a loop polls is chosen by what is chosen by what it has loaded.
fn polled_choices(layers: usize) -> Function {
    let mut maker = Maker::new();
    maker.while_loop(|maker, _| {
        let arg = maker.arg;
        let flag = maker.at().ins().atomic_load(types::I64, MemFlagsData::trusted(), arg);
        let mut choices = [flag, maker.add(flag, arg), maker.product(flag, arg)];
        for _ in 0..layers {
            let [a, b, c] = choices;
            choices = [[a, b, c], [b, c, a], [c, a, b]].map(|[a, b, c]| maker.at().ins().bitselect(a, b, c));
        }
        let (rare, usual) = (maker.block(), maker.block());
        maker.branch(IntCC::Equal, [choices[0], arg], (rare, &[]), (usual, &[]));
        maker.func.layout.set_cold(rare);
        maker.block = rare;
        maker.finish_block();
        maker.block = usual;
    });
    maker.finish_with_arg()
}

/// Each of eight numbers of a loop is one of two sums of it, what is loaded and another one: each may stand still if the others do.
fn loops_of_chosen_sums(loops: usize) -> Function {
    const NUMBERS: usize = 8;
    let mut maker = Maker::new();
    for _ in 0..loops {
        let (header, exit) = (maker.block(), maker.block());
        maker.jump(header, &[maker.arg; NUMBERS]);
        let numbers: Vec<Value> = (0..NUMBERS).map(|_| maker.param(header)).collect();
        maker.block = header;
        let arg = maker.arg;
        let loaded = maker.at().ins().load(types::I64, MemFlagsData::trusted(), arg, 0);
        let mut next = Vec::new();
        for (at, &number) in numbers.iter().enumerate() {
            let [a, b] = [1, 3].map(|distance| {
                let added = maker.add(loaded, numbers[(at + distance) % NUMBERS]);
                maker.add(number, added)
            });
            next.push(maker.at().ins().select(arg, a, b));
        }
        maker.branch(IntCC::UnsignedLessThan, [next[0], arg], (header, &next), (exit, &[]));
        maker.block = exit;
    }
    maker.finish_with_arg()
}

/// From each depth, one edge leaves all loops.
fn nest_with_long_exits(depth: usize) -> Function {
    fn inside(maker: &mut Maker, depth: usize, exit: Block) {
        if depth > 0 {
            maker.while_loop(|maker, counter| {
                maker.leave_if_equal(counter, maker.arg, exit, &[counter]);
                inside(maker, depth - 1, exit);
            });
        }
    }
    let mut maker = Maker::new();
    let exit = maker.block();
    let result = maker.param(exit);
    inside(&mut maker, depth, exit);
    maker.jump(exit, &[maker.arg]);
    maker.block = exit;
    maker.finish(result)
}

/// A header with this many parameters, and one value more that the body needs.
fn full_header(count: usize) -> Function {
    let mut maker = Maker::new();
    let (header, inside, exit) = (maker.block(), maker.block(), maker.block());
    maker.jump(header, &vec![maker.arg; count]);
    let mut params: Vec<_> = (0..count).map(|_| maker.param(header)).collect();
    maker.block = header;
    let sum = maker.add(params[0], maker.arg);
    maker.branch(IntCC::SignedLessThan, [sum, maker.arg], (inside, &[]), (exit, &[]));
    maker.block = inside;
    params.rotate_left(1);
    maker.leave_if_equal(sum, maker.arg, exit, &[]);
    // A latch with something to do, or the loop tests at the bottom already.
    maker.add(sum, sum);
    maker.jump(header, &params);
    maker.block = exit;
    maker.finish_with_arg()
}

/// Parameters that take each other's place.
fn many_parameters(count: usize) -> Function {
    let mut maker = Maker::new();
    let (header, inside, exit) = (maker.block(), maker.block(), maker.block());
    maker.jump(header, &vec![maker.arg; count]);
    let params: Vec<_> = (0..count).map(|_| maker.param(header)).collect();
    maker.block = header;
    maker.branch(IntCC::SignedLessThan, [params[0], maker.arg], (inside, &[]), (exit, &[]));
    maker.block = inside;
    let mut next: Vec<_> = params.iter().map(|&param| maker.add(param, maker.arg)).collect();
    next.rotate_left(1);
    maker.jump(header, &next);
    maker.block = exit;
    let sum = params.iter().copied().reduce(|a, b| maker.add(a, b)).expect("a parameter");
    maker.finish(sum)
}

/// `entry` says where an entry of the table goes: to the header with the next counter, to one of four blocks, or out.
fn table(size: usize, entry: impl Fn(&[Block; 4], Block, Block, usize) -> Block) -> Function {
    let mut maker = Maker::new();
    let exit = maker.block();
    let result = maker.param(exit);
    maker.while_loop(|maker, counter| {
        let one = maker.constant(1);
        let next = maker.add(counter, one);
        let mut ways = [maker.block; 4];
        for way in &mut ways {
            *way = maker.block();
            maker.param(*way);
        }
        let latch = maker.block();
        let ValueDef::Param(header, _) = maker.func.dfg.value_def(counter) else { unreachable!("a counter") };
        let entries: Vec<_> = (0..size).map(|index| (entry(&ways, header, exit, index), vec![next])).collect();
        maker.table(counter, (latch, &[]), &entries);
        for way in ways {
            maker.block = way;
            maker.jump(latch, &[]);
        }
        maker.block = latch;
    });
    maker.jump(exit, &[maker.arg]);
    maker.block = exit;
    maker.finish(result)
}

/// `own` exits have a block of their own each, the others share one.
fn exits(count: usize, own: bool) -> Function {
    let mut maker = Maker::new();
    let shared = maker.block();
    let result = maker.param(shared);
    let mut own_exits = Vec::new();
    maker.while_loop(|maker, counter| {
        for number in 0..count {
            let number = maker.constant(number);
            if own {
                let exit = maker.block();
                maker.leave_if_equal(counter, number, exit, &[]);
                own_exits.push((exit, counter));
            } else {
                maker.leave_if_equal(counter, number, shared, &[counter]);
            }
        }
    });
    maker.jump(shared, &[maker.arg]);
    for (exit, value) in own_exits {
        maker.block = exit;
        maker.jump(shared, &[value]);
    }
    maker.block = shared;
    maker.finish(result)
}

/// `values` of a loop are used after it, and `exits` edges lead there.
fn values_behind(values: usize, exits: usize) -> Function {
    let mut maker = Maker::new();
    let (header, behind) = (maker.block(), maker.block());
    maker.jump(header, &[maker.arg]);
    let counter = maker.param(header);
    maker.block = header;
    let values: Vec<_> = (0..values).map(|_| maker.add(counter, maker.arg)).collect();
    for number in 0..exits {
        let number = maker.constant(number);
        let exit = maker.block();
        maker.leave_if_equal(counter, number, exit, &[]);
        let inside = std::mem::replace(&mut maker.block, exit);
        maker.jump(behind, &[]);
        maker.block = inside;
    }
    maker.jump(header, &[counter]);
    maker.block = behind;
    let sum = values.into_iter().reduce(|a, b| maker.add(a, b)).expect("a value");
    maker.finish(sum)
}

/// As many sums, all of which leave the loop by each of as many exits.
fn sums_by_exits(count: usize) -> Function {
    let mut maker = Maker::new();
    let (header, behind) = (maker.block(), maker.block());
    let (zero, one) = (maker.constant(0), maker.constant(1));
    let numbers: Vec<_> = (1..=count).map(|number| maker.constant(number)).collect();
    let ends: Vec<_> = numbers.into_iter().map(|number| maker.add(maker.arg, number)).collect();
    maker.jump(header, &vec![zero; count + 1]);
    let counter = maker.param(header);
    let sums: Vec<_> = (0..count).map(|_| maker.param(header)).collect();
    let results: Vec<_> = (0..count).map(|_| maker.param(behind)).collect();
    maker.block = header;
    for end in ends {
        maker.leave_if_equal(counter, end, behind, &sums);
    }
    let mut next = vec![maker.add(counter, one)];
    next.extend(sums.iter().map(|&sum| maker.add(sum, maker.arg)));
    maker.jump(header, &next);
    maker.block = behind;
    let result = results.into_iter().reduce(|a, b| maker.at().ins().bxor(a, b)).expect("a value");
    maker.finish(result)
}

/// What a multiple of the counter grows by is squared again and again, and added up. The loop does nothing else.
fn squares(count: usize) -> Function {
    let mut maker = Maker::new();
    let (header, exit) = (maker.block(), maker.block());
    maker.jump(header, &[maker.arg, maker.arg]);
    let (counter, sum) = (maker.param(header), maker.param(header));
    maker.block = header;
    let one = maker.constant(1);
    let next = maker.add(counter, one);
    let [now, then] = [counter, next].map(|number| maker.product(number, maker.arg));
    let mut value = maker.at().ins().isub(then, now);
    for _ in 0..count {
        value = maker.product(value, value);
    }
    let total = maker.add(sum, value);
    maker.branch(IntCC::NotEqual, [next, maker.arg], (header, &[next, total]), (exit, &[]));
    maker.block = exit;
    maker.finish(total)
}

fn latches(count: usize) -> Function {
    let mut maker = Maker::new();
    let (header, inside, exit) = (maker.block(), maker.block(), maker.block());
    maker.jump(header, &[maker.arg]);
    let counter = maker.param(header);
    maker.block = header;
    maker.branch(IntCC::SignedLessThan, [counter, maker.arg], (inside, &[]), (exit, &[]));
    let ways: Vec<_> = (0..count).map(|_| (maker.block(), Vec::new())).collect();
    maker.block = inside;
    maker.table(counter, (ways[0].0, &[]), &ways);
    for (number, (way, _)) in ways.into_iter().enumerate() {
        maker.block = way;
        let number = maker.constant(number);
        let next = maker.add(counter, number);
        maker.jump(header, &[next]);
    }
    maker.block = exit;
    maker.finish(counter)
}

/// The header of the outer loop is the exit of all inner ones.
fn header_is_exit(count: usize) -> Function {
    let mut maker = Maker::new();
    let (outer, dispatch, exit) = (maker.block(), maker.block(), maker.block());
    maker.jump(outer, &[maker.arg]);
    let counter = maker.param(outer);
    maker.block = outer;
    maker.branch(IntCC::SignedLessThan, [counter, maker.arg], (dispatch, &[]), (exit, &[]));
    let headers: Vec<_> = (0..count).map(|_| (maker.block(), vec![counter])).collect();
    maker.block = dispatch;
    maker.table(counter, (headers[0].0, &[counter]), &headers);
    for (header, _) in headers {
        let inner = maker.param(header);
        let body = maker.block();
        maker.block = header;
        maker.branch(IntCC::SignedLessThan, [inner, maker.arg], (body, &[]), (outer, &[inner]));
        maker.block = body;
        let next = maker.add(inner, maker.arg);
        maker.jump(header, &[next]);
    }
    maker.block = exit;
    maker.finish(counter)
}

/// A cycle that is entered at each of its blocks.
fn irreducible(entries: usize) -> Function {
    let mut maker = Maker::new();
    let exit = maker.block();
    let ring: Vec<_> = (0..entries).map(|_| (maker.block(), Vec::new())).collect();
    maker.table(maker.arg, (exit, &[]), &ring);
    for (index, (block, _)) in ring.iter().enumerate() {
        maker.block = *block;
        let number = maker.constant(index);
        let (next, _) = ring[(index + 1) % entries];
        maker.branch(IntCC::Equal, [maker.arg, number], (exit, &[]), (next, &[]));
    }
    maker.block = exit;
    maker.finish_with_arg()
}

fn diamonds_in_a_loop(count: usize) -> Function {
    let mut maker = Maker::new();
    maker.while_loop(|maker, counter| {
        for _ in 0..count {
            let [left, right, join] = [(); 3].map(|()| maker.block());
            maker.branch(IntCC::Equal, [counter, maker.arg], (left, &[]), (right, &[]));
            for side in [left, right] {
                maker.block = side;
                maker.jump(join, &[]);
            }
            maker.block = join;
        }
    });
    maker.finish_with_arg()
}

fn jumps_in_a_loop(count: usize) -> Function {
    let mut maker = Maker::new();
    maker.while_loop(|maker, counter| {
        let mut value = counter;
        for _ in 0..count {
            let next = maker.block();
            maker.jump(next, &[value]);
            value = maker.param(next);
            maker.block = next;
        }
    });
    maker.finish_with_arg()
}

/// Joins in a loop, each of so many parameters, which change their places on one of two paths.
fn joins_of_parameters(params: usize) -> Function {
    const JOINS: usize = 100;
    let mut maker = Maker::new();
    let (header, exit) = (maker.block(), maker.block());
    maker.jump(header, &vec![maker.arg; params]);
    let mut values: Vec<_> = (0..params).map(|_| maker.param(header)).collect();
    maker.block = header;
    let counter = maker.add(values[0], maker.arg);
    let ends = values.clone();
    values[0] = counter;
    for number in 0..JOINS {
        let (side, join) = (maker.block(), maker.block());
        let limit = maker.constant(number);
        maker.branch(IntCC::Equal, [values[number % params], limit], (side, &[]), (join, &values));
        maker.block = side;
        values.rotate_left(1);
        maker.jump(join, &values);
        values = (0..params).map(|_| maker.param(join)).collect();
        maker.block = join;
    }
    maker.branch(IntCC::SignedLessThan, [counter, maker.arg], (header, &values), (exit, &[]));
    maker.block = exit;
    let result = ends.into_iter().reduce(|a, b| maker.add(a, b)).expect("a value");
    maker.finish(result)
}

struct Shape {
    name: &'static str,
    size: usize,
    make: fn(usize) -> Function,
    /// Time grows with the square of the size.
    square: bool,
}

impl Shape {
    const fn new(name: &'static str, size: usize, make: fn(usize) -> Function) -> Self {
        Self { name, size, make, square: false }
    }

    const fn square(self) -> Self {
        Self { square: true, ..self }
    }

    /// The most that a function of four times the size may take longer.
    fn most_growth(&self) -> f64 {
        if self.square { 70.0 } else { 11.0 }
    }
}

const SHAPES: &[Shape] = &[
    Shape::new("straight code", 1_000_000, straight),
    Shape::new("loops in a row, by instructions", 1_000_000, loops_in_a_row),
    Shape::new("a large body", 1_000_000, large_body),
    Shape::new("a large latch", 1_000_000, large_latch),
    Shape::new("a large header", 1_000_000, large_header),
    // Less deep than `cleanup_max_depth`: Cranelift's egraph pass takes time by the square of the depth.
    Shape::new("a nest of 200", 200, nest).square(),
    Shape::new("a nest of 1,000", 1_000, nest),
    Shape::new("values used behind a nest", 1_600, values_behind_a_nest),
    Shape::new("loops behind a chain of branches", 10_000, values_of_loops_behind_a_chain),
    Shape::new("squares of one number", 64, squares_of_one_number),
    // Each edge is an exit of each loop that it leaves.
    Shape::new("a nest with exits from each level", 1_000, nest_with_long_exits).square(),
    Shape::new("checks in a nest", 24, checks_in_a_nest).square(),
    Shape::new("a triangular nest", 24, triangular_nest).square(),
    Shape::new("checks against one number", 400, checks_against_one_number),
    Shape::new("products of sums of products", 48, products_of_sums),
    Shape::new("values of loops in a row", 2_000, values_of_loops_in_a_row),
    Shape::new("bits of sums of bits", 20, bits_of_sums),
    Shape::new("choices that a loop polls", 60, polled_choices),
    Shape::new("sums that are chosen", 120, loops_of_chosen_sums),
    Shape::new("parameters", 10_000, many_parameters),
    Shape::new("a table to the header", 50_000, |size| table(size, |_, header, _, _| header)),
    Shape::new("a table into the body", 50_000, |size| table(size, |ways, _, _, at| ways[at % 4])),
    Shape::new("a table out of the loop", 50_000, |size| table(size, |_, _, exit, _| exit)),
    Shape::new("exits to own blocks", 10_000, |size| exits(size, true)),
    Shape::new("exits to one block", 10_000, |size| exits(size, false)),
    Shape::new("values used behind two exits", 10_000, |size| values_behind(size, 2)),
    Shape::new("a value used behind exits", 10_000, |size| values_behind(2, size)),
    // Each exit passes each value.
    Shape::new("values used behind exits", 300, |size| values_behind(size, size)).square(),
    Shape::new("sums that leave by exits", 40, sums_by_exits).square(),
    Shape::new("parameters of joins", 800, joins_of_parameters),
    Shape::new("squares of squares", 16, squares),
    Shape::new("latches", 5_000, latches),
    Shape::new("inner loops that leave to a header", 500, header_is_exit),
    Shape::new("entries of an irreducible cycle", 1_000, irreducible),
    Shape::new("diamonds in a loop", 20_000, diamonds_in_a_loop),
    Shape::new("jumps in a loop", 50_000, jumps_in_a_loop),
];

struct Measured {
    /// Of this thread: what else the machine does is not in it.
    total: Duration,
    report: Report,
}

fn measure(func: Function, isa: &OwnedTargetIsa) -> Result<Measured> {
    let start = ThreadTime::now();
    let (_, report) = run(func, isa, Options::default())?;
    Ok(Measured { total: start.elapsed(), report })
}

/// A shape in a quarter of its size and in full.
struct Growth {
    quarter: Measured,
    full: Measured,
}

impl Growth {
    fn of(shape: &Shape, isa: &OwnedTargetIsa) -> Result<Self> {
        let measure = |size| measure((shape.make)(size), isa).with_context(|| shape.name);
        Ok(Self { quarter: measure(shape.size / 4)?, full: measure(shape.size)? })
    }

    fn factor(&self) -> f64 {
        self.full.total.as_secs_f64() / self.quarter.total.as_secs_f64()
    }

    fn print(&self, shape: &Shape) {
        let Shape { name, size, .. } = shape;
        println!("{name:36} {size:9} {:>10.1?} {:>10.1?} {:6.1}", self.quarter.total, self.full.total, self.factor());
        for (pass, full) in self.full.report.timings.iter().filter(|(_, time)| *time > Duration::from_millis(5)) {
            let quarter = self.quarter.report.timings.iter().find(|(other, _)| other == pass);
            let quarter = quarter.map_or(Duration::ZERO, |(_, time)| *time);
            let factor = full.as_secs_f64() / quarter.as_secs_f64();
            println!("    {pass:42} {quarter:>10.1?} {full:>10.1?} {factor:6.1}");
        }
    }

    fn is_too_slow(&self, shape: &Shape) -> bool {
        // What takes less is noise.
        let counts = self.full.total > Duration::from_millis(200);
        self.full.total > LIMIT || counts && self.factor() > shape.most_growth()
    }
}

#[test]
fn large_functions() -> Result<()> {
    let isa = isa(&[("enable_verifier", "false")])?;
    let mut failures = Vec::new();
    println!("{:36} {:>9} {:>10} {:>10} {:>6}", "", "size", "quarter", "full", "factor");
    for shape in SHAPES {
        let mut growth = Growth::of(shape, &isa)?;
        // Not so if something else had the caches.
        for _ in 0..2 {
            if growth.is_too_slow(shape) {
                growth = Growth::of(shape, &isa)?;
            }
        }
        growth.print(shape);
        if growth.is_too_slow(shape) {
            failures.push(format!("{}: {:.1?}, factor {:.1}", shape.name, growth.full.total, growth.factor()));
        }
    }
    ensure!(failures.is_empty(), "too slow:\n{}", failures.join("\n"));
    Ok(())
}
