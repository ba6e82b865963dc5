//! The oracle, held against programs whose behavior is known, and against optimizers that are broken on purpose.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use cranelift_codegen::Context;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::{Function, Inst, InstBuilder, InstructionData, Opcode, SourceLoc, TrapCode, types};
use loopopt::oracle::{
    Agreement, Arg, Arm, Call, Case, Compiled, Difference, Expectation, Interpreted, Mismatch, Observation, Outcome,
    Pipeline, Placement, Program, Settings, check, check_reports, check_with, interpret,
};
use loopopt::{Options, Report};
use std::time::Duration;

const ALL: [Pipeline<'static>; 2] = [Pipeline::None, Pipeline::Speed];

fn program(text: &str) -> Program {
    Program::parse(text).expect("the program is valid")
}

/// Makes a call in the arms without loopopt, which must agree.
fn observe(text: &str, call: &str, memory: &[u8]) -> Observation {
    let program = program(text);
    let call = program.parse_call(call).expect("the call is valid");
    let [a, b] = ALL.map(|pipeline| {
        let mut compiled = Compiled::new(&program, pipeline, Settings::default()).expect("it compiles");
        compiled.observe(&call, memory).expect("it can be called")
    });
    assert_eq!(a, b);
    a
}

fn f64_value(number: f64) -> DataValue {
    DataValue::F64(Ieee64::with_float(number))
}

fn trap(text: &str, call: &str) -> (TrapCode, String, SourceLoc) {
    match observe(text, call, &[]).outcome {
        Outcome::Trapped { code, function, srcloc } => (code, function, srcloc),
        other => panic!("{other}"),
    }
}

mod values {
    use super::*;

    #[test]
    fn of_every_type_go_in_and_out() {
        for (ty, literal) in [
            ("i8", "-3"),
            ("i16", "-300"),
            ("i32", "-70000"),
            ("i64", "0x7fff_ffff_ffff_fff0"),
            ("i128", "0x123456789abcdef0123456789abcdef0"),
            ("f32", "0x1.8p1"),
            ("f64", "-0x1.8p100"),
            ("i8x16", "0x0102030405060708090a0b0c0d0e0f10"),
            ("f32x4", "0x00000000000000010000000200000003"),
            ("i64x2", "0x0102030405060708090a0b0c0d0e0f10"),
        ] {
            let text = format!("function %id({ty}) -> {ty} {{ block0(v0: {ty}): return v0 }}");
            let program = program(&text);
            let call = program.parse_call(&format!("id({literal})")).expect("the literal fits the type");
            let Arg::Value(value) = &call.args[0] else { panic!("not a value") };
            let mut compiled = Compiled::new(&program, Pipeline::Speed, Settings::default()).expect("it compiles");
            let outcome = compiled.observe(&call, &[]).expect("it can be called").outcome;
            assert_eq!(outcome, Outcome::Returned(vec![value.clone()]), "{ty}");
        }
    }

    #[test]
    fn of_many_types_at_once() {
        let text = "function %rotate(i8, f64, i128, i32, f32, i16, i64, i64, i64, i64, i8x16)
                -> i128, i8x16, i8, f64, i32, f32, i16, i64, i64 {
            block0(v0: i8, v1: f64, v2: i128, v3: i32, v4: f32, v5: i16, v6: i64, v7: i64, v8: i64, v9: i64, v10: i8x16):
                v11 = iadd v6, v7
                v12 = iadd v8, v9
                return v2, v10, v0, v1, v3, v4, v5, v11, v12
            }";
        let call = "rotate(1, 0x1.0p0, -3, 4, 0x1.0p2, 6, 7, 8, 9, 10, 0x00000000000000000000000000000000)";
        let expected = Expectation::Equal(vec![
            DataValue::I128(-3),
            DataValue::V128([0; 16]),
            DataValue::I8(1),
            f64_value(1.0),
            DataValue::I32(4),
            DataValue::F32(Ieee32::with_float(4.0)),
            DataValue::I16(6),
            DataValue::I64(15),
            DataValue::I64(19),
        ]);
        let Outcome::Returned(results) = observe(text, call, &[]).outcome else { panic!("it did not return") };
        assert!(expected.holds(&results), "{results:?}");
    }

    #[test]
    fn that_do_not_fit_are_refused() {
        let program = program("function %f(i32, i64) { block0(v0: i32, v1: i64): return }");
        for (call, message) in [
            ("f(1)", "%f takes 2 arguments, not 1"),
            ("f(mem, 1)", "argument 0 of %f is of type i32"),
            ("f(1, 2.5)", "`2.5`"),
            ("f(1, 2 3)", "`2 3`"),
            ("f(1, mem-1)", "`mem-1` is not `mem` or `mem+N`"),
            ("g()", "there is no function %g"),
            ("f", "`f` is not a call"),
        ] {
            let error = program.parse_call(call).expect_err(call);
            assert!(format!("{error:#}").contains(message), "{error:#}");
        }
        assert_eq!(program.parse_call("%f(-1, mem + 0x10)").expect("it fits").args[1], Arg::Memory(16));
    }

    #[test]
    fn memory_is_changed_in_a_copy() {
        let text = "function %f(i64) -> i64 {
            block0(v0: i64):
                v1 = load.i64 v0+8
                store v1, v0
                return v1
            }";
        let memory: Vec<u8> = (0..100).collect();
        let observation = observe(text, "f(mem+16)", &memory);
        let value = i64::from_le_bytes([24, 25, 26, 27, 28, 29, 30, 31]);
        assert_eq!(observation.outcome, Outcome::Returned(vec![DataValue::I64(value)]));
        let mut expected = memory;
        expected.copy_within(24..32, 16);
        assert_eq!(observation.memory, expected);
    }
}

mod traps {
    use super::*;

