//! What is known of a program that a fix would concern: which files it runs from, and what keeps its environment from being
//! heeded.
//!
//! Owns these facts: what the recording shows ([`Program::recorded`]), what the files themselves show ([`Program::look`]; as the
//! target's user, the files are foreign), and why its allocator would not hear of its environment, which several fixes ask. Leaves
//! what else follows from them to each fix.

use crate::dynamic_symbols::{bound, imports};
use serde::{Deserialize, Serialize};
use slowpath_analysis::processes::Processes;
use slowpath_recording::Tables;
use slowpath_tables::ProcessKey;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Protection bit of mmap: executable.
const PROT_EXEC: u32 = 4;
/// Mode bits: set-uid, set-gid (inode(7)).
const SET_UID: u32 = 0o4000;
const SET_GID: u32 = 0o2000;
/// Files that are looked into for what they call, at most.
const MOST_FILES: usize = 200;

/// A program: all processes of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its name, as findings call it. Foreign text.
    pub name: String,
    /// Paths of the files that were executed. Foreign text.
    pub executables: BTreeSet<String>,
    /// Paths of the files that were mapped executable. Foreign text.
    pub mapped: BTreeSet<String>,
    /// Why the dynamic linker does not heed its environment (`AT_SECURE`, getauxval(3)); `None` where it does.
    pub secure: Option<String>,
    /// Files that call `mallopt`, which overrides what the environment says. Foreign text.
    pub calls_mallopt: Vec<String>,
    /// Mapped libraries that no other program could load: they need functions or variables of this one. Foreign text.
    #[serde(default)]
    pub plugins: BTreeSet<String>,
}

/// Who a program runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunsAs {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

impl Program {
    /// What a recording shows of the program with this name.
    pub fn recorded(tables: &Tables, name: &str) -> Self {
        let processes = Processes::new(&tables.forks, &tables.execs, &tables.exits);
        let meant: BTreeSet<ProcessKey> = processes.iter().filter(|one| one.name == name).map(|one| one.key).collect();
        let paths: BTreeMap<(u64, u64), &str> =
            tables.files.iter().map(|file| ((file.dev, file.ino), file.path.as_str())).collect();
        let path =
            |dev, ino| paths.get(&(dev, ino)).filter(|path| path.starts_with('/')).map(|path| (*path).to_owned());
        let executed = tables.execs.iter().filter(|exec| meant.contains(&exec.process()));
        let mapped = tables.mappings.iter().filter(|mapping| meant.contains(&mapping.process()));
        let mapped = mapped.filter(|mapping| mapping.prot & PROT_EXEC != 0);
        Self {
            name: name.to_owned(),
            executables: executed.filter_map(|exec| path(exec.dev, exec.ino)).collect(),
            mapped: mapped.filter_map(|mapping| path(mapping.dev?, mapping.ino?)).collect(),
            ..Self::default()
        }
    }

    /// The same with what its files tell. Files that cannot be read tell nothing.
    #[must_use]
    pub fn look(mut self, who: RunsAs) -> Self {
        self.secure = self.executables.iter().find_map(|path| secure(Path::new(path), who));
        let own = |path: &&String| !is_named(path, &["libc.so", "libc-2."]);
        let files: BTreeSet<&String> = self.executables.iter().chain(&self.mapped).filter(own).collect();
        let calling = files.into_iter().take(MOST_FILES).filter(|path| imports(Path::new(path), "mallopt"));
        self.calls_mallopt = calling.cloned().collect();
        let libraries = self.mapped.iter().filter(|path| !self.executables.contains(*path)).filter(own);
        self.plugins = bound(self.executables.iter(), libraries.take(MOST_FILES));
        self
    }

    /// A mapped file whose name begins so.
    pub fn maps(&self, beginnings: &[&str]) -> Option<&str> {
        self.mapped.iter().find(|path| is_named(path, beginnings)).map(String::as_str)
    }

    /// Why the environment of a launch would not reach its allocator, if it would not.
    pub(crate) fn unreachable_allocator(&self) -> Option<String> {
        self.secure.clone().or_else(|| self.without_glibc())
    }

