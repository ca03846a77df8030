//! A device through the `adb` client: commands on it, files from it, and what adb says when that fails.
//!
//! Owns running the client with a time-out and a limit of its output, telling a whole answer from half of one ([`Adb::shell`]), the server
//! that must be running ([`check_server`]), the device that is meant ([`devices`]), collecting ([`collect`]) and repairs ([`apply`]). Starts no
//! server of adb: it would outlive the command.

mod client;
mod collect;
mod devices;
mod error;
mod process;
mod repair;
mod repaired;
mod server;

pub(crate) use client::new_file;
pub use client::{Adb, Broken, ShellOutput};
pub use collect::{Asked, collect};
pub use devices::{Device, choose, devices};
pub use error::AdbError;
pub use repair::{Applied, RepairOutcome, apply, chosen};
pub use repaired::AndroidRepair;
pub use server::check_server;
