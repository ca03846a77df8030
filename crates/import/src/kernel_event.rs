//! What the kernel's own events mean, whichever tool printed them: switches, wake-ups, processes, faults, page cache, block I/O.

use crate::event_fields::{hexadecimal, name, number, word};
use crate::problem::ImportError;
use crate::tasks::Thread;
use crate::trace::Trace;
use crate::wait_reason::{Place, of_state};
use slowpath_tables::{
    Asker, BlockIo, Bytes, Fault, FaultKind, Nanos, OffCpuReason, PAGE_SIZE, PageCache, PageCacheOp, Pages,
};
use std::collections::HashMap;

/// Requests to block devices that are under way.
const MOST_REQUESTS: usize = 1 << 16;
/// CPUs whose thread is known (`NR_CPUS` is at most 8192).
const MOST_CPUS: usize = 8192;
/// Threads whose system call is known.
const MOST_CALLS: usize = 1 << 20;

/// The circumstances of an event.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances {
    /// When.
    pub ts: Nanos,
    /// The running thread; None for the idle task.
    pub thread: Option<Thread>,
    /// Whether an interrupt is being served, where the tool says it.
    pub in_interrupt: bool,
    /// The call stack.
    pub stack: Option<u32>,
    /// What the call stack says of a wait.
    pub by_stack: Option<OffCpuReason>,
}

/// A request to a block device: device, first sector.
type Request = (u64, u64);

/// What is known from earlier events.
#[derive(Debug, Default)]
pub struct KernelEvents {
    calls: HashMap<u32, Box<str>>,
    requests: HashMap<Request, BlockIo>,
    /// The thread on each CPU, for events that do not name it.
    running: HashMap<u32, u32>,
}

