//! Walks over arrays, without bounds checks.

use cranelift_codegen::ir::Function;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};

use crate::build::{Array, function};
use crate::memory::{ints, numbers, read, write};
use crate::{Input, Program, Source, Value};

pub(crate) const SUM: Program = Program {
    name: "sum",
    about: "The plainest loop over an array, nothing to check.",
    tags: &[],
    while_loops: 2,
    source: Source::Built(sum),
    small: || walked(5, 2),
    large: || walked(4_000, 100),
    reference: |input, memory| {
        let sum: i64 = read::<i64>(memory, input.at(0), input.size(1)).iter().sum();
        Some(Value::I64(sum * input.get_int(2)))
    },
    c: Some(include_str!("../../kernels/sum.c")),
};

fn walked(count: usize, rounds: usize) -> Input {
    Input::new().array(&ints(1, count, 1000)).int(count).int(rounds)
}

fn sum() -> Function {
    function("sum", [I64; 3], Some(I64), |f, [data, len, rounds]| {
        let array = Array::unchecked(data, I64);
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

pub(crate) const DIFFERENCES: Program = Program {
    name: "differences",
    about: "Three pointers move until one is equal to its end: most of an iteration is counting.",
    tags: &["memory", "nest"],
    while_loops: 2,
    source: Source::Clif(include_str!("../../kernels/differences.clif")),
    small: || pairs_of(6, 2),
    large: || pairs_of(3_001, 60),
    reference: |input, memory| {
        let [a, b]: [Vec<i32>; 2] = [0, 1].map(|array| read(memory, input.at(array), input.size(3)));
        let differences: Vec<_> = a.iter().zip(&b).map(|(x, y)| x - y).collect();
        write(memory, input.at(2), &differences);
        None
    },
    c: Some(include_str!("../../kernels/differences.c")),
};

/// Two arrays and room for a third.
fn pairs_of(count: usize, rounds: usize) -> Input {
    let [a, b] = [5, 6].map(|seed| numbers::<i32>(seed, count, 1000));
    Input::new().array(&a).array(&b).zeros::<i32>(count).int(count).int(rounds)
}

pub(crate) const EARLY_EXIT: Program = Program {
    name: "early-exit",
    about: "A linear search, which has a second exit.",
    tags: &[],
    while_loops: 2,
    source: Source::Built(early_exit),
    small: || haystack(6, 4, 2),
    large: || haystack(8_000, 7_900, 60),
    reference: |input, memory| {
        let array: Vec<i32> = read(memory, input.at(0), input.size(1));
        let found = array.iter().position(|&x| i64::from(x) == input.get_int(2));
        Some(Value::I64(found.unwrap_or(array.len()) as i64 * input.get_int(3)))
    },
    c: Some(include_str!("../../kernels/early_exit.c")),
};

/// Numbers from 0 to 99, and 100 in one place.
fn haystack(count: usize, place: usize, rounds: usize) -> Input {
    let mut array: Vec<i32> = numbers(2, count, 100);
    array[place] = 100;
    Input::new().array(&array).int(count).int32(100).int(rounds)
}

fn early_exit() -> Function {
    function("early_exit", [I64, I64, I32, I64], Some(I64), |f, [data, len, wanted, rounds]| {
        let array = Array::unchecked(data, I32);
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            let i = f.local(I64, 0);
            f.while_loop(
                |f| f.less(i, len),
                |f| {
                    let x = f.load(array, i);
                    let found = f.equal(x, wanted);
                    f.break_if(found);
                    f.increase(i, 1);
                },
            );
            f.increase(total, i);
        });
        f.ret(total);
    })
}

pub(crate) const SKIP_ZEROS: Program = Program {
    name: "skip-zeros",
    about: "A `continue`, so that the loop has two latches.",
    tags: &[],
    while_loops: 2,
    source: Source::Built(skip_zeros),
    small: || zeros_between(7, 2),
    large: || zeros_between(4_000, 50),
    reference: |input, memory| {
        let array: Vec<i64> = read(memory, input.at(0), input.size(1));
        let others = array.iter().copied().filter(|&x| x != 0);
        let rounds = (0..input.get_int(2)).flat_map(|_| others.clone());
        Some(Value::I64(rounds.fold(1, i64::wrapping_mul)))
    },
    c: Some(include_str!("../../kernels/skip_zeros.c")),
};

/// Odd numbers, so that no product becomes 0, and every fourth is 0.
fn zeros_between(count: usize, rounds: usize) -> Input {
    let mut array = odd_ints(3, count);
    array.iter_mut().skip(2).step_by(4).for_each(|x| *x = 0);
    Input::new().array(&array).int(count).int(rounds)
}

fn odd_ints(seed: u64, count: usize) -> Vec<i64> {
    ints(seed, count, 1000).into_iter().map(|x| x | 1).collect()
}

fn skip_zeros() -> Function {
    function("skip_zeros", [I64; 3], Some(I64), |f, [data, len, rounds]| {
        let array = Array::unchecked(data, I64);
        let product = f.local(I64, 1);
        f.repeat(rounds, |f| {
            let i = f.local(I64, 0);
            f.while_loop(
                |f| f.less(i, len),
                |f| {
                    let x = f.load(array, i);
                    f.increase(i, 1);
                    let is_zero = f.equal(x, 0);
                    f.continue_if(is_zero);
                    let next = f.mul(product, x);
                    f.set(product, next);
                },
            );
        });
        f.ret(product);
    })
}

pub(crate) const ARGMAX: Program = Program {
    name: "argmax",
    about: "A conditional update of two loop-carried values.",
    tags: &[],
    while_loops: 2,
    source: Source::Built(argmax),
    small: || walked(5, 2),
    large: || walked(4_000, 60),
    reference: |input, memory| {
        let array: Vec<i64> = read(memory, input.at(0), input.size(1));
        let (mut best, mut place) = (-1, -1);
        for (index, &x) in (0..).zip(&array) {
            if x > best {
                (best, place) = (x, index);
            }
        }
        Some(Value::I64(place * input.get_int(2)))
    },
    c: Some(include_str!("../../kernels/argmax.c")),
};

fn argmax() -> Function {
    function("argmax", [I64; 3], Some(I64), |f, [data, len, rounds]| {
        let array = Array::unchecked(data, I64);
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            let (best, place) = (f.local(I64, -1), f.local(I64, -1));
            f.for_range(0, len, |f, i| {
                let x = f.load(array, i);
                let is_better = f.icmp(IntCC::SignedGreaterThan, x, best);
                f.if_then(is_better, |f| {
                    f.set(best, x);
                    f.set(place, i);
                });
            });
            f.increase(total, place);
        });
        f.ret(total);
    })
}

