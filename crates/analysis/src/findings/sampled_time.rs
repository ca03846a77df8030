//! How much CPU time samples stand for.
//!
//! **Value.** Samples times the time between two of a CPU. **Interval.** Samples that come by chance are Poisson-distributed: 95 %
//! by Byar's approximation to the exact limits (Breslow and Day, Statistical Methods in Cancer Research, volume II, 1987, page 69).
//! The timer is regular, not random: work that keeps step with it is met more often or less than by chance, and nothing shows it.

use slowpath_tables::{Quantity, Unit};

/// Quantile of the normal distribution for 95 %, two-sided.
const NORMAL_975: f64 = 1.96;

/// CPU time of so many samples, taken `hertz` times a second on each CPU, in ms.
pub(crate) fn sampled_time(samples: u64, hertz: u64) -> Quantity {
    let period = 1000.0 / hertz.max(1) as f64;
    let (low, high) = poisson_95(samples as f64);
    Quantity::interval(samples as f64 * period, low * period, high * period, Unit::Ms)
}

fn poisson_95(count: f64) -> (f64, f64) {
    let limit = |count: f64, sign: f64| {
        let cube = 1.0 - 1.0 / (9.0 * count) + sign * NORMAL_975 / (3.0 * count.sqrt());
        count * cube.max(0.0).powi(3)
    };
    (if count > 0.0 { limit(count, -1.0) } else { 0.0 }, limit(count + 1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_exact_poisson_limits() {
        // Garwood's exact limits, from tables (Ulm 1990 has the same).
        for (count, low, high) in
            [(0.0, 0.0, 3.689), (1.0, 0.0253, 5.572), (10.0, 4.795, 18.390), (100.0, 81.364, 121.627)]
        {
            let (got_low, got_high) = poisson_95(count);
            assert!((got_low - low).abs() <= 0.03 && (got_high - high).abs() <= 0.03, "{count}: {got_low} {got_high}");
        }
        let time = sampled_time(50, 500);
        assert_eq!((time.value, time.unit), (100.0, Unit::Ms));
        assert!(time.low.unwrap() < 76.0 && time.high.unwrap() > 130.0, "{time:?}");
    }
}
