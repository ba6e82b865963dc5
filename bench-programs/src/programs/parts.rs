//! Iterations, conditions and counts of which a part is known.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Function, Opcode};

use crate::build::{Array, function};
use crate::memory::{ints, read};
use crate::{Input, Program, Source, Value};

pub(crate) const TWO_PARTS: Program = Program {
    name: "two-parts",
    about: "The elements before one number are mixed, those from there on added: the counter decides.",
    tags: &["nest"],
    while_loops: 2,
    source: Source::Built(two_parts),
    small: || Input::new().array(&ints(1, 9, 1000)).int(9).int(4).int(2),
    large: || Input::new().array(&ints(1, 4_000, 1000)).int(4_000).int(1_800).int(20),
    reference: |input, memory| {
        let numbers = read::<i64>(memory, input.at(0), input.size(1));
        let middle = input.size(2);
        let round = |total: i64, _| {
            let mixed = numbers[..middle].iter().fold(total, |total, x| total ^ x);
            numbers[middle..].iter().fold(mixed, |total, x| total.wrapping_add(*x))
        };
        Some(Value::I64((0..input.get_int(3)).fold(0, round)))
    },
    c: Some(include_str!("../../kernels/two_parts.c")),
};

fn two_parts() -> Function {
    function("two_parts", [I64; 4], Some(I64), |f, [data, len, middle, rounds]| {
        let array = Array::unchecked(data, I64);
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            f.for_range(0, len, |f, i| {
                let x = f.load(array, i);
                let is_before = f.less(i, middle);
                f.if_else(
                    is_before,
                    |f| {
                        let mixed = f.op(Opcode::Bxor, total, x);
                        f.set(total, mixed);
                    },
                    |f| f.increase(total, x),
                );
            });
        });
        f.ret(total);
    })
}

pub(crate) const CLAMPED_NEIGHBOURS: Program = Program {
    name: "clamped-neighbours",
    about: "The neighbours of each element, where the first and the last one are their own.",
    tags: &["nest"],
    while_loops: 2,
    source: Source::Built(clamped_neighbours),
    small: || Input::new().array(&ints(1, 9, 1000)).int(9).int(2),
    large: || Input::new().array(&ints(1, 4_000, 1000)).int(4_000).int(20),
    reference: |input, memory| {
        let numbers = read::<i64>(memory, input.at(0), input.size(1));
        let last = numbers.len() - 1;
        let at = |i: usize| (numbers[i.saturating_sub(1)].wrapping_add(numbers[last.min(i + 1)])) ^ numbers[i];
        let sum = (0..numbers.len()).fold(0_i64, |sum, i| sum.wrapping_add(at(i)));
        Some(Value::I64(sum.wrapping_mul(input.get_int(2))))
    },
    c: Some(include_str!("../../kernels/clamped_neighbours.c")),
};

fn clamped_neighbours() -> Function {
    function("clamped_neighbours", [I64; 3], Some(I64), |f, [data, len, rounds]| {
        let array = Array::unchecked(data, I64);
        let total = f.local(I64, 0);
        let last = f.sub(len, 1);
        f.repeat(rounds, |f| {
            f.for_range(0, len, |f, i| {
                let x = f.load(array, i);
                let (left, right) = (f.local(I64, x), f.local(I64, x));
                let has_left = f.icmp(IntCC::SignedGreaterThan, i, 0);
                f.if_then(has_left, |f| {
                    let before = f.sub(i, 1);
                    let neighbour = f.load(array, before);
                    f.set(left, neighbour);
                });
                let has_right = f.less(i, last);
                f.if_then(has_right, |f| {
                    let behind = f.add(i, 1);
                    let neighbour = f.load(array, behind);
                    f.set(right, neighbour);
                });
                let sum = f.add(left, right);
                let mixed = f.op(Opcode::Bxor, sum, x);
                f.increase(total, mixed);
            });
        });
        f.ret(total);
    })
}

pub(crate) const BOTH_CONDITIONS: Program = Program {
    name: "both-conditions",
    about: "One condition of two parts, of which one is the same in every iteration.",
    tags: &["nest"],
    while_loops: 2,
    source: Source::Built(both_conditions),
    small: || Input::new().array(&ints(1, 9, 1000)).int(9).int(5).int(2),
    large: || Input::new().array(&ints(1, 4_000, 1000)).int(4_000).int(7).int(20),
    reference: |input, memory| {
        let numbers = read::<i64>(memory, input.at(0), input.size(1));
        let large = |x: &&i64| input.get_int(2) > 5 && **x > 500;
        let sum = numbers.iter().filter(large).fold(0_i64, |sum, x| sum.wrapping_add(*x));
        Some(Value::I64(sum.wrapping_mul(input.get_int(3))))
    },
    c: Some(include_str!("../../kernels/both_conditions.c")),
};

