//! Medians and their intervals. Knows nothing of programs.

use statrs::distribution::{Binomial, DiscreteCDF as _};

/// A median with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The median.
    pub median: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Estimate {
    /// The median of a sample, with an interval that holds the true median with a probability of 95 %, whatever the
    /// distribution.
    ///
    /// # Panics
    ///
    /// If the sample is empty.
    pub fn of(sample: &[f64]) -> Self {
        assert!(!sample.is_empty(), "an empty sample has no median");
        let mut sorted = sample.to_vec();
        sorted.sort_by(f64::total_cmp);
        let low = rank(sorted.len());
        Self { median: middle(&sorted), low: sorted[low], high: sorted[sorted.len() - 1 - low] }
    }

    /// Whether the interval holds this value.
    pub fn includes(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// The index of the order statistic at which the 95 % interval of the median of `count` values begins. It ends as many
/// values from the other end.
///
/// Each value is below the true median with probability 1/2, so the number of them that are is binomial. The interval
/// misses on one side if at most `index` of them are. Below six values, all of them are not enough for 95 %.
fn rank(count: usize) -> usize {
    let below = Binomial::new(0.5, count as u64).expect("1/2 is a probability");
    let fits = (0..count / 2).take_while(|&index| below.cdf(index as u64) <= 0.025);
    fits.last().unwrap_or(0)
}

fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { (sorted[half - 1] + sorted[half]) / 2.0 }
}

/// The geometric mean, 1 of nothing.
pub fn geomean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = values.into_iter().fold((0.0, 0.0), |(sum, count), value| (sum + value.ln(), count + 1.0));
    if count == 0.0 { 1.0 } else { (sum / count).exp() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upto(count: u32) -> Vec<f64> {
        (1..=count).map(f64::from).collect()
    }

    #[test]
    fn medians_of_odd_and_even_samples() {
        assert_eq!(Estimate::of(&[3.0, 1.0, 2.0]).median, 2.0);
        assert_eq!(Estimate::of(&[4.0, 1.0, 3.0, 2.0]).median, 2.5);
        assert_eq!(Estimate::of(&[7.0]).median, 7.0);
    }

    /// The ranks are from tables of the sign test: 2 and 9 of 10, 6 and 15 of 20, 18 and 33 of 50, 40 and 61 of 100.
    #[test]
    fn intervals_are_those_of_the_tables() {
        for (count, low, high) in [(6, 1.0, 6.0), (10, 2.0, 9.0), (20, 6.0, 15.0), (50, 18.0, 33.0), (100, 40.0, 61.0)]
        {
            let estimate = Estimate::of(&upto(count));
            assert_eq!((estimate.low, estimate.high), (low, high), "{count}");
        }
    }

    #[test]
    fn small_samples_give_their_range() {
        let estimate = Estimate::of(&upto(4));
        assert_eq!((estimate.low, estimate.high), (1.0, 4.0));
    }

    #[test]
    fn the_order_does_not_matter() {
        let mut reversed = upto(25);
        reversed.reverse();
        assert_eq!(Estimate::of(&reversed), Estimate::of(&upto(25)));
    }

    #[test]
    fn an_interval_includes_its_ends() {
        let estimate = Estimate { median: 1.5, low: 1.0, high: 2.0 };
        assert!(estimate.includes(1.0) && estimate.includes(2.0) && !estimate.includes(2.1));
    }

    #[test]
    fn geometric_means() {
        assert!((geomean([0.5, 2.0]) - 1.0).abs() < 1e-12);
        assert!((geomean([2.0, 8.0]) - 4.0).abs() < 1e-12);
        assert_eq!(geomean([]), 1.0);
    }
}
