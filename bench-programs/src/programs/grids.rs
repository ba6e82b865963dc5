//! Dynamic programming, cellular automata, and a matrix by columns.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I64};
use cranelift_codegen::ir::{self, Function, Opcode};

use crate::build::{Array, Emitter, Local, Operand, checked_function};
use crate::memory::{bytes, numbers, read, write};
use crate::{Checks, Input, Limit, Place, Program, Source, Value};

pub(crate) const EDIT_DISTANCE: Program = Program {
    name: "edit-distance",
    about: "Dynamic programming over two rows that change roles.",
    tags: &["checked", "memory", "nest"],
    while_loops: 3,
    source: Source::Checked { build: edit_distance, limits: &[Limit::len(Place::Arg(5), 8)] },
    small: || words(4, 3),
    large: || words(270, 250),
    reference: edit_distance_reference,
    c: Some(include_str!("../../kernels/edit_distance.c")),
};

fn words(a_len: usize, b_len: usize) -> Input {
    let (a, b) = (bytes(1, a_len, 4), bytes(2, b_len, 4));
    let rows = 2 * (b_len + 1);
    Input::new().array(&a).int(a_len).array(&b).int(b_len).zeros::<i64>(rows).int(rows)
}

fn edit_distance_reference(input: &Input, memory: &mut [u8]) -> Option<Value> {
    let a: Vec<u8> = read(memory, input.at(0), input.size(1));
    let b: Vec<u8> = read(memory, input.at(2), input.size(3));
    let mut rows = [vec![0; b.len() + 1], vec![0; b.len() + 1]];
    let (mut previous, mut current) = (0, 1);
    rows[previous] = (0..=b.len() as i64).collect();
    for (i, x) in (1..).zip(&a) {
        rows[current][0] = i;
        for (j, y) in b.iter().enumerate() {
            let replaced = rows[previous][j] + i64::from(x != y);
            let removed = rows[previous][j + 1] + 1;
            let added = rows[current][j] + 1;
            rows[current][j + 1] = replaced.min(removed).min(added);
        }
        std::mem::swap(&mut previous, &mut current);
    }
    write(memory, input.at(4), &rows.concat());
    Some(Value::I64(rows[previous][b.len()]))
}

fn edit_distance(checks: Checks) -> Function {
    checked_function(checks, "edit_distance", ([I64; 6], Some(I64)), |f, [a, a_len, b, b_len, rows, rows_len]| {
        let (a, b) = (Array::trapping(a, a_len, I8), Array::trapping(b, b_len, I8));
        let width = f.add(b_len, 1);
        let rows = Array::trapping(rows, rows_len, I64);
        let (previous, current) = (f.local(I64, 0), f.local(I64, width));
        f.for_range(0, width, |f, j| f.store(rows, j, j));
        f.for_range(0, a_len, |f, i| {
            let next = f.add(i, 1);
            f.store(rows, current, next);
            f.for_range(0, b_len, |f, j| {
                let (x, y) = (f.load(a, i), f.load(b, j));
                let differ = f.icmp(IntCC::NotEqual, x, y);
                let differ = f.widen(differ);
                let replaced = row_element(f, rows, previous, j);
                let replaced = f.add(replaced, differ);
                let after = f.add(j, 1);
                let removed = row_element(f, rows, previous, after);
                let removed = f.add(removed, 1);
                let added = row_element(f, rows, current, j);
                let added = f.add(added, 1);
                let best = f.op(Opcode::Smin, replaced, removed);
                let best = f.op(Opcode::Smin, best, added);
                let place = f.add(current, after);
                f.store(rows, place, best);
            });
            let old = f.get(previous);
            f.set(previous, current);
            f.set(current, old);
        });
        let result = row_element(f, rows, previous, b_len);
        f.ret(result);
    })
}

/// `array[start + index]`.
fn row_element(f: &mut Emitter<'_>, array: Array, start: Local, index: impl Into<Operand>) -> ir::Value {
    let place = f.add(start, index);
    f.load(array, place)
}

