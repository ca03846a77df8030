//! Texts that a device prints: `dumpsys package dexopt`, `dumpsys package`, `pm path`, `getprop`, `ps`, `unzip -l`,
//! `am start -W`.
//!
//! Owns reading them; every function is total on any text, and what it does not know it leaves out. Listings of files are read by
//! `slowpath_artifacts::gather::Listing`.

mod am_start;
mod apk_members;
mod dexopt;
mod package;
mod processes;
mod properties;

pub use am_start::{AmStart, am_start};
pub use apk_members::{ApkMembers, apk_members};
pub use dexopt::{DexoptState, dexopt_states};
pub use package::{Package, code_paths, package};
pub use processes::{Process, processes};
pub use properties::{Properties, properties};

/// Lines of one text that are read: `dumpsys package` of a phone has some hundred thousand.
const MOST_LINES: usize = 1 << 20;

/// The lines of a text, without carriage returns.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().take(MOST_LINES)
}

/// Whether it is the name of a package, and so may be a word of a command and of a path: letters, digits, `_` and dots between them
/// (developer.android.com/guide/topics/manifest/manifest-element, `package`); static shared libraries have `_` and a version behind it.
pub fn is_package_name(name: &str) -> bool {
    const MOST: usize = 223;
    let is_part =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    name.len() <= MOST && name.split('.').all(is_part)
}

/// An absolute path of a device without `.` and `..`, which can be looked up in a listing.
pub fn is_device_path(path: &str) -> bool {
    const MOST: usize = 4096;
    let is_part = |part: &str| !part.is_empty() && part != "." && part != ".." && part.len() < 256;
    let parts = path.strip_prefix('/').filter(|rest| !rest.is_empty());
    path.len() < MOST && !path.chars().any(char::is_control) && parts.is_some_and(|rest| rest.split('/').all(is_part))
}
