//! The files of the process or thread whose factors are read, each read once.

use crate::kernel_files::{KernelFiles, Missing};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The files of one process, or of one thread of it.
pub struct TaskFiles<'a> {
    kernel_files: &'a KernelFiles,
    /// Where the files of it are: `proc/7`, `proc/7/task/9`, or the copy itself.
    directory: String,
    /// The same for files that the kernel has for a process only, but shows below the thread's number as well.
    as_process: String,
    id: Option<u32>,
    texts: RefCell<BTreeMap<String, Result<Rc<str>, Missing>>>,
}

impl<'a> TaskFiles<'a> {
    /// The files of a process.
    pub fn process(kernel_files: &'a KernelFiles, directory: &str, pid: Option<u32>) -> Self {
        Self::new(kernel_files, directory.to_owned(), directory.to_owned(), pid)
    }

    /// The files of a thread of the process whose files are in `process`.
    pub fn thread(kernel_files: &'a KernelFiles, process: &str, tid: u32) -> Self {
        let directory = joined(process, &format!("task/{tid}"));
        // Each thread has a directory of its own that no listing shows (proc(5), /proc/tid).
        let as_process = if kernel_files.is_here() { format!("proc/{tid}") } else { directory.clone() };
        Self::new(kernel_files, directory, as_process, Some(tid))
    }

    fn new(kernel_files: &'a KernelFiles, directory: String, as_process: String, id: Option<u32>) -> Self {
        Self { kernel_files, directory, as_process, id, texts: RefCell::default() }
    }

    /// The files of the kernel that these are among.
    pub fn kernel_files(&self) -> &'a KernelFiles {
        self.kernel_files
    }

    /// The number to ask the kernel about with a system call: only for what runs on this machine.
    pub fn number_here(&self) -> Option<u32> {
        self.id.filter(|_| self.kernel_files.is_here())
    }

    /// The text of one of its files.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn file(&self, name: &str) -> Result<Rc<str>, Missing> {
        self.text(joined(&self.directory, name))
    }

    /// The text of a file that only the directory of a process has.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn file_of_process(&self, name: &str) -> Result<Rc<str>, Missing> {
        self.text(joined(&self.as_process, name))
    }

    fn text(&self, path: String) -> Result<Rc<str>, Missing> {
        let kernel_files = self.kernel_files;
        self.texts.borrow_mut().entry(path).or_insert_with_key(|path| kernel_files.read(path).map(Rc::from)).clone()
    }

    /// Where one of its links leads.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn link(&self, name: &str) -> Result<String, Missing> {
        self.kernel_files.link(&joined(&self.directory, name))
    }

    /// Names in one of its directories.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn list(&self, name: &str) -> Result<Vec<String>, Missing> {
        self.kernel_files.list(&joined(&self.directory, name))
    }

    /// A field of `status` (proc_pid_status(5)), without spaces around it.
    ///
    /// # Errors
    /// There is no `status`; [`Missing::Absent`]: this kernel's has no such field.
    pub fn status(&self, field: &str) -> Result<String, Missing> {
        self.file("status")?
            .lines()
            .find_map(|line| Some(line.strip_prefix(field)?.strip_prefix(':')?.trim().to_owned()))
            .ok_or(Missing::Absent)
    }
}

/// A path among the files; the copy of a process alone has its files at the top.
pub(crate) fn joined(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}