    #[test]
    fn have_code_and_place() {
        let divide = |op: &str, ty: &str| {
            format!("function %f({ty}, {ty}) -> {ty} {{ block0(v0: {ty}, v1: {ty}): @7 v2 = {op} v0, v1 return v2 }}")
        };
        let place = |code| (code, "f".to_owned(), SourceLoc::new(7));
        let user = |code| place(TrapCode::unwrap_user(code));
        assert_eq!(trap("function %f() { block0: @7 trap user3 }", "f()"), user(3));
        assert_eq!(trap("function %f(i8) { block0(v0: i8): @7 trapz v0, user4 @8 return }", "f(0)"), user(4));
        assert_eq!(trap("function %f(i64) { block0(v0: i64): @7 trapnz v0, user5 @8 return }", "f(9)"), user(5));
        for op in ["udiv", "sdiv", "urem", "srem"] {
            for ty in ["i8", "i16", "i32", "i64"] {
                assert_eq!(trap(&divide(op, ty), "f(5, 0)"), place(TrapCode::INTEGER_DIVISION_BY_ZERO), "{op} {ty}");
            }
        }
        assert_eq!(trap(&divide("sdiv", "i32"), "f(-2147483648, -1)"), place(TrapCode::INTEGER_OVERFLOW));
        assert_eq!(trap(&divide("sdiv", "i8"), "f(-128, -1)"), place(TrapCode::INTEGER_OVERFLOW));
    }

    #[test]
    fn of_conversions_have_a_code() {
        let text = "function %f(f64) -> i32 { block0(v0: f64): v1 = fcvt_to_sint.i32 v0 return v1 }";
        assert_eq!(trap(text, "f(+NaN)").0, TrapCode::BAD_CONVERSION_TO_INTEGER);
        assert_eq!(trap(text, "f(0x1.0p40)").0, TrapCode::INTEGER_OVERFLOW);
    }

    #[test]
    fn beyond_the_image_are_heap_traps() {
        let text = "function %f(i64) -> i32 { block0(v0: i64): v1 = load.i32 v0 return v1 }";
        for (call, len) in [("f(mem+64)", 64), ("f(mem+4096)", 4096), ("f(mem+61)", 64), ("f(mem)", 0)] {
            match observe(text, call, &vec![0; len]).outcome {
                Outcome::Trapped { code, .. } => assert_eq!(code, TrapCode::HEAP_OUT_OF_BOUNDS),
                other => panic!("{call}: {other}"),
            }
        }
        assert_eq!(observe(text, "f(mem+60)", &[0; 64]).outcome, Outcome::Returned(vec![DataValue::I32(0)]));
        let before = "function %f(i64) -> i32 { block0(v0: i64): v1 = load.i32 user7 v0-8 return v1 }";
        match observe(before, "f(mem)", &[0; 4096]).outcome {
            Outcome::Trapped { code, .. } => assert_eq!(code, TrapCode::unwrap_user(7)),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn leave_memory_as_it_was_at_the_trap() {
        // Stores 1, 2, ... until it runs into the end of the image, which is 16 bytes long here, rounded up to 64.
        let text = "function %f(i64) {
            block0(v0: i64):
                v1 = iconst.i64 0
                jump block1(v1)
            block1(v2: i64):
                v3 = iconst.i64 1
                v4 = iadd v2, v3
                v5 = iadd v0, v2
                istore8 v4, v5
                jump block1(v4)
            }";
        let observation = observe(text, "f(mem)", &[0; 16]);
        assert!(matches!(observation.outcome, Outcome::Trapped { code: TrapCode::HEAP_OUT_OF_BOUNDS, .. }));
        assert_eq!(observation.memory, (1..=16).collect::<Vec<u8>>());
    }

    #[test]
    fn that_the_flags_deny_are_errors() {
        let program = program("function %f(i64) -> i32 { block0(v0: i64): v1 = load.i32 notrap v0 return v1 }");
        let mut compiled = Compiled::new(&program, Pipeline::None, Settings::default()).expect("it compiles");
        let call = program.parse_call("f(8)").expect("the call is valid");
        let error = compiled.observe(&call, &[]).expect_err("the load faults");
        assert!(error.to_string().contains("no trap is possible by its CLIF"), "{error}");
    }

    #[test]
    fn of_recursion_are_stack_overflows() {
        let text = "function %f(i64) -> i64 {
                fn0 = %f(i64) -> i64
            block0(v0: i64):
                v1 = call fn0(v0)
                v2 = iadd v0, v1
                return v2
            }";
        assert_eq!(trap(text, "f(1)").0, TrapCode::STACK_OVERFLOW);
        let large = "function %f(i64) -> i64 {
                ss0 = explicit_slot 2000000
                fn0 = %f(i64) -> i64
            block0(v0: i64):
                v1 = call fn0(v0)
                v2 = stack_addr.i64 ss0
                v3 = load.i64 v2
                v4 = iadd v1, v3
                return v4
            }";
        assert_eq!(trap(large, "f(1)").0, TrapCode::STACK_OVERFLOW);
        let through_the_host = "function %f(i64) -> i64 {
                fn0 = %f(i64) -> i64
                fn1 = %host(i64) -> i64
            block0(v0: i64):
                v3 = call fn1(v0)
                v1 = call fn0(v3)
                v2 = iadd v0, v1
                return v2
            }";
        let program = program(through_the_host);
        let mut compiled = Compiled::new(&program, Pipeline::None, Settings::default()).expect("it compiles");
        // Timed, not observed, because the log would be full first.
        let mut prepared = compiled.prepare(&program.parse_call("f(1)").expect("valid"), &[]).expect("callable");
        let (_, outcome) = compiled.time(&mut prepared).expect("callable");
        assert!(matches!(outcome, Outcome::Trapped { code: TrapCode::STACK_OVERFLOW, .. }), "{outcome}");
    }

    #[test]
    fn for_debuggers_are_passed_over() {
        let text = "function %f(i32) -> i32 { block0(v0: i32): debugtrap return v0 }";
        assert_eq!(observe(text, "f(3)", &[]).outcome, Outcome::Returned(vec![DataValue::I32(3)]));
    }

    #[test]
    fn of_library_functions_are_errors() {
        let program = program(
            "function %f(i64) -> i64 {
                fn0 = %Memset(i64, i32, i64) -> i64 system_v
             block0(v0: i64):
                v1 = iconst.i32 1
                v2 = iconst.i64 100000
                v3 = call fn0(v0, v1, v2)
                return v3
             }",
        );
        let mut compiled = Compiled::new(&program, Pipeline::Speed, Settings::default()).expect("it compiles");
        let error = compiled.observe(&program.parse_call("f(mem)").expect("valid"), &[0; 64]).expect_err("it faults");
        assert!(error.to_string().starts_with("a library function that the program calls faults"), "{error}");
    }

    #[test]
    fn can_happen_in_a_program_that_came_from_another_thread() {
        let program = program("function %f(i64) -> i64 { block0(v0: i64): v1 = load.i64 v0 return v1 }");
        let call = program.parse_call("f(mem+64)").expect("valid");
        let mut compiled = Compiled::new(&program, Pipeline::Speed, Settings::default()).expect("it compiles");
        let first = compiled.observe(&call, &[1; 8]).expect("callable");
        let second = std::thread::spawn(move || compiled.observe(&call, &[1; 8]).expect("callable"));
        assert!(matches!(&first.outcome, Outcome::Trapped { code: TrapCode::HEAP_OUT_OF_BOUNDS, .. }));
        assert_eq!(first, second.join().expect("the thread ends"));
    }

    #[test]
    fn can_follow_each_other() {
        let program = program(
            "function %f(i64) -> i64 {
                fn0 = %g(i64) -> i64
             block0(v0: i64):
                v1 = call fn0(v0)
                return v1
             }
             function %g(i64) -> i64 { block0(v0: i64): @5 trapz v0, user9 return v0 }",
        );
        let mut compiled = Compiled::new(&program, Pipeline::Speed, Settings::default()).expect("it compiles");
        let (zero, one) = (program.parse_call("f(0)").expect("valid"), program.parse_call("f(1)").expect("valid"));
        let trapped =
            Outcome::Trapped { code: TrapCode::unwrap_user(9), function: "g".to_owned(), srcloc: SourceLoc::new(5) };
        for _ in 0..1000 {
            assert_eq!(compiled.observe(&zero, &[]).expect("callable").outcome, trapped);
            assert_eq!(
                compiled.observe(&one, &[]).expect("callable").outcome,
                Outcome::Returned(vec![DataValue::I64(1)])
            );
        }
    }
}

