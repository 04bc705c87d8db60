// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Means, percentiles, and confidence intervals; the lab computes the same from the kernel's runs.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean over seeds with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Interval {
    /// The mean; none of no values.
    pub mean: Option<f64>,
    /// Lower end of the interval; one value has none.
    pub lo: Option<f64>,
    /// Upper end of the interval.
    pub hi: Option<f64>,
    /// Number of values.
    #[serde(skip)]
    pub values: usize,
}

impl Interval {
    /// The interval by Student's t: `mean ± t(0.975, n - 1) s / sqrt(n)`.
    pub fn of(values: &[f64]) -> Self {
        let Some(mean) = mean(values) else { return Self::default() };
        let n = values.len() as f64;
        // The constructor wants at least one degree of freedom.
        let Ok(t) = StudentsT::new(0.0, 1.0, n - 1.0) else {
            return Self { mean: Some(mean), values: values.len(), ..Self::default() };
        };
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let half = t.inverse_cdf(0.975) * (variance / n).sqrt();
        let (lo, hi) = (Some(mean - half), Some(mean + half));
        Self { mean: Some(mean), lo, hi, values: values.len() }
    }
}

/// The arithmetic mean; none of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The percentile `q` (0 to 100) of values in ascending order, interpolated linearly between the two
/// nearest; none of nothing.
pub fn percentile(sorted: &[f64], q: f64) -> Option<f64> {
    let place = q / 100.0 * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    Some(low + (high - low) * place.fract())
}

/// The values in ascending order.
pub fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_interpolated_linearly() {
        // Place of q in 4 values: 3 q / 100. 50: 1.5, halfway from 2 to 4. 95: 2.85.
        let values = sorted([8.0, 1.0, 4.0, 2.0]);
        assert_eq!(percentile(&values, 0.0), Some(1.0));
        assert_eq!(percentile(&values, 50.0), Some(3.0));
        assert!((percentile(&values, 95.0).unwrap() - 7.4).abs() < 1e-12);
        assert_eq!(percentile(&values, 100.0), Some(8.0));
        assert_eq!(percentile(&[7.0], 99.0), Some(7.0));
        assert_eq!(percentile(&[], 50.0), None);
    }

    #[test]
    fn the_interval_is_students() {
        // 1, 2, 3: mean 2, s = 1, t(0.975, 2) = 4.30265, so 4.30265 / sqrt(3) = 2.48414 each way.
        let of_three = Interval::of(&[1.0, 2.0, 3.0]);
        assert_eq!(of_three.mean, Some(2.0));
        assert!((of_three.lo.unwrap() - (2.0 - 2.48414)).abs() < 1e-5);
        assert!((of_three.hi.unwrap() - (2.0 + 2.48414)).abs() < 1e-5);
        // 0 and 1: mean 0.5, s = 0.70711, t(0.975, 1) = 12.70620: 6.35310 each way.
        let of_two = Interval::of(&[0.0, 1.0]);
        assert!((of_two.hi.unwrap() - 6.85310).abs() < 1e-5);
    }

    #[test]
    fn one_value_has_a_mean_and_no_interval_and_none_has_neither() {
        let of_one = Interval::of(&[3.0]);
        assert_eq!(of_one, Interval { mean: Some(3.0), lo: None, hi: None, values: 1 });
        assert_eq!(Interval::of(&[]), Interval::default());
    }
}
