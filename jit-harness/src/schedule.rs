//! The order in which arms are sampled.
//!
//! The machine is slower for seconds at a time, and each call runs in what the one before it left in caches and
//! predictors. So arms take turns within milliseconds, each order is mirrored, which cancels a trend, and the arm that
//! comes first (and last) and the one that follows itself (in the middle) change from turn to turn.

/// What is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arm {
    /// Cranelift at `opt_level=speed`.
    Baseline,
    /// The same, then loopopt.
    LoopOpt,
    /// The baseline compiled once more: how far two figures are apart that should be the same.
    Again,
}

/// How many arms there are.
pub const ARMS: usize = 3;

impl Arm {
    /// All of them.
    pub const ALL: [Self; ARMS] = [Self::Baseline, Self::LoopOpt, Self::Again];
}

/// The samples of one turn: each arm twice.
pub fn turn(number: usize) -> [Arm; 2 * ARMS] {
    let arm = |place: usize| Arm::ALL[(place + number) % ARMS];
    [arm(0), arm(1), arm(2), arm(2), arm(1), arm(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_mirrored_and_has_each_arm_twice() {
        for number in 0..6 {
            let order = turn(number);
            let mut mirrored = order;
            mirrored.reverse();
            assert_eq!(order, mirrored);
            for arm in Arm::ALL {
                assert_eq!(order.iter().filter(|&&other| other == arm).count(), 2);
            }
        }
    }

    #[test]
    fn the_first_turn_begins_with_the_baseline() {
        use Arm::{Again, Baseline, LoopOpt};
        assert_eq!(turn(0), [Baseline, LoopOpt, Again, Again, LoopOpt, Baseline]);
    }

    #[test]
    fn every_arm_is_first_in_one_of_three_turns() {
        let first: Vec<Arm> = (0..3).map(|number| turn(number)[0]).collect();
        assert_eq!(first, Arm::ALL);
    }
}
