//! Whether Spectre guards that a version drops would all come back when they are consolidated.

use super::check::Check;
use crate::analysis::cfg::loops::Loop;
use crate::analysis::facts::known::Place;
use crate::analysis::memory::effects::{Effects, is_constant};
use crate::analysis::scev::linear_expr::{Sum, Term};
use crate::analysis::scev::nowrap::Extents;
use crate::analysis::scev::view::View;
use crate::options::Options;
use crate::pass::consolidate_guards::MAX_SPAN;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::ir::{Block, Value};

/// What adds up an address, each with a factor, without the constant.
type Parts = Vec<(Term, u64)>;

/// Whether all of `checks` but extensions are guards, and there would be as many of them in the end: none is near another one in its block,
/// or in a loop that may be unrolled, at an address that is walked along a line.
pub(super) fn guards_come_back(view: View<'_>, checks: &[Check], options: &Options) -> bool {
    let func = view.func();
    let mut extents = Extents::new(view);
    extents.allow(options.widen_indices_max_questions);
    let extensions = checks.iter().filter_map(|check| Some((check, check.extension()?)));
    let narrow = |check: &Check| Sum::of(func, func.dfg.inst_args(check.inst)[0]);
    let mut addresses =
        Addresses { view, extents, wide: extensions.map(|(check, wide)| (narrow(check), wide)).collect() };
    let mut near: FxHashMap<(Block, Parts), Vec<i64>> = FxHashMap::default();
    checks.iter().filter(|check| check.extension().is_none() && check.cell().is_none()).all(|check| {
        let Some(address) = check.guarded_address() else { return false };
        // What may wrap before it is extended stays apart from all others.
        let Some((parts, constant)) = addresses.parts(address, Place::Before(check.inst)) else { return true };
        let lp = view.forest.innermost(check.block);
        if lp.is_some_and(|lp| may_be_unrolled(view, lp, options) && addresses.is_walked(lp, &parts)) {
            return false;
        }
        let others = near.entry((check.block, parts)).or_default();
        let is_alone = others.iter().all(|other| constant.abs_diff(*other) >= MAX_SPAN.unsigned_abs());
        others.push(constant);
        is_alone
    })
}

/// Whether a loop is one that `partial_unroll` may copy, as far as its limits say.
fn may_be_unrolled(view: View<'_>, lp: Loop, options: &Options) -> bool {
    let (func, forest) = (view.func(), view.forest);
    let own = || forest.own_blocks(lp).flat_map(|block| func.layout.block_insts(block));
    let max = options.partial_unroll_max_insts / 2;
    let counted = own().filter(|&inst| !is_constant(func, inst)).take(max + 1);
    forest.is_innermost(lp)
        && counted.count() <= max
        && !forest.may_end_early(func, lp)
        && !own().any(|inst| Effects::of(func, inst).diverges)
}

/// What the addresses of a plan add up.
struct Addresses<'a> {
    view: View<'a>,
    extents: Extents<'a>,
    /// What extended sums become.
    wide: FxHashMap<Sum, &'a Sum>,
}

impl Addresses<'_> {
    /// What an address is the sum of, and a constant, if no part of it may wrap before it is extended.
    fn parts(&mut self, address: Value, place: Place) -> Option<(Parts, i64)> {
        let func = self.view.func();
        let sum = Sum::of(func, address);
        let (mut parts, mut constant) = (Parts::new(), sum.constant_part());
        for (term, factor) in sum.terms() {
            match term {
                Term::Value(_) => parts.push((term.clone(), *factor)),
                Term::Extended { sum, .. } if self.wide.contains_key(sum.as_ref()) => {
                    let wide = self.wide[sum.as_ref()];
                    constant = constant.wrapping_add(wide.constant_part().wrapping_mul(*factor));
                    parts.extend(wide.terms().iter().map(|(term, count)| (term.clone(), count.wrapping_mul(*factor))));
                }
                Term::Extended { signed, sum } => {
                    let exact = self.extents.exact(sum, *signed, place).ok()?;
                    constant = constant.wrapping_add(exact.constant.cast_unsigned().wrapping_mul(*factor));
                    parts.extend(exact.terms.iter().map(|(leaf, count)| {
                        let sum = Box::new(Sum::of_leaf(func, leaf.value));
                        (Term::Extended { signed: leaf.signed, sum }, count.cast_unsigned().wrapping_mul(*factor))
                    }));
                }
                Term::Slot(_) | Term::Quotient { .. } | Term::Product(..) => return None,
            }
        }
        Some((parts, constant.cast_signed()))
    }

    /// Whether what adds up these changes by the same number of bytes in each iteration of `lp`, as far as is known.
    fn is_walked(&mut self, lp: Loop, parts: &[(Term, u64)]) -> bool {
        parts.iter().all(|(term, factor)| match term {
            _ if self.view.is_invariant(lp, &Sum::of_term(term.clone(), *factor, 64)) => true,
            Term::Extended { signed, sum } => match sum.terms() {
                [(Term::Value(value), 1)] => self.extents.counter(*value, *signed).is_some(),
                _ => false,
            },
            Term::Value(_) => true,
            Term::Slot(_) | Term::Quotient { .. } | Term::Product(..) => false,
        })
    }
}
