//! What system calls mean: processes, files that are opened and read, memory.

use super::descriptors::{Descriptors, OpenFile};
use super::errno;
use super::line::{Call, string};
use crate::moment::number;
use crate::problem::ImportError;
use crate::tasks::Thread;
use crate::trace::Trace;
use slowpath_tables::{Bytes, FileKey, Mapping, MappingOp, MemoryCall, MemoryCallKind, Nanos, Open, Read, RefusedCall};
use std::collections::HashMap;

/// Forks that are under way at a time.
const MOST_STARTING: usize = 1024;
/// Processes whose heap's end is known.
const MOST_HEAPS: usize = 1 << 16;

/// What is known from earlier calls.
#[derive(Debug, Default)]
pub struct Calls {
    descriptors: Descriptors,
    /// Threads that are making another one, and whether that is a thread of their process.
    starting: Vec<(u32, bool)>,
    /// End of the heap of a process.
    heaps: HashMap<u32, u64>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    With(u64),
    Failed(i32),
    Never,
}

impl Ended {
    fn of(result: &str) -> Option<Self> {
        let word = result.split([' ', '<']).next()?;
        match word {
            "?" => Some(Self::Never),
            "-1" => {
                let name = result.split(' ').nth(1).unwrap_or("EIO");
                Some(Self::Failed(errno::number(name)))
            }
            _ => number(word).map(Self::With),
        }
    }

    fn result(self) -> i32 {
        match self {
            Self::Failed(number) => -number,
            _ => 0,
        }
    }
}

/// A descriptor and, with `-y`, what it is: `3</etc/passwd>`.
fn descriptor(text: &str) -> (Option<i32>, Option<String>) {
    let (number, path) = match text.split_once('<') {
        Some((number, path)) => (number, path.strip_suffix('>')),
        None => (text, None),
    };
    let path = path.filter(|path| path.starts_with('/')).and_then(|path| string(&format!("\"{path}\"")));
    (number.trim().parse().ok(), path)
}

/// Whether reads of this path are of a file that the page cache holds.
fn is_regular(path: &str) -> bool {
    path.starts_with('/') && !["/dev/", "/proc/", "/sys/"].iter().any(|begin| path.starts_with(begin))
}

/// Bits of flags by name.
fn bits(text: &str, names: &[(&str, u32)]) -> u32 {
    let words = text.split('|').map(str::trim);
    let known = words.filter_map(|word| names.iter().find(|(name, _)| *name == word));
    known.fold(0, |sum, (_, bit)| sum | bit)
}

const OPEN_FLAGS: &[(&str, u32)] = &[
    ("O_WRONLY", 0o1),
    ("O_RDWR", 0o2),
    ("O_CREAT", 0o100),
    ("O_EXCL", 0o200),
    ("O_NOCTTY", 0o400),
    ("O_TRUNC", 0o1000),
    ("O_APPEND", 0o2000),
    ("O_NONBLOCK", 0o4000),
    ("O_DIRECT", 0o40_000),
    ("O_DIRECTORY", 0o200_000),
    ("O_NOFOLLOW", 0o400_000),
    ("O_CLOEXEC", 0o2_000_000),
    ("O_PATH", 0o10_000_000),
];
const PROTECTION: &[(&str, u32)] = &[("PROT_READ", 1), ("PROT_WRITE", 2), ("PROT_EXEC", 4)];
const MAP_FLAGS: &[(&str, u32)] = &[
    ("MAP_SHARED", 1),
    ("MAP_PRIVATE", 2),
    ("MAP_FIXED", 0x10),
    ("MAP_ANONYMOUS", 0x20),
    ("MAP_GROWSDOWN", 0x100),
    ("MAP_DENYWRITE", 0x800),
    ("MAP_LOCKED", 0x2000),
    ("MAP_NORESERVE", 0x4000),
    ("MAP_POPULATE", 0x8000),
    ("MAP_STACK", 0x20_000),
    ("MAP_HUGETLB", 0x40_000),
    ("MREMAP_MAYMOVE", 1),
    ("MREMAP_FIXED", 2),
];
const ADVICE: &[(&str, u32)] = &[
    ("MADV_RANDOM", 1),
    ("MADV_SEQUENTIAL", 2),
    ("MADV_WILLNEED", 3),
    ("MADV_DONTNEED", 4),
    ("MADV_FREE", 8),
    ("MADV_HUGEPAGE", 14),
    ("MADV_NOHUGEPAGE", 15),
    ("MADV_COLD", 20),
    ("MADV_PAGEOUT", 21),
    ("MADV_COLLAPSE", 25),
];

