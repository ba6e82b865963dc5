//! Numbers that grow by the same step and wrap around, and when they enter an arc.
//!
//! A comparison holds for an arc of the circle of all numbers of a type ([`interval`]): the question how often a loop runs is the
//! question when its counter enters such an arc. It is answered exactly for the first turn around the circle, whatever the step, its sign
//! and the width; a lower bound holds in any case.

use crate::analysis::inst::number::least_number;
use crate::analysis::scev::const_eval::{max_of, truncate};
use crate::analysis::scev::linear_expr::Sum;
use cranelift_codegen::ir::Type;
use cranelift_codegen::ir::condcodes::IntCC;

/// Where the numbers for which a comparison with a bound holds begin and end: so far from the bound, or at an end of the type if that is
/// nothing. They are next to each other on the circle of all numbers, whatever the condition, so that a number that starts among them
/// and moves less than the distance to the end stays among them.
pub fn interval(cond: IntCC) -> (Option<i64>, Option<i64>) {
    match cond.unsigned() {
        IntCC::Equal => (Some(0), Some(0)),
        IntCC::NotEqual => (Some(1), Some(-1)),
        IntCC::UnsignedLessThan => (None, Some(-1)),
        IntCC::UnsignedLessThanOrEqual => (None, Some(0)),
        IntCC::UnsignedGreaterThan => (Some(1), None),
        _ => (Some(0), None),
    }
}

/// Whether a condition reads its sides with their sign.
pub fn is_signed(cond: IntCC) -> bool {
    cond != cond.unsigned()
}

/// Whether a condition is an order of numbers that are not equal.
pub fn is_strict(cond: IntCC) -> bool {
    matches!(interval(cond), (None, Some(-1)) | (Some(1), None))
}

/// The first and the last number for which a comparison with `bound` holds, if it holds for any.
pub fn arc(cond: IntCC, bound: &Sum) -> (Sum, Sum) {
    let least = Sum::constant(least_number(bound.bits(), is_signed(cond)), bound.bits());
    let end = |by: Option<i64>, none: Sum| by.map_or(none, |by| bound.clone().offset(by));
    let (from, to) = interval(cond);
    (end(from, least.clone()), end(to, least.offset(-1)))
}

/// The numbers `first`, `first + 1`, …, `first + more`, modulo two to the power of the width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arc {
    first: u128,
    more: u128,
}

impl Arc {
    /// The numbers of type `ty` for which the comparison with `bound` holds, if there are any.
    pub fn of_condition(cond: IntCC, bound: u128, ty: Type) -> Option<Self> {
        let (from, to) = interval(cond);
        let least = if is_signed(cond) { signed_min(ty) } else { 0 };
        let end =
            |by: Option<i64>, none: u128| truncate(by.map_or(none, |by| bound.wrapping_add_signed(by.into())), ty);
        let (first, last) = (end(from, least), end(to, least.wrapping_sub(1)));
        // Nothing is below the least number, and nothing above the largest.
        let is_empty = is_strict(cond) && first == truncate(last.wrapping_add(1), ty);
        (!is_empty).then_some(Self { first, more: truncate(last.wrapping_sub(first), ty) })
    }

    /// The numbers of type `ty` for which the comparison holds whatever the bound, if there are any.
    pub fn of_any_bound(cond: IntCC, ty: Type) -> Option<Self> {
        let least = if is_signed(cond) { signed_min(ty) } else { 0 };
        let first = match interval(cond) {
            (None, Some(0)) => least,
            (Some(0), None) => truncate(least.wrapping_sub(1), ty),
            _ => return None,
        };
        Some(Self { first, more: 0 })
    }
}

/// The least signed number of `ty`.
fn signed_min(ty: Type) -> u128 {
    1 << (ty.bits() - 1)
}

/// `start`, `start + step`, `start + 2 · step`, …, of type `ty`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progression {
    /// The first number.
    pub start: u128,
    /// What is added each time, with the bits of `ty`.
    pub step: u128,
    /// The type.
    pub ty: Type,
}

impl Progression {
    /// The number after `steps` steps.
    pub fn at(self, steps: u128) -> u128 {
        truncate(self.start.wrapping_add(self.step.wrapping_mul(steps)), self.ty)
    }

    /// The same with `added` added to each number.
    pub fn plus(self, added: u128) -> Self {
        Self { start: truncate(self.start.wrapping_add(added), self.ty), ..self }
    }

    /// The same, beginning after `steps` steps.
    pub fn after(self, steps: u128) -> Self {
        Self { start: self.at(steps), ..self }
    }

