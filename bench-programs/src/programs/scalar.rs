//! Arithmetic only.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F64, I64};
use cranelift_codegen::ir::{self, Function, Opcode};

use crate::build::{Emitter, Local, function};
use crate::memory::{bytes, floats, random, read, write};
use crate::{Input, Program, Source, Value};

pub(crate) const COUNTED: Program = Program {
    name: "counted",
    about: "A counter with a step, and nothing in its way.",
    tags: &[],
    while_loops: 1,
    source: Source::Clif(include_str!("../../kernels/counted.clif")),
    small: || Input::new().int(10).int(3),
    large: || Input::new().int(750_000).int(3),
    reference: |input, _| {
        let numbers = (0..input.get_int(0)).step_by(input.size(1));
        Some(Value::I64(numbers.fold(0, |total, i| (total ^ i) + 1)))
    },
    c: Some(include_str!("../../kernels/counted.c")),
};

pub(crate) const DOWNWARD: Program = Program {
    name: "downward",
    about: "Counts down to 0.",
    tags: &[],
    while_loops: 1,
    source: Source::Clif(include_str!("../../kernels/downward.clif")),
    small: || Input::new().int(5),
    large: || Input::new().int(120_000),
    reference: |input, _| {
        let step = |total: i64, i| total.wrapping_mul(31).wrapping_add(i);
        Some(Value::I64((1..=input.get_int(0)).rev().fold(0, step)))
    },
    c: Some(include_str!("../../kernels/downward.c")),
};

pub(crate) const NARROW: Program = Program {
    name: "narrow",
    about: "Counter and sum have 16 bits, and the counter is unsigned.",
    tags: &[],
    while_loops: 1,
    source: Source::Clif(include_str!("../../kernels/narrow.clif")),
    small: || Input::new().array(&bytes(1, 5, 256)).int32(5),
    large: || Input::new().array(&bytes(1, 65_000, 256)).int32(65_000),
    reference: |input, memory| {
        let bytes: Vec<u8> = read(memory, input.at(0), input.size(1));
        let sum = bytes.iter().fold(0, |sum: u16, &byte| (sum ^ u16::from(byte)).wrapping_mul(3));
        Some(Value::I32(sum.into()))
    },
    c: Some(include_str!("../../kernels/narrow.c")),
};

pub(crate) const POPCOUNT: Program = Program {
    name: "popcount",
    about: "A do-while loop in a do-while loop: both have their test at the end.",
    tags: &["nest"],
    while_loops: 0,
    source: Source::Clif(include_str!("../../kernels/popcount.clif")),
    small: || Input::new().array(&[1_i64, 6, -1]).int(3),
    large: || {
        let words: Vec<i64> = random(2).map(|x| x as i64 | 1).take(7_500).collect();
        Input::new().array(&words).int(words.len())
    },
    reference: |input, memory| {
        let words: Vec<i64> = read(memory, input.at(0), input.size(1));
        Some(Value::I64(words.iter().map(|word| i64::from(word.count_ones())).sum()))
    },
    c: Some(include_str!("../../kernels/popcount.c")),
};

pub(crate) const POLYNOMIAL: Program = Program {
    name: "polynomial",
    about: "An inner do-while loop of constant trip count that loads the same coefficients each time.",
    tags: &["float", "memory", "nest"],
    while_loops: 1,
    source: Source::Clif(include_str!("../../kernels/polynomial.clif")),
    small: || Input::new().array(&floats(3, 8)).array(&floats(4, 3)).zeros::<f64>(3).int(3),
    large: || Input::new().array(&floats(3, 8)).array(&floats(4, 40_000)).zeros::<f64>(40_000).int(40_000),
    reference: |input, memory| {
        let coefficients: Vec<f64> = read(memory, input.at(0), 8);
        let points: Vec<f64> = read(memory, input.at(1), input.size(3));
        let horner = |x: f64| coefficients.iter().fold(0.0, |value, c| value * x + c);
        write(memory, input.at(2), &points.into_iter().map(horner).collect::<Vec<_>>());
        None
    },
    c: Some(include_str!("../../kernels/polynomial.c")),
};

pub(crate) const COLLATZ: Program = Program {
    name: "collatz",
    about: "A diamond in a loop whose trip count nobody can foretell.",
    tags: &["nest"],
    while_loops: 2,
    source: Source::Built(collatz),
    small: || Input::new().int(7),
    large: || Input::new().int(2_500),
    reference: |input, _| {
        let next = |&n: &i64| (n != 1).then(|| if n % 2 == 0 { n / 2 } else { 3 * n + 1 });
        let steps = |n| std::iter::successors(Some(n), next).count() as i64 - 1;
        Some(Value::I64((1..input.get_int(0)).map(steps).max().unwrap_or(0)))
    },
    c: Some(include_str!("../../kernels/collatz.c")),
};

fn collatz() -> Function {
    function("collatz", [I64], Some(I64), |f, [limit]| {
        let longest = f.local(I64, 0);
        f.for_range(1, limit, |f, start| {
            let (n, steps) = (f.local(I64, start), f.local(I64, 0));
            f.while_loop(
                |f| f.icmp(IntCC::NotEqual, n, 1),
                |f| {
                    let is_odd = f.op(Opcode::Band, n, 1);
                    f.if_else(
                        is_odd,
                        |f| {
                            let tripled = f.mul(n, 3);
                            let next = f.add(tripled, 1);
                            f.set(n, next);
                        },
                        |f| {
                            let half = f.op(Opcode::Ushr, n, 1);
                            f.set(n, half);
                        },
                    );
                    f.increase(steps, 1);
                },
            );
            let next = f.op(Opcode::Smax, longest, steps);
            f.set(longest, next);
        });
        f.ret(longest);
    })
}

