//! Why recording failed.

use std::io;

/// Why recording failed.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The kernel's type information cannot be read.
    #[error("the kernel's BTF could not be read")]
    Btf(#[source] libbpf_rs::Error),
    /// A probe was refused.
    #[error("probe {probe} could not be loaded")]
    Load {
        /// Which.
        probe: &'static str,
        /// The kernel's answer.
        #[source]
        source: libbpf_rs::Error,
    },
    /// A compiled probe is not what the recorder expects.
    #[error("probe {probe}: {problem}")]
    Program {
        /// Which.
        probe: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// A probe could not be attached.
    #[error("probe {probe} could not be attached to {event}")]
    Attach {
        /// Which.
        probe: &'static str,
        /// To what.
        event: String,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// The kernel gave no random numbers.
    #[error("there is no secret for the recording")]
    Secret(#[source] io::Error),
    /// The ring could not be read.
    #[error("the ring of events could not be read")]
    Ring(#[source] libbpf_rs::Error),
}
