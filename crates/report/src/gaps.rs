//! What a recording lacks, in sentences for the notes of an export: a table or trace alone would hide it.

use slowpath_recording::Manifest;

/// One sentence a kind of lost events.
pub(crate) fn losses(manifest: &Manifest) -> Vec<String> {
    let lost = manifest.losses.0.iter().filter(|(_, lost)| **lost > 0);
    lost.map(|(kind, lost)| format!("{lost} events were lost: {kind}.")).collect()
}

/// One sentence for each thing that could not be observed.
pub(crate) fn unavailable(manifest: &Manifest) -> Vec<String> {
    let gaps = manifest.unavailable.iter();
    gaps.map(|gap| format!("Not observed: {} ({}).", gap.what, gap.reason)).collect()
}
