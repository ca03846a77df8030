//! Opens the very file that a process has mapped, for its unwinding table.
//!
//! The process is another's and can do what it likes between the moment at which the kernel reported the mapping and the open: map
//! another file there, or one on which the open waits for ever. Tables go by file and not by process: a wrong one would be used for
//! the stacks of everybody who maps the file. So the open is a child's, with a deadline, and what it opened is compared with what the
//! kernel reported.

use super::ask_for_short_slices;
use slowpath_capture::NewModule;
use slowpath_launch::Identity;
use slowpath_process::{DeadlineError, Opened, ProcessFiles, mappings};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

/// The most of a list of mappings that is read; 65530 mappings (vm.max_map_count) of some 150 bytes.
const LONGEST_LIST: u64 = 64 << 20;

/// Opens files through mappings of others.
pub struct MappedFiles {
    files: ProcessFiles,
    /// Whether stacks of other users than the owner of the recording are walked.
    walks_others: bool,
}

/// Why a file was not opened.
#[derive(Debug, PartialEq, Eq)]
pub enum Unopened {
    /// The mapping, or its process, is gone.
    Gone,
    /// Its file system lets nobody in but its user.
    Refused,
    /// Whose it is holds the open back.
    Late,
    /// Another file than the kernel reported.
    Another,
}

impl Unopened {
    /// What is to be said of it, where it is not said otherwise.
    pub fn gap(&self) -> Option<&'static str> {
        match self {
            Self::Gone => None,
            Self::Refused => Some("its file system (FUSE) lets in its own user only"),
            Self::Late => Some("opening it timed out: its file system hangs"),
            Self::Another => Some("the opened file is not the mapped one"),
        }
    }
}

impl MappedFiles {
    /// Starts the child that opens. `identity` is whose the recording is: a user's has stacks of that user's processes only.
    pub fn start(identity: &Identity) -> Self {
        let mut files = ProcessFiles::default();
        // The child has short slices as the recorder will: a process that maps a file may live for a millisecond only.
        let usual = ask_for_short_slices();
        // Where it cannot be started now, the first open says so.
        let _ = files.start();
        if let Some(usual) = usual {
            usual.again();
        }
        Self { files, walks_others: identity.uid == 0 }
    }

    /// The file behind a mapping and its size. To be handed on: its owner can have every other use of it wait.
    ///
    /// # Errors
    /// It is gone, hangs, or is another.
    pub fn open(&mut self, module: &NewModule) -> Result<(u64, File), Unopened> {
        let opened = match self.of_range(module, &(module.address..module.end)) {
            Err(Unopened::Gone) => {
                // The kernel may have merged or split the mapping since.
                let range = self.range_now(module)?;
                self.of_range(module, &range)?
            }
            other => other?,
        };
        if !is_same(module, &opened, self.walks_others) {
            return Err(Unopened::Another);
        }
        Ok((opened.size, File::from(opened.file)))
    }

    fn of_range(&mut self, module: &NewModule, range: &Range<u64>) -> Result<Opened, Unopened> {
        // Without the zeros that the list of mappings puts before an address of fewer than eight digits.
        let path = PathBuf::from(format!("/proc/{}/map_files/{:x}-{:x}", module.pid, range.start, range.end));
        self.files.open(&path).map_err(|error| why(&error))
    }

    /// The mapping that the module's first address is in now.
    fn range_now(&mut self, module: &NewModule) -> Result<Range<u64>, Unopened> {
        let path = PathBuf::from(format!("/proc/{}/maps", module.pid));
        let maps = self.files.read(&path, LONGEST_LIST).map_err(|error| why(&error))?;
        let range = mappings(&maps).map(|one| one.range).find(|range| range.contains(&module.address));
        range.ok_or(Unopened::Gone)
    }
}

fn why(error: &DeadlineError) -> Unopened {
    match error {
        DeadlineError::Late(_) => Unopened::Late,
        // Nothing else refuses root.
        DeadlineError::Failed(error) if error.kind() == io::ErrorKind::PermissionDenied => Unopened::Refused,
        _ => Unopened::Gone,
    }
}

