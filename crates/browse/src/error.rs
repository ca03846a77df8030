//! Why a page could not be visited: what the conversation with the browser and the visit itself end with.

use std::time::Duration;

/// Why a page could not be visited.
#[derive(Debug, thiserror::Error)]
pub enum VisitError {
    /// The conversation failed.
    #[error("{what}: {problem}")]
    Conversation {
        /// What was tried.
        what: &'static str,
        /// What happened.
        problem: String,
    },
    /// The browser is silent.
    #[error("the browser did not answer to {0} in time")]
    NoAnswer(&'static str),
    /// The page did not get there.
    #[error("the page could not be loaded: {0}")]
    NotLoaded(String),
    /// The page was not loaded in time.
    #[error("the page was not loaded after {} s", .0.as_secs())]
    TooSlow(Duration),
}
