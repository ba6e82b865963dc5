//! Pointers, fields, stack slots, and values that live in memory.
//!
//! A pointer in memory is a distance from the first argument, because an input does not know its address.

use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Function, Opcode};

use crate::build::{Array, checked_function, function};
use crate::memory::{bytes, get, ints, read, write};
use crate::{Checks, Input, Limit, Place, Program, Source, Value};

pub(crate) const MEMORY_ACCUMULATOR: Program = Program {
    name: "memory-accumulator",
    about: "A sum that is kept in memory: `*p += a[i]`.",
    tags: &["memory"],
    while_loops: 1,
    source: Source::Clif(include_str!("../../kernels/memory_accumulator.clif")),
    small: || Input::new().array(&[7_i64]).array(&bytes(1, 5, 256)).int(5),
    large: || Input::new().array(&[7_i64]).array(&bytes(1, 450_000, 256)).int(450_000),
    reference: |input, memory| {
        let sum: i64 = read::<u8>(memory, input.at(1), input.size(2)).into_iter().map(i64::from).sum();
        let old: i64 = get(memory, input.at(0));
        write(memory, input.at(0), &[old + sum]);
        None
    },
    c: Some(include_str!("../../kernels/memory_accumulator.c")),
};

pub(crate) const SLOTS: Program = Program {
    name: "slots",
    about: "All locals are stack slots, as before any promotion to registers.",
    tags: &["slots", "memory"],
    while_loops: 1,
    source: Source::Built(slots),
    small: || Input::new().int(5),
    large: || Input::new().int(120_000),
    reference: |input, _| {
        let step = |total: i64, i| total.wrapping_mul(3).wrapping_add(i);
        Some(Value::I64((0..input.get_int(0)).fold(1, step)))
    },
    c: Some(include_str!("../../kernels/slots.c")),
};

fn slots() -> Function {
    function("slots", [I64], Some(I64), |f, [n]| {
        let (n, i, total) = (f.slot(n), f.slot(0), f.slot(1));
        f.while_loop(
            |f| {
                let (x, y) = (f.get_slot(i), f.get_slot(n));
                f.less(x, y)
            },
            |f| {
                let old = f.get_slot(total);
                let tripled = f.mul(old, 3);
                let x = f.get_slot(i);
                let new = f.add(tripled, x);
                f.set_slot(total, new);
                let x = f.get_slot(i);
                let next = f.add(x, 1);
                f.set_slot(i, next);
            },
        );
        let result = f.get_slot(total);
        f.ret(result);
    })
}

pub(crate) const STRUCT_FIELDS: Program = Program {
    name: "struct-fields",
    about: "Pointer, length and sum are fields that each iteration loads again, because it also stores one.",
    tags: &["checked", "memory"],
    while_loops: 2,
    source: Source::Checked { build: struct_fields, limits: &[] },
    small: || vector(5, 2),
    large: || vector(4_000, 60),
    reference: |input, memory| {
        let [start, len, sum]: [i64; 3] = [0, 8, 16].map(|field| get(memory, input.at(1) + field));
        let data: Vec<i64> = read(memory, input.at(0) + start as usize, len as usize);
        write(memory, input.at(1) + 16, &[data.iter().sum::<i64>() * input.get_int(2) + sum]);
        None
    },
    c: Some(include_str!("../../kernels/struct_fields.c")),
};

/// The data, and the fields `start`, `len` and `sum`.
fn vector(len: usize, rounds: usize) -> Input {
    Input::new().array(&ints(2, len + 1, 1000)).array(&[8, len as i64, 100]).int(rounds)
}

fn struct_fields(checks: Checks) -> Function {
    const START: i32 = 0;
    const LEN: i32 = 8;
    const SUM: i32 = 16;
    checked_function(checks, "struct_fields", ([I64; 3], None), |f, [base, vector, rounds]| {
        f.repeat(rounds, |f| {
            let i = f.local(I64, 0);
            f.while_loop(
                |f| {
                    let len = f.field(I64, vector, LEN);
                    f.less(i, len)
                },
                |f| {
                    let start = f.field(I64, vector, START);
                    let data = f.add(base, start);
                    let len = f.field(I64, vector, LEN);
                    let x = f.load(Array::trapping(data, len, I64), i);
                    let sum = f.field(I64, vector, SUM);
                    let sum = f.add(sum, x);
                    f.set_field(vector, SUM, sum);
                    f.increase(i, 1);
                },
            );
        });
        f.ret_nothing();
    })
}

pub(crate) const TAGGED_ARRAYS: Program = Program {
    name: "tagged-arrays",
    about: "The tag and the length of an object are checked before each access, as dynamic languages do, and sums of indices for overflow.",
    tags: &["memory"],
    while_loops: 1,
    source: Source::Clif(include_str!("../../kernels/tagged_arrays.clif")),
    small: || tagged_arrays(5),
    large: || tagged_arrays(20_000),
    reference: |input, memory| {
        let len = input.size(2);
        let from: Vec<i64> = read(memory, input.at(0), len + 3);
        let mut to: Vec<i64> = read(memory, input.at(1), len + 2);
        for i in 2..len + 2 {
            to[i] = from[i].wrapping_add(from[i + 1]);
        }
        write(memory, input.at(1), &to);
        Some(Value::I64(0))
    },
    c: Some(include_str!("../../kernels/tagged_arrays.c")),
};

/// Two objects with so many elements after a tag and a length, of which one has another element.
fn tagged_arrays(len: usize) -> Input {
    let object = |elements: &[i64]| [&[77, elements.len() as i64], elements].concat();
    Input::new().array(&object(&ints(1, len + 1, 1000))).array(&object(&vec![0; len])).int(len)
}

