//! What an import gave.

use super::escape_terminal;
use slowpath_import::Imported;
use std::collections::BTreeMap;

/// The screen of `slowpath import`.
pub fn imported(imported: &Imported) -> String {
    let mut text = format!("imported {} into {}\n", imported.format, escape_terminal(&imported.recording));
    text.push_str(&format!("  rows          {}\n", counts(&imported.rows)));
    text.push_str(&format!("  not imported  {}\n", counts(&imported.not_imported)));
    text.push_str(&format!("  lost          {}\n", counts(&imported.losses.0)));
    text.push_str("not available\n");
    for gap in &imported.unavailable {
        let line = format!("{}: {} ({})", gap.what, gap.reason, gap.remedy);
        text.push_str(&format!("  {}\n", escape_terminal(&line)));
    }
    text
}

/// `3 reads, 1 opens`; `none`.
fn counts(map: &BTreeMap<String, u64>) -> String {
    let some = map.iter().filter(|(_, count)| **count > 0);
    let parts: Vec<String> = some.map(|(name, count)| format!("{count} {}", escape_terminal(name))).collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}