impl KernelEvents {
    /// An event of this name with fields as text. False where its fields are none that the event has: a damaged line.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn text(
        &mut self,
        trace: &mut Trace<'_>,
        event: &str,
        fields: &str,
        at: &Circumstances,
    ) -> Result<bool, ImportError> {
        let done = match event {
            "sched_switch" => match switch(fields) {
                Some((state, next, comm)) => Some(self.switched(trace, at, state, next, comm)?),
                None => None,
            },
            "sched_wakeup" | "sched_wakeup_new" | "sched_waking" => woken(fields).map(|tid| self.woken(trace, at, tid)),
            "sched_process_fork" => match number(fields, "child_pid") {
                Some(child) => Some(self.forked(trace, at, child)?),
                None => None,
            },
            "sched_process_exec" => match name(fields, "filename", "pid") {
                Some(file) => Some(self.executed(trace, at, file)?),
                None => None,
            },
            "sched_process_exit" => number(fields, "pid").map(|tid| {
                self.calls.remove(&tid);
                trace.end(at.ts, tid);
            }),
            "page_fault_user" | "page_fault_kernel" => {
                let ip = hexadecimal(fields, "ip").unwrap_or(0);
                match hexadecimal(fields, "address") {
                    Some(address) => Some(self.fault(trace, at, address, ip, event == "page_fault_kernel")?),
                    // Some kernels print the nearest symbol instead of the number.
                    None if word(fields, "address").is_some() => Some(self.fault(trace, at, 0, ip, false)?),
                    None => None,
                }
            }
            "mm_filemap_add_to_page_cache" => match page_of_file(fields, trace.facts.pages_each()) {
                Some(page) => Some(self.page_cache(trace, at, PageCacheOp::Add, page)?),
                None => None,
            },
            "mm_filemap_delete_from_page_cache" => match page_of_file(fields, trace.facts.pages_each()) {
                Some(page) => Some(self.page_cache(trace, at, PageCacheOp::Delete, page)?),
                None => None,
            },
            "block_rq_issue" => request(fields).map(|request| self.issued(trace, at, request)),
            "block_rq_complete" => match request(fields) {
                Some(request) => Some(self.completed(trace, at, request)?),
                None => None,
            },
            _ => {
                if let Some(call) = event.strip_prefix("sys_enter_") {
                    self.entered(at, call);
                } else if event.starts_with("sys_exit") {
                    self.left(at);
                } else {
                    trace.facts.leave_out(event);
                }
                Some(())
            }
        };
        Ok(done.is_some())
    }

    /// This thread runs on a CPU from now on; none for the idle task.
    pub fn runs(&mut self, cpu: u32, tid: Option<u32>) {
        match tid {
            Some(tid) if self.running.len() < MOST_CPUS => {
                self.running.insert(cpu, tid);
            }
            _ => {
                self.running.remove(&cpu);
            }
        }
    }

    /// The thread on a CPU.
    pub fn running(&self, cpu: u32) -> Option<u32> {
        self.running.get(&cpu).copied()
    }

    /// The running thread is in this system call.
    pub fn entered(&mut self, at: &Circumstances, call: &str) {
        if let Some(thread) = at.thread
            && (self.calls.len() < MOST_CALLS || self.calls.contains_key(&thread.tid))
        {
            self.calls.insert(thread.tid, call.into());
        }
    }

    /// The running thread is in no system call.
    pub fn left(&mut self, at: &Circumstances) {
        if let Some(thread) = at.thread {
            self.calls.remove(&thread.tid);
        }
    }

    /// The running thread left its CPU in this state, and another one has it.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn switched(
        &mut self,
        trace: &mut Trace<'_>,
        at: &Circumstances,
        state: &str,
        next: u32,
        next_name: &str,
    ) -> Result<(), ImportError> {
        if let Some(thread) = at.thread {
            let call = self.calls.get(&thread.tid).map(|call| &**call);
            if let Some(reason) = of_state(state, Place { by_stack: at.by_stack, call }) {
                trace.leave(at.ts, thread, reason, at.stack);
            }
        }
        if next != 0 {
            trace.thread(at.ts, next, None, Some(next_name))?;
            trace.enter(at.ts, next)?;
        }
        Ok(())
    }

    /// A thread was woken: by the running one, unless an interrupt is being served.
    pub fn woken(&mut self, trace: &mut Trace<'_>, at: &Circumstances, tid: u32) {
        let waker = at.thread.filter(|_| !at.in_interrupt);
        trace.wake(at.ts, tid, waker);
    }

    /// The running thread made another task. Whether that is a thread of its process the event does not say.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn forked(&mut self, trace: &mut Trace<'_>, at: &Circumstances, child: u32) -> Result<(), ImportError> {
        match at.thread {
            Some(parent) if !trace.knows(child) => trace.fork(at.ts, parent, child, child),
            _ => Ok(()),
        }
    }

    /// The running thread executes this program.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn executed(&mut self, trace: &mut Trace<'_>, at: &Circumstances, file: &str) -> Result<(), ImportError> {
        match at.thread {
            Some(thread) => trace.exec(at.ts, thread, file, ""),
            None => Ok(()),
        }
    }

    /// The running thread had a page fault. The event is at its begin: how long it took and whether it read storage is not known.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn fault(
        &mut self,
        trace: &mut Trace<'_>,
        at: &Circumstances,
        address: u64,
        ip: u64,
        kernel: bool,
    ) -> Result<(), ImportError> {
        trace.facts.lack(
            "the kinds and durations of page faults",
            "the event is at a fault's begin: all count as minor, and no duration is known",
            "perf record -e minor-faults,major-faults records the kinds; `slowpath record` records both",
        );
        fault(trace, at, FaultKind::Minor, (address, ip), kernel)
    }

    /// Pages of a file entered or left the page cache: device, inode, first page, pages. Pages are the kernel's own, of whatever size.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn page_cache(
        &mut self,
        trace: &mut Trace<'_>,
        at: &Circumstances,
        op: PageCacheOp,
        (dev, ino, page, pages): (u64, u64, u64, u64),
    ) -> Result<(), ImportError> {
        let Some(thread) = at.thread else { return Ok(()) };
        trace.facts.see_probe("page_cache");
        trace.facts.lack(
            "paths of files in the page cache",
            "the kernel's events name a file by device and inode",
            "find -xdev -inum N names one while it is there",
        );
        let call = self.calls.get(&thread.tid).map(|call| &**call);
        let each = trace.facts.pages_each();
        trace.row(PageCache {
            ts: at.ts,
            pid: thread.process.pid,
            start: thread.process.start,
            tid: thread.tid,
            op,
            dev,
            ino,
            page: Pages(page.saturating_mul(each)),
            pages: Pages(pages.saturating_mul(each)),
            asker: asker(call),
            syscall: -1,
        })
    }

    /// A request went to the driver of a block device.
    pub fn issued(
        &mut self,
        trace: &mut Trace<'_>,
        at: &Circumstances,
        (dev, sector, bytes, read): (u64, u64, u64, bool),
    ) {
        trace.facts.see_probe("block");
        if self.requests.len() >= MOST_REQUESTS {
            trace.facts.losses.add("block_io", 1);
            return;
        }
        let row = BlockIo {
            ts: at.ts,
            latency: None,
            dev,
            sector,
            bytes: Bytes(bytes),
            read,
            pid: at.thread.map_or(0, |thread| thread.process.pid),
            in_tree: at.thread.is_some(),
        };
        self.requests.insert((dev, sector), row);
    }

    /// A request is complete.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn completed(
        &mut self,
        trace: &mut Trace<'_>,
        at: &Circumstances,
        (dev, sector, _, _): (u64, u64, u64, bool),
    ) -> Result<(), ImportError> {
        match self.requests.remove(&(dev, sector)) {
            Some(row) => trace.row(BlockIo { latency: Some(at.ts - row.ts), ..row }),
            None => Ok(()),
        }
    }

    /// Writes the requests whose completion was not seen.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn finish(&mut self, trace: &mut Trace<'_>) -> Result<(), ImportError> {
        let mut open: Vec<BlockIo> = std::mem::take(&mut self.requests).into_values().collect();
        open.sort_by_key(|row| (row.ts, row.dev, row.sector));
        open.into_iter().try_for_each(|row| trace.row(row))
    }
}

