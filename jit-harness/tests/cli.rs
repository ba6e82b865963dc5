//! The binary from outside: what each command prints, and what it says about bad input.

mod common;

use common::{Bench, GOOD, TRAPS, text};
use serde_json::Value;
use std::process::{Command, Stdio};

#[test]
fn list_names_programs_and_passes() {
    let output = Bench::new().prints(&["list"]);
    for program in bench_programs::all() {
        assert!(output.contains(program.name) && output.contains(program.about), "{}", program.name);
    }
    for pass in loopopt::pass_names() {
        assert!(output.contains(pass), "{pass}");
    }
    for option in ["    max_rounds=", "    others_write=<regions>", "    refusals=true"] {
        assert!(output.contains(option), "{option}");
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jit-harness"));
    let mut child =
        command.arg("list").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary is there");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

#[test]
fn run_checks_the_run_lines() {
    let bench = Bench::new();
    let file = bench.file("good.clif", GOOD);
    let output = bench.prints(&["run", &file]);
    assert_eq!(
        output,
        "line 18: %sum(mem, 5): ok\nline 19: %sum(mem, 0): ok\nline 28: %half(0x1.8000000000000p0): ok\n"
    );
    assert_eq!(bench.prints(&["run", &file, "--function", "half"]).lines().count(), 1);
    assert_eq!(bench.prints(&["run", &file, "--function", "%half", "--verify", "--fuel", "0"]).lines().count(), 1);
}

#[test]
fn run_checks_the_trap_lines() {
    const TEXT: &str =
        "function %f(i64) -> i64 {\nblock0(v0: i64):\n    trapz v0, user7\n    return v0\n}\n; trap: %f(0) == ";
    let bench = Bench::new();
    let right = bench.file("right.clif", format!("{TEXT}user7\n"));
    assert_eq!(bench.prints(&["run", &right]), "line 6: %f(0): ok\n");
    let wrong = bench.file("wrong.clif", format!("{TEXT}user9\n"));
    let output = bench.run(&["run", &wrong]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("FAILED: trap: user7 in %f, expected trap: user9"));
    let expected =
        "the line of the file is wrong, or all arms are: line 6: %f(0): trap: user7 in %f, expected trap: user9";
    for command in ["bisect", "reduce"] {
        let output = bench.run(&[command, &wrong]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stdout).contains(expected), "{command}: {}", text(&output.stdout));
    }
    bench.complains(&["run", &bench.file("none.clif", format!("{TEXT}usher9\n"))], &["none.clif:6: ", "no trap code"]);
    // What traps is not timed.
    bench.complains(&["bench", &right, "--quick"], &["right.clif", "nothing to time"]);
}

#[test]
fn options_may_be_written_with_other_spaces() {
    let bench = Bench::new();
    for line in [";options: fuel=0", ";; options:fuel=0", "  ; options:  fuel=0"] {
        let file = bench.file("options.clif", format!("{line}\n{GOOD}"));
        assert!(bench.prints(&["explain", &file]).contains("left as it is"), "{line}");
    }
    let output = bench.run(&["explain", &bench.file("meant.clif", format!("; Options: fuel=0\n{GOOD}"))]);
    assert!(text(&output.stderr).contains("meant.clif:1: this is a comment; is `; options: …` meant?"));
}

#[test]
fn a_file_says_which_options_it_is_for() {
    let bench = Bench::new();
    let with = |line: &str| bench.file("options.clif", format!("{line}\n{GOOD}"));
    let none = with("; options: fuel=0");
    assert!(bench.prints(&["explain", &none]).contains("left as it is"));
    // What is given counts more.
    assert!(bench.prints(&["explain", &none, "--fuel", "1"]).contains("changed"));
    // So do the options of a file that another machine runs.
    let diff = ["show", &none, "--target", "aarch64", "--diff"];
    assert!(bench.prints(&diff).contains("machine code of %sum: no change"));
    assert!(!bench.prints(&[&diff[..], &["--fuel", "1"]].concat()).contains("machine code of %sum: no change"));
    for (line, what) in
        [("fule=1", "no option fule"), ("fuel=x", "fuel has to be a number from 0"), ("passes", "name=value")]
    {
        let output = bench.run(&["bisect", &with(&format!("; options: {line}"))]);
        assert_eq!(output.status.code(), Some(2));
        let error = text(&output.stderr);
        assert!(error.contains("options.clif:1: ") && error.contains(what), "{error}");
    }
    let wrong = with("; options: fule=1");
    for command in [&["bench"][..], &["profile"], &["report", "--out", "pages"], &["show", "--target", "aarch64"]] {
        bench.complains(&[command, &[&wrong]].concat(), &["options.clif:1: ", "no option fule"]);
    }
}

#[test]
fn an_option_can_be_given() {
    let bench = Bench::new();
    let file = bench.file("options.clif", format!("; options: fuel=0 poll_latency=8\n{GOOD}"));
    assert!(bench.prints(&["explain", &file, "--set", "max_rounds=1"]).contains("left as it is"));
    assert!(bench.prints(&["explain", &file, "--set", "fuel=9", "--set", "calls_write=heap"]).contains("changed"));
    assert!(bench.prints(&["explain", &file, "--set", "profiling=runs"]).contains("left as it is"));
    bench.complains(&["explain", &file, "--set", "fule=1"], &["--set: fule=1: no option fule; is fuel meant?"]);
    bench.complains(&["bench", "--set", "fuel=-1"], &["--set: fuel=-1: fuel has to be a number from 0 to 2^64 - 1"]);
}

#[test]
fn explain_says_what_is_done_for_another_machine() {
    let bench = Bench::new();
    let file = bench.file("foreign.clif", format!("test run\ntarget s390x\n{GOOD}"));
    let output = bench.prints(&["explain", &file, "--target", "s390x", "--function", "sum"]);
    assert!(output.starts_with("function %sum: 1 loop, changed\n"), "{output}");
    assert!(output.contains("loop at block1 (line 7)") && output.contains("machine code: not looked at"));
    let record = bench.prints(&["explain", &file, "--target", "s390x", "--json"]);
    let record: Value = serde_json::from_str(&record).expect("it is JSON");
    assert_eq!(record["functions"][0]["loops"][0]["summary"], Value::Null);
    bench.complains(&["explain", &file, "--target", "z80"], &["target z80: ", "Cranelift makes code for"]);
    bench.complains(&["explain", &file, "--target", "s390x", "--function", "g"], &["there is no function %g"]);
}

#[test]
fn run_fails_if_a_run_line_fails() {
    let bench = Bench::new();
    let file = bench.file("wrong.clif", GOOD.replace("== 10", "== 11"));
    let output = bench.run(&["run", &file]);
    assert_eq!(output.status.code(), Some(1));
    let output = text(&output.stdout);
    assert!(output.contains("line 18: %sum(mem, 5): FAILED: 10 (i64), expected 11"), "{output}");
    assert!(output.contains("1 of 3 calls failed"), "{output}");
}

#[test]
fn run_makes_a_call() {
    let bench = Bench::new();
    let file = bench.file("good.clif", GOOD);
    assert_eq!(bench.prints(&["run", &file, "--invoke", "sum(mem+1, 3)"]), "6 (i64)\n");
    assert_eq!(bench.prints(&["run", &file, "--invoke", "half(0x1.0p1)"]), "0x1.0000000000000p0 (f64)\n");
}

#[test]
fn run_prints_a_trap() {
    let bench = Bench::new();
    let file = bench.file("traps.clif", TRAPS);
    let output = bench.run(&["run", &file, "--invoke", "check(0)"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!((text(&output.stdout), text(&output.stderr)), ("trap: heap_oob in %check\n".to_owned(), String::new()));
}

#[test]
fn explain_says_what_was_done_and_what_not() {
    let bench = Bench::new();
    let file = bench.file("good.clif", GOOD);
    let output = bench.prints(&["explain", &file]);
    assert!(output.contains("function %sum: 1 loop, changed"), "{output}");
    assert!(output.contains("loop at block1 (line 5)"), "{output}");
    assert!(output.contains("rotate: done: "), "{output}");
    assert!(!output.contains("accesses to the stack frame"), "{output}");
    assert!(output.contains("machine code: instructions ") && output.contains(" per iteration, and "), "{output}");
    assert!(!output.contains('\u{1b}'), "no colours in a pipe: {output}");
    assert!(output.contains("function %half: no loops"), "{output}");
    let without = bench.prints(&["explain", &file, "--passes", "layout", "--function", "sum"]);
    assert!(!without.contains("rotate: done") && !without.contains("%half"), "{without}");
}

#[test]
fn explain_says_why_a_loop_stays() {
    let bench = Bench::new();
    let file = bench.file("endless.clif", "function %f() {\nblock0:\n    jump block1\nblock1:\n    jump block1\n}\n");
    let output = bench.prints(&["explain", &file]);
    assert!(output.contains("loop at block1 (line 4)") && !output.contains("rotate"), "{output}");
    let output = bench.prints(&["explain", &file, "--all"]);
    assert!(output.contains("rotate: not done: no edge leaves the loop (never-leaves)"), "{output}");
}

#[test]
fn explain_leaves_out_what_nobody_can_help() {
    let bench = Bench::new();
    let [short, all] = [&["explain", "sum"][..], &["explain", "sum", "--all"]].map(|args| bench.prints(args));
    let refusals = |text: &str| text.matches(": not done: ").count();
    assert!(refusals(&short) < refusals(&all), "{short}");
    assert_eq!(refusals(&short), short.matches("what would help: ").count(), "{short}");
    let hidden = format!("{} refusals about which nothing can be done", refusals(&all) - refusals(&short));
    assert!(short.contains(&hidden) && !all.contains("--all"), "{short}");

    let filtered = bench.prints(&["explain", "sum", "--filter", "rotate,licm"]);
    let passes = |line: &&str| line.contains(": done: ") || line.contains(": not done: ");
    let of_others =
        |line: &&str| !line.trim_start().starts_with("rotate: ") && !line.trim_start().starts_with("licm: ");
    assert!(filtered.lines().filter(passes).count() >= 2, "{filtered}");
    assert_eq!(filtered.lines().filter(passes).find(of_others), None);
    bench.complains(&["explain", "sum", "--filter", "rotat"], &["unknown pass `rotat`; is rotate meant?"]);
    bench.complains(&["explain", "sum", "--filter", "x"], &["unknown pass `x`; the passes are"]);
}

#[test]
fn explain_writes_a_record() {
    let bench = Bench::new();
    let file = bench.file("good.clif", GOOD);
    let record: Value = serde_json::from_str(&bench.prints(&["explain", &file, "--json"])).expect("it is JSON");
    let sum = &record["functions"][0];
    assert_eq!((sum["name"].as_str(), sum["changed"].as_bool()), (Some("sum"), Some(true)));
    let lp = &sum["loops"][0];
    assert_eq!((lp["header"].as_str(), lp["line"].as_u64(), lp["depth"].as_u64()), (Some("block1"), Some(5), Some(1)));
    assert_eq!(lp["instructions"][0].as_array().map(Vec::len), Some(1), "{lp}");
    assert!(lp["summary"].as_str().is_some_and(|text| text.contains(" → ")), "{lp}");
    let remarks = lp["remarks"].as_array().expect("it has remarks");
    let rotate = remarks.iter().find(|remark| remark["pass"] == "rotate" && remark["done"] == true);
    assert!(rotate.is_some_and(|remark| remark["reason"].is_null() && remark["line"] == 5), "{lp}");
    assert!(remarks.iter().any(|remark| remark["done"] == false && remark["reason"].is_string()), "{lp}");
    assert_eq!(record["functions"][1]["loops"].as_array().map(Vec::len), Some(0));
}

/// The output of `explain` on a terminal, made by `script`, with this environment.
fn on_a_terminal(environment: &str) -> Option<String> {
    let command = format!("{environment} {} explain sum", env!("CARGO_BIN_EXE_jit-harness"));
    let mut script = Command::new("script");
    let output =
        script.args(["-qec", &command, "/dev/null"]).env("TERM", "xterm").env_remove("NO_COLOR").output().ok()?;
    Some(text(&output.stdout))
}

#[test]
fn explain_has_colours_on_a_terminal_only() {
    // No `script`, no terminal.
    let (Some(with), Some(without)) = (on_a_terminal(""), on_a_terminal("NO_COLOR=1")) else { return };
    assert!(with.contains("\u{1b}[32mdone:\u{1b}[0m"), "{with}");
    assert!(!without.contains('\u{1b}') && without.contains("done:"), "{without}");
}

#[test]
fn explain_fits_the_terminal() {
    let Some(text) = on_a_terminal("stty cols 60; NO_COLOR=1") else { return };
    assert!(text.contains("rotate: done:"), "{text}");
    assert!(text.lines().all(|line| line.trim_end().chars().count() <= 60), "{text}");
}

/// The unrolled loop and its remainder loop are two, and have one name.
#[test]
fn explain_says_once_what_was_done_to_a_loop_and_its_copy() {
    let output = Bench::new().prints(&["explain", "sum"]);
    let said: Vec<&str> = output.lines().filter(|line| line.contains("split_latch: done: ")).collect();
    assert!(said.len() == 1 && said[0].ends_with(" (2 times)"), "{output}");
}

/// What has twice as many loops takes twice as long, also in one function: seconds, not minutes.
#[test]
fn explain_is_quick_on_many_loops() {
    let bench = Bench::new();
    let mut many = String::from(
        "function %many(i64) {\nblock0(v0: i64):\n    v1 = iconst.i64 0\n    v2 = iconst.i64 1\n    jump block1(v1)\n",
    );
    let loops = 20_000;
    for number in 1..=loops {
        let (counter, next) = (10 * number, number + 1);
        many += &format!("block{number}(v{counter}: i64):\n    v{} = iadd v{counter}, v2\n", counter + 1);
        many += &format!("    v{} = icmp slt v{}, v0\n", counter + 2, counter + 1);
        many += &format!("    brif v{}, block{number}(v{}), block{next}(v1)\n", counter + 2, counter + 1);
    }
    many += &format!("block{}(v{}: i64):\n    return\n}}\n", loops + 1, 10 * (loops + 1));
    let file = bench.file("many.clif", many);
    let start = std::time::Instant::now();
    let output = bench.prints(&["explain", &file]);
    let took = start.elapsed();
    println!("20,000 loops explained in {took:.1?}");
    assert_eq!(output.matches("\n    loop at block").count(), loops);
    assert!(output.contains("machine code: not looked at"));
    assert!(took.as_secs() < 20, "a busy machine takes a multiple of what it takes alone, but not {took:.1?}");
}

#[test]
fn show_has_clif_and_machine_code() {
    let bench = Bench::new();
    let file = bench.file("good.clif", GOOD);
    let both = bench.prints(&["show", &file]);
    for part in
        ["CLIF of %sum before loopopt", "CLIF of %sum after loopopt", "machine code of %half, which loopopt does not"]
    {
        assert!(both.contains(part), "{both}");
    }
    let clif = bench.prints(&["show", &file, "--clif", "--function", "sum"]);
    assert!(clif.contains("brif") && !clif.contains("machine code"), "{clif}");
    let asm = bench.prints(&["show", &file, "--asm", "--function", "sum"]);
    assert!(asm.contains("after : loop of ") && !asm.contains("brif"), "{asm}");
    let diff = bench.prints(&["show", &file, "--diff", "--asm"]);
    assert!(diff.contains("--- machine code of %sum before loopopt\n+++ machine code of %sum after"), "{diff}");
    assert!(diff.contains("machine code of %half: no change"), "{diff}");
}

#[test]
fn show_draws_flow_graphs() {
    let bench = Bench::new();
    let file = bench.file("good.clif", GOOD);
    for args in [&["show", &file, "--dot"][..], &["show", &file, "--dot", "--target", "aarch64"]] {
        let output = bench.prints(args);
        assert_eq!(output.matches("digraph ").count(), 2, "a graph for each function: {output}");
        for part in [
            "label=\"%sum before loopopt\"",
            "subgraph cluster_before_block1 {",
            "before_block2 -> before_block1 [penwidth=3]",
        ] {
            assert!(output.contains(part), "{part}: {output}");
        }
        assert!(output.contains("subgraph cluster_after_block") && !output.contains("machine code"), "{output}");
    }
    bench.complains(&["show", &file, "--dot", "--asm"], &["--dot", "--asm"]);
}

#[test]
fn show_and_explain_know_the_sample_programs() {
    let bench = Bench::new();
    assert!(bench.prints(&["explain", "sum"]).contains("function %sum: 2 loops, changed"));
    assert!(bench.prints(&["show", "counted", "--asm"]).contains("loop of "));
    assert!(bench.prints(&["show", "dot", "--clif"]).contains("icmp uge"));
    assert!(!bench.prints(&["show", "dot/unchecked", "--clif"]).contains("icmp uge"));
    bench.complains(&["show", "counted/unchecked"], &["counted/unchecked"]);
}

#[test]
fn bisect_and_reduce_find_nothing_in_good_programs() {
    let bench = Bench::new();
    let file = bench.file("good.clif", GOOD);
    assert!(bench.prints(&["bisect", &file]).contains("all arms agree on 4 calls"));
    assert_eq!(
        bench.prints(&["bisect", &file, "--fuel", "1", "--function", "half"]),
        "1 rewrite, all arms agree on 1 call\n"
    );
    assert_eq!(bench.prints(&["reduce", &file, "-o", "out.clif"]), "nothing to reduce: all arms agree on 4 calls\n");
    assert!(!bench.path("out.clif").exists());
}

#[test]
fn files_that_are_no_programs() {
    let bench = Bench::new();
    let not_clif = bench.file("not.clif", "hello, world\n");
    let invalid = bench.file("invalid.clif", "\nfunction %f(i32) -> i64 {\nblock0(v0: i32):\n    return v0\n}\n");
    let empty = bench.file("empty.clif", "");
    let binary = bench.file("binary.clif", [0xFF, 0xFE, 0]);
    for command in ["run", "explain", "show", "bench", "bisect", "reduce"] {
        bench.complains(&[command, "missing.clif"], &["missing.clif: "]);
        bench.complains(&[command, &not_clif], &["not.clif:1: "]);
        bench.complains(&[command, &invalid], &["invalid.clif:4: ", "not valid CLIF"]);
        bench.complains(&[command, &empty], &["empty.clif: ", "no function"]);
        bench.complains(&[command, &binary], &["binary.clif: "]);
        bench.complains(&[command, "."], &[".: "]);
    }
}

#[test]
fn what_the_verifier_finds_has_its_line() {
    let bench = Bench::new();
    let file = bench.file("types.clif", GOOD.replace("v8 = iadd v4, v7", "v8 = iadd v4, v5"));
    bench.complains(&["run", &file], &["types.clif:11: %sum is not valid CLIF", "v8 = iadd"]);
    let file = bench.file("args.clif", GOOD.replace("jump block1(v10, v8)", "jump block1(v10)"));
    bench.complains(&["explain", &file], &["args.clif:14: %sum is not valid CLIF"]);
}

#[test]
fn a_byte_order_mark_is_no_error() {
    let bench = Bench::new();
    let file = bench.file("mark.clif", format!("\u{feff}{GOOD}"));
    assert!(bench.prints(&["run", &file]).starts_with("line 18: %sum(mem, 5): ok"));
    let file = bench.file("wrong.clif", format!("\u{feff}{}", GOOD.replace("uload8", "uload9")));
    bench.complains(&["run", &file], &["wrong.clif:10: "]);
}

#[test]
fn a_dash_is_the_standard_input() {
    use std::io::Write as _;
    let run = |args: &[&str], input: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jit-harness"));
        let pipes = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().expect("the binary is there");
        child.stdin.take().expect("it is a pipe").write_all(input.as_bytes()).expect("it is read");
        let output = child.wait_with_output().expect("it ends");
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, output, _) = run(&["run", "-"], GOOD);
    assert!(code == Some(0) && output.starts_with("line 18: %sum(mem, 5): ok"), "{output}");
    let (code, output, _) = run(&["show", "-", "--target", "aarch64", "--function", "half"], GOOD);
    assert!(code == Some(0) && output.contains("fmul"), "{output}");
    let (code, _, error) = run(&["explain", "-"], "function");
    assert!(code == Some(2) && error.starts_with("error: standard input:1: "), "{error}");
}

#[test]
fn opcodes_of_older_versions_are_named_as_today() {
    let bench = Bench::new();
    let file = bench.file("imm.clif", GOOD.replace("v10 = iadd v3, v9", "v10 = iadd_imm v3, 1"));
    bench.complains(&["run", &file], &["imm.clif:13: Unknown opcode: 'iadd_imm'", "write `iconst` and `iadd`"]);
    let file = bench.file("brz.clif", GOOD.replace("    return v4", "    brz v4, block2(v3)\n    return v4"));
    bench.complains(&["show", &file, "--target", "riscv64"], &["brz.clif:16: ", "write `brif`"]);
}

#[test]
fn code_of_other_machines_is_shown_and_not_run() {
    let bench = Bench::new();
    let file = bench.file("arm.clif", format!("test compile\nset opt_level=speed\ntarget aarch64\n\n{GOOD}"));
    for command in ["run", "explain", "show"] {
        let words = ["arm.clif:3: target aarch64 is not this machine's", "`show --target NAME` shows code"];
        bench.complains(&[command, &file], &words);
    }
    for (target, words) in [
        ("aarch64", ["ldrb", "b.lt"]),
        ("riscv64", ["lbu", "blt"]),
        ("s390x", ["llgc", "jg"]),
        ("aarch64-apple-darwin", ["ldrb", "b.lt"]),
        ("x86_64", ["movzbq", "cmpq"]),
    ] {
        let output = bench.prints(&["show", &file, "--target", target]);
        for title in ["CLIF of %sum", "machine code of %sum", "machine code of %half"] {
            assert!(output.contains(title), "{target}: {output}");
        }
        assert!(words.iter().all(|word| output.contains(word)), "{target}: {output}");
    }
    let diff = bench.prints(&["show", "sum", "--target", "aarch64", "--clif", "--diff"]);
    assert!(diff.lines().any(|line| line.starts_with('+') && line.contains("brif")), "loopopt changes it: {diff}");
    bench.complains(&["show", &file, "--target", "vax"], &["target vax: ", "aarch64"]);
    bench.complains(&["show", &file, "--target", "aarch64", "--function", "g"], &["there is no function %g"]);
    let wrong = bench.file("types.clif", GOOD.replace("v8 = iadd v4, v7", "v8 = iadd v4, v5"));
    bench.complains(&["show", &wrong, "--target", "aarch64"], &["%sum", "not valid CLIF"]);
}

#[test]
fn sample_programs_run() {
    for sample in ["sum", "sum-checked", "sum-checked/unchecked"] {
        let output = Bench::new().prints(&["run", sample]);
        assert!(output.contains("(i64)") || output.contains("(i32)"), "{sample}: {output}");
    }
}

#[test]
fn names_that_nobody_knows() {
    let bench = Bench::new();
    let file = bench.file("good.clif", GOOD);
    for command in ["run", "explain", "show", "bisect", "reduce"] {
        bench.complains(&[command, &file, "--function", "nobody"], &["good.clif", "%nobody", "%sum, %half"]);
        bench.complains(&[command, &file, "--passes", "rotate,foo"], &["`foo`", "rotate", "order_latch"]);
    }
    bench.complains(&["bench", "--passes", "foo"], &["`foo`", "canon, record_profile"]);
    bench.complains(&["bench", "--compile-time", "--passes", "foo"], &["`foo`"]);
    bench.complains(&["bench", "--filter", "no such program"], &["no such program"]);
    for command in ["run", "bisect", "reduce"] {
        bench.complains(&[command, &file, "--invoke", "nobody()"], &["%nobody"]);
    }
}

#[test]
fn calls_that_do_not_fit() {
    let bench = Bench::new();
    let file = bench.file("good.clif", GOOD);
    bench.complains(&["run", &file, "--invoke", "sum(mem)"], &["good.clif", "2 arguments"]);
    bench.complains(&["run", &file, "--invoke", "half()"], &["good.clif", "1 argument, not 0"]);
    bench.complains(&["run", &file, "--invoke", "sum(mem, x)"], &["good.clif", "`x`"]);
    bench.complains(&["run", &file, "--invoke", "half(mem)"], &["good.clif", "f64"]);
    bench.complains(&["run", &file, "--invoke", "sum"], &["good.clif", "call"]);
    let wrong = bench.file("wrong.clif", GOOD.replace("%sum(mem, 0)", "%sum(mem)"));
    bench.complains(&["run", &wrong], &["wrong.clif:19: "]);
    let wrong = bench.file("bench.clif", GOOD.replace("bench: %sum", "bench: %nobody"));
    bench.complains(&["bench", &wrong], &["bench.clif:20: "]);
}

#[test]
fn functions_that_cannot_be_called() {
    let bench = Bench::new();
    let text = "function %f(f16) -> f16 {\nblock0(v0: f16):\n    return v0\n}\n; run: %f(0x1.0p0) == 0x1.0p0\n";
    let file = bench.file("f16.clif", text);
    bench.complains(&["run", &file], &["f16.clif", "not supported"]);
    // Valid for the verifier, but Cranelift panics.
    let text = "function %f(i64 sret) -> i64 {\nblock0(v0: i64):\n    return v0\n}\n; run: %f(1) == 1\n";
    let file = bench.file("sret.clif", text);
    for command in ["run", "show", "bench"] {
        bench.complains(&[command, &file], &["sret.clif"]);
    }
}

#[test]
fn programs_with_nothing_to_do() {
    let bench = Bench::new();
    let file = bench.file("silent.clif", "function %f() {\nblock0:\n    return\n}\n");
    bench.complains(&["run", &file], &["silent.clif", "--invoke"]);
    bench.complains(&["bench", &file], &["silent.clif", "; bench:"]);
}

#[test]
fn wrong_command_lines() {
    let bench = Bench::new();
    bench.complains(&[], &["no command"]);
    bench.complains(&["frobnicate"], &["frobnicate"]);
    bench.complains(&["explian", "sum"], &["explian", "is `explain` meant?"]);
    bench.complains(&["bench", "--fliter", "sum"], &["--fliter", "is `--filter` meant?"]);
    bench.complains(&["bench", "--effort", "fll"], &["fll", "is `full` meant?"]);
    bench.complains(&["bench", "--filter", "sum", "--save", ""], &["--save"]);
    bench.complains(&["run"], &["<FILE>"]);
    bench.complains(&["run", "x.clif", "--wrong"], &["--wrong"]);
    bench.complains(&["show", "x.clif", "--fuel", "x"], &["--fuel"]);
    bench.complains(&["bench", "--filter", "sum", "--json", "missing/out.json"], &["missing/out.json"]);
    bench.complains(&["reduce", "x.clif", "--seconds", "x"], &["--seconds"]);
    let help = bench.prints(&["--help"]);
    for command in ["bench", "run", "explain", "show", "bisect", "reduce", "list"] {
        assert!(help.contains(&format!("\n  {command} ")), "{help}");
    }
}

/// A file as Cranelift's own run tests are.
const FOREIGN: &str = "test interpret
test run
set enable_multi_ret_implicit_sret
target aarch64
set opt_level=speed
target x86_64
set preserve_frame_pointers=true
target x86_64 has_sse3 has_ssse3 has_sse41
set opt_level=speed_and_size
target s390x has_mie3

function %f(i64) -> i64 {
block0(v0: i64):
    v1 = iadd v0, v0
    return v1
}
; run: %f(1) == 2
";

#[test]
fn run_takes_each_target_of_this_machine() {
    let bench = Bench::new();
    let file = bench.file("foreign.clif", FOREIGN);
    let settings = "set enable_multi_ret_implicit_sret, set opt_level=speed";
    let expected = format!(
        "line 4: target aarch64: not run, this machine is x86_64\n\
         line 10: target s390x has_mie3: not run, this machine is x86_64\n\
         {settings}, target x86_64:\nline 17: %f(1): ok\n\
         {settings}, set preserve_frame_pointers=true, target x86_64 has_sse3 has_ssse3 has_sse41:\nline 17: %f(1): ok\n"
    );
    assert_eq!(bench.prints(&["run", &file]), expected);
    assert!(bench.prints(&["show", &file, "--asm"]).contains("%f"));
    let none = FOREIGN.replace("target x86_64", "target riscv64").replace(" has_sse3 has_ssse3 has_sse41", "");
    let none = bench.file("none.clif", none);
    bench.complains(
        &["run", &none],
        &["none.clif:4: target aarch64", "this machine is x86_64", "target s390x has_mie3"],
    );
}

#[test]
fn the_flags_of_a_file_are_in_the_code() {
    let bench = Bench::new();
    let function = "function %f(i64) -> i64 {\nblock0(v0: i64):\n    v1 = popcnt v0\n    return v1\n}\n";
    let code = |header: &str| {
        let file = bench.file("flags.clif", format!("{header}\n{function}"));
        bench.prints(&["show", &file, "--asm"])
    };
    assert!(code("target x86_64 has_popcnt has_sse42").contains("popcnt"));
    assert!(!code("target x86_64").contains("popcnt"), "the target has nothing that is not named");
}

#[test]
fn functions_of_one_name_can_be_told_apart() {
    let bench = Bench::new();
    let second = "\nfunction %f(i32) -> i32 {\nblock0(v0: i32):\n    return v0\n}\n; run: %f(5) == 5\n";
    let first =
        "function %f(i64) -> i64 {\nblock0(v0: i64):\n    v1 = iadd v0, v0\n    return v1\n}\n; run: %f(1) == 2\n";
    let file = bench.file("twice.clif", format!("{first}{second}"));
    assert_eq!(bench.prints(&["run", &file]), "line 6: %f(1): ok\nline 12: %f_2(5): ok\n");
    assert_eq!(bench.prints(&["run", &file, "--function", "f_2"]), "line 12: %f_2(5): ok\n");
    assert_eq!(bench.prints(&["run", &file, "--invoke", "f_2(7)"]), "7 (i32)\n");
    bench.complains(&["run", &file, "--function", "g"], &["%f, %f_2"]);
}

#[test]
fn a_panic_of_cranelift_is_named_as_such() {
    let bench = Bench::new();
    let text =
        "function %v(i64, i64 sret) -> i64 {\nblock0(v0: i64, v1: i64):\n    return v0\n}\n; run: %v(3, 4) == 3\n";
    let file = bench.file("panics.clif", text);
    let words = ["panics.clif: Cranelift panics when it lowers %v: No return values are allowed", "cranelift-codegen"];
    for command in ["run", "bisect", "reduce", "show"] {
        bench.complains(&[command, &file], &words);
    }
}

#[test]
fn where_the_interpreter_is_wrong_nothing_differs() {
    let bench = Bench::new();
    let text = "function %rem(i32, i32) -> i32 {
block0(v0: i32, v1: i32):
    v2 = srem v0, v1
    return v2
}
; run: %rem(0x80000000, -1) == 0
; run: %rem(7, 4) == 3
function %wide(i64, i64) -> i128 {
    ss0 = explicit_slot 16
block0(v0: i64, v1: i64):
    v2 = iconcat v0, v1
    v3 = stack_addr.i64 ss0
    store v2, v3
    v4 = load.i128 v3
    return v4
}
; run: %wide(1, 0) == 1
";
    let file = bench.file("wide.clif", text);
    assert_eq!(bench.prints(&["run", &file]).matches(": ok\n").count(), 3);
}

#[test]
fn what_is_wrong_with_a_line_is_said_there() {
    let bench = Bench::new();
    let with = |line: &str| bench.file("wrong.clif", format!("{GOOD}\n{line}\n"));
    for (line, says) in [
        ("; run: %nothing(1) == 1", "there is no function %nothing; the functions are %"),
        ("; run: %half(0x1.0) == 0x1.0p-1 ; run: %half(0x1.0) == 0x1.0", "a line can hold one call"),
        ("; run: %sum(mem, 99999999999999999999) == 1", "too large"),
    ] {
        let output = bench.run(&["run", &with(line)]);
        let error = text(&output.stderr).to_lowercase();
        assert!(output.status.code() == Some(2) && error.contains("wrong.clif:") && error.contains(says), "{error}");
    }
    for line in ["; run %half(0x1.0) == 0x1.0", "; Run: %half(0x1.0) == 0x1.0"] {
        let output = bench.run(&["run", &with(line)]);
        let warning = text(&output.stderr);
        assert!(output.status.success() && warning.contains("is `; run: …` meant?"), "{warning}");
    }
    bench.complains(&["explain", "gcd/unchecked"], &["gcd has no checks to leave out"]);
    bench.complains(&["run", "--json", "gcd"], &["`jit-harness run --help`"]);
}

#[test]
fn explain_compiles_with_the_settings_of_the_file() {
    let bench = Bench::new();
    let tail =
        "function %g(i64) -> i64 tail {\n    fn1 = %h(i64) -> i64 tail\nblock0(v0: i64):\n    return_call fn1(v0)\n}\n";
    let callee = "function %h(i64) -> i64 tail {\nblock0(v0: i64):\n    return v0\n}\n";
    let file = bench.file("tail.clif", format!("set preserve_frame_pointers=true\n{callee}{tail}; run: %h(3) == 3\n"));
    assert!(bench.prints(&["explain", &file]).contains("function %g: no loops"));
    assert!(bench.prints(&["run", &file]).contains("%h(3): ok"));
}

#[test]
fn compile_time_of_a_file() {
    let bench = Bench::new();
    let file = bench.file("good.clif", GOOD);
    let output = bench.measures(&["bench", "--compile-time", "--quick", &file]);
    assert!(output.contains("good.clif") && output.contains("loop passes") && !output.contains("samples"), "{output}");
}
