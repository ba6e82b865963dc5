//! Hashes and texts.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{Function, Opcode};

use crate::build::{Array, checked_function, function};
use crate::memory::{bytes, read, write};
use crate::{Checks, Input, Program, Source, Value};

pub(crate) const FNV_HASH: Program = Program {
    name: "fnv-hash",
    about: "A chain of multiplications that every iteration waits for.",
    tags: &["checked"],
    while_loops: 1,
    source: Source::Checked { build: fnv_hash, limits: &[] },
    small: || data(6),
    large: || data(120_000),
    reference: |input, memory| {
        let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME as u64);
        let hash = read::<u8>(memory, input.at(0), input.size(1)).into_iter().fold(FNV_START as u64, step);
        Some(Value::I64(hash as i64))
    },
    c: Some(include_str!("../../kernels/fnv_hash.c")),
};

const FNV_START: i64 = 0xcbf2_9ce4_8422_2325_u64 as i64;
const FNV_PRIME: i64 = 0x0100_0000_01b3;

fn data(len: usize) -> Input {
    Input::new().array(&bytes(1, len, 256)).int(len)
}

fn fnv_hash(checks: Checks) -> Function {
    checked_function(checks, "fnv_hash", ([I64, I64], Some(I64)), |f, [data, len]| {
        let data = Array::trapping(data, len, I8);
        let hash = f.local(I64, FNV_START);
        f.for_range(0, len, |f, i| {
            let byte = f.load_byte(data, i);
            let mixed = f.op(Opcode::Bxor, hash, byte);
            let next = f.mul(mixed, FNV_PRIME);
            f.set(hash, next);
        });
        f.ret(hash);
    })
}

const CRC_POLYNOMIAL: u32 = 0xedb8_8320;

/// The checksum register after eight more bits.
fn crc_byte(crc: u32) -> u32 {
    (0..8).fold(crc, |crc, _| (crc >> 1) ^ (CRC_POLYNOMIAL & (crc & 1).wrapping_neg()))
}

fn crc(data: &[u8]) -> Value {
    let crc = data.iter().fold(!0, |crc, &byte| crc_byte(crc ^ u32::from(byte)));
    Value::I32(!crc as i32)
}

pub(crate) const CRC32: Program = Program {
    name: "crc32",
    about: "A lookup in a table at an index that is masked instead of checked.",
    tags: &[],
    while_loops: 1,
    source: Source::Clif(include_str!("../../kernels/crc32.clif")),
    small: || data(6).array(&crc_table()),
    large: || data(60_000).array(&crc_table()),
    reference: |input, memory| Some(crc(&read::<u8>(memory, input.at(0), input.size(1)))),
    c: Some(include_str!("../../kernels/crc32.c")),
};

fn crc_table() -> Vec<u32> {
    (0..256).map(crc_byte).collect()
}

pub(crate) const CRC32_BITWISE: Program = Program {
    name: "crc32-bitwise",
    about: "Eight steps per byte in an inner loop of constant trip count.",
    tags: &["checked", "nest"],
    while_loops: 2,
    source: Source::Checked { build: crc32_bitwise, limits: &[] },
    small: || data(3),
    large: || data(12_000),
    reference: |input, memory| Some(crc(&read::<u8>(memory, input.at(0), input.size(1)))),
    c: Some(include_str!("../../kernels/crc32_bitwise.c")),
};

fn crc32_bitwise(checks: Checks) -> Function {
    checked_function(checks, "crc32_bitwise", ([I64, I64], Some(I32)), |f, [data, len]| {
        let data = Array::trapping(data, len, I8);
        let crc = f.local(I32, -1);
        f.for_range(0, len, |f, i| {
            let byte = f.load_byte(data, i);
            let byte = f.narrow(I32, byte);
            let mixed = f.op(Opcode::Bxor, crc, byte);
            f.set(crc, mixed);
            f.for_range(0, 8, |f, _| {
                let bit = f.op(Opcode::Band, crc, 1);
                let mask = f.sub(0, bit);
                let feedback = f.op(Opcode::Band, mask, i64::from(CRC_POLYNOMIAL));
                let shifted = f.op(Opcode::Ushr, crc, 1);
                let next = f.op(Opcode::Bxor, shifted, feedback);
                f.set(crc, next);
            });
        });
        let result = f.op(Opcode::Bxor, crc, -1);
        f.ret(result);
    })
}

pub(crate) const CRC32_BRANCHES: Program = Program {
    name: "crc32-branches",
    about: "A bit of the checksum decides, by a branch that nobody predicts, what the next one is made of.",
    tags: &["nest"],
    while_loops: 2,
    source: Source::Built(crc32_branches),
    small: || data(3),
    large: || data(12_000),
    reference: |input, memory| Some(crc(&read::<u8>(memory, input.at(0), input.size(1)))),
    c: Some(include_str!("../../kernels/crc32_branches.c")),
};

