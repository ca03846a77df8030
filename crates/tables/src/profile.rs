//! Tables about time and memory: call stacks and their names, CPU samples, intervals off the CPU, calls that change memory, what
//! the kernel does to have free and huge pages, what pages held.
//!
//! A call stack is a path through a tree: a row of `stacks` is one frame called from its parent, so what stacks have in
//! common is stored once. `frames` says where the code of a frame is, `symbols` how it is called.

use crate::declare::table;
use crate::units::{Bytes, Nanos, Pages};
use crate::vocabulary::{CpuEventKind, FrameKind, LookMoment, MemoryCallKind, MemoryWorkKind, OffCpuReason};

table! {
    /// A frame of call stacks: this code, called from its parent. The outermost frame has no parent; where a stack could not
    /// be followed to its root, the outermost frame is one of kind `truncated`.
    Stack = "stacks" {
        /// Number of the row, from 0; other tables name a stack by its innermost frame. A parent's is smaller.
        id: u32,
        /// The caller; null for the outermost.
        parent: Option<u32>,
        /// The code: `frames.id`.
        frame: u32,
    }
}

table! {
    /// A place in code that occurs in call stacks. For callers it is the instruction before the one they return to.
    Frame = "frames" {
        /// Number of the row, from 0.
        id: u32,
        /// What kind of code.
        kind: FrameKind,
        /// Device of the mapped file; null for code that is in none.
        dev: Option<u64>,
        /// Inode of the mapped file.
        ino: Option<u64>,
        /// Offset in the mapped file, or in the kernel's vdso image.
        offset: Option<Bytes>,
        /// Pid of the process, for code that is in no file.
        pid: Option<u32>,
        /// Start of that process.
        start: Option<Nanos>,
        /// Address in that process, or in the kernel; of the kernel, in a recording that is not root's, the number of a function from bit 16 on, and below it how far into the function.
        address: Option<u64>,
        /// Why the stack ends here, for kind `truncated`.
        truncation: Option<String>,
    }
}

table! {
    /// What a frame is called. Functions that the compiler inlined are rows of their own, the innermost first.
    Symbol = "symbols" {
        /// `frames.id`.
        frame: u32,
        /// 0 for the innermost function, 1 for the one that it was inlined into, and so on.
        level: u32,
        /// Name of the function, demangled; null where it could not be found.
        function: Option<String>,
        /// Source file.
        source_file: Option<String>,
        /// Line in it.
        source_line: Option<u32>,
        /// Why there is no name.
        reason: Option<String>,
    }
}

table! {
    /// A sample of a thread that was running.
    CpuSample = "cpu_samples" {
        /// When.
        ts: Nanos,
        /// Pid.
        pid: u32,
        /// Start of the process.
        start: Nanos,
        /// Thread id.
        tid: u32,
        /// CPU.
        cpu: u32,
        /// True when it ran in the kernel.
        kernel: bool,
        /// Innermost frame of its call stack, kernel and user: `stacks.id`.
        stack: Option<u32>,
        /// Register of its user code in which a function gets its first argument (rdi on x86-64, x0 on arm64), as it was at this
        /// moment: in code that copies memory, a place that it writes to. Null unless memory calls were recorded too, for threads
        /// of the kernel, and in recordings that lack the column.
        first_argument: Option<u64>,
        /// The same for the second argument (rsi, x1): in code that copies memory, a place that it reads from.
        second_argument: Option<u64>,
        /// Whether the instruction of its user code was one that copies memory from the second to the first (`rep movs` of
        /// x86-64; false on other architectures). Null as the first argument is.
        copies: Option<bool>,
    }
}

