//! Walks over arrays, with a bounds check before each access.

use cranelift_codegen::ir::types::{F64, I8, I64};
use cranelift_codegen::ir::{Function, Opcode};

use crate::build::{Array, checked_function};
use crate::memory::{bytes, floats, ints, read, write};
use crate::{Checks, Input, Limit, Place, Program, Source, Value};

pub(crate) const SUM_CHECKED: Program = Program {
    name: "sum-checked",
    about: "A bounds check that the loop's own test makes redundant, as `trapnz`.",
    tags: &["checked"],
    while_loops: 2,
    source: Source::Checked { build: sum_checked, limits: &[] },
    small: || Input::new().array(&ints(1, 5, 1000)).int(5).int(2),
    large: || Input::new().array(&ints(1, 4_000, 1000)).int(4_000).int(100),
    reference: |input, memory| {
        let sum: i64 = read::<i64>(memory, input.at(0), input.size(1)).iter().sum();
        Some(Value::I64(sum * input.get_int(2)))
    },
    c: Some(include_str!("../../kernels/sum_checked.c")),
};

fn sum_checked(checks: Checks) -> Function {
    checked_function(checks, "sum_checked", ([I64; 3], Some(I64)), |f, [data, len, rounds]| {
        let array = Array::trapping(data, len, I64);
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            f.for_range(0, len, |f, i| {
                let x = f.load(array, i);
                f.increase(total, x);
            });
        });
        f.ret(total);
    })
}

pub(crate) const DOT: Program = Program {
    name: "dot",
    about: "Two bounds checks, as branches: one repeats the loop's test, the other is against another length.",
    tags: &["checked"],
    while_loops: 2,
    source: Source::Checked { build: dot, limits: &[Limit::len(Place::Arg(3), 5)] },
    small: || pair(5, 2),
    large: || pair(3_000, 80),
    reference: |input, memory| {
        let a: Vec<i64> = read(memory, input.at(0), input.size(1));
        let b: Vec<i64> = read(memory, input.at(2), input.size(1));
        let product: i64 = a.iter().zip(&b).map(|(x, y)| x * y).sum();
        Some(Value::I64(product * input.get_int(4)))
    },
    c: Some(include_str!("../../kernels/dot.c")),
};

/// Two arrays, each with its length; the second is longer.
fn pair(count: usize, rounds: usize) -> Input {
    let (a, b) = (ints(2, count, 1000), ints(3, count + 1, 1000));
    Input::new().array(&a).int(count).array(&b).int(count + 1).int(rounds)
}

fn dot(checks: Checks) -> Function {
    checked_function(checks, "dot", ([I64; 5], Some(I64)), |f, [a, a_len, b, b_len, rounds]| {
        let (a, b) = (Array::branching(a, a_len, I64), Array::branching(b, b_len, I64));
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            f.for_range(0, a_len, |f, i| {
                let x = f.load(a, i);
                let y = f.load(b, i);
                let product = f.mul(x, y);
                f.increase(total, product);
            });
        });
        f.ret(total);
    })
}

pub(crate) const SAXPY: Program = Program {
    name: "saxpy",
    about: "Floats, changed in place: y += a * x.",
    tags: &["checked", "float"],
    while_loops: 2,
    source: Source::Checked { build: saxpy, limits: &[Limit::len(Place::Arg(3), 5)] },
    small: || vectors(5, 2),
    large: || vectors(3_000, 80),
    reference: saxpy_reference,
    c: Some(include_str!("../../kernels/saxpy.c")),
};

fn vectors(count: usize, rounds: usize) -> Input {
    let (x, y) = (floats(4, count), floats(5, count));
    Input::new().array(&x).int(count).array(&y).int(count).float(2.3).int(rounds)
}

fn saxpy_reference(input: &Input, memory: &mut [u8]) -> Option<Value> {
    let (count, factor) = (input.size(1), input.get_float(4));
    let x: Vec<f64> = read(memory, input.at(0), count);
    let mut y: Vec<f64> = read(memory, input.at(2), count);
    for _ in 0..input.get_int(5) {
        for (y, x) in y.iter_mut().zip(&x) {
            *y += factor * x;
        }
    }
    write(memory, input.at(2), &y);
    None
}

