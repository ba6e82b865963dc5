//! Branches, calls and jump tables in loops.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{Function, Opcode};

use crate::build::{Array, Emitter, Operand, checked_function, function};
use crate::memory::{get, ints, numbers, read};
use crate::{Checks, Input, Program, Source, Value};

pub(crate) const RARE_CALL: Program = Program {
    name: "rare-call",
    about: "A call that hardly ever happens hinders everything around it.",
    tags: &["call", "memory"],
    while_loops: 2,
    source: Source::Built(rare_call),
    small: || events((7, 4), 2),
    large: || events((4_000, 1_000), 60),
    reference: |input, memory| {
        let events: Vec<i64> = read(memory, input.at(0), input.size(1));
        let limit: i64 = get(memory, input.at(2));
        // The host function gives back the sum of its arguments.
        let weight = |(index, &x): (i64, &i64)| if x >= limit { x + index } else { x };
        let total: i64 = (0..).zip(&events).map(weight).sum();
        Some(Value::I64(total * input.get_int(3)))
    },
    c: Some(include_str!("../../kernels/rare_call.c")),
};

/// Every so many numbers there is one that reaches the limit.
fn events((count, distance): (usize, usize), rounds: usize) -> Input {
    let mut events = ints(1, count, 1000);
    events.iter_mut().skip(2).step_by(distance).for_each(|x| *x += 1000);
    Input::new().array(&events).int(count).array(&[1000_i64]).int(rounds)
}

fn rare_call() -> Function {
    function("rare_call", [I64; 4], Some(I64), |f, [events, len, limit, rounds]| {
        let events = Array::unchecked(events, I64);
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            f.for_range(0, len, |f, i| {
                let event = f.load(events, i);
                let x = f.local(I64, event);
                let limit = f.field(I64, limit, 0);
                let is_rare = f.icmp(IntCC::SignedGreaterThanOrEqual, x, limit);
                f.if_rarely(is_rare, |f| {
                    let index = f.get(i);
                    let answer = f.call_host("host_report", &[event, index]);
                    f.set(x, answer);
                });
                f.increase(total, x);
            });
        });
        f.ret(total);
    })
}

pub(crate) const INVARIANT_BRANCH: Program = Program {
    name: "invariant-branch",
    about: "A condition that is the same in every iteration.",
    tags: &["checked"],
    while_loops: 2,
    source: Source::Checked { build: invariant_branch, limits: &[] },
    small: || Input::new().array(&ints(2, 5, 1000)).int(5).int(0).int(3),
    large: || Input::new().array(&ints(2, 4_000, 1000)).int(4_000).int(1).int(50),
    reference: |input, memory| {
        let array: Vec<i64> = read(memory, input.at(0), input.size(1));
        let mode = input.get_int(2);
        let step = |total, x| if mode != 0 { total + x } else { total ^ x };
        let total = (0..input.get_int(3)).flat_map(|_| &array).fold(0, step);
        Some(Value::I64(total))
    },
    c: Some(include_str!("../../kernels/invariant_branch.c")),
};

fn invariant_branch(checks: Checks) -> Function {
    checked_function(checks, "invariant_branch", ([I64; 4], Some(I64)), |f, [data, len, mode, rounds]| {
        let array = Array::trapping(data, len, I64);
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            f.for_range(0, len, |f, i| {
                let x = f.load(array, i);
                let adds = f.icmp(IntCC::NotEqual, mode, 0);
                f.if_else(
                    adds,
                    |f| f.increase(total, x),
                    |f| {
                        let mixed = f.op(Opcode::Bxor, total, x);
                        f.set(total, mixed);
                    },
                );
            });
        });
        f.ret(total);
    })
}

pub(crate) const MODE_SWITCH: Program = Program {
    name: "mode-switch",
    about: "A jump table on a number that is the same in every iteration.",
    tags: &["switch"],
    while_loops: 2,
    source: Source::Built(mode_switch),
    small: || modes(5, 2, 3),
    large: || modes(4_000, 1, 50),
    reference: |input, memory| {
        let array: Vec<i64> = read(memory, input.at(0), input.size(1));
        let step = |total: i64, x: &i64| match input.get_int(2) {
            0 => total + x,
            1 => total ^ x,
            2 => total - x,
            3 => total.wrapping_mul(3) + x,
            _ => total,
        };
        let total = (0..input.get_int(3)).flat_map(|_| &array).fold(0, step);
        Some(Value::I64(total))
    },
    c: Some(include_str!("../../kernels/mode_switch.c")),
};

