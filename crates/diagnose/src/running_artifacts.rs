//! What a running process needs: read from `/proc/PID` with a deadline, because the process can make a reader of its mappings wait.

use serde::{Deserialize, Serialize};
use slowpath_artifacts::access::Identity;
use slowpath_artifacts::gather::{ProcessTexts, mapped_files};
use slowpath_process::{ProcessFiles, UnreadableLink, shares_files};
use slowpath_session::failure::{Failure, Kind};
use std::path::PathBuf;

/// The most bytes of a text: a process has at most 65,530 mappings (`vm.max_map_count`) unless somebody raised that.
const MOST_BYTES: u64 = 32 << 20;

/// Texts of a process, as they were read. What they mean is found out without privilege.
#[derive(Debug, Serialize, Deserialize)]
pub struct Running {
    status: String,
    uid_map: String,
    gid_map: String,
    label: String,
    maps: Vec<u8>,
}

impl Running {
    /// Reads them.
    ///
    /// # Errors
    /// There is no such process, the caller may not look at it, or it has other mounts than the caller, so that its paths mean other files.
    pub fn read(pid: u32) -> Result<Self, Failure> {
        let directory = PathBuf::from(format!("/proc/{pid}"));
        if !directory.is_dir() {
            return Err(Failure::new(Kind::Usage, format!("there is no process {pid}")));
        }
        require_our_mounts(pid)?;
        let mut files = ProcessFiles::default();
        let mut read = |name: &str| {
            let read = files.read(&directory.join(name), MOST_BYTES);
            read.map_err(|error| {
                Failure::from_error(Kind::Machine, &error).during(format!("/proc/{pid}/{name} cannot be read"))
            })
        };
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(Self {
            status: text(read("status")?),
            uid_map: text(read("uid_map")?),
            gid_map: text(read("gid_map")?),
            // A kernel without security modules has no such text.
            label: read("attr/current").map(text).unwrap_or_default(),
            maps: read("maps")?,
        })
    }

    /// Who it is to the kernel; `None` where a text is none that the kernel writes.
    pub fn identity(&self) -> Option<Identity> {
        let Self { status, uid_map, gid_map, label, .. } = self;
        ProcessTexts { status, uid_map, gid_map, label }.identity()
    }

    /// The files that it has mapped.
    pub fn files(&self) -> Vec<PathBuf> {
        mapped_files(&self.maps).into_iter().collect()
    }
}

fn require_our_mounts(pid: u32) -> Result<(), Failure> {
    let unreadable = |error: UnreadableLink| Failure::new(Kind::Machine, error.to_string()).hint("run it with sudo");
    if shares_files(pid).map_err(unreadable)? {
        return Ok(());
    }
    let why = format!("process {pid} has mounts or a root directory of its own: its paths mean other files here");
    Err(Failure::new(Kind::Machine, why).hint("run slowpath where the process runs, and name paths there"))
}
