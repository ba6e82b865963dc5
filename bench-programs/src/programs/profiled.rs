//! Numbers that the caller gives and that are nearly always the same: what a profile is for.

use cranelift_codegen::ir::types::{F64, I64};
use cranelift_codegen::ir::{Function, Opcode};

use crate::build::{Array, function};
use crate::memory::{floats, ints, read};
use crate::{Input, Program, Source, Value};

pub(crate) const STRIDED_SUM: Program = Program {
    name: "strided-sum",
    about: "A sum over each so many-th number, where the distance is nearly always 1.",
    tags: &["profile"],
    while_loops: 2,
    source: Source::Built(strided_sum),
    small: || Input::new().array(&ints(1, 12, 1000)).int(4).int(3).int(2),
    large: || Input::new().array(&ints(1, 4_000, 1000)).int(4_000).int(1).int(60),
    reference: |input, memory| {
        let stride = input.size(2);
        let numbers = read::<i64>(memory, input.at(0), input.size(1) * stride);
        Some(Value::I64(numbers.iter().step_by(stride).sum::<i64>() * input.get_int(3)))
    },
    c: Some(include_str!("../../kernels/strided_sum.c")),
};

fn strided_sum() -> Function {
    function("strided_sum", [I64; 4], Some(I64), |f, [data, len, stride, rounds]| {
        let array = Array::unchecked(data, I64);
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            f.for_range(0, len, |f, i| {
                let place = f.mul(i, stride);
                let x = f.load(array, place);
                f.increase(total, x);
            });
        });
        f.ret(total);
    })
}

pub(crate) const QUOTIENTS: Program = Program {
    name: "quotients",
    about: "Each number divided by one that is nearly always 10.",
    tags: &["profile"],
    while_loops: 2,
    source: Source::Built(quotients),
    small: || Input::new().array(&ints(1, 9, 1000)).int(9).int(7).int(2),
    large: || Input::new().array(&ints(1, 4_000, 1_000_000)).int(4_000).int(10).int(15),
    reference: |input, memory| {
        let numbers = read::<i64>(memory, input.at(0), input.size(1));
        let quotients = numbers.iter().fold(0, |sum, x| sum + x / input.get_int(2));
        Some(Value::I64(quotients * input.get_int(3)))
    },
    c: Some(include_str!("../../kernels/quotients.c")),
};

fn quotients() -> Function {
    function("quotients", [I64; 4], Some(I64), |f, [data, len, divisor, rounds]| {
        let array = Array::unchecked(data, I64);
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            f.for_range(0, len, |f, i| {
                let x = f.load(array, i);
                let quotient = f.op(Opcode::Udiv, x, divisor);
                f.increase(total, quotient);
            });
        });
        f.ret(total);
    })
}

pub(crate) const BUCKETS: Program = Program {
    name: "buckets",
    about: "Hashes reduced to the number of buckets, which is nearly always 64.",
    tags: &["profile"],
    while_loops: 2,
    source: Source::Built(buckets),
    small: || Input::new().array(&ints(1, 9, 1000)).int(9).int(7).int(2),
    large: || Input::new().array(&ints(1, 4_000, 1_000_000)).int(4_000).int(64).int(15),
    reference: |input, memory| {
        let numbers = read::<i64>(memory, input.at(0), input.size(1));
        let bucket = |x: &i64| x.wrapping_mul(HASH).cast_unsigned() % input.get_int(2).cast_unsigned();
        let sum = numbers.iter().map(bucket).fold(0, u64::wrapping_add);
        Some(Value::I64(sum.cast_signed().wrapping_mul(input.get_int(3))))
    },
    c: Some(include_str!("../../kernels/buckets.c")),
};

/// The factor of a multiplicative hash (Knuth): 2^64 by the golden ratio.
const HASH: i64 = 0x9E37_79B9_7F4A_7C15_u64.cast_signed();

fn buckets() -> Function {
    function("buckets", [I64; 4], Some(I64), |f, [data, len, count, rounds]| {
        let array = Array::unchecked(data, I64);
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            f.for_range(0, len, |f, i| {
                let x = f.load(array, i);
                let hash = f.mul(x, HASH);
                let bucket = f.op(Opcode::Urem, hash, count);
                f.increase(total, bucket);
            });
        });
        f.ret(total);
    })
}

