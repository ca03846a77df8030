//! What events of Windows mean.

use super::columns::Row;
use super::group::{FrameText, Group, Waiting};
use crate::problem::ImportError;
use crate::tasks::Thread;
use crate::trace::Trace;
use slowpath_tables::{
    Asker, BlockIo, Bytes, CpuSample, Fault, FaultKind, MemoryCall, MemoryCallKind, Nanos, OffCpuReason, PAGE_SIZE,
    PageCache, PageCacheOp, Pages, Read,
};
use std::collections::HashMap;

const PROCESS: &str = "Process Name ( PID)";
/// Reads that are under way at a time.
const MOST_READS: usize = 1 << 16;
/// Sector of a disk, as the table of block I/O counts them.
const SECTOR: u64 = 512;
/// Unit of the profiler's interval: 100 ns.
const INTERVALS_A_SECOND: u64 = 10_000_000;
/// `MEM_COMMIT` (winnt.h).
const COMMIT: u64 = 0x1000;
/// `MAP_PRIVATE | MAP_ANONYMOUS` of Linux: what the committed pages are, and what blocks are followed by.
const PRIVATE_MEMORY: u32 = 0x22;

/// What is known from earlier events.
#[derive(Debug, Default)]
pub struct Events {
    group: Group,
    /// Reads by their request, until their end says how long they took.
    reads: HashMap<u64, Read>,
}

fn micros(value: u64) -> Nanos {
    Nanos(value.saturating_mul(1000))
}

impl Events {
    /// None yet.
    pub fn new(trace: &mut Trace<'_>) -> Self {
        trace.facts.lack(
            "the durations of memory calls and of soft page faults",
            "ETW logs them at one moment: only hard faults have a duration",
            "CPU samples of their functions say what they cost",
        );
        Self::default()
    }

