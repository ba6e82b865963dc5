//! Conditions that are joined into a value before they are tested, as front ends without jumping code make them.

use cranelift_codegen::ir::Function;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I64};

use crate::build::{Array, function};
use crate::memory::{ints, read};
use crate::{Input, Program, Source, Value};

pub(crate) const MERGE_SUM: Program = Program {
    name: "merge-sum",
    about: "Two sorted arrays are merged as long as both have elements: `a && b` is a value, which the loop tests.",
    tags: &["nest"],
    while_loops: 1,
    source: Source::Built(merge_sum),
    small: || sorted(7, 9, 2),
    large: || sorted(2_000, 2_100, 20),
    reference: |input, memory| {
        let arrays = [0, 2].map(|number| read::<i64>(memory, input.at(number), input.size(number + 1)));
        let [left, right] = &arrays;
        let mut total = 0_i64;
        for _ in 0..input.get_int(4) {
            let mut places = (0, 0);
            while let (Some(&x), Some(&y)) = (left.get(places.0), right.get(places.1)) {
                total = total.wrapping_mul(3).wrapping_add(x.min(y));
                places = if x < y { (places.0 + 1, places.1) } else { (places.0, places.1 + 1) };
            }
        }
        Some(Value::I64(total))
    },
    c: Some(include_str!("../../kernels/merge_sum.c")),
};

/// Two sorted arrays of these lengths.
fn sorted(left: usize, right: usize, rounds: usize) -> Input {
    let [mut numbers, mut others] = [ints(1, left, 5_000), ints(2, right, 5_000)];
    numbers.sort_unstable();
    others.sort_unstable();
    Input::new().array(&numbers).int(left).array(&others).int(right).int(rounds)
}

fn merge_sum() -> Function {
    function("merge_sum", [I64; 5], Some(I64), |f, [left, left_len, right, right_len, rounds]| {
        let [left, right] = [left, right].map(|data| Array::unchecked(data, I64));
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            let [i, j] = [f.local(I64, 0), f.local(I64, 0)];
            f.while_loop(
                |f| {
                    let both = f.local(I8, 0);
                    let has_left = f.less(i, left_len);
                    f.if_then(has_left, |f| {
                        let has_right = f.less(j, right_len);
                        f.set(both, has_right);
                    });
                    f.get(both)
                },
                |f| {
                    let (x, y) = (f.load(left, i), f.load(right, j));
                    let tripled = f.mul(total, 3);
                    let is_less = f.less(x, y);
                    f.if_else(
                        is_less,
                        |f| {
                            let sum = f.add(tripled, x);
                            f.set(total, sum);
                            f.increase(i, 1);
                        },
                        |f| {
                            let sum = f.add(tripled, y);
                            f.set(total, sum);
                            f.increase(j, 1);
                        },
                    );
                },
            );
        });
        f.ret(total);
    })
}

pub(crate) const MIDDLE_EXIT: Program = Program {
    name: "middle-exit",
    about: "The exit is in the middle of the loop, behind a branch whose two edges meet.",
    tags: &["nest"],
    while_loops: 1,
    source: Source::Clif(include_str!("../../kernels/middle_exit.clif")),
    small: || Input::new().array(&ints(1, 9, 1000)).int(9).int(2),
    large: || Input::new().array(&ints(1, 4_000, 1000)).int(4_000).int(10),
    reference: |input, memory| {
        let numbers = read::<i64>(memory, input.at(0), input.size(1));
        let next = |total: i64, x: i64| if x & 1 == 1 { total.wrapping_add(x) } else { total ^ x };
        let mixed = |total: i64| total.wrapping_add((total as u64 >> 7) as i64);
        let (&first, rest) = numbers.split_first()?;
        let round = |total, _| rest.iter().fold(next(total, first), |total, &x| next(mixed(total), x));
        Some(Value::I64((0..input.get_int(2)).fold(0, round)))
    },
    c: Some(include_str!("../../kernels/middle_exit.c")),
};

pub(crate) const STOP_FLAG: Program = Program {
    name: "stop-flag",
    about: "A sum that ends at the first large number, or at the last one: both set a flag, which the loop tests.",
    tags: &["nest"],
    while_loops: 2,
    source: Source::Built(stop_flag),
    small: || Input::new().array(&ints(1, 9, 1000)).int(9).int(800).int(2),
    large: || Input::new().array(&ints(1, 4_000, 1000)).int(4_000).int(1_000).int(20),
    reference: |input, memory| {
        let numbers = read::<i64>(memory, input.at(0), input.size(1));
        let limit = input.get_int(2);
        let sum = numbers.iter().take_while(|&&x| x <= limit).fold(0_i64, |sum, &x| sum.wrapping_add(x));
        Some(Value::I64(sum.wrapping_mul(input.get_int(3))))
    },
    c: Some(include_str!("../../kernels/stop_flag.c")),
};

fn stop_flag() -> Function {
    function("stop_flag", [I64; 4], Some(I64), |f, [data, len, limit, rounds]| {
        let array = Array::unchecked(data, I64);
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            let (i, stop) = (f.local(I64, 0), f.local(I8, 0));
            f.while_loop(
                |f| f.equal(stop, 0),
                |f| {
                    let x = f.load(array, i);
                    let is_large = f.icmp(IntCC::SignedGreaterThan, x, limit);
                    f.if_else(
                        is_large,
                        |f| f.set(stop, 1),
                        |f| {
                            f.increase(total, x);
                            f.increase(i, 1);
                            let is_last = f.equal(i, len);
                            f.if_then(is_last, |f| f.set(stop, 1));
                        },
                    );
                },
            );
        });
        f.ret(total);
    })
}
