//! Times a function that a compiler has made without and with loopopt, and checks that both give what they should.
//!
//! For the drivers of `ci/adopters/`, of which each compiles its programs with two builds of the same compiler.

#[path = "../../../../jit-harness/src/stats.rs"]
pub mod stats;

use anyhow::{Result, bail, ensure};
use stats::{Estimate, geomean};
use std::fmt::Debug;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// How many ratios the median is of, if they can be had in [`BUDGET`].
const ROUNDS: u128 = 101;
/// How many there are at least: with fewer than six, the interval is no more than the range.
const ROUNDS_AT_LEAST: u128 = 15;
/// How long a program may take.
const BUDGET: Duration = Duration::from_secs(10);
/// A sample is as many calls as take this long in the slower of both: the clock does not show, and a visit of the operating system is rare.
const SAMPLE: Duration = Duration::from_micros(500);

/// The figures of all programs.
#[derive(Debug, Default)]
pub struct Table {
    ratios: Vec<Estimate>,
}

impl Table {
    /// Calls both functions, checks what they return, times them in turns and prints a line. The noise is the first function by itself.
    ///
    /// # Errors
    ///
    /// If a call returns something else than `expected`.
    pub fn compare<R: PartialEq + Debug>(
        &mut self,
        name: &str,
        expected: &R,
        mut without: impl FnMut() -> R,
        mut with: impl FnMut() -> R,
    ) -> Result<()> {
        let checked = |arm: &str, call: &mut dyn FnMut() -> R| -> Result<Duration> {
            let start = Instant::now();
            let result = black_box(call());
            let time = start.elapsed();
            ensure!(result == *expected, "{name} {arm} loopopt returns {result:?}, not {expected:?}");
            Ok(time)
        };
        let mut first = Duration::ZERO;
        for _ in 0..3 {
            first = checked("without", &mut without)?.max(checked("with", &mut with)?);
        }
        let calls = (SAMPLE.as_nanos() / first.as_nanos().max(1)).clamp(1, 10_000);
        let rounds = (BUDGET.as_nanos() / (6 * calls * first.as_nanos().max(1))).clamp(ROUNDS_AT_LEAST, ROUNDS);
        let sample = |arm, call: &mut dyn FnMut() -> R| -> Result<f64> {
            (0..calls).try_fold(0.0, |sum, _| Ok(sum + checked(arm, call)?.as_secs_f64()))
        };
        let (mut baseline, mut loopopt, mut ratios, mut noise) = (vec![], vec![], vec![], vec![]);
        for round in 0..rounds as usize {
            // Each arm twice, in mirrored order: what becomes slower meanwhile makes all slower. The baseline is there twice.
            let mut sums = [0.0; 3];
            for place in [0, 1, 2, 2, 1, 0].map(|place| (place + round) % 3) {
                sums[place] += if place == 1 { sample("with", &mut with)? } else { sample("without", &mut without)? };
            }
            let per_call = sums.map(|sum| sum / (2.0 * calls as f64));
            baseline.push(per_call[0]);
            loopopt.push(per_call[1]);
            ratios.push(per_call[1] / per_call[0]);
            noise.push(per_call[2] / per_call[0]);
        }
        let (ratio, noise) = (Estimate::of(&ratios), Estimate::of(&noise));
        let micros = |times: &[f64]| Estimate::of(times).median * 1e6;
        println!(
            "{name:<16} without {:>9.2} µs, with {:>9.2} µs, ratio {:.3} ({:.3} to {:.3}), noise {:.3}",
            micros(&baseline),
            micros(&loopopt),
            ratio.median,
            ratio.low,
            ratio.high,
            noise.median
        );
        self.ratios.push(ratio);
        Ok(())
    }

    /// Prints the mean.
    ///
    /// # Errors
    ///
    /// If no program has become faster: then the passes do not run.
    pub fn finish(self) -> Result<()> {
        println!(
            "{} programs agree, geometric mean {:.3}",
            self.ratios.len(),
            geomean(self.ratios.iter().map(|ratio| ratio.median))
        );
        if !self.ratios.iter().any(|ratio| ratio.high < 1.0) {
            bail!("no program is faster with loopopt; see whether the patch still attaches it");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(to: u64) -> u64 {
        (0..to).fold(0, |sum, number| black_box(sum + number))
    }

    #[test]
    fn a_result_that_differs_is_an_error() {
        let error = Table::default().compare("count", &10, || count(5), || count(6)).unwrap_err();
        assert_eq!(error.to_string(), "count with loopopt returns 15, not 10");
        let error = Table::default().compare("count", &10, || count(4), || count(5)).unwrap_err();
        assert_eq!(error.to_string(), "count without loopopt returns 6, not 10");
    }

    #[test]
    fn a_faster_program_has_a_ratio_below_one() {
        let mut table = Table::default();
        let slow = || (count(10_000), count(1_000)).1;
        table.compare("count", &count(1_000), slow, || count(1_000)).unwrap();
        assert!(table.ratios[0].high < 0.5, "{:?}", table.ratios);
        table.finish().unwrap();
    }

    #[test]
    fn nothing_faster_is_an_error() {
        let mut table = Table::default();
        let slow = || (count(10_000), count(1_000)).1;
        table.compare("count", &count(1_000), || count(1_000), slow).unwrap();
        let error = table.finish().unwrap_err();
        assert_eq!(error.to_string(), "no program is faster with loopopt; see whether the patch still attaches it");
    }
}
