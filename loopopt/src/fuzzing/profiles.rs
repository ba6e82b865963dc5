//! Profiles that are not true: what code may do is the same whatever they say.

use super::generate::random_words;
use crate::profile::{LoopProfile, Profile};

/// Changes a profile by chance: a third of them a little, so that they still fit, and a third so that they do not. The others stay true.
pub(super) fn distort(profile: &mut Profile, seed: u64) {
    let mut random = Random(seed);
    let how = random.below(3);
    for lp in profile.functions.values_mut().flat_map(|function| &mut function.loops) {
        match how {
            0 => {}
            1 => lie(lp, &mut random),
            _ => damage(lp, &mut random),
        }
    }
}

/// Other values, and other numbers.
fn lie(lp: &mut LoopProfile, random: &mut Random) {
    for value in &mut lp.values {
        let (number, _) = value.dominant().unwrap_or_default();
        let other = match random.below(4) {
            0 => number,
            1 => number.wrapping_add(1),
            2 => number.wrapping_neg(),
            _ => random.below(9),
        };
        (value.total, value.top) = (100, [(other, 90), (0, 0), (0, 0), (0, 0)]);
    }
    lp.blocks.iter_mut().for_each(|count| *count = random.below(3) * 1000);
    (lp.back_edges, lp.exit_counts) = (random.below(10_000), std::array::from_fn(|_| random.below(100)));
}

/// Numbers that contradict each other, too many or too few of them, and nothing of what was there.
fn damage(lp: &mut LoopProfile, random: &mut Random) {
    match random.below(6) {
        0 => _ = lp.values.pop(),
        1 => lp.blocks.push(u64::MAX),
        2 => lp.key.push('x'),
        3 => (lp.back_edges, lp.exit_counts[0]) = (u64::MAX, u64::MAX),
        4 => lp.back_edges = u64::MAX,
        _ => lp.values.iter_mut().for_each(|value| value.top[0] = (u64::MAX, u64::MAX)),
    }
    lp.blocks.iter_mut().filter(|_| random.below(2) == 0).for_each(|count| *count = u64::MAX);
}

/// Numbers by chance.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = random_words(self.0).next().unwrap_or_default();
        (self.0 >> 32) % limit
    }
}
