//! When there is fuel: what a poll asks of a number that runs out.

use crate::analysis::inst::number::constant_of;
use crate::analysis::scev::comparison::Comparison;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Function, Value, types};

/// More than an iteration of any program takes: sums of these do not overflow.
pub const MAX_COST: u64 = 1 << 32;

/// What surely is enough, so that a poll takes its usual edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enough {
    /// A number below zero. It counts up.
    BelowZero,
    /// A number that is not less than this one, which is no more than [`MAX_COST`] and not 0 if unsigned. It counts down.
    AtLeast {
        /// The least number.
        least: u64,
        /// Whether the numbers are signed.
        is_signed: bool,
    },
}

impl Enough {
    /// The number of which `condition` says that it is enough, by being true if it `holds`, or by being false.
    pub fn of(func: &Function, condition: Value, holds: bool) -> Option<(Value, Self)> {
        let Comparison { cond, left, right } = Comparison::of(func, condition, holds);
        let bound = right.map_or(Some(0), |right| constant_of(func, right))?;
        let at_least = |least: u64, is_signed| {
            let is_small = least <= MAX_COST && (is_signed || least > 0);
            is_small.then_some(Self::AtLeast { least, is_signed })
        };
        let enough = match cond {
            IntCC::SignedLessThan if bound == 0 => Some(Self::BelowZero),
            IntCC::SignedGreaterThanOrEqual => at_least(bound, true),
            // More than -1 is 0 at least.
            IntCC::SignedGreaterThan => at_least(bound.wrapping_add(1), true),
            IntCC::UnsignedGreaterThanOrEqual => at_least(bound, false),
            IntCC::UnsignedGreaterThan => at_least(bound.checked_add(1)?, false),
            // Cranelift writes an unsigned `>= 1` like this.
            IntCC::NotEqual if bound == 0 => at_least(1, false),
            _ => None,
        }?;
        (func.dfg.value_type(left) == types::I64).then_some((left, enough))
    }

    /// What is enough for both, if they count in the same way.
    pub fn and(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::BelowZero, Self::BelowZero) => Some(self),
            (Self::AtLeast { least, is_signed }, Self::AtLeast { least: other, is_signed: other_sign }) => {
                (is_signed == other_sign).then_some(Self::AtLeast { least: least.max(other), is_signed })
            }
            _ => None,
        }
    }

    /// What is taken by adding this.
    pub fn taken(self, added: u64) -> u64 {
        match self {
            Self::BelowZero => added,
            Self::AtLeast { .. } => added.wrapping_neg(),
        }
    }

    /// What a number is compared with, and how, to be enough even if `more` is taken of it; no number is, if none is large enough.
    pub fn test(self, more: u64) -> (IntCC, i64) {
        match self {
            Self::BelowZero => (IntCC::SignedLessThan, more.min(1 << 63).wrapping_neg().cast_signed()),
            Self::AtLeast { least, is_signed } => {
                let (cond, max) = match is_signed {
                    true => (IntCC::SignedGreaterThan, i128::from(i64::MAX)),
                    false => (IntCC::UnsignedGreaterThan, i128::from(u64::MAX)),
                };
                // One below the least one: nothing is above the greatest number.
                let above = i128::from(least) + i128::from(more) - 1;
                (cond, above.min(max) as i64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Enough;
    use crate::analysis::scev::const_eval::compares;
    use cranelift_codegen::ir::types;

    #[test]
    fn what_is_enough_is_so_at_the_ends() {
        let ends = [0, 1, 2, 9, 1 << 32, (1 << 62) - 1, 1 << 62, (1 << 63) - 1, 1 << 63, u64::MAX - 1, u64::MAX];
        let numbers = ends.into_iter().flat_map(|end: u64| [end, end.wrapping_add(1), end.wrapping_neg()]);
        for number in numbers {
            for more in ends {
                let is_enough = |enough: Enough| {
                    let (cond, bound) = enough.test(more);
                    compares(cond, [number.into(), bound.cast_unsigned().into()], types::I64)
                };
                let signed = i128::from(number.cast_signed());
                assert_eq!(is_enough(Enough::BelowZero), signed + i128::from(more) < 0, "{number} {more}");
                for least in [0, 1, 9, 1 << 32] {
                    let enough = Enough::AtLeast { least, is_signed: true };
                    let below = signed - i128::from(more);
                    assert_eq!(is_enough(enough), below >= i128::from(least), "{enough:?} {number} {more}");
                    if least > 0 {
                        let enough = Enough::AtLeast { least, is_signed: false };
                        let below = i128::from(number) - i128::from(more);
                        assert_eq!(is_enough(enough), below >= i128::from(least), "{enough:?} {number} {more}");
                    }
                }
            }
        }
    }
}