mod time {
    use super::*;

    const ENDLESS: &str = "function %f() { block0: jump block1 block1: jump block1 }";

    #[test]
    fn stops_an_endless_loop() {
        let settings = Settings { limit: Duration::from_millis(20), ..Settings::default() };
        let program = program(ENDLESS);
        let call = program.parse_call("f()").expect("valid");
        for pipeline in ALL {
            let mut compiled = Compiled::new(&program, pipeline, settings).expect("it compiles");
            for _ in 0..3 {
                assert_eq!(compiled.observe(&call, &[]).expect("callable").outcome, Outcome::TimedOut);
            }
        }
    }

    #[test]
    fn stops_a_loop_of_host_calls() {
        let settings = Settings { limit: Duration::from_millis(20), ..Settings::default() };
        let program = program(
            "function %f() { fn0 = %host(i64) block0: v0 = iconst.i64 1 jump block1 block1: call fn0(v0) jump block1 }",
        );
        let call = program.parse_call("f()").expect("valid");
        let mut compiled = Compiled::new(&program, Pipeline::Speed, settings).expect("it compiles");
        assert_eq!(compiled.observe(&call, &[1; 1000]).expect("callable").outcome, Outcome::TimedOut);
        let mut prepared = compiled.prepare(&call, &[]).expect("callable");
        assert_eq!(compiled.time(&mut prepared).expect("callable").1, Outcome::TimedOut);
    }

    #[test]
    fn of_a_prepared_call_is_taken_many_times() {
        let program = program(
            "function %count(i64) -> i64 {
             block0(v0: i64):
                v1 = load.i64 v0
                v2 = iconst.i64 1
                v3 = iadd v1, v2
                store v3, v0
                return v3
             }",
        );
        let memory = 41i64.to_le_bytes();
        let call = program.parse_call("count(mem)").expect("valid");
        for placement in Placement::ALL {
            let settings = Settings { placement, ..Settings::default() };
            let mut compiled = Compiled::new(&program, Pipeline::Speed, settings).expect("it compiles");
            assert_eq!(compiled.address("count").map(|address| address % 64), Some(placement.offset()));
            let mut prepared = compiled.prepare(&call, &memory).expect("callable");
            for _ in 0..1000 {
                let (time, outcome) = compiled.time(&mut prepared).expect("callable");
                assert_eq!(outcome, Outcome::Returned(vec![DataValue::I64(42)]));
                assert!(time < Duration::from_secs(1));
            }
        }
    }

    #[test]
    fn out_is_not_compared() {
        let settings = Settings { limit: Duration::from_millis(20), ..Settings::default() };
        let agreement = agreement(ENDLESS, &[("f()", &[])], settings, &mut |_| false).expect("there is no difference");
        assert_eq!((agreement.compared, agreement.timed_out), (0, 1));
    }

    #[test]
    fn out_in_loopopt_alone_is_a_difference() {
        let settings = Settings { limit: Duration::from_millis(50), ..Settings::default() };
        let text = "function %f(i64) -> i64 {
            block0(v0: i64):
                jump block1(v0)
            block1(v1: i64):
                v2 = iconst.i64 -1
                v3 = iadd v1, v2
                brif v3, block1(v3), block2
            block2:
                return v3
            }";
        // Counts down by 0 instead of 1.
        let found = agreement(text, &[("f(1000)", &[])], settings, &mut |func| {
            let step = all(func, Opcode::Iconst)[1];
            let InstructionData::UnaryImm { imm, .. } = &mut func.dfg.insts[step] else { panic!("not a constant") };
            *imm = 0.into();
            true
        });
        assert!(matches!(mismatch(found), Mismatch::Outcome(outcomes) if outcomes[1] == Outcome::TimedOut));
    }
}

