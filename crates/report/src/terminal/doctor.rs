//! What works on a machine, on a terminal.

use super::escape_terminal;
use slowpath_verify::doctor::Doctor;
use std::fmt::Write;

/// The lines.
pub fn doctor(doctor: &Doctor) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let mut line = |shown: String| {
        let _ = writeln!(text, "{}", escape_terminal(&shown));
    };
    line(format!("kernel {}", doctor.kernel));
    let word = |able: bool| if able { "yes" } else { "no" };
    line(format!("record: {}   private cold starts: {}", word(doctor.can_record), word(doctor.can_use_lab)));
    for check in doctor.checks.iter().filter(|check| check.gap.is_none()) {
        line(format!("  ok       {}", check.what));
    }
    if doctor.can_use_lab {
        line("  ok       lab".to_owned());
    }
    for gap in &doctor.unavailable {
        line(format!("  missing  {}: {}", gap.what, gap.reason));
        line(format!("           remedy: {}", gap.remedy));
    }
    for path in &doctor.leftovers {
        line(format!("  left by a killed slowpath: {path} (remove with `slowpath doctor --clean`)"));
    }
    for path in &doctor.removed {
        line(format!("  removed {path}"));
    }
    text
}
