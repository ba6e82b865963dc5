//! Sums of an array in which each iteration does again what it could have known. Iterations hardly wait for each other, so
//! what they do again takes time.
//!
//! A pointer in memory is a distance from the first argument, because an input does not know its address.

use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Function, Opcode};

use crate::build::{Array, checked_function, function};
use crate::memory::{get, ints, read, write};
use crate::{Checks, Input, Limit, Place, Program, Source, Value};

pub(crate) const BOXED_SUM: Program = Program {
    name: "boxed-sum",
    about: "The array is behind two pointers, one of which may be null; pointer and length are loaded for each element.",
    tags: &["checked", "memory"],
    while_loops: 2,
    source: Source::Checked { build: boxed_sum, limits: &[Limit::len(Place::Field(0, 16), 5)] },
    small: || boxed(5, 2),
    large: || boxed(4_000, 40),
    reference: |input, memory| {
        let object = input.at(0) + get::<i64>(memory, input.at(1)) as usize;
        let [start, len]: [i64; 2] = [0, 8].map(|field| get(memory, object + field));
        let data: Vec<i64> = read(memory, input.at(0) + start as usize, len as usize);
        Some(Value::I64(data.iter().sum::<i64>() * input.get_int(3)))
    },
    c: Some(include_str!("../../kernels/boxed_sum.c")),
};

/// An object with `start` and `len` of the data after it; the variable that refers to it; how many to add, how often.
fn boxed(len: usize, rounds: usize) -> Input {
    let mut memory = vec![0, 24, len as i64];
    memory.extend(ints(2, len, 1000));
    Input::new().array(&memory).array(&[8_i64]).int(len).int(rounds)
}

fn boxed_sum(checks: Checks) -> Function {
    checked_function(checks, "boxed_sum", ([I64; 4], Some(I64)), |f, [base, variable, count, rounds]| {
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            f.for_range(0, count, |f, i| {
                let distance = f.field(I64, variable, 0);
                f.null_check(distance);
                let object = f.add(base, distance);
                let start = f.field(I64, object, 0);
                let len = f.field(I64, object, 8);
                let data = f.add(base, start);
                let x = f.load(Array::trapping(data, len, I64), i);
                f.increase(total, x);
            });
        });
        f.ret(total);
    })
}

pub(crate) const SCALED_SUM: Program = Program {
    name: "scaled-sum",
    about: "Each element is multiplied by the same element of a table, `b[i] * a[n]`, with its check.",
    tags: &["checked", "memory"],
    while_loops: 2,
    source: Source::Checked { build: scaled_sum, limits: &[Limit::len(Place::Arg(1), 3)] },
    small: || scaled(5, 2),
    large: || scaled(4_000, 40),
    reference: |input, memory| {
        let factor: i64 = get(memory, input.at(0) + 8 * input.size(2));
        let values: Vec<i64> = read(memory, input.at(3), input.size(4));
        Some(Value::I64(values.iter().map(|x| x * factor).sum::<i64>() * input.get_int(5)))
    },
    c: Some(include_str!("../../kernels/scaled_sum.c")),
};

pub(crate) const RESAMPLED_SUM: Program = Program {
    name: "resampled-sum",
    about: "Elements at the whole part of a position with a fraction, `a[x >> 16]`, that moves by a step which is not known.",
    tags: &["checked", "memory"],
    while_loops: 2,
    source: Source::Checked { build: resampled_sum, limits: &[Limit::len(Place::Arg(1), 7)] },
    small: || resampled(5, 2),
    large: || resampled(4_000, 40),
    reference: |input, memory| {
        let values: Vec<i64> = read(memory, input.at(0), input.size(1));
        let at = |i: i64| values[((i * input.get_int(2)) >> 16) as usize];
        Some(Value::I64((0..input.get_int(3)).map(at).sum::<i64>() * input.get_int(4)))
    },
    c: Some(include_str!("../../kernels/resampled_sum.c")),
};

/// Twice as many values as are added up, with their number; one and a half; how many are added up; how often.
fn resampled(count: usize, rounds: usize) -> Input {
    Input::new().array(&ints(2, 2 * count, 1000)).int(2 * count).int(3 << 15).int(count).int(rounds)
}

fn resampled_sum(checks: Checks) -> Function {
    checked_function(checks, "resampled_sum", ([I64; 5], Some(I64)), |f, [values, len, step, count, rounds]| {
        let (total, position) = (f.local(I64, 0), f.local(I64, 0));
        f.repeat(rounds, |f| {
            f.set(position, 0);
            f.for_range(0, count, |f, _| {
                let whole = f.op(Opcode::Ushr, position, 16);
                let x = f.load(Array::trapping(values, len, I64), whole);
                f.increase(total, x);
                f.increase(position, step);
            });
        });
        f.ret(total);
    })
}

/// A table with its length, the place in it; the values and their number; how often.
fn scaled(count: usize, rounds: usize) -> Input {
    Input::new().array(&[2_i64, 3, 5, 7]).int(4).int(2).array(&ints(2, count, 1000)).int(count).int(rounds)
}

