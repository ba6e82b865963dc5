//! Samples of the time of a call, and the figures that are made of them.
//!
//! The arms take turns as in the harness ([`jit_harness::schedule`]), and all ratios are of times of the same turn. Each
//! sample is a run of an instance of its own, of which only the call is timed. All arms are compiled at several places of a
//! cache line ([`crate::placement`]), and a turn has samples of all places: how good a place an arm happens to get is no
//! part of the ratio. The same holds of addresses as a whole, which the branch predictors and the caches distinguish by bits that
//! collide: all arms are compiled several times, and are at other addresses each time.

use crate::arm::{CompiledArm, Program, Setup};
use crate::guest::{Call, Guest};
use crate::observation::Observation;
use crate::placement::SHIFTS;
use anyhow::{Result, bail};
use jit_harness::schedule::{Arm, turn};
use jit_harness::stats::Estimate;
use std::time::{Duration, Instant};

/// The arms that are timed: each of the two twice, for what is only noise, and as one copy learns from the other ([`jit_harness::schedule`]).
const TIMED: usize = 4;
/// How often all arms are compiled. Of one compilation, the same code measured 0.88 to 0.94 from process to process
/// (`stencil2d-o2`), with intervals that do not show it.
const VISITS: u32 = 3;
/// The fewest turns of a visit.
const MIN_TURNS: usize = 2;
/// The most turns of a visit: more make nothing better.
const MAX_TURNS: usize = 200;
/// Changes below this are never taken for more than noise: the same code at other addresses differs by as much.
const NOISE_FLOOR: f64 = 0.005;

/// The samples of a turn: of each arm two at each place, in nanoseconds.
type Turn = [Vec<f64>; TIMED];

/// Samples of a program in a mode.
#[derive(Debug, Default)]
pub struct Samples(Vec<Turn>);

/// What samples say.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Time with loopopt divided by the time without.
    pub ratio: Estimate,
    /// The same for the baseline and itself.
    pub noise: Estimate,
    /// Time of a call in nanoseconds, without and with loopopt: of each turn, the mean of the samples that the ratio is made of, and of these the median.
    pub ns: [f64; 2],
    /// How many turns that is of.
    pub turns: usize,
}

impl Samples {
    /// Takes samples until the budget is spent. The error is for runs that do not end as they should.
    pub fn of(program: &Program, setup: &Setup, timed: (&Call, &Observation), budget: Duration) -> Result<Self> {
        let mut samples = Self::default();
        // Those of the visits before keep their addresses.
        let mut visits = Vec::<Vec<Vec<_>>>::new();
        for _ in 0..VISITS {
            let places = SHIFTS.iter().map(|&shift| {
                let setup = Setup { shift: Some(shift), ..setup.clone() };
                Arm::ALL.into_iter().take(TIMED).map(|arm| CompiledArm::new(program, &setup, arm)).collect()
            });
            visits.push(places.collect::<Result<Vec<_>>>()?);
            samples.visit(visits.last().expect("this visit"), timed, budget / VISITS)?;
        }
        Ok(samples)
    }

    fn visit(&mut self, places: &[Vec<CompiledArm>], timed: (&Call, &Observation), budget: Duration) -> Result<()> {
        // Caches, predictors and the clock frequency settle in the first turn.
        sample(places, 0, timed)?;
        let start = Instant::now();
        let mut turns = 0;
        while turns < MIN_TURNS || (turns < MAX_TURNS && start.elapsed() < budget) {
            self.0.push(sample(places, turns, timed)?);
            turns += 1;
        }
        Ok(())
    }

    /// What the samples say.
    ///
    /// # Panics
    ///
    /// If there are none.
    pub fn figures(&self) -> Figures {
        Figures {
            ratio: self.ratio(Arm::LoopOpt),
            noise: self.ratio(Arm::Again),
            ns: [Arm::Baseline, Arm::LoopOpt].map(|arm| self.time(arm)),
            turns: self.0.len(),
        }
    }

    /// The median over the turns of the mean time of a call.
    fn time(&self, arm: Arm) -> f64 {
        let mean = |times: &Vec<f64>| times.iter().sum::<f64>() / times.len() as f64;
        let means: Vec<f64> = self.0.iter().map(|turn| mean(&turn[arm as usize])).collect();
        Estimate::of(&means).median
    }

    fn ratio(&self, arm: Arm) -> Estimate {
        let sum = |turn: &Turn, arm: Arm| turn[arm as usize].iter().sum::<f64>();
        let ratios: Vec<f64> = self.0.iter().map(|turn| sum(turn, arm) / sum(turn, Arm::Baseline)).collect();
        Estimate::of(&ratios)
    }
}

fn sample(places: &[Vec<CompiledArm>], number: usize, (call, expected): (&Call, &Observation)) -> Result<Turn> {
    let mut times = Turn::default();
    for (arms, arm) in
        places.iter().enumerate().flat_map(|(place, arms)| turn(number + place, TIMED).map(move |arm| (arms, arm)))
    {
        let ended = Guest::new(&arms[arm as usize], call)?.run();
        if !ended.outcome().is_like(&expected.outcome) || ended.stdout() != expected.stdout {
            bail!("another run did not do the same: it {} instead of {}", ended.outcome(), expected.outcome);
        }
        times[arm as usize].push(ended.time.as_nanos() as f64);
    }
    Ok(times)
}

impl Figures {
    /// Whether the ratio may be noise: its interval holds 1, or it is no farther from 1 than the interval of the baseline
    /// against itself is.
    pub fn is_noise(&self) -> bool {
        let floor = (self.noise.low - 1.0).abs().max((self.noise.high - 1.0).abs()).max(NOISE_FLOOR);
        self.ratio.includes(1.0) || (self.ratio.median - 1.0).abs() <= floor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_turns_do_not_change_the_ratio() {
        let turns = (1..=20).map(|factor| [10.0, 5.0, 10.0, 5.0].map(|time| vec![time * f64::from(factor); 2]));
        let figures = Samples(turns.collect()).figures();
        assert_eq!((figures.ratio.median, figures.noise.median), (0.5, 1.0));
        assert_eq!((figures.ns, figures.turns), ([105.0, 52.5], 20));
        assert!(!figures.is_noise());
    }

    #[test]
    fn no_change_is_noise() {
        assert!(Samples(vec![[10.0; TIMED].map(|time| vec![time; 2]); 10]).figures().is_noise());
    }
}
