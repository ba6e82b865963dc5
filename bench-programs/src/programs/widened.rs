//! 32-bit WebAssembly with explicit bounds checks: addresses of 32 bits, widened for each access.

use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{Function, Opcode};

use crate::build::{Heap, checked_function};
use crate::memory::{ints, numbers, read, write};
use crate::{Checks, Input, Limit, Place, Program, Source, Value};

pub(crate) const WASM_SUM: Program = Program {
    name: "wasm-sum",
    about: "A counter of 32 bits, scaled and widened; the end of each access is compared with the size of the memory.",
    tags: &["checked"],
    while_loops: 2,
    source: Source::Checked { build: wasm_sum, limits: &[Limit::len(Place::Arg(1), 56)] },
    small: || heap(5, 2),
    large: || heap(4_000, 100),
    reference: |input, memory| {
        let data: Vec<i64> = read(memory, input.at(0) + input.size(2), input.size(3));
        Some(Value::I64(data.iter().sum::<i64>() * input.get_int(4)))
    },
    c: Some(include_str!("../../kernels/wasm_sum.c")),
};

/// A memory with its size, an address in it, how many numbers are there, and how often to walk over them.
fn heap(count: i32, rounds: usize) -> Input {
    let memory = ints(1, count as usize + 2, 1000);
    Input::new().array(&memory).int(8 * memory.len()).int32(16).int32(count).int(rounds)
}

fn wasm_sum(checks: Checks) -> Function {
    checked_function(checks, "wasm_sum", ([I64, I64, I32, I32, I64], Some(I64)), |f, [base, size, data, n, rounds]| {
        let heap = Heap::trapping(base, size);
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            f.for_range(0, n, |f, i| {
                let scaled = f.op(Opcode::Ishl, i, 3);
                let address = f.add(data, scaled);
                let x = f.heap_load(heap, I64, address, 0);
                f.increase(total, x);
            });
        });
        f.ret(total);
    })
}

/// Two arrays in one memory: where each is, how many elements they have, and how often to walk over them.
fn arrays(input: Input, count: i32, rounds: usize) -> Input {
    input.int32(0).int32(4 * count).int32(count).int(rounds)
}

fn elements(count: i32) -> Vec<i32> {
    numbers(2, 2 * count as usize, 1000)
}

pub(crate) const WASM_AXPY: Program = Program {
    name: "wasm-axpy",
    about: "The size of the memory is loaded for each access, from another alias region; ends are added with a check for overflow.",
    tags: &["checked", "memory"],
    while_loops: 2,
    source: Source::Checked { build: wasm_axpy, limits: &[Limit::len(Place::Field(1, 0), 40)] },
    small: || arrays(Input::new().array(&elements(5)).array(&[40_i64]), 5, 2),
    large: || arrays(Input::new().array(&elements(3_000)).array(&[24_000_i64]), 3_000, 60),
    reference: |input, memory| {
        let (at, count) = (input.at(0), input.size(4));
        let x: Vec<i32> = read(memory, at + input.size(2), count);
        let mut y: Vec<i32> = read(memory, at + input.size(3), count);
        for _ in 0..input.get_int(5) {
            y.iter_mut().zip(&x).for_each(|(y, x)| *y = y.wrapping_add(x.wrapping_mul(7)));
        }
        write(memory, at + input.size(3), &y);
        None
    },
    c: Some(include_str!("../../kernels/wasm_axpy.c")),
};

fn wasm_axpy(checks: Checks) -> Function {
    let params = [I64, I64, I32, I32, I32, I64];
    checked_function(checks, "wasm_axpy", (params, None), |f, [base, context, x, y, n, rounds]| {
        f.repeat(rounds, |f| {
            f.for_range(0, n, |f, i| {
                let scaled = f.op(Opcode::Ishl, i, 2);
                let (from, to) = (f.add(x, scaled), f.add(y, scaled));
                let size = f.context_field(I64, context, 0);
                let x = f.heap_load(Heap::careful(base, size), I32, from, 0);
                let size = f.context_field(I64, context, 0);
                let y = f.heap_load(Heap::careful(base, size), I32, to, 0);
                let product = f.mul(x, 7);
                let sum = f.add(y, product);
                let size = f.context_field(I64, context, 0);
                f.heap_store(Heap::careful(base, size), to, 0, sum);
            });
        });
        f.ret_nothing();
    })
}

pub(crate) const WASM_GUARDED: Program = Program {
    name: "wasm-guarded",
    about: "An address out of bounds becomes 0 by a Spectre guard, so that the access traps and not a check.",
    tags: &["checked"],
    while_loops: 2,
    source: Source::Checked { build: wasm_guarded, limits: &[Limit::len(Place::Arg(1), 40)] },
    small: || arrays(Input::new().array(&elements(5)).int(40), 5, 2),
    large: || arrays(Input::new().array(&elements(3_000)).int(24_000), 3_000, 60),
    reference: |input, memory| {
        let (at, count) = (input.at(0), input.size(4));
        let x: Vec<i32> = read(memory, at + input.size(2), count);
        let y: Vec<i32> = x.iter().map(|x| x * 3).collect();
        write(memory, at + input.size(3), &y);
        None
    },
    c: Some(include_str!("../../kernels/wasm_guarded.c")),
};

fn wasm_guarded(checks: Checks) -> Function {
    let params = [I64, I64, I32, I32, I32, I64];
    checked_function(checks, "wasm_guarded", (params, None), |f, [base, size, x, y, n, rounds]| {
        let heap = Heap::guarded(base, size);
        f.repeat(rounds, |f| {
            f.for_range(0, n, |f, i| {
                let scaled = f.op(Opcode::Ishl, i, 2);
                let (from, to) = (f.add(x, scaled), f.add(y, scaled));
                let x = f.heap_load(heap, I32, from, 0);
                let tripled = f.mul(x, 3);
                f.heap_store(heap, to, 0, tripled);
            });
        });
        f.ret_nothing();
    })
}