fn scaled_sum(checks: Checks) -> Function {
    checked_function(checks, "scaled_sum", ([I64; 6], Some(I64)), |f, [table, len, n, values, count, rounds]| {
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            f.for_range(0, count, |f, i| {
                let x = f.load(Array::unchecked(values, I64), i);
                let factor = f.load(Array::trapping(table, len, I64), n);
                let product = f.mul(x, factor);
                f.increase(total, product);
            });
        });
        f.ret(total);
    })
}

pub(crate) const SLOT_SUM: Program = Program {
    name: "slot-sum",
    about: "A sum of an array with all locals in stack slots, as before any promotion to registers.",
    tags: &["slots", "memory"],
    while_loops: 2,
    source: Source::Built(slot_sum),
    small: || Input::new().array(&ints(2, 5, 1000)).int(5).int(2),
    large: || Input::new().array(&ints(2, 4_000, 1000)).int(4_000).int(40),
    reference: |input, memory| {
        let values: Vec<i64> = read(memory, input.at(0), input.size(1));
        Some(Value::I64(values.iter().sum::<i64>() * input.get_int(2)))
    },
    c: Some(include_str!("../../kernels/slot_sum.c")),
};

fn slot_sum() -> Function {
    function("slot_sum", [I64; 3], Some(I64), |f, [values, count, rounds]| {
        let (values, n, i, total) = (f.slot(values), f.slot(count), f.slot(0), f.slot(0));
        f.repeat(rounds, |f| {
            f.set_slot(i, 0);
            f.while_loop(
                |f| {
                    let (x, y) = (f.get_slot(i), f.get_slot(n));
                    f.less(x, y)
                },
                |f| {
                    let (data, index) = (f.get_slot(values), f.get_slot(i));
                    let x = f.load(Array::unchecked(data, I64), index);
                    let old = f.get_slot(total);
                    let new = f.add(old, x);
                    f.set_slot(total, new);
                    let index = f.get_slot(i);
                    let next = f.add(index, 1);
                    f.set_slot(i, next);
                },
            );
        });
        let result = f.get_slot(total);
        f.ret(result);
    })
}

pub(crate) const WEIGHTED_INDEX: Program = Program {
    name: "weighted-index",
    about: "For each n of an array, adds up i * i * w + i for each i < n: a formula of n.",
    tags: &["memory", "nest"],
    while_loops: 2,
    source: Source::Built(weighted_index),
    small: || Input::new().array(&[5_i64, 0, 1, -3, 8]).int(5).int(3),
    large: || {
        let counts = ints(3, 20_000, 16);
        Input::new().array(&counts).int(counts.len()).int(7)
    },
    reference: |input, memory| {
        let counts: Vec<i64> = read(memory, input.at(0), input.size(1));
        let weight = input.get_int(2);
        let sum = |n: i64| (0..n).fold(0, |sum: i64, i| sum.wrapping_add(i.wrapping_mul(i).wrapping_mul(weight) + i));
        Some(Value::I64(counts.into_iter().fold(0, |total, n| (total ^ sum(n)).wrapping_add(1))))
    },
    c: Some(include_str!("../../kernels/weighted_index.c")),
};

fn weighted_index() -> Function {
    function("weighted_index", [I64; 3], Some(I64), |f, [counts, len, weight]| {
        let total = f.local(I64, 0);
        f.for_range(0, len, |f, at| {
            let n = f.load(Array::unchecked(counts, I64), at);
            let sum = f.local(I64, 0);
            f.for_range(0, n, |f, i| {
                let square = f.mul(i, i);
                let weighted = f.mul(square, weight);
                f.increase(sum, weighted);
                f.increase(sum, i);
            });
            let mixed = f.op(Opcode::Bxor, total, sum);
            let next = f.add(mixed, 1);
            f.set(total, next);
        });
        f.ret(total);
    })
}

pub(crate) const CHECKSUM_OF_PLACES: Program = Program {
    name: "checksum-of-places",
    about: "Fills an array, and adds up places and their squares beside: what is added up is a formula of the count.",
    tags: &["memory"],
    while_loops: 1,
    source: Source::Built(checksum_of_places),
    small: || Input::new().array(&[1_i64, 2, 3, 4, 5]).int(5).int(3),
    large: || Input::new().array(&vec![1_i64; 64_000]).int(64_000).int(40),
    reference: |input, memory| {
        let n = input.size(1);
        let value = input.get_int(2);
        write(memory, input.at(0), &vec![value; n]);
        let n = n as i64;
        let step = |total: i64, i: i64| total.wrapping_add(i.wrapping_mul(value)).wrapping_add(i.wrapping_mul(i));
        Some(Value::I64((0..n).fold(0, step)))
    },
    c: Some(include_str!("../../kernels/checksum_of_places.c")),
};

fn checksum_of_places() -> Function {
    function("checksum_of_places", [I64; 3], Some(I64), |f, [array, n, value]| {
        let total = f.local(I64, 0);
        f.for_range(0, n, |f, i| {
            f.store(Array::unchecked(array, I64), i, value);
            let weighted = f.mul(i, value);
            let square = f.mul(i, i);
            let some = f.add(total, weighted);
            let next = f.add(some, square);
            f.set(total, next);
        });
        f.ret(total);
    })
}
