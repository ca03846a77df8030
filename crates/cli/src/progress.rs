//! Progress on standard error: only on a terminal, and never with `--quiet`.

use indicatif::{ProgressBar, ProgressStyle};
use slowpath_report::terminal::escape_terminal;
use slowpath_session as session;
use slowpath_session::progress::words;
use std::cell::RefCell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// What the user sees while a command works.
pub struct Progress {
    bar: ProgressBar,
    /// When the time of the command is over, where it has a limit.
    until: Option<Instant>,
    /// The series of launches that goes on.
    series: RefCell<Option<Series>>,
}

/// A series, from its first launch on.
struct Series {
    text: String,
    began: Instant,
    done: usize,
}

impl Progress {
    /// Shown only when standard error is a terminal and the user did not ask for quiet.
    pub fn new(quiet: bool) -> Self {
        let is_shown = !quiet && std::io::stderr().is_terminal();
        // No thread of its own draws: the process forks.
        let bar = if is_shown { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        Self { bar, until: None, series: RefCell::new(None) }
    }

    /// Says with every step how long the command takes at most.
    #[must_use]
    pub fn until(self, until: Option<Instant>) -> Self {
        Self { until, ..self }
    }

    /// Says what is being done now.
    pub fn step(&self, text: impl Into<String>) {
        // Even the preparation takes some us, between launches.
        if self.bar.is_hidden() {
            return;
        }
        let limit = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        let limit = limit.map(|left| format!(" (all ends within {})", words(left))).unwrap_or_default();
        self.bar.set_style(ProgressStyle::default_spinner());
        self.bar.set_message(escape_terminal(&(text.into() + &limit)));
        self.bar.tick();
    }

    /// Says how far a series of launches is, and how long the rest of it takes.
    pub fn count(&self, text: &str, done: usize, total: usize) {
        if self.bar.is_hidden() {
            return;
        }
        let mut series = self.series.borrow_mut();
        if series.as_ref().is_none_or(|series| series.text != text || series.done > done) {
            *series = Some(Series { text: text.to_owned(), began: Instant::now(), done });
        }
        let left = series
            .as_ref()
            .and_then(|series| left(series.began.elapsed(), done - series.done, total.saturating_sub(done)));
        let left = left.map(|left| format!(", {} left", words(left))).unwrap_or_default();
        self.step(format!("{text}: {done} of {total}{left}"));
    }

    /// Removes the line.
    pub fn done(&self) {
        self.bar.finish_and_clear();
    }
}

impl session::Progress for Progress {
    fn step(&self, text: &str) {
        Self::step(self, text);
    }

    fn count(&self, text: &str, done: usize, total: usize) {
        Self::count(self, text, done, total);
    }

    fn warn(&self, text: &str) {
        eprintln!("slowpath: warning: {text}");
    }

    fn done(&self) {
        Self::done(self);
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
}
