//! Progress on standard error: only on a terminal, and never with `--quiet`.

use indicatif::{ProgressBar, ProgressStyle};
use slowpath_report::terminal::escape_terminal;
use std::io::IsTerminal;

/// What the user sees while a command works.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Shown only when standard error is a terminal and the user did not ask for quiet.
    pub fn new(quiet: bool) -> Self {
        if quiet || !std::io::stderr().is_terminal() {
            return Self { bar: ProgressBar::hidden() };
        }
        let bar = ProgressBar::new_spinner();
        // No thread of its own draws: the process forks.
        Self { bar }
    }

    /// Says what is being done now.
    pub fn step(&self, text: impl Into<String>) {
        // Even the preparation takes some us, between launches.
        if self.bar.is_hidden() {
            return;
        }
        self.bar.set_style(ProgressStyle::default_spinner());
        self.bar.set_message(escape_terminal(&text.into()));
        self.bar.tick();
    }

    /// Says how far a series of launches is.
    pub fn count(&self, text: &str, done: usize, total: usize) {
        self.step(format!("{text}: {done} of {total}"));
    }

    /// Removes the line.
    pub fn done(&self) {
        self.bar.finish_and_clear();
    }
}
