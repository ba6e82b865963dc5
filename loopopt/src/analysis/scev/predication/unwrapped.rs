//! Negative constants come out of extensions, where it is known that nothing wraps.
//!
//! ```text
//! guard: 0 < j
//!   8 * unsigned(j - 1) <= n    ──►    8 * unsigned(j) <= n + 8
//! ```
//!
//! An inner loop that runs `j - 1` times is entered for a `j` above 0 only. In the outer loop, `j` starts at 0 all the same, and
//! `j - 1`, seen alone, at the largest number of its type.

use crate::analysis::scev::linear_expr::{Sum, Term};
use crate::analysis::scev::requirement::Requirement;
use cranelift_codegen::ir::condcodes::IntCC;

/// Constants that may come out. 4,096: a step of a counter, times what one iteration of a loop unrolled by hand does.
pub(super) const MAX_TAKEN: u64 = 1 << 12;

/// The same requirement, or more, without those negative constants in extensions of which `is_known` says that the number they are
/// added to is large enough.
pub fn unwrapped(required: Requirement, is_known: &mut dyn FnMut(&Requirement) -> bool) -> Requirement {
    match &required {
        Requirement::Compare { cond, left, right }
            if matches!(cond, IntCC::UnsignedLessThan | IntCC::UnsignedLessThanOrEqual)
                && left.never_wraps()
                && left.terms().iter().any(|(term, _)| taken(term).is_some()) =>
        {
            without(left, is_known).map_or(required.clone(), |(left, less)| {
                let kept = left.constant_part().min(less);
                let right = right.clone().offset((less - kept).cast_signed());
                Requirement::new(*cond, left.offset(kept.wrapping_neg().cast_signed()), right)
            })
        }
        _ => required,
    }
}

/// A sum that cannot wrap, and what is to be subtracted from it so that it is `sum`.
fn without(sum: &Sum, is_known: &mut dyn FnMut(&Requirement) -> bool) -> Option<(Sum, u64)> {
    let (mut without, mut less) = (Sum::constant(sum.constant_part(), sum.bits()), 0_u64);
    for (term, factor) in sum.terms() {
        let one = match taken(term) {
            Some((rest, constant))
                if is_known(&Requirement::at_most(Sum::constant(constant, rest.bits()), rest.clone())) =>
            {
                less = less.checked_add(constant.checked_mul(*factor)?)?;
                rest.extended(sum.bits(), false).times(*factor)
            }
            _ => Sum::of_term(term.clone(), *factor, sum.bits()),
        };
        without.add(&one, 1)?;
    }
    (less > 0 && without.never_wraps()).then_some((without, less))
}

/// What a constant is subtracted from inside an extension, and the constant.
fn taken(term: &Term) -> Option<(Sum, u64)> {
    let Term::Extended { signed: false, sum } = term else { return None };
    let (rest, constant) = (**sum).clone().split_constant();
    let constant = Sum::constant(constant, rest.bits()).times(u64::MAX).as_constant()?;
    (1..=MAX_TAKEN).contains(&constant).then_some((rest, constant))
}
