//! Loops in loops.

use cranelift_codegen::ir::types::{F64, I32, I64};
use cranelift_codegen::ir::{Function, Opcode};

use crate::build::{Array, checked_function, function};
use crate::memory::{floats, numbers, random, read, write};
use crate::{Checks, Input, Limit, Place, Program, Source, Value};

pub(crate) const NEST3: Program = Program {
    name: "nest3",
    about: "Three counters and nothing else.",
    tags: &["nest"],
    while_loops: 3,
    source: Source::Clif(include_str!("../../kernels/nest3.clif")),
    small: || Input::new().int(3),
    large: || Input::new().int(60),
    reference: |input, _| {
        let n = input.get_int(0);
        let mut total = 0;
        for i in 0..n {
            for j in 0..n {
                for k in 0..n {
                    total = (total ^ (i + j)) + k;
                }
            }
        }
        Some(Value::I64(total))
    },
    c: Some(include_str!("../../kernels/nest3.c")),
};

pub(crate) const MATMUL: Program = Program {
    name: "matmul",
    about: "Row and column addresses, of which parts are invariant in the inner loops; the sum is in a register.",
    tags: &["checked", "float", "nest"],
    while_loops: 3,
    source: Source::Checked { build: matmul, limits: &[Limit::len(Place::Arg(4), 9)] },
    small: || float_matrices(3),
    large: || float_matrices(56),
    reference: matmul_reference,
    c: Some(include_str!("../../kernels/matmul.c")),
};

fn float_matrices(n: usize) -> Input {
    Input::new().array(&floats(1, n * n)).array(&floats(2, n * n)).zeros::<f64>(n * n).int(n).int(n * n)
}

fn matmul_reference(input: &Input, memory: &mut [u8]) -> Option<Value> {
    let n = input.size(3);
    let a: Vec<f64> = read(memory, input.at(0), n * n);
    let b: Vec<f64> = read(memory, input.at(1), n * n);
    let element = |(i, j)| (0..n).fold(0.0, |sum, k| sum + a[i * n + k] * b[k * n + j]);
    let c: Vec<f64> = (0..n * n).map(|place| element((place / n, place % n))).collect();
    write(memory, input.at(2), &c);
    None
}

fn matmul(checks: Checks) -> Function {
    checked_function(checks, "matmul", ([I64; 5], None), |f, [a, b, c, n, len]| {
        let [a, b, c] = [a, b, c].map(|base| Array::trapping(base, len, F64));
        f.for_range(0, n, |f, i| {
            f.for_range(0, n, |f, j| {
                let sum = f.local(F64, 0.0);
                f.for_range(0, n, |f, k| {
                    let row = f.mul(i, n);
                    let place = f.add(row, k);
                    let x = f.load(a, place);
                    let row = f.mul(k, n);
                    let place = f.add(row, j);
                    let y = f.load(b, place);
                    let product = f.mul(x, y);
                    f.increase(sum, product);
                });
                let row = f.mul(i, n);
                let place = f.add(row, j);
                f.store(c, place, sum);
            });
        });
        f.ret_nothing();
    })
}

pub(crate) const MATMUL_MEMORY: Program = Program {
    name: "matmul-memory",
    about: "The sum stays in memory, and indices have 32 bits, as from a 32-bit WebAssembly module.",
    tags: &["memory", "nest"],
    while_loops: 3,
    source: Source::Clif(include_str!("../../kernels/matmul_memory.clif")),
    small: || matrices_in_one(3),
    large: || matrices_in_one(48),
    reference: matmul_memory_reference,
    c: Some(include_str!("../../kernels/matmul_memory.c")),
};

/// Three matrices one after another in a 32-bit address space.
fn matrices_in_one(n: i32) -> Input {
    let len = n * n;
    let elements: Vec<i32> = numbers(3, 3 * len as usize, 100);
    Input::new().array(&elements).int32(0).int32(4 * len).int32(8 * len).int32(n)
}

fn matmul_memory_reference(input: &Input, memory: &mut [u8]) -> Option<Value> {
    let n = input.size(4);
    let [a, b, c] = [1, 2, 3].map(|index| input.at(0) + input.size(index));
    let (a, b): (Vec<i32>, Vec<i32>) = (read(memory, a, n * n), read(memory, b, n * n));
    let mut sums: Vec<i32> = read(memory, c, n * n);
    for (place, sum) in sums.iter_mut().enumerate() {
        *sum += (0..n).map(|k| a[place / n * n + k] * b[k * n + place % n]).sum::<i32>();
    }
    write(memory, c, &sums);
    None
}