mod host_functions {
    use super::*;

    const TEXT: &str = "function %f(i64, i32, f64) -> i64, f64, i8x16 {
            ss0 = explicit_slot 8
            fn0 = %print(i64, i32)
            fn1 = %mix(i32, f64, i64, f64) -> i64, i8, f64, i8x16
            fn2 = %mix(i32) -> i32
        block0(v0: i64, v1: i32, v2: f64):
            call fn0(v0, v1)
            store v1, v0
            v3 = stack_addr.i64 ss0
            v4, v5, v6, v7 = call fn1(v1, v2, v3, v2)
            v8 = call fn2(v1)
            v9 = sextend.i64 v5
            v10 = iadd v4, v9
            return v10, v6, v7
        }";

    #[test]
    fn add_their_arguments_and_are_logged() {
        let observation = observe(TEXT, "f(mem+8, 300, 0x1.8p0)", &[0; 64]);
        // An address on the stack counts as 64, twice.
        let sum = DataValue::I64(300 + 64 + 44 + 64);
        let expected = vec![sum, f64_value(3.0), DataValue::V128([0; 16])];
        assert_eq!(observation.outcome, Outcome::Returned(expected));
        let names: Vec<&str> = observation.calls.iter().map(|call| &call.name[..]).collect();
        assert_eq!(names, ["print", "mix", "mix"]);
        let number = f64_value(1.5);
        let args = vec![DataValue::I32(300), number.clone(), DataValue::I64(64), number];
        assert_eq!(observation.calls[1].args, args);
        assert_ne!(observation.calls[0].memory, observation.calls[1].memory);
        assert_eq!(observation.calls[1].memory, observation.calls[2].memory);
        assert_eq!(observation.memory[8..12], 300i32.to_le_bytes());
    }

    #[test]
    fn read_and_write_what_they_are_passed() {
        let text = "function %f(i64) -> i64 {
            ss0 = explicit_slot 8
            fn0 = %read_number(i64, i64) -> i64
            fn1 = %write_number(i64, i64) -> i64
        block0(v0: i64):
            v1 = iconst.i64 40
            v2 = stack_addr.i64 ss0
            store v1, v2
            v3 = call fn1(v2, v1)
            v4 = call fn0(v2, v1)
            v5 = call fn1(v0, v4)
            v6 = load.i64 v2
            return v6
        }";
        let observation = observe(text, "f(mem)", &[0; 8]);
        // One more than the second argument, each time.
        assert_eq!(observation.outcome, Outcome::Returned(vec![DataValue::I64(81)]));
        assert_eq!(observation.calls[1].args, [DataValue::I64(81), DataValue::I64(40)]);
        assert_eq!(observation.memory, 122_i64.to_le_bytes());
        assert_eq!(observe(text, "f(mem+8)", &[0; 8]).memory, [0; 8], "beyond the image nothing is written");
    }

    #[test]
    fn return_normally_to_try_call() {
        let text = "function %f(i64) -> i64 system_v {
                sig0 = (i64) -> i64 tail
                fn0 = %host sig0
            block0(v0: i64):
                try_call fn0(v0), sig0, block1(ret0), [ default: block2(exn0, exn1) ]
            block1(v1: i64):
                return v1
            block2(v2: i64, v3: i64):
                trap user1
            }";
        assert_eq!(observe(text, "f(5)", &[]).outcome, Outcome::Returned(vec![DataValue::I64(5)]));
    }

    #[test]
    fn can_have_user_names_and_library_calls_work() {
        let text = "function %f(i64, f64) -> i64, f64 {
                fn0 = u7:3(i64) -> i64
                fn1 = %Memcpy(i64, i64, i64) -> i64 system_v
                fn2 = %CeilF64(f64) -> f64 system_v
            block0(v0: i64, v1: f64):
                v2 = iconst.i64 8
                v3 = iadd v0, v2
                v4 = call fn1(v3, v0, v2)
                v5 = call fn0(v2)
                v6 = call fn2(v1)
                return v5, v6
            }";
        let observation = observe(text, "f(mem, 0x1.8p0)", &[1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(observation.outcome, Outcome::Returned(vec![DataValue::I64(8), f64_value(2.0)]));
        assert_eq!(observation.memory[8..], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(observation.calls[0].name, "u7:3");
    }

    #[test]
    fn of_the_program_are_called_by_name() {
        let text = "function %even(i64) -> i8 {
                fn0 = %odd(i64) -> i8
            block0(v0: i64):
                brif v0, block1, block2
            block1:
                v1 = iconst.i64 -1
                v2 = iadd v0, v1
                v3 = call fn0(v2)
                return v3
            block2:
                v4 = iconst.i8 1
                return v4
            }
            function %odd(i64) -> i8 {
                fn0 = colocated %even(i64) -> i8
            block0(v0: i64):
                brif v0, block1, block2
            block1:
                v1 = iconst.i64 -1
                v2 = iadd v0, v1
                v3 = func_addr.i64 fn0
                v4 = call_indirect sig0, v3(v2)
                return v4
            block2:
                v5 = iconst.i8 0
                return v5
            }"
        .replace("fn0 = colocated %even(i64) -> i8", "sig0 = (i64) -> i8\n fn0 = colocated %even sig0");
        assert_eq!(observe(&text, "even(10)", &[]).outcome, Outcome::Returned(vec![DataValue::I8(1)]));
        assert_eq!(observe(&text, "odd(10)", &[]).outcome, Outcome::Returned(vec![DataValue::I8(0)]));
        assert!(observe(&text, "even(9)", &[]).calls.is_empty());
    }
}

