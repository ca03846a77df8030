//! The clock of recordings.

use slowpath_tables::Nanos;

/// `CLOCK_MONOTONIC` now.
pub fn monotonic_now() -> Nanos {
    // The clock exists on every Linux; a failure could only be a wrong constant.
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC)
        .unwrap_or_else(|_| nix::sys::time::TimeSpec::new(0, 0));
    Nanos(u64::try_from(now.tv_sec()).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec()).unwrap_or(0))
}
