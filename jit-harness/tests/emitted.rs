//! What the loops look like that are emitted after loopopt.

use bench_programs::{Checks, Source};
use cranelift_codegen::ir::{AliasRegionData, TrapCode};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};
use jit_harness::listing::listing;
use jit_harness::machine::{EmittedLoop, Flow, loops};
use loopopt::oracle::{Compiled, Pipeline, Program, Settings};
use loopopt::{Embedder, Options, SpectreGuards};
use std::sync::Arc;

const COUNTED: &str = "function %f(i64) -> i64 {
block0(v0: i64):
    v1 = iconst.i64 0
    jump block1(v1, v1)
block1(v2: i64, v3: i64):
    v4 = icmp slt v2, v0
    brif v4, block2, block3
block2:
    v5 = bxor v3, v2
    v6 = iconst.i64 3
    v7 = iadd v2, v6
    jump block1(v7, v5)
block3:
    return v3
}";

const SUM: &str = "function %f(i64, i64) -> i64 {
block0(v0: i64, v1: i64):
    v2 = iconst.i64 0
    jump block1(v2, v2)
block1(v3: i64, v4: i64):
    v5 = icmp slt v3, v1
    brif v5, block2, block3
block2:
    v6 = iconst.i64 3
    v7 = ishl v3, v6
    v8 = iadd v0, v7
    v9 = load.i64 notrap aligned v8
    v10 = iadd v4, v9
    v11 = iconst.i64 1
    v12 = iadd v3, v11
    jump block1(v12, v10)
block3:
    return v4
}";

/// The test of the loop is that there is a digit: a while loop whose header loads.
const ATOI: &str = "function %f(i64) -> i64 {
block0(v0: i64):
    v1 = iconst.i64 0
    jump block1(v0, v1)
block1(v2: i64, v3: i64):
    v4 = uload8.i64 notrap aligned v2
    v5 = iconst.i64 -48
    v6 = iadd v4, v5
    v7 = iconst.i64 10
    v8 = icmp ult v6, v7
    brif v8, block2, block3
block2:
    v9 = iconst.i64 10
    v10 = imul v3, v9
    v11 = iadd v10, v6
    v12 = iconst.i64 1
    v13 = iadd v2, v12
    jump block1(v13, v11)
block3:
    return v3
}";

/// All passes but `partial_unroll`: what an iteration has is counted where there is one copy of it.
fn one_at_a_time() -> Options {
    let mut options = Options::default();
    options.passes = Some(loopopt::pass_names().filter(|&name| name != "partial_unroll").map(String::from).collect());
    options
}

fn code(text: &str, pipeline: Pipeline<'_>) -> Vec<u8> {
    code_of("f", text, pipeline)
}

fn code_of(name: &str, text: &str, pipeline: Pipeline<'_>) -> Vec<u8> {
    let program = Program::parse(text).expect("the program is valid");
    let compiled = Compiled::new(&program, pipeline, Settings::default()).expect("it can be compiled");
    compiled.function(name).expect("there is a function").code.clone()
}

/// The code of a sample program.
fn sample_code(name: &str, pipeline: Pipeline<'_>) -> Vec<u8> {
    sample_code_with(Checks::On, name, pipeline)
}

/// The same with or without its checks, if it has any.
fn sample_code_with(checks: Checks, name: &str, pipeline: Pipeline<'_>) -> Vec<u8> {
    let sample = bench_programs::all().iter().find(|program| program.name == name).expect("there is such a sample");
    let text = match sample.source {
        Source::Built(build) => build().display().to_string(),
        Source::Checked { build, .. } => build(checks).display().to_string(),
        Source::Clif(text) => text.to_string(),
    };
    code_of(&name.replace('-', "_"), &text, pipeline)
}

fn only_loop(code: &[u8]) -> EmittedLoop {
    let mut found = loops(code);
    assert_eq!(found.len(), 1, "one loop is expected in\n{}", listing(code));
    found.remove(0)
}

/// The innermost loop with the most loads: that of an unrolled group, if there is one.
fn most_loads(code: &[u8]) -> EmittedLoop {
    let innermost = loops(code).into_iter().filter(|one| one.is_innermost);
    innermost.max_by_key(|one| one.loads).expect("there are loops")
}

/// The loop is in one piece, with one jump, which is a conditional one back to its head, and is no longer than before.
#[track_caller]
fn assert_tight(text: &str) {
    let options = one_at_a_time();
    let before = only_loop(&code(text, Pipeline::Speed));
    let code = code(text, Pipeline::LoopOpt(&options));
    let after = only_loop(&code);
    let text = listing(&code);
    assert!(after.is_contiguous, "other code is inside of the loop of\n{text}");
    assert_eq!((after.jumps, after.conditional_jumps), (1, 1), "one jump is expected in the loop of\n{text}");
    assert!(after.ends_in_conditional_jump_to_header, "the loop does not end in its jump in\n{text}");
    assert!(after.insts <= before.insts, "{} instructions before, {} in\n{text}", before.insts, after.insts);
    assert_eq!(after.stack_accesses, 0, "values are spilled in\n{text}");
}

