//! Where the kernel's files are read from: this machine, or a directory to which they were copied on another.
//!
//! Owns reading: bounded, on this machine below `/proc` and `/sys` only, never following a link out of a saved directory, of a process
//! never without a deadline, and why something could not be read. Leaves what the text means to each factor, and paths that depend on
//! what a process has mounted to [`crate::factors::control_groups`].

use slowpath_process::{DeadlineError, ProcessFiles};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Bytes of one file that are read at most: `/proc/PID/maps` of a browser has some 300 KiB.
pub(crate) const MOST_BYTES: u64 = 4 << 20;

/// Why there is no text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The kernel refused: not the user's own process, or a file for root.
    Denied,
    /// The kernel has no such file.
    Absent,
    /// The copy that is looked at holds no such file.
    NotSaved,
    /// Something else went wrong.
    Failed(String),
}

/// The kernel's files, by where they are read.
pub enum KernelFiles {
    /// This machine. A process can hold back who reads its files, so these are read by a child.
    Here(RefCell<ProcessFiles>),
    /// A copy: below it `proc/PID/status`, `sys/...` as on the machine, or the files of `/proc/PID` themselves.
    Saved(PathBuf),
    /// The text of one `/proc/PID/status`, and nothing else.
    Status(String),
}

impl KernelFiles {
    /// This machine.
    pub fn here() -> Self {
        Self::Here(RefCell::default())
    }

