//! Every parser of this crate that reads what others wrote, as functions of bytes, for the fuzzers.

use crate::access::{Acl, Identity};
use crate::audit::audit_listing;
use crate::families::read_as_each;
use crate::field_state::{Aged, FieldState};
use crate::gather::{Listing, ProcessTexts, mapped_files};

/// The head of an artifact, or its access control list. Returns how many of the parsers took it for theirs.
pub fn artifact_file(bytes: &[u8]) -> usize {
    let is_list = Acl::of_attribute(bytes).is_ok_and(|acl| acl.attribute() == bytes);
    read_as_each(bytes) + usize::from(is_list)
}

/// A listing of files, audited for one user. Returns how many files it has.
pub fn file_listing(bytes: &[u8]) -> usize {
    let listing = Listing::parse(bytes);
    let audit = audit_listing(&listing, &Identity::new(65_534, 65_534, vec![1000]));
    let files = listing.files().count();
    assert!(audit.artifacts.len() <= files, "more artifacts than files");
    files
}

/// A file of states for `artifacts age`. Returns how many artifacts it names.
pub fn field_state(bytes: &[u8]) -> usize {
    let Ok(state) = FieldState::parse(bytes) else { return 0 };
    for artifact in &state.artifacts {
        assert!(artifact.path.is_absolute() && artifact.path.file_name().is_some(), "{artifact:?}");
        let adds = matches!(artifact.state, Aged::Unreadable { mode: Some(mode) } if mode > 0o777);
        assert!(!adds, "{artifact:?}");
    }
    state.artifacts.len()
}

/// Texts of `/proc/PID`. Returns how many files are mapped.
pub fn proc_text(bytes: &[u8], text: &str) -> usize {
    ProcessTexts { status: text, uid_map: text, gid_map: text, label: text }.identity();
    mapped_files(bytes).len()
}
