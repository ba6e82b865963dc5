//! Checked walks that differ in how the index is made: from two counters, downwards, by steps, from a pointer.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F64, I64};
use cranelift_codegen::ir::{Function, Opcode};

use crate::build::{Array, checked_function};
use crate::memory::{floats, get, ints, read, write};
use crate::{Checks, Input, Limit, Place, Program, Source, Value};

pub(crate) const LAGGED: Program = Program {
    name: "lagged",
    about: "A walk that ends at `len - k`, and looks `k` elements ahead.",
    tags: &["checked"],
    while_loops: 2,
    source: Source::Checked { build: lagged, limits: &[Limit::len(Place::Arg(1), 5)] },
    small: || shifted(5, 2),
    large: || shifted(3_000, 80),
    reference: |input, memory| {
        let b: Vec<i64> = read(memory, input.at(2), input.size(3));
        let a: Vec<i64> = read(memory, input.at(0), b.len() - LAG as usize);
        let product: i64 = a.iter().zip(&b[LAG as usize..]).map(|(x, y)| x * y).sum();
        Some(Value::I64(product * input.get_int(4)))
    },
    c: Some(include_str!("../../kernels/lagged.c")),
};

const LAG: i64 = 3;

fn shifted(count: usize, rounds: usize) -> Input {
    let (a, b) = (ints(2, count, 1000), ints(3, count + LAG as usize, 1000));
    Input::new().array(&a).int(a.len()).array(&b).int(b.len()).int(rounds)
}

fn lagged(checks: Checks) -> Function {
    checked_function(checks, "lagged", ([I64; 5], Some(I64)), |f, [a, a_len, b, b_len, rounds]| {
        let (a, b) = (Array::trapping(a, a_len, I64), Array::trapping(b, b_len, I64));
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            let end = f.sub(b_len, LAG);
            f.for_range(0, end, |f, i| {
                let x = f.load(a, i);
                let ahead = f.add(i, LAG);
                let y = f.load(b, ahead);
                let product = f.mul(x, y);
                f.increase(total, product);
            });
        });
        f.ret(total);
    })
}

/// An array with its length, how many of its elements to walk over, and how often.
fn walked(count: usize, rounds: usize) -> Input {
    Input::new().array(&ints(4, count, 1000)).int(count).int(count).int(rounds)
}

pub(crate) const PAIRS: Program = Program {
    name: "pairs",
    about: "Steps of two, with checks of `i` and of `i + 1`.",
    tags: &["checked"],
    while_loops: 2,
    source: Source::Checked { build: pairs, limits: &[Limit::len(Place::Arg(1), 6)] },
    small: || walked(6, 2),
    large: || walked(4_000, 100),
    reference: |input, memory| {
        let data: Vec<i64> = read(memory, input.at(0), input.size(2));
        Some(Value::I64(data.chunks(2).map(|x| x[0] * x[1]).sum::<i64>() * input.get_int(3)))
    },
    c: Some(include_str!("../../kernels/pairs.c")),
};

fn pairs(checks: Checks) -> Function {
    checked_function(checks, "pairs", ([I64; 4], Some(I64)), |f, [data, len, count, rounds]| {
        let data = Array::trapping(data, len, I64);
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            let i = f.local(I64, 0);
            f.while_loop(
                |f| f.less(i, count),
                |f| {
                    let x = f.load(data, i);
                    let next = f.add(i, 1);
                    let y = f.load(data, next);
                    let product = f.mul(x, y);
                    f.increase(total, product);
                    f.increase(i, 2);
                },
            );
        });
        f.ret(total);
    })
}

pub(crate) const QUADS: Program = Program {
    name: "quads",
    about: "Steps of four with four checks, as branches, and an unsigned test.",
    tags: &["checked"],
    while_loops: 2,
    source: Source::Checked { build: quads, limits: &[Limit::len(Place::Arg(1), 8)] },
    small: || walked(8, 2),
    large: || walked(4_000, 100),
    reference: |input, memory| {
        let data: Vec<i64> = read(memory, input.at(0), input.size(2));
        let step = |total: i64, x: &[i64]| total.wrapping_add((x[0] ^ x[1]) + (x[2] ^ x[3]));
        Some(Value::I64(data.chunks(4).fold(0, step) * input.get_int(3)))
    },
    c: Some(include_str!("../../kernels/quads.c")),
};