pub(crate) const GCD: Program = Program {
    name: "gcd",
    about: "A division that may trap, after the very test that keeps it from doing so.",
    tags: &["nest"],
    while_loops: 2,
    source: Source::Built(gcd),
    small: || Input::new().int(12),
    large: || Input::new().int(5_001),
    reference: |input, _| {
        fn gcd(a: i64, b: i64) -> i64 {
            if b == 0 { a } else { gcd(b, a % b) }
        }
        let n = input.get_int(0);
        Some(Value::I64((1..n).map(|i| gcd(i, n)).sum()))
    },
    c: Some(include_str!("../../kernels/gcd.c")),
};

fn gcd() -> Function {
    function("gcd", [I64], Some(I64), |f, [n]| {
        let total = f.local(I64, 0);
        f.for_range(1, n, |f, i| {
            let (a, b) = (f.local(I64, i), f.local(I64, n));
            f.while_loop(
                |f| f.icmp(IntCC::NotEqual, b, 0),
                |f| {
                    let rest = f.op(Opcode::Urem, a, b);
                    f.set(a, b);
                    f.set(b, rest);
                },
            );
            f.increase(total, a);
        });
        f.ret(total);
    })
}

pub(crate) const INVARIANT_DIVISION: Program = Program {
    name: "invariant-division",
    about: "An invariant that may trap: it can leave the loop only after the loop's first test.",
    tags: &[],
    while_loops: 1,
    source: Source::Built(invariant_division),
    small: || Input::new().int(100).int(7).int(5),
    large: || Input::new().int(1_000_000_007).int(7).int(100_000),
    reference: |input, _| {
        let quotient = input.get_int(0) / input.get_int(1);
        let total = (0..input.get_int(2)).fold(0, |total, i| (total ^ i).wrapping_add(quotient));
        Some(Value::I64(total))
    },
    c: Some(include_str!("../../kernels/invariant_division.c")),
};

fn invariant_division() -> Function {
    function("invariant_division", [I64, I64, I64], Some(I64), |f, [a, b, count]| {
        let total = f.local(I64, 0);
        f.for_range(0, count, |f, i| {
            let mixed = f.op(Opcode::Bxor, total, i);
            let quotient = f.op(Opcode::Udiv, a, b);
            let next = f.add(mixed, quotient);
            f.set(total, next);
        });
        f.ret(total);
    })
}

pub(crate) const MANDELBROT: Program = Program {
    name: "mandelbrot",
    about: "Float arithmetic with an escape from the inner loop.",
    tags: &["float", "nest"],
    while_loops: 3,
    source: Source::Built(mandelbrot),
    small: || Input::new().int(4).int(3).int(10),
    large: || Input::new().int(54).int(36).int(100),
    reference: mandelbrot_reference,
    c: Some(include_str!("../../kernels/mandelbrot.c")),
};

fn mandelbrot_reference(input: &Input, _: &mut [u8]) -> Option<Value> {
    let (width, height, limit) = (input.get_int(0), input.get_int(1), input.get_int(2));
    let mut total = 0;
    for row in 0..height {
        for column in 0..width {
            let cx = column as f64 * (3.0 / width as f64) - 2.0;
            let cy = row as f64 * (2.0 / height as f64) - 1.0;
            let (mut x, mut y, mut steps) = (0.0, 0.0, 0);
            while steps < limit && x * x + y * y <= 4.0 {
                (x, y) = (x * x - y * y + cx, (x + x) * y + cy);
                steps += 1;
            }
            total += steps;
        }
    }
    Some(Value::I64(total))
}

fn mandelbrot() -> Function {
    function("mandelbrot", [I64, I64, I64], Some(I64), |f, [width, height, limit]| {
        let total = f.local(I64, 0);
        f.for_range(0, height, |f, row| {
            f.for_range(0, width, |f, column| {
                let cx = coordinate(f, column, (3.0, width), 2.0);
                let cy = coordinate(f, row, (2.0, height), 1.0);
                let (x, y) = (f.local(F64, 0.0), f.local(F64, 0.0));
                f.for_range(0, limit, |f, _| {
                    let (xx, yy) = (f.mul(x, x), f.mul(y, y));
                    let square = f.add(xx, yy);
                    let is_out = f.fcmp(FloatCC::GreaterThan, square, 4.0);
                    f.break_if(is_out);
                    let twice = f.add(x, x);
                    let product = f.mul(twice, y);
                    let next = f.add(product, cy);
                    f.set(y, next);
                    let difference = f.sub(xx, yy);
                    let next = f.add(difference, cx);
                    f.set(x, next);
                    f.increase(total, 1);
                });
            });
        });
        f.ret(total);
    })
}

/// `index * (extent / count) - shift`.
fn coordinate(f: &mut Emitter<'_>, index: Local, (extent, count): (f64, ir::Value), shift: f64) -> ir::Value {
    let (index, count) = (f.int_to_float(index), f.int_to_float(count));
    let step = f.op(Opcode::Fdiv, extent, count);
    let place = f.mul(index, step);
    f.sub(place, shift)
}
