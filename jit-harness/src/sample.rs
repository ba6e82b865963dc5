//! Samples, and the figures that are made of them.
//!
//! A round is a turn (see [`crate::schedule`]) at each placement. All ratios are of times of the same round: what slows
//! the machine down for longer than a round slows all arms. The median over the rounds discards those that were hit in
//! part.

use crate::arms::{Arms, PLACES};
use crate::interrupt;
use crate::schedule::{ARMS, Arm, turn};
use crate::stats::Estimate;
use anyhow::Result;
use loopopt::oracle::Prepared;
use std::time::{Duration, Instant};

/// The fewest rounds of a visit. Those of three visits are enough for an interval of 95 %.
const MIN_ROUNDS: usize = 3;
/// The most rounds of a visit: more make nothing better.
const MAX_ROUNDS: usize = 1_000;

/// Changes below this are never taken for more than noise: the same code at other addresses differs by as much.
const NOISE_FLOOR: f64 = 0.005;

/// How long to sample.
///
/// Each program is visited several times, with all others between, so that a phase in which the machine treats two arms
/// differently does not hit all samples of a program. Each visit compiles again, which gives other addresses.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Visits to each program.
    pub visits: usize,
    /// Time before the first sample of a visit, for caches, predictors and the clock frequency.
    pub warm_up: Duration,
    /// Time for the samples of a visit.
    pub budget: Duration,
}

impl Effort {
    /// For an overview.
    pub const QUICK: Self = Self { visits: 3, warm_up: Duration::from_millis(10), budget: Duration::from_millis(170) };
    /// For figures to rely on.
    pub const FULL: Self = Self { visits: 7, warm_up: Duration::from_millis(20), budget: Duration::from_millis(300) };
}

/// The two samples that a round takes of an arm at a placement, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pair {
    sum: f64,
    least: f64,
}

impl Pair {
    /// Two samples.
    pub fn new(first: f64, second: f64) -> Self {
        Self { sum: first + second, least: first.min(second) }
    }
}

/// The samples of one round, by placement and arm. Arms that a program does not have are zero.
pub type Round = [[Pair; ARMS]; PLACES];

/// What the samples say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Time with loopopt divided by the time without.
    pub ratio: Estimate,
    /// The same for the baseline and itself: what is only noise.
    pub noise: Estimate,
    /// Time with loopopt divided by the time of the same program without its checks, also with loopopt, if it has any.
    pub unchecked: Option<Estimate>,
    /// Time of a call in nanoseconds. Without loopopt: of each round, the mean of the samples that the ratio is made of, and of these the median. With loopopt:
    /// that times the ratio. A median of its own would be of other rounds than the ratio's, and contradict it where times have two modes.
    pub ns: [f64; 2],
    /// The shortest time at each placement, in nanoseconds, without and with loopopt.
    pub placements: [[f64; PLACES]; 2],
}

/// Takes the samples of one visit: until the budget is spent, or somebody asks to stop.
pub fn sample(arms: &mut Arms, call: &mut Prepared<'_>, effort: Effort) -> Result<Vec<Round>> {
    let start = Instant::now();
    let mut turns = 0;
    while !interrupt::is_asked() && (turns == 0 || start.elapsed() < effort.warm_up) {
        round(arms, call, turns)?;
        turns += PLACES;
    }
    let start = Instant::now();
    let mut rounds = Vec::new();
    while rounds.len() < MIN_ROUNDS || (rounds.len() < MAX_ROUNDS && start.elapsed() < effort.budget) {
        let Some(round) = round(arms, call, turns)? else { break };
        rounds.push(round);
        turns += PLACES;
    }
    Ok(rounds)
}

/// One round, nothing if somebody has asked to stop before its end.
fn round(arms: &mut Arms, call: &mut Prepared<'_>, turns: usize) -> Result<Option<Round>> {
    let mut round = Round::default();
    for (place, pairs) in round.iter_mut().enumerate() {
        if interrupt::is_asked() {
            return Ok(None);
        }
        let mut times = [const { Vec::new() }; ARMS];
        for arm in turn(turns + place, arms.count()) {
            times[arm as usize].push(arms.time(place, arm, call)?);
        }
        *pairs = times.map(|times| times.first_chunk().map_or_else(Pair::default, |&[a, b]| Pair::new(a, b)));
    }
    Ok(Some(round))
}

impl Figures {
    /// What the samples say.
    ///
    /// # Panics
    ///
    /// If there are none.
    pub fn new(rounds: &[Round]) -> Self {
        let has_unchecked = rounds[0][0][Arm::Unchecked as usize].sum > 0.0;
        let (time, ratio_of_times) =
            (median_of_means(rounds, Arm::Baseline), ratio(rounds, Arm::LoopOpt, Arm::Baseline));
        Self {
            ratio: ratio_of_times,
            noise: ratio(rounds, Arm::Again, Arm::Baseline),
            unchecked: has_unchecked.then(|| ratio(rounds, Arm::LoopOpt, Arm::Unchecked)),
            ns: [time, time * ratio_of_times.median],
            placements: [Arm::Baseline, Arm::LoopOpt].map(|arm| shortest(rounds, arm)),
        }
    }