fn saxpy(checks: Checks) -> Function {
    checked_function(
        checks,
        "saxpy",
        ([I64, I64, I64, I64, F64, I64], None),
        |f, [x, len, y, y_len, factor, rounds]| {
            let (x, y) = (Array::branching(x, len, F64), Array::branching(y, y_len, F64));
            f.repeat(rounds, |f| {
                f.for_range(0, len, |f, i| {
                    let old = f.load(y, i);
                    let x = f.load(x, i);
                    let product = f.mul(factor, x);
                    let sum = f.add(old, product);
                    f.store(y, i, sum);
                });
            });
            f.ret_nothing();
        },
    )
}

/// An array, room for another, each with its length, and the number of rounds.
fn from_to(seed: u64, count: usize, rounds: usize) -> Input {
    Input::new().array(&ints(seed, count, 1000)).int(count).zeros::<i64>(count).int(count).int(rounds)
}

pub(crate) const PREFIX_SUM: Program = Program {
    name: "prefix-sum",
    about: "A loop-carried sum that is also stored, out of place.",
    tags: &["checked"],
    while_loops: 2,
    source: Source::Checked { build: prefix_sum, limits: &[Limit::len(Place::Arg(3), 5)] },
    small: || from_to(6, 5, 2),
    large: || from_to(6, 3_000, 120),
    reference: |input, memory| {
        let mut sums: Vec<i64> = read(memory, input.at(0), input.size(1));
        for index in 1..sums.len() {
            sums[index] += sums[index - 1];
        }
        write(memory, input.at(2), &sums);
        None
    },
    c: Some(include_str!("../../kernels/prefix_sum.c")),
};

fn prefix_sum(checks: Checks) -> Function {
    checked_function(checks, "prefix_sum", ([I64; 5], None), |f, [data, len, output, output_len, rounds]| {
        let (data, output) = (Array::trapping(data, len, I64), Array::trapping(output, output_len, I64));
        f.repeat(rounds, |f| {
            let total = f.local(I64, 0);
            f.for_range(0, len, |f, i| {
                let x = f.load(data, i);
                f.increase(total, x);
                f.store(output, i, total);
            });
        });
        f.ret_nothing();
    })
}

pub(crate) const REVERSE_COPY: Program = Program {
    name: "reverse-copy",
    about: "One index goes up and the other down; both are checked.",
    tags: &["checked"],
    while_loops: 2,
    source: Source::Checked { build: reverse_copy, limits: &[Limit::len(Place::Arg(3), 5)] },
    small: || from_to(7, 5, 2),
    large: || from_to(7, 3_000, 100),
    reference: |input, memory| {
        let mut copy: Vec<i64> = read(memory, input.at(0), input.size(1));
        copy.reverse();
        write(memory, input.at(2), &copy);
        None
    },
    c: Some(include_str!("../../kernels/reverse_copy.c")),
};

fn reverse_copy(checks: Checks) -> Function {
    checked_function(checks, "reverse_copy", ([I64; 5], None), |f, [data, len, output, output_len, rounds]| {
        let (data, output) = (Array::trapping(data, len, I64), Array::trapping(output, output_len, I64));
        f.repeat(rounds, |f| {
            f.for_range(0, len, |f, i| {
                let x = f.load(data, i);
                let last = f.sub(len, 1);
                let mirrored = f.sub(last, i);
                f.store(output, mirrored, x);
            });
        });
        f.ret_nothing();
    })
}

pub(crate) const INVARIANT_ELEMENT: Program = Program {
    name: "invariant-element",
    about: "The same element, with the same check, in every iteration.",
    tags: &["checked", "memory"],
    while_loops: 1,
    source: Source::Checked { build: invariant_element, limits: &[Limit::len(Place::Arg(1), 4)] },
    small: || Input::new().array(&ints(8, 8, 1000)).int(8).int(3).int(5),
    large: || Input::new().array(&ints(8, 8, 1000)).int(8).int(3).int(250_000),
    reference: |input, memory| {
        let x = read::<i64>(memory, input.at(0), input.size(1))[input.size(2)];
        let total = (0..input.get_int(3)).fold(0, |total, i| (total ^ i).wrapping_add(x));
        Some(Value::I64(total))
    },
    c: Some(include_str!("../../kernels/invariant_element.c")),
};

