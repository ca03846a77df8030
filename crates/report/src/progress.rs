//! Progress on standard error: only on a terminal, and never with `--quiet`.

use crate::terminal::escape_terminal;
use indicatif::{ProgressBar, ProgressStyle};
use slowpath_session as session;
use slowpath_session::progress::{Series, words};
use std::cell::RefCell;
use std::io::IsTerminal;
use std::time::Instant;

/// What the user sees while a command works.
pub struct Progress {
    bar: ProgressBar,
    /// When the time of the command is over, where it has a limit.
    until: Option<Instant>,
    /// The series of launches that goes on.
    series: RefCell<Series>,
}

impl Progress {
    /// Shown only when standard error is a terminal and the user did not ask for quiet.
    pub fn new(quiet: bool) -> Self {
        let is_shown = !quiet && std::io::stderr().is_terminal();
        // No thread of its own draws: the process forks.
        let bar = if is_shown { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        Self { bar, until: None, series: RefCell::default() }
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
        let left = self.series.borrow_mut().left(text, done, total);
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
        eprintln!("slowpath: warning: {}", escape_terminal(text));
    }

    fn done(&self) {
        Self::done(self);
    }
}
