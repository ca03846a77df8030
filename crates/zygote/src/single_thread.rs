//! A process that forks while it has other threads copies the locks that these hold, and not the threads that would release them: so a
//! zygote has one.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

/// The threads that there are beside the calling one.
#[derive(Debug, thiserror::Error)]
#[error(
    "the zygote has {count} threads ({names}), and a fork copies only one of them while the locks of all stay locked: start threads in \
     the children, or keep libraries from starting them (OPENBLAS_NUM_THREADS=1, OMP_NUM_THREADS=1)"
)]
pub struct ManyThreads {
    /// How many there are.
    pub count: u64,
    /// Their names, or some of them.
    pub names: String,
}

/// Whether the calling thread is the only one of this process.
///
/// # Errors
/// It is not, or `/proc` cannot be read.
pub fn require() -> io::Result<()> {
    // A directory has two links more than directories in it (proc(5) counts threads so), which is one system call.
    let count = fs::metadata("/proc/self/task")?.nlink().saturating_sub(2);
    if count == 1 {
        return Ok(());
    }
    let names: Vec<String> = fs::read_dir("/proc/self/task")?
        .flatten()
        .take(8)
        .filter_map(|task| fs::read_to_string(task.path().join("comm")).ok())
        .map(|name| name.trim_end().to_owned())
        .collect();
    Err(io::Error::other(ManyThreads { count, names: names.join(", ") }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_thread_is_refused_by_name() {
        // The test harness has threads of its own.
        let (ended, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::Builder::new().name("blas".into()).spawn(move || wait.recv()).unwrap();
        let error = require().unwrap_err().to_string();
        assert!(error.contains("threads") && error.contains("OPENBLAS_NUM_THREADS"), "{error}");
        drop(ended);
        let _ = thread.join();
    }
}