pub(crate) const DIGIT_SUMS: Program = Program {
    name: "digit-sums",
    about: "The sums of the digits of numbers, in a base that is nearly always 10.",
    tags: &["profile", "nest"],
    while_loops: 3,
    source: Source::Built(digit_sums),
    small: || Input::new().array(&ints(1, 9, 1000)).int(9).int(7).int(2),
    large: || Input::new().array(&ints(1, 1_000, 1_000_000)).int(1_000).int(10).int(3),
    reference: |input, memory| {
        let base = input.get_int(2);
        let digits = |&x: &i64| std::iter::successors(Some(x), |x| Some(x / base).filter(|x| *x > 0)).map(|x| x % base);
        let numbers = read::<i64>(memory, input.at(0), input.size(1));
        Some(Value::I64(numbers.iter().flat_map(digits).sum::<i64>() * input.get_int(3)))
    },
    c: Some(include_str!("../../kernels/digit_sums.c")),
};

fn digit_sums() -> Function {
    function("digit_sums", [I64; 4], Some(I64), |f, [data, len, base, rounds]| {
        let array = Array::unchecked(data, I64);
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            f.for_range(0, len, |f, i| {
                let x = f.load(array, i);
                let rest = f.local(I64, x);
                f.while_loop(
                    |f| f.less(0, rest),
                    |f| {
                        let digit = f.op(Opcode::Urem, rest, base);
                        f.increase(total, digit);
                        let next = f.op(Opcode::Udiv, rest, base);
                        f.set(rest, next);
                    },
                );
            });
        });
        f.ret(total);
    })
}

pub(crate) const POWERS: Program = Program {
    name: "powers",
    about: "Numbers to a power that is nearly always 3.",
    tags: &["profile", "nest"],
    while_loops: 3,
    source: Source::Built(powers),
    small: || Input::new().array(&ints(1, 9, 1000)).int(9).int(5).int(2),
    large: || Input::new().array(&ints(1, 2_000, 1000)).int(2_000).int(3).int(20),
    reference: |input, memory| {
        let numbers = read::<i64>(memory, input.at(0), input.size(1));
        let power = |x: &i64| (0..input.get_int(2)).fold(1_i64, |power, _| power.wrapping_mul(*x));
        let sum = numbers.iter().map(power).fold(0, i64::wrapping_add);
        Some(Value::I64(sum.wrapping_mul(input.get_int(3))))
    },
    c: Some(include_str!("../../kernels/powers.c")),
};

fn powers() -> Function {
    function("powers", [I64; 4], Some(I64), |f, [data, len, exponent, rounds]| {
        let array = Array::unchecked(data, I64);
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            f.for_range(0, len, |f, i| {
                let x = f.load(array, i);
                let power = f.local(I64, 1);
                f.for_range(0, exponent, |f, _| {
                    let next = f.mul(power, x);
                    f.set(power, next);
                });
                f.increase(total, power);
            });
        });
        f.ret(total);
    })
}

pub(crate) const CHANNELS: Program = Program {
    name: "channels",
    about: "Pixels with so many channels, nearly always 3.",
    tags: &["profile", "nest"],
    while_loops: 3,
    source: Source::Built(channels),
    small: || Input::new().array(&ints(1, 12, 256)).int(3).int(4).int(2),
    large: || Input::new().array(&ints(1, 3_000, 256)).int(1_000).int(3).int(30),
    reference: |input, memory| {
        let channels = input.size(2);
        let samples = read::<i64>(memory, input.at(0), input.size(1) * channels);
        let weigh = |pixel: &[i64]| (1..).zip(pixel).map(|(weight, x)| weight * x).sum::<i64>() >> 2;
        Some(Value::I64(samples.chunks(channels).map(weigh).sum::<i64>() * input.get_int(3)))
    },
    c: Some(include_str!("../../kernels/channels.c")),
};

fn channels() -> Function {
    function("channels", [I64; 4], Some(I64), |f, [data, pixels, channels, rounds]| {
        let array = Array::unchecked(data, I64);
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            f.for_range(0, pixels, |f, pixel| {
                let start = f.mul(pixel, channels);
                let sum = f.local(I64, 0);
                f.for_range(0, channels, |f, channel| {
                    let place = f.add(start, channel);
                    let x = f.load(array, place);
                    let weight = f.add(channel, 1);
                    let part = f.mul(weight, x);
                    f.increase(sum, part);
                });
                let mean = f.op(Opcode::Sshr, sum, 2);
                f.increase(total, mean);
            });
        });
        f.ret(total);
    })
}

