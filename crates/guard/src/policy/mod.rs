//! The policy: which artifacts a product needs, for whom, and how one is repaired. What stands in the file, checked; nothing is looked up.
//!
//! ```toml
//! name = "shop"                         # of the product: letters, digits, `-`, `_`, `.`
//! version = "4.2.1"                     # a repair is tried once a version
//! state = "/var/lib/shop/guard"         # needed where something is repaired: what was tried
//!
//! [[artifact]]
//! name = "bytecode"
//! paths = ["/srv/shop/__pycache__/main.cpython-311.pyc"]
//! for = ["www-data", 99001, { uid = 99002, gid = 99002, groups = [3003] }]
//! only_if_exists = "/usr/bin/python3"   # else it is not needed
//! repair = { command = ["/usr/bin/python3", "-m", "compileall", "-qf", "/srv/shop"], as = "root", timeout = "60s" }
//!
//! [[artifact]]
//! name = "index"
//! paths = ["/var/cache/shop/index"]
//! source = "/srv/shop/catalogue.db"     # not older than this file
//! for = ["www-data"]
//! ```

mod file;
mod parse;

pub use file::{PolicyFileError, read};
pub use parse::parse;

use slowpath_artifacts::audit::FitsBy;
use std::path::PathBuf;
use std::time::Duration;

/// A policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Of the product.
    pub name: String,
    /// A repair is tried once a version.
    pub version: String,
    /// Where is noted what was tried.
    pub state: Option<PathBuf>,
    /// What it needs.
    pub artifacts: Vec<PolicyArtifact>,
}

/// What a product needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyArtifact {
    /// Its name, unique in the policy.
    pub name: String,
    /// Absolute paths of its files.
    pub paths: Vec<PathBuf>,
    /// Who needs it.
    pub users: Vec<PolicyUser>,
    /// It is needed only where this exists.
    pub only_if_exists: Option<PathBuf>,
    /// By what it fits what it was made from.
    pub fits_by: FitsBy,
    /// How it is repaired.
    pub repair: Option<Repair>,
}

/// Who needs an artifact.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyUser {
    /// A name or a uid, with the groups of the user database.
    Known(String),
    /// Ids that stand in the policy, as those of isolated processes that no database knows.
    Ids {
        /// User id.
        uid: u32,
        /// Group id.
        gid: u32,
        /// Supplementary groups.
        groups: Vec<u32>,
    },
}

/// How an artifact is repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The program by its absolute path, and its arguments.
    pub command: Vec<String>,
    /// As whom: a name or a uid.
    pub user: String,
    /// It is killed after this.
    pub timeout: Duration,
}