#[test]
fn counted_loop_is_tight() {
    assert_tight(COUNTED);
}

#[test]
fn sum_over_an_array_is_tight() {
    assert_tight(SUM);
}

#[test]
fn atoi_is_tight() {
    assert_tight(ATOI);
}

/// The bits of a number, counted by clearing the lowest one until none is left.
const BITS: &str = "function %f(i64) -> i64 {
block0(v0: i64):
    v1 = iconst.i64 0
    v2 = iconst.i64 1
    v3 = iconst.i64 -1
    jump block1(v0, v1)
block1(v4: i64, v5: i64):
    v6 = iadd v4, v3
    v7 = band v4, v6
    v8 = iadd v5, v2
    brif v7, block1(v7, v8), block2
block2:
    return v8
}";

/// `blsr`, or a sum and an `and` where there is none, the count, the test of the bits that are left, and the jump.
#[test]
fn bits_that_are_left_are_tested_by_themselves() {
    assert_tight(BITS);
    let code = code(BITS, Pipeline::LoopOpt(&one_at_a_time()));
    assert!(only_loop(&code).insts <= 5, "five instructions are expected in the loop of\n{}", listing(&code));
}

/// A sum of squares over rows of three.
const SHORT_INNER: &str = "function %f(i64, i64) -> i64 {
block0(v0: i64, v1: i64):
    v2 = iconst.i64 0
    v3 = iconst.i64 1
    v4 = iconst.i64 3
    jump block1(v2, v2)
block1(v5: i64, v6: i64):
    v7 = icmp slt v5, v1
    brif v7, block2(v2, v6), block5
block2(v8: i64, v9: i64):
    v10 = icmp slt v8, v4
    brif v10, block3, block4
block3:
    v11 = imul v5, v4
    v12 = iadd v11, v8
    v13 = ishl v12, v4
    v14 = iadd v0, v13
    v15 = load.i64 notrap aligned v14
    v16 = imul v15, v15
    v17 = iadd v9, v16
    v18 = iadd v8, v3
    jump block2(v18, v17)
block4:
    v19 = iadd v5, v3
    jump block1(v19, v9)
block5:
    return v6
}";

#[test]
fn short_inner_loop_is_gone() {
    let options = one_at_a_time();
    assert_eq!(loops(&code(SHORT_INNER, Pipeline::Speed)).len(), 2);
    let code = code(SHORT_INNER, Pipeline::LoopOpt(&options));
    let text = listing(&code);
    let found = loops(&code);
    assert_eq!(found.len(), 1, "one loop is expected in\n{text}");
    assert_eq!(found[0].conditional_jumps, 1, "one jump is expected in the loop of\n{text}");
}

#[test]
fn baseline_loops_have_two_jumps() {
    for text in [COUNTED, SUM, ATOI] {
        assert_eq!(only_loop(&code(text, Pipeline::Speed)).jumps, 2);
    }
}

/// The sample whose variables are all in stack slots keeps none of them in memory, and needs no frame.
#[test]
fn variables_in_slots_are_in_registers() {
    let before = only_loop(&sample_code("slots", Pipeline::Speed));
    assert!(before.stack_accesses > 0, "Cranelift alone keeps variables in memory");
    let code = sample_code("slots", Pipeline::LoopOpt(&one_at_a_time()));
    let after = only_loop(&code);
    let text = listing(&code);
    assert_eq!((after.stack_accesses, after.loads, after.stores), (0, 0, 0), "there is memory in\n{text}");
    assert_eq!((after.jumps, after.conditional_jumps), (1, 1), "one jump is expected in the loop of\n{text}");
    assert!(!text.contains("[rsp") && !text.contains("sub rsp"), "there is a frame in\n{text}");
}

/// What an innermost loop does again in each iteration.
#[derive(Debug, PartialEq, Eq)]
struct Repeated {
    loads: usize,
    stores: usize,
    /// Multiplications of integers.
    products: usize,
    /// Conditional jumps but the one of the loop: its checks.
    checks: usize,
}

impl Repeated {
    /// What the innermost loop of a sample does, and the text of all its code. Slow versions are after all others.
    fn in_sample(name: &str, pipeline: Pipeline<'_>) -> (Self, String) {
        let code = sample_code(name, pipeline);
        let flow = Flow::new(&code);
        let mut innermost: Vec<_> = flow.loops().into_iter().filter(|lp| lp.is_innermost).collect();
        assert!(!innermost.is_empty(), "an innermost loop is expected in\n{}", listing(&code));
        let lp = innermost.remove(0);
        let products = lp.offsets.iter().filter(|offset| flow.insts[*offset].mnemonic() == Mnemonic::Imul).count();
        let (loads, stores, checks) = (lp.loads, lp.stores, lp.conditional_jumps - 1);
        (Self { loads, stores, products, checks }, listing(&code))
    }
}

