//! What was collected from an Android device, what an audit of it says, and what became of repairs, on a terminal.

use super::escape_terminal as line;
use slowpath_android::adb::Applied;
use slowpath_android::audit::{AndroidAudit, CodeAudit, FileAudit, PackageAudit, ReadState, Repair};
use slowpath_android::evidence::{EvidenceManifest, StepOutcome};
use std::fmt::Write;

/// Rows of one package; JSON has all.
const MOST_ROWS: usize = 24;

/// An audit, with a newline after every line.
pub fn android_audit(audit: &AndroidAudit) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(text, "{}decided for isolated uid {}", device(audit), audit.uid);
    for package in &audit.packages {
        of_package(&mut text, package);
    }
    for engine in &audit.engines {
        let users: Vec<String> =
            engine.packages.iter().map(|one| format!("{} ({})", line(&one.name), one.outcome.name())).collect();
        let _ = writeln!(text, "{} is code of {}", line(&engine.library), users.join(", "));
    }
    for gap in &audit.unavailable {
        let _ =
            writeln!(text, "not known: {}: {}\n  remedy: {}", line(&gap.what), line(&gap.reason), line(&gap.remedy));
    }
    text
}

fn device(audit: &AndroidAudit) -> String {
    let device = &audit.device;
    let mut parts: Vec<String> = Vec::new();
    parts.extend(device.model.as_deref().map(line));
    parts.extend(device.serial.as_deref().map(|serial| format!("serial {}", line(serial))));
    parts.extend(device.release.as_deref().map(|release| format!("Android {}", line(release))));
    parts.extend(device.api_level.map(|level| format!("API level {level}")));
    if parts.is_empty() { String::new() } else { parts.join(", ") + "; " }
}

fn of_package(text: &mut String, package: &PackageAudit) {
    let version = package.version.as_deref().map(|version| format!(" {}", line(version))).unwrap_or_default();
    let isolated = match package.isolated_processes {
        None => String::new(),
        Some(0) => "; no isolated process ran".to_owned(),
        Some(1) => "; 1 isolated process ran".to_owned(),
        Some(many) => format!("; {many} isolated processes ran"),
    };
    let _ = writeln!(text, "\n{}{version}: {}{isolated}", line(&package.name), package.outcome.name());
    for verdict in &package.verdicts {
        let _ = writeln!(text, "  {}", line(verdict));
    }
    if !package.code.is_empty() {
        let _ = writeln!(text, "  {:<22} {:<7} {:<14} {:<11} {:<17} vdex", "code", "isa", "filter", "reason", "odex");
    }
    for code in package.code.iter().take(MOST_ROWS) {
        let _ = writeln!(
            text,
            "  {:<22} {:<7} {:<14} {:<11} {:<17} {}{}",
            name_of(code),
            line(&code.isa),
            line(code.filter.as_deref().unwrap_or("?")),
            line(code.reason.as_deref().unwrap_or("-")),
            file(&code.odex),
            file(&code.vdex),
            if code.has_cloud_profile == Some(true) { "  cloud profile" } else { "" },
        );
    }
    if package.code.len() > MOST_ROWS {
        let _ = writeln!(text, "  {} more rows: --json has all", package.code.len() - MOST_ROWS);
    }
    for (number, repair) in package.repairs.iter().enumerate() {
        of_repair(text, number + 1, repair);
    }
}

fn name_of(code: &CodeAudit) -> String {
    let name = line(code.apk.rsplit('/').next().unwrap_or(&code.apk));
    if code.is_library { format!("{name} (library)") } else { name }
}

fn file(file: &FileAudit) -> String {
    let state = match file.state {
        ReadState::Readable => "readable",
        ReadState::Unreadable => "unreadable",
        ReadState::Missing => "missing",
        ReadState::Unknown => "unknown",
    };
    file.mode.as_ref().map_or_else(|| state.to_owned(), |mode| format!("{mode} {state}"))
}

fn of_repair(text: &mut String, number: usize, repair: &Repair) {
    let _ = writeln!(text, "  {number}. {}: {}", repair.name, line(&repair.what));
    if let Some(command) = &repair.command {
        let _ = writeln!(text, "     command: {}{}", line(command), if repair.can_apply { "" } else { "   (as root)" });
    }
    let _ = writeln!(text, "     price: {}\n     security: {}", line(&repair.price), line(&repair.security));
    if let Some(undo) = &repair.undo {
        let _ = writeln!(text, "     undo: {}", line(undo));
    }
}

/// What was collected, with a newline after every line.
pub fn android_collected(manifest: &EvidenceManifest, directory: &str) -> String {
    let mut text = String::new();
    let done = manifest.steps.iter().filter(|step| step.outcome == StepOutcome::Done).count();
    let bytes: u64 = manifest.steps.iter().map(|step| step.bytes).fold(0, u64::saturating_add);
    let _ = writeln!(
        text,
        "{}: {done} of {} commands as they should, {} KiB in {}{}",
        line(&manifest.serial),
        manifest.steps.len(),
        bytes >> 10,
        line(directory),
        if manifest.is_complete { "" } else { "; collecting ended before its end" },
    );
    for step in manifest.steps.iter().filter(|step| step.outcome != StepOutcome::Done) {
        let outcome = match step.outcome {
            StepOutcome::Done => "done",
            StepOutcome::PartlyRefused => "partly refused",
            StepOutcome::Refused => "refused",
            StepOutcome::Failed => "failed",
            StepOutcome::TimedOut => "timed out",
            StepOutcome::CutShort => "cut short",
            StepOutcome::Disconnected => "device gone",
            StepOutcome::Interrupted => "interrupted",
        };
        let _ = writeln!(
            text,
            "  {outcome}: {}: {}",
            line(&step.what),
            line(step.said.as_deref().unwrap_or("nothing was said"))
        );
        if let Some(remedy) = &step.remedy {
            let _ = writeln!(text, "    remedy: {}", line(remedy));
        }
    }
    let _ = writeln!(text, "next: slowpath android audit {}", line(directory));
    text
}

/// What became of repairs, with a newline after every line.
pub fn android_repaired(applied: &[Applied]) -> String {
    let mut text = String::new();
    for one in applied {
        let now = one.now.map_or("not looked at again", |now| now.name());
        let _ =
            writeln!(text, "{}: {}: {} before, {now} now", line(&one.package), one.outcome.name(), one.found.name());
        if let Some(command) = &one.command {
            let _ = writeln!(text, "  {}: {}", line(command), line(one.said.as_deref().unwrap_or("nothing was said")));
        } else if let Some(said) = &one.said {
            let _ = writeln!(text, "  {}", line(said));
        }
    }
    text
}