/// Whether that is the file that the kernel reported. Device and inode are the file system's own on both sides, but for file systems
/// that show others than they use (overlay: the device of the layers above; btrfs: that of the subvolume): there the inode alone is
/// compared, and where that could do harm to another user the file must be one that only root can have put there.
fn is_same(module: &NewModule, opened: &Opened, walks_others: bool) -> bool {
    if opened.ino != module.ino {
        return false;
    }
    let is_roots = opened.uid == 0 && opened.mode & 0o022 == 0;
    opened.dev == module.dev || !walks_others || is_roots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hanging::Hanging;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;

    fn me() -> Identity {
        let variables = std::env::vars_os().collect::<Vec<_>>();
        let borrowed = variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
        Identity::for_invocation(None, borrowed).unwrap().0
    }

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    /// A page of a file, mapped at the given address or anywhere; the module that the kernel would report.
    fn mapped(file: &std::fs::File, at: u64) -> NewModule {
        let fixed = if at == 0 { 0 } else { libc::MAP_FIXED };
        let (read, private) = (libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE);
        // SAFETY: at a place that the kernel chooses, or where this test has a mapping of its own.
        let page = unsafe { libc::mmap(at as *mut libc::c_void, 4096, read, private | fixed, file.as_raw_fd(), 0) };
        assert_ne!(page, libc::MAP_FAILED);
        let metadata = file.metadata().unwrap();
        let dev = u64::from(libc::major(metadata.dev())) << 20 | u64::from(libc::minor(metadata.dev()));
        let address = page as u64;
        NewModule { module: 7, pid: std::process::id(), address, end: address + 4096, dev, ino: metadata.ino() }
    }

    #[test]
    fn the_mapped_file_is_opened_and_one_that_took_its_place_is_not() {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: only root may open what others have mapped");
            return;
        }
        let (first, second) = (file("the first"), file("another"));
        let mut files = MappedFiles::start(&me());
        let module = mapped(first.as_file(), 0);
        let (size, mut opened) = files.open(&module).unwrap();
        let mut text = String::new();
        opened.read_to_string(&mut text).unwrap();
        assert_eq!((size, text.as_str()), (9, "the first"));
        // Part of a mapping that grew: found by its address.
        assert!(files.open(&NewModule { end: module.end + 4096, ..module }).is_ok());
        // Between the event and the open the process maps another file there.
        mapped(second.as_file(), module.address);
        assert_eq!(files.open(&module).unwrap_err(), Unopened::Another);
        // SAFETY: this test's own page.
        unsafe { libc::munmap(module.address as *mut libc::c_void, 4096) };
        assert_eq!(files.open(&module).unwrap_err(), Unopened::Gone);
    }

    /// What opening a mapped file came to, how long it took, and what opening another file came to after it.
    type OpenedFrom = (Result<String, Unopened>, std::time::Duration, Result<u64, Unopened>);

    /// The mapped file is one of a program's that hangs at this call. FLUSH is what closing asks.
    fn opened_from(hangs_at: u32) -> Option<OpenedFrom> {
        let hanging = Hanging::start("hanging_file.py", &[&hangs_at.to_string()])?;
        let (pid, address) = hanging.line.trim().split_once(' ').expect("the file is mapped");
        let (pid, address): (u32, u64) = (pid.parse().unwrap(), address.parse().unwrap());
        let module = NewModule { module: 7, pid, address, end: address + 8192, dev: 1, ino: 2 };
        let own = mapped(file("mine").as_file(), 0);
        // In a thread that the test need not wait for.
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut files = MappedFiles::start(&me());
            let began = std::time::Instant::now();
            let opened = files.open(&module).map(|(size, mut file)| {
                let mut text = String::new();
                file.read_to_string(&mut text).unwrap();
                assert_eq!(size, text.len() as u64);
                text.trim_end().to_owned()
            });
            let next = files.open(&own).map(|(size, _)| size);
            sender.send((opened, began.elapsed(), next)).unwrap();
        });
        let result = receiver.recv_timeout(std::time::Duration::from_secs(60));
        drop(hanging);
        Some(result.expect("who opens it is not held up for ever"))
    }

    const OPEN: u32 = 14;
    const READ: u32 = 15;
    const FLUSH: u32 = 25;
    const NOTHING: u32 = 0;

    #[test]
    fn a_file_system_that_hangs_costs_a_deadline_and_not_the_recorder() {
        for hangs_at in [OPEN, READ, FLUSH] {
            let Some((opened, took, next)) = opened_from(hangs_at) else { return };
            assert_eq!((opened, next), (Err(Unopened::Late), Ok(4)), "{hangs_at}");
            assert!(took < std::time::Duration::from_secs(50), "{took:?}");
        }
    }

    #[test]
    fn a_file_that_a_program_answers_for_is_read_from_a_copy() {
        let Some((opened, _, next)) = opened_from(NOTHING) else { return };
        assert_eq!((opened.as_deref(), next), (Ok("a program of its own"), Ok(4)));
    }

    #[test]
    fn where_devices_cannot_be_compared_only_roots_files_serve_for_other_users() {
        let module = NewModule { module: 7, pid: 1, address: 0, end: 4096, dev: 5, ino: 6 };
        let opened = |dev, ino, uid, mode| Opened {
            file: std::fs::File::open("/dev/null").unwrap().into(),
            dev,
            ino,
            size: 0,
            uid,
            mode,
        };
        assert!(is_same(&module, &opened(5, 6, 1000, 0o777), true));
        assert!(!is_same(&module, &opened(5, 7, 0, 0o755), false), "another inode");
        assert!(is_same(&module, &opened(9, 6, 0, 0o755), true));
        for (uid, mode) in [(1000, 0o755), (0, 0o775), (0, 0o777)] {
            assert!(!is_same(&module, &opened(9, 6, uid, mode), true), "{uid} {mode:o}");
            assert!(is_same(&module, &opened(9, 6, uid, mode), false), "the owner's own processes: {uid} {mode:o}");
        }
    }
}
