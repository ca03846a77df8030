//! The messages of a Perfetto trace that are read, by hand: the few that are used, by the importer and by who looks for launches of
//! apps (`android`). Field numbers are those of `protos/perfetto/trace/**/*.proto` in Perfetto, where they never change. Names of tasks
//! and files are bytes: the kernel cuts them where it likes, and a packet of one cut name is none to refuse.

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
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    #[prost(message, optional, tag = "45")]
    pub system_info: Option<SystemInfo>,
    #[prost(message, optional, tag = "47")]
    pub packages_list: Option<PackagesList>,
    #[prost(bytes = "vec", optional, tag = "50")]
    pub compressed_packets: Option<Vec<u8>>,
    #[prost(uint32, optional, tag = "58")]
    pub timestamp_clock_id: Option<u32>,
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
    #[prost(uint64, optional, tag = "5")]
    pub android_sdk_version: Option<u64>,
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

impl FtraceEventBundle {
    /// Time of its first event.
    pub fn begin(&self) -> Option<u64> {
        let compact = self.compact_sched.iter();
        let compact = compact
            .flat_map(|compact| compact.switch_timestamp.first().into_iter().chain(compact.waking_timestamp.first()));
        compact.copied().chain(self.event.iter().filter_map(|event| event.timestamp)).min()
    }
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

impl CompactSched {
    /// Switches of the bundle's CPU: when, the state of the thread that ran, who runs now (none: the idle task), its name.
    pub fn switches(&self) -> impl Iterator<Item = (u64, i64, Option<u32>, &[u8])> {
        let mut ts = 0u64;
        let rows = self.switch_timestamp.iter().zip(&self.switch_prev_state).zip(&self.switch_next_pid);
        rows.enumerate().map(move |(at, ((step, state), next))| {
            ts = ts.wrapping_add(*step);
            let name = self.switch_next_comm_index.get(at).and_then(|at| self.intern_table.get(*at as usize));
            (ts, *state, task(*next), name.map_or(&[][..], Vec::as_slice))
        })
    }

    /// Threads that were woken by what ran on the bundle's CPU, and when.
    pub fn wakings(&self) -> impl Iterator<Item = (u64, u32)> {
        let mut ts = 0u64;
        self.waking_timestamp.iter().zip(&self.waking_pid).filter_map(move |(step, woken)| {
            ts = ts.wrapping_add(*step);
            Some((ts, task(*woken)?))
        })
    }
}

/// `CLONE_THREAD` of include/uapi/linux/sched.h: the new task is a thread of the same process.
pub const CLONE_THREAD: u64 = 0x1_0000;

/// An id of a task that is not the idle one.
pub fn task(number: i32) -> Option<u32> {
    u32::try_from(number).ok().filter(|id| *id != 0)
}

/// Text of a name; what is no UTF-8 is replaced.
pub fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
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
    #[prost(message, optional, tag = "45")]
    pub block_rq_issue: Option<BlockRequest>,
    #[prost(message, optional, tag = "50")]
    pub binder_transaction: Option<BinderTransaction>,
    #[prost(message, optional, tag = "51")]
    pub binder_transaction_received: Option<BinderReceived>,
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
    #[prost(message, optional, tag = "236")]
    pub task_rename: Option<Renamed>,
    #[prost(message, optional, tag = "237")]
    pub sched_process_exec: Option<Executed>,
    #[prost(message, optional, tag = "238")]
    pub sched_process_exit: Option<Ended>,
    #[prost(message, optional, tag = "240")]
    pub sched_process_free: Option<Freed>,
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
    #[prost(bytes = "vec", optional, tag = "2")]
    pub comm: Option<Vec<u8>>,
    #[prost(uint64, optional, tag = "3")]
    pub clone_flags: Option<u64>,
}

/// `SchedProcessExecFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct Executed {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub filename: Option<Vec<u8>>,
}

/// `SchedProcessExitFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct Ended {
    #[prost(int32, optional, tag = "2")]
    pub pid: Option<i32>,
}

/// `PrintFtraceEvent`: what `atrace` writes.
#[derive(Clone, PartialEq, Message)]
pub struct Print {
    #[prost(bytes = "vec", optional, tag = "2")]
    pub buf: Option<Vec<u8>>,
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