    /// Why it is not linked dynamically with glibc, if it is not.
    pub fn without_glibc(&self) -> Option<String> {
        if self.maps(&["libc.so.6", "libc-2."]).is_some() {
            return None;
        }
        Some(match self.maps(&["ld-musl-", "libc.musl-"]) {
            Some(musl) => format!("the C library of {} is musl ({musl})", self.name),
            None => format!("{} maps no libc.so.6: it is linked statically, or with another C library", self.name),
        })
    }
}

fn is_named(path: &str, beginnings: &[&str]) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    beginnings.iter().any(|beginning| name.starts_with(beginning))
}

/// Why the kernel starts this file in secure mode, if it does.
fn secure(path: &Path, who: RunsAs) -> Option<String> {
    let metadata = std::fs::metadata(path).ok()?;
    let why = secure_by_mode(metadata.mode(), metadata.uid(), metadata.gid(), who);
    let why = why.or_else(|| (who.uid != 0 && has_capabilities(path)).then_some("has file capabilities"));
    why.map(|why| format!("{} {why}: the dynamic linker ignores the environment", path.display()))
}

fn secure_by_mode(mode: u32, owner: u32, group: u32, who: RunsAs) -> Option<&'static str> {
    if mode & SET_UID != 0 && owner != who.uid {
        Some("is set-uid")
    } else if mode & SET_GID != 0 && group != who.gid {
        Some("is set-gid")
    } else {
        None
    }
}

fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: both names end with a zero byte; nothing is written without a buffer.
    unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::program;

    const RECORDED: &str = r#"
== execs
ts present pid start filename       command_line dev ino
0  false   7   1     /usr/bin/video "video call" 1   42
0  false   9   2     /usr/bin/other "other"      1   41
== forks
ts parent_pid parent_start pid start tid thread
5  7          1            8   3     8   false
== mappings
ts pid start op  address length prot dev ino
1  7   1     map 4096    4096   5    1   43
1  7   1     map 8192    4096   1    1   44
1  9   2     map 4096    4096   5    1   45
== files
dev ino path
1   41  /usr/bin/other
1   42  /usr/bin/video
1   43  /usr/lib/libc.so.6
1   44  /usr/share/data
1   45  /usr/lib/ld-musl-x86_64.so.1
"#;

    #[test]
    fn a_recording_tells_what_the_processes_of_a_name_run_from() {
        let tables = Tables::from_text(RECORDED).unwrap();
        let video = Program::recorded(&tables, "video");
        assert_eq!(video, program(&["/usr/lib/libc.so.6"]));
        assert_eq!(video.without_glibc(), None);
        let other = Program::recorded(&tables, "other").without_glibc().unwrap();
        assert!(other.contains("is musl"), "{other}");
        assert!(Program::recorded(&tables, "none").without_glibc().unwrap().contains("maps no libc.so.6"));
    }

    #[test]
    fn set_uid_counts_only_where_it_changes_who_runs() {
        let who = RunsAs { uid: 1000, gid: 1000 };
        assert_eq!(secure_by_mode(0o104_755, 0, 0, who), Some("is set-uid"));
        assert_eq!(secure_by_mode(0o102_755, 0, 0, who), Some("is set-gid"));
        assert_eq!(secure_by_mode(0o104_755, 0, 0, RunsAs { uid: 0, gid: 0 }), None);
        assert_eq!(secure_by_mode(0o100_755, 0, 0, who), None);
    }

    #[test]
    fn what_a_program_imports_is_read_from_its_file() {
        let itself = std::env::current_exe().unwrap();
        assert!(imports(&itself, "write") || imports(&itself, "memcpy"), "this program calls neither");
        assert!(!imports(&itself, "no_such_function"));
        assert!(!imports(Path::new("/proc/self/status"), "write") && !imports(Path::new("/"), "write"));
        let me = program(&[]);
        let me = Program { executables: [itself.to_string_lossy().into_owned()].into(), ..me };
        let who = RunsAs { uid: 0, gid: 0 };
        assert_eq!((me.clone().look(who).secure, me.look(who).calls_mallopt), (None, Vec::new()));
    }
}