pub(crate) const GAME_OF_LIFE: Program = Program {
    name: "game-of-life",
    about: "A 3x3 neighbourhood as two loops of constant trip count inside two others.",
    tags: &["checked", "nest"],
    while_loops: 4,
    source: Source::Checked { build: game_of_life, limits: &[Limit::len(Place::Arg(4), 20)] },
    small: || cells(5, 4),
    large: || cells(140, 120),
    reference: game_of_life_reference,
    c: Some(include_str!("../../kernels/game_of_life.c")),
};

fn cells(width: usize, height: usize) -> Input {
    let old = bytes(3, width * height, 2);
    Input::new().array(&old).zeros::<u8>(width * height).int(width).int(height).int(width * height)
}

fn game_of_life_reference(input: &Input, memory: &mut [u8]) -> Option<Value> {
    let (width, height) = (input.size(2), input.size(3));
    let old: Vec<u8> = read(memory, input.at(0), width * height);
    let mut new: Vec<u8> = read(memory, input.at(1), width * height);
    for y in 1..height - 1 {
        for x in 1..width - 1 {
            let alive = old[y * width + x];
            let row = |y: usize| old[y * width + x - 1..][..3].iter().sum::<u8>();
            let neighbours = row(y - 1) + row(y) + row(y + 1) - alive;
            new[y * width + x] = u8::from((neighbours | alive) == 3);
        }
    }
    write(memory, input.at(1), &new);
    None
}

fn game_of_life(checks: Checks) -> Function {
    checked_function(checks, "game_of_life", ([I64; 5], None), |f, [old, new, width, height, len]| {
        let [old, new] = [old, new].map(|base| Array::trapping(base, len, I8));
        let (bottom, right) = (f.sub(height, 1), f.sub(width, 1));
        f.for_range(1, bottom, |f, y| {
            f.for_range(1, right, |f, x| {
                let sum = f.local(I64, 0);
                f.for_range(-1, 2, |f, dy| {
                    f.for_range(-1, 2, |f, dx| {
                        let row = f.add(y, dy);
                        let start = f.mul(row, width);
                        let column = f.add(x, dx);
                        let place = f.add(start, column);
                        let cell = f.load_byte(old, place);
                        f.increase(sum, cell);
                    });
                });
                let start = f.mul(y, width);
                let place = f.add(start, x);
                let alive = f.load_byte(old, place);
                // With 3 neighbours a cell is born, with 2 it stays.
                let neighbours = f.sub(sum, alive);
                let either = f.op(Opcode::Bor, neighbours, alive);
                let lives = f.equal(either, 3);
                f.store(new, place, lives);
            });
        });
        f.ret_nothing();
    })
}

pub(crate) const TRANSPOSE_WASM32: Program = Program {
    name: "transpose-wasm32",
    about: "A matrix is walked along its columns, with indices and addresses of 32 bits, as from a 32-bit WebAssembly module.",
    tags: &["nest"],
    while_loops: 3,
    source: Source::Clif(include_str!("../../kernels/transpose_wasm32.clif")),
    small: || transposed(3, 5, 2),
    large: || transposed(60, 70, 20),
    reference: |input, memory| {
        let [a_at, b_at] = [1, 2].map(|index| input.at(0) + input.size(index));
        let [rows, columns] = [3, 4].map(|index| input.size(index));
        let a: Vec<i32> = read(memory, a_at, rows * columns);
        let b: Vec<i32> = (0..rows * columns).map(|at| a[at % rows * columns + at / rows]).collect();
        write(memory, b_at, &b);
        None
    },
    c: Some(include_str!("../../kernels/transpose_wasm32.c")),
};

/// Both matrices in a 32-bit address space; nothing is at its start.
fn transposed(rows: i32, columns: i32, rounds: i32) -> Input {
    let len = rows * columns;
    let elements: Vec<i32> = numbers(3, 2 * len as usize + 16, 1000);
    Input::new().array(&elements).int32(64).int32(64 + 4 * len).int32(rows).int32(columns).int32(rounds)
}
