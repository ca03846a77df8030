//! Which version of a file is at its path: that of before a fix, that with it, or somebody else's.

/// What is at a path, by the record of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileVersion {
    /// What was there before.
    Before,
    /// What the fix wrote.
    After,
    /// Something else: somebody changed it since.
    Other,
}
