//! Names of the frames of a recording, looked up when it ends: where what was recorded is still as it was.

use slowpath_recording::Tables;
use slowpath_symbols::symbolize::{Debuginfod, Depth, Located, Options, PerfMap, Sources, symbolize};
use slowpath_tables::{FileKey, Frame, Symbol};
use std::collections::HashMap;
use std::fs;
use std::time::Duration;

/// All downloads of debug information of one recording together take at most this.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was recorded of code so far.
pub struct Names {
    frames: Vec<Frame>,
    files: HashMap<FileKey, slowpath_tables::File>,
    kernel: Option<fs::File>,
}

impl Names {
    /// With the kernel's list of symbols, which must have been opened with privilege.
    pub fn new(kernel: Option<fs::File>) -> Self {
        Self { frames: Vec::new(), files: HashMap::new(), kernel }
    }

    /// Remembers frames, and the files that frames may be in.
    pub fn note(&mut self, rows: &Tables) {
        self.frames.extend(rows.frames.iter().cloned());
        self.files.extend(rows.files.iter().map(|file| (file.file(), file.clone())));
    }

    /// Looks up what all frames are called.
    pub fn symbols(self) -> Vec<Symbol> {
        let file = |key: FileKey| self.files.get(&key).map(Located::of);
        let perf_maps = |pid: u32, _| PerfMap::paths(pid, own_pid(pid));
        let sources = Sources { file: &file, kernel: self.kernel.as_ref(), this_boot: true, perf_maps: &perf_maps };
        let debuginfod = Debuginfod::from_environment(PATIENCE);
        symbolize(&self.frames, &sources, &Options { depth: Depth::Inlined, debuginfod, ..Options::default() })
    }
}

/// The pid by which a process knows itself (`NSpid` of proc_pid_status(5)); the one we know it by when it is gone.
fn own_pid(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    line.and_then(|pids| pids.split_whitespace().last()?.parse().ok()).unwrap_or(pid)
}