/// The innermost loop of a sample repeats `before` without loopopt, and `after` with it.
#[track_caller]
fn assert_repeats(name: &str, before: Repeated, after: Repeated) {
    let (found, text) = Repeated::in_sample(name, Pipeline::Speed);
    assert_eq!(found, before, "before, in\n{text}");
    let (found, text) = Repeated::in_sample(name, Pipeline::LoopOpt(&one_at_a_time()));
    assert_eq!(found, after, "after, in\n{text}");
}

/// The sum is in a register: the two loads are those of the factors. It is stored after the loop, as a test before the loop says that no
/// factor is at its place. Of the products, one is the term and one makes the row of the second
/// matrix, which varies; that of the first matrix is computed before the loop.
#[test]
fn matmul_keeps_its_sum_in_a_register() {
    let before = Repeated { loads: 3, stores: 1, products: 3, checks: 0 };
    assert_repeats("matmul-memory", before, Repeated { loads: 2, stores: 0, products: 2, checks: 0 });
}

/// Both checks are tested before all loops. The row of the first matrix is multiplied before the loop; the row of the second
/// one varies.
#[test]
fn matmul_multiplies_before_the_loop() {
    let before = Repeated { loads: 2, stores: 0, products: 2, checks: 2 };
    assert_repeats("matmul", before, Repeated { loads: 2, stores: 0, products: 1, checks: 0 });
}

/// The pointer, its null check, and the field it leads to.
#[test]
fn boxed_value_is_read_before_the_loop() {
    let before = Repeated { loads: 2, stores: 0, products: 0, checks: 1 };
    assert_repeats("boxed-lookup", before, Repeated { loads: 0, stores: 0, products: 0, checks: 0 });
}

/// The test of the loop is the check. With `dot`, the other check is against another length, which is tested before the loop.
#[test]
fn checks_that_the_test_implies_are_gone() {
    let counts = |loads, stores, checks| Repeated { loads, stores, products: 0, checks };
    assert_repeats("sum-checked", counts(1, 0, 1), counts(1, 0, 0));
    let dot = |checks| Repeated { products: 1, ..counts(2, 0, checks) };
    assert_repeats("dot", dot(2), dot(0));
    assert_repeats("prefix-sum", counts(1, 1, 2), counts(1, 1, 0));
    assert_repeats("reverse-copy", counts(1, 1, 2), counts(1, 1, 0));
    assert_repeats("stencil3", counts(4, 1, 4), counts(4, 1, 0));
}

#[test]
fn invariant_element_is_read_and_checked_before_the_loop() {
    let before = Repeated { loads: 1, stores: 0, products: 0, checks: 1 };
    assert_repeats("invariant-element", before, Repeated { loads: 0, stores: 0, products: 0, checks: 0 });
}

/// One load, that of the element, and no store: a test before the loop says that no element is a part of the sum.
#[test]
fn sums_in_memory_are_in_registers() {
    let counts = |loads, stores, products| Repeated { loads, stores, products, checks: 0 };
    assert_repeats("memory-accumulator", counts(2, 1, 0), counts(1, 0, 0));
    assert_repeats("running-total", counts(2, 1, 0), counts(1, 0, 0));
    assert_repeats("row-sums", counts(3, 1, 2), counts(2, 0, 1));
}

/// The pointer and the length are read before the loop, and without the check the sum can be, too; after a test that the array does not hold
/// it. Only the element is read again.
#[test]
fn fields_are_read_before_the_loop() {
    let before = Repeated { loads: 5, stores: 1, products: 0, checks: 1 };
    assert_repeats("struct-fields", before, Repeated { loads: 1, stores: 0, products: 0, checks: 0 });
}

/// The inner loop of a matrix product as a 32-bit front end emits it: the matrices are at constant places in a memory of which the base is
/// a value, and indices are added up in 32 bits.
const NARROW_PRODUCT: &str = "function %f(i64) -> i64 {
block0(v0: i64):
    v1 = iconst.i32 0
    v2 = iconst.i64 0
    jump block1(v1, v2)
block1(v3: i32, v4: i64):
    v5 = iconst.i32 96
    v6 = icmp ult v3, v5
    brif v6, block2, block5
block2:
    v7 = iconst.i32 768
    v8 = imul v3, v7
    jump block3(v1, v4)
block3(v9: i32, v10: i64):
    v11 = icmp ult v9, v5
    brif v11, block4, block6
block4:
    v12 = iconst.i32 3
    v13 = ishl v9, v12
    v14 = iadd v8, v13
    v15 = iconst.i32 0x2_2000
    v16 = iadd v14, v15
    v17 = uextend.i64 v16
    v18 = iadd v0, v17
    v19 = load.i64 notrap aligned v18
    v20 = iconst.i32 0x3_4000
    v21 = iadd v13, v20
    v22 = uextend.i64 v21
    v23 = iadd v0, v22
    v24 = load.i64 notrap aligned v23
    v25 = bxor v19, v24
    v26 = iadd v10, v25
    v27 = iconst.i32 1
    v28 = iadd v9, v27
    jump block3(v28, v26)
block5:
    return v4