fn quads(checks: Checks) -> Function {
    checked_function(checks, "quads", ([I64; 4], Some(I64)), |f, [data, len, count, rounds]| {
        let data = Array::branching(data, len, I64);
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            let i = f.local(I64, 0);
            f.while_loop(
                |f| f.icmp(IntCC::UnsignedLessThan, i, count),
                |f| {
                    let [a, b, c, d] = [0, 1, 2, 3].map(|ahead| {
                        let place = f.add(i, ahead);
                        f.load(data, place)
                    });
                    let (x, y) = (f.op(Opcode::Bxor, a, b), f.op(Opcode::Bxor, c, d));
                    let sum = f.add(x, y);
                    f.increase(total, sum);
                    f.increase(i, 4);
                },
            );
        });
        f.ret(total);
    })
}

pub(crate) const DOWNWARD_SLICE: Program = Program {
    name: "downward-slice",
    about: "Counts down to 0, in a slice that begins elsewhere: `a[i - from]`.",
    tags: &["checked"],
    while_loops: 2,
    source: Source::Checked {
        build: downward_slice,
        limits: &[Limit::number(Place::Arg(2), 1..6, 0), Limit::len(Place::Arg(1), 5)],
    },
    small: || sliced(5, 2),
    large: || sliced(3_000, 120),
    reference: |input, memory| {
        let data: Vec<i64> = read(memory, input.at(0), input.size(3));
        let total: i64 = (0..).zip(&data).map(|(i, x): (i64, _)| i * x).sum();
        Some(Value::I64(total * input.get_int(4)))
    },
    c: Some(include_str!("../../kernels/downward_slice.c")),
};

fn sliced(count: usize, rounds: usize) -> Input {
    Input::new().array(&ints(5, count, 1000)).int(count).int(0).int(count).int(rounds)
}

fn downward_slice(checks: Checks) -> Function {
    checked_function(checks, "downward_slice", ([I64; 5], Some(I64)), |f, [data, len, from, count, rounds]| {
        let data = Array::trapping(data, len, I64);
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            let last = f.sub(count, 1);
            let i = f.local(I64, last);
            f.while_loop(
                |f| f.icmp(IntCC::SignedGreaterThanOrEqual, i, 0),
                |f| {
                    let place = f.sub(i, from);
                    let x = f.load(data, place);
                    let product = f.mul(i, x);
                    f.increase(total, product);
                    f.increase(i, -1);
                },
            );
        });
        f.ret(total);
    })
}

pub(crate) const STENCIL2D: Program = Program {
    name: "stencil2d",
    about: "Five neighbours in a matrix, each with one check of `i * n + j`.",
    tags: &["checked", "float", "nest"],
    while_loops: 3,
    source: Source::Checked { build: stencil2d, limits: &[Limit::len(Place::Arg(2), 19)] },
    small: || plane((4, 5), 2),
    large: || plane((60, 64), 24),
    reference: stencil2d_reference,
    c: Some(include_str!("../../kernels/stencil2d.c")),
};

fn plane((rows, columns): (usize, usize), rounds: usize) -> Input {
    let count = rows * columns;
    Input::new().array(&floats(6, count)).zeros::<f64>(count).int(count).int(rows).int(columns).int(rounds)
}

fn stencil2d_reference(input: &Input, memory: &mut [u8]) -> Option<Value> {
    let (rows, columns) = (input.size(3), input.size(4));
    for i in 1..rows - 1 {
        for j in 1..columns - 1 {
            let place = i * columns + j;
            let at = |place: usize| get::<f64>(memory, input.at(0) + 8 * place);
            let sum = at(place) + at(place - columns) + at(place + columns) + at(place - 1) + at(place + 1);
            write(memory, input.at(1) + 8 * place, &[sum * 0.2]);
        }
    }
    None
}

fn stencil2d(checks: Checks) -> Function {
    checked_function(checks, "stencil2d", ([I64; 6], None), |f, [data, output, len, rows, columns, rounds]| {
        let [data, output] = [data, output].map(|base| Array::trapping(base, len, F64));
        let (bottom, right) = (f.sub(rows, 1), f.sub(columns, 1));
        f.repeat(rounds, |f| {
            f.for_range(1, bottom, |f, i| {
                f.for_range(1, right, |f, j| {
                    let [middle, up, down, left, right] = [(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)].map(|(di, dj)| {
                        let (row, column) = (f.add(i, di), f.add(j, dj));
                        let start = f.mul(row, columns);
                        let place = f.add(start, column);
                        f.load(data, place)
                    });
                    let sum = f.add(middle, up);
                    let sum = f.add(sum, down);
                    let sum = f.add(sum, left);
                    let sum = f.add(sum, right);
                    let mean = f.mul(sum, 0.2);
                    let start = f.mul(i, columns);
                    let place = f.add(start, j);
                    f.store(output, place, mean);
                });
            });
        });
        f.ret_nothing();
    })
}