/// EACCES, EPERM, EROFS.
const REFUSED: [i32; 3] = [13, 1, 30];

impl Calls {
    /// The thread of an id: one that is new was made by who is making one.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn thread(&mut self, trace: &mut Trace<'_>, ts: Nanos, tid: u32) -> Result<Thread, ImportError> {
        if !trace.knows(tid)
            && let Some((parent, is_thread)) = self.starting.pop()
        {
            let parent = trace.thread(ts, parent, None, None)?;
            self.made(trace, ts, parent, (tid, is_thread))?;
        }
        trace.thread(ts, tid, None, None)
    }

    fn made(
        &mut self,
        trace: &mut Trace<'_>,
        ts: Nanos,
        parent: Thread,
        (tid, is_thread): (u32, bool),
    ) -> Result<(), ImportError> {
        let pid = if is_thread { parent.process.pid } else { tid };
        if !is_thread {
            self.descriptors.copy(parent.process.pid, pid);
        }
        trace.fork(ts, parent, tid, pid)
    }

    /// A call began that another thread interrupted.
    pub fn begin(&mut self, tid: u32, text: &str) {
        if is_fork(text.split('(').next().unwrap_or_default()) && self.starting.len() < MOST_STARTING {
            self.starting.push((tid, text.contains("CLONE_THREAD")));
        }
    }

    /// A thread ended.
    pub fn end(&mut self, tid: u32) {
        self.descriptors.end(tid);
        self.heaps.remove(&tid);
    }

    /// A call is done. False where it is none as strace prints them.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn done(&mut self, trace: &mut Trace<'_>, ts: Nanos, thread: Thread, text: &str) -> Result<bool, ImportError> {
        let Some(call) = Call::of(text) else { return Ok(false) };
        let Some(ended) = Ended::of(call.result) else { return Ok(false) };
        let argument = |at: usize| call.arguments.get(at).copied().unwrap_or_default();
        let returned = ts + call.duration.unwrap_or_default();
        trace.facts.see_time(returned);
        match call.name {
            name if is_fork(name) => {
                self.starting.retain(|(tid, _)| *tid != thread.tid);
                if let Ended::With(child @ 1..) = ended
                    && let Ok(child) = u32::try_from(child)
                {
                    self.made(trace, ts, thread, (child, text.contains("CLONE_THREAD")))?;
                }
            }
            "execve" | "execveat" if ended == Ended::With(0) => {
                let first = usize::from(call.name == "execveat");
                let words: Vec<String> = list(argument(first + 1));
                let file = string(argument(first)).unwrap_or_default();
                trace.exec(ts, thread, &file, &words.join(" "))?;
                if trace.facts.command.is_empty() {
                    trace.facts.command = words;
                }
            }
            "open" | "creat" => self.open(trace, returned, thread, &call, ended, ("AT_FDCWD", 0))?,
            "openat" | "openat2" => self.open(trace, returned, thread, &call, ended, (argument(0), 1))?,
            "stat" | "lstat" | "access" => {
                self.refused(trace, returned, thread, ended, ("AT_FDCWD", argument(0)), RefusedCall::Look)?;
            }
            "newfstatat" | "statx" | "faccessat" | "faccessat2" => {
                self.refused(trace, returned, thread, ended, (argument(0), argument(1)), RefusedCall::Look)?;
            }
            "mkdir" => {
                let path = ("AT_FDCWD", argument(0));
                self.refused(trace, returned, thread, ended, path, RefusedCall::MakeDirectory)?;
            }
            "mkdirat" => {
                let path = (argument(0), argument(1));
                self.refused(trace, returned, thread, ended, path, RefusedCall::MakeDirectory)?;
            }
            "read" | "readv" | "pread64" | "preadv" | "preadv2" => self.read(trace, ts, thread, &call, ended)?,
            "lseek" | "close" | "dup" | "dup2" | "dup3" => self.descriptor(thread, &call, ended),
            "mmap" | "munmap" | "mremap" | "brk" | "madvise" => self.memory(trace, ts, thread, &call, ended)?,
            _ => {}
        }
        Ok(true)
    }

    fn open(
        &mut self,
        trace: &mut Trace<'_>,
        ts: Nanos,
        thread: Thread,
        call: &Call<'_>,
        ended: Ended,
        (directory, at): (&str, usize),
    ) -> Result<(), ImportError> {
        let argument = |at: usize| call.arguments.get(at).copied().unwrap_or_default();
        let path = below(directory, argument(at));
        let (number, resolved) = descriptor(call.result);
        let file = match ended {
            Ended::With(_) => Some(trace.file(resolved.as_deref().unwrap_or(&path))?),
            _ => None,
        };
        if let (Some(number), Some(file)) = (number, file) {
            self.descriptors.set(thread.process.pid, number, OpenFile { file, position: 0 });
        }
        trace.facts.see_probe("open");
        let flags = argument(at + 1);
        let flags = flags.strip_prefix("{flags=").map_or(flags, |rest| rest.split([',', '}']).next().unwrap_or(rest));
        let result = match ended {
            Ended::With(_) => number.unwrap_or(0),
            other => other.result(),
        };
        trace.row(Open {
            ts,
            pid: thread.process.pid,
            start: thread.process.start,
            tid: thread.tid,
            path,
            flags: bits(flags, OPEN_FLAGS),
            call: None,
            result,
            dev: file.map(|file| file.dev),
            ino: file.map(|file| file.ino),
        })
    }

    fn refused(
        &mut self,
        trace: &mut Trace<'_>,
        ts: Nanos,
        thread: Thread,
        ended: Ended,
        (directory, path): (&str, &str),
        call: RefusedCall,
    ) -> Result<(), ImportError> {
        let Ended::Failed(number) = ended else { return Ok(()) };
        if !REFUSED.contains(&number) {
            return Ok(());
        }
        trace.facts.see_probe("open");
        trace.row(Open {
            ts,
            pid: thread.process.pid,
            start: thread.process.start,
            tid: thread.tid,
            path: below(directory, path),
            flags: 0,
            call: Some(call),
            result: -number,
            dev: None,
            ino: None,
        })
    }

    fn read(
        &mut self,
        trace: &mut Trace<'_>,
        ts: Nanos,
        thread: Thread,
        call: &Call<'_>,
        ended: Ended,
    ) -> Result<(), ImportError> {
        let (Some(number), path) = descriptor(call.arguments.first().copied().unwrap_or_default()) else {
            return Ok(());
        };
        let pid = thread.process.pid;
        if self.descriptors.get(pid, number).is_none()
            && let Some(path) = path.as_deref()
        {
            let file = trace.file(path)?;
            trace.facts.lack(
                "where reads of inherited descriptors begin",
                "they were opened before the trace: positions count from its begin",
                "start the command with strace -f",
            );
            self.descriptors.set(pid, number, OpenFile { file, position: 0 });
        }
        let Some(open) = self.descriptors.get(pid, number) else { return Ok(()) };
        let is_positioned = call.name.starts_with('p');
        let given = call.arguments.get(3).and_then(|text| number_of(text)).filter(|_| is_positioned);
        let offset = given.unwrap_or(open.position);
        let result = match ended {
            Ended::With(bytes) => i64::try_from(bytes).unwrap_or(i64::MAX),
            other => i64::from(other.result()),
        };
        if !is_positioned {
            open.position = open.position.saturating_add(result.max(0).unsigned_abs());
        }
        let file = open.file;
        if path.as_deref().is_some_and(|path| !is_regular(path)) {
            return Ok(());
        }
        trace.facts.see_probe("read");
        trace.row(Read {
            ts,
            duration: call.duration.unwrap_or_default(),
            pid,
            start: thread.process.start,
            tid: thread.tid,
            dev: file.dev,
            ino: file.ino,
            offset: Bytes(offset),
            result,
            syscall: -1,
        })
    }

    fn descriptor(&mut self, thread: Thread, call: &Call<'_>, ended: Ended) {
        let pid = thread.process.pid;
        let Ended::With(result) = ended else { return };
        let (Some(number), _) = descriptor(call.arguments.first().copied().unwrap_or_default()) else { return };
        match call.name {
            "lseek" => {
                if let Some(open) = self.descriptors.get(pid, number) {
                    open.position = result;
                }
            }
            "close" => self.descriptors.close(pid, number),
            _ => {
                if let (Some(open), Ok(copy)) = (self.descriptors.get(pid, number).copied(), i32::try_from(result)) {
                    self.descriptors.set(pid, copy, open);
                }
            }
        }
    }

    fn memory(
        &mut self,
        trace: &mut Trace<'_>,
        ts: Nanos,
        thread: Thread,
        call: &Call<'_>,
        ended: Ended,
    ) -> Result<(), ImportError> {
        let argument = |at: usize| call.arguments.get(at).copied().unwrap_or_default();
        let value = |at: usize| number_of(argument(at)).unwrap_or(0);
        let pid = thread.process.pid;
        trace.facts.see_probe("memory");
        let mut row = MemoryCall {
            ts,
            duration: call.duration.unwrap_or_default(),
            pid,
            start: thread.process.start,
            tid: thread.tid,
            call: MemoryCallKind::Mmap,
            address: value(0),
            length: Bytes(value(1)),
            old_length: None,
            old_address: None,
            shrinks: false,
            argument: 0,
            result: ended.result(),
            stack: None,
        };
        let given = match ended {
            Ended::With(given) => Some(given),
            _ => None,
        };
        match call.name {
            "mmap" => {
                row.address = given.unwrap_or(row.address);
                row.argument = bits(argument(3), MAP_FLAGS);
            }
            "munmap" => row.call = MemoryCallKind::Munmap,
            "madvise" => (row.call, row.argument) = (MemoryCallKind::Madvise, bits(argument(2), ADVICE)),
            "mremap" => {
                row.call = MemoryCallKind::Mremap;
                (row.old_address, row.old_length) = (Some(value(0)), Some(row.length));
                (row.length, row.argument) = (Bytes(value(2)), bits(argument(3), MAP_FLAGS));
                row.address = given.unwrap_or(row.address);
            }
            _ => {
                let Some(end) = given else { return Ok(()) };
                let before = self.heaps.get(&pid).copied().unwrap_or(end);
                if self.heaps.len() < MOST_HEAPS || self.heaps.contains_key(&pid) {
                    self.heaps.insert(pid, end);
                }
                row.call = MemoryCallKind::Brk;
                (row.address, row.length, row.shrinks) = (end, Bytes(end.abs_diff(before)), end < before);
                // One that only asks where the heap ends changes nothing.
                if row.length.0 == 0 {
                    return Ok(());
                }
            }
        }
        let file = match (call.name, descriptor(argument(4))) {
            ("mmap", (Some(number), path)) if number >= 0 => match path {
                Some(path) => Some(trace.file(&path)?),
                None => self.descriptors.get(pid, number).map(|open| open.file),
            },
            _ => None,
        };
        if row.result == 0 && matches!(call.name, "mmap" | "munmap") {
            trace.facts.see_probe("mapping");
            trace.row(mapping(&row, file, (bits(argument(2), PROTECTION), value(5))))?;
        }
        trace.row(row)
    }
}