pub(crate) const NEAREST: Program = Program {
    name: "nearest",
    about: "The nearest of many points in a space that nearly always has 3 dimensions.",
    tags: &["profile", "nest"],
    while_loops: 3,
    source: Source::Built(nearest),
    small: || Input::new().array(&ints(1, 20, 1000)).array(&ints(2, 4, 1000)).int(5).int(4).int(2),
    large: || Input::new().array(&ints(1, 3_000, 1000)).array(&ints(2, 3, 1000)).int(1_000).int(3).int(30),
    reference: |input, memory| {
        let dimensions = input.size(3);
        let points = read::<i64>(memory, input.at(0), input.size(2) * dimensions);
        let place = read::<i64>(memory, input.at(1), dimensions);
        let distance = |point: &[i64]| point.iter().zip(&place).map(|(a, b)| (a - b) * (a - b)).sum::<i64>();
        let least = points.chunks(dimensions).map(distance).fold(i64::MAX, i64::min);
        Some(Value::I64(if input.get_int(4) > 0 { least } else { i64::MAX }))
    },
    c: Some(include_str!("../../kernels/nearest.c")),
};

fn nearest() -> Function {
    function("nearest", [I64; 5], Some(I64), |f, [points, place, count, dimensions, rounds]| {
        let (points, place) = (Array::unchecked(points, I64), Array::unchecked(place, I64));
        let least = f.local(I64, i64::MAX);
        f.repeat(rounds, |f| {
            f.for_range(0, count, |f, point| {
                let start = f.mul(point, dimensions);
                let distance = f.local(I64, 0);
                f.for_range(0, dimensions, |f, dimension| {
                    let at = f.add(start, dimension);
                    let a = f.load(points, at);
                    let b = f.load(place, dimension);
                    let difference = f.sub(a, b);
                    let square = f.mul(difference, difference);
                    f.increase(distance, square);
                });
                let is_nearer = f.less(distance, least);
                f.if_then(is_nearer, |f| f.set(least, distance));
            });
        });
        f.ret(least);
    })
}

pub(crate) const POLYNOMIALS: Program = Program {
    name: "polynomials",
    about: "A polynomial at many places, of a degree that is nearly always 4.",
    tags: &["profile", "float", "nest"],
    while_loops: 3,
    source: Source::Built(polynomials),
    small: || Input::new().array(&floats(1, 5)).array(&floats(2, 7)).int(5).int(7).int(2),
    large: || Input::new().array(&floats(1, 1_000)).array(&floats(2, 4)).int(1_000).int(4).int(20),
    reference: |input, memory| {
        let places = read::<f64>(memory, input.at(0), input.size(2));
        let factors = read::<f64>(memory, input.at(1), input.size(3));
        let value = |x: f64| factors.iter().fold(0.0, |value, factor| value * x + factor);
        let sum = (0..input.get_int(4)).fold(0.0, |sum, _| places.iter().fold(sum, |sum, &x| sum + value(x)));
        Some(Value::F64(sum))
    },
    c: Some(include_str!("../../kernels/polynomials.c")),
};

fn polynomials() -> Function {
    function("polynomials", [I64; 5], Some(F64), |f, [places, factors, count, degree, rounds]| {
        let (places, factors) = (Array::unchecked(places, F64), Array::unchecked(factors, F64));
        let sum = f.local(F64, 0.0);
        f.repeat(rounds, |f| {
            f.for_range(0, count, |f, i| {
                let x = f.load(places, i);
                let value = f.local(F64, 0.0);
                f.for_range(0, degree, |f, power| {
                    let factor = f.load(factors, power);
                    let more = f.op(Opcode::Fmul, value, x);
                    let next = f.op(Opcode::Fadd, more, factor);
                    f.set(value, next);
                });
                f.increase(sum, value);
            });
        });
        f.ret(sum);
    })
}