    /// An event. None where its columns have no such values.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn event(&mut self, trace: &mut Trace<'_>, name: &str, row: &Row<'_>) -> Result<Option<()>, ImportError> {
        let Some(time) = row.number("TimeStamp") else { return Ok(None) };
        let ts = micros(time);
        trace.facts.see_time(ts);
        self.group.at(trace, time)?;
        Ok(match name {
            "SampledProfile" => self.sample(trace, ts, row)?,
            "Stack" => self.frame(row),
            "PageFault" => self.page_fault(trace, ts, row)?,
            "HardFault" => hard_fault(trace, ts, row)?,
            "FileIoRead" => self.read(trace, ts, row)?,
            "FileIoOpEnd" => self.read_end(trace, row)?,
            "DiskRead" | "DiskWrite" => disk(trace, ts, row, name == "DiskRead")?,
            "VirtualAlloc" | "VirtualFree" => self.memory(trace, ts, row, name == "VirtualAlloc")?,
            "CSwitch" => switch(trace, ts, row)?,
            "ReadyThread" => ready(trace, ts, row)?,
            "P-Start" | "P-DCStart" => process(trace, ts, row)?,
            "T-End" => row.id("ThreadID").map(|tid| trace.end(ts, tid)),
            "T-Start" | "T-DCStart" => thread(trace, ts, row)?.map(|_| ()),
            "ProfileFreq-DCStart" | "ProfileFreq-SetInterval" => row.number("New Interval").map(|interval| {
                if interval > 0 && row.text("Source").is_none_or(|source| source.contains("Timer") || source == "0") {
                    trace.facts.sample_hz = Some((INTERVALS_A_SECOND / interval).max(1));
                }
            }),
            _ => {
                trace.facts.leave_out(name);
                Some(())
            }
        })
    }

    fn sample(&mut self, trace: &mut Trace<'_>, ts: Nanos, row: &Row<'_>) -> Result<Option<()>, ImportError> {
        let Some(thread) = thread(trace, ts, row)? else { return Ok(None) };
        let cpu = row.id("CPU").unwrap_or(0);
        trace.facts.see_cpu(cpu);
        trace.facts.see_probe("cpu_sample");
        if trace.facts.sample_hz.is_none() {
            trace.facts.lack(
                "the time that a CPU sample stands for",
                "the dump has no ProfileFreq event: Windows samples 1000 times a second unless configured otherwise",
                "xperf -setprofint Timer 10000",
            );
        }
        let Some(thread) = thread else { return Ok(Some(())) };
        self.group.add(Waiting::Sample(CpuSample {
            ts,
            pid: thread.process.pid,
            start: thread.process.start,
            tid: thread.tid,
            cpu,
            kernel: row.number("PrgrmCtr").is_some_and(|address| address >> 47 != 0),
            stack: None,
            first_argument: None,
            second_argument: None,
            copies: None,
        }));
        // Without a Stack event the instruction itself is all that is known.
        if let (Some(address), Some(code)) = (row.number("PrgrmCtr"), row.text("Image!Function")) {
            self.group.leaf(thread.tid, FrameText { address, code: code.to_owned() });
        }
        Ok(Some(()))
    }

    fn frame(&mut self, row: &Row<'_>) -> Option<()> {
        let frame = FrameText { address: row.number("Address")?, code: row.text("Image!Function")?.to_owned() };
        self.group.frame(row.id("ThreadID")?, frame);
        Some(())
    }

    fn page_fault(&mut self, trace: &mut Trace<'_>, ts: Nanos, row: &Row<'_>) -> Result<Option<()>, ImportError> {
        let Some(thread) = thread(trace, ts, row)? else { return Ok(None) };
        let kind = row.text("Type").unwrap_or_default();
        let Some(address) = row.number("VirtualAddr") else { return Ok(None) };
        let Some(thread) = thread else { return Ok(Some(())) };
        // Those that read a file are HardFault events too, with their duration.
        if kind.starts_with("Hard") {
            return Ok(Some(()));
        }
        trace.facts.see_probe("fault");
        let ip = row.number("PrgrmCtr").unwrap_or(0);
        self.group.add(Waiting::Fault(Fault {
            ts,
            duration: None,
            pid: thread.process.pid,
            start: thread.process.start,
            tid: thread.tid,
            address,
            ip,
            kind: FaultKind::Minor,
            kernel: ip >> 47 != 0,
            stack: None,
            recording: None,
        }));
        Ok(Some(()))
    }

    fn read(&mut self, trace: &mut Trace<'_>, ts: Nanos, row: &Row<'_>) -> Result<Option<()>, ImportError> {
        let Some(thread) = thread(trace, ts, row)? else { return Ok(None) };
        let (Some(offset), Some(size)) = (row.number("ByteOffset"), row.number("Size")) else { return Ok(None) };
        let Some(thread) = thread else { return Ok(Some(())) };
        let file = trace.file(row.text("FileName").unwrap_or_default())?;
        trace.facts.see_probe("read");
        let read = Read {
            ts,
            duration: Nanos(0),
            pid: thread.process.pid,
            start: thread.process.start,
            tid: thread.tid,
            dev: file.dev,
            ino: file.ino,
            offset: Bytes(offset),
            result: i64::try_from(size).unwrap_or(i64::MAX),
            syscall: -1,
        };
        match row.number("IrpPtr").filter(|_| self.reads.len() < MOST_READS) {
            Some(request) => {
                if let Some(before) = self.reads.insert(request, read) {
                    trace.row(before)?;
                }
            }
            None => trace.row(read)?,
        }
        Ok(Some(()))
    }

    fn read_end(&mut self, trace: &mut Trace<'_>, row: &Row<'_>) -> Result<Option<()>, ImportError> {
        let Some(request) = row.number("IrpPtr") else { return Ok(None) };
        if let Some(read) = self.reads.remove(&request) {
            let duration = micros(row.number("ElapsedTime").unwrap_or(0));
            trace.row(Read { duration, ..read })?;
        }
        Ok(Some(()))
    }

    fn memory(
        &mut self,
        trace: &mut Trace<'_>,
        ts: Nanos,
        row: &Row<'_>,
        allocates: bool,
    ) -> Result<Option<()>, ImportError> {
        let Some((name, pid)) = row.process(PROCESS) else { return Ok(None) };
        let (Some(from), Some(end)) = (row.number("BaseAddr"), row.number("EndAddr")) else { return Ok(None) };
        let thread = trace.thread(ts, pid, Some(pid), Some(name))?;
        // Reserving addresses gives no memory.
        if allocates && row.number("Flags").is_some_and(|flags| flags & COMMIT == 0) {
            return Ok(Some(()));
        }
        trace.facts.see_probe("memory");
        self.group.add(Waiting::Memory(MemoryCall {
            ts,
            duration: Nanos(0),
            pid,
            start: thread.process.start,
            tid: thread.tid,
            call: if allocates { MemoryCallKind::Mmap } else { MemoryCallKind::Munmap },
            address: from,
            length: Bytes(end.saturating_sub(from)),
            old_length: None,
            old_address: None,
            shrinks: false,
            argument: if allocates { PRIVATE_MEMORY } else { 0 },
            result: 0,
            stack: None,
        }));
        Ok(Some(()))
    }

    /// Writes what waits for something that did not come.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn finish(&mut self, trace: &mut Trace<'_>) -> Result<(), ImportError> {
        self.group.flush(trace)?;
        let mut open: Vec<Read> = std::mem::take(&mut self.reads).into_values().collect();
        if !open.is_empty() {
            trace.facts.lack(
                "the durations of some reads",
                "their end (FileIoOpEnd) is not in the dump: they count as 0",
                "xperf -on FILE_IO+FILE_IO_INIT",
            );
        }
        open.sort_by_key(|row| (row.ts, row.tid, row.offset.0));
        open.into_iter().try_for_each(|row| trace.row(row))
    }
}

