//! Who may rewrite: one question before each optional rewrite, none before a repair.
//!
//! With a limit, the rewrites up to it are done, so that the one that breaks a program can be found by bisection (OMR's
//! `lastOptSubIndex`, LLVM's `opt-bisect-limit`). With a stress seed, each legal rewrite is done or not at random, so
//! that what one pass leaves for the next is not always the same (JSC's LICM fuzzer, HotSpot's `StressLoopPeeling`).

use crate::options::Options;

/// The rewrites that were asked for and done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fuel {
    limit: Option<u64>,
    stress: Option<u64>,
    asked: u64,
    used: u64,
}

impl Fuel {
    /// As the options say.
    pub(crate) fn new(options: &Options) -> Self {
        Self { limit: options.fuel, stress: options.stress_seed, ..Self::default() }
    }

    /// Rewrites that were granted so far.
    pub(crate) fn used(self) -> u64 {
        self.used
    }

    /// Asks for a rewrite. One that is not granted must not happen.
    pub(crate) fn take(&mut self) -> bool {
        self.asked += 1;
        let wanted = self.stress.is_none_or(|seed| coin(seed, self.asked));
        let granted = wanted && self.limit.is_none_or(|limit| self.used < limit);
        self.used += u64::from(granted);
        granted
    }

    /// Whether stress mode skips the nest with this number: one in four.
    pub(crate) fn skips(self, number: u32) -> bool {
        let number = 2 * u64::from(number);
        self.stress.is_some_and(|seed| coin(!seed, number) && coin(!seed, number + 1))
    }
}

/// A coin that falls the same way for the same seed and number: the finalizer of SplitMix64 (Steele et al., 2014).
fn coin(seed: u64, number: u64) -> bool {
    let mut bits = seed.wrapping_add(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (bits ^ (bits >> 31)) & 1 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_and_stress() {
        let mut fuel = Fuel::new(&Options { fuel: Some(2), ..Options::default() });
        assert_eq!([fuel.take(), fuel.take(), fuel.take()], [true, true, false]);
        assert_eq!(fuel.used(), 2);

        let falls = |seed| {
            let mut fuel = Fuel::new(&Options::stress(seed));
            (0..64).map(|_| fuel.take()).collect::<Vec<_>>()
        };
        assert_eq!(falls(1), falls(1));
        assert_ne!(falls(1), falls(2));
        assert!((16..48).contains(&falls(3).iter().filter(|granted| **granted).count()));
    }
}