fn mapping(call: &MemoryCall, file: Option<FileKey>, (prot, offset): (u32, u64)) -> Mapping {
    let is_map = call.call == MemoryCallKind::Mmap;
    Mapping {
        ts: call.ts + call.duration,
        pid: call.pid,
        start: call.start,
        op: if is_map { MappingOp::Map } else { MappingOp::Unmap },
        address: call.address,
        length: call.length,
        prot: if is_map { prot } else { 0 },
        dev: file.map(|file| file.dev),
        ino: file.map(|file| file.ino),
        offset: Bytes(if is_map { offset } else { 0 }),
    }
}

fn is_fork(name: &str) -> bool {
    matches!(name, "clone" | "clone3" | "fork" | "vfork")
}

fn number_of(text: &str) -> Option<u64> {
    if text == "NULL" { Some(0) } else { number(text) }
}

/// A path below the directory that it starts from, where that is known.
fn below(directory: &str, path: &str) -> String {
    let path = string(path).unwrap_or_default();
    match directory.split_once('<').and_then(|(_, place)| place.strip_suffix('>')) {
        Some(place) if !path.starts_with('/') && !path.is_empty() => format!("{place}/{path}"),
        _ => path,
    }
}

/// The strings of a list: `["python3", "-c", "x"]`.
fn list(text: &str) -> Vec<String> {
    let Some(inside) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) else { return Vec::new() };
    let (mut words, mut from, mut in_string, mut escaped) = (Vec::new(), 0, false, false);
    for (at, byte) in inside.bytes().enumerate().chain([(inside.len(), b',')]) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            b',' if !in_string || at == inside.len() => {
                words.extend(inside.get(from..at).map(str::trim).and_then(string));
                from = at + 1;
            }
            _ => {}
        }
    }
    words
}
