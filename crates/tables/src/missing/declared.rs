//! The declarations, by what reports them.

use super::Missing;

/// Declares names and lists them.
macro_rules! declare {
    ($(
        $constant:ident = $name:literal $(formerly $former:literal)*: $what:literal, $why:literal, $helps:literal;
    )*) => {
        $(
            #[doc = $what]
            pub const $constant: Missing =
                Missing { name: $name, former: &[$($former),*], what: $what, why: $why, helps: $helps };
        )*

        /// All of them.
        pub const ALL: &[&Missing] = &[$(&$constant),*];
    };
}

declare! {
    // Recording
    PRIVILEGE = "privilege":
        "permission to load BPF programs and to open perf events",
        "the command runs without CAP_SYS_ADMIN",
        "run it with sudo; the target still runs as you";
    KERNEL_TYPES = "BTF":
        "the kernel's type information, which probes need to find fields",
        "the kernel was built without CONFIG_DEBUG_INFO_BTF",
        "a kernel built with it, as Debian's are";
    PROCESSES = "processes and page cache":
        "the events that every recording needs: processes, page faults, page cache",
        "the kernel is older than 5.18 or lacks a tracepoint",
        "a newer kernel with CONFIG_DEBUG_INFO_BTF=y";
    BLOCK_IO = "readahead decisions and block I/O":
        "how much the kernel read ahead, and the requests to the device",
        "the kernel lacks the tracepoints",
        "a newer kernel; everything else is recorded";
    WAIT_EVENTS = "waits":
        "why threads do not run, and who wakes them",
        "the kernel lacks a scheduler tracepoint, or is older than 5.18",
        "a newer kernel; everything else is recorded";
    MEMORY_WORK = "reclaim, compaction and huge pages":
        "the kernel's memory management outside of page faults",
        "the kernel was built without compaction or THP",
        "a kernel with CONFIG_COMPACTION=y and CONFIG_TRANSPARENT_HUGEPAGE=y";
    RUNNING = "running processes, call stacks and CPU samples":
        "recording of running processes, and who caused an event",
        "the kernel is older than 6.7: BPF programs cannot walk a process's mappings",
        "a kernel of 6.7 or later";
    MAPPINGS = "mappings":
        "what a process maps: it turns fault addresses into files",
        "the kernel has neither the VMA tree's events nor system-call tracepoints",
        "a kernel of 6.7 or later, and privilege";
    SYSCALLS = "opens, reads and memory calls" formerly "system-call tracepoints":
        "syscalls that open and read files or change address spaces",
        "the kernel was built without system-call tracepoints (CONFIG_HAVE_SYSCALL_TRACEPOINTS) or without BTF",
        "a kernel with system-call tracepoints and CONFIG_DEBUG_INFO_BTF=y";
    PROBE = "probe <name>":
        "one of the recorder's BPF programs, or a part of one",
        "the kernel lacks the event, or its verifier refused the program",
        "a newer kernel; `slowpath doctor` says which";
    PROCESS = "process <pid>":
        "a process that was to be recorded",
        "the kernel's task iterator (iter/task) does not report it: it ended, or is in another pid namespace",
        "record it from its start: slowpath record -- COMMAND";
    FIRST_FAULTS = "first page faults on CPU <cpu>" formerly "first page faults on processor <cpu>":
        "page faults right after a CPU came online",
        "the CPU came online while recording went on",
        "record with all CPUs online";
    HELD_BY_MANY = "pages that <number> processes held at the end":
        "which pages of processes that live on hold only zeros",
        "reading the memory of other processes reached its time limit",
        "record fewer processes";
    HELD_BY_ONE = "pages that process <pid> held at the end":
        "which pages of this process hold only zeros",
        "its memory could not be read in time: a file system hangs, or userfaultfd",
        "find out what blocks reads of its memory";
    ENDED_BY_SIGNAL = "pages of processes that a signal ends":
        "which pages of killed processes held only zeros",
        "before 6.16 the kernel reports the end when the memory is gone",
        "a kernel of 6.16 or later; processes that exit are looked at";
    KERNEL_THREADS = "the kernel's threads for memory":
        "what kswapd, kcompactd and khugepaged do meanwhile",
        "/proc shows none of them, as in a container",
        "record outside of the container";
    STOLEN_TIME = "time stolen by the hypervisor":
        "time in which the host ran something else on this CPU",
        "the hypervisor does not report it, or the kernel does not count it",
        "a kernel with CONFIG_PARAVIRT_TIME_ACCOUNTING and a host that reports steal time";
    OTHERS_DETAILS = "addresses, call stacks, mappings and private files of <programs>":
        "details of set-uid programs and of other users' processes",
        "they are withheld from a recording that belongs to another user",
        "record as root for root: sudo, with --user root";
    KERNEL_NAMES = "names of the kernel's functions":
        "kernel functions in call stacks, by name",
        "the kernel hides their addresses",
        "sysctl kernel.kptr_restrict=0 or 1";
    STACKS_BEYOND = "the stacks through <number> <objects>":
        "call stacks through code that did not fit into the unwinder's maps",
        "too many executable mappings or files are recorded at once",
        "record fewer processes at once";
    UNWIND_TABLES = "unwinding tables of <number> files":
        "tables that the unwinder needs to walk through these files",
        "they have no .eh_frame, cannot be read, or were not made in time",
        "stacks end at their code, or go on by frame pointers; a longer recording for late ones";
    FUNCTION_NAMES = "names of functions":
        "functions in call stacks, by name",
        "looking them up crashed on one of the executed files",
        "please report the file; stacks have addresses instead";
    CPU_TIME_OF_ENDED = "up to a tick of CPU time of each thread that ended, <number> in all":
        "the last milliseconds of each thread that ended in the recording: of short ones most of their CPU time",
        "the scheduler brings its counter up to date at ticks and switches, and waits were not recorded",
        "record with `--off-cpu`, which reads the counter at the last switch";
    MEMORY_COST = "the measured cost of memory":
        "what page faults cost on this machine, measured before and after the recording",
        "the machine is too busy, or the measuring process failed",
        "record again; savings are predicted from durations alone";
    ONE_CLOCK = "one relation to the time of day":
        "one offset between recorded times and the wall clock",
        "the clock was set, or the machine slept, during the recording",
        "times in the tables are right; the manifest has the offset at the begin and at the end";
    END = "the end of the recording":
        "what happened after the last finished segment",
        "the recorder was killed, the disk was full, or it still records",
        "read it again when it has ended; record again otherwise";
    RECORDING = "recording":
        "the launch that shows who is responsible for a broken budget",
        "this machine cannot record it",
        "`slowpath doctor` lists what is missing";

    OF_IMPORTED = "<what> of the imported trace":
        "something that the other tool's trace lacks, or has in part",
        "the tool does not record it, or was not asked to",
        "the reason names the option of the tool; `slowpath record` where no other tool can record it";

    // Findings and ledger
    TIME_LEDGER = "time ledger":
        "where each moment of each thread went",
        "when threads do not run was not recorded, or the recording did not end in order",
        "record with --off-cpu, until it ends";
    READINESS = "the readiness of the children in <recording>":
        "when each child process had finished its start",
        "the recording was made without --child-startup, or the kernel lacks the event",
        "slowpath record --child-startup -o DIR -- CMD";
    CHILD_LAUNCHES = "child launches: <what>":
        "something that the recording of a scenario's child launches lacks",
        "`slowpath explain` of what follows the colon says it",
        "`slowpath explain` of what follows the colon says it";
    FLAME_SAMPLES = "call stacks of CPU samples":
        "the flame graph of CPU time",
        "samples or their stacks were not recorded, or there was none",
        "record with --sample 997";
    FLAME_WAITS = "call stacks of waits":
        "the flame graph of off-CPU time",
        "waits or their stacks were not recorded, or there was none",
        "record with --stacks wait";
    FLAME_FAULTS = "call stacks of page faults":
        "the flame graph of time in page faults",
        "stacks of page faults were not recorded, or there was none",
        "record with --stacks fault";
    FLAME_ALLOCATIONS = "call stacks of allocations":
        "the flame graph of mapped memory",
        "memory calls or their stacks were not recorded, or there was none",
        "record with --stacks alloc";

    // Comparisons of recordings
    LAUNCH = "time to ready":
        "the duration of the launch",
        "the recording is of running processes, or the target did not get ready",
        "record a command from its start until it is ready";
    COUNTERS = "CPU time by the kernel's counters":
        "CPU time of each process as the kernel counted it",
        "a process did not end, or the recording is of an older version",
        "recordings of this version that ended in order";
    FAULTS = "page faults":
        "numbers of page faults",
        "the probe did not run",
        "`slowpath doctor` says what stops the recording of faults";
    FAULT_TIMES = "time in page faults":
        "durations of page faults",
        "the kernel reports no begin or end of faults",
        "`slowpath doctor` says what stops the recording of faults";
    FAULT_STACKS = "page faults by function":
        "which functions page faults belong to",
        "stacks of page faults were not recorded",
        "record with --stacks fault";
    SAMPLES = "CPU samples":
        "what threads run, sampled",
        "no samples were taken",
        "record with --sample 997";
    SAMPLE_STACKS = "CPU samples by function":
        "which functions CPU time belongs to",
        "no samples were taken",
        "record with --sample 997";
    MEMORY_CALLS = "allocations":
        "mmap, brk and the like",
        "memory calls were not recorded",
        "record with --memory-calls";
    MEMORY_CALL_STACKS = "allocations by function":
        "which functions map memory",
        "stacks of memory calls were not recorded",
        "record with --stacks alloc";
    OFF_CPU = "time off the CPU":
        "how long threads did not run",
        "waits were not recorded",
        "record with --off-cpu";
    WAIT_STACKS = "time off the CPU by function":
        "which functions threads wait in",
        "stacks of waits were not recorded",
        "record with --stacks wait";
    LEDGER = "the time ledger":
        "where each moment of each thread went, compared",
        "waits were not recorded, or the recording did not end in order",
        "record with --off-cpu, until the recording ends in order";
    OWN_THREADS = "the kernel's own threads":
        "what the kernel's threads did",
        "only recordings of the whole machine have it",
        "record with --system";
    BACKGROUND_RECLAIM = "the cost of background reclaim" formerly "the deferred cost of memory":
        "work of the kernel's threads for the program's memory",
        "/proc shows no kernel threads, or the recording is of an older version",
        "recordings of this version, where /proc shows the kernel's threads";
    ONE_WORKLOAD = "one workload":
        "that both sides ran the same workload",
        "programs, arguments or the kind of recording differ",
        "record the same program on both sides, in the same way";
    ONE_MACHINE = "one machine":
        "that both sides ran on the same machine",
        "kernel, CPUs or memory differ",
        "record both sides on the same machine";
    COMPLETE = "complete figures":
        "figures without losses",
        "events were lost, or the recorder has doubts",
        "record less, or for a shorter time";
    PROGRAM_ALONE = "differences of the program alone":
        "a difference without the cost of recording",
        "the sides were recorded with different options, which cost the target differently",
        "record both sides with the same options";

    // Trials and fixes
    WARM_LAUNCHES = "warm launches":
        "the part of a diagnosis with everything in memory",
        "the launch failed, or this machine cannot record it",
        "`slowpath diagnose --warm` says more; `slowpath doctor` lists what is missing";
    COLD_LAUNCHES = "cold launches":
        "the part of a diagnosis in a lab",
        "this machine has no lab, the program does not get ready in it, or the time does not suffice",
        "`slowpath diagnose --cold` says more; a longer --max-time; `slowpath doctor` lists what is missing";
    HIDDEN_BY_ROOT = "what root hides":
        "artifacts that a launch as root used and that another user may not read",
        "the recordings, the files or the user database could not be looked at",
        "`slowpath artifacts audit --recording DIR` says more; `slowpath diagnose --user NAME`";
    PAST_THE_LAB = "a cold launch of files outside the lab":
        "coldness of files that are not in the lab's image",
        "pages that other processes map stay in memory",
        "none is needed: the notes have the share read outside the lab";
    TRIAL = "a trial of <fix>":
        "launches with this fix",
        "its settings do not apply here: another allocator, a library that is not installed, THP switched off",
        "the reason says what to change; `slowpath explain FIX` says how to try it by hand";
    TARGET = "<option> for <fix>":
        "this kind of file for this fix",
        "such a file cannot express what the fix changes",
        "another kind of file: `slowpath fix show` lists them";
    OWN_MOUNTS = "files seen otherwise":
        "a command that sees artifacts as unreadable, stale or missing, in private mounts",
        "mounts need root",
        "run it with sudo; the command itself still runs as you";
    LAB = "lab":
        "private cold starts",
        "no root, no loop devices, or a kernel without ext4 or overlayfs",
        "run with sudo on a machine with loop devices; install e2fsprogs";
    COLDNESS_PROOF = "proof of coldness":
        "that no page of a file was in memory",
        "the kernel has no cachestat(2), or answers only root and who may write the file",
        "Linux 6.5 or later, and sudo";
    THROTTLE = "throttle of the lab's device":
        "--iops and --bandwidth",
        "neither cgroup v1 blkio nor cgroup v2 io is mounted",
        "mount the controller";
    ARM = "arm <name>":
        "a setting under which the cost of syscalls is measured",
        "this machine or this filter does not allow it",
        "the reason says which; the other arms are measured";
    WORKLOAD = "<workload> with the filter":
        "the cost of these calls under the seccomp filter",
        "the filter refuses them",
        "a filter that allows them; the others are measured";

    // IPC
    TRANSPORT = "transport <name>":
        "this mechanism of IPC",
        "the kernel lacks it, this user may not use it, or this version does not measure it",
        "the reason says which; the other transports are measured";
    REAL_TIME = "real-time callers":
        "callers with a real-time priority",
        "SCHED_FIFO was refused: no CAP_SYS_NICE, or no budget in the cgroup",
        "run as root, or raise RLIMIT_RTPRIO";
    REAL_TIME_TRANSACTIONS = "transactions of real-time callers":
        "their latencies",
        "SCHED_FIFO was refused: no CAP_SYS_NICE, or no budget in the cgroup",
        "run as root, or raise RLIMIT_RTPRIO";
    PLACEMENT = "placement effect":
        "what the choice of CPUs alone adds to latencies",
        "a pinned pair could not leave a CPU that something else uses",
        "fewer pairs, more CPUs, or no --load";
    TRACE = "trace of a missed deadline":
        "what ran on the CPUs when a deadline was missed",
        "tracefs cannot be used",
        "run as root on a kernel with CONFIG_TRACING";
    TRACE_OF_MISS = "trace of the miss":
        "why this deadline was missed",
        "the trace exceeds 256 MiB, and its newest part shows no cause",
        "run on fewer CPUs (`taskset`), with fewer other programs running";
    BEYOND_TRACE = "what the trace of the miss lacks":
        "page faults, files, call stacks, CPU time by the kernel's counters, and why threads waited outside of transactions",
        "the kernel's trace of a miss has scheduling, interrupts, work queues, frequencies and idle states",
        "`slowpath record --off-cpu --pid PID` beside the benchmark";
    TRACE_EVENT = "trace event <name>":
        "one of the events that explain a missed deadline",
        "the kernel does not have it",
        "a kernel that has this event";

    // Layout
    CODE_TRACE = "traced functions":
        "which functions a command uses, in order of first use",
        "the command is traced already, ptrace(2) is forbidden, or the machine is neither x86-64 nor aarch64",
        "run slowpath outside of the other tracer; allow ptrace(2)";

    // Running processes
    FILES_OF_PROCESS = "files of process <pid>":
        "the program and libraries that the process runs",
        "it has another root directory or mount namespace than slowpath (a container)",
        "run slowpath inside the container";
    ENVIRONMENT = "environment of the processes":
        "the environment that fixes for running processes extend",
        "there are several processes, or theirs cannot be read",
        "diagnose one process at a time, as root";

    // Artifacts
    AUDITED_PATH = "path <path>":
        "a path that an audit was to look at",
        "it does not exist, this user may not look at it, or its file system checks access elsewhere",
        "the reason says which; as root, with --as for the user, most can be seen";
    REST_OF_AUDIT = "the rest of the paths":
        "what lies below the paths of an audit that ended at a limit",
        "there were more names, artifacts or nested directories than the limits allow",
        "name fewer paths, or raise --max-entries";
    LISTED_LINES = "<count> lines of the listing":
        "lines of a listing that are not in the format of `ls -l`",
        "the listing has colours, an alias's columns, or another text in it",
        "list with `ls -lanRZ DIR`";
    SELINUX_POLICY = "the policy of SELinux":
        "what the device's SELinux policy allows isolated processes",
        "a listing shows labels and modes, and not what the policy allows a domain",
        "the device's log says `avc: denied` where it refuses";
    DEVICE_STEP = "from the device: <what>":
        "output of a command on the device, or one of its files",
        "the device refused it without root, has no such command, or went away",
        "the reason says which; most of an audit works without";
    DEVICE_REST = "the rest of the evidence":
        "what was not collected before collection stopped",
        "the device went away, hung, or the user stopped it",
        "collect again";
    REFUSED_OPENS = "opens that were refused":
        "files that the recorded processes could not open",
        "the recording holds no opens, or lost some",
        "record without --no-files; with --files where processes run already";

    // Recordings of earlier versions
    SMALL_PAGES = "4 KiB pages":
        "recording on kernels with larger pages, which earlier versions refused",
        "the kernel has pages of 16 or 64 KiB (arm64), and that version counted in pages of 4 KiB only",
        "record again with this version";
}