/// The thread of an event: None where its columns say none, and None inside for the idle process.
fn thread(trace: &mut Trace<'_>, ts: Nanos, row: &Row<'_>) -> Result<Option<Option<Thread>>, ImportError> {
    let (Some((name, pid)), Some(tid)) = (row.process(PROCESS), row.id("ThreadID")) else { return Ok(None) };
    if pid == 0 || tid == 0 {
        return Ok(Some(None));
    }
    trace.thread(ts, tid, Some(pid), Some(name)).map(|thread| Some(Some(thread)))
}

/// A fault that read a file: the dump logs it when it is done.
fn hard_fault(trace: &mut Trace<'_>, end: Nanos, row: &Row<'_>) -> Result<Option<()>, ImportError> {
    let elapsed = micros(row.number("ElapsedTime").unwrap_or(0));
    let ts = end - elapsed;
    let Some(thread) = thread(trace, ts, row)? else { return Ok(None) };
    let (Some(offset), Some(size)) = (row.number("ByteOffset"), row.number("IOSize")) else { return Ok(None) };
    let Some(thread) = thread else { return Ok(Some(())) };
    let (pid, start, tid) = (thread.process.pid, thread.process.start, thread.tid);
    trace.facts.see_probe("fault");
    trace.row(Fault {
        ts,
        duration: Some(elapsed),
        pid,
        start,
        tid,
        address: row.number("VirtualAddr").unwrap_or(0),
        ip: 0,
        kind: FaultKind::Major,
        kernel: false,
        stack: None,
        recording: None,
    })?;
    let path = row.text("FileName").unwrap_or_default();
    if path.is_empty() || size == 0 {
        return Ok(Some(()));
    }
    let file = trace.file(path)?;
    trace.facts.see_probe("page_cache");
    let end = offset.saturating_add(size).div_ceil(PAGE_SIZE);
    trace.row(PageCache {
        ts,
        pid,
        start,
        tid,
        op: PageCacheOp::Add,
        dev: file.dev,
        ino: file.ino,
        page: Pages(offset / PAGE_SIZE),
        pages: Pages(end - offset / PAGE_SIZE),
        asker: Asker::Fault,
        syscall: -1,
    })?;
    Ok(Some(()))
}

