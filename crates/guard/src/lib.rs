//! What a product runs at its own start: can the users who need them use its compiled and cached files, and if not, repair them at most
//! once a version, and count what it was.
//!
//! Owns the policy and its file ([`policy`]), what is counted ([`Outcome`], [`Line`]), the repair, and the record of what was tried.
//! Leaves who can use which file, and families of artifacts, to `slowpath_artifacts`; users to `slowpath_launch`; privilege, paths and
//! the state directory to `slowpath_process`. For C and Python: `crates/guard-c`.
//!
//! ```
//! use slowpath_guard::{Options, Outcome, guard};
//! use std::os::unix::fs::PermissionsExt;
//!
//! # let place = tempfile::tempdir().unwrap();
//! # let cache = place.path().join("cache.bin");
//! # std::fs::write(&cache, "").unwrap();
//! # let policy = place.path().join("policy.toml");
//! # let uid = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&cache).unwrap());
//! std::fs::write(&policy, format!(r#"
//!     name = "shop"
//!     version = "4.2.1"
//!
//!     [[artifact]]
//!     name = "cache"
//!     paths = ["{}"]
//!     fresh = "readable"
//!     for = [{uid}]
//! "#, cache.display())).unwrap();
//! # std::fs::set_permissions(&policy, std::fs::Permissions::from_mode(0o644)).unwrap();
//!
//! let report = guard(&policy, &Options::default())?;
//! for line in &report.lines {
//!     println!("{}", line.json());
//! }
//! assert_eq!(report.lines[0].outcome, Outcome::Usable);
//! assert_eq!(report.exit_code(), 0);
//! # Ok::<(), slowpath_guard::GuardError>(())
//! ```

mod check;
mod decide;
pub mod foreign;
mod line;
mod outcome;
pub mod policy;
mod repair;
mod run;
mod store;
mod tries;

pub use decide::RepairState;
pub use line::{LINE_SCHEMA, Line, METRIC};
pub use outcome::Outcome;
pub use run::{GuardError, Options, Report, guard};