pub(crate) const POINTER_WALK: Program = Program {
    name: "pointer-walk",
    about: "A pointer that moves until it is equal to the end, and is checked against another end.",
    tags: &["checked"],
    while_loops: 2,
    source: Source::Checked { build: pointer_walk, limits: &[Limit::len(Place::Arg(1), 33)] },
    small: || Input::new().array(&ints(7, 5, 1000)).int(40).int(40).int(2),
    large: || Input::new().array(&ints(7, 4_000, 1000)).int(32_000).int(32_000).int(100),
    reference: |input, memory| {
        let data: Vec<i64> = read(memory, input.at(0), input.size(2) / 8);
        Some(Value::I64(data.iter().sum::<i64>() * input.get_int(3)))
    },
    c: Some(include_str!("../../kernels/pointer_walk.c")),
};

fn pointer_walk(checks: Checks) -> Function {
    checked_function(checks, "pointer_walk", ([I64; 4], Some(I64)), |f, [data, size, walked, rounds]| {
        let (limit, end) = (f.add(data, size), f.add(data, walked));
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            let p = f.local(I64, data);
            f.while_loop(
                |f| f.icmp(IntCC::NotEqual, p, end),
                |f| {
                    f.require_below(p, limit);
                    let here = f.get(p);
                    let x = f.field(I64, here, 0);
                    f.increase(total, x);
                    f.increase(p, 8);
                },
            );
        });
        f.ret(total);
    })
}

/// A slice (`start` and `len`) with its elements after it, how many of them to walk over, and how often.
fn slice(count: usize, rounds: usize) -> Input {
    let mut memory = vec![16, count as i64];
    memory.extend(ints(8, count, 1000));
    Input::new().array(&memory).int(count).int(rounds)
}

pub(crate) const SLICE_BEFORE: Program = Program {
    name: "slice-before",
    about: "Pointer and length of a slice are loaded once, before the loop.",
    tags: &["checked", "memory"],
    while_loops: 2,
    source: Source::Checked { build: slice_before, limits: &[Limit::len(Place::Field(0, 8), 5)] },
    small: || slice(5, 2),
    large: || slice(4_000, 100),
    reference: slice_reference,
    c: Some(include_str!("../../kernels/slice_before.c")),
};

fn slice_reference(input: &Input, memory: &mut [u8]) -> Option<Value> {
    let data: Vec<i64> = read(memory, input.at(0) + 16, input.size(1));
    Some(Value::I64(data.iter().sum::<i64>() * input.get_int(2)))
}

fn slice_before(checks: Checks) -> Function {
    checked_function(checks, "slice_before", ([I64; 3], Some(I64)), |f, [slice, count, rounds]| {
        let (start, len) = (f.field(I64, slice, 0), f.field(I64, slice, 8));
        let data = f.add(slice, start);
        let data = Array::trapping(data, len, I64);
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            f.for_range(0, count, |f, i| {
                let x = f.load(data, i);
                f.increase(total, x);
            });
        });
        f.ret(total);
    })
}

pub(crate) const SLICE_INSIDE: Program = Program {
    name: "slice-inside",
    about: "Pointer and length of a slice are loaded for each element, by loads that say that nothing ever changes them.",
    tags: &["checked", "memory"],
    while_loops: 2,
    source: Source::Checked { build: slice_inside, limits: &[Limit::len(Place::Field(0, 8), 5)] },
    small: || slice(5, 2),
    large: || slice(4_000, 100),
    reference: slice_reference,
    c: Some(include_str!("../../kernels/slice_inside.c")),
};

fn slice_inside(checks: Checks) -> Function {
    checked_function(checks, "slice_inside", ([I64; 3], Some(I64)), |f, [slice, count, rounds]| {
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            f.for_range(0, count, |f, i| {
                let (start, len) = (f.constant_field(I64, slice, 0), f.constant_field(I64, slice, 8));
                let data = f.add(slice, start);
                let x = f.load(Array::trapping(data, len, I64), i);
                f.increase(total, x);
            });
        });
        f.ret(total);
    })
}