/// A request to a disk, which the dump logs when it is done.
fn disk(trace: &mut Trace<'_>, end: Nanos, row: &Row<'_>, read: bool) -> Result<Option<()>, ImportError> {
    let (Some(offset), Some(bytes)) = (row.number("ByteOffset"), row.number("IOSize")) else { return Ok(None) };
    let elapsed = micros(row.number("ElapsedTime").unwrap_or(0));
    trace.facts.see_probe("block");
    trace.row(BlockIo {
        ts: end - elapsed,
        latency: Some(elapsed),
        dev: row.number("DiskNum").unwrap_or(0),
        sector: offset / SECTOR,
        bytes: Bytes(bytes),
        read,
        pid: row.process(PROCESS).map_or(0, |(_, pid)| pid),
        in_tree: true,
    })?;
    Ok(Some(()))
}

fn switch(trace: &mut Trace<'_>, ts: Nanos, row: &Row<'_>) -> Result<Option<()>, ImportError> {
    let (Some(new), Some(old)) = (row.id("New TID"), row.id("Old TID")) else { return Ok(None) };
    if let Some(cpu) = row.id("CPU") {
        trace.facts.see_cpu(cpu);
    }
    if let Some((name, pid)) = row.process("Old Process Name ( PID)").filter(|(_, pid)| *pid != 0 && old != 0) {
        let thread = trace.thread(ts, old, Some(pid), Some(name))?;
        let reason = match row.text("OldState").unwrap_or_default() {
            "Terminated" => None,
            "Waiting" => Some(wait_reason(row.text("Wait Reason").unwrap_or_default())),
            _ => Some(OffCpuReason::Runnable),
        };
        if let Some(reason) = reason {
            trace.leave(ts, thread, reason, None);
        }
    }
    if let Some((name, pid)) = row.process("New Process Name ( PID)").filter(|(_, pid)| *pid != 0 && new != 0) {
        trace.thread(ts, new, Some(pid), Some(name))?;
        trace.enter(ts, new)?;
    }
    Ok(Some(()))
}

/// What a thread of Windows waits for (`KWAIT_REASON`, wdm.h).
pub fn wait_reason(name: &str) -> OffCpuReason {
    match name {
        "PageIn" | "WrPageIn" => OffCpuReason::FaultIo,
        "DelayExecution" | "WrDelayExecution" => OffCpuReason::Timer,
        "Suspended" | "WrSuspended" => OffCpuReason::Stopped,
        "UserRequest" | "WrUserRequest" | "WrQueue" => OffCpuReason::Poll,
        "WrLpcReceive" | "WrLpcReply" => OffCpuReason::PipeOrSocket,
        "WrAlertByThreadId" | "WrKeyedEvent" => OffCpuReason::Futex,
        _ => OffCpuReason::Kernel,
    }
}

fn ready(trace: &mut Trace<'_>, ts: Nanos, row: &Row<'_>) -> Result<Option<()>, ImportError> {
    let Some(woken) = row.id("Rdy TID") else { return Ok(None) };
    let Some(waker) = thread(trace, ts, row)? else { return Ok(None) };
    trace.wake(ts, woken, waker);
    Ok(Some(()))
}

fn process(trace: &mut Trace<'_>, ts: Nanos, row: &Row<'_>) -> Result<Option<()>, ImportError> {
    let Some((name, pid)) = row.process(PROCESS) else { return Ok(None) };
    if pid != 0 {
        let thread = trace.thread(ts, pid, Some(pid), None)?;
        trace.exec(ts, thread, name, row.text("Command Line").unwrap_or_default())?;
    }
    Ok(Some(()))
}
