//! Probe `present`: processes that run already. Its rows have the form of those of [`crate::process`] and [`crate::mapping`].

use crate::clock::monotonic_now;
use crate::probe::Probe;

/// The declaration.
pub(crate) static PROBE: Probe = Probe {
    name: "present",
    title: "processes that run already",
    what: "Marks the tasks to follow, and reports of each what an exec would have reported.",
    asked_for: "`--pid`, `--match`, `--system`",
    price: "one walk over all tasks, when recording begins",
    is_essential: true,
    is_wanted: |options| options.running,
    settings: Some(|_, options, _| {
        // The one read-only variable: the recorder, when it begins to mark, and its writer.
        let values = [u64::from(std::process::id()), monotonic_now().0, u64::from(options.writer.unwrap_or(0))];
        values.iter().flat_map(|value| value.to_ne_bytes()).collect()
    }),
    ..Probe::USUAL
};
