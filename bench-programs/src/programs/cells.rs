//! Places in memory that a register could stand for: what one iteration stores and the next one loads, what is stored again
//! before anybody looks, what is changed in some iterations only.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Function, Opcode};

use crate::build::{Array, function};
use crate::memory::{bytes, get, ints, numbers, read, write};
use crate::{Input, Program, Source, Value};

pub(crate) const RECURRENCE: Program = Program {
    name: "recurrence",
    about: "Each element is computed from the one before, which the iteration before has stored.",
    tags: &["memory"],
    while_loops: 2,
    source: Source::Built(recurrence),
    small: || series(5, 2),
    large: || series(2_000, 40),
    reference: |input, memory| {
        let len = input.size(3);
        let (mut a, b): (Vec<i64>, Vec<i64>) = (read(memory, input.at(0), len), read(memory, input.at(1), len));
        for i in 1..len {
            a[i] = a[i - 1].wrapping_mul(input.get_int(2)).wrapping_add(b[i]);
        }
        write(memory, input.at(0), &a);
        None
    },
    c: Some(include_str!("../../kernels/recurrence.c")),
};

fn series(len: usize, rounds: usize) -> Input {
    Input::new().array(&ints(1, len, 1000)).array(&ints(2, len, 1000)).int(3).int(len).int(rounds)
}

fn recurrence() -> Function {
    function("recurrence", [I64; 5], None, |f, [a, b, factor, len, rounds]| {
        let [a, b] = [a, b].map(|base| Array::unchecked(base, I64));
        f.repeat(rounds, |f| {
            f.for_range(1, len, |f, i| {
                let before = f.sub(i, 1);
                let last = f.load(a, before);
                let scaled = f.mul(last, factor);
                let x = f.load(b, i);
                let next = f.add(scaled, x);
                f.store(a, i, next);
            });
        });
        f.ret_nothing();
    })
}

pub(crate) const RECURRENCE_WASM32: Program = Program {
    name: "recurrence-wasm32",
    about: "The same with indices and addresses of 32 bits, as from a 32-bit WebAssembly module.",
    tags: &["memory"],
    while_loops: 2,
    source: Source::Clif(include_str!("../../kernels/recurrence_wasm32.clif")),
    small: || series_in_one(5, 2),
    large: || series_in_one(4_000, 20),
    reference: |input, memory| {
        let len = input.size(4);
        let [a_at, b_at] = [1, 2].map(|index| input.at(0) + input.size(index));
        let (mut a, b): (Vec<i32>, Vec<i32>) = (read(memory, a_at, len), read(memory, b_at, len));
        for i in 1..len {
            a[i] = a[i - 1].wrapping_mul(input.get_int(3) as i32).wrapping_add(b[i]);
        }
        write(memory, a_at, &a);
        None
    },
    c: Some(include_str!("../../kernels/recurrence_wasm32.c")),
};

/// Both arrays in a 32-bit address space; nothing is at its start.
fn series_in_one(len: i32, rounds: i32) -> Input {
    let elements: Vec<i32> = numbers(3, 2 * len as usize + 16, 1000);
    Input::new().array(&elements).int32(64).int32(64 + 4 * len).int32(3).int32(len).int32(rounds)
}

pub(crate) const BYTE_SUMS: Program = Program {
    name: "byte-sums",
    about: "Each byte becomes the sum of those up to it, counted in 32 bits: what the next iteration loads is extended.",
    tags: &["memory"],
    while_loops: 1,
    source: Source::Clif(include_str!("../../kernels/byte_sums.clif")),
    small: || Input::new().array(&bytes(5, 9, 256)).int(9),
    large: || Input::new().array(&bytes(5, 100_000, 256)).int(100_000),
    reference: |input, memory| {
        let mut sums: Vec<u8> = read(memory, input.at(0), input.size(1));
        for i in 1..sums.len() {
            sums[i] = sums[i].wrapping_add(sums[i - 1]);
        }
        write(memory, input.at(0), &sums);
        None
    },
    c: Some(include_str!("../../kernels/byte_sums.c")),
};

