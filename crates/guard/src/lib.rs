//! What a product runs at its own start: can the users who need them use its compiled and cached files, and if not, repair them at most
//! once a version, and count what it was.
//!
//! Owns the policy and its file ([`policy`]), what is counted ([`Outcome`], [`Line`]), the repair, and the record of what was tried.
//! Leaves who can use which file, and families of artifacts, to `slowpath_artifacts`; users, privilege, paths and the state directory
//! to `slowpath_process`. For C and Python: `crates/guard-c`.
//!
//! ```text
//! let report = guard(Path::new("/etc/shop/guard.toml"), &Options::default())?;
//! for line in &report.lines {
//!     println!("{}", line.json());
//! }
//! std::process::exit(report.exit_code());
//! ```
//!
//! `tests/library.rs` does it with a policy.

mod check;
mod decide;
mod error;
pub mod foreign;
mod line;
mod outcome;
pub mod policy;
mod repair;
mod run;
mod store;
mod tries;

pub use decide::RepairState;
pub use error::GuardError;
pub use line::{LINE_SCHEMA, Line, METRIC};
pub use outcome::Outcome;
pub use run::{Options, Report, guard};