mod programs {
    use super::*;

    #[test]
    fn with_errors_are_refused_with_the_line() {
        for (text, message) in [
            ("function %f() {\nblock0:\n  v0 = iconst.i32 1\n  v1 = frobnicate v0\n  return\n}", "line 4: "),
            ("\nfunction %f() -> i32 {\nblock0:\n  return\n}", "line 4: %f is not valid CLIF: inst0 (return): "),
            ("function %f() { block0: return }\nfunction %f() { block0: return }", "there are two functions %f"),
            ("test run\n", "there is no function"),
        ] {
            let error = format!("{:#}", Program::parse(text).expect_err(text));
            assert!(error.contains(message) && !error.contains('\n'), "{error}");
        }
    }

    const RUNS: &str = "test run
        set opt_level=speed
        target x86_64

        function %add(i32, i32) -> i32 {
        block0(v0: i32, v1: i32):
            v2 = iadd v0, v1
            return v2
        }
        ; run: %add(1, 2) == 3
        ;; run: %add(-1, 2) != 2   ; as -1 is not 0
        ; running is fine
        ; print: %add(1, 1)
        ; bench: %add(3, 0x10)

        function %swap(i64, f32) -> f32, i64 { block0(v0: i64, v1: f32): return v1, v0 }
        ; run: %swap(mem, 0x1.0p0) != [0x1.0p0, 0]

        function %yes() -> i8 { block0: v0 = iconst.i8 1 return v0 }
        ; run
        ";

    #[test]
    fn have_runs_in_comments() {
        let program = program(RUNS);
        let runs = program.runs(RUNS).expect("the comments are valid");
        assert_eq!(runs.iter().map(|run| run.line).collect::<Vec<_>>(), [10, 11, 13, 17, 20]);
        assert_eq!(runs[0].expectation, Expectation::Equal(vec![DataValue::I32(3)]));
        assert_eq!(runs[2].expectation, Expectation::Anything);
        assert_eq!(runs[4].expectation, Expectation::NotEqual(vec![DataValue::I8(0)]));
        let mut compiled = Compiled::new(&program, Pipeline::Speed, Settings::default()).expect("it compiles");
        for run in &runs {
            let Outcome::Returned(results) = compiled.observe(&run.call, &[0; 8]).expect("callable").outcome else {
                panic!("{} did not return", run.call);
            };
            assert!(run.expectation.holds(&results), "line {}: {results:?}", run.line);
        }
        let cases: Vec<Case> = runs.into_iter().map(|run| Case { call: run.call, memory: vec![0; 8] }).collect();
        let agreement = check(&program, &cases, &Options::default()).expect("there is no difference");
        assert_eq!((agreement.compared, agreement.interpreted, agreement.reports.len()), (5, 4, 3));
    }

    /// What embedders print has names of numbers.
    #[test]
    fn have_functions_with_numbers_for_names() {
        let text = "function u0:3(i32) -> i32 { block0(v0: i32): v1 = iadd v0, v0 return v1 }
            function u1:4(i32) -> i32 { fn0 = u0:3(i32) -> i32 block0(v0: i32): v1 = call fn0(v0) return v1 }
            ; run: u1:4(21) == 42";
        let program = program(text);
        let run = program.runs(text).expect("the comment is valid").remove(0);
        let mut compiled = Compiled::new(&program, Pipeline::Speed, Settings::default()).expect("it compiles");
        let outcome = compiled.observe(&run.call, &[0; 8]).expect("callable").outcome;
        assert!(matches!(outcome, Outcome::Returned(results) if run.expectation.holds(&results)));
    }

    #[test]
    fn have_benches_in_comments() {
        let program = program(RUNS);
        let benches = program.benches(RUNS).expect("the comments are valid");
        assert_eq!(benches.len(), 1);
        assert_eq!((benches[0].line, benches[0].call.to_string()), (14, "%add(3, 16)".to_owned()));
        let error = program.benches("\n; bench: %add(1)").expect_err("an argument is missing");
        assert_eq!(format!("{error:#}"), "line 2: %add takes 2 arguments, not 1");
    }

    #[test]
    fn that_cannot_be_compiled_or_called_are_errors() {
        let cases = [
            ("function %f() -> i64 { gv0 = symbol %data block0: v0 = symbol_value.i64 gv0 return v0 }", "data symbols"),
            ("function %f(i64 sret) { block0(v0: i64): return }", "special purpose"),
            ("function %f(f16) { block0(v0: f16): return }", "values of type f16"),
            (
                "function %f() { fn0 = %g(i32) block0: v0 = iconst.i32 0 call fn0(v0) return }
                 function %g(i64) { block0(v0: i64): return }",
                "%g is called as (i32) fast, but is (i64) fast",
            ),
        ];
        for (text, message) in cases {
            let program = program(text);
            let args = program.function("f").map_or(0, |function| function.signature.params.len());
            let call = Call { function: "f".to_owned(), args: vec![Arg::Memory(0); args] };
            let error = Compiled::new(&program, Pipeline::Speed, Settings::default())
                .and_then(|mut compiled| compiled.observe(&call, &[]))
                .expect_err(text);
            assert!(format!("{error:#}").contains(message), "{error:#}");
        }
    }
}

