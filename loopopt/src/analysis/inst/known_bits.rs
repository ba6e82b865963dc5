//! Bits of a number that are the same whatever the function is called with, from the instructions that compute it.
//!
//! ```text
//!     v2 = bor v1, 1                  …1      never 0
//!     v3 = uextend.i64 v0             0…      v0: i32; never -1
//! ```
//!
//! # References
//!
//! LLVM `computeKnownBits`.

use crate::analysis::inst::number::{constant_of, mask};
use cranelift_codegen::ir::{Function, Opcode, Value};

/// Instructions that follow from each other: each may look at two.
const MAX_DEPTH: usize = 4;

/// What is known of the bits of an integer of at most 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownBits {
    /// Those that are 0, those above its type included.
    pub zeros: u64,
    /// Those that are 1.
    pub ones: u64,
}

impl KnownBits {
    /// Those of `value`, if it is such an integer.
    pub fn of(func: &Function, value: Value) -> Option<Self> {
        let ty = func.dfg.value_type(value);
        (ty.is_int() && ty.bits() <= 64).then(|| Self::find(func, value, MAX_DEPTH))
    }

    /// Whether the number is never 0.
    pub fn is_never_zero(self) -> bool {
        self.ones != 0
    }

    /// Whether the number, of so many bits, is never -1.
    pub fn is_never_minus_one(self, bits: u32) -> bool {
        self.zeros & mask(bits) != 0
    }

    /// Whether the number, of so many bits, is never the smallest signed one.
    pub fn is_never_smallest(self, bits: u32) -> bool {
        let sign = 1 << (bits - 1);
        self.zeros & sign != 0 || self.ones & !sign != 0
    }

    /// Of a number of so many bits of which nothing is known.
    fn none(bits: u32) -> Self {
        Self { zeros: !mask(bits), ones: 0 }
    }

    fn constant(number: u64) -> Self {
        Self { zeros: !number, ones: number }
    }

    /// What is so in both.
    fn common(self, other: Self) -> Self {
        Self { zeros: self.zeros & other.zeros, ones: self.ones & other.ones }
    }

    /// Recursive as deep as `depth` says.
    fn find(func: &Function, value: Value, depth: usize) -> Self {
        let ty = func.dfg.value_type(value);
        let bits = ty.bits();
        let none = Self::none(bits);
        if let Some(number) = constant_of(func, value) {
            return Self::constant(number);
        }
        let Some(inst) = func.dfg.value_def(value).inst().filter(|_| depth > 0) else { return none };
        let args = func.dfg.inst_args(inst);
        let known = |index: usize| {
            let arg = args[index];
            let ty = func.dfg.value_type(arg);
            if ty.is_int() && ty.bits() <= 64 { Some(Self::find(func, arg, depth - 1)) } else { None }
        };
        let found = || {
            let both = || Some((known(0)?, known(1)?));
            Some(match func.dfg.insts[inst].opcode() {
                Opcode::Bor => both().map(|(a, b)| Self { zeros: a.zeros & b.zeros, ones: a.ones | b.ones })?,
                Opcode::Band => both().map(|(a, b)| Self { zeros: a.zeros | b.zeros, ones: a.ones & b.ones })?,
                Opcode::Iadd => {
                    // Without a carry, a sum is what both have.
                    let (a, b) = both().filter(|(a, b)| !a.zeros & !b.zeros == 0)?;
                    Self { zeros: a.zeros & b.zeros, ones: a.ones | b.ones }
                }
                Opcode::Uextend => known(0)?,
                Opcode::Ireduce => {
                    let Self { zeros, ones } = known(0)?;
                    Self { zeros: zeros | !mask(bits), ones: ones & mask(bits) }
                }
                Opcode::Select => known(1)?.common(known(2)?),
                Opcode::Ishl => {
                    let by = (constant_of(func, args[1])? & u64::from(bits - 1)) as u32;
                    let Self { zeros, ones } = known(0)?;
                    Self { zeros: zeros << by | mask(by) | !mask(bits), ones: ones << by & mask(bits) }
                }
                Opcode::Ushr => {
                    let by = (constant_of(func, args[1])? & u64::from(bits - 1)) as u32;
                    let Self { zeros, ones } = known(0)?;
                    Self { zeros: zeros >> by | !(u64::MAX >> by), ones: ones >> by }
                }
                Opcode::Uload8 => Self::none(8),
                Opcode::Uload16 => Self::none(16),
                Opcode::Uload32 => Self::none(32),
                Opcode::Icmp | Opcode::Fcmp if !ty.is_vector() => Self::none(1),
                _ => return None,
            })
        };
        found().unwrap_or(none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::context;

    #[test]
    fn bits_are_what_instructions_make() {
        let ctx = context(
            "function %f(i32, i64) {
            block0(v0: i32, v1: i64):
                v2 = iconst.i64 1
                v3 = bor v1, v2
                v4 = uextend.i64 v0
                v5 = iconst.i64 4
                v6 = ishl v4, v5
                v7 = iadd v6, v2
                v8 = ushr v1, v5
                v9 = select v0, v3, v7
                v10 = ireduce.i32 v9
                v11 = band v1, v5
                v12 = iadd v1, v2
                return
            }",
        );
        let known = |number| KnownBits::of(&ctx.func, Value::from_u32(number)).expect("an integer");
        let is = |zeros, ones| KnownBits { zeros, ones };
        assert_eq!(known(3), is(0, 1));
        assert_eq!(known(4), is(!0 << 32, 0));
        assert_eq!(known(7), is(!0 << 36 | 14, 1));
        assert_eq!(known(8), is(!0 << 60, 0));
        assert_eq!(known(9), is(0, 1));
        assert_eq!(known(10), is(!0 << 32, 1));
        assert_eq!(known(11), is(!4, 0));
        assert_eq!(known(12), is(0, 0), "there may be a carry");
        assert!(known(7).is_never_zero() && known(7).is_never_minus_one(64) && !known(3).is_never_minus_one(64));
        assert!(known(3).is_never_smallest(64) && known(8).is_never_smallest(64) && !known(12).is_never_smallest(64));
        assert!(!known(0).is_never_minus_one(32) && !known(0).is_never_smallest(32));
    }
}
