//! The order in which arms are sampled.
//!
//! The machine is slower for seconds at a time, and each call runs in what the one before it left in caches and
//! predictors. So arms take turns within milliseconds, each order is mirrored, which cancels a trend, and the arm that
//! comes first (and last) and the one that follows itself (in the middle) change from turn to turn.
//!
//! Code that is compiled twice branches alike at places that predictors may take for the same ones: each copy learns from the other. So both arms that are
//! compared are there twice. With the baseline alone twice, code that did nothing else than before, and had one jump less before a loop, took 1.3 times as long
//! in calls of 15 µs whose branches depend on data that are the same in each call.

/// What is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arm {
    /// Cranelift at `opt_level=speed`, unless something else is given.
    Baseline,
    /// The same, then loopopt.
    LoopOpt,
    /// The baseline compiled once more: how far apart two figures are that should be the same.
    Again,
    /// The same with loopopt: what it learns of branches, it learns as often as the baseline.
    LoopOptAgain,
    /// The same program without its checks, with Cranelift and loopopt: what a checked program can be compared with.
    Unchecked,
    /// That once more, as the others.
    UncheckedAgain,
}

/// How many arms there are at most.
pub const ARMS: usize = 6;

impl Arm {
    /// Whether loopopt is a part of it.
    pub fn has_loopopt(self) -> bool {
        !matches!(self, Self::Baseline | Self::Again)
    }

    /// All of them. The last two are only for programs with checks.
    pub const ALL: [Self; ARMS] =
        [Self::Baseline, Self::LoopOpt, Self::Again, Self::LoopOptAgain, Self::Unchecked, Self::UncheckedAgain];
}

/// The samples of one turn: each of the first `count` arms twice.
pub fn turn(number: usize, count: usize) -> impl Iterator<Item = Arm> {
    (0..count).chain((0..count).rev()).map(move |place| Arm::ALL[(place + number) % count])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_mirrored_and_has_each_arm_twice() {
        for (number, count) in (0..6).flat_map(|number| [(number, ARMS - 2), (number, ARMS)]) {
            let order: Vec<Arm> = turn(number, count).collect();
            let mut mirrored = order.clone();
            mirrored.reverse();
            assert_eq!(order, mirrored);
            assert_eq!(order.len(), 2 * count);
            for arm in &Arm::ALL[..count] {
                assert_eq!(order.iter().filter(|&other| other == arm).count(), 2);
            }
        }
    }

    #[test]
    fn the_first_turn_begins_with_the_baseline() {
        use Arm::{Again, Baseline, LoopOpt, LoopOptAgain};
        let order: Vec<Arm> = turn(0, 4).collect();
        let half = [Baseline, LoopOpt, Again, LoopOptAgain];
        assert_eq!(order[..4], half);
        assert!(order[4..].iter().rev().eq(&half));
    }

    #[test]
    fn every_arm_is_first_in_one_of_as_many_turns() {
        let first: Vec<Arm> = (0..ARMS).filter_map(|number| turn(number, ARMS).next()).collect();
        assert_eq!(first, Arm::ALL);
    }
}