fn both_conditions() -> Function {
    function("both_conditions", [I64; 4], Some(I64), |f, [data, len, mode, rounds]| {
        let array = Array::unchecked(data, I64);
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            f.for_range(0, len, |f, i| {
                let x = f.load(array, i);
                let is_on = f.icmp(IntCC::SignedGreaterThan, mode, 5);
                let is_large = f.icmp(IntCC::SignedGreaterThan, x, 500);
                let both = f.op(Opcode::Band, is_on, is_large);
                f.if_then(both, |f| f.increase(total, x));
            });
        });
        f.ret(total);
    })
}

pub(crate) const GUARDED_DIVISION: Program = Program {
    name: "guarded-division",
    about: "A quotient that is the same for every odd number, and is asked for by these alone; the divisor was tested before.",
    tags: &["nest"],
    while_loops: 2,
    source: Source::Built(guarded_division),
    small: || Input::new().array(&ints(1, 9, 1000)).int(9).int(7).int(2),
    large: || Input::new().array(&ints(1, 4_000, 1000)).int(4_000).int(7).int(20),
    reference: |input, memory| {
        let numbers = read::<i64>(memory, input.at(0), input.size(1));
        let (divisor, rounds) = (input.get_int(2), input.get_int(3));
        let odd = numbers.iter().filter(|x| **x & 1 == 1).count() as i64;
        Some(Value::I64(if divisor == 0 { -1 } else { odd * (1_000_000 / divisor) * rounds }))
    },
    c: Some(include_str!("../../kernels/guarded_division.c")),
};

fn guarded_division() -> Function {
    function("guarded_division", [I64; 4], Some(I64), |f, [data, len, divisor, rounds]| {
        let array = Array::unchecked(data, I64);
        let total = f.local(I64, 0);
        let is_zero = f.equal(divisor, 0);
        f.if_else(
            is_zero,
            |f| f.set(total, -1),
            |f| {
                f.repeat(rounds, |f| {
                    f.for_range(0, len, |f, i| {
                        let x = f.load(array, i);
                        let is_odd = f.op(Opcode::Band, x, 1);
                        f.if_then(is_odd, |f| {
                            let dividend = f.add(1_000_000, 0);
                            let quotient = f.op(Opcode::Udiv, dividend, divisor);
                            f.increase(total, quotient);
                        });
                    });
                });
            },
        );
        f.ret(total);
    })
}

pub(crate) const FEW_EACH: Program = Program {
    name: "few-each",
    about: "Up to three more elements for each one, as its two lowest bits say.",
    tags: &["nest"],
    while_loops: 3,
    source: Source::Built(few_each),
    small: || Input::new().array(&ints(1, 12, 1000)).int(9).int(2),
    large: || Input::new().array(&ints(1, 4_003, 1000)).int(4_000).int(20),
    reference: |input, memory| {
        let numbers = read::<i64>(memory, input.at(0), input.size(1) + 3);
        let mut total = 0_i64;
        for _ in 0..input.get_int(2) {
            for i in 0..input.size(1) {
                let more = (numbers[i] & 3) as usize;
                total = numbers[i..i + more].iter().fold(total, |total, x| total ^ x.wrapping_mul(3));
            }
        }
        Some(Value::I64(total))
    },
    c: Some(include_str!("../../kernels/few_each.c")),
};

fn few_each() -> Function {
    function("few_each", [I64; 3], Some(I64), |f, [data, len, rounds]| {
        let array = Array::unchecked(data, I64);
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            f.for_range(0, len, |f, i| {
                let x = f.load(array, i);
                let more = f.op(Opcode::Band, x, 3);
                f.for_range(0, more, |f, j| {
                    let place = f.add(i, j);
                    let y = f.load(array, place);
                    let tripled = f.mul(y, 3);
                    let mixed = f.op(Opcode::Bxor, total, tripled);
                    f.set(total, mixed);
                });
            });
        });
        f.ret(total);
    })
}

pub(crate) const LATE_CHECK: Program = Program {
    name: "late-check",
    about: "A check that only the last iteration fails, which then leaves the loop.",
    tags: &["nest"],
    while_loops: 2,
    source: Source::Built(late_check),
    small: || Input::new().array(&ints(1, 9, 1000)).int(9).int(12).int(2),
    large: || Input::new().array(&ints(1, 4_000, 1000)).int(4_000).int(5_000).int(40),
    reference: |input, memory| {
        let numbers = read::<i64>(memory, input.at(0), input.size(1));
        let end = input.size(1).min(input.size(2));
        let sum = numbers[..end].iter().fold(end as i64, |sum, x| sum.wrapping_add(*x));
        Some(Value::I64(sum.wrapping_mul(input.get_int(3))))
    },
    c: Some(include_str!("../../kernels/late_check.c")),
};

fn late_check() -> Function {
    function("late_check", [I64; 4], Some(I64), |f, [data, len, count, rounds]| {
        let array = Array::unchecked(data, I64);
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            let i = f.local(I64, 0);
            f.while_loop(
                |f| f.less(i, count),
                |f| {
                    let is_outside = f.is_outside(i, len);
                    f.break_if(is_outside);
                    let x = f.load(array, i);
                    f.increase(total, x);
                    f.increase(i, 1);
                },
            );
            f.increase(total, i);
        });
        f.ret(total);
    })
}