pub(crate) const MATMUL_REGIONS: Program = Program {
    name: "matmul-regions",
    about: "The sum stays in memory, but in an alias region that nothing else is in.",
    tags: &["memory", "nest"],
    while_loops: 3,
    source: Source::Clif(include_str!("../../kernels/matmul_regions.clif")),
    small: || int_matrices(3),
    large: || int_matrices(48),
    reference: |input, memory| {
        let n = input.size(3);
        let (a, b): (Vec<i32>, Vec<i32>) = (read(memory, input.at(0), n * n), read(memory, input.at(1), n * n));
        let mut sums: Vec<i32> = read(memory, input.at(2), n * n);
        for (place, sum) in sums.iter_mut().enumerate() {
            *sum += (0..n).map(|k| a[place / n * n + k] * b[k * n + place % n]).sum::<i32>();
        }
        write(memory, input.at(2), &sums);
        None
    },
    c: Some(include_str!("../../kernels/matmul_regions.c")),
};

fn int_matrices(n: usize) -> Input {
    let matrix = |seed| numbers::<i32>(seed, n * n, 100);
    Input::new().array(&matrix(7)).array(&matrix(8)).array(&matrix(9)).int(n)
}

pub(crate) const FLOYD_WARSHALL: Program = Program {
    name: "floyd-warshall",
    about: "A conditional store to the matrix that is being read; 32-bit elements.",
    tags: &["checked", "memory", "nest"],
    while_loops: 4,
    source: Source::Checked { build: floyd_warshall, limits: &[Limit::len(Place::Arg(3), 16)] },
    small: || graph(4),
    large: || graph(46),
    reference: floyd_warshall_reference,
    c: Some(include_str!("../../kernels/floyd_warshall.c")),
};

/// About half of the edges exist; the sum of two infinities still has 31 bits.
fn graph(n: usize) -> Input {
    const INFINITY: i32 = 1_000_000_000;
    let edge = |number: u64| {
        if number.is_multiple_of(2) { INFINITY } else { (number % 1000) as i32 }
    };
    let edges: Vec<i32> = random(4).map(edge).take(n * n).collect();
    Input::new().array(&edges).zeros::<i32>(n * n).int(n).int(n * n)
}

fn floyd_warshall_reference(input: &Input, memory: &mut [u8]) -> Option<Value> {
    let n = input.size(2);
    let mut distance: Vec<i32> = read(memory, input.at(0), n * n);
    for k in 0..n {
        for i in 0..n {
            for j in 0..n {
                let detour = distance[i * n + k] + distance[k * n + j];
                distance[i * n + j] = distance[i * n + j].min(detour);
            }
        }
    }
    write(memory, input.at(1), &distance);
    None
}

fn floyd_warshall(checks: Checks) -> Function {
    checked_function(checks, "floyd_warshall", ([I64; 4], None), |f, [edges, distance, n, len]| {
        let count = f.mul(n, n);
        let [edges, distance] = [edges, distance].map(|base| Array::trapping(base, len, I32));
        f.for_range(0, count, |f, i| {
            let edge = f.load(edges, i);
            f.store(distance, i, edge);
        });
        f.for_range(0, n, |f, k| {
            f.for_range(0, n, |f, i| {
                f.for_range(0, n, |f, j| {
                    let [ik, kj, ij] = [(i, k), (k, j), (i, j)].map(|(row, column)| {
                        let start = f.mul(row, n);
                        let place = f.add(start, column);
                        (place, f.load(distance, place))
                    });
                    let detour = f.add(ik.1, kj.1);
                    let is_shorter = f.less(detour, ij.1);
                    f.if_then(is_shorter, |f| f.store(distance, ij.0, detour));
                });
            });
        });
        f.ret_nothing();
    })
}

pub(crate) const COLUMN_SUMS: Program = Program {
    name: "column-sums",
    about: "A multiplied index that grows by the same amount in every iteration of the inner loop.",
    tags: &["nest"],
    while_loops: 3,
    source: Source::Built(column_sums),
    small: || table((3, 4), 2),
    large: || table((100, 120), 25),
    reference: column_sums_reference,
    c: Some(include_str!("../../kernels/column_sums.c")),
};

