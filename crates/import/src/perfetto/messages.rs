//! The messages of a Perfetto trace that are read, by hand: the few that are used. Field numbers are those of
//! `protos/perfetto/trace/**/*.proto` in Perfetto, where they never change.

use prost::Message;

/// `TracePacket`.
#[derive(Clone, PartialEq, Message)]
pub struct TracePacket {
    #[prost(message, optional, tag = "1")]
    pub ftrace_events: Option<FtraceEventBundle>,
    #[prost(message, optional, tag = "2")]
    pub process_tree: Option<ProcessTree>,
    #[prost(message, optional, tag = "6")]
    pub clock_snapshot: Option<ClockSnapshot>,
    #[prost(message, optional, tag = "45")]
    pub system_info: Option<SystemInfo>,
    #[prost(bytes = "vec", optional, tag = "50")]
    pub compressed_packets: Option<Vec<u8>>,
}

/// `ClockSnapshot`.
#[derive(Clone, PartialEq, Message)]
pub struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub clocks: Vec<Clock>,
}

/// `ClockSnapshot.Clock`.
#[derive(Clone, PartialEq, Message)]
pub struct Clock {
    #[prost(uint32, optional, tag = "1")]
    pub clock_id: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    pub timestamp: Option<u64>,
}

/// `BuiltinClock.BUILTIN_CLOCK_REALTIME`.
pub const CLOCK_REALTIME: u32 = 1;
/// `BuiltinClock.BUILTIN_CLOCK_BOOTTIME`, the clock of ftrace events.
pub const CLOCK_BOOTTIME: u32 = 6;

/// `SystemInfo`.
#[derive(Clone, PartialEq, Message)]
pub struct SystemInfo {
    #[prost(message, optional, tag = "1")]
    pub utsname: Option<Utsname>,
    #[prost(uint32, optional, tag = "6")]
    pub page_size: Option<u32>,
    #[prost(uint32, optional, tag = "8")]
    pub num_cpus: Option<u32>,
}

/// `Utsname`.
#[derive(Clone, PartialEq, Message)]
pub struct Utsname {
    #[prost(string, optional, tag = "3")]
    pub release: Option<String>,
    #[prost(string, optional, tag = "4")]
    pub machine: Option<String>,
}

/// `ProcessTree`.
#[derive(Clone, PartialEq, Message)]
pub struct ProcessTree {
    #[prost(message, repeated, tag = "1")]
    pub processes: Vec<Process>,
    #[prost(message, repeated, tag = "2")]
    pub threads: Vec<Thread>,
}

/// `ProcessTree.Process`.
#[derive(Clone, PartialEq, Message)]
pub struct Process {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(string, repeated, tag = "3")]
    pub cmdline: Vec<String>,
}

/// `ProcessTree.Thread`.
#[derive(Clone, PartialEq, Message)]
pub struct Thread {
    #[prost(int32, optional, tag = "1")]
    pub tid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub tgid: Option<i32>,
}

/// `FtraceEventBundle`.
#[derive(Clone, PartialEq, Message)]
pub struct FtraceEventBundle {
    #[prost(uint32, optional, tag = "1")]
    pub cpu: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    pub event: Vec<FtraceEvent>,
    #[prost(bool, optional, tag = "3")]
    pub lost_events: Option<bool>,
    #[prost(message, optional, tag = "4")]
    pub compact_sched: Option<CompactSched>,
}

/// `FtraceEventBundle.CompactSched`: columns; times are differences.
#[derive(Clone, PartialEq, Message)]
pub struct CompactSched {
    #[prost(uint64, repeated, tag = "1")]
    pub switch_timestamp: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub switch_prev_state: Vec<i64>,
    #[prost(int32, repeated, tag = "3")]
    pub switch_next_pid: Vec<i32>,
    #[prost(string, repeated, tag = "5")]
    pub intern_table: Vec<String>,
    #[prost(uint32, repeated, tag = "6")]
    pub switch_next_comm_index: Vec<u32>,
    #[prost(uint64, repeated, tag = "7")]
    pub waking_timestamp: Vec<u64>,
    #[prost(int32, repeated, tag = "8")]
    pub waking_pid: Vec<i32>,
}

/// `FtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct FtraceEvent {
    #[prost(uint64, optional, tag = "1")]
    pub timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "2")]
    pub pid: Option<u32>,
    #[prost(message, optional, tag = "4")]
    pub sched_switch: Option<SchedSwitch>,
    #[prost(message, optional, tag = "17")]
    pub sched_wakeup: Option<Woken>,
    #[prost(message, optional, tag = "18")]
    pub sched_blocked_reason: Option<BlockedReason>,
    #[prost(message, optional, tag = "20")]
    pub sched_waking: Option<Woken>,
    #[prost(message, optional, tag = "45")]
    pub block_rq_issue: Option<BlockRequest>,
    #[prost(message, optional, tag = "97")]
    pub mm_filemap_add_to_page_cache: Option<FileMap>,
    #[prost(message, optional, tag = "98")]
    pub mm_filemap_delete_from_page_cache: Option<FileMap>,
    #[prost(message, optional, tag = "114")]
    pub sched_wakeup_new: Option<Woken>,
    #[prost(message, optional, tag = "125")]
    pub block_rq_complete: Option<BlockRequest>,
    #[prost(message, optional, tag = "235")]
    pub task_newtask: Option<NewTask>,
    #[prost(message, optional, tag = "237")]
    pub sched_process_exec: Option<Executed>,
    #[prost(message, optional, tag = "238")]
    pub sched_process_exit: Option<Ended>,
}

/// `SchedSwitchFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct SchedSwitch {
    #[prost(int32, optional, tag = "2")]
    pub prev_pid: Option<i32>,
    #[prost(int64, optional, tag = "4")]
    pub prev_state: Option<i64>,
    #[prost(string, optional, tag = "5")]
    pub next_comm: Option<String>,
    #[prost(int32, optional, tag = "6")]
    pub next_pid: Option<i32>,
}

/// `SchedWakeupFtraceEvent`, `SchedWakingFtraceEvent`, `SchedWakeupNewFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct Woken {
    #[prost(int32, optional, tag = "2")]
    pub pid: Option<i32>,
}

/// `SchedBlockedReasonFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct BlockedReason {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(uint32, optional, tag = "3")]
    pub io_wait: Option<u32>,
}

/// `BlockRqIssueFtraceEvent`, `BlockRqCompleteFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct BlockRequest {
    #[prost(uint64, optional, tag = "1")]
    pub dev: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub sector: Option<u64>,
    #[prost(uint32, optional, tag = "3")]
    pub nr_sector: Option<u32>,
    #[prost(string, optional, tag = "5")]
    pub rwbs: Option<String>,
}

/// `MmFilemapAddToPageCacheFtraceEvent`, `MmFilemapDeleteFromPageCacheFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct FileMap {
    #[prost(uint64, optional, tag = "2")]
    pub i_ino: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub index: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    pub s_dev: Option<u64>,
}

/// `TaskNewtaskFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct NewTask {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(uint64, optional, tag = "3")]
    pub clone_flags: Option<u64>,
}

/// `SchedProcessExecFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct Executed {
    #[prost(string, optional, tag = "1")]
    pub filename: Option<String>,
}

/// `SchedProcessExitFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct Ended {
    #[prost(int32, optional, tag = "2")]
    pub pid: Option<i32>,
}
