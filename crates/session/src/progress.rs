//! What is said while work goes on. Leaves to the command how, and whether, that is shown.

use std::time::Duration;

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
