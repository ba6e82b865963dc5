//! Between which integers a sum lies for its extended terms alone: a number that is extended from 32 bits without sign is not less than 0, and less than
//! 2^32.
//!
//! ```text
//! base + unsigned(4 * i) + 0x169e0          a store to an array
//! base + 0x10980                            a load of a variable before it
//! unsigned(4 * i) + 0x6060                  how far they are apart: 0x6060 at least
//! ```

use crate::analysis::inst::number::signed;
use crate::analysis::scev::linear_expr::{Sum, Term};
use crate::analysis::scev::value_range::{Bounds, limits};

/// Levels of extensions that are followed.
const MAX_DEPTH: usize = 4;

/// Whether `size` bytes at one address and `other_size` bytes at another are disjoint, whatever is extended in `difference`, which is what the first address is
/// above the second.
pub fn are_always_disjoint(difference: &Sum, size: u32, other_size: u32) -> bool {
    extent(difference, MAX_DEPTH)
        .is_some_and(|bounds| are_disjoint_within(bounds, difference.bits(), (size, other_size)))
}

/// Whether accesses of these sizes are disjoint if what the first address is above the second lies within these bounds, modulo two to `bits`.
pub(crate) fn are_disjoint_within((least, largest): Bounds, bits: u32, (size, other_size): (u32, u32)) -> bool {
    debug_assert!(bits <= 64, "an address has 64 bits at most");
    let (size, other_size, around) = (i128::from(size), i128::from(other_size), 1 << bits);
    let is_above = least >= other_size && largest <= around - size;
    let is_below = largest <= -size && least >= other_size - around;
    is_above || is_below
}

/// The least and the largest of the integers that `sum` stands for, modulo two to its bits, unless it has a term that may be anything.
fn extent(sum: &Sum, depth: usize) -> Option<Bounds> {
    let depth = depth.checked_sub(1)?;
    bounds_of(sum, |inner, signed| {
        let all = limits(inner.bits(), signed);
        let fits = |&(least, largest): &Bounds| least >= all.0 && largest <= all.1;
        extent(inner, depth).filter(fits).unwrap_or(all)
    })
}

/// The same if `extended` says what a sum that is extended can be.
pub(in crate::analysis) fn bounds_of(sum: &Sum, mut extended: impl FnMut(&Sum, bool) -> Bounds) -> Option<Bounds> {
    let constant = i128::from(signed(sum.constant_part(), sum.bits()));
    sum.terms().iter().try_fold((constant, constant), |(least, largest), (term, factor)| {
        let Term::Extended { signed: by_sign, sum: inner } = term else { return None };
        let (low, high) = extended(inner, *by_sign);
        let factor = i128::from(signed(*factor, sum.bits()));
        let ends = [low.checked_mul(factor)?, high.checked_mul(factor)?];
        Some((least.checked_add(ends[0].min(ends[1]))?, largest.checked_add(ends[0].max(ends[1]))?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::context;
    use cranelift_codegen::ir::{Function, Value};

    const TEXT: &str = "function %f(i64, i32, i8) {
        block0(v0: i64, v1: i32, v2: i8):
            v3 = iconst.i32 2
            v4 = ishl v1, v3
            v5 = uextend.i64 v4
            v6 = iadd v0, v5
            v7 = sextend.i64 v2
            v8 = iadd v0, v7
            v9 = uextend.i64 v2
            v10 = isub v0, v9
            v11 = iconst.i64 2
            v12 = ishl v5, v11
            v13 = iadd v0, v12
            v14 = uextend.i32 v2
            v15 = ineg v14
            v16 = uextend.i64 v15
            v17 = iadd v0, v16
            v18 = uextend.i32 v2
            v19 = uextend.i64 v18
            v20 = iadd v0, v19
            return
        }";

    /// Whether 4 bytes at `address + offset` and 8 bytes at v0 are disjoint.
    fn apart(func: &Function, address: u32, offset: i64) -> bool {
        let sum = |number| Sum::of(func, Value::from_u32(number));
        let is_disjoint =
            |a: &Sum, b: &Sum, sizes: (u32, u32)| are_always_disjoint(&a.minus(b).unwrap(), sizes.0, sizes.1);
        let (address, base) = (sum(address).offset(offset), sum(0));
        assert_eq!(is_disjoint(&address, &base, (4, 8)), is_disjoint(&base, &address, (8, 4)));
        is_disjoint(&address, &base, (4, 8))
    }

    #[test]
    fn what_is_extended_is_bounded() {
        let ctx = context(TEXT);
        let func = &ctx.func;
        assert!(apart(func, 6, 8) && !apart(func, 6, 7) && !apart(func, 6, -4));
        assert!(apart(func, 8, 136) && !apart(func, 8, 135) && apart(func, 8, -131) && !apart(func, 8, -130));
        assert!(apart(func, 10, -4) && !apart(func, 10, -3) && apart(func, 10, 263) && !apart(func, 10, 262));
        assert!(apart(func, 13, 8) && !apart(func, 13, 7));
        assert!(apart(func, 17, 8) && !apart(func, 17, -8), "what is extended has wrapped in 32 bits");
        assert!(apart(func, 20, 8) && apart(func, 20, -259) && !apart(func, 20, -258));
        assert!(!apart(func, 0, 0) && apart(func, 0, 8) && apart(func, 0, -4) && !apart(func, 1, 8));
    }

    #[test]
    fn all_numbers_of_eight_bits() {
        // One extended number of 4 bits in 8, times a factor, and a constant: against what it can be.
        let ctx = context(TEXT);
        let narrow = Sum::of_leaf(&ctx.func, Value::from_u32(2)).reduced(4).expect("a narrower sum");
        for (factor, constant) in (0..256u64).flat_map(|factor| (0..256u64).step_by(3).map(move |c| (factor, c))) {
            for by_sign in [false, true] {
                let wide = narrow.clone().extended(8, by_sign);
                let sum = Sum::constant(constant, 8).plus(&wide, factor).expect("one term");
                let number = |bits: u64| if by_sign { signed(bits, 4).cast_unsigned() } else { bits };
                let mut all = (0..16).map(|bits| number(bits).wrapping_mul(factor).wrapping_add(constant) & 0xff);
                let is_disjoint = all.all(|d| d >= 3 && (d.wrapping_neg() & 0xff) >= 2);
                assert!(!are_always_disjoint(&sum, 2, 3) || is_disjoint, "{factor} {constant} {by_sign}");
            }
        }
    }
}
