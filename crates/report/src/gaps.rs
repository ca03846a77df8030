//! What a recording lacks, in sentences for the notes of an export: a table or trace alone would hide it.

use slowpath_recording::Manifest;

/// One sentence for each kind of lost events and each thing that could not be observed.
pub fn notes(manifest: &Manifest) -> Vec<String> {
    let lost = manifest.losses.0.iter().filter(|(_, lost)| **lost > 0);
    let lost = lost.map(|(kind, lost)| format!("{lost} events were lost: {kind}."));
    let gaps = manifest.unavailable.iter();
    lost.chain(gaps.map(|gap| format!("Not observed: {} ({}).", gap.what, gap.reason))).collect()
}
