//! Values and where they are computed: in each iteration, though only the end needs them, or never does what they are for.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Function, Opcode};

use crate::build::{Array, checked_function, function};
use crate::memory::{ints, read, write};
use crate::{Checks, Input, Limit, Place, Program, Source, Value};

pub(crate) const EXIT_VALUE: Program = Program {
    name: "exit-value",
    about: "A value that every iteration computes and only the end of the loop uses.",
    tags: &["memory"],
    while_loops: 2,
    source: Source::Built(exit_value),
    small: || Input::new().array(&ints(1, 5, 1000)).int(5).int(3),
    large: || Input::new().array(&ints(1, 4_000, 1000)).int(4_000).int(40),
    reference: |input, memory| {
        let data: Vec<i64> = read(memory, input.at(0), input.size(1));
        let mut total = 0_i64;
        for _ in 0..input.get_int(2) {
            let mut last = 0;
            for (i, &x) in (0..).zip(&data) {
                total = total.wrapping_add(x);
                last = ((x ^ i).wrapping_mul(31) ^ total).wrapping_mul(17);
            }
            total ^= last;
        }
        Some(Value::I64(total))
    },
    c: Some(include_str!("../../kernels/exit_value.c")),
};

fn exit_value() -> Function {
    function("exit_value", [I64; 3], Some(I64), |f, [data, len, rounds]| {
        let data = Array::unchecked(data, I64);
        let total = f.local(I64, 0);
        f.repeat(rounds, |f| {
            let last = f.local(I64, 0);
            f.for_range(0, len, |f, i| {
                let x = f.load(data, i);
                f.increase(total, x);
                let mixed = f.op(Opcode::Bxor, x, i);
                let scaled = f.mul(mixed, 31);
                let mixed = f.op(Opcode::Bxor, scaled, total);
                let scaled = f.mul(mixed, 17);
                f.set(last, scaled);
            });
            let mixed = f.op(Opcode::Bxor, total, last);
            f.set(total, mixed);
        });
        f.ret(total);
    })
}

pub(crate) const INVARIANT_PAIR: Program = Program {
    name: "invariant-pair",
    about: "A sum with its overflow, and the check of that, are the same in every iteration.",
    tags: &["checked"],
    while_loops: 1,
    source: Source::Checked { build: invariant_pair, limits: &[Limit::number(Place::Arg(0), -2..0, 40)] },
    small: || Input::new().int(40).int(2).int(5),
    large: || Input::new().int(40).int(2).int(200_000),
    reference: |input, _| {
        let end = input.get_int(0) + input.get_int(1);
        Some(Value::I64((0..input.get_int(2)).fold(0, |total, i| (total ^ i).wrapping_add(end))))
    },
    c: Some(include_str!("../../kernels/invariant_pair.c")),
};

fn invariant_pair(checks: Checks) -> Function {
    checked_function(checks, "invariant_pair", ([I64; 3], Some(I64)), |f, [start, len, n]| {
        let total = f.local(I64, 0);
        f.for_range(0, n, |f, i| {
            let end = f.add_unsigned(start, len);
            let mixed = f.op(Opcode::Bxor, total, i);
            let next = f.add(mixed, end);
            f.set(total, next);
        });
        f.ret(total);
    })
}

pub(crate) const EPOCH_POLL: Program = Program {
    name: "epoch-poll",
    about: "A counter that others may change is looked at in every iteration, and must be.",
    tags: &["call", "memory"],
    while_loops: 2,
    source: Source::Built(epoch_poll),
    small: || polled(5, 2),
    large: || polled(4_000, 60),
    reference: |input, memory| {
        let data: Vec<i64> = read(memory, input.at(0), input.size(1));
        Some(Value::I64(data.iter().sum::<i64>() * input.get_int(4)))
    },
    c: Some(include_str!("../../kernels/epoch_poll.c")),
};

/// The first deadline has passed when the loop starts. The host function gives the next one, which never passes.
fn polled(len: usize, rounds: usize) -> Input {
    Input::new().array(&ints(2, len, 1000)).int(len).array(&[100_i64]).int(90).int(rounds)
}

