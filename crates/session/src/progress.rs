//! What is said while work goes on. Leaves to the command how, and whether, that is shown.

use std::time::{Duration, Instant};

/// Somebody who waits and may want to know what for.
pub trait Progress {
    /// Says what is being done now.
    fn step(&self, text: &str);

    /// Says how far a series of launches is.
    fn count(&self, text: &str, done: usize, total: usize);

    /// Says something that stays.
    fn warn(&self, text: &str);

    /// There is nothing more to wait for.
    fn done(&self);
}

/// A time as a user thinks of it: `40 s`, `3 min`.
pub fn words(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 100.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", (seconds / 60.0).ceil()) }
}

/// The series of launches that goes on, from its first launch on.
#[derive(Debug, Default)]
pub struct Series(Option<Begun>);

#[derive(Debug)]
struct Begun {
    text: String,
    began: Instant,
    done: usize,
}

impl Series {
    /// How long the rest of the series takes, once a launch of it is done; another text, or a lower number, begins another.
    pub fn left(&mut self, text: &str, done: usize, total: usize) -> Option<Duration> {
        let is_another = self.0.as_ref().is_none_or(|begun| begun.text != text || begun.done > done);
        if is_another {
            self.0 = Some(Begun { text: text.to_owned(), began: Instant::now(), done });
        }
        let begun = self.0.as_ref()?;
        left(begun.began.elapsed(), done - begun.done, total.saturating_sub(done))
    }
}

/// How long the rest takes where it is as fast as what was done in `elapsed`.
fn left(elapsed: Duration, done: usize, rest: usize) -> Option<Duration> {
    (done > 0).then(|| elapsed.mul_f64(rest as f64 / done as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_series_is_as_fast_as_its_beginning() {
        assert_eq!(left(Duration::from_secs(10), 5, 15), Some(Duration::from_secs(30)));
        assert_eq!(left(Duration::from_secs(10), 0, 15), None);
        assert_eq!(words(Duration::from_secs(40)), "40 s");
        assert_eq!(words(Duration::from_secs(121)), "3 min");
    }

    #[test]
    fn a_series_begins_anew_with_another_text_or_a_lower_number() {
        let mut series = Series::default();
        assert_eq!(series.left("cold", 3, 9), None);
        assert!(series.left("cold", 5, 9).is_some());
        assert_eq!(series.left("cold", 1, 9), None);
        assert_eq!(series.left("warm", 6, 9), None);
    }
}
