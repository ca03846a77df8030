//! Whether recordings are compared as they are, or a second of one with a second of the other.
//!
//! A launch that got ready is a piece of work: a faster program has a shorter one, and a rate would hide that. Of processes that
//! run already, an arbitrary length was recorded: what it holds grows with it.

use super::printed::{Basis, Compared};

/// Lengths that differ by no more than this are alike.
const ALIKE: f64 = 0.01;

/// What to compare, and why.
pub(super) fn basis(before: &[Compared], after: &[Compared], per_second: bool) -> (Basis, String) {
    let all = || before.iter().chain(after);
    let seconds = |one: &Compared| one.costs.length.as_ms() / 1000.0;
    let shortest = all().map(seconds).fold(f64::INFINITY, f64::min);
    let longest = all().map(seconds).fold(0.0, f64::max);
    let are_alike = longest - shortest <= longest * ALIKE;
    let lengths = format!("{shortest:.2} to {longest:.2} s");
    if per_second {
        return (Basis::Second, "figures are those of a second, as asked for".to_owned());
    }
    if all().all(|one| one.costs.is_launch) {
        let reason = if are_alike {
            "each recording is a launch until it was ready: figures are those of a launch".to_owned()
        } else {
            format!(
                "each recording is a launch until it was ready ({lengths}): figures are those of a launch, not of a second"
            )
        };
        return (Basis::Recording, reason);
    }
    if are_alike {
        return (Basis::Recording, "all recordings are equally long: figures are those of a recording".to_owned());
    }
    (Basis::Second, format!("the recordings are not equally long ({lengths}): figures are those of a second"))
}

/// What a figure of a recording is multiplied by.
pub fn factor(one: &Compared, basis: Basis) -> f64 {
    let seconds = one.costs.length.as_ms() / 1000.0;
    match basis {
        Basis::Second if seconds > 0.0 => 1.0 / seconds,
        _ => 1.0,
    }
}