pub(crate) const OBJECT_ARRAYS: Program = Program {
    name: "object-arrays",
    about: "Objects say how long their arrays are, and where: tag, length and pointer are loaded for each access, beside stores to one array.",
    tags: &["memory"],
    while_loops: 1,
    source: Source::Clif(include_str!("../../kernels/object_arrays.clif")),
    small: || object_arrays(5),
    large: || object_arrays(20_000),
    reference: |input, memory| {
        let [len, from, to]: [i64; 3] =
            [(2, 8), (1, 16), (2, 16)].map(|(object, field)| get(memory, input.at(object) + field));
        let sums: Vec<i64> = read::<i64>(memory, input.at(0) + from as usize, len as usize)
            .into_iter()
            .map(|element| element.wrapping_add(input.get_int(3)))
            .collect();
        write(memory, input.at(0) + to as usize, &sums);
        Some(Value::I64(0))
    },
    c: Some(include_str!("../../kernels/object_arrays.c")),
};

/// The elements of two objects, each of which has a tag, a length and the distance of its elements.
fn object_arrays(len: usize) -> Input {
    let object = |distance: usize| [77, len as i64, distance as i64];
    let elements = [ints(1, len, 1000), vec![0; len]].concat();
    Input::new().array(&elements).array(&object(0)).array(&object(8 * len)).int(5)
}

pub(crate) const BOXED_LOOKUP: Program = Program {
    name: "boxed-lookup",
    about: "A chain of invariants: load a pointer, check it for null, load what it points to.",
    tags: &["checked", "memory"],
    while_loops: 1,
    source: Source::Checked { build: boxed_lookup, limits: &[Limit::number(Place::Field(1, 0), 0..1, 32)] },
    small: || boxed(5),
    large: || boxed(250_000),
    reference: |input, memory| {
        let distance = get::<i64>(memory, input.at(1)) as usize;
        let x: i64 = get(memory, input.at(0) + distance + 8);
        Some(Value::I64((0..input.get_int(2)).fold(0, |total, i| (total ^ i).wrapping_add(x))))
    },
    c: Some(include_str!("../../kernels/boxed_lookup.c")),
};

/// Some objects, the variable that refers to one of them, and how often to look.
fn boxed(count: usize) -> Input {
    Input::new().array(&[0_i64, 0, 0, 0, 99, 1234]).array(&[32_i64]).int(count)
}

fn boxed_lookup(checks: Checks) -> Function {
    checked_function(checks, "boxed_lookup", ([I64, I64, I64], Some(I64)), |f, [base, variable, count]| {
        let total = f.local(I64, 0);
        f.for_range(0, count, |f, i| {
            let mixed = f.op(Opcode::Bxor, total, i);
            let distance = f.field(I64, variable, 0);
            f.null_check(distance);
            let object = f.add(base, distance);
            let x = f.field(I64, object, 8);
            let next = f.add(mixed, x);
            f.set(total, next);
        });
        f.ret(total);
    })
}

pub(crate) const LINKED_LIST: Program = Program {
    name: "linked-list",
    about: "Every load needs the one of the iteration before, and the trip count is unknown.",
    tags: &["memory"],
    while_loops: 1,
    source: Source::Clif(include_str!("../../kernels/linked_list.clif")),
    small: || list(5),
    large: || list(32_000),
    reference: |input, memory| {
        let (base, mut node, mut total) = (input.at(0), input.size(1), 0_i64);
        while node != 0 {
            let [next, value]: [i64; 2] = [0, 8].map(|field| get(memory, base + node + field));
            (node, total) = (next as usize, total.wrapping_mul(3).wrapping_add(value));
        }
        Some(Value::I64(total))
    },
    c: Some(include_str!("../../kernels/linked_list.c")),
};

/// Nodes of `next` and `value`, linked across the memory; nothing is at distance 0.
fn list(count: usize) -> Input {
    let (nodes, first) = linked(count, 16);
    Input::new().array(&nodes).int(first)
}

/// Nodes of so many bytes, as the numbers that they consist of, and where the first one is.
fn linked(count: usize, size: usize) -> (Vec<i64>, usize) {
    let place = |position: usize| 1 + position * 7_919 % count;
    let mut nodes = ints(3, 2 * (count + 1), 1000);
    for position in 0..count {
        let is_last = position + 1 == count;
        nodes[2 * place(position)] = if is_last { 0 } else { (size * place(position + 1)) as i64 };
    }
    (nodes, size * place(0))
}

pub(crate) const LINKED_LIST_32: Program = Program {
    name: "linked-list-32",
    about: "A list in a memory of 32 bits: what is loaded is extended before it is loaded at.",
    tags: &["memory", "nest"],
    while_loops: 2,
    source: Source::Clif(include_str!("../../kernels/linked_list_32.clif")),
    small: || list_32(5, 2),
    large: || list_32(2_000, 40),
    reference: |input, memory| {
        let (base, mut total) = (input.at(0), 0_u32);
        for _ in 0..input.get_int(2) {
            let mut node = input.get_int(1) as usize;
            while node != 0 {
                let [next, value]: [u32; 2] = [0, 4].map(|field| get(memory, base + node + field));
                (node, total) = (next as usize, total ^ value);
            }
            total = total.wrapping_mul(3);
        }
        Some(Value::I32(total as i32))
    },
    c: Some(include_str!("../../kernels/linked_list_32.c")),
};

/// The same in half the bytes, and how often to walk.
fn list_32(count: usize, rounds: usize) -> Input {
    let (nodes, first) = linked(count, 8);
    let nodes: Vec<_> = nodes.into_iter().map(|number| number as u32).collect();
    Input::new().array(&nodes).int32(first as i32).int(rounds)
}
