//! The messages of a Perfetto trace that launches are read from, by hand: the few that are used. Field numbers are those of
//! `protos/perfetto/trace/**/*.proto` in Perfetto, where they never change. Names are bytes: a kernel cuts them where it likes.

use prost::Message;

/// `TracePacket`.
#[derive(Clone, PartialEq, Message)]
pub struct TracePacket {
    #[prost(message, optional, tag = "1")]
    pub ftrace_events: Option<FtraceEventBundle>,
    #[prost(message, optional, tag = "2")]
    pub process_tree: Option<ProcessTree>,
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    #[prost(message, optional, tag = "45")]
    pub system_info: Option<SystemInfo>,
    #[prost(message, optional, tag = "47")]
    pub packages_list: Option<PackagesList>,
    #[prost(bytes = "vec", optional, tag = "50")]
    pub compressed_packets: Option<Vec<u8>>,
}

/// `SystemInfo`.
#[derive(Clone, PartialEq, Message)]
pub struct SystemInfo {
    #[prost(uint64, optional, tag = "5")]
    pub android_sdk_version: Option<u64>,
}

/// `PackagesList`.
#[derive(Clone, PartialEq, Message)]
pub struct PackagesList {
    #[prost(message, repeated, tag = "1")]
    pub packages: Vec<PackageInfo>,
}

/// `PackagesList.PackageInfo`.
#[derive(Clone, PartialEq, Message)]
pub struct PackageInfo {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub name: Option<Vec<u8>>,
    #[prost(uint64, optional, tag = "2")]
    pub uid: Option<u64>,
    #[prost(bool, optional, tag = "3")]
    pub debuggable: Option<bool>,
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
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub cmdline: Vec<Vec<u8>>,
    #[prost(int32, optional, tag = "5")]
    pub uid: Option<i32>,
}

/// `ProcessTree.Thread`.
#[derive(Clone, PartialEq, Message)]
pub struct Thread {
    #[prost(int32, optional, tag = "1")]
    pub tid: Option<i32>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub name: Option<Vec<u8>>,
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
    #[prost(bytes = "vec", repeated, tag = "5")]
    pub intern_table: Vec<Vec<u8>>,
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
    #[prost(message, optional, tag = "3")]
    pub print: Option<Print>,
    #[prost(message, optional, tag = "4")]
    pub sched_switch: Option<SchedSwitch>,
    #[prost(message, optional, tag = "17")]
    pub sched_wakeup: Option<Woken>,
    #[prost(message, optional, tag = "18")]
    pub sched_blocked_reason: Option<BlockedReason>,
    #[prost(message, optional, tag = "20")]
    pub sched_waking: Option<Woken>,
    #[prost(message, optional, tag = "50")]
    pub binder_transaction: Option<BinderTransaction>,
    #[prost(message, optional, tag = "51")]
    pub binder_transaction_received: Option<BinderReceived>,
    #[prost(message, optional, tag = "235")]
    pub task_newtask: Option<NewTask>,
    #[prost(message, optional, tag = "236")]
    pub task_rename: Option<Renamed>,
    #[prost(message, optional, tag = "240")]
    pub sched_process_free: Option<Freed>,
}

/// `PrintFtraceEvent`: what `atrace` writes.
#[derive(Clone, PartialEq, Message)]
pub struct Print {
    #[prost(bytes = "vec", optional, tag = "2")]
    pub buf: Option<Vec<u8>>,
}

/// `SchedSwitchFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct SchedSwitch {
    #[prost(int32, optional, tag = "2")]
    pub prev_pid: Option<i32>,
    #[prost(int64, optional, tag = "4")]
    pub prev_state: Option<i64>,
    #[prost(bytes = "vec", optional, tag = "5")]
    pub next_comm: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "6")]
    pub next_pid: Option<i32>,
}

/// `SchedWakeupFtraceEvent`, `SchedWakingFtraceEvent`.
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

/// `BinderTransactionFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct BinderTransaction {
    #[prost(int32, optional, tag = "1")]
    pub debug_id: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub to_proc: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    pub to_thread: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub reply: Option<i32>,
    #[prost(uint32, optional, tag = "7")]
    pub flags: Option<u32>,
}

/// `BinderTransactionReceivedFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct BinderReceived {
    #[prost(int32, optional, tag = "1")]
    pub debug_id: Option<i32>,
}

/// `TaskNewtaskFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct NewTask {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub comm: Option<Vec<u8>>,
    #[prost(uint64, optional, tag = "3")]
    pub clone_flags: Option<u64>,
}

/// `TaskRenameFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct Renamed {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub newcomm: Option<Vec<u8>>,
}

/// `SchedProcessFreeFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct Freed {
    #[prost(int32, optional, tag = "2")]
    pub pid: Option<i32>,
}
