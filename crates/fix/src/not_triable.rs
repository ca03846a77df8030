//! Why a fix that changes files cannot be tried.

/// Why not, and what else helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotTriable {
    /// Why not.
    pub reason: String,
    /// What else helps.
    pub remedy: String,
}