    /// The text of a file given by its path without the first slash (`proc/1/status`).
    pub fn read(&self, path: &str) -> Result<String, Missing> {
        let bytes = self.bytes(path)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn bytes(&self, path: &str) -> Result<Vec<u8>, Missing> {
        let (file, saved) = match self {
            Self::Here(processes) if is_of_process(path) => {
                let read = processes.borrow_mut().read(&here(path)?, MOST_BYTES);
                return read.map_err(|error| match error {
                    DeadlineError::Failed(error) => why(&error, false),
                    other => Missing::Failed(other.to_string()),
                });
            }
            Self::Here(_) => (open(&here(path)?, 0), false),
            // A copy comes from elsewhere, and could hold a link to a file of ours.
            Self::Saved(directory) => (open(&directory.join(path), libc::O_NOFOLLOW), true),
            Self::Status(text) if path == "status" => return Ok(text.clone().into_bytes()),
            Self::Status(_) => return Err(Missing::NotSaved),
        };
        let mut bytes = Vec::new();
        let read = file.and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
        read.map(|_| bytes).map_err(|error| why(&error, saved))
    }

    /// Where a symbolic link leads; in a copy also a file that holds what `readlink` printed.
    pub fn link(&self, path: &str) -> Result<String, Missing> {
        let full = match self {
            Self::Here(_) => here(path)?,
            Self::Saved(directory) => directory.join(path),
            Self::Status(_) => return Err(Missing::NotSaved),
        };
        match (std::fs::read_link(full), self) {
            (Ok(target), _) => Ok(text(target.as_os_str())),
            (Err(error), Self::Here(_)) => Err(why(&error, false)),
            (Err(_), Self::Saved(_) | Self::Status(_)) => Ok(self.read(path)?.trim_end().to_owned()),
        }
    }

    /// Names in a directory, sorted.
    pub fn list(&self, path: &str) -> Result<Vec<String>, Missing> {
        let (full, saved) = match self {
            Self::Here(_) => (here(path)?, false),
            Self::Saved(directory) => (directory.join(path), true),
            Self::Status(_) => return Err(Missing::NotSaved),
        };
        let entries = std::fs::read_dir(full).map_err(|error| why(&error, saved))?;
        let mut names: Vec<String> = entries.filter_map(|entry| Some(text(&entry.ok()?.file_name()))).collect();
        names.sort();
        Ok(names)
    }

    /// Whether it is this machine, so that system calls can be asked too.
    pub fn is_here(&self) -> bool {
        matches!(self, Self::Here(_))
    }
}

/// Whether a file is one of `/proc/PID`. In the child that reads, `/proc/self` would be another.
fn is_of_process(path: &str) -> bool {
    path.strip_prefix("proc/").is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// A path on this machine. Only those that the kernel makes up: the reader is often root, and any other could be one that a process
/// chose, so that something else lies there than was meant.
fn here(path: &str) -> Result<PathBuf, Missing> {
    let is_the_kernels = path.starts_with("proc/") || path.starts_with("sys/");
    if !is_the_kernels || path.split('/').any(|part| part == "..") {
        return Err(Missing::Failed(format!("/{path} is not a file of the kernel's")));
    }
    Ok(Path::new("/").join(path))
}

/// Regular files only: nobody waits for a pipe.
fn open(path: &Path, flags: i32) -> std::io::Result<File> {
    let flags = flags | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    Ok(file)
}

fn why(error: &std::io::Error, saved: bool) -> Missing {
    match error.kind() {
        ErrorKind::NotFound if saved => Missing::NotSaved,
        ErrorKind::NotFound => Missing::Absent,
        ErrorKind::PermissionDenied => Missing::Denied,
        // A process that ended while it was read.
        _ if error.raw_os_error() == Some(libc::ESRCH) => Missing::Failed("the process has ended".to_owned()),
        _ => Missing::Failed(error.to_string()),
    }
}

fn text(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hanging::Hanging;
    use crate::snapshot::Snapshot;

    #[test]
    fn a_copy_is_read_without_following_links_and_links_are_given_as_text() {
        let directory = tempfile::tempdir().unwrap();
        let kernel_files = KernelFiles::Saved(directory.path().to_owned());
        std::fs::write(directory.path().join("status"), "Name:\tx\n").unwrap();
        std::fs::write(directory.path().join("cwd"), "/data\n").unwrap();
        std::os::unix::fs::symlink("/etc/hostname", directory.path().join("exe")).unwrap();
        assert_eq!(kernel_files.read("status").unwrap(), "Name:\tx\n");
        assert_eq!(kernel_files.link("cwd").unwrap(), "/data");
        assert_eq!(kernel_files.link("exe").unwrap(), "/etc/hostname");
        assert!(matches!(kernel_files.read("exe"), Err(Missing::Failed(_))));
        assert_eq!(kernel_files.read("none"), Err(Missing::NotSaved));
    }

    #[test]
    fn the_reason_is_the_kernels_own() {
        let here = KernelFiles::here();
        for process in ["self".to_owned(), std::process::id().to_string()] {
            assert_eq!(here.read(&format!("proc/{process}/no_such_file")), Err(Missing::Absent));
            assert!(here.read(&format!("proc/{process}/status")).unwrap().contains("Pid:"));
            assert_eq!(
                here.read(&format!("proc/{process}/mem")),
                Err(Missing::Failed("Input/output error (os error 5)".to_owned()))
            );
        }
    }

    #[test]
    fn on_this_machine_only_files_of_the_kernels_are_read() {
        let here = KernelFiles::here();
        for path in ["etc/hostname", "proc/../etc/hostname", "proc/1/../../etc/hostname", "/etc/hostname", "tmp", ""] {
            assert!(matches!(here.read(path), Err(Missing::Failed(why)) if why.contains("not a file of")), "{path}");
            assert!(here.list(path).is_err() && here.link(path).is_err(), "{path}");
        }
        assert!(here.read("proc/sys/kernel/osrelease").is_ok());
    }

    #[test]
    fn a_process_that_holds_its_own_memory_map_costs_a_deadline_and_shows_the_rest() {
        let Some(holding) = Hanging::start("held_memory.py", &[]) else { return };
        let pid = holding.line.trim().parse::<u32>().expect("the memory is held");
        // In a thread that the test need not wait for.
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let here = KernelFiles::here();
            let held = ["environ", "cmdline", "numa_maps"].map(|file| here.read(&format!("proc/{pid}/{file}")));
            sender.send((held, here.read(&format!("proc/{pid}/status")), Snapshot::of_process(pid).is_ok())).unwrap();
        });
        let result = receiver.recv_timeout(std::time::Duration::from_secs(60));
        drop(holding);
        let (held, status, is_read) = result.expect("who reads it is not held up for ever");
        for held in held {
            let why = held.map(|text| text.len());
            assert!(matches!(&why, Err(Missing::Failed(why)) if why.contains("no answer within")), "{why:?}");
        }
        assert!(status.unwrap().contains("Pid:") && is_read);
    }

    #[test]
    fn names_of_a_directory_are_sorted() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["b", "c", "a"] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        assert_eq!(KernelFiles::Saved(directory.path().to_owned()).list("").unwrap(), ["a", "b", "c"]);
    }
}
