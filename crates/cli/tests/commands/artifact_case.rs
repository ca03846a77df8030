//! The programs of `cases/artifacts`, built in a place of their own: their paths and command lines.

use crate::prices;
use crate::recorded_case::built_with;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The user that may not read what root has made.
pub const NOBODY: &str = "65534";

/// Children of a target that says nothing else.
pub const CHILDREN: &str = "4";
/// CPU time of a child without the table, and beside it, in ms.
pub const WORK: &str = "40";
pub const REST: &str = "20";
/// Of each Python module: compiling all four takes twice as long as starting Python does. The case by itself has more, which
/// took a tenth of all tests.
const FUNCTIONS: &str = "1000";

/// Sets permission bits.
pub fn mode(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Sets an access control list: user::rwx user:65534:--- group::r-x mask::r-x other::r-x, as `setfacl -m u:65534:--- PATH` does.
pub fn deny_nobody(path: &Path) {
    let entries: [(u16, u16, u32); 5] =
        [(1, 7, u32::MAX), (2, 0, 65534), (4, 5, u32::MAX), (16, 5, u32::MAX), (32, 5, u32::MAX)];
    let mut list = 2u32.to_le_bytes().to_vec();
    for (tag, grants, id) in entries {
        list.extend([&tag.to_le_bytes()[..], &grants.to_le_bytes(), &id.to_le_bytes()].concat());
    }
    rustix::fs::setxattr(path, "system.posix_acl_access", &list, rustix::fs::XattrFlags::empty()).unwrap();
}

/// The case, which goes with this.
pub struct ArtifactCase {
    /// Where it is built.
    pub place: tempfile::TempDir,
}

impl ArtifactCase {
    /// Builds it; as it is by itself where prices are held against runs more than once.
    pub fn new() -> Self {
        let place = built_with("artifacts", if prices::rounds() > 1 { &[] } else { &[FUNCTIONS] });
        Self { place }
    }

    /// A file of it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Children that need a table.
    pub fn table(&self, mode: &str) -> Vec<String> {
        let (program, place) = (self.path("cached-table"), self.place.path());
        let words = [program.to_str().unwrap(), mode, CHILDREN, place.to_str().unwrap(), WORK, REST];
        words.map(str::to_owned).to_vec()
    }

    /// Compiles the modules, where what is there does not fit.
    pub fn compile(&self) {
        let done = Command::new("/usr/bin/python3").args(["-m", "compileall", "-q"]).arg(self.path("shop")).status();
        assert!(done.unwrap().success());
    }

    /// Children that import Python modules.
    pub fn python(&self, children: &str, options: &[&str]) -> Vec<String> {
        let script = self.path("children.py").to_str().unwrap().to_owned();
        let words = ["/usr/bin/python3", &script, children].into_iter().chain(options.iter().copied());
        words.map(str::to_owned).collect()
    }

    /// Children of any program.
    pub fn start(&self, command: &[&str]) -> Vec<String> {
        let script = self.path("start.py").to_str().unwrap().to_owned();
        let words = ["/usr/bin/python3", &script, CHILDREN].into_iter().chain(command.iter().copied());
        words.map(str::to_owned).collect()
    }
}
