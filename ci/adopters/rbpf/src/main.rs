//! eBPF programs over a packet that rbpf compiles without and with loopopt.

use anyhow::{Result, anyhow};
use measure::Table;

/// The bytes of the packet.
const PACKET: usize = 1500;

/// Adds up all bytes. r1 is the packet, r2 its length.
const SUM: &str = "
    mov r0, 0
    mov r3, r1
    add r3, r2
    jge r1, r3, +4
    ldxb r4, [r1]
    add r0, r4
    add r1, 1
    ja -5
    exit";

/// The checksum of IP: 16 bits at a time, carries added at the end.
const CHECKSUM: &str = "
    mov r0, 0
    mov r3, 0
    jge r3, r2, +6
    mov r5, r1
    add r5, r3
    ldxh r4, [r5]
    add r0, r4
    add r3, 2
    ja -7
    mov r4, r0
    rsh r4, 16
    jeq r4, 0, +3
    and r0, 0xffff
    add r0, r4
    ja -6
    exit";

/// Fills the packet with squares, and adds up what it reads back.
const FILL: &str = "
    mov r0, 0
    mov r3, 0
    jge r3, r2, +9
    mov r5, r1
    add r5, r3
    mov r4, r3
    mul r4, r3
    stxb [r5], r4
    ldxb r4, [r5]
    add r0, r4
    add r3, 1
    ja -10
    exit";

/// Counts the bytes above the one at the start of the packet, which it reads each time.
const THRESHOLD: &str = "
    mov r0, 0
    mov r3, 1
    jge r3, r2, +8
    mov r5, r1
    add r5, r3
    ldxb r4, [r5]
    ldxb r6, [r1]
    add r3, 1
    jle r4, r6, -7
    add r0, 1
    ja -9
    exit";

/// Adds up the places of the packet in a variable on the stack, as C that is not optimized.
const VARIABLE: &str = "
    stdw [r10-8], 0
    mov r3, 0
    jge r3, r2, +5
    ldxdw r4, [r10-8]
    add r4, r3
    stxdw [r10-8], r4
    add r3, 1
    ja -6
    ldxdw r0, [r10-8]
    exit";

/// Compiles the program with both builds, and compares them.
macro_rules! program {
    ($table:ident, $name:literal, $source:expr, $expected:expr) => {{
        let program = without::assembler::assemble($source).map_err(|error| anyhow!("{}: {error}", $name))?;
        let (mut slow, mut fast) = (without::EbpfVmRaw::new(Some(&program))?, with::EbpfVmRaw::new(Some(&program))?);
        slow.cranelift_compile()?;
        fast.cranelift_compile()?;
        let (mut slow_packet, mut fast_packet) = (packet(), packet());
        let call = |result: Result<u64, std::io::Error>| result.map_err(|error| error.to_string());
        $table.compare(
            $name,
            &Ok($expected),
            || call(slow.execute_program_cranelift(&mut slow_packet)),
            || call(fast.execute_program_cranelift(&mut fast_packet)),
        )?;
        anyhow::ensure!(slow_packet == fast_packet, "{} leaves another packet with loopopt", $name);
    }};
}

fn packet() -> Vec<u8> {
    (0..PACKET).map(|byte| ((byte + 100) % 251) as u8).collect()
}

fn checksum() -> u64 {
    let mut sum: u64 = packet().chunks(2).map(|pair| u64::from(u16::from_le_bytes([pair[0], pair[1]]))).sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

fn main() -> Result<()> {
    let mut table = Table::default();
    program!(table, "sum", SUM, packet().into_iter().map(u64::from).sum());
    program!(table, "checksum", CHECKSUM, checksum());
    program!(table, "fill", FILL, (0..PACKET as u64).map(|byte| byte * byte % 256).sum());
    program!(table, "threshold", THRESHOLD, packet()[1..].iter().filter(|&&byte| byte > packet()[0]).count() as u64);
    program!(table, "variable", VARIABLE, (0..PACKET as u64).sum());
    table.finish()
}
