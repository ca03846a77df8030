//! Names of the frames of a recording, looked up when it ends: where what was recorded is still as it was.

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::geteuid;
use slowpath_capture::monotonic_now;
use slowpath_process::{status_field, status_of};
use slowpath_recording::Tables;
use slowpath_symbols::symbolize::{Debuginfod, Depth, Located, Options, PerfMap, Sources, symbolize};
use slowpath_tables::{FileKey, Frame, Nanos, Symbol};
use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// All downloads of debug information of one recording together take at most this.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether names are to be looked up with a client of debuginfod, which is a program that has to be started.
pub fn wants_client() -> bool {
    Debuginfod::from_environment(PATIENCE).is_some()
}

/// What was recorded of code so far.
pub struct Names {
    frames: Vec<Frame>,
    files: HashMap<FileKey, slowpath_tables::File>,
    kernel: Option<fs::File>,
    /// In place of that list, in its form: where the recorder reported names and no addresses.
    reported: String,
}

impl Names {
    /// With the kernel's list of symbols, which must have been opened with privilege.
    pub fn new(kernel: Option<fs::File>) -> Self {
        Self { frames: Vec::new(), files: HashMap::new(), kernel, reported: String::new() }
    }

    /// Remembers frames, and the files that frames may be in.
    pub fn note(&mut self, rows: &Tables) {
        self.frames.extend(rows.frames.iter().cloned());
        self.files.extend(rows.files.iter().map(|file| (file.file(), file.clone())));
    }

    /// Remembers functions of the kernel, by what stands for their addresses in frames.
    pub fn note_kernel(&mut self, functions: Vec<(u64, String)>) {
        self.reported.extend(functions.into_iter().map(|(address, name)| format!("{address:x} t {name}\n")));
    }

    /// The kernel's list of symbols, or what was reported in its place.
    fn kernel_list(&self) -> Option<fs::File> {
        if self.reported.is_empty() {
            return self.kernel.as_ref()?.try_clone().ok();
        }
        let mut list = fs::File::from(memfd_create(c"kernel-functions", MFdFlags::MFD_CLOEXEC).ok()?);
        list.write_all(self.reported.as_bytes()).ok()?;
        Some(list)
    }

    /// Looks up what all frames are called.
    pub fn symbols(self) -> Vec<Symbol> {
        let file = |key: FileKey| self.files.get(&key).map(Located::of);
        let perf_maps = |pid: u32, start: Nanos| {
            let mut paths = PerfMap::paths(pid, own_pid(pid));
            paths.retain(|path| is_of(path, pid, start));
            paths
        };
        let kernel = self.kernel_list();
        let sources = Sources { file: &file, kernel: kernel.as_ref(), this_boot: true, perf_maps: &perf_maps };
        let debuginfod = Debuginfod::from_environment(PATIENCE);
        symbolize(&self.frames, &sources, &Options { depth: Depth::Inlined, debuginfod, ..Options::default() })
    }
}

/// The pid by which a process knows itself (`NSpid` of proc_pid_status(5)); the one we know it by when it is gone.
fn own_pid(pid: u32) -> u32 {
    let status = status_of(pid).unwrap_or_default();
    status_field(&status, "NSpid").and_then(|pids| pids.split_whitespace().last()?.parse().ok()).unwrap_or(pid)
}

/// Whether a perf map is of the process that began then: not older, as that of a former process with the same pid is, and made by
/// its user or by root, because anybody may put one into `/tmp`.
fn is_of(path: &Path, pid: u32, start: Nanos) -> bool {
    let Ok(map) = fs::metadata(path) else { return false };
    // Files have the time of the last tick of the clock (current_time in fs/inode.c), at most 10 ms ago.
    let age = Duration::from_nanos(monotonic_now().0.saturating_sub(start.0)) + Duration::from_millis(10);
    let is_older =
        map.modified().is_ok_and(|time| SystemTime::now().checked_sub(age).is_some_and(|began| time < began));
    // A process that is gone left no other trace of its user than the recording's own, which is this process's.
    let user = fs::metadata(format!("/proc/{pid}")).map_or(geteuid().as_raw(), |process| process.uid());
    !is_older && (map.uid() == user || map.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_that_is_older_than_its_process_is_of_another() {
        let map = tempfile::NamedTempFile::new().unwrap();
        let me = std::process::id();
        assert!(is_of(map.path(), me, Nanos(0)), "the machine's first process could have written it");
        assert!(is_of(map.path(), me, monotonic_now()));
        let old = SystemTime::now() - Duration::from_secs(60);
        map.as_file().set_modified(old).unwrap();
        assert!(!is_of(map.path(), me, monotonic_now()));
        assert!(!is_of(Path::new("/nowhere/perf-1.map"), me, Nanos(0)));
    }
}