block6:
    v29 = iconst.i32 1
    v30 = iadd v3, v29
    jump block1(v30, v10)
}";

/// No address is computed in 32 bits: both loads have the counter as their index, and there is nothing but what the program asks for.
#[test]
fn indices_of_32_bits_are_in_addressing_modes() {
    let innermost = |pipeline| {
        let code = code(NARROW_PRODUCT, pipeline);
        let found = loops(&code).into_iter().min_by_key(|found| found.insts).expect("a loop");
        (found, listing(&code))
    };
    let (before, _) = innermost(Pipeline::Speed);
    let (after, text) = innermost(Pipeline::LoopOpt(&one_at_a_time()));
    assert!(before.insts >= 9, "Cranelift alone adds up in 32 bits");
    assert_eq!(
        (after.insts, after.loads, after.jumps),
        (7, 2, 1),
        "two loads and what the program does with them are expected in\n{text}"
    );
}

/// A value that each iteration computes and only the end uses, with another path to the end.
const EXIT_VALUE: &str = "function %f(i64, i64) -> i64 {
block0(v0: i64, v1: i64):
    v2 = iconst.i64 0
    jump block1(v2, v2)
block1(v3: i64, v4: i64):
    v5 = icmp slt v3, v0
    brif v5, block2, block3
block2:
    v6 = iconst.i64 1
    v7 = iadd v3, v6
    v8 = bxor v7, v1
    v9 = imul v8, v8
    v10 = imul v9, v1
    jump block1(v7, v10)
block3:
    return v4
}";

/// Cranelift computes the products before the loop; a rare block uses them.
const RARE_BLOCK: &str = "function %f(i64, i64) -> i64 {
    sig0 = (i64) -> i64 system_v
    fn0 = %host sig0
block0(v0: i64, v1: i64):
    v2 = iconst.i64 0
    jump block1(v2)
block1(v3: i64):
    v4 = icmp eq v3, v1
    brif v4, block2, block3
block2 cold:
    v5 = imul v1, v1
    v6 = imul v5, v0
    v7 = call fn0(v6)
    jump block3
block3:
    v8 = iconst.i64 1
    v9 = iadd v3, v8
    v10 = icmp slt v9, v0
    brif v10, block1(v9), block4
block4:
    return v9
}";

#[test]
fn exit_value_is_not_computed_in_the_loop() {
    let options = one_at_a_time();
    let code = code(EXIT_VALUE, Pipeline::LoopOpt(&options));
    let text = listing(&code);
    let after = only_loop(&code);
    assert!(after.insts <= 4, "the loop only counts in\n{text}");
}

#[test]
fn products_of_a_rare_block_are_in_it() {
    let options = one_at_a_time();
    let multiplication_in_front = |pipeline| {
        let text = listing(&code(RARE_BLOCK, pipeline));
        let product = text.find("imul").expect("there are products");
        product < text.find("L0").expect("there is a loop")
    };
    assert!(multiplication_in_front(Pipeline::Speed), "Cranelift does them before the loop");
    assert!(!multiplication_in_front(Pipeline::LoopOpt(&options)), "they are done in the rare block");
}

/// Samples whose checks loopopt takes out of the innermost loops, and how many have to stay in all of them together: those
/// whose index comes from memory.
const CHECKS_LEFT: &[(&str, usize)] = &[
    ("sum-checked", 0),
    ("dot", 0),
    ("saxpy", 0),
    ("prefix-sum", 0),
    ("reverse-copy", 0),
    ("stencil3", 0),
    ("histogram", 1),
    ("lagged", 0),
    ("pairs", 0),
    ("quads", 0),
    ("downward-slice", 0),
    ("pointer-walk", 0),
    ("slice-before", 0),
    ("slice-inside", 0),
    ("runtime-check", 0),
    ("null-check", 0),
    ("counted-overflow", 0),
    ("checked-division", 0),
    ("wasm-sum", 0),
    ("wasm-axpy", 0),
    ("boxed-sum", 0),
    ("scaled-sum", 0),
    ("resampled-sum", 0),
    ("invariant-branch", 0),
    ("sieve", 0),
    ("matmul", 0),
    ("floyd-warshall", 0),
    ("stencil2d", 0),
    ("edit-distance", 0),
    ("rare-cells", 0),
    ("rare-nest", 0),
];

/// The number of checks in each innermost loop, in the order of the code, and the code as text.
fn checks_in(code: &[u8]) -> (Vec<usize>, String) {
    let flow = Flow::new(code);
    let loops = flow.loops();
    (loops.iter().filter(|lp| lp.is_innermost).map(|lp| flow.checks(lp)).collect(), listing(code))
}

/// The number of checks in the innermost loops that run: slow versions are cold, and are after all others.
fn checks_left(name: &str) -> (usize, String) {
    let options = one_at_a_time();
    // Without checks, no loop has a slow version but for its addresses and for what may overlap.
    let mut one_version = options.clone();
    one_version.version_max_requirements = 0;
    let (without, _) = checks_in(&sample_code_with(Checks::Off, name, Pipeline::LoopOpt(&one_version)));
    let (with, text) = checks_in(&sample_code(name, Pipeline::LoopOpt(&options)));
    (with.iter().take(without.len()).sum(), text)
}

