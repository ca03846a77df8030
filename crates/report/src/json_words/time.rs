//! Where time goes: rows of the table for people, and categories of the ledger.

use super::json_word::JsonWord;
use crate::explain::NameKind;
use slowpath_analysis::time::ledger::Category;
use slowpath_analysis::time::time_spent::Part;

pub(super) fn all() -> impl Iterator<Item = JsonWord> {
    let parts = PARTS.into_iter().map(|(part, name, what, by_hand)| JsonWord {
        kind: NameKind::TimePart,
        name,
        shown: part.words(),
        title: "a row of \"where the time goes\"",
        what,
        by_hand,
    });
    let categories = CATEGORIES.into_iter().map(|(category, name, what, by_hand)| JsonWord {
        kind: NameKind::LedgerCategory,
        name,
        shown: category.words(),
        title: "a row of the time ledger",
        what,
        by_hand,
    });
    parts.chain(categories)
}

/// The row, its name in JSON, what it holds, and how to see that by hand.
const PARTS: [(Part, &str, &str, &str); 6] = [
    (
        Part::Storage,
        "storage",
        "Major faults, and system calls that read from or wrote to storage and waited for it. It excludes the time that a woken \
         thread waits for a CPU.",
        "`perf trace -F maj --no-syscalls COMMAND` for the faults; `biosnoop` for the requests",
    ),
    (
        Part::FaultsAndMemory,
        "faults_and_memory",
        "Minor page faults, zeroing included, and mmap, munmap, brk, madvise and their like.",
        "`perf trace -F all COMMAND`; `strace -f -c -e trace=memory COMMAND`",
    ),
    (
        Part::Waits,
        "waits",
        "Blocked on a lock, another process, a pipe or socket, events or a timer. `slowpath record --off-cpu` shows which.",
        "`strace -f -T COMMAND`; `offcputime`",
    ),
    (
        Part::WaitsForCpu,
        "waits_for_cpu",
        "Runnable without a CPU, throttled by cpu.max, or stopped by the hypervisor (steal).",
        "`perf sched latency`; `nr_throttled` in `cpu.stat`; `st` in `vmstat 1`",
    ),
    (
        Part::ChildStart,
        "child_start",
        "Running time of children between their fork and their first wait for work, without their reads, faults and waits, which \
         have rows of their own.",
        "`strace -f -r -e trace=process,poll,epoll_wait COMMAND`",
    ),
    (
        Part::Program,
        "program",
        "The program's own code, and the kernel's work for it that no other row holds.",
        "`perf record -g COMMAND`",
    ),
];

/// The category, its name in JSON, what a thread did, and how to see that by hand.
const CATEGORIES: [(Category, &str, &str, &str); 17] = [
    (Category::User, "user", "Ran in user mode.", "`pidstat -t -p PID 1`, column %usr"),
    (
        Category::Kernel,
        "kernel",
        "Ran in the kernel, outside of page faults and, where they were recorded, memory calls.",
        "`pidstat -t -p PID 1`, column %system",
    ),
    (
        Category::OnCpu,
        "on_cpu",
        "Ran; too little is known to tell user from kernel mode.",
        "the first number of `/proc/PID/task/TID/schedstat`, ns",
    ),
    (
        Category::MinorFault,
        "minor_fault",
        "Ran in page faults that read nothing, zeroing included.",
        "`perf trace -F min --no-syscalls -p PID`",
    ),
    (
        Category::MajorFault,
        "major_fault",
        "Ran in page faults that read, or waited for storage in one.",
        "`perf trace -F maj --no-syscalls -p PID`",
    ),
    (
        Category::MemoryCall,
        "memory_call",
        "Ran in mmap, munmap, mremap, brk or madvise, where these were recorded (`--memory-calls`); else `kernel` has it.",
        "`strace -f -c -e trace=memory -p PID`",
    ),
    (
        Category::OtherIo,
        "other_io",
        "Waited for storage in a system call.",
        "field 42 of `/proc/PID/task/TID/stat` (delayacct_blkio_ticks), which holds faults, too",
    ),
    (
        Category::Lock,
        "lock",
        "Waited on a futex: for a lock, a condition, another thread's end.",
        "`strace -f -T -e trace=futex -p PID`",
    ),
    (
        Category::PipeOrSocket,
        "pipe_or_socket",
        "Waited in a read or write for a pipe, a socket, a terminal or the like.",
        "`strace -f -T -e trace=read,write,recvmsg,sendmsg -p PID`",
    ),
    (
        Category::Events,
        "events",
        "Waited for one of several events (poll, epoll, select) or for a signal.",
        "`strace -f -T -e trace=poll,ppoll,select,epoll_wait -p PID`",
    ),
    (Category::Timer, "timer", "Slept until a time.", "`strace -f -T -e trace=nanosleep,clock_nanosleep -p PID`"),
    (Category::Child, "child", "Waited for a child process.", "`strace -f -T -e trace=wait4,waitid -p PID`"),
    (
        Category::KernelWait,
        "kernel_wait",
        "Waited for a lock inside the kernel, or for anything else there.",
        "`/proc/PID/task/TID/wchan`; as root `/proc/PID/task/TID/stack`",
    ),
    (
        Category::Runnable,
        "runnable",
        "Was in a run queue; another task had the CPU.",
        "`perf sched latency`; the second number of `/proc/PID/task/TID/schedstat`, ns",
    ),
    (
        Category::Throttled,
        "throttled",
        "Was runnable; its cgroup had used up its quota (`cpu.max`).",
        "`nr_throttled` and `throttled_usec` in `cpu.stat` of the cgroup",
    ),
    (
        Category::Stopped,
        "stopped",
        "Was stopped by a signal, a tracer or a freezer.",
        "state T or t in `ps -L -o tid,stat -p PID`; `cgroup.freeze`",
    ),
    (
        Category::Stolen,
        "stolen",
        "Ran, as far as this system knows; the hypervisor had taken the CPU away.",
        "column st of `vmstat 1`",
    ),
];