mod interpreter {
    use super::*;

    const LOOP: &str = "function %sum(i32) -> i32 {
            ss0 = explicit_slot 8
            fn0 = %square(i32) -> i32
        block0(v0: i32):
            v1 = iconst.i32 0
            v2 = stack_addr.i64 ss0
            store v1, v2+4
            jump block1(v0, v2)
        block1(v3: i32, v4: i64):
            v5 = load.i32 v4+4
            v6 = call fn0(v3)
            v7 = iadd v5, v6
            store v7, v4+4
            v8 = iconst.i32 -1
            v9 = iadd v3, v8
            brif v9, block1(v9, v4), block2
        block2:
            v10 = load.i32 v2+4
            v11 = iconst.i32 1000
            v12 = icmp ult v10, v11
            trapz v12, user2
            return v10
        }
        function %square(i32) -> i32 { block0(v0: i32): v1 = imul v0, v0 return v1 }";

    fn run(text: &str, call: &str, fuel: u64) -> Option<Interpreted> {
        let program = program(text);
        interpret(&program, &program.parse_call(call).expect("valid"), fuel)
    }

    #[test]
    fn agrees_on_a_loop() {
        assert_eq!(run(LOOP, "sum(10)", 10_000), Some(Interpreted::Returned(vec![DataValue::I32(385)])));
        assert_eq!(run(LOOP, "sum(20)", 10_000), Some(Interpreted::Trapped(TrapCode::unwrap_user(2))));
        assert_eq!(run(LOOP, "sum(10)", 50), Some(Interpreted::TimedOut));
        let agreement = agreement(LOOP, &[("sum(10)", &[]), ("sum(20)", &[])], Settings::default(), &mut |_| false);
        let agreement = agreement.expect("there is no difference");
        assert_eq!((agreement.compared, agreement.interpreted), (2, 2));
    }

    #[test]
    fn declines_what_it_cannot_run() {
        for text in [
            "function %f() -> i64 { fn0 = %host() -> i64 block0: v0 = call fn0() return v0 }",
            "function %f() -> i64 { fn0 = %f() -> i64 block0: v0 = call fn0() return v0 }",
            "function %f() -> i64 { block0: v0 = iconst.i64 8 v1 = load.i64 v0 return v1 }",
            "function %f() -> i64 { ss0 = explicit_slot 8 block0: v0 = stack_addr.i64 ss0 return v0 }",
            "function %f() -> i64 { block0: sequence_point v0 = iconst.i64 8 return v0 }",
            "function %f() -> i8x16 { block0: v0 = iconst.i8 8 v1 = splat.i8x16 v0 return v1 }",
        ] {
            assert_eq!(run(text, "f()", 100), None, "{text}");
        }
    }
}

mod broken_optimizers {
    use super::*;