/// Writes a page fault of the running thread.
///
/// # Errors
/// The recording cannot be written.
pub fn fault(
    trace: &mut Trace<'_>,
    at: &Circumstances,
    kind: FaultKind,
    (address, ip): (u64, u64),
    kernel: bool,
) -> Result<(), ImportError> {
    let Some(thread) = at.thread else { return Ok(()) };
    trace.facts.see_probe("fault");
    trace.row(Fault {
        ts: at.ts,
        duration: None,
        pid: thread.process.pid,
        start: thread.process.start,
        tid: thread.tid,
        address,
        ip,
        kind,
        kernel,
        stack: at.stack,
        recording: None,
    })
}

/// On whose behalf pages enter the page cache, by the system call that the thread is in.
fn asker(call: Option<&str>) -> Asker {
    match call {
        Some("read" | "pread64" | "readv" | "preadv" | "preadv2" | "sendfile64" | "splice" | "copy_file_range") => {
            Asker::Read
        }
        Some("write" | "pwrite64" | "writev" | "pwritev" | "pwritev2" | "ftruncate" | "fallocate") => Asker::Write,
        Some("madvise" | "fadvise64" | "readahead") => Asker::Advice,
        Some("execve" | "execveat") => Asker::Exec,
        Some(call) if call.starts_with("open") || call.contains("stat") || call.starts_with("getdents") => {
            Asker::Metadata
        }
        _ => Asker::Other,
    }
}

/// State of the thread that leaves, tid and name of the next: as the kernel prints the event, or as perf's plugin does
/// (`a:7 [120] S ==> b:8 [120]`).
fn switch(fields: &str) -> Option<(&str, u32, &str)> {
    if let Some(state) = word(fields, "prev_state") {
        let next = name(fields, "next_comm", "next_pid")?;
        return Some((state, number(fields, "next_pid")?, next));
    }
    let (before, after) = fields.split_once(" ==> ")?;
    let state = before.rsplit(' ').next()?;
    let (task, _) = after.rsplit_once(" [")?;
    let (next, tid) = task.rsplit_once(':')?;
    Some((state, tid.parse().ok()?, next))
}