table! {
    /// An interval in which a thread did not run. Intervals of a thread do not overlap; between them it ran.
    OffCpu = "off_cpu" {
        /// When it stopped running, or was made; for an interval that began before the recording, when that began. For `stolen`
        /// a place in the stay on the CPU whose end is known, not the moment itself.
        ts: Nanos,
        /// Until it ran again; for an interval beyond the recording, until its end. For `stolen` the sum over one stay on a
        /// CPU, by the hypervisor's own account; less than 20 us are not told, nor a stay that outlasts the recording.
        duration: Nanos,
        /// Pid.
        pid: u32,
        /// Start of the process.
        start: Nanos,
        /// Thread id.
        tid: u32,
        /// Why it did not run.
        reason: OffCpuReason,
        /// The last part of the interval, in which it stood in a run queue and waited for a CPU, by the kernel's own count where
        /// that is kept (`sched_info.run_delay`); the whole of it for `runnable` and `throttled`.
        runnable: Nanos,
        /// When the wake-up came that ended its wait. It stands in a run queue a moment later: when its CPU has been interrupted,
        /// where another one woke it. Null where it was not woken, where the kernel has not reported it, and in recordings that lack the
        /// column: `runnable` began with the wake-up then.
        woken: Option<Nanos>,
        /// Pid of the task that woke it, recorded or not; null where no task did: an interrupt (a timer, a device), or nobody yet;
        /// and where the kernel has not reported the wake-up.
        waker_pid: Option<u32>,
        /// Thread id of that task.
        waker_tid: Option<u32>,
        /// System call it was in; -1 for none.
        syscall: i32,
        /// Innermost frame of its call stack: `stacks.id`.
        stack: Option<u32>,
    }
}

table! {
    /// What a CPU did, whoever it did it for: from the kernel's trace around a missed deadline (`slowpath ipc latency -o`). Recordings of
    /// programs have none.
    CpuEvent = "cpu_events" {
        /// When.
        ts: Nanos,
        /// How long; null for a moment, and where the end is not in the trace.
        duration: Option<Nanos>,
        /// CPU.
        cpu: u32,
        /// What.
        kind: CpuEventKind,
        /// Of a thread its name, of an interrupt or softirq its name, of work its function, of binder the event and its fields. Foreign
        /// text.
        name: String,
        /// Thread id: of a thread its own, of work and binder that of the thread in which it happened.
        tid: Option<u32>,
        /// Of a thread its priority in the kernel (0 to 98 real-time, 100 to 139 normal, -1 deadline), of `frequency` kHz, of `idle` the
        /// number of the idle state; else null.
        value: Option<i64>,
    }
}

table! {
    /// The kernel's account of a thread where its rows of `off_cpu` begin or end. A thread that was made meanwhile has none at
    /// its begin, for it began with zeros (`forks`). The account of a thread that ran at that moment may be old by a tick of the
    /// scheduler; that of one that ended is exact.
    ThreadCounters = "thread_counters" {
        /// When: at the first exec of the recorded command, or when a thread that ran already began to be followed; at the end of
        /// recording, or when an ended thread left its CPU for good, after it had given back its memory.
        ts: Nanos,
        /// Pid.
        pid: u32,
        /// Start of the process.
        start: Nanos,
        /// Thread id.
        tid: u32,
        /// Name of the thread; cut after 15 bytes.
        name: String,
        /// True where its rows end, false where they begin.
        end: bool,
        /// Time that it ran so far, by the scheduler's clock, without what a hypervisor took.
        run_time: Nanos,
        /// User part, on many kernels counted by ticks.
        utime: Nanos,
        /// System part, on many kernels counted by ticks.
        stime: Nanos,
        /// Time so far that it could have run and waited for a CPU; null where the kernel does not keep it.
        run_delay: Option<Nanos>,
    }
}

table! {
    /// A system call that changes an address space.
    MemoryCall = "memory_calls" {
        /// When it began.
        ts: Nanos,
        /// How long it took.
        duration: Nanos,
        /// Pid.
        pid: u32,
        /// Start of the process.
        start: Nanos,
        /// Thread id.
        tid: u32,
        /// Which.
        call: MemoryCallKind,
        /// Address: of the result for mmap and mremap, as given for munmap, madvise and what failed, the new end of the heap for
        /// brk.
        address: u64,
        /// Length: as given; for brk by how much the heap grew or shrank.
        length: Bytes,
        /// Length before, for mremap.
        old_length: Option<Bytes>,
        /// Address before, for mremap; null in recordings that lack the column.
        old_address: Option<u64>,
        /// True for a brk that shrank the heap.
        shrinks: bool,
        /// Advice of madvise, flags of mmap and mremap. Of prctl 0 where huge pages are allowed, 1 where they are refused, 3 where
        /// they are but for what madvise asks for (`PR_THP_DISABLE_EXCEPT_ADVISED`). Else 0.
        argument: u32,
        /// 0, or the negated errno; for a brk that was refused that of ENOMEM, as from the C library.
        result: i32,
        /// Innermost frame of its call stack: `stacks.id`.
        stack: Option<u32>,
    }
}

