//! The work of a command, done as the user who calls it, in sandboxes: what talks to a device may start programs (adb), what reads
//! evidence or traces only reads.
//!
//! Owns which user and which sandbox, and how the errors of the other modules fail a command. Leaves the work itself to them, and
//! printing to the command.

mod auditing;
mod collecting;
mod launching;
mod repairing;

pub use auditing::{audit_evidence, write_policy};
pub use collecting::{Collected, collect_evidence};
pub use launching::{LaunchesEnded, launch_packages, read_trace};
pub use repairing::repair;

use crate::adb::{Adb, AdbError};
use crate::text::is_package_name;
use slowpath_session::failure::{Failure, Kind};
use std::path::PathBuf;
use std::time::Duration;

/// The client and the device.
#[derive(Clone, Debug)]
pub struct Client {
    /// The program.
    pub program: PathBuf,
    /// The device that was named.
    pub serial: Option<String>,
    /// How long a command on the device may take.
    pub timeout: Duration,
}

impl Client {
    /// Connects to the device that was named, else to `other`, else to the only one.
    fn connect<'a>(&self, other: Option<String>, wanted: &'a dyn Fn() -> bool) -> Result<Adb<'a>, Failure> {
        let serial = self.serial.clone().or(other);
        Adb::connect(&self.program, serial.as_deref(), self.timeout, wanted).map_err(|error| of_adb(&error))
    }
}

/// The device that adb itself would take.
fn usual_device() -> Option<String> {
    std::env::var("ANDROID_SERIAL").ok()
}

/// A failure of adb, by what it means for the caller.
fn of_adb(error: &AdbError) -> Failure {
    let kind = match error {
        AdbError::Interrupted => Kind::Interrupted,
        AdbError::Unwritable(_) => Kind::Usage,
        _ => Kind::Machine,
    };
    Failure::new(kind, error.to_string()).hint(error.remedy())
}

/// Names become words of commands on the device.
fn check_names(packages: &[String]) -> Result<(), Failure> {
    match packages.iter().find(|name| !is_package_name(name)) {
        Some(wrong) => Err(Failure::new(Kind::Usage, format!("{wrong:?} is no name of a package"))
            .hint("`adb shell pm list packages` lists them")),
        None => Ok(()),
    }
}