/// Tid of the thread that was woken; perf's plugin prints `b:8 [120] CPU:000`.
fn woken(fields: &str) -> Option<u32> {
    if fields.starts_with("comm=") {
        return number(fields, "pid");
    }
    let (task, _) = fields.rsplit_once(" [")?;
    task.rsplit_once(':')?.1.parse().ok()
}

/// Device, inode, first page and number of pages of `dev 254:1 ino 1a2b pfn=0x1f ofs=8192 order=2` (include/trace/events/filemap.h):
/// the offset is in bytes, the order is of the kernel's pages, which are as many pages of the tables as `each` says.
fn page_of_file(fields: &str, each: u64) -> Option<(u64, u64, u64, u64)> {
    let mut words = fields.split_whitespace();
    let device = words.by_ref().skip_while(|word| *word != "dev").nth(1)?;
    let inode = words.skip_while(|word| *word != "ino").nth(1)?;
    let (major, minor) = device.split_once(':')?;
    let dev = major.parse::<u64>().ok()?.checked_mul(1 << 20)?.checked_add(minor.parse().ok()?)?;
    let offset: u64 = number(fields, "ofs")?;
    let order: u32 = number(fields, "order").unwrap_or(0);
    let pages = 1u64.checked_shl(order).filter(|_| order <= 18)?;
    Some((dev, u64::from_str_radix(inode, 16).ok()?, offset / PAGE_SIZE / each, pages))
}

/// Device, first sector, bytes and direction of `254,0 R 4096 () 1234 + 8 [comm]` (include/trace/events/block.h).
fn request(fields: &str) -> Option<(u64, u64, u64, bool)> {
    let mut words = fields.split_whitespace();
    let (major, minor) = words.next()?.split_once(',')?;
    let kind = words.next()?;
    let dev = major.parse::<u64>().ok()?.checked_mul(1 << 20)?.checked_add(minor.parse().ok()?)?;
    let rest: Vec<&str> = words.collect();
    let plus = rest.iter().position(|word| *word == "+")?;
    let sector = rest.get(plus.checked_sub(1)?)?.parse().ok()?;
    let sectors: u64 = rest.get(plus + 1)?.parse().ok()?;
    Some((dev, sector, sectors.checked_mul(512)?, kind.contains('R')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_switch_say_the_same() {
        let kernel = "prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=b c next_pid=8 next_prio=120";
        assert_eq!(switch(kernel), Some(("S", 8, "b c")));
        assert_eq!(switch("a:7 [120] S ==> b:c:8 [120]"), Some(("S", 8, "b:c")));
        assert_eq!(switch("nonsense"), None);
        assert_eq!(woken("comm=b c pid=8 prio=120 target_cpu=001"), Some(8));
        assert_eq!(woken("b:c:8 [120] CPU:000"), Some(8));
    }

    #[test]
    fn pages_and_requests_are_read_as_the_kernel_prints_them() {
        let page = page_of_file("dev 254:1 ino 1a pfn=0x1f ofs=8192 order=2", 1);
        assert_eq!(page, Some((254 << 20 | 1, 26, 2, 4)));
        let of_16_kib = page_of_file("dev 254:1 ino 1a pfn=0x1f ofs=65536 order=2", 4);
        assert_eq!(of_16_kib, Some((254 << 20 | 1, 26, 4, 4)));
        assert_eq!(page_of_file("dev 254:1 ino 1a page=000 pfn=31 ofs=0", 1), Some((254 << 20 | 1, 26, 0, 1)));
        assert_eq!(page_of_file("dev 254:1 ino 1a ofs=8192 order=60", 1), None);
        assert_eq!(request("254,0 R 4096 () 1234 + 8 [cat]"), Some((254 << 20, 1234, 4096, true)));
        assert_eq!(request("254,0 WS () 1234 + 8 [0]"), Some((254 << 20, 1234, 4096, false)));
    }
}
