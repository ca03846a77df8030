//! Variables that hold a list of paths (`LD_PRELOAD`, `PYTHONPATH`).

use std::ffi::{OsStr, OsString};

/// A list of paths, in front of what the user has in the same variable.
pub(crate) fn before(own: &OsStr, user: Option<&OsStr>) -> OsString {
    let mut value = own.to_owned();
    if let Some(user) = user.filter(|user| !user.is_empty()) {
        value.push(":");
        value.push(user);
    }
    value
}