fn crc32_branches() -> Function {
    function("crc32_branches", [I64, I64], Some(I32), |f, [data, len]| {
        let data = Array::unchecked(data, I8);
        let crc = f.local(I32, -1);
        f.for_range(0, len, |f, i| {
            let byte = f.load_byte(data, i);
            let byte = f.narrow(I32, byte);
            let mixed = f.op(Opcode::Bxor, crc, byte);
            f.set(crc, mixed);
            f.for_range(0, 8, |f, _| {
                let bit = f.op(Opcode::Band, crc, 1);
                f.if_else(
                    bit,
                    |f| {
                        let shifted = f.op(Opcode::Ushr, crc, 1);
                        let next = f.op(Opcode::Bxor, shifted, i64::from(CRC_POLYNOMIAL));
                        f.set(crc, next);
                    },
                    |f| {
                        let shifted = f.op(Opcode::Ushr, crc, 1);
                        f.set(crc, shifted);
                    },
                );
            });
        });
        let result = f.op(Opcode::Bxor, crc, -1);
        f.ret(result);
    })
}

pub(crate) const ATOI: Program = Program {
    name: "atoi",
    about: "Leaves the loop at a character that does not belong to the number.",
    tags: &["checked"],
    while_loops: 1,
    source: Source::Checked { build: atoi, limits: &[] },
    small: || digits(4),
    large: || digits(120_000),
    reference: |input, memory| {
        let text: Vec<u8> = read(memory, input.at(0), input.size(1));
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
        let append = |value: i64, digit: &u8| value.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'));
        Some(Value::I64(digits.fold(0, append)))
    },
    c: Some(include_str!("../../kernels/atoi.c")),
};

/// A number, of which only the last digits have room in the result, and what does not belong to it.
fn digits(count: usize) -> Input {
    let mut text: Vec<u8> = bytes(2, count, 10).into_iter().map(|digit| b'0' + digit).collect();
    text.extend(b" km");
    Input::new().array(&text).int(text.len())
}

fn atoi(checks: Checks) -> Function {
    checked_function(checks, "atoi", ([I64, I64], Some(I64)), |f, [text, len]| {
        let text = Array::branching(text, len, I8);
        let value = f.local(I64, 0);
        f.for_range(0, len, |f, i| {
            let byte = f.load_byte(text, i);
            let digit = f.sub(byte, i64::from(b'0'));
            let is_bad = f.icmp(IntCC::UnsignedGreaterThan, digit, 9);
            f.break_if(is_bad);
            let shifted = f.mul(value, 10);
            let next = f.add(shifted, digit);
            f.set(value, next);
        });
        f.ret(value);
    })
}

/// A text that ends in 0, with more after it.
fn text(len: usize) -> Vec<u8> {
    let mut text: Vec<u8> = bytes(3, len, 255).into_iter().map(|byte| byte + 1).collect();
    text.extend([0, 65, 66]);
    text
}

pub(crate) const STRING_LENGTH: Program = Program {
    name: "string-length",
    about: "Nobody knows the trip count before the end: the loop runs up to a 0 in memory.",
    tags: &[],
    while_loops: 1,
    source: Source::Clif(include_str!("../../kernels/string_length.clif")),
    small: || Input::new().array(&text(5)),
    large: || Input::new().array(&text(400_000)),
    reference: |input, memory| {
        let len = memory[input.at(0)..].iter().position(|&byte| byte == 0);
        Some(Value::I64(len.expect("the text ends") as i64))
    },
    c: Some(include_str!("../../kernels/string_length.c")),
};

pub(crate) const STRING_COPY: Program = Program {
    name: "string-copy",
    about: "A do-while loop in one block, with a store before the test.",
    tags: &[],
    while_loops: 0,
    source: Source::Clif(include_str!("../../kernels/string_copy.clif")),
    small: || Input::new().array(&text(5)).zeros::<u8>(8),
    large: || Input::new().array(&text(400_000)).zeros::<u8>(400_003),
    reference: |input, memory| {
        let text: Vec<u8> = memory[input.at(0)..].iter().copied().take_while(|&byte| byte != 0).collect();
        write(memory, input.at(1), &text);
        write(memory, input.at(1) + text.len(), &[0_u8]);
        None
    },
    c: Some(include_str!("../../kernels/string_copy.c")),
};

pub(crate) const SWITCH_EXIT: Program = Program {
    name: "switch-exit",
    about: "Leaves the loop through a jump table, to several places.",
    tags: &["switch"],
    while_loops: 0,
    source: Source::Clif(include_str!("../../kernels/switch_exit.clif")),
    small: || token(4),
    large: || token(30_000),
    reference: |input, memory| {
        let text = &memory[input.at(0)..];
        let end = text.iter().position(|&byte| !matches!(byte, 0 | 1)).expect("the text ends");
        let kind = if text[end] < 4 { i64::from(text[end]) } else { 9 };
        Some(Value::I64(end as i64 * 10 + kind))
    },
    c: Some(include_str!("../../kernels/switch_exit.c")),
};

/// Letters (0) and digits (1), and then something else.
fn token(len: usize) -> Input {
    let mut text = bytes(4, len, 2);
    text.extend([3, 0, 7]);
    Input::new().array(&text)
}