    const TEXT: &str = "function %f(i64, i32) -> i32 {
            fn0 = %print(i32)
            fn1 = %done()
        block0(v0: i64, v1: i32):
            jump block1(v1)
        block1(v2: i32):
            v3 = load.i32 v0
            v4 = iadd v3, v2
            v8 = iconst.i32 7
            v9 = isub v2, v8
            store v4, v0
            @9 trapz v9, user5
            call fn0(v4)
            v5 = iconst.i32 -1
            v6 = iadd v2, v5
            brif v6, block1(v6), block2
        block2:
            call fn1()
            v7 = load.i32 v0+4
            return v7
        }";
    const CASES: [(&str, &[u8]); 2] = [("f(mem, 5)", &[1; 16]), ("f(mem+8, 7)", &[2; 16])];

    fn found(rewrite: &mut dyn FnMut(&mut Function) -> bool) -> anyhow::Result<Agreement> {
        agreement(TEXT, &CASES, Settings::default(), rewrite)
    }

    #[test]
    fn none_is_found_where_there_is_none() {
        let agreement = found(&mut |_| false).expect("there is no difference");
        assert_eq!((agreement.compared, agreement.interpreted), (2, 0));
        let cases = CASES.map(|(call, memory)| (program(TEXT).parse_call(call).expect("valid"), memory.to_vec()));
        let cases = cases.map(|(call, memory)| Case { call, memory });
        check(&program(TEXT), &cases, &Options::default()).expect("loopopt is right");
    }

    #[test]
    fn one_that_drops_a_store_is_found() {
        let mismatch = mismatch(found(&mut |func| {
            let store = find(func, Opcode::Store);
            func.layout.remove_inst(store);
            true
        }));
        // The first to see it is a host function.
        assert!(matches!(mismatch, Mismatch::HostCall { index: 0, .. }), "{mismatch}");
    }

    #[test]
    fn one_that_drops_the_last_store_is_found() {
        let text = "function %f(i64) { block0(v0: i64): v1 = iconst.i16 258 store v1, v0+8 return }";
        let mismatch = mismatch(agreement(text, &[("f(mem)", &[0; 16])], Settings::default(), &mut |func| {
            let store = find(func, Opcode::Store);
            func.layout.remove_inst(store);
            true
        }));
        assert!(matches!(mismatch, Mismatch::Memory { offset: 8, bytes: [2, 0], count: 2 }), "{mismatch}");
    }

    #[test]
    fn one_that_changes_a_result_is_found() {
        let mismatch = mismatch(found(&mut |func| {
            let ret = find(func, Opcode::Return);
            let mut cursor = FuncCursor::new(func).at_inst(ret);
            let zero = cursor.ins().iconst(cranelift_codegen::ir::types::I32, 0);
            cursor.func.dfg.inst_args_mut(ret)[0] = zero;
            true
        }));
        assert!(matches!(&mismatch, Mismatch::Outcome(_)), "{mismatch}");
        let text = "the first returned 16843009, the second returned 0";
        assert_eq!(mismatch.to_string(), text);
    }

    #[test]
    fn one_that_changes_a_trap_code_is_found() {
        let mismatch = mismatch(found(&mut |func| {
            let trap = find(func, Opcode::Trapz);
            let InstructionData::CondTrap { code, .. } = &mut func.dfg.insts[trap] else { panic!("not a trap") };
            *code = TrapCode::unwrap_user(6);
            true
        }));
        let text = "the first trapped with user5 in %f @0009, the second trapped with user6 in %f @0009";
        assert_eq!(mismatch.to_string(), text);
    }

    #[test]
    fn one_that_moves_a_trap_to_another_place_in_the_source_is_found() {
        let mismatch = mismatch(found(&mut |func| {
            let trap = find(func, Opcode::Trapz);
            func.set_srcloc(trap, SourceLoc::new(10));
            true
        }));
        let text = "the first trapped with user5 in %f @0009, the second trapped with user5 in %f @000a";
        assert_eq!(mismatch.to_string(), text);
    }

    /// A load, a sum and a store of one place, and a store to another one.
    const TWO_STORES: &str = "function %f(i64, i64) {
        block0(v0: i64, v1: i64):
            @1 v2 = load.i64 v0
            @2 v3 = iadd v2, v1
            @3 store v3, v0
            @4 store v3, v1
            return
        }";

    /// The same with one store: then it is one instruction.
    const AT_ONE_PLACE: &str = "function %f(i64, i64) {
        block0(v0: i64, v1: i64):
            @1 v2 = load.i64 v0
            @2 v3 = iadd v2, v1
            @3 store v3, v0
            return
        }";

    #[test]
    fn none_is_found_where_one_instruction_stands_for_three() {
        let cases: [(&str, &[u8]); 1] = [("f(0, 1)", &[])];
        let found = agreement(AT_ONE_PLACE, &cases, Settings::default(), &mut |func| {
            // What is added is another value, so that the load is a part of the sum, and the store is not.
            let (sum, store) = (find(func, Opcode::Iadd), find(func, Opcode::Store));
            let sum = func.dfg.first_result(sum);
            let mut pos = FuncCursor::new(func).at_inst(store);
            let same = pos.ins().bnot(sum);
            let same = pos.ins().bnot(same);
            func.dfg.inst_args_mut(store)[0] = same;
            true
        });
        found.expect("the trap of the sum is that of the store");
    }

    #[test]
    fn one_that_moves_a_trap_to_a_store_elsewhere_is_found() {
        let cases: [(&str, &[u8]); 1] = [("f(0, mem)", &[0; 8])];
        let mismatch = mismatch(agreement(TWO_STORES, &cases, Settings::default(), &mut |func| {
            let [first, second] = all(func, Opcode::Store)[..] else { panic!("there are two stores") };
            let third = func.srcloc(second);
            func.set_srcloc(first, third);
            all(func, Opcode::Iadd).into_iter().for_each(|sum| func.set_srcloc(sum, third));
            all(func, Opcode::Load).into_iter().for_each(|load| func.set_srcloc(load, third));
            true
        }));
        assert!(mismatch.to_string().ends_with("@0004"), "{mismatch}");
    }

    #[test]
    fn one_that_drops_a_host_call_is_found() {
        let mismatch = mismatch(found(&mut |func| {
            let call = all(func, Opcode::Call)[1];
            func.layout.remove_inst(call);
            true
        }));
        let Mismatch::HostCall { index: 5, calls } = mismatch else { panic!("{mismatch}") };
        assert_eq!(calls[0].as_ref().map(|call| &call.name[..]), Some("done"));
        assert_eq!(calls[1], None);
    }

    #[test]
    fn one_that_moves_a_trap_above_a_store_is_found() {
        let mismatch = mismatch(found(&mut |func| {
            let (store, print) = (find(func, Opcode::Store), find(func, Opcode::Call));
            func.layout.remove_inst(store);
            func.layout.insert_inst(store, print);
            true
        }));
        assert!(matches!(mismatch, Mismatch::Memory { offset: 8, bytes: [9, 2], count: 1 }), "{mismatch}");
    }

    #[test]
    fn one_that_does_not_report_a_change_is_found() {
        let mut rewrite = |func: &mut Function| {
            let entry = func.layout.entry_block().expect("there is an entry");
            let inst = func.layout.first_inst(entry).expect("the entry has an instruction");
            FuncCursor::new(func).at_inst(inst).ins().nop();
            false
        };
        match difference(found(&mut rewrite)) {
            Difference::Unreported { function, before, after } => {
                assert_eq!(function, "%f");
                assert!(!before.contains("nop") && after.contains("nop"));
            }
            other => panic!("{other}"),
        }
    }

    #[test]
    fn one_that_never_settles_is_found() {
        let result = check_reports(&program(TEXT), &mut |context, _| {
            let entry = context.func.layout.entry_block().expect("there is an entry");
            let inst = context.func.layout.first_inst(entry).expect("the entry has an instruction");
            FuncCursor::new(&mut context.func).at_inst(inst).ins().nop();
            let mut report = Report::default();
            report.changed = true;
            Ok(report)
        });
        match result.expect_err("it changes its own output").downcast().expect("it is a difference") {
            Difference::Unsettled { function, once, twice } => {
                assert_eq!(function, "%f");
                assert_eq!((once.matches("nop").count(), twice.matches("nop").count()), (1, 2));
            }
            other => panic!("{other}"),
        }
    }

    #[test]
    fn one_that_makes_invalid_clif_is_an_error() {
        let error = found(&mut |func| {
            let ret = find(func, Opcode::Return);
            func.layout.remove_inst(ret);
            true
        })
        .expect_err("the function is invalid");
        assert!(format!("{error:#}").contains("cannot compile %f: the verifier finds: block"), "{error:#}");
    }
}

