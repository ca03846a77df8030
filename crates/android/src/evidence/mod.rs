//! Evidence: a directory with what a device printed and some of its files, made by `slowpath android collect` or by hand.
//!
//! Owns the names in it, its manifest, reading and writing. What the texts say is [`crate::text`]'s; what a device path may be, too: only
//! such paths become names here.
//!
//! | Name | What |
//! |---|---|
//! | `evidence.json` | what was run and how it ended; not needed |
//! | `dexopt.txt` | `dumpsys package dexopt` |
//! | `listing.txt` | `ls -landZ` of directories and files by name, `ls -lanRZ` |
//! | `missing.txt` | paths that the device said not to be there, one a line |
//! | `getprop.txt`, `id.txt`, `processes.txt`, `webview.txt` | `getprop`, `id`, `ps -A -o PID,UID,NAME`, `dumpsys webviewupdate` |
//! | `packages/PACKAGE/path.txt`, `dumpsys.txt` | `pm path`, `dumpsys package` |
//! | `members/PATH.txt` | `unzip -l` of an APK |
//! | `files/PATH` | files of the device, or their heads |

mod manifest;
mod reading;
mod writing;

pub use manifest::{EVIDENCE_SCHEMA, EvidenceManifest, Step, StepOutcome};
pub use reading::{Evidence, EvidenceError, PackageEvidence};
pub use writing::EvidenceWriter;

/// The manifest.
pub const MANIFEST: &str = "evidence.json";
/// `dumpsys package dexopt`.
pub const DEXOPT: &str = "dexopt.txt";
/// Listings of files.
pub const LISTING: &str = "listing.txt";
/// Paths that are not there.
pub const ABSENT: &str = "missing.txt";
/// `getprop`.
pub const PROPERTIES: &str = "getprop.txt";
/// `id`.
pub const ID: &str = "id.txt";
/// `ps`.
pub const PROCESSES: &str = "processes.txt";
/// `dumpsys webviewupdate`.
pub const WEBVIEW: &str = "webview.txt";

/// `pm path PACKAGE`. The package has passed [`crate::text::is_package_name`].
pub fn path_text(package: &str) -> String {
    format!("packages/{package}/path.txt")
}

/// `dumpsys package PACKAGE`.
pub fn package_text(package: &str) -> String {
    format!("packages/{package}/dumpsys.txt")
}

/// `unzip -l APK`. The path has passed [`crate::text::is_device_path`].
pub fn members_text(apk: &str) -> String {
    format!("members{apk}.txt")
}

/// A file of the device.
pub fn file_name(path: &str) -> String {
    format!("files{path}")
}
