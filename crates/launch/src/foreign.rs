//! Entries for the fuzzers to parsers that are private to this crate; nothing else calls them.

use crate::launcher::foreign as launcher;
use crate::wire::{FromLauncher, ToLauncher, decoded};

/// A message between main and launcher, in either direction, or an order for a launch: whether it is understood.
pub fn message(bytes: &[u8]) -> bool {
    let to_launcher = decoded::<ToLauncher>(bytes).is_ok();
    let from_launcher = decoded::<FromLauncher>(bytes).is_ok();
    to_launcher | from_launcher | launcher::order(bytes)
}

/// What comes through a socket of a target: a request for the page, or an answer to an attempt; and the page itself.
pub fn http(bytes: &[u8]) {
    launcher::http(bytes);
}
