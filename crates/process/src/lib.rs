//! What every process of slowpath that runs with privilege, or gives it up, relies on.
//!
//! Owns: giving up root for good, with the result read back from the kernel ([`drop_to`]); reducing a process to what its work needs
//! ([`Sandbox`]), and work in such a process ([`Worker`]). Leaves to others: who a target runs as (`launch`), and what a process without
//! privilege works on.
//!
//! Nothing here decides; each function either does what its name says and checks that it did, or returns an error.

mod capabilities;
mod credentials;
mod sandbox;
mod worker;

pub use capabilities::Capabilities;
pub use credentials::{Credentials, CredentialsError, NO_ID, NOBODY, drop_to, verify};
pub use sandbox::{Duty, Place, Printing, Sandbox, SandboxError};
pub use worker::{MOST_BYTES, Worker, WorkerError, remember_panics};
