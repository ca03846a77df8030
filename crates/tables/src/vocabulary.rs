//! The columns that hold one of a few words.

use crate::declare::words;

words! {
    /// How a fault ended, by the kernel's own classification.
    FaultKind {
        /// Served without waiting for storage.
        Minor = "minor",
        /// Waited for storage.
        Major = "major",
    }
}

words! {
    /// What a row of `mappings` did to the address space.
    MappingOp {
        /// Present when the program image began (exec).
        Exec = "exec",
        /// Mapped by the program.
        Map = "map",
        /// Unmapped by the program.
        Unmap = "unmap",
    }
}

words! {
    /// What was refused that is no open.
    RefusedCall {
        /// A look at the path: stat(2), lstat(2), statx(2), or access(2) that asks whether it is there or may be read.
        Look = "look",
        /// mkdir(2).
        MakeDirectory = "make_directory",
    }
}

words! {
    /// Whether pages entered or left the page cache.
    PageCacheOp {
        /// Inserted: a read from storage follows, unless the page is new data.
        Add = "add",
        /// Removed.
        Delete = "delete",
    }
}

words! {
    /// On whose behalf pages entered the page cache: what the task was doing at that moment.
    Asker {
        /// A page fault on a mapping.
        Fault = "fault",
        /// A read-like system call (read, pread, readv, sendfile, splice, copy_file_range).
        Read = "read",
        /// An advice (madvise, fadvise, readahead, MAP_POPULATE).
        Advice = "advice",
        /// The kernel loading a program (execve).
        Exec = "exec",
        /// Path lookup or directory listing (open, stat, getdents, readlink).
        Metadata = "metadata",
        /// A write-like system call: the pages are new data.
        Write = "write",
        /// A kernel thread or anything else.
        Other = "other",
    }
}

words! {
    /// Kind of an ELF section, by what it costs at start.
    SectionKind {
        /// Executable code.
        Text = "text",
        /// Read-only data.
        Rodata = "rodata",
        /// Relocation tables and dynamic-linking metadata read by the run-time linker.
        Relocations = "relocations",
        /// Writable data, including data that is read-only after relocation.
        Data = "data",
        /// Symbol and string tables, notes, unwind tables and headers.
        Metadata = "metadata",
        /// Anything else.
        Other = "other",
    }
}

words! {
    /// What kind of code a frame of a call stack is.
    FrameKind {
        /// Code of a mapped file.
        File = "file",
        /// Code of the vdso, which the kernel maps into every process.
        Vdso = "vdso",
        /// Code in memory that belongs to no file: generated at run time.
        Generated = "generated",
        /// Code of the kernel.
        Kernel = "kernel",
        /// No code: the stack could not be followed further out.
        Truncated = "truncated",
    }
}

words! {
    /// Why a thread did not run. An interval has one reason.
    OffCpuReason {
        /// Waited for storage in a page fault.
        FaultIo = "fault_io",
        /// Waited for storage in a system call.
        OtherIo = "other_io",
        /// Waited on a futex, for another thread.
        Futex = "futex",
        /// Waited in a read or write for a pipe or a socket, or for another file that delivers when somebody else acts: a
        /// terminal, an event descriptor.
        PipeOrSocket = "pipe_or_socket",
        /// Waited for one of several events (poll, select, epoll, io_uring) or for a signal, with a time-out or without.
        Poll = "poll",
        /// Slept until a time.
        Timer = "timer",
        /// Waited for a child process: for its end, or after a vfork for its exec.
        Child = "child",
        /// Waited for a lock inside the kernel, or for anything else there.
        Kernel = "kernel",
        /// Could run; another task had the CPU.
        Runnable = "runnable",
        /// Could run; its cgroup had used up its quota when it stopped running.
        Throttled = "throttled",
        /// Was stopped by a signal, a tracer or a freezer.
        Stopped = "stopped",
        /// Was running, as far as this system knows; the CPU was taken away by the hypervisor.
        Stolen = "stolen",
    }
}

words! {
    /// What a row of `cpu_events` is.
    CpuEventKind {
        /// A thread ran.
        Task = "task",
        /// An interrupt.
        Interrupt = "interrupt",
        /// A softirq.
        Softirq = "softirq",
        /// A work item of a kernel's work queue.
        Work = "work",
        /// The CPU was in an idle state.
        Idle = "idle",
        /// The frequency from now on.
        Frequency = "frequency",
        /// An event of the binder driver.
        Binder = "binder",
    }
}

words! {
    /// When pages were looked at.
    LookMoment {
        /// Before an munmap takes them.
        Munmap = "munmap",
        /// When their process ends.
        Exit = "exit",
        /// When the recording ends, and the process lives on.
        End = "end",
    }
}

words! {
    /// A system call that changes an address space.
    MemoryCallKind {
        /// `mmap`.
        Mmap = "mmap",
        /// `munmap`.
        Munmap = "munmap",
        /// `mremap`.
        Mremap = "mremap",
        /// `brk`.
        Brk = "brk",
        /// `madvise`.
        Madvise = "madvise",
        /// `prctl` with `PR_SET_THP_DISABLE`, with which a process refuses huge pages; no other use of it is reported.
        Prctl = "prctl",
    }
}

words! {
    /// Work of the kernel to have free and huge pages.
    MemoryWorkKind {
        /// The thread itself reclaimed pages, because the machine had too few free ones.
        DirectReclaim = "direct_reclaim",
        /// The thread itself reclaimed pages of its memory cgroup, because that was at its limit.
        GroupReclaim = "group_reclaim",
        /// The thread itself moved pages, to have free ones that lie together.
        DirectCompaction = "direct_compaction",
        /// The thread itself made a huge page of small ones (`MADV_COLLAPSE`).
        OwnCollapse = "own_collapse",
        /// The task woke kswapd: free pages of the node had become few.
        WakeKswapd = "wake_kswapd",
        /// The task woke kcompactd; a task that is kswapd does that when it has reclaimed enough.
        WakeKcompactd = "wake_kcompactd",
        /// khugepaged looked at a range of the process that may become a huge page.
        KhugepagedScan = "khugepaged_scan",
        /// khugepaged made a huge page of a range of the process, or tried to.
        KhugepagedCollapse = "khugepaged_collapse",
    }
}
