//! What was recorded, in a line.

use super::escape_terminal;
use slowpath_recording::Manifest;
use std::path::Path;

/// The line.
pub fn recorded(manifest: &Manifest, directory: &Path) -> String {
    // A process that executes another has run two.
    let programs = manifest.rows("execs");
    let kinds = [
        ("faults", "faults", true),
        ("page_cache", "page-cache insertions", true),
        ("opens", "opens", false),
        ("cpu_samples", "CPU samples", false),
        ("off_cpu", "waits", false),
        ("memory_calls", "memory calls", false),
    ];
    let counted = kinds.into_iter().map(|(table, words, always)| (manifest.rows(table), words, always));
    let shown = counted.filter(|(rows, _, always)| *always || *rows > 0);
    let shown: Vec<String> = shown.map(|(rows, words, _)| format!("{rows} {words}")).collect();
    format!(
        "recorded {} of {programs} program{} in {}; {} events lost",
        shown.join(", "),
        if programs == 1 { "" } else { "s" },
        escape_terminal(&directory.to_string_lossy()),
        manifest.losses.total(),
    )
}