fn modes(count: usize, mode: i32, rounds: usize) -> Input {
    Input::new().array(&ints(2, count, 1000)).int(count).int32(mode).int(rounds)
}

fn mode_switch() -> Function {
    function("mode_switch", [I64, I64, I32, I64], Some(I64), |f, [data, len, mode, rounds]| {
        let array = Array::unchecked(data, I64);
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            f.for_range(0, len, |f, i| {
                let x = f.load(array, i);
                let set = |f: &mut Emitter<'_>, opcode, y: Operand| {
                    let next = f.op(opcode, y, x);
                    f.set(total, next);
                };
                let tripled = f.mul(total, 3);
                f.switch(
                    mode,
                    &[
                        &|f| set(f, Opcode::Iadd, total.into()),
                        &|f| set(f, Opcode::Bxor, total.into()),
                        &|f| set(f, Opcode::Isub, total.into()),
                        &|f| set(f, Opcode::Iadd, tripled.into()),
                    ],
                );
            });
        });
        f.ret(total);
    })
}

pub(crate) const CLAMP_SUM: Program = Program {
    name: "clamp-sum",
    about: "Decisions as `select` instead of branches, and an index of 32 bits.",
    tags: &[],
    while_loops: 1,
    source: Source::Clif(include_str!("../../kernels/clamp_sum.clif")),
    small: || clamped(6),
    large: || clamped(200_000),
    reference: |input, memory| {
        let array: Vec<u16> = read(memory, input.at(0), input.size(1));
        Some(Value::I32(array.into_iter().map(|x| i32::from(x).clamp(100, 900)).sum()))
    },
    c: Some(include_str!("../../kernels/clamp_sum.c")),
};

fn clamped(count: i32) -> Input {
    let data: Vec<u16> = numbers(3, count as usize, 1000);
    Input::new().array(&data).int32(count).int32(100).int32(900)
}

pub(crate) const FIRST_ITERATION: Program = Program {
    name: "first-iteration",
    about: "A branch that takes one edge in the first iteration and the other one ever after.",
    tags: &[],
    while_loops: 1,
    source: Source::Clif(include_str!("../../kernels/first_iteration.clif")),
    small: || Input::new().array(&numbers::<u16>(4, 5, 1000)).int(5),
    large: || Input::new().array(&numbers::<u16>(4, 150_000, 1000)).int(150_000),
    reference: |input, memory| {
        let array: Vec<u16> = read(memory, input.at(0), input.size(1));
        let distances = array.windows(2).map(|pair| i64::from(pair[0].abs_diff(pair[1])));
        Some(Value::I64(distances.sum()))
    },
    c: Some(include_str!("../../kernels/first_iteration.c")),
};

pub(crate) const SWITCH_LOOP: Program = Program {
    name: "switch-loop",
    about: "A tiny interpreter: a jump table in the loop, and one of its targets leaves.",
    tags: &["switch", "dispatch"],
    while_loops: 1,
    source: Source::Clif(include_str!("../../kernels/switch_loop.clif")),
    small: || code(3),
    large: || code(8_000),
    reference: switch_loop_reference,
    c: Some(include_str!("../../kernels/switch_loop.c")),
};

/// Opcodes: 0 ends, 1 increments, 2 doubles, 3 mixes in the program counter, 4 goes back to the start while the counter
/// lasts, anything else does nothing.
fn code(rounds: i64) -> Input {
    let code: [u8; 16] = [1, 2, 3, 1, 1, 3, 9, 2, 3, 1, 2, 2, 3, 4, 0, 1];
    Input::new().array(&code).int(code.len()).int(rounds)
}

fn switch_loop_reference(input: &Input, memory: &mut [u8]) -> Option<Value> {
    let code: Vec<u8> = read(memory, input.at(0), input.size(1));
    let (mut pc, mut counter, mut total) = (0, input.get_int(2), 0_i64);
    while pc < code.len() {
        let opcode = code[pc];
        pc += 1;
        match opcode {
            0 => break,
            1 => total = total.wrapping_add(1),
            2 => total = total.wrapping_mul(2),
            3 => total ^= pc as i64,
            4 => {
                counter -= 1;
                pc = if counter != 0 { 0 } else { pc };
            }
            _ => {}
        }
    }
    Some(Value::I64(total))
}