table! {
    /// What pages of memory without a file held when they were given back, when their process ended, or when recording did: an even
    /// sample of the pages of each area of 128 KiB and more, up to 64 in a row. A bit for each of them, the first page lowest. Pages
    /// are looked at where they are; none is brought.
    PageContent = "page_contents" {
        /// When looking began.
        ts: Nanos,
        /// How long looking took, which is in no duration of a call.
        duration: Nanos,
        /// Pid.
        pid: u32,
        /// Start of the process.
        start: Nanos,
        /// Thread id.
        tid: u32,
        /// Why then.
        moment: LookMoment,
        /// Address of the first page.
        address: u64,
        /// From each page to the next.
        stride: Bytes,
        /// How many pages.
        pages: u32,
        /// Those that were there: touched, and neither given back nor swapped out.
        present: u64,
        /// Those that were there and in which every byte was zero.
        zero: u64,
    }
}

impl PageContent {
    /// The pages that were there: address, and whether every byte was zero.
    pub fn present_pages(&self) -> impl Iterator<Item = (u64, bool)> + '_ {
        let there = (0..self.pages.min(u64::BITS)).filter(|bit| self.present >> bit & 1 == 1);
        there.filter_map(|bit| {
            let address = self.address.checked_add(self.stride.0.checked_mul(bit.into())?)?;
            Some((address, self.zero >> bit & 1 == 1))
        })
    }

    /// What it stands for: first address, and that after the last.
    pub fn range(&self) -> (u64, u64) {
        (self.address, self.address.saturating_add(self.stride.0.saturating_mul(self.pages.into())))
    }
}

impl MemoryCall {
    /// By how much the call let the address space grow; 0 for one that failed or freed.
    pub fn growth(&self) -> Bytes {
        let grown = match self.call {
            _ if self.result != 0 => 0,
            MemoryCallKind::Mmap => self.length.0,
            MemoryCallKind::Mremap => self.old_length.map_or(0, |old| self.length.0.saturating_sub(old.0)),
            MemoryCallKind::Brk if !self.shrinks => self.length.0,
            _ => 0,
        };
        Bytes(grown)
    }
}

table! {
    /// What the kernel did to have free and huge pages: in a recorded thread's own context, where it is part of the thread's
    /// faults and calls, or by one of its own threads, which a task woke or which worked on the memory of a process. Of the latter
    /// those of all tasks of the machine are reported. What the kernel's threads cost is `memory_threads` of the manifest.
    MemoryWork = "memory_work" {
        /// When; of work in a thread's own context when it began.
        ts: Nanos,
        /// How long it took in the thread's own context; null for what one of the kernel's threads was left with.
        duration: Option<Nanos>,
        /// Pid of the process in whose context it was done, that woke the kernel's thread, or on whose memory that worked; 0 where
        /// no process is to blame: a page that was allocated in an interrupt, memory of a process that is gone.
        pid: u32,
        /// Start of the process; 0 for one that is not recorded.
        start: Nanos,
        /// Thread id; for work on the memory of a process that of the thread which the kernel has as its owner.
        tid: u32,
        /// True for a recorded process.
        in_tree: bool,
        /// What.
        work: MemoryWorkKind,
        /// Memory node of a wake-up; null for the others.
        node: Option<u32>,
        /// Pages that were reclaimed; for huge pages those of a range.
        pages: Pages,
        /// True where it did what it was done for; of compaction and scans that is not reported, and false.
        succeeded: bool,
    }
}
