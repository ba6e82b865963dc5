//! What the loops look like that are emitted after loopopt.

use jit_harness::listing::listing;
use jit_harness::machine::{EmittedLoop, loops};
use loopopt::Options;
use loopopt::oracle::{Compiled, Pipeline, Program, Settings};

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

fn code(text: &str, pipeline: Pipeline<'_>) -> Vec<u8> {
    let program = Program::parse(text).expect("the program is valid");
    let compiled = Compiled::new(&program, pipeline, Settings::default()).expect("it can be compiled");
    compiled.function("f").expect("there is a function").code.clone()
}

fn only_loop(code: &[u8]) -> EmittedLoop {
    let mut found = loops(code);
    assert_eq!(found.len(), 1, "one loop is expected in\n{}", listing(code));
    found.remove(0)
}

/// The loop is in one piece, with one jump, which is a conditional one back to its head, and is no longer than before.
#[track_caller]
fn assert_tight(text: &str) {
    let options = Options::default();
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

#[test]
fn baseline_loops_have_two_jumps() {
    for text in [COUNTED, SUM, ATOI] {
        assert_eq!(only_loop(&code(text, Pipeline::Speed)).jumps, 2);
    }
}

/// A value that each iteration computes and only the end uses, with another way to the end.
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
    let options = Options::default();
    let code = code(EXIT_VALUE, Pipeline::LoopOpt(&options));
    let text = listing(&code);
    let after = only_loop(&code);
    assert!(after.insts <= 4, "the loop only counts in\n{text}");
}

#[test]
fn products_of_a_rare_block_are_in_it() {
    let options = Options::default();
    let multiplication_in_front = |pipeline| {
        let text = listing(&code(RARE_BLOCK, pipeline));
        let product = text.find("imul").expect("there are products");
        product < text.find("L0").expect("there is a loop")
    };
    assert!(multiplication_in_front(Pipeline::Speed), "Cranelift does them before the loop");
    assert!(!multiplication_in_front(Pipeline::LoopOpt(&options)), "they are done in the rare block");
}
