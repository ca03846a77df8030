//! How many spares the demand asks for. Pure.
//!
//! A spare that is taken is missing until the next one is forked, which takes the start time. Requests that come in meanwhile meet one only
//! if as many wait. With arrivals at random (a Poisson process) of a rate r, in a start time t there are r * t on average, and 3 standard
//! deviations more in about 1 of 1000: r t + 3 sqrt(r t), rounded up.

use std::time::{Duration, Instant};

/// Weight of what is new in the averages: half of it is of the last five requests.
const WEIGHT: f64 = 0.13;

/// Standard deviations above the mean.
const MARGIN: f64 = 3.0;

/// What is known of the demand.
#[derive(Clone, Debug, Default)]
pub struct Demand {
    last: Option<Instant>,
    /// Mean time between requests, s.
    between: Option<f64>,
    /// Mean time from a fork until the child is ready, s.
    start: Option<f64>,
}

fn mixed(old: Option<f64>, new: f64) -> Option<f64> {
    Some(old.map_or(new, |old| old + WEIGHT * (new - old)))
}

impl Demand {
    /// A request came in.
    pub fn arrived(&mut self, now: Instant) {
        if let Some(last) = self.last {
            self.between = mixed(self.between, now.saturating_duration_since(last).as_secs_f64());
        }
        self.last = Some(now);
    }

    /// A child took so long from its fork until it was ready.
    pub fn took(&mut self, start: Duration) {
        self.start = mixed(self.start, start.as_secs_f64());
    }

    /// Requests a second; the time since the last counts once it is longer than usual, so that the rate falls when nobody asks.
    pub fn rate(&self, now: Instant) -> f64 {
        let (Some(between), Some(last)) = (self.between, self.last) else { return 0.0 };
        1.0 / between.max(now.saturating_duration_since(last).as_secs_f64()).max(1e-6)
    }

    /// From a fork until the child is ready, s; 0 before the first.
    pub fn start(&self) -> f64 {
        self.start.unwrap_or(0.0)
    }

    /// Spares that should wait, between two bounds.
    pub fn spares(&self, now: Instant, least: u32, most: u32) -> u32 {
        let expected = self.rate(now) * self.start();
        let wanted = (expected + MARGIN * expected.sqrt()).ceil();
        // In range: it is at most `most`.
        (wanted.min(f64::from(most)) as u32).max(least).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests every `between`, each child ready after `start`.
    fn steady(between: Duration, start: Duration) -> (Demand, Instant) {
        let (mut demand, mut now) = (Demand::default(), Instant::now());
        for _ in 0..50 {
            now += between;
            demand.arrived(now);
            demand.took(start);
        }
        (demand, now)
    }

    #[test]
    fn more_requests_and_slower_starts_ask_for_more_spares_within_the_bounds() {
        let spares = |between, start, least, most| {
            let (demand, now) = steady(Duration::from_millis(between), Duration::from_millis(start));
            demand.spares(now, least, most)
        };
        assert_eq!(spares(1000, 10, 0, 64), 1, "a hundredth of a request in a start");
        assert_eq!(spares(100, 100, 0, 64), 4, "one request in a start: 1 + 3");
        assert_eq!(spares(25, 100, 0, 64), 10, "four: 4 + 6");
        assert_eq!((spares(25, 100, 0, 3), spares(25, 100, 12, 64)), (3, 12));
        assert_eq!(Demand::default().spares(Instant::now(), 0, 64), 0);
    }

    #[test]
    fn the_rate_falls_when_nobody_asks() {
        let (demand, now) = steady(Duration::from_millis(10), Duration::from_millis(100));
        assert!((demand.rate(now) - 100.0).abs() < 1.0);
        assert!(demand.rate(now + Duration::from_secs(100)) < 0.011);
        assert_eq!(demand.spares(now + Duration::from_secs(10_000), 0, 64), 1);
    }
}
