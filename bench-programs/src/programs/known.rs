//! Numbers that a test before the loop has found to be a constant.

use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Function, Opcode};

use crate::build::{Array, function};
use crate::memory::{ints, read};
use crate::{Input, Program, Source, Value};

pub(crate) const KNOWN_DIVISOR: Program = Program {
    name: "known-divisor",
    about: "A divisor that is 8 after a test, which the front end divides by all the same.",
    tags: &["nest"],
    while_loops: 2,
    source: Source::Built(known_divisor),
    small: || Input::new().array(&ints(1, 9, 1000)).int(9).int(8).int(2),
    large: || Input::new().array(&ints(1, 4_000, 1000)).int(4_000).int(8).int(20),
    reference: |input, memory| {
        let quotients = read::<i64>(memory, input.at(0), input.size(1)).into_iter().map(|x| x / 8);
        Some(Value::I64(quotients.sum::<i64>() * input.get_int(3)))
    },
    c: Some(include_str!("../../kernels/known_divisor.c")),
};

fn known_divisor() -> Function {
    function("known_divisor", [I64; 4], Some(I64), |f, [data, len, divisor, rounds]| {
        let array = Array::unchecked(data, I64);
        let total = f.local(I64, 0);
        let is_eight = f.equal(divisor, 8);
        f.if_else(
            is_eight,
            |f| {
                f.repeat(rounds, |f| {
                    f.for_range(0, len, |f, i| {
                        let x = f.load(array, i);
                        let quotient = f.op(Opcode::Udiv, x, divisor);
                        f.increase(total, quotient);
                    });
                });
            },
            |f| f.set(total, -1),
        );
        f.ret(total);
    })
}

pub(crate) const KNOWN_COUNT: Program = Program {
    name: "known-count",
    about: "Rows of four numbers, as a test has found: the inner loop counts to a variable.",
    tags: &["nest"],
    while_loops: 3,
    source: Source::Built(known_count),
    small: || Input::new().array(&ints(1, 12, 1000)).int(3).int(4).int(2),
    large: || Input::new().array(&ints(1, 4_000, 1000)).int(1_000).int(4).int(51),
    reference: |input, memory| {
        let numbers = read::<i64>(memory, input.at(0), input.size(1) * 4);
        let round = |total, _| numbers.iter().fold(total, |total: i64, x| total ^ (x.wrapping_mul(3) + 1));
        Some(Value::I64((0..input.get_int(3)).fold(0, round)))
    },
    c: Some(include_str!("../../kernels/known_count.c")),
};

fn known_count() -> Function {
    function("known_count", [I64; 4], Some(I64), |f, [data, rows, columns, rounds]| {
        let array = Array::unchecked(data, I64);
        let total = f.local(I64, 0);
        let is_four = f.equal(columns, 4);
        f.if_else(
            is_four,
            |f| {
                f.repeat(rounds, |f| {
                    f.for_range(0, rows, |f, row| {
                        let start = f.mul(row, columns);
                        f.for_range(0, columns, |f, column| {
                            let place = f.add(start, column);
                            let x = f.load(array, place);
                            let tripled = f.mul(x, 3);
                            let more = f.add(tripled, 1);
                            let next = f.op(Opcode::Bxor, total, more);
                            f.set(total, next);
                        });
                    });
                });
            },
            |f| f.set(total, -1),
        );
        f.ret(total);
    })
}