pub(crate) const SCALE_RELOAD: Program = Program {
    name: "scale-reload",
    about: "A load that looks invariant but may alias the store next to it, so it has to stay.",
    tags: &["memory"],
    while_loops: 2,
    source: Source::Built(scale_reload),
    small: || scaled((5, 2), 2),
    large: || scaled((3_000, 2_000), 120),
    reference: scale_reload_reference,
    c: Some(include_str!("../../kernels/scale_reload.c")),
};

/// The scale is one of the output's own elements.
fn scaled((count, scale): (usize, usize), rounds: usize) -> Input {
    let output = odd_ints(4, count);
    Input::new().array(&output).array(&odd_ints(5, count)).int(scale).int(count).int(rounds)
}

fn scale_reload_reference(input: &Input, memory: &mut [u8]) -> Option<Value> {
    let (scale, count) = (input.size(2), input.size(3));
    let mut output: Vec<i64> = read(memory, input.at(0), count);
    let data: Vec<i64> = read(memory, input.at(1), count);
    for _ in 0..input.get_int(4) {
        for (index, x) in data.iter().enumerate() {
            output[index] = x.wrapping_mul(output[scale]);
        }
    }
    write(memory, input.at(0), &output);
    None
}

fn scale_reload() -> Function {
    function("scale_reload", [I64; 5], None, |f, [output, data, scale, len, rounds]| {
        let (output, data) = (Array::unchecked(output, I64), Array::unchecked(data, I64));
        f.repeat(rounds, |f| {
            f.for_range(0, len, |f, i| {
                let x = f.load(data, i);
                let factor = f.load(output, scale);
                let product = f.mul(x, factor);
                f.store(output, i, product);
            });
        });
        f.ret_nothing();
    })
}
