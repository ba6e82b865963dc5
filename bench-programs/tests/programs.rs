//! What holds for every program, as far as it can be seen without running any.

use std::collections::HashSet;

use bench_programs::{Arg, Checks, Input, Program, Source, Value, all, by_hand};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{AbiParam, Function, Type, types};
use cranelift_codegen::loop_analysis::{Loop, LoopAnalysis};
use cranelift_codegen::settings;
use cranelift_codegen::verifier::verify_function;

fn function(program: &Program) -> Function {
    match program.source {
        Source::Built(build) => build(),
        Source::Checked { build, .. } => build(Checks::On),
        Source::Clif(text) => parsed(program.name, text),
    }
}

fn parsed(name: &str, text: &str) -> Function {
    let functions =
        cranelift_reader::parse_functions(text).unwrap_or_else(|error| panic!("{name} does not parse: {error}"));
    let [function]: [Function; 1] = functions.try_into().expect("a file of kernels/ has one function");
    function
}

/// The programs that somebody has rewritten, with that text.
fn rewritten() -> impl Iterator<Item = (&'static Program, &'static str)> {
    all().iter().filter_map(|program| Some((program, by_hand(program.name)?)))
}

#[test]
fn what_is_rewritten_by_hand_is_of_a_program() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/by_hand");
    let files = std::fs::read_dir(folder).expect("there is such a folder");
    assert_eq!(rewritten().count(), files.count(), "each file of kernels/by_hand is named after a program");
    for (program, text) in rewritten() {
        assert!(text.starts_with(";; "), "{} has no header", program.name);
        let (written, by_hand) = (function(program), parsed(program.name, text));
        assert_eq!(written.name, by_hand.name);
        assert_eq!(written.signature, by_hand.signature, "{}", program.name);
    }
}

#[test]
fn there_are_enough() {
    let is_built = |program: &&Program| !matches!(program.source, Source::Clif(_));
    assert!(all().len() >= 28);
    assert!(2 * all().iter().filter(is_built).count() >= all().len());
}

#[test]
fn names_are_unique_and_kebab_case() {
    let mut seen = HashSet::new();
    for name in all().iter().map(|program| program.name) {
        assert!(seen.insert(name), "{name} comes twice");
        let is_word = |word: &str| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        assert!(name.split('-').all(is_word), "{name} is not kebab-case");
    }
}

#[test]
fn tags_are_known() {
    const KNOWN: [&str; 9] = ["checked", "memory", "slots", "float", "call", "switch", "dispatch", "nest", "profile"];
    for program in all() {
        for tag in program.tags {
            assert!(KNOWN.contains(tag), "{}: {tag}", program.name);
        }
    }
}

#[test]
fn functions_are_valid_and_named_after_their_program() {
    let flags = settings::Flags::new(settings::builder());
    for program in all() {
        let func = function(program);
        if let Err(errors) = verify_function(&func, &flags) {
            panic!("{}: {errors}\n{func}", program.name);
        }
        assert_eq!(func.name.to_string(), format!("%{}", program.name.replace('-', "_")));
    }
}

#[test]
fn what_is_checked_can_be_built_without_checks() {
    for program in all() {
        let is_tagged = program.tags.contains(&"checked");
        match program.source {
            Source::Checked { build, limits } => {
                assert!(is_tagged, "{}", program.name);
                let (with, without) = (build(Checks::On), build(Checks::Off));
                assert!(with.dfg.num_insts() > without.dfg.num_insts(), "{}", program.name);
                for limit in limits {
                    assert!(!limit.traps.is_empty() && !limit.traps.contains(&limit.passes), "{}", program.name);
                }
            }
            _ => assert!(!is_tagged, "{}", program.name),
        }
    }
}

#[test]
fn clif_text_is_explained() {
    for program in all() {
        if let Source::Clif(text) = program.source {
            assert!(text.starts_with(";; "), "{} has no header", program.name);
        }
    }
}

#[test]
fn c_kernels_are_named_after_their_program() {
    for program in all() {
        if let Some(c) = program.c {
            assert!(c.starts_with("#include <stdint.h>\n"), "{}", program.name);
            assert!(c.contains(&format!(" {}(", program.name.replace('-', "_"))), "{}", program.name);
        }
    }
}

/// Every function, with both of its inputs.
fn inputs() -> impl Iterator<Item = (&'static Program, Input)> {
    all().iter().flat_map(|program| [(program, (program.small)()), (program, (program.large)())])
}

#[test]
fn arguments_fit_the_signature() {
    for (program, input) in inputs() {
        let signature = &function(program).signature;
        let params: Vec<Type> = signature.params.iter().map(|param: &AbiParam| param.value_type).collect();
        let args: Vec<Type> = input.args.iter().map(argument_type).collect();
        assert_eq!(args, params, "{}", program.name);
        for arg in &input.args {
            assert!(!matches!(arg, Arg::Pointer(at) if *at > input.memory.len()), "{}", program.name);
        }
        let result = (program.reference)(&input, &mut input.memory.clone());
        let result: Vec<Type> = result.iter().map(value_type).collect();
        let returns: Vec<Type> = signature.returns.iter().map(|param| param.value_type).collect();
        assert_eq!(result, returns, "{}", program.name);
    }
}

fn argument_type(arg: &Arg) -> Type {
    match arg {
        Arg::Value(value) => value_type(value),
        Arg::Pointer(_) => types::I64,
    }
}

fn value_type(value: &Value) -> Type {
    match value {
        Value::I32(_) => types::I32,
        Value::I64(_) => types::I64,
        Value::F64(_) => types::F64,
    }
}

#[test]
fn inputs_and_references_are_deterministic() {
    for (first, second) in inputs().zip(inputs()) {
        let (program, input) = first;
        assert_eq!(input, second.1, "{}", program.name);
        let (mut one, mut two) = (input.memory.clone(), input.memory.clone());
        let results = [(program.reference)(&input, &mut one), (program.reference)(&input, &mut two)];
        assert_eq!((results[0], one), (results[1], two), "{}", program.name);
    }
}

#[test]
fn memory_is_below_one_mebibyte() {
    for (program, input) in inputs() {
        assert!(input.memory.len() < 1 << 20, "{}", program.name);
    }
}

#[test]
fn while_loops_are_counted() {
    for program in all() {
        let func = function(program);
        let cfg = ControlFlowGraph::with_function(&func);
        let domtree = DominatorTree::with_function(&func, &cfg);
        let mut loops = LoopAnalysis::new();
        loops.compute(&func, &cfg, &domtree);
        let top_tested = loops.loops().filter(|&lp| is_top_tested(&loops, &cfg, lp)).count();
        assert_eq!(top_tested, program.while_loops, "{}", program.name);
    }
}

/// Whether the loop can be left from its header, and from none of its latches.
fn is_top_tested(loops: &LoopAnalysis, cfg: &ControlFlowGraph, lp: Loop) -> bool {
    let header = loops.loop_header(lp);
    let leaves = |block| cfg.succ_iter(block).any(|next| !loops.is_in_loop(next, lp));
    let mut latches = cfg.pred_iter(header).map(|edge| edge.block).filter(|&block| loops.is_in_loop(block, lp));
    leaves(header) && !latches.any(leaves)
}
