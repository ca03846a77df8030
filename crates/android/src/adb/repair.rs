//! Repairs on a device: the command of each, and what the device said. Whether it helped, the next audit says.

use super::client::{Adb, Broken};
use super::error::AdbError;
use crate::audit::{AndroidAudit, CodeOutcome, PackageAudit, Repair};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Compiling all methods of a browser takes minutes on a slow phone.
const TIMEOUT: Duration = Duration::from_secs(900);

/// What became of a package, which is what is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RepairOutcome {
    /// Its code was usable before.
    NotNeeded,
    /// It is usable now and was not before.
    Repaired,
    /// It is not, although the command ran.
    RepairFailed,
    /// The command did not run to its end.
    NotRun,
}

impl RepairOutcome {
    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotNeeded => "not_needed",
            Self::Repaired => "repaired",
            Self::RepairFailed => "repair_failed",
            Self::NotRun => "not_run",
        }
    }
}

/// A repair that was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Applied {
    /// The package.
    pub package: String,
    /// The repair; `null` where none was needed.
    pub repair: Option<String>,
    /// The command on the device.
    pub command: Option<String>,
    /// What the device said.
    pub said: Option<String>,
    /// What was counted before.
    pub found: CodeOutcome,
    /// What is counted now; `null` where it was not looked at again.
    pub now: Option<CodeOutcome>,
    /// What became of it.
    pub outcome: RepairOutcome,
}

/// The repair of a package that is run: the one of this name, else the first that can be.
pub fn chosen<'a>(package: &'a PackageAudit, name: Option<&str>) -> Option<&'a Repair> {
    let mut can = package.repairs.iter().filter(|repair| repair.can_apply && repair.command.is_some());
    can.find(|repair| name.is_none_or(|name| name == repair.name))
}

/// Runs the repair of each package that needs one.
///
/// # Errors
/// The device went away. What was run before stays done.
pub fn apply(
    adb: &Adb<'_>,
    audit: &AndroidAudit,
    name: Option<&str>,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Applied>, AdbError> {
    let mut all = Vec::new();
    for package in &audit.packages {
        let mut applied = Applied {
            package: package.name.clone(),
            repair: None,
            command: None,
            said: None,
            found: package.outcome,
            now: None,
            outcome: RepairOutcome::NotNeeded,
        };
        if package.outcome.calls_for_repair() {
            match chosen(package, name).and_then(|repair| Some((repair, repair.command.clone()?))) {
                Some((repair, command)) => {
                    progress(&command);
                    applied.repair = Some(repair.name.clone());
                    applied.outcome = run(adb, &command, &mut applied.said)?;
                    applied.command = Some(command);
                }
                None => {
                    applied.said = Some("this device knows no such repair".to_owned());
                    applied.outcome = RepairOutcome::NotRun;
                }
            }
        }
        all.push(applied);
    }
    Ok(all)
}

fn run(adb: &Adb<'_>, command: &str, said: &mut Option<String>) -> Result<RepairOutcome, AdbError> {
    match adb.shell_within(command, TIMEOUT) {
        Ok(answer) => {
            let mut words = String::from_utf8_lossy(&answer.stdout).into_owned();
            words.push_str(&answer.stderr);
            *said =
                words.lines().map(str::trim).find(|line| !line.is_empty()).map(|line| line.chars().take(300).collect());
            // `Success`, or `Failure: ...` (PackageManagerShellCommand, runCompile; ArtShellCommand, handleCompile).
            let is_done = answer.status == 0 && !words.contains("Failure") && !words.contains("Error");
            // Only the audit that follows says whether it helped.
            Ok(if is_done { RepairOutcome::RepairFailed } else { RepairOutcome::NotRun })
        }
        Err(Broken { error, .. }) if error.is_of_the_command() => {
            *said = Some(error.to_string());
            Ok(RepairOutcome::NotRun)
        }
        Err(Broken { error, .. }) => Err(error),
    }
}

impl Applied {
    /// Takes what an audit after it says.
    pub fn judge(&mut self, after: &AndroidAudit) {
        self.now = after.packages.iter().find(|package| package.name == self.package).map(|package| package.outcome);
        let is_usable = self.now.is_some_and(|now| !now.calls_for_repair() && now != CodeOutcome::Unknown);
        match self.outcome {
            RepairOutcome::RepairFailed | RepairOutcome::NotRun if self.repair.is_some() && is_usable => {
                self.outcome = RepairOutcome::Repaired;
            }
            _ => {}
        }
    }
}