fn epoch_poll() -> Function {
    function("epoch_poll", [I64; 5], Some(I64), |f, [data, len, epoch, deadline, rounds]| {
        let data = Array::unchecked(data, I64);
        let (total, deadline) = (f.local(I64, 0), f.local(I64, deadline));
        f.repeat(rounds, |f| {
            f.for_range(0, len, |f, i| {
                let now = f.field(I64, epoch, 0);
                let is_over = f.icmp(IntCC::SignedGreaterThanOrEqual, now, deadline);
                f.if_rarely(is_over, |f| {
                    let old = f.get(deadline);
                    let new = f.call_host("host_epoch", &[now, old]);
                    f.set(deadline, new);
                });
                let x = f.load(data, i);
                f.increase(total, x);
            });
        });
        f.ret(total);
    })
}

pub(crate) const SAFEPOINT_POLL: Program = Program {
    name: "safepoint-poll",
    about: "A flag is loaded atomically in each iteration, to stop the program for a moment: once for many iterations is enough.",
    tags: &["call", "memory", "nest"],
    while_loops: 1,
    source: Source::Clif(include_str!("../../kernels/safepoint_poll.clif")),
    small: || Input::new().array(&ints(5, 6, 1000)).array(&ints(6, 6, 1000)).int(6).array(&[0_i64]).int(2),
    large: || Input::new().array(&ints(5, 4_000, 1000)).array(&ints(6, 4_000, 1000)).int(4_000).array(&[0_i64]).int(40),
    reference: |input, memory| {
        let len = input.size(2);
        let (mut to, from): (Vec<i64>, Vec<i64>) = (read(memory, input.at(0), len), read(memory, input.at(1), len));
        let mut total = 0_i64;
        for _ in 0..input.get_int(4) {
            for (to, from) in to.iter_mut().zip(&from) {
                *to = to.wrapping_add(from.wrapping_mul(5));
                total = total.wrapping_add(*to);
            }
        }
        write(memory, input.at(0), &to);
        Some(Value::I64(total))
    },
    c: Some(include_str!("../../kernels/safepoint_poll.c")),
};

pub(crate) const GAS_METERED: Program = Program {
    name: "gas-metered",
    about: "Each iteration takes fuel from a number that counts down, and asks first whether there is any.",
    tags: &["call", "memory", "nest"],
    while_loops: 1,
    source: Source::Clif(include_str!("../../kernels/gas_metered.clif")),
    small: || Input::new().array(&ints(5, 6, 1000)).array(&ints(6, 6, 1000)).int(6).int(50).int(2),
    large: || {
        Input::new().array(&ints(5, 4_000, 1000)).array(&ints(6, 4_000, 1000)).int(4_000).int(1_i64 << 40).int(40)
    },
    reference: |input, memory| {
        let len = input.size(2);
        let [left, right]: [Vec<i64>; 2] = [0, 1].map(|array| read(memory, input.at(array), len));
        let product = left.iter().zip(&right).fold(0_i64, |sum, (a, b)| sum.wrapping_add(a.wrapping_mul(*b)));
        Some(Value::I64(product.wrapping_mul(input.get_int(4))))
    },
    c: Some(include_str!("../../kernels/gas_metered.c")),
};

pub(crate) const RARE_BLOCK: Program = Program {
    name: "rare-block",
    about: "What only a rare block needs is computed before each inner loop.",
    tags: &["memory", "nest"],
    while_loops: 2,
    source: Source::Clif(include_str!("../../kernels/rare_block.clif")),
    small: || rows((4, 3), 900),
    large: || rows((8, 12_000), 1_000),
    reference: |input, memory| {
        let columns = input.get_int(1);
        let data: Vec<i64> = read(memory, input.at(0), input.size(1));
        let limit = input.get_int(3);
        let rare = |row: i64| {
            let a = row.wrapping_mul(columns);
            let b = a.wrapping_mul(a);
            let c = (b ^ row).wrapping_mul(a);
            (c.wrapping_mul(b) ^ limit).wrapping_mul(c)
        };
        let rows = 0..input.get_int(2);
        let total = rows.flat_map(|row| data.iter().map(move |&x| if x >= limit { rare(row) } else { x }));
        Some(Value::I64(total.fold(0, i64::wrapping_add)))
    },
    c: Some(include_str!("../../kernels/rare_block.c")),
};

/// One row of numbers up to 1000, to be gone through so many times.
fn rows((columns, rows): (usize, usize), limit: i64) -> Input {
    let mut data = ints(3, columns, 900);
    data[columns / 2] = 999;
    Input::new().array(&data).int(columns).int(rows).int(limit)
}
