//! Rare calls that could change what the enclosing loop loads in every iteration.
//!
//! The cells of the array, `start`, `len` and `scale`, are the same in all iterations in which nothing is called.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{self, Function};

use crate::build::{Array, Emitter, Local, checked_function};
use crate::memory::{get, ints, read};
use crate::{Checks, Input, Limit, Place, Program, Source, Value};

const START: i32 = 0;
const LEN: i32 = 8;
const SCALE: i32 = 16;

/// The cells with the elements after them, of which one in so many reaches the limit of 1000; the limit.
fn cells(count: usize, distance: usize) -> Input {
    let mut data = ints(1, count, 1000);
    data.iter_mut().skip(2).step_by(distance).for_each(|x| *x += 1000);
    let mut memory = vec![24, count as i64, 3];
    memory.extend(data);
    Input::new().array(&memory).int(1000)
}

/// The sum over a part of the elements.
fn sum(input: &Input, memory: &[u8], indices: std::ops::Range<usize>) -> i64 {
    let scale: i64 = get(memory, input.at(0) + SCALE as usize);
    let data: Vec<i64> = read(memory, input.at(0) + 24, indices.end);
    let term = |index: usize| {
        let x = data[index] * scale;
        // The host function gives back the sum of its arguments.
        if data[index] >= input.get_int(1) { x + index as i64 } else { x }
    };
    indices.map(term).sum()
}

/// `total += data[index] * scale`, with a call if the element is large.
fn add_element(f: &mut Emitter<'_>, [cells, limit]: [ir::Value; 2], index: ir::Value, total: Local) {
    let start = f.field(I64, cells, START);
    let len = f.field(I64, cells, LEN);
    let data = f.add(cells, start);
    let x = f.load(Array::trapping(data, len, I64), index);
    let scale = f.field(I64, cells, SCALE);
    let scaled = f.mul(x, scale);
    let term = f.local(I64, scaled);
    let is_rare = f.icmp(IntCC::SignedGreaterThanOrEqual, x, limit);
    f.if_rarely(is_rare, |f| {
        let answer = f.call_host("host_report", &[scaled, index]);
        f.set(term, answer);
    });
    f.increase(total, term);
}

pub(crate) const RARE_CELLS: Program = Program {
    name: "rare-cells",
    about: "Pointer, length and factor are loaded for each element, as a call in one of 1000 iterations may change them.",
    tags: &["checked", "call", "memory"],
    while_loops: 2,
    source: Source::Checked { build: rare_cells, limits: &[Limit::len(Place::Field(0, 8), 5)] },
    small: || cells(5, 4).int(5).int(2),
    large: || cells(4_000, 1_000).int(4_000).int(60),
    reference: |input, memory| Some(Value::I64(sum(input, memory, 0..input.size(2)) * input.get_int(3))),
    c: Some(include_str!("../../kernels/rare_cells.c")),
};

fn rare_cells(checks: Checks) -> Function {
    checked_function(checks, "rare_cells", ([I64; 4], Some(I64)), |f, [cells, limit, count, rounds]| {
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            f.for_range(0, count, |f, i| {
                let index = f.get(i);
                add_element(f, [cells, limit], index, total);
            });
        });
        f.ret(total);
    })
}

pub(crate) const RARE_NEST: Program = Program {
    name: "rare-nest",
    about: "The same in two loops: what the outer one could keep, the call in the inner one may change too.",
    tags: &["checked", "call", "memory", "nest"],
    while_loops: 3,
    source: Source::Checked { build: rare_nest, limits: &[Limit::len(Place::Field(0, 8), 12)] },
    small: || cells(12, 5).int(3).int(4).int(2),
    large: || cells(4_000, 1_000).int(50).int(80).int(60),
    reference: |input, memory| {
        let count = input.size(2) * input.size(3);
        Some(Value::I64(sum(input, memory, 0..count) * input.get_int(4)))
    },
    c: Some(include_str!("../../kernels/rare_nest.c")),
};

fn rare_nest(checks: Checks) -> Function {
    checked_function(checks, "rare_nest", ([I64; 5], Some(I64)), |f, [cells, limit, rows, columns, rounds]| {
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            f.for_range(0, rows, |f, i| {
                f.for_range(0, columns, |f, j| {
                    let start = f.mul(i, columns);
                    let index = f.add(start, j);
                    add_element(f, [cells, limit], index, total);
                });
            });
        });
        f.ret(total);
    })
}