#[test]
fn checks_are_counted() {
    let options = one_at_a_time();
    for &(name, left) in CHECKS_LEFT {
        let (before, text) = checks_in(&sample_code(name, Pipeline::Speed));
        assert!(before.iter().sum::<usize>() > left, "{name}: {before:?} in\n{text}");
        for pipeline in [Pipeline::Speed, Pipeline::LoopOpt(&options)] {
            let (without, text) = checks_in(&sample_code_with(Checks::Off, name, pipeline));
            assert!(!without.is_empty() && without.iter().sum::<usize>() == 0, "{name}: {without:?} in\n{text}");
        }
    }
}

#[test]
fn checks_leave_the_loop() {
    let mut wrong = Vec::new();
    for &(name, left) in CHECKS_LEFT {
        let (found, text) = checks_left(name);
        if found != left {
            wrong.push(format!("{name}: {found} checks in the innermost loops, not {left}, of\n{text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A loop-invariant flag chooses what is done with each number.
const INVARIANT_BRANCH: &str = "function %f(i64, i64, i64) -> i64 {
block0(v0: i64, v1: i64, v2: i64):
    v3 = iconst.i64 0
    jump block1(v3, v3)
block1(v4: i64, v5: i64):
    brif v2, block2, block3
block2:
    v6 = iadd v5, v4
    jump block4(v6)
block3:
    v7 = bxor v5, v4
    jump block4(v7)
block4(v8: i64):
    v9 = iconst.i64 1
    v10 = iadd v4, v9
    v11 = icmp slt v10, v1
    brif v11, block1(v10, v8), block5
block5:
    return v8
}";

/// A limit in memory that a rare call may change.
const RARE_CALL: &str = "function %f(i64, i64, i64) -> i64 {
    sig0 = (i64) -> i64 system_v
    fn0 = %host sig0
block0(v0: i64, v1: i64, v2: i64):
    v3 = iconst.i64 0
    jump block1(v3, v3)
block1(v4: i64, v5: i64):
    v6 = load.i64 notrap aligned v2
    v7 = bxor v4, v1
    v8 = icmp ugt v7, v6
    brif v8, block2, block3(v7)
block2 cold:
    v9 = call fn0(v4)
    jump block3(v9)
block3(v10: i64):
    v11 = iadd v5, v10
    v12 = iconst.i64 1
    v13 = iadd v4, v12
    v14 = icmp slt v13, v0
    brif v14, block1(v13, v11), block4
block4:
    return v11
}";

#[test]
fn both_loops_are_without_the_invariant_branch() {
    let options = one_at_a_time();
    let code = code(INVARIANT_BRANCH, Pipeline::LoopOpt(&options));
    let text = listing(&code);
    let after = loops(&code);
    assert_eq!(after.len(), 2, "one loop for each way\n{text}");
    assert!(after.iter().all(|one| one.insts <= 5), "each has one test, that of its end\n{text}");
}

#[test]
fn the_fast_loop_does_not_load_the_limit() {
    let options = one_at_a_time();
    let limits = |pipeline| loops(&code(RARE_CALL, pipeline)).iter().map(|one| one.loads).min();
    assert_eq!(limits(Pipeline::Speed), Some(1), "the call keeps the load in the loop");
    assert_eq!(limits(Pipeline::LoopOpt(&options)), Some(0), "the loop without the call has none");
}

/// A safepoint is polled before a strip of iterations: the loop has no load of the flag, no call, and nothing on the stack.
#[test]
fn a_safepoint_is_not_polled_in_the_loop() {
    let options = Options::default();
    let before = sample_code("safepoint-poll", Pipeline::Speed);
    let polled = loops(&before).into_iter().find(|one| one.is_innermost).expect("there is a loop");
    assert!(polled.stack_accesses > 0, "the call keeps values on the stack\n{}", listing(&before));
    let code = sample_code("safepoint-poll", Pipeline::LoopOpt(&options));
    let text = listing(&code);
    let unrolled = most_loads(&code);
    assert_eq!((unrolled.loads, unrolled.stores, unrolled.jumps), (8, 4, 1), "four iterations\n{text}");
    assert_eq!(unrolled.stack_accesses, 0, "values are spilled in\n{text}");
}

/// Fuel that counts down is asked for before a strip of iterations: the loop has no call, and nothing on the stack.
#[test]
fn gas_is_not_asked_for_in_the_loop() {
    let options = Options::default();
    let code = sample_code("gas-metered", Pipeline::LoopOpt(&options));
    let text = listing(&code);
    let unrolled = most_loads(&code);
    assert_eq!((unrolled.loads, unrolled.stores, unrolled.jumps), (8, 0, 1), "four iterations\n{text}");
    assert_eq!(unrolled.stack_accesses, 0, "values are spilled in\n{text}");
}

/// Neighbours are loaded at offsets from the counter's own address: nothing computes their indices.
#[test]
fn indices_of_neighbours_are_not_computed() {
    let code = sample_code("clamped-neighbours", Pipeline::LoopOpt(&Options::default()));
    let (text, found) = (listing(&code), loops(&code));
    let counts: Vec<_> = found.iter().map(|one| (one.insts, one.loads)).collect();
    // An operation may take a load as its operand.
    let has = |loads: usize, most: usize| counts.iter().any(|&(insts, found)| found == loads && insts <= most);
    assert!(has(4, 13) && has(3, 9), "{counts:?} in\n{text}");
}

/// Indices of 32 bits that may wrap, of which one comparison before the loop says that they do not, are counted in 64: nothing extends them.
#[test]
fn indices_that_seldom_wrap_are_in_addressing_modes() {
    for (text, loads, most) in [
        (include_str!("../../loopopt/tests/clif/version/fires-up-to-the-end-of-int.clif"), 5, 16),
        (include_str!("../../loopopt/tests/clif/version/fires-down-to-a-bound-signed.clif"), 6, 21),
        (include_str!("../../loopopt/tests/clif/version/fires-index-by-itself.clif"), 5, 16),
    ] {
        let code = code(text, Pipeline::LoopOpt(&Options::default()));
        let unrolled = most_loads(&code);
        let text = listing(&code);
        assert!(unrolled.loads == loads && unrolled.insts <= most, "{} instructions in\n{text}", unrolled.insts);
    }
}

/// Four iterations have four loads of each array, four stores, and one step of each pointer.
#[test]
fn a_batch_steps_each_pointer_once() {
    let options = Options::default();
    let code = sample_code("differences", Pipeline::LoopOpt(&options));
    let text = listing(&code);
    let batch = most_loads(&code);
    assert_eq!((batch.loads, batch.stores, batch.jumps), (8, 4, 1), "four iterations\n{text}");
    assert_eq!(batch.stack_accesses, 0, "values are spilled in\n{text}");
    let rest = loops(&code).iter().filter(|one| one.is_innermost && one.loads == 2).count();
    assert_eq!(rest, 1, "what remains has the loop as it was\n{text}");
    let single = sample_code("differences", Pipeline::LoopOpt(&one_at_a_time()));
    let one = loops(&single).iter().map(|one| one.insts).min().expect("there are loops");
    assert!(batch.insts + 12 <= 4 * one, "{} instructions for four of {one}\n{text}", batch.insts);
}

/// Four iterations that need three neighbours each load six, and the constant four times.
#[test]
fn neighbours_are_loaded_once() {
    let options = Options::default();
    let code = sample_code("stencil3", Pipeline::LoopOpt(&options));
    let text = listing(&code);
    let found = loops(&code);
    let unrolled = found.iter().find(|one| one.is_innermost && one.stores == 4).expect("four iterations");
    assert!(unrolled.loads <= 10, "{} loads in\n{text}", unrolled.loads);
    assert_eq!((unrolled.jumps, unrolled.stack_accesses), (1, 0), "\n{text}");
}

/// Three neighbours in each iteration, each at what a Spectre guard gives.
const GUARDED: &str = "function %f(i64, i64) -> i64 {
    region0 = 0 \"heap\"
block0(v0: i64, v1: i64):
    v2 = iconst.i64 0
    v3 = iconst.i64 8
    v4 = iconst.i64 65528
    jump block1(v3, v2)
block1(v5: i64, v6: i64):
    v7 = isub v5, v3
    v8 = icmp ugt v7, v4
    v9 = iadd v0, v7
    v10 = select_spectre_guard v8, v2, v9
    v11 = load.i64 region0 v10
    v12 = icmp ugt v5, v4
    v13 = iadd v0, v5
    v14 = select_spectre_guard v12, v2, v13
    v15 = load.i64 region0 v14
    v16 = iadd v5, v3
    v17 = icmp ugt v16, v4
    v18 = iadd v0, v16
    v19 = select_spectre_guard v17, v2, v18
    v20 = load.i64 region0 v19
    v21 = iadd v11, v15
    v22 = iadd v21, v20
    v23 = iadd v6, v22
    v24 = icmp ult v16, v1
    brif v24, block1(v16, v23), block2
block2:
    return v23
}";

/// An embedder who lets guards be consolidated.
#[derive(Debug)]
struct Consolidating;

impl Embedder for Consolidating {
    fn is_checked(&self, region: &AliasRegionData, _: TrapCode) -> bool {
        region.description == "heap"
    }

    fn spectre_guards(&self) -> SpectreGuards {
        SpectreGuards::Consolidate
    }
}

/// The loads and the conditional moves of the innermost loop with the most loads.
fn loads_and_guards(code: &[u8]) -> (usize, usize) {
    let most = most_loads(code);
    let is_guard =
        |inst: &Instruction| most.offsets.contains(&inst.ip()) && format!("{:?}", inst.mnemonic()).starts_with("Cmov");
    let guards = Decoder::new(64, code, DecoderOptions::NONE).into_iter().filter(is_guard).count();
    (most.loads, guards)
}

/// Where Cranelift has a guard for each of three loads, one stands for all loads of an unrolled group.
#[test]
fn one_guard_stands_for_an_unrolled_group() {
    let before = code(GUARDED, Pipeline::Speed);
    assert_eq!(loads_and_guards(&before), (3, 3), "{}", listing(&before));
    let mut options = Options::default();
    options.embedder = Arc::new(Consolidating);
    let after = code(GUARDED, Pipeline::LoopOpt(&options));
    let (loads, guards) = loads_and_guards(&after);
    assert!(loads >= 4 && guards == 1, "{loads} loads, {guards} guards in\n{}", listing(&after));
}

/// Of the four multiplications of an unrolled group, one waits for the previous group: the others are of registers that the group has
/// written earlier.
#[test]
fn one_multiplication_waits_for_the_group_before() {
    let code = sample_code("product", Pipeline::LoopOpt(&Options::default()));
    let group = most_loads(&code);
    let insts = Decoder::new(64, &code, DecoderOptions::NONE).into_iter();
    let (mut written, mut products, mut waiting) = (Vec::new(), 0, 0);
    for inst in insts.filter(|inst| group.offsets.contains(&inst.ip())) {
        let register = inst.op0_register().full_register();
        if inst.mnemonic() == Mnemonic::Imul {
            products += 1;
            waiting += usize::from(!written.contains(&register));
        }
        written.push(register);
    }
    assert_eq!((group.loads, products, waiting), (4, 4, 1), "{}", listing(&code));
}

/// After the test that a divisor is 8, nothing is divided, and after the test that rows have four numbers, nothing counts to four.
#[test]
fn a_number_that_was_tested_is_known_in_the_loop() {
    let options = Options::default();
    let divisor = sample_code("known-divisor", Pipeline::LoopOpt(&options));
    let divides = |inst: Instruction| matches!(inst.mnemonic(), Mnemonic::Div | Mnemonic::Idiv);
    let is_divided = Decoder::new(64, &divisor, DecoderOptions::NONE).into_iter().any(divides);
    assert!(!is_divided, "{}", listing(&divisor));
    let count = sample_code("known-count", Pipeline::LoopOpt(&options));
    let found = loops(&count);
    assert!(found.iter().filter(|one| one.is_innermost).all(|one| one.loads >= 4), "{}", listing(&count));
}

/// What a loop by hand would not ask in each iteration, nor do: whether the counter has reached a middle or an end, a condition that is the same in all
/// of them, a division that could be done before, and a count that is 3 at most.
#[test]
fn what_is_known_of_a_part_is_not_asked_in_the_loop() {
    let options = Options::default();
    let code = |name| sample_code(name, Pipeline::LoopOpt(&options));
    let innermost = |code: &[u8]| loops(code).into_iter().filter(|one| one.is_innermost).collect::<Vec<_>>();
    let in_loops = |code: &[u8], unwanted: fn(Mnemonic) -> bool| {
        let found = innermost(code);
        let insts = Decoder::new(64, code, DecoderOptions::NONE).into_iter();
        let insts = insts.filter(|inst| found.iter().any(|one| one.offsets.contains(&inst.ip())));
        insts.filter(|inst| unwanted(inst.mnemonic())).count()
    };
    let parts = code("two-parts");
    assert!(innermost(&parts).iter().all(|one| one.conditional_jumps == 1), "{}", listing(&parts));
    let clamped = code("clamped-neighbours");
    let unrolled = most_loads(&clamped);
    assert_eq!(unrolled.conditional_jumps, 1, "{}", listing(&clamped));
    let both = code("both-conditions");
    let sets = |mnemonic| matches!(mnemonic, Mnemonic::Setg | Mnemonic::Setge | Mnemonic::Setl | Mnemonic::Setle);
    assert_eq!(in_loops(&both, sets), 0, "{}", listing(&both));
    let division = code("guarded-division");
    assert_eq!(in_loops(&division, |mnemonic| mnemonic == Mnemonic::Div), 0, "{}", listing(&division));
    let few = code("few-each");
    assert!(innermost(&few).iter().all(|one| one.loads >= 3 && one.conditional_jumps >= 4), "{}", listing(&few));
}

/// `a && b` is tested in two branches and is no value, and a flag that ends the loop is none either: the loop that sets it counts.
#[test]
fn conditions_that_are_joined_are_not_made() {
    let options = Options::default();
    let code = |name| sample_code(name, Pipeline::LoopOpt(&options));
    let sets = |code: &[u8]| {
        let insts = Decoder::new(64, code, DecoderOptions::NONE).into_iter();
        insts.filter(|inst| format!("{:?}", inst.mnemonic()).starts_with("Set")).count()
    };
    let merge = code("merge-sum");
    assert_eq!(sets(&merge), 0, "{}", listing(&merge));
    let flag = code("stop-flag");
    assert_eq!(sets(&flag), 0, "{}", listing(&flag));
    let walk = most_loads(&flag);
    assert_eq!(walk.conditional_jumps, 2 * walk.loads, "{}", listing(&flag));
}

/// A sum that two edges pass, and the loads that it is made of: three of a group of four are operands, and no register is moved.
#[test]
fn loads_are_operands_of_the_sums_that_an_iteration_passes_on() {
    let mut options = Options::default();
    options.lowers_directly = true;
    let code = sample_code("sum", Pipeline::LoopOpt(&options));
    let found = loops(&code);
    let group = found.iter().find(|one| one.is_innermost && one.loads == 4).expect("the unrolled loop");
    assert_eq!((group.insts, group.jumps), (8, 1), "{}", listing(&code));
}

/// The sum of a loop is in a register, though the cold loop that it is passed to calls, and leaves to the same block.
#[test]
fn floats_that_cold_loops_save_are_in_registers_elsewhere() {
    const TEXT: &str = include_str!("../../loopopt/tests/clif/split_at_cold_edges/fires-fast-and-slow-loop.clif");
    let stack_accesses = |passes: &[&str]| {
        let mut options = Options::default();
        options.passes = Some(passes.iter().map(|&pass| pass.to_owned()).collect());
        let code = code_of("f", TEXT, Pipeline::LoopOpt(&options));
        // The hot loop comes first.
        loops(&code)[0].stack_accesses
    };
    assert_eq!((stack_accesses(&["licm"]), stack_accesses(&["licm", "split_at_cold_edges"])), (2, 0));
}

/// Three loads extend what they load, and no register is moved for the counter that leaves the loop as it was in the last iteration.
#[test]
fn what_a_counter_was_leaves_without_a_move() {
    const TEXT: &str =
        include_str!("../../loopopt/tests/clif/extend_loads/fires-loop-that-leaves-with-its-counter.clif");
    let shape = |pipeline: Pipeline<'_>| {
        let found = only_loop(&code_of("f", TEXT, pipeline));
        (found.insts, found.jumps)
    };
    let mut options = Options::default();
    options.passes = Some(["extend_loads"].map(String::from).into());
    assert_eq!(shape(Pipeline::Speed), (40, 6));
    assert_eq!(shape(Pipeline::LoopOpt(&options)), (38, 6));
}

/// What data decides is chosen: each innermost loop has one jump, back to its start.
#[test]
fn data_decides_without_a_branch() {
    let before = only_loop(&sample_code("clamped-distance", Pipeline::Speed));
    assert!(before.jumps > 3);
    let code = sample_code("clamped-distance", Pipeline::LoopOpt(&Options::default()));
    let found = loops(&code);
    assert_eq!(found.iter().map(|one| one.jumps).collect::<Vec<_>>(), [1, 1], "{}", listing(&code));
}

/// So it is with the bits of a checksum: the loop over bytes has no branch but the back edge.
#[test]
fn bits_of_a_checksum_decide_without_a_branch() {
    let before = sample_code("crc32-branches", Pipeline::Speed);
    assert!(loops(&before).iter().any(|one| one.jumps > 1));
    let code = sample_code("crc32-branches", Pipeline::LoopOpt(&Options::default()));
    assert!(loops(&code).iter().all(|one| one.jumps == 1), "{}", listing(&code));
}

/// The tags and the lengths of two objects, one of which is stored to, are loaded before the loop, and all but one length are tested there.
#[test]
fn headers_are_tested_before_the_loop() {
    let code = |pipeline| sample_code("tagged-arrays", pipeline);
    let before = only_loop(&code(Pipeline::Speed));
    let after = code(Pipeline::LoopOpt(&Options::default()));
    let group = loops(&after).into_iter().max_by_key(|one| one.stores).expect("an unrolled loop");
    let of = |one: &EmittedLoop| (one.loads, one.conditional_jumps);
    // Four iterations, each with two elements and a test of the length of the array that is stored to.
    assert_eq!((of(&before), of(&group)), ((8, 8), (8, 5)), "{}", listing(&after));
}

/// What objects say of their arrays is tested before the loop, and not loaded in it: there is a load of an element, an addition and a store.
#[test]
fn arrays_of_objects_are_found_before_the_loop() {
    let code = |pipeline| sample_code("object-arrays", pipeline);
    let before = only_loop(&code(Pipeline::Speed));
    let after = code(Pipeline::LoopOpt(&Options::default()));
    let group = loops(&after).into_iter().max_by_key(|one| one.stores).expect("an unrolled loop");
    let of = |one: &EmittedLoop| (one.loads, one.stores, one.conditional_jumps);
    assert_eq!((of(&before), of(&group)), ((8, 1, 5), (4, 4, 1)), "{}", listing(&after));
}

/// A byte that the next iteration adds to is not extended: for each element there is a load, an addition and a store.
#[test]
fn sums_of_bytes_are_bytes() {
    let code = sample_code("byte-sums", Pipeline::LoopOpt(&Options::default()));
    let found = loops(&code);
    let group = found.iter().find(|one| one.loads == 4).expect("the unrolled loop");
    assert_eq!((group.insts, group.jumps), (15, 1), "{}", listing(&code));
}