fn invariant_element(checks: Checks) -> Function {
    checked_function(checks, "invariant_element", ([I64; 4], Some(I64)), |f, [data, len, n, count]| {
        let array = Array::trapping(data, len, I64);
        let total = f.local(I64, 0);
        f.for_range(0, count, |f, i| {
            let mixed = f.op(Opcode::Bxor, total, i);
            let x = f.load(array, n);
            let next = f.add(mixed, x);
            f.set(total, next);
        });
        f.ret(total);
    })
}

pub(crate) const STENCIL3: Program = Program {
    name: "stencil3",
    about: "Neighbouring elements, of which two were already loaded in the iteration before.",
    tags: &["checked", "float"],
    while_loops: 2,
    source: Source::Checked { build: stencil3, limits: &[Limit::len(Place::Arg(3), 5)] },
    small: || line(6, 2),
    large: || line(3_000, 50),
    reference: |input, memory| {
        let data: Vec<f64> = read(memory, input.at(0), input.size(1));
        let means: Vec<f64> = data.windows(3).map(|x| (x[0] + x[1] + x[2]) * 0.3).collect();
        write(memory, input.at(2) + 8, &means);
        None
    },
    c: Some(include_str!("../../kernels/stencil3.c")),
};

/// Numbers, and room for as many.
fn line(count: usize, rounds: usize) -> Input {
    Input::new().array(&floats(9, count)).int(count).zeros::<f64>(count).int(count).int(rounds)
}

fn stencil3(checks: Checks) -> Function {
    checked_function(checks, "stencil3", ([I64; 5], None), |f, [data, len, output, output_len, rounds]| {
        let (data, output) = (Array::branching(data, len, F64), Array::branching(output, output_len, F64));
        let end = f.sub(len, 1);
        f.repeat(rounds, |f| {
            f.for_range(1, end, |f, i| {
                let before = f.sub(i, 1);
                let left = f.load(data, before);
                let middle = f.load(data, i);
                let after = f.add(i, 1);
                let right = f.load(data, after);
                let sum = f.add(left, middle);
                let sum = f.add(sum, right);
                let mean = f.mul(sum, 0.3);
                f.store(output, i, mean);
            });
        });
        f.ret_nothing();
    })
}

pub(crate) const HISTOGRAM: Program = Program {
    name: "histogram",
    about: "An index that comes from memory, so that its check cannot go away.",
    tags: &["checked"],
    while_loops: 2,
    source: Source::Checked { build: histogram, limits: &[Limit::len(Place::Arg(3), 4)] },
    small: || Input::new().array(&bytes(19, 6, 4)).int(6).zeros::<i64>(4).int(4).int(2),
    large: || Input::new().array(&bytes(10, 4_000, 200)).int(4_000).zeros::<i64>(200).int(200).int(60),
    reference: |input, memory| {
        let mut counts: Vec<i64> = read(memory, input.at(2), input.size(3));
        for byte in read::<u8>(memory, input.at(0), input.size(1)) {
            counts[usize::from(byte)] += input.get_int(4);
        }
        write(memory, input.at(2), &counts);
        None
    },
    c: Some(include_str!("../../kernels/histogram.c")),
};

fn histogram(checks: Checks) -> Function {
    checked_function(checks, "histogram", ([I64; 5], None), |f, [data, len, counts, counts_len, rounds]| {
        let data = Array::trapping(data, len, I8);
        let counts = Array::trapping(counts, counts_len, I64);
        f.repeat(rounds, |f| {
            f.for_range(0, len, |f, i| {
                let byte = f.load_byte(data, i);
                let old = f.load(counts, byte);
                let new = f.add(old, 1);
                f.store(counts, byte, new);
            });
        });
        f.ret_nothing();
    })
}
