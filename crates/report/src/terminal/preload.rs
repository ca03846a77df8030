//! Preload plans that were replayed or checked, on a terminal.

use super::escape_terminal;
use slowpath_fix::preload_plan::check::CheckReport;
use slowpath_fix::preload_plan::replay::ReplayReport;
use std::fmt::Write;

/// What was read ahead, how long it took, and what was left out.
pub fn plan_replayed(report: &ReplayReport) -> String {
    let time = report.arrived_ns.unwrap_or(report.elapsed_ns);
    let (read, ranges) = (report.bytes.as_mb(), report.ranges);
    let mut text = format!("{read:.1} MB in {ranges} ranges, in memory after {:.1} ms\n", time.as_ms());
    for (reason, skipped) in &report.skipped {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  left out: {} files, {} ranges: {reason:?}", skipped.files, skipped.ranges);
    }
    text
}

/// How much of a plan can be used, and which files cannot.
pub fn plan_checked(report: &CheckReport) -> String {
    let (files, usable, all) = (report.files, report.usable_bytes.as_mb(), report.bytes.as_mb());
    let mut text = format!("{files} files, {usable:.1} of {all:.1} MB usable\n");
    for file in &report.unusable {
        let path = escape_terminal(&file.path);
        let _ = writeln!(text, "  {path}: {:?} ({:.1} MB)", file.reason, file.bytes.as_mb());
    }
    text
}
