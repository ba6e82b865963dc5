//! Which loop of machine code is from which loop of a function, and how many instructions an iteration has.

use crate::lowered::Lowered;
use crate::machine::{EmittedLoop, Flow};
use anyhow::Result;
use cranelift_codegen::Context;
use cranelift_codegen::ir::{Block, Function, SourceLoc};
use cranelift_codegen::isa::TargetIsa;
use loopopt::analysis::cfg::loops::{Loop, LoopForest};
use std::collections::{BTreeMap, BTreeSet};

/// An innermost loop of machine code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Emitted {
    /// The loop that its instructions are from, of the function as it came in.
    pub(super) origin: Option<Loop>,
    /// Instructions. Those in cold blocks count only if all are.
    pub(super) insts: usize,
    /// Those of them that read or write the stack frame.
    pub(super) stack_accesses: usize,
    /// Whether it is in cold blocks: a slow version.
    pub(super) is_cold: bool,
}

/// Of a source location: the instruction is in a cold block.
const COLD: u32 = 1 << 31;

/// Gives each instruction the number of its block as its source location, which its copies have too.
pub(super) fn number_blocks(func: &mut Function) {
    locate(func, |block, _| SourceLoc::new(block.as_u32()));
}

/// The block of the function as it came in that an instruction with this source location is from.
pub(super) fn block_of(place: SourceLoc) -> Option<Block> {
    (!place.is_default()).then(|| Block::from_u32(place.bits() & !COLD))
}

/// Gives each instruction the source location that `place` makes of its block and its source location.
fn locate(func: &mut Function, place: impl Fn(Block, SourceLoc) -> SourceLoc) {
    let blocks: Vec<Block> = func.layout.blocks().collect();
    for block in blocks {
        let insts: Vec<_> = func.layout.block_insts(block).collect();
        for inst in insts {
            func.set_srcloc(inst, place(block, func.srcloc(inst)));
        }
    }
}

/// Writes into source locations which instructions are in cold blocks now.
fn mark_cold(func: &mut Function) {
    let cold: BTreeSet<Block> = func.layout.blocks().filter(|&block| func.layout.is_cold(block)).collect();
    locate(func, |block, place| match place.bits() & !COLD {
        _ if place.is_default() => place,
        number if cold.contains(&block) => SourceLoc::new(number | COLD),
        number => SourceLoc::new(number),
    });
}

/// The innermost loops of the function's machine code. Source locations are [numbers of blocks](number_blocks) of the function that `forest` is of.
pub(super) fn innermost(ctx: &mut Context, forest: &LoopForest, isa: &dyn TargetIsa) -> Result<Vec<Emitted>> {
    mark_cold(&mut ctx.func);
    let lowered = Lowered::new(ctx, isa)?;
    // Cold blocks are after all others.
    let cold_from = lowered.first_of(|place| place & COLD != 0).unwrap_or(u64::MAX);
    let flow = Flow::new(&lowered.code);
    let found = flow.loops().into_iter().filter(|lp| lp.is_innermost);
    let describe = |lp: EmittedLoop| {
        let known: Vec<u32> = lp.offsets.iter().filter_map(|&offset| lowered.place_of(offset)).collect();
        let mut counts = BTreeMap::<_, usize>::new();
        for lp in known.iter().filter_map(|place| forest.innermost(Block::from_u32(place & !COLD))) {
            *counts.entry(lp).or_default() += 1;
        }
        let origin = counts.into_iter().max_by_key(|(_, count)| *count).map(|(lp, _)| lp);
        let is_cold = lp.offsets.first().is_some_and(|&offset| offset >= cold_from);
        let counted = if is_cold { lp.offsets.range(..) } else { lp.offsets.range(..cold_from) };
        let stack_accesses = flow.stack_accesses(counted.clone());
        Emitted { origin, insts: counted.count(), stack_accesses, is_cold }
    };
    Ok(found.map(describe).collect())
}

/// How many instructions an iteration had and has: `6 → 2.25 per iteration, and 4 in the remainder`. `unrolled` is how many iterations the
/// largest loop does at a time.
pub(super) fn in_words(before: &[Emitted], after: &[Emitted], unrolled: Option<usize>) -> Option<String> {
    let [before] = before else { return None };
    let (cold, mut hot): (Vec<&Emitted>, Vec<&Emitted>) = after.iter().partition(|lp| lp.is_cold);
    hot.sort_by_key(|lp| std::cmp::Reverse(lp.insts));
    let mut words = match (&hot[..], unrolled) {
        ([], _) => format!("{} → no loop", before.insts),
        ([lp], None) => format!("{} → {} per iteration", before.insts, lp.insts),
        ([fast, rest @ ..], Some(factor)) if rest.len() < 2 => {
            let each = (fast.insts as f64 / factor as f64 * 100.0).round() / 100.0;
            let mut words = format!("{} → {each} per iteration", before.insts);
            if let [rest] = rest {
                words.push_str(&format!(", and {} in the remainder", rest.insts));
            }
            words
        }
        (several, _) => {
            let sizes: Vec<String> = several.iter().map(|lp| lp.insts.to_string()).collect();
            format!("{} → loops of {}", before.insts, sizes.join(", "))
        }
    };
    if let [slow] = &cold[..] {
        words.push_str(&format!("; {} in the slow version", slow.insts));
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(before: usize, after: &[(usize, bool)], unrolled: Option<usize>) -> Option<String> {
        let emitted = |insts, is_cold| Emitted { origin: None, insts, stack_accesses: 0, is_cold };
        let after: Vec<Emitted> = after.iter().map(|&(insts, is_cold)| emitted(insts, is_cold)).collect();
        in_words(&[emitted(before, false)], &after, unrolled)
    }

    #[test]
    fn counts_are_of_one_iteration() {
        let is = |text: &str| Some(text.to_owned());
        assert_eq!(words(6, &[(5, false)], None), is("6 → 5 per iteration"));
        assert_eq!(words(6, &[(4, false), (9, false)], Some(4)), is("6 → 2.25 per iteration, and 4 in the remainder"));
        assert_eq!(words(6, &[(8, false)], Some(4)), is("6 → 2 per iteration"));
        assert_eq!(words(6, &[(7, false)], Some(3)), is("6 → 2.33 per iteration"));
        assert_eq!(words(6, &[], None), is("6 → no loop"));
        assert_eq!(words(6, &[(4, false), (6, true)], None), is("6 → 4 per iteration; 6 in the slow version"));
        assert_eq!(words(6, &[(4, false), (3, false)], None), is("6 → loops of 4, 3"));
        assert_eq!(in_words(&[], &[], None), None);
    }
}