/// Compares a program with what `rewrite` makes of it. `rewrite` says whether it changed anything, is not called again once
/// it did.
fn agreement(
    text: &str,
    cases: &[(&str, &[u8])],
    settings: Settings,
    rewrite: &mut dyn FnMut(&mut Function) -> bool,
) -> anyhow::Result<Agreement> {
    let program = program(text);
    let cases: Vec<Case> = cases
        .iter()
        .map(|(call, memory)| Case { call: program.parse_call(call).expect("valid"), memory: memory.to_vec() })
        .collect();
    let mut done = false;
    check_with(&program, &cases, settings, &mut |context: &mut Context, _| {
        let mut report = Report::default();
        if !done {
            done = rewrite(&mut context.func);
            report.changed = done;
            context.compute_cfg();
            context.compute_domtree();
        }
        Ok(report)
    })
}

fn difference(found: anyhow::Result<Agreement>) -> Difference {
    let error = found.expect_err("there is a difference");
    error.downcast().unwrap_or_else(|error| panic!("{error:#}"))
}

fn mismatch(found: anyhow::Result<Agreement>) -> Mismatch {
    match difference(found) {
        Difference::Behavior { arms: [Arm::Speed, Arm::LoopOpt], mismatch, .. } => mismatch,
        other => panic!("{other}"),
    }
}

fn all(func: &Function, opcode: Opcode) -> Vec<Inst> {
    let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    insts.filter(|&inst| func.dfg.insts[inst].opcode() == opcode).collect()
}

fn find(func: &Function, opcode: Opcode) -> Inst {
    *all(func, opcode).first().expect("the opcode is there")
}

/// What recursion is called with is wrong in one arm, which goes on until the stack is full.
#[test]
fn a_stack_that_only_one_arm_fills_is_a_difference() {
    let text = "function %f(i64) -> i64 {
            fn0 = %f(i64) -> i64
        block0(v0: i64):
            v1 = iconst.i64 1
            brif v0, block1, block2
        block1:
            v2 = isub v0, v1
            v3 = call fn0(v2)
            v4 = iadd v3, v1
            return v4
        block2:
            return v0
        }";
    let found = agreement(text, &[("%f(5)", &[])], Settings::default(), &mut |func| {
        let sub = all(func, Opcode::Isub)[0];
        let [number, one] = *func.dfg.inst_args(sub) else { return false };
        func.replace(sub).iadd(number, one);
        true
    });
    assert!(matches!(mismatch(found), Mismatch::Outcome(outcomes) if outcomes[0] != outcomes[1]));
}

/// Instructions without a source location are distinguished all the same.
#[test]
fn a_trap_in_another_place_is_a_difference() {
    let text = "function %f(i64, i64) {
        block0(v0: i64, v1: i64):
            trapz v0, user1
            trapz v1, user1
            return
        }";
    let mut swapped = |func: &mut Function| {
        let traps = all(func, Opcode::Trapz);
        let block = func.layout.inst_block(traps[0]).expect("it is in the layout");
        func.layout.remove_inst(traps[1]);
        let first = func.layout.first_inst(block).expect("it has instructions");
        func.layout.insert_inst(traps[1], first);
        true
    };
    let found = agreement(text, &[("%f(0, 0)", &[])], Settings::default(), &mut swapped);
    assert!(matches!(mismatch(found), Mismatch::Outcome(_)));
}

/// An address of the stack is not null, and not another one within a word.
#[test]
fn an_address_that_escapes_is_compared() {
    let text = "function %f() -> i64 {
            ss0 = explicit_slot 16
            fn0 = %host(i64) -> i64 system_v
        block0:
            v0 = iconst.i64 0
            v1 = stack_addr.i64 ss0+4
            v2 = call fn0(v1)
            v3 = call fn0(v0)
            return v3
        }";
    for is_null in [true, false] {
        let found = agreement(text, &[("%f()", &[])], Settings::default(), &mut |func| {
            let addr = all(func, Opcode::StackAddr)[0];
            let slot = func.sized_stack_slots.keys().next().expect("it has a slot");
            match is_null {
                true => _ = func.replace(addr).iconst(types::I64, 0),
                false => _ = func.replace(addr).stack_addr(types::I64, slot, 0),
            }
            true
        });
        assert!(matches!(mismatch(found), Mismatch::HostCall { index: 0, .. }));
    }
}

/// Exceptions go to the nearest handler for their tag, past functions without one, and what lives there is there.
#[test]
fn exceptions_are_handled() {
    let text = "function %g(i64, i64) -> i64 tail {
            fn0 = %throw(i64) -> i64 system_v
        block0(v0: i64, v1: i64):
            v2 = imul v0, v1
            v3 = call fn0(v0)
            v4 = iadd v2, v3
            return v4
        }
        function %f(i64, i64) -> i64, i64 system_v {
            sig0 = (i64, i64) -> i64 tail
            fn0 = %g sig0
        block0(v0: i64, v1: i64):
            v2 = imul v1, v1
            try_call fn0(v0, v1), sig0, block1(ret0), [ tag1: block2(exn0), default: block3(exn1) ]
        block1(v3: i64):
            return v3, v2
        block2(v4: i64):
            v5 = iconst.i64 100
            v6 = iadd v4, v5
            return v6, v2
        block3(v7: i64):
            return v7, v2
        }";
    for (argument, result) in [(2, 2 * 7 + 2), (3, 103), (1, !1), (5, !5), (11, 111)] {
        let outcome = observe(text, &format!("%f({argument}, 7)"), &[]).outcome;
        assert_eq!(outcome, Outcome::Returned(vec![DataValue::I64(result), DataValue::I64(49)]), "{argument}");
    }
}
