//! What is said while work goes on. Leaves to the command how, and whether, that is shown.

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