pub(crate) const FILTER: Program = Program {
    name: "filter",
    about: "A filter over an image with a kernel that nearly always has 3 rows and columns.",
    tags: &["profile", "nest"],
    while_loops: 4,
    source: Source::Built(filter),
    small: || Input::new().array(&ints(1, 42, 256)).int(7).int(6).array(&ints(2, 4, 16)).int(2),
    large: || Input::new().array(&ints(1, 6_400, 256)).int(80).int(80).array(&ints(2, 9, 16)).int(3),
    reference: |input, memory| {
        let [width, height, size] = [1, 2, 4].map(|arg| input.size(arg));
        let image = read::<i64>(memory, input.at(0), width * height);
        let kernel = read::<i64>(memory, input.at(3), size * size);
        let mut total = 0;
        for (y, x) in (0..height - size).flat_map(|y| (0..width - size).map(move |x| (y, x))) {
            let weighed = |place: usize| kernel[place] * image[(y + place / size) * width + x + place % size];
            total += (0..size * size).map(weighed).sum::<i64>() >> 4;
        }
        Some(Value::I64(total))
    },
    c: Some(include_str!("../../kernels/filter.c")),
};

fn filter() -> Function {
    function("filter", [I64; 5], Some(I64), |f, [image, width, height, kernel, size]| {
        let (image, kernel) = (Array::unchecked(image, I64), Array::unchecked(kernel, I64));
        let total = f.local(I64, 0);
        let rows = f.sub(height, size);
        let columns = f.sub(width, size);
        f.for_range(0, rows, |f, y| {
            f.for_range(0, columns, |f, x| {
                let sum = f.local(I64, 0);
                f.for_range(0, size, |f, row| {
                    let line = f.add(y, row);
                    let start = f.mul(line, width);
                    let start = f.add(start, x);
                    let weights = f.mul(row, size);
                    f.for_range(0, size, |f, column| {
                        let place = f.add(start, column);
                        let pixel = f.load(image, place);
                        let place = f.add(weights, column);
                        let weight = f.load(kernel, place);
                        let part = f.mul(weight, pixel);
                        f.increase(sum, part);
                    });
                });
                let mean = f.op(Opcode::Sshr, sum, 4);
                f.increase(total, mean);
            });
        });
        f.ret(total);
    })
}

pub(crate) const SMALL_MATRICES: Program = Program {
    name: "small-matrices",
    about: "Many products of small matrices, which nearly always have 3 rows and columns.",
    tags: &["profile", "nest"],
    while_loops: 4,
    source: Source::Built(small_matrices),
    small: || Input::new().array(&ints(1, 12, 100)).array(&ints(2, 4, 100)).int(3).int(2),
    large: || Input::new().array(&ints(1, 9_000, 100)).array(&ints(2, 9, 100)).int(1_000).int(3),
    reference: |input, memory| {
        let [count, size] = [2, 3].map(|arg| input.size(arg));
        let left = read::<i64>(memory, input.at(0), count * size * size);
        let right = read::<i64>(memory, input.at(1), size * size);
        let mut total = 0_i64;
        for matrix in left.chunks(size * size) {
            for (i, j) in (0..size).flat_map(|i| (0..size).map(move |j| (i, j))) {
                let element = (0..size).map(|k| matrix[i * size + k] * right[k * size + j]).sum::<i64>();
                total = total.wrapping_mul(3) ^ element;
            }
        }
        Some(Value::I64(total))
    },
    c: Some(include_str!("../../kernels/small_matrices.c")),
};

fn small_matrices() -> Function {
    function("small_matrices", [I64; 4], Some(I64), |f, [left, right, count, size]| {
        let (left, right) = (Array::unchecked(left, I64), Array::unchecked(right, I64));
        let total = f.local(I64, 0);
        let area = f.mul(size, size);
        f.for_range(0, count, |f, number| {
            let start = f.mul(number, area);
            f.for_range(0, size, |f, i| {
                f.for_range(0, size, |f, j| {
                    let sum = f.local(I64, 0);
                    f.for_range(0, size, |f, k| {
                        let row = f.mul(i, size);
                        let at = f.add(row, k);
                        let at = f.add(at, start);
                        let x = f.load(left, at);
                        let row = f.mul(k, size);
                        let at = f.add(row, j);
                        let y = f.load(right, at);
                        let part = f.mul(x, y);
                        f.increase(sum, part);
                    });
                    let mixed = f.mul(total, 3);
                    let next = f.op(Opcode::Bxor, mixed, sum);
                    f.set(total, next);
                });
            });
        });
        f.ret(total);
    })
}
