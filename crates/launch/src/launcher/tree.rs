//! Ending a process tree whose orphans come back to the caller (a child subreaper, or the init of a pid namespace), and
//! looking at the memory of its processes.

use slowpath_process::{StatLine, size_field, status_field};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::sys::{self, Reaped};
use crate::{ProcessMemory, ThreadTimes};

/// The longest pause between two sweeps: they follow each other at once while there is progress.
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// Kills all descendants of the calling process and reaps them until none is left, calling `reaped` for each child
/// that ended. Returns the descendants still there after `limit`.
///
/// New processes cannot outrun it: a killed process cannot fork any more, and sweeps repeat until there are no
/// children, which includes every orphan. A pid that changed hands between the look and the kill is not killed.
pub(crate) fn end(limit: Duration, mut reaped: impl FnMut(Reaped)) -> Vec<i32> {
    let deadline = Instant::now() + limit;
    let mut pause = Duration::from_micros(100);
    let mut killed = Vec::new();
    loop {
        loop {
            match sys::reap() {
                Ok(Some(child)) => {
                    pause = Duration::from_micros(100);
                    reaped(child);
                }
                Ok(None) => break,
                Err(_) => return Vec::new(),
            }
        }
        if Instant::now() >= deadline {
            return killed;
        }
        killed = kill_descendants();
        sys::wait_for_child(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// What the descendants of the calling process are like.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// Memory of each that lives, in the order of the pids.
    pub(crate) memory: Vec<ProcessMemory>,
    /// Whether any has the kernel reap its children ([`ignores_ends`]).
    pub(crate) any_ignores_ends: bool,
}

/// Looks at every descendant once, and at its memory where that is asked for. A process can hold the lock of its own memory map, for
/// which this waits: the guardian looks how long ([`super::work::LONGEST_LOOK`]).
pub(crate) fn look(with_memory: bool) -> Look {
    let mut look = Look::default();
    let mut pids = descendants();
    pids.sort_unstable();
    for pid in pids {
        look.any_ignores_ends |= ignores_ends(pid);
        look.memory.extend(with_memory.then(|| memory_of(pid)).flatten());
    }
    look
}

fn memory_of(pid: i32) -> Option<ProcessMemory> {
    let status = kernel_text(pid, "status")?;
    let pss = kernel_text(pid, "smaps_rollup").and_then(|text| size_field(&text, "Pss"));
    let name = status_field(&status, "Name")?.to_owned();
    // A zombie has no memory and no such line.
    Some(ProcessMemory { pid, name, peak_rss: size_field(&status, "VmHWM")?, pss })
}

/// Times of a process's first thread, also of one that has ended and was not reaped.
pub(crate) fn first_thread(pid: i32) -> Option<ThreadTimes> {
    let text = kernel_text(pid, "schedstat")?;
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
    Some(ThreadTimes { on_cpu: numbers.next()?.ok()?, run_delay: numbers.next()?.ok()? })
}

fn kernel_text(pid: i32, name: &str) -> Option<String> {
    short_text(Path::new(&format!("/proc/{pid}/{name}"))).ok()
}

/// A short file of the kernel, whole, for every launch waits for it: onto the stack, because an empty vector begins with pieces of 32 bytes
/// and a large one makes malloc tidy up, and without asking for a size, which files of proc(5) do not have. Bytes of a name need not be
/// UTF-8.
fn short_text(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut short = [0; 4096];
    let mut length = 0;
    while length < short.len() {
        match file.read(&mut short[length..]) {
            Ok(0) => return Ok(String::from_utf8_lossy(&short[..length]).into_owned()),
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let mut text = short.to_vec();
    file.read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Whether a process has the kernel reap its children, also one that has ended and was not reaped. The flag `SA_NOCLDWAIT` does the same,
/// and does not show. Every launch waits for this: the kernel writes `stat` in two thirds of the time of `status`.
pub(crate) fn ignores_ends(pid: i32) -> bool {
    let line = kernel_text(pid, "stat").and_then(|text| StatLine::parse(text.as_bytes()));
    line.is_some_and(|line| line.ignores(libc::SIGCHLD.unsigned_abs()))
}

/// The descendants of the calling process, parents before children.
fn descendants() -> Vec<i32> {
    let own = std::process::id() as i32;
    match children(own) {
        Some(first) => reachable(own, |pid| match pid == own {
            true => first.clone(),
            false => children(pid).unwrap_or_default(),
        }),
        None => {
            // A kernel without lists of children: from the parents of all processes.
            let mut of: HashMap<i32, Vec<i32>> = HashMap::new();
            for (pid, parent) in parents() {
                of.entry(parent).or_default().push(pid);
            }
            reachable(own, |pid| of.get(&pid).cloned().unwrap_or_default())
        }
    }
}

fn reachable(from: i32, children: impl Fn(i32) -> Vec<i32>) -> Vec<i32> {
    let mut found = vec![from];
    let mut known = HashSet::from([from]);
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        found.extend(children(pid).into_iter().filter(|child| known.insert(*child)));
        next += 1;
    }
    found.remove(0);
    found
}

/// Children of all threads of a process (`/proc/PID/task/TID/children`, proc(5); CONFIG_PROC_CHILDREN). A child that comes
/// or goes meanwhile may be missed or listed in vain, as in any other look at what moves.
fn children(pid: i32) -> Option<Vec<i32>> {
    let mut found = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let text = short_text(&thread.path().join("children")).ok()?;
        found.extend(text.split_ascii_whitespace().filter_map(|word| word.parse::<i32>().ok()));
    }
    Some(found)
}

/// Sends SIGKILL to every descendant, and returns their pids.
fn kill_descendants() -> Vec<i32> {
    // Parents first: a parent that sees its child die would go on (restart it, or exit by itself).
    let found = descendants();
    let own = std::process::id() as i32;
    let mut tree = HashSet::from([own]);
    for pid in &found {
        let Ok(pidfd) = sys::pidfd_open(*pid) else { continue };
        // The descriptor names the process seen above only if that still has the pid: then its parent is of the tree (its
        // own, or this process, to which orphans come).
        if parent(*pid).is_some_and(|parent| tree.contains(&parent)) {
            let _ = sys::pidfd_kill(&pidfd);
            tree.insert(*pid);
        }
    }
    found
}

fn parents() -> HashMap<i32, i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return HashMap::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, parent(pid)?))).collect()
}

/// The parent of a process.
fn parent(pid: i32) -> Option<i32> {
    i32::try_from(StatLine::of(u32::try_from(pid).ok()?)?.parent()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_is_whole_however_long_it_is() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for length in [0, 1, 4095, 4096, 4097, 20_000] {
            let text = "x".repeat(length);
            std::fs::write(file.path(), &text).unwrap();
            assert_eq!(short_text(file.path()).unwrap(), text);
        }
        std::fs::write(file.path(), b"a\xffb").unwrap();
        assert_eq!(short_text(file.path()).unwrap(), "a\u{fffd}b");
        assert!(short_text(Path::new("/nonexistent/file")).is_err());
    }

    #[test]
    fn the_memory_of_a_child_is_found_with_its_peak() {
        let mut child = std::process::Command::new("/bin/sleep").arg("5").spawn().unwrap();
        let found = loop {
            // Right after its exec it has touched next to nothing.
            let is_it = |one: &ProcessMemory| one.pid == child.id() as i32 && one.name == "sleep";
            if let Some(found) = look(true).memory.into_iter().find(|one| is_it(one) && one.peak_rss > 100 << 10) {
                break found;
            }
        };
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.pss.is_none_or(|pss| pss <= found.peak_rss), "{found:?}");
    }
}
