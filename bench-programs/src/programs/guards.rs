//! Checks of other things than bounds, and checks that call the runtime.

use cranelift_codegen::ir::Function;
use cranelift_codegen::ir::types::I64;

use crate::build::{Array, checked_function};
use crate::memory::{ints, read, write};
use crate::{Checks, Input, Limit, Place, Program, Source, Value};

pub(crate) const RUNTIME_CHECK: Program = Program {
    name: "runtime-check",
    about: "A check that fails calls the runtime, which is told of the index and does not return.",
    tags: &["checked", "call"],
    while_loops: 2,
    source: Source::Checked { build: runtime_check, limits: &[Limit::len(Place::Arg(3), 5)] },
    small: || vectors(5, 2),
    large: || vectors(3_000, 80),
    reference: |input, memory| {
        let x: Vec<i64> = read(memory, input.at(0), input.size(1));
        let mut y: Vec<i64> = read(memory, input.at(2), input.size(1));
        let factor = input.get_int(4) * input.get_int(5);
        y.iter_mut().zip(&x).for_each(|(y, x)| *y += factor * x);
        write(memory, input.at(2), &y);
        None
    },
    c: Some(include_str!("../../kernels/runtime_check.c")),
};

fn vectors(count: usize, rounds: usize) -> Input {
    let (x, y) = (ints(1, count, 1000), ints(2, count, 1000));
    Input::new().array(&x).int(count).array(&y).int(count).int(7).int(rounds)
}

fn runtime_check(checks: Checks) -> Function {
    checked_function(checks, "runtime_check", ([I64; 6], None), |f, [x, x_len, y, y_len, factor, rounds]| {
        let (x, y) = (Array::calling(x, x_len, I64), Array::calling(y, y_len, I64));
        f.repeat(rounds, |f| {
            f.for_range(0, x_len, |f, i| {
                let x = f.load(x, i);
                let product = f.mul(factor, x);
                let old = f.load(y, i);
                let sum = f.add(old, product);
                f.store(y, i, sum);
            });
        });
        f.ret_nothing();
    })
}

pub(crate) const NULL_CHECK: Program = Program {
    name: "null-check",
    about: "An array that may be null, with its length before its elements: three steps for each access.",
    tags: &["checked", "memory"],
    while_loops: 2,
    source: Source::Checked {
        build: null_check,
        limits: &[Limit::len(Place::Field(0, 8), 5), Limit::number(Place::Arg(1), 0..1, 8)],
    },
    small: || object(5, 2),
    large: || object(4_000, 80),
    reference: |input, memory| {
        let data: Vec<i64> = read(memory, input.at(0) + input.size(1) + 8, input.size(2));
        Some(Value::I64(data.iter().sum::<i64>() * input.get_int(3)))
    },
    c: Some(include_str!("../../kernels/null_check.c")),
};

/// Nothing, the length and the elements of an array; its distance; how many of the elements to walk over, and how often.
fn object(count: usize, rounds: usize) -> Input {
    let mut memory = vec![0, count as i64];
    memory.extend(ints(3, count, 1000));
    Input::new().array(&memory).int(8).int(count).int(rounds)
}

fn null_check(checks: Checks) -> Function {
    checked_function(checks, "null_check", ([I64; 4], Some(I64)), |f, [base, array, count, rounds]| {
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            f.for_range(0, count, |f, i| {
                f.null_check(array);
                let object = f.add(base, array);
                let len = f.field(I64, object, 0);
                let data = f.add(object, 8);
                let x = f.load(Array::trapping(data, len, I64), i);
                f.increase(total, x);
            });
        });
        f.ret(total);
    })
}

pub(crate) const COUNTED_OVERFLOW: Program = Program {
    name: "counted-overflow",
    about: "All arithmetic on indices is checked for overflow, that of the counter too.",
    tags: &["checked"],
    while_loops: 2,
    source: Source::Checked { build: counted_overflow, limits: &[Limit::len(Place::Arg(1), 7)] },
    small: || window(5, 2),
    large: || window(4_000, 80),
    reference: |input, memory| {
        let data: Vec<i64> = read(memory, input.at(0), input.size(2) + input.size(3));
        Some(Value::I64(data[input.size(2)..].iter().sum::<i64>() * input.get_int(4)))
    },
    c: Some(include_str!("../../kernels/counted_overflow.c")),
};

/// An array with its length, the first element of those to walk over, how many they are, and how often.
fn window(count: usize, rounds: usize) -> Input {
    let data = ints(4, count + 2, 1000);
    Input::new().array(&data).int(data.len()).int(2).int(count).int(rounds)
}

fn counted_overflow(checks: Checks) -> Function {
    checked_function(checks, "counted_overflow", ([I64; 5], Some(I64)), |f, [data, len, first, count, rounds]| {
        let data = Array::trapping(data, len, I64);
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            let i = f.local(I64, 0);
            f.while_loop(
                |f| f.less(i, count),
                |f| {
                    let place = f.add_signed(first, i);
                    let x = f.load(data, place);
                    f.increase(total, x);
                    let next = f.add_signed(i, 1);
                    f.set(i, next);
                },
            );
        });
        f.ret(total);
    })
}

pub(crate) const CHECKED_DIVISION: Program = Program {
    name: "checked-division",
    about: "A divisor that is the same in every iteration is compared with 0 in each.",
    tags: &["checked"],
    while_loops: 2,
    source: Source::Checked { build: checked_division, limits: &[Limit::number(Place::Arg(2), 0..1, 7)] },
    small: || Input::new().array(&ints(5, 5, 1000)).int(5).int(7).int(2),
    large: || Input::new().array(&ints(5, 4_000, 1000)).int(4_000).int(7).int(10),
    reference: |input, memory| {
        let data: Vec<i64> = read(memory, input.at(0), input.size(1));
        Some(Value::I64(data.iter().map(|x| x / input.get_int(2)).sum::<i64>() * input.get_int(3)))
    },
    c: Some(include_str!("../../kernels/checked_division.c")),
};

fn checked_division(checks: Checks) -> Function {
    checked_function(checks, "checked_division", ([I64; 4], Some(I64)), |f, [data, count, divisor, rounds]| {
        let data = Array::unchecked(data, I64);
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            f.for_range(0, count, |f, i| {
                let x = f.load(data, i);
                let quotient = f.divide(x, divisor);
                f.increase(total, quotient);
            });
        });
        f.ret(total);
    })
}
