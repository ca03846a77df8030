//! The line of an event: `python3  1234/1235 [001] 12.345678:     250000 cpu-clock:ppp:  rest`.

use crate::moment::seconds;
use slowpath_tables::Nanos;

/// The line of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Name of the thread. Foreign text.
    pub comm: String,
    /// The process, where perf printed it.
    pub pid: Option<u32>,
    /// The thread.
    pub tid: u32,
    /// The CPU, where perf printed it.
    pub cpu: Option<u32>,
    /// When.
    pub ts: Nanos,
    /// What the sample counts for, where perf printed it.
    pub period: Option<u64>,
    /// Name of the event with its modifiers.
    pub event: String,
    /// Whether it is `SYSTEM:NAME` of the kernel's trace events.
    pub is_tracepoint: bool,
    /// What follows.
    pub rest: String,
}

impl Header {
    /// The event of a line; null where it is none.
    pub fn of(line: &str) -> Option<Self> {
        // A name may hold blanks, brackets and numbers: the first time with an id before it counts.
        let mut from = 0;
        while let Some(found) = line[from..].find(": ").or_else(|| line[from..].strip_suffix(':').map(str::len)) {
            let at = from + found;
            if let Some(header) = Self::around(line, at) {
                return Some(header);
            }
            from = at + 1;
        }
        None
    }

    /// The same where the time ends before the colon at `at`.
    fn around(line: &str, at: usize) -> Option<Self> {
        let before = &line[..at];
        let (left, time) = before.rsplit_once(' ')?;
        let ts = seconds(time)?;
        let (left, cpu) = match left.trim_end().rsplit_once(' ') {
            Some((task, cpu)) if cpu.starts_with('[') => {
                (task, Some(cpu.strip_prefix('[')?.strip_suffix(']')?.parse().ok()?))
            }
            _ => (left, None),
        };
        let (comm, ids) = left.trim_end().rsplit_once(' ')?;
        let (pid, tid) = match ids.split_once('/') {
            Some((pid, tid)) => (Some(id(pid)?), id(tid)?),
            None => (None, id(ids)?),
        };
        let rest = line[at + 1..].trim_start();
        let (period, rest) = match rest.split_once(' ') {
            Some((number, rest)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
                (Some(number.parse().ok()?), rest.trim_start())
            }
            _ => (None, rest),
        };
        let (event, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        // Records of processes end in no colon.
        let is_record = event.starts_with("PERF_RECORD_");
        let event = match event.strip_suffix(':') {
            Some(event) => event,
            None if is_record => event,
            None => return None,
        };
        let is_word = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let is_tracepoint = match event.split_once(':') {
            // `cycles:ppp` has modifiers, `sched:sched_switch` a name.
            Some((system, name)) => {
                is_word(system) && is_word(name) && !name.bytes().all(|b| b"ukhGHpPSDWeb".contains(&b))
            }
            None => false,
        };
        if event.is_empty() {
            return None;
        }
        Some(Self {
            comm: comm.trim().to_owned(),
            pid,
            tid,
            cpu,
            ts,
            period,
            event: event.to_owned(),
            is_tracepoint,
            rest: rest.trim().to_owned(),
        })
    }
}

/// A process or thread; perf prints -1 for one that is gone, which counts as none, as the idle task does.
fn id(text: &str) -> Option<u32> {
    if text == "-1" { Some(0) } else { text.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_with_and_without_what_perf_may_leave_out() {
        let header = Header::of("python3  1234/1235 [001] 12.345678:     250000 cpu-clock:ppp: ").unwrap();
        assert_eq!((header.comm.as_str(), header.pid, header.tid, header.cpu), ("python3", Some(1234), 1235, Some(1)));
        assert_eq!(
            (header.ts.0, header.period, header.event.as_str()),
            (12_345_678_000, Some(250_000), "cpu-clock:ppp")
        );
        assert!(!header.is_tracepoint);
        let header = Header::of("  a b: 7 [x]  8 1.000000001: sched:sched_switch: a:7 [120] S ==> b:8 [120]").unwrap();
        assert_eq!((header.comm.as_str(), header.pid, header.tid, header.cpu), ("a b: 7 [x]", None, 8, None));
        assert!(header.is_tracepoint && header.rest == "a:7 [120] S ==> b:8 [120]");
        assert_eq!(Header::of(":-1 22305/-1 [001] 1.0: 1 sched:sched_switch: x").map(|found| found.tid), Some(0));
        let header = Header::of("x 1/1 [000] 1.0: PERF_RECORD_FORK(2:2):(1:1)").unwrap();
        assert_eq!(header.event, "PERF_RECORD_FORK(2:2):(1:1)");
        for wrong in ["", "x", "x 1: y", "x 1 [000] 1.0: y", "x y [000] 1.0: e:", "x 1 [a] 1.0: e:", ": : :"] {
            assert_eq!(Header::of(wrong), None, "{wrong}");
        }
    }
}