pub(crate) const OVERWRITTEN_STORE: Program = Program {
    name: "overwritten-store",
    about: "A store that the next iteration overwrites, before anybody can look.",
    tags: &["memory"],
    while_loops: 1,
    source: Source::Built(overwritten_store),
    small: || Input::new().array(&[-1_i64]).int(5),
    large: || Input::new().array(&[-1_i64]).int(200_000),
    reference: |input, memory| {
        let n = input.get_int(1);
        write(memory, input.at(0), &[n - 1]);
        Some(Value::I64((0..n).fold(0, |total, i| (total ^ i).wrapping_add(5))))
    },
    c: Some(include_str!("../../kernels/overwritten_store.c")),
};

fn overwritten_store() -> Function {
    function("overwritten_store", [I64, I64], Some(I64), |f, [progress, n]| {
        let total = f.local(I64, 0);
        f.for_range(0, n, |f, i| {
            f.set_field(progress, 0, i);
            let mixed = f.op(Opcode::Bxor, total, i);
            let next = f.add(mixed, 5);
            f.set(total, next);
        });
        f.ret(total);
    })
}

pub(crate) const CONDITIONAL_CELL: Program = Program {
    name: "conditional-cell",
    about: "A sum in memory that one iteration in four adds to.",
    tags: &["memory"],
    while_loops: 1,
    source: Source::Built(conditional_cell),
    small: || Input::new().array(&[7_i64]).int(9),
    large: || Input::new().array(&[7_i64]).int(100_000),
    reference: |input, memory| {
        let mut state = 1_i64;
        let mut hits: i64 = get(memory, input.at(0));
        for _ in 0..input.get_int(1) {
            state = state.wrapping_mul(FACTOR).wrapping_add(TERM);
            let bits = state as u64;
            if (bits >> 33) & 3 == 0 {
                hits = hits.wrapping_add((bits >> 40) as i64);
            }
        }
        write(memory, input.at(0), &[hits]);
        Some(Value::I64(state))
    },
    c: Some(include_str!("../../kernels/conditional_cell.c")),
};

/// Of a linear congruential generator (Knuth, MMIX).
const FACTOR: i64 = 6_364_136_223_846_793_005;
const TERM: i64 = 1_442_695_040_888_963_407;

fn conditional_cell() -> Function {
    function("conditional_cell", [I64, I64], Some(I64), |f, [hits, n]| {
        let state = f.local(I64, 1);
        f.for_range(0, n, |f, _| {
            let scaled = f.mul(state, FACTOR);
            let next = f.add(scaled, TERM);
            f.set(state, next);
            let high = f.op(Opcode::Ushr, state, 33);
            let bits = f.op(Opcode::Band, high, 3);
            let hit = f.icmp(IntCC::Equal, bits, 0);
            f.if_then(hit, |f| {
                let old = f.field(I64, hits, 0);
                let high = f.op(Opcode::Ushr, state, 40);
                let new = f.add(old, high);
                f.set_field(hits, 0, new);
            });
        });
        f.ret(state);
    })
}

pub(crate) const RUNNING_TOTAL: Program = Program {
    name: "running-total",
    about: "A total in a structure, beside the number of elements, and an array that may hold the structure for all that is known.",
    tags: &["memory"],
    while_loops: 2,
    source: Source::Built(running_total),
    small: || totaled(5, 2),
    large: || totaled(4_000, 40),
    reference: |input, memory| {
        let data: Vec<i64> = read(memory, input.at(1), input.size(2));
        let total: i64 = get(memory, input.at(0) + 8);
        let sum = data.iter().fold(0_i64, |sum, x| sum.wrapping_add(*x));
        write(memory, input.at(0) + 8, &[total.wrapping_add(sum.wrapping_mul(input.get_int(3)))]);
        None
    },
    c: Some(include_str!("../../kernels/running_total.c")),
};

