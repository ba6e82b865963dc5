//! Searching and sorting.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I64};
use cranelift_codegen::ir::{Function, Opcode};

use crate::build::{Array, checked_function};
use crate::memory::{ints, read, write};
use crate::{Checks, Input, Limit, Place, Program, Source, Value};

pub(crate) const INSERTION_SORT: Program = Program {
    name: "insertion-sort",
    about: "An inner loop that stops at a condition on memory which it has itself changed.",
    tags: &["checked", "memory", "nest"],
    while_loops: 3,
    source: Source::Checked { build: insertion_sort, limits: &[Limit::len(Place::Arg(3), 6)] },
    small: || Input::new().array(&ints(1, 6, 1000)).zeros::<i64>(6).int(6).int(6),
    large: || Input::new().array(&ints(1, 900, 1000)).zeros::<i64>(900).int(900).int(900),
    reference: |input, memory| {
        let mut sorted: Vec<i64> = read(memory, input.at(0), input.size(2));
        sorted.sort_unstable();
        write(memory, input.at(1), &sorted);
        None
    },
    c: Some(include_str!("../../kernels/insertion_sort.c")),
};

fn insertion_sort(checks: Checks) -> Function {
    checked_function(checks, "insertion_sort", ([I64; 4], None), |f, [source, sorted, len, sorted_len]| {
        let (source, sorted) = (Array::trapping(source, len, I64), Array::trapping(sorted, sorted_len, I64));
        f.for_range(0, len, |f, i| {
            let x = f.load(source, i);
            f.store(sorted, i, x);
        });
        f.for_range(1, len, |f, i| {
            let x = f.load(sorted, i);
            let j = f.local(I64, i);
            f.while_loop(
                |f| f.icmp(IntCC::SignedGreaterThan, j, 0),
                |f| {
                    let left = f.sub(j, 1);
                    let y = f.load(sorted, left);
                    let fits = f.icmp(IntCC::SignedLessThanOrEqual, y, x);
                    f.break_if(fits);
                    f.store(sorted, j, y);
                    f.set(j, left);
                },
            );
            f.store(sorted, j, x);
        });
        f.ret_nothing();
    })
}

pub(crate) const BINARY_SEARCH: Program = Program {
    name: "binary-search",
    about: "An inner loop without a counter: the bounds of an interval close in.",
    tags: &["checked", "nest"],
    while_loops: 2,
    source: Source::Checked { build: binary_search, limits: &[] },
    small: || keys(8, 5),
    large: || keys(1_000, 6_000),
    reference: |input, memory| {
        let sorted: Vec<i64> = read(memory, input.at(0), input.size(1));
        let keys: Vec<i64> = read(memory, input.at(2), input.size(3));
        let places = keys.iter().map(|key| sorted.partition_point(|x| x < key));
        Some(Value::I64(places.sum::<usize>() as i64))
    },
    c: Some(include_str!("../../kernels/binary_search.c")),
};

fn keys(count: usize, searches: usize) -> Input {
    let mut sorted = ints(2, count, 10_000);
    sorted.sort_unstable();
    Input::new().array(&sorted).int(count).array(&ints(3, searches, 10_000)).int(searches)
}

fn binary_search(checks: Checks) -> Function {
    checked_function(checks, "binary_search", ([I64; 4], Some(I64)), |f, [sorted, len, keys, searches]| {
        let (sorted, keys) = (Array::branching(sorted, len, I64), Array::branching(keys, searches, I64));
        let total = f.local(I64, 0);
        f.for_range(0, searches, |f, search| {
            let key = f.load(keys, search);
            let (low, high) = (f.local(I64, 0), f.local(I64, len));
            f.while_loop(
                |f| f.less(low, high),
                |f| {
                    let sum = f.add(low, high);
                    let middle = f.op(Opcode::Ushr, sum, 1);
                    let x = f.load(sorted, middle);
                    let is_left = f.less(x, key);
                    f.if_else(
                        is_left,
                        |f| {
                            let next = f.add(middle, 1);
                            f.set(low, next);
                        },
                        |f| f.set(high, middle),
                    );
                },
            );
            f.increase(total, low);
        });
        f.ret(total);
    })
}

pub(crate) const SIEVE: Program = Program {
    name: "sieve",
    about: "Stores with a stride that only the outer loop knows.",
    tags: &["checked", "memory", "nest"],
    while_loops: 3,
    source: Source::Checked { build: sieve, limits: &[Limit::len(Place::Arg(1), 12)] },
    small: || Input::new().zeros::<u8>(12).int(12).int(12),
    large: || Input::new().zeros::<u8>(50_000).int(50_000).int(50_000),
    reference: sieve_reference,
    c: Some(include_str!("../../kernels/sieve.c")),
};

fn sieve_reference(input: &Input, memory: &mut [u8]) -> Option<Value> {
    let len = input.size(2);
    let is_prime = |x: usize| x < 2 || (2..).take_while(|d| d * d <= x).all(|d| !x.is_multiple_of(d));
    let flags: Vec<u8> = (0..len).map(|x| u8::from(is_prime(x))).collect();
    write(memory, input.at(0), &flags);
    Some(Value::I64(flags.iter().skip(2).filter(|&&flag| flag == 1).count() as i64))
}

fn sieve(checks: Checks) -> Function {
    checked_function(checks, "sieve", ([I64; 3], Some(I64)), |f, [flags, flags_len, len]| {
        let flags = Array::trapping(flags, flags_len, I8);
        let count = f.local(I64, 0);
        f.for_range(0, len, |f, i| f.store(flags, i, 1));
        f.for_range(2, len, |f, i| {
            let flag = f.load(flags, i);
            f.if_then(flag, |f| {
                f.increase(count, 1);
                let square = f.mul(i, i);
                let j = f.local(I64, square);
                f.while_loop(
                    |f| f.less(j, len),
                    |f| {
                        f.store(flags, j, 0);
                        f.increase(j, i);
                    },
                );
            });
        });
        f.ret(count);
    })
}