fn table((rows, columns): (usize, usize), rounds: usize) -> Input {
    let elements: Vec<i32> = numbers(5, rows * columns, 1000);
    Input::new().array(&elements).zeros::<i32>(columns).int(rows).int(columns).int(rounds)
}

fn column_sums_reference(input: &Input, memory: &mut [u8]) -> Option<Value> {
    let (rows, columns) = (input.size(2), input.size(3));
    let table: Vec<i32> = read(memory, input.at(0), rows * columns);
    let sums: Vec<i32> = (0..columns).map(|column| table.iter().skip(column).step_by(columns).sum()).collect();
    write(memory, input.at(1), &sums);
    None
}

fn column_sums() -> Function {
    function("column_sums", [I64; 5], None, |f, [table, sums, rows, columns, rounds]| {
        let [table, sums] = [table, sums].map(|base| Array::unchecked(base, I32));
        f.repeat(rounds, |f| {
            f.for_range(0, columns, |f, column| {
                let sum = f.local(I32, 0);
                f.for_range(0, rows, |f, row| {
                    let start = f.mul(row, columns);
                    let place = f.add(start, column);
                    let x = f.load(table, place);
                    f.increase(sum, x);
                });
                f.store(sums, column, sum);
            });
        });
        f.ret_nothing();
    })
}

pub(crate) const SHORT_INNER: Program = Program {
    name: "short-inner",
    about: "An inner loop of three iterations, known at compile time.",
    tags: &["checked", "float", "nest"],
    while_loops: 3,
    source: Source::Checked { build: short_inner, limits: &[Limit::len(Place::Arg(1), 9)] },
    small: || points(3, 2),
    large: || points(2_500, 20),
    reference: |input, memory| {
        let points: Vec<f64> = read(memory, input.at(0), input.size(1));
        let norm = |point: &[f64]| point.iter().fold(0.0, |sum, x| sum + x * x);
        let largest = points.chunks(3).map(norm).fold(0.0, f64::max);
        Some(Value::F64(largest))
    },
    c: Some(include_str!("../../kernels/short_inner.c")),
};

fn points(count: usize, rounds: usize) -> Input {
    Input::new().array(&floats(6, 3 * count)).int(3 * count).int(count).int(rounds)
}

fn short_inner(checks: Checks) -> Function {
    checked_function(checks, "short_inner", ([I64; 4], Some(F64)), |f, [points, len, count, rounds]| {
        let points = Array::trapping(points, len, F64);
        let largest = f.local(F64, 0.0);
        f.repeat(rounds, |f| {
            f.for_range(0, count, |f, i| {
                let norm = f.local(F64, 0.0);
                f.for_range(0, 3, |f, axis| {
                    let start = f.mul(i, 3);
                    let place = f.add(start, axis);
                    let x = f.load(points, place);
                    let square = f.mul(x, x);
                    f.increase(norm, square);
                });
                let next = f.op(Opcode::Fmax, largest, norm);
                f.set(largest, next);
            });
        });
        f.ret(largest);
    })
}

pub(crate) const DEAD_LOOP: Program = Program {
    name: "dead-loop",
    about: "An inner loop of which nothing is used.",
    tags: &["nest"],
    while_loops: 2,
    source: Source::Built(dead_loop),
    small: || Input::new().int(3).int(4),
    large: || Input::new().int(60_000).int(6),
    reference: |input, _| Some(Value::I64((0..input.get_int(0)).fold(0, |total, i| (total ^ i) + 1))),
    c: Some(include_str!("../../kernels/dead_loop.c")),
};

fn dead_loop() -> Function {
    function("dead_loop", [I64, I64], Some(I64), |f, [outer, inner]| {
        let total = f.local(I64, 0);
        f.for_range(0, outer, |f, i| {
            let unused = f.local(I64, i);
            f.for_range(0, inner, |f, j| {
                let tripled = f.mul(unused, 3);
                let next = f.add(tripled, j);
                f.set(unused, next);
            });
            let mixed = f.op(Opcode::Bxor, total, i);
            let next = f.add(mixed, 1);
            f.set(total, next);
        });
        f.ret(total);
    })
}