    /// After how many steps the number is in `arc` for the first time. None if that takes more than one turn around the
    /// circle, or never happens.
    pub fn first_in(self, arc: Arc) -> Option<u128> {
        // With the arc at the bottom of the circle, to be in it is to be at most `arc.more`.
        let here = Self { start: truncate(self.start.wrapping_sub(arc.first), self.ty), ..self };
        if here.start <= arc.more {
            return Some(0);
        }
        if here.step == 0 {
            return None;
        }
        [here.steps_up(), here.steps_down(arc.more)].into_iter().find(|&steps| here.at(steps) <= arc.more)
    }

    /// A number of steps before which the number is not in `arc`.
    pub fn not_in_before(self, arc: Arc) -> u128 {
        let here = Self { start: truncate(self.start.wrapping_sub(arc.first), self.ty), ..self };
        if here.start <= arc.more {
            return 0;
        }
        if here.step == 0 {
            return u128::MAX;
        }
        here.steps_up().max(here.steps_down(arc.more))
    }

    /// How many steps lead across the largest number: all before it are above the start, if the step is taken for positive.
    fn steps_up(self) -> u128 {
        (max_of(self.ty) - self.start) / self.step + 1
    }

    /// How many steps lead to `bound` or below it, if the step is taken for negative: all before it are above.
    fn steps_down(self, bound: u128) -> u128 {
        let by = max_of(self.ty) - self.step + 1;
        (self.start - bound).div_ceil(by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::scev::const_eval::compares;
    use cranelift_codegen::ir::types::{I8, I128};

    const SAMPLES: [u128; 17] = [0, 1, 2, 3, 7, 16, 50, 100, 126, 127, 128, 129, 200, 250, 253, 254, 255];

    /// Against the definition, for all conditions and for starts, steps and bounds of 8 bits.
    #[test]
    fn steps_are_counted() {
        for &cond in IntCC::all() {
            for bound in SAMPLES {
                let arc = Arc::of_condition(cond, bound, I8);
                let holds = (0..=255).any(|number| compares(cond, [number, bound], I8));
                assert_eq!(arc.is_some(), holds, "{cond} {bound}");
                let Some(arc) = arc else { continue };
                for (start, step) in SAMPLES.into_iter().flat_map(|start| SAMPLES.map(|step| (start, step))) {
                    let numbers = Progression { start, step, ty: I8 };
                    let is_in = |steps: &u128| compares(cond, [numbers.at(*steps), bound], I8);
                    let first = (0..256).find(is_in);
                    let found = numbers.first_in(arc);
                    let what = format!("{start} + k * {step} {cond} {bound}: {first:?}, {found:?}");
                    assert!(found.is_none() || found == first, "{what}");
                    let one_way = |step: u128| first.is_some_and(|first| first * step < 256 - 16);
                    assert!(found == first || !(one_way(step) || one_way((256 - step) % 256)), "{what}");
                    assert!(first.is_none_or(|first| numbers.not_in_before(arc) <= first), "{what}");
                }
            }
        }
    }

    /// `arc` holds the numbers for which the comparison holds, and no others, for each condition and bound of 8 bits.
    #[test]
    fn arcs_hold_what_fulfils_the_condition() {
        for &cond in IntCC::all() {
            for bound in 0..256_u64 {
                let (from, to) = arc(cond, &Sum::constant(bound, 8));
                let [from, to] = [from, to].map(|end| end.as_constant().expect("of a constant"));
                let fulfils = |number: u64| compares(cond, [number.into(), bound.into()], I8);
                if !(0..256).any(fulfils) {
                    continue;
                }
                let in_arc = |number: u64| number.wrapping_sub(from) & 255 <= to.wrapping_sub(from) & 255;
                assert!((0..256).all(|number| fulfils(number) == in_arc(number)), "{cond} {bound}: {from} to {to}");
            }
        }
    }

    #[test]
    fn any_bound() {
        for &cond in IntCC::all() {
            let always = |number| (0..=255).all(|bound| compares(cond, [number, bound], I8));
            let arc = Arc::of_any_bound(cond, I8);
            assert_eq!(arc, (0..=255).find(|&number| always(number)).map(|first| Arc { first, more: 0 }), "{cond}");
        }
    }

    #[test]
    fn all_bits() {
        let (max, half) = (u128::MAX, u128::MAX / 2 + 1);
        let steps = |start, step, more| Progression { start, step, ty: I128 }.first_in(Arc { first: 0, more });
        assert_eq!(steps(5, 1, 0), Some(max - 4));
        assert_eq!(steps(max, max, 0), Some(max));
        assert_eq!(steps(half, half, 0), Some(1));
        assert_eq!(steps(max, half, half - 1), Some(1));
        assert_eq!(steps(2, 5, 0), None, "it takes several ways around");
        assert_eq!(steps(2, 0, 0), None);
        assert_eq!(steps(7, 0, max), Some(0));
    }
}