/// The number of elements and the total, and the elements.
fn totaled(count: usize, rounds: usize) -> Input {
    Input::new().array(&[count as i64, 7]).array(&ints(6, count, 1000)).int(count).int(rounds)
}

fn running_total() -> Function {
    function("running_total", [I64; 4], None, |f, [state, data, _, rounds]| {
        let data = Array::unchecked(data, I64);
        f.repeat(rounds, |f| {
            let len = f.field(I64, state, 0);
            f.for_range(0, len, |f, i| {
                let x = f.load(data, i);
                let old = f.field(I64, state, 8);
                let new = f.add(old, x);
                f.set_field(state, 8, new);
            });
        });
        f.ret_nothing();
    })
}

pub(crate) const ROW_SUMS: Program = Program {
    name: "row-sums",
    about: "A matrix times a vector: the product of a row is added up in memory, which the matrix and the vector may be in.",
    tags: &["nest", "memory"],
    while_loops: 3,
    source: Source::Built(row_sums),
    small: || rows((3, 4), 2),
    large: || rows((60, 70), 40),
    reference: |input, memory| {
        let (rows, columns) = (input.size(3), input.size(4));
        let mut sums: Vec<i64> = read(memory, input.at(0), rows);
        let matrix: Vec<i64> = read(memory, input.at(1), rows * columns);
        let vector: Vec<i64> = read(memory, input.at(2), columns);
        for _ in 0..input.get_int(5) {
            for (sum, row) in sums.iter_mut().zip(matrix.chunks(columns)) {
                let product = row.iter().zip(&vector).fold(0_i64, |all, (x, y)| all.wrapping_add(x.wrapping_mul(*y)));
                *sum = sum.wrapping_add(product);
            }
        }
        write(memory, input.at(0), &sums);
        None
    },
    c: Some(include_str!("../../kernels/row_sums.c")),
};

fn rows((rows, columns): (usize, usize), rounds: usize) -> Input {
    let [sums, matrix, vector] =
        [(7, rows), (8, rows * columns), (9, columns)].map(|(seed, len)| ints(seed, len, 1000));
    Input::new().array(&sums).array(&matrix).array(&vector).int(rows).int(columns).int(rounds)
}

fn row_sums() -> Function {
    function("row_sums", [I64; 6], None, |f, [sums, matrix, vector, rows, columns, rounds]| {
        let [sums, matrix, vector] = [sums, matrix, vector].map(|base| Array::unchecked(base, I64));
        f.repeat(rounds, |f| {
            f.for_range(0, rows, |f, i| {
                f.for_range(0, columns, |f, j| {
                    let row = f.mul(i, columns);
                    let at = f.add(row, j);
                    let x = f.load(matrix, at);
                    let y = f.load(vector, j);
                    let product = f.mul(x, y);
                    let old = f.load(sums, i);
                    let new = f.add(old, product);
                    f.store(sums, i, new);
                });
            });
        });
        f.ret_nothing();
    })
}

pub(crate) const FIELD_SLOTS: Program = Program {
    name: "field-slots",
    about: "Locals of several types are fields of one stack slot, two of them written apart and read together.",
    tags: &["slots", "memory"],
    while_loops: 1,
    source: Source::Clif(include_str!("../../kernels/field_slots.clif")),
    small: || Input::new().int(5),
    large: || Input::new().int(40_000),
    reference: |input, _| {
        let step = |total: i64, i: i64| {
            let (low, high) = (i as u32, i as u32 ^ 7);
            total.wrapping_mul(3).wrapping_add((u64::from(high) << 32 | u64::from(low)) as i64)
        };
        Some(Value::I64((0..input.get_int(0)).fold(1, step)))
    },
    c: Some(include_str!("../../kernels/field_slots.c")),
};
