//! Reductions: each iteration waits for the operation of the one before, and for nothing else.

use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{Function, Opcode};

use crate::build::{Array, function};
use crate::memory::{ints, numbers, read};
use crate::{Input, Program, Source, Value};

pub(crate) const PRODUCT: Program = Program {
    name: "product",
    about: "A product of all elements: a multiplication takes three cycles, and the next one waits for it.",
    tags: &["nest"],
    while_loops: 2,
    source: Source::Built(product),
    small: || Input::new().array(&ints(1, 9, 1000)).int(9).int(2),
    large: || Input::new().array(&ints(1, 4_001, 1000)).int(4_001).int(50),
    reference: |input, memory| {
        let values = read::<i64>(memory, input.at(0), input.size(1));
        let round = |product: i64, _| values.iter().fold(product, |product, x| product.wrapping_mul(x | 1));
        Some(Value::I64((0..input.get_int(2)).fold(1, round)))
    },
    c: Some(include_str!("../../kernels/product.c")),
};

fn product() -> Function {
    function("product", [I64; 3], Some(I64), |f, [data, len, rounds]| {
        let array = Array::unchecked(data, I64);
        let total = f.local(I64, 1);
        f.repeat(rounds, |f| {
            f.for_range(0, len, |f, i| {
                let x = f.load(array, i);
                let odd = f.op(Opcode::Bor, x, 1);
                let next = f.mul(total, odd);
                f.set(total, next);
            });
        });
        f.ret(total);
    })
}

pub(crate) const EXTREMES: Program = Program {
    name: "extremes",
    about: "The smallest and the largest element, each a comparison and a choice that the next iteration waits for.",
    tags: &["nest"],
    while_loops: 2,
    source: Source::Built(extremes),
    small: || Input::new().array(&numbers::<i32>(1, 9, 1000)).int(9).int(2),
    large: || Input::new().array(&numbers::<i32>(1, 4_001, 1 << 31)).int(4_001).int(50),
    reference: |input, memory| {
        let values = read::<i32>(memory, input.at(0), input.size(1));
        let (least, most) =
            (values.iter().copied().fold(0x7fff_ffff, i32::min), values.iter().copied().fold(0, i32::max));
        Some(Value::I32(most.wrapping_sub(least)))
    },
    c: Some(include_str!("../../kernels/extremes.c")),
};

fn extremes() -> Function {
    function("extremes", [I64; 3], Some(I32), |f, [data, len, rounds]| {
        let array = Array::unchecked(data, I32);
        let (least, most) = (f.local(I32, 0x7fff_ffff), f.local(I32, 0));
        f.repeat(rounds, |f| {
            f.for_range(0, len, |f, i| {
                let x = f.load(array, i);
                let smaller = f.op(Opcode::Smin, least, x);
                f.set(least, smaller);
                let larger = f.op(Opcode::Smax, most, x);
                f.set(most, larger);
            });
        });
        let range = f.sub(most, least);
        f.ret(range);
    })
}

pub(crate) const NUMBERED: Program = Program {
    name: "numbered",
    about: "A number of the loop is added to a product that the next iteration waits for.",
    tags: &[],
    while_loops: 1,
    source: Source::Built(numbered),
    small: || Input::new().int(9),
    large: || Input::new().int(100_001),
    reference: |input, _| {
        let next = |total: i64, i: i64| total.wrapping_mul(i + 1).wrapping_add(i);
        Some(Value::I64((0..input.get_int(0)).fold(0, next)))
    },
    c: Some(include_str!("../../kernels/numbered.c")),
};

fn numbered() -> Function {
    function("numbered", [I64], Some(I64), |f, [count]| {
        let total = f.local(I64, 0);
        f.for_range(0, count, |f, i| {
            let factor = f.add(i, 1);
            let product = f.mul(total, factor);
            let next = f.add(product, i);
            f.set(total, next);
        });
        f.ret(total);
    })
}

pub(crate) const CLAMPED_DISTANCE: Program = Program {
    name: "clamped-distance",
    about: "A sum of distances, each at most a limit: two short branches on what was loaded, which nobody can predict.",
    tags: &[],
    while_loops: 1,
    source: Source::Built(clamped_distance),
    small: || Input::new().array(&ints(1, 9, 1000)).array(&ints(2, 9, 1000)).int(9).int(300),
    large: || Input::new().array(&ints(1, 50_000, 1000)).array(&ints(2, 50_000, 1000)).int(50_000).int(300),
    reference: |input, memory| {
        let [a, b] = [0, 1].map(|index| read::<i64>(memory, input.at(index), input.size(2)));
        let distances = a.iter().zip(b).map(|(a, b)| (a - b).abs().min(input.get_int(3)));
        Some(Value::I64(distances.sum()))
    },
    c: Some(include_str!("../../kernels/clamped_distance.c")),
};

fn clamped_distance() -> Function {
    function("clamped_distance", [I64; 4], Some(I64), |f, [a, b, len, limit]| {
        let [a, b] = [a, b].map(|array| Array::unchecked(array, I64));
        let total = f.local(I64, 0);
        f.for_range(0, len, |f, i| {
            let (x, y) = (f.load(a, i), f.load(b, i));
            let difference = f.sub(x, y);
            let distance = f.local(I64, difference);
            let is_negative = f.less(difference, 0);
            f.if_then(is_negative, |f| {
                let positive = f.sub(0, difference);
                f.set(distance, positive);
            });
            let so_far = f.get(distance);
            let is_far = f.less(limit, so_far);
            f.if_then(is_far, |f| f.set(distance, limit));
            f.increase(total, distance);
        });
        f.ret(total);
    })
}
