//! Entries for the fuzzers to parsers that are private to the launcher; nothing else calls them.

use super::order::Order;
use super::{ready, target};
use crate::wire;

/// An order for a launch, or how an exec failed: whether it is understood.
pub(crate) fn order(bytes: &[u8]) -> bool {
    wire::decoded::<Order>(bytes).is_ok() | target::failure_report(bytes).is_some()
}

/// What comes through a socket of a target.
pub(crate) fn http(bytes: &[u8]) {
    ready::http(bytes);
}
