//! The names of one instruction, or why it has none.

use super::reason::Reason;
use std::collections::BTreeMap;

/// A function that an instruction belongs to, inlined or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) source_file: Option<String>,
    pub(super) source_line: Option<u32>,
}

/// The functions of an instruction, the innermost first and never none, or why there is none.
pub(super) type Names = Result<Vec<Function>, Reason>;

/// Gives the same reason to all that have no name yet.
pub(super) fn refuse(places: &mut BTreeMap<u64, Names>, reason: Reason) {
    for names in places.values_mut().filter(|names| names.is_err()) {
        *names = Err(reason);
    }
}
