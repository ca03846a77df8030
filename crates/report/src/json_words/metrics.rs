//! What launches are compared by.

use super::json_word::JsonWord;
use crate::explain::NameKind;
use slowpath_verify::Metric;

pub(super) fn all() -> impl Iterator<Item = JsonWord> {
    Metric::ALL.into_iter().map(|metric| {
        let (title, what, by_hand) = text(metric);
        JsonWord { kind: NameKind::Metric, name: metric.name(), shown: "", title, what, by_hand }
    })
}

/// Title, meaning, and how to see it by hand.
fn text(metric: Metric) -> (&'static str, &'static str, &'static str) {
    match metric {
        Metric::Wall => ("time to ready, ms", "From the release of exec to ready.", "`hyperfine COMMAND`"),
        Metric::Cpu => (
            "CPU time, ms",
            "User and system time of the command and its descendants, orphans included.",
            "user and sys of `time COMMAND`",
        ),
        Metric::User => ("CPU time in user mode, ms", "Of the command and its descendants.", "user of `time COMMAND`"),
        Metric::System => {
            ("CPU time in the kernel, ms", "Of the command and its descendants.", "sys of `time COMMAND`")
        }
        Metric::MinorFaults => (
            "page faults without I/O",
            "Of the command and its descendants, by the kernel's counters.",
            "`perf stat -e minor-faults COMMAND`",
        ),
        Metric::MajorFaults => (
            "page faults that waited for I/O",
            "Of the command and its descendants, by the kernel's counters.",
            "`perf stat -e major-faults COMMAND`",
        ),
        Metric::BytesRead => (
            "bytes read from storage",
            "In a lab from its device; else by the command and its descendants (`ru_inblock`).",
            "`/usr/bin/time -v COMMAND`: file system inputs, times 512",
        ),
        Metric::PeakRss => (
            "largest peak of a process's resident memory, bytes",
            "Since its exec where the process lived when the launch was ready, else `ru_maxrss`.",
            "`VmHWM` in `/proc/PID/status`",
        ),
        Metric::Pss => (
            "proportional set size, bytes",
            "The sum of all processes of the launch that lived when it was ready.",
            "`Pss` in `/proc/PID/smaps_rollup`",
        ),
        Metric::Switches => (
            "context switches",
            "Voluntary and involuntary, of the command and its descendants.",
            "`perf stat -e context-switches COMMAND`",
        ),
        Metric::Processes => (
            "processes that ended",
            "The command, and those that its descendants left behind. What a process started and waited for itself is not \
             counted; a recording counts all (`slowpath check`).",
            "",
        ),
        Metric::VoluntarySwitches => (
            "context switches of threads that waited",
            "Of the command and its descendants.",
            "`/usr/bin/time -v COMMAND`: voluntary context switches",
        ),
        Metric::InvoluntarySwitches => (
            "context switches of threads that could have gone on",
            "Of the command and its descendants.",
            "`/usr/bin/time -v COMMAND`: involuntary context switches",
        ),
        Metric::RunDelay => (
            "run-queue delay of the first thread, ms",
            "Time in which the command's first thread was runnable without a CPU; other threads and children are not counted.",
            "the second number of `/proc/PID/schedstat`, ns",
        ),
        Metric::Waiting => (
            "time the first thread was blocked, ms",
            "From the release of exec to ready, less the time that the command's first thread ran or was runnable: it slept, \
             waited for storage or for others, or was throttled.",
            "",
        ),
        Metric::ThrottledPeriods => (
            "periods in which cpu.max throttled the launch",
            "Of the launch's own cgroup; absent where it has none.",
            "`nr_throttled` in `cpu.stat` of the cgroup",
        ),
        Metric::MemoryLimitHits => (
            "how often memory reached its limit",
            "Of the launch's own cgroup; absent where it has none.",
            "`high` and `max` in `memory.events` of the cgroup; `memory.failcnt` with cgroup v1",
        ),
    }
}
