//! Cold launches in a lab, on a terminal.

use super::escape_terminal;
use slowpath_verify::lab_launches::{LabLaunches, Labs};
use std::fmt::Write;

/// One line a launch, and the files that it did not get from the lab.
pub fn lab_launches(launched: &LabLaunches) -> String {
    let mut text = String::new();
    for launch in &launched.launches {
        let state = launch.reason.as_deref().unwrap_or("cold");
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{:9.1} ms to ready, {:7.1} MB read, {}",
            launch.time_to_ready.value,
            launch.bytes_read.value / 1e6,
            escape_terminal(state)
        );
        for file in &launch.left_out {
            let _ = writeln!(text, "  lab miss: {}", escape_terminal(file));
        }
    }
    text
}

/// One line a lab.
pub fn lab_list(labs: &Labs) -> String {
    let mut text = String::new();
    for lab in &labs.labs {
        let owner = if lab.owner_alive { "in use by" } else { "left by" };
        let _ = writeln!(text, "{}  {owner} process {}", escape_terminal(&lab.path), lab.pid);
    }
    text
}