    /// The slowest placement divided by the fastest, without and with loopopt.
    pub fn spread(&self) -> [f64; 2] {
        self.placements.map(|times| {
            let slowest = times.iter().copied().fold(0.0, f64::max);
            slowest / times.iter().copied().fold(f64::INFINITY, f64::min)
        })
    }

    /// The time at loopopt's best placement divided by that at the baseline's best: the ratio without bad luck.
    pub fn best(&self) -> f64 {
        let [baseline, loopopt] = self.placements.map(|times| times.iter().copied().fold(f64::INFINITY, f64::min));
        loopopt / baseline
    }

    /// The largest change that may be noise: as far as the interval of the baseline against itself is from 1.
    pub fn margin(&self) -> f64 {
        (self.noise.low - 1.0).abs().max((self.noise.high - 1.0).abs()).max(NOISE_FLOOR)
    }

    /// Whether the ratio may be noise: its interval holds 1, or it is no farther from 1 than noise is.
    pub fn is_noise(&self) -> bool {
        self.ratio.includes(1.0) || (self.ratio.median - 1.0).abs() <= self.margin()
    }
}

/// An arm's time divided by another's, over all placements, round by round.
fn ratio(rounds: &[Round], arm: Arm, by: Arm) -> Estimate {
    let ratios: Vec<f64> = rounds.iter().map(|round| sum(round, arm) / sum(round, by)).collect();
    Estimate::of(&ratios)
}

/// The time of an arm in a round, over all placements.
fn sum(round: &Round, arm: Arm) -> f64 {
    round.iter().map(|pairs| pairs[arm as usize].sum).sum()
}

/// The median over the rounds of the mean time of a call.
fn median_of_means(rounds: &[Round], arm: Arm) -> f64 {
    let means: Vec<f64> = rounds.iter().map(|round| sum(round, arm) / (2 * PLACES) as f64).collect();
    Estimate::of(&means).median
}

/// The shortest time of an arm at each placement.
fn shortest(rounds: &[Round], arm: Arm) -> [f64; PLACES] {
    std::array::from_fn(|place| {
        rounds.iter().map(|round| round[place][arm as usize].least).fold(f64::INFINITY, f64::min)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round in which the machine is slower by `factor`, loopopt needs `loopopt`, and the last placement costs 3 more.
    fn round(factor: f64, loopopt: f64) -> Round {
        std::array::from_fn(|place| {
            let more = if place == PLACES - 1 { 3.0 } else { 0.0 };
            [10.0, loopopt, 10.0, loopopt, 4.0, 4.0]
                .map(|time| Pair::new(factor * (time + more), factor * (time + more)))
        })
    }

    /// The mean over the placements of a time to which the last one adds 3.
    fn with_last(time: f64) -> f64 {
        time + 3.0 / PLACES as f64
    }

    #[test]
    fn slow_rounds_do_not_change_the_ratio() {
        let rounds: Vec<Round> = (0..20).map(|number| round(f64::from(1 + number % 7), 5.0)).collect();
        let figures = Figures::new(&rounds);
        assert!((figures.ratio.median - with_last(5.0) / with_last(10.0)).abs() < 1e-12);
        assert!((figures.ratio.high - figures.ratio.low).abs() < 1e-12);
        assert_eq!(figures.noise.median, 1.0);
        assert!(!figures.is_noise());
        let unchecked = figures.unchecked.expect("there is a time without checks");
        assert!((unchecked.median - with_last(5.0) / with_last(4.0)).abs() < 1e-12);
    }

    #[test]
    fn without_checks_there_is_nothing_to_compare_with() {
        let rounds = [round(1.0, 5.0).map(|[a, b, c, d, ..]| [a, b, c, d, Pair::default(), Pair::default()])];
        assert_eq!(Figures::new(&rounds).unchecked, None);
    }

    #[test]
    fn times_do_not_contradict_the_ratio() {
        // The machine is slow in the rounds in which loopopt is fast: the medians of both times are of different rounds.
        let rounds: Vec<Round> =
            (0..30).map(|number| if number % 5 < 2 { round(4.0, 2.0) } else { round(1.0, 8.0) }).collect();
        let Figures { ratio, ns: [baseline, loopopt], .. } = Figures::new(&rounds);
        assert_eq!((baseline, ratio.median), (with_last(10.0), with_last(8.0) / with_last(10.0)));
        assert!((loopopt / baseline - ratio.median).abs() < 1e-12);
    }

    #[test]
    fn times_are_medians_and_spread_is_over_placements() {
        let figures = Figures::new(&[round(3.0, 5.0), round(1.0, 5.0), round(2.0, 5.0)]);
        assert_eq!(figures.ns[0], 2.0 * with_last(10.0));
        assert!((figures.ns[1] - 2.0 * with_last(5.0)).abs() < 1e-12);
        assert_eq!(figures.best(), 0.5);
        assert_eq!(figures.spread(), [1.3, 8.0 / 5.0]);
    }

    #[test]
    fn no_change_is_noise() {
        assert!(Figures::new(&[round(1.0, 10.0); 10]).is_noise());
    }
}
