// What the programs share, as in `c/program.h`: random numbers and checksums.

export class Random {
  constructor(private state: u32) {}

  next(): u32 {
    let x = this.state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    this.state = x;
    return x;
  }
}

export function mix(sum: u64, value: u64): u64 {
  return (sum ^ value) * 0x100000001b3 + (sum >> 29);
}
