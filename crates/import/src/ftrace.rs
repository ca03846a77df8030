//! The text of ftrace: `/sys/kernel/tracing/trace`, and `trace-cmd report` of a trace.dat.

use crate::declaration::{Importer, head_lines};
use crate::input::Input;
use crate::kernel_event::{Circumstances, KernelEvents};
use crate::moment::seconds;
use crate::problem::ImportError;
use crate::trace::Trace;
use slowpath_tables::Nanos;

/// The declaration.
pub const IMPORT: Importer = Importer {
    name: "ftrace",
    title: "ftrace: /sys/kernel/tracing/trace, or trace-cmd report",
    made_by: "trace-cmd record -e sched_switch -e sched_wakeup -e 'sched_process_*' -e exceptions -e filemap -e block_rq_issue \
              -e block_rq_complete -e syscalls, then trace-cmd report",
    reads: "switches and wake-ups, processes, page faults, page cache, block I/O; system calls for the reasons of waits",
    lacks: "ftrace's events have no call stack, no duration and no content of memory",
    probes: &["block", "fault", "off_cpu", "page_cache", "process"],
    detects,
    import,
};

const LINE: &str = "an event of ftrace: TASK-PID [CPU] FLAGS SECONDS.MICROSECONDS: EVENT: FIELDS";
const FIELDS: &str = "the fields of this kernel event";

fn detects(head: &[u8]) -> bool {
    let mut lines = head_lines(head).filter(|line| !line.trim().is_empty());
    let Some(first) = lines.next() else { return false };
    let is_first_line =
        |line: &str| line.starts_with("# tracer: ") || is_cpu_count(line) || line.starts_with("version = ");
    is_first_line(first) || Line::of(first).is_some()
}

/// The first line of `trace-cmd report`.
fn is_cpu_count(line: &str) -> bool {
    line.strip_prefix("cpus=").is_some_and(|number| number.trim().parse::<u32>().is_ok())
}

/// A line of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line<'a> {
    comm: &'a str,
    tid: u32,
    pid: Option<u32>,
    cpu: u32,
    in_interrupt: bool,
    ts: Nanos,
    event: &'a str,
    rest: &'a str,
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Option<Self> {
        // A name may hold brackets: the first CPU with a time behind it counts.
        line.match_indices('[').find_map(|(at, _)| Self::around(line, at))
    }

    fn around(line: &'a str, at: usize) -> Option<Self> {
        let (left, right) = (line[..at].trim(), &line[at + 1..]);
        let (cpu, right) = right.split_once(']')?;
        let cpu = cpu.parse().ok()?;
        let (left, pid) = match left.strip_suffix(')').and_then(|left| left.rsplit_once('(')) {
            Some((task, pid)) => (task.trim_end(), pid.trim().parse().ok()),
            None => (left, None),
        };
        let (comm, tid) = left.rsplit_once('-')?;
        let tid = tid.parse().ok()?;
        let right = right.trim_start();
        let (first, after) = right.split_once(' ')?;
        let (flags, time, rest) = match first.strip_suffix(':').and_then(seconds) {
            Some(ts) => ("", ts, after),
            None => {
                let (time, rest) = after.trim_start().split_once(": ")?;
                (first, seconds(time.trim())?, rest)
            }
        };
        // irqs-off, need-resched, hardirq/softirq, preempt-depth (Documentation/trace/ftrace.rst).
        let in_interrupt = flags.as_bytes().get(2).is_some_and(|flag| b"hHsSzZ".contains(flag));
        let rest = rest.trim_start();
        let (event, rest) = match rest.split_once(": ") {
            Some((event, rest)) if !event.contains([' ', '(']) => (event, rest.trim()),
            _ => (rest.strip_suffix(':').unwrap_or(rest), ""),
        };
        Some(Self { comm: comm.trim(), tid, pid, cpu, in_interrupt, ts: time, event, rest })
    }
}

fn import(input: &mut Input<'_>, trace: &mut Trace<'_>) -> Result<(), ImportError> {
    let mut events = KernelEvents::default();
    let read = lines(input, trace, &mut events);
    events.finish(trace)?;
    read
}

fn lines(input: &mut Input<'_>, trace: &mut Trace<'_>, events: &mut KernelEvents) -> Result<(), ImportError> {
    let mut line = String::new();
    trace.facts.lack(
        "the reasons of some waits",
        "a wait outside of a system call that the trace names is one in the kernel",
        "trace-cmd record -e syscalls, or perf record -g -e sched:sched_switch",
    );
    while input.next_line(&mut line)? {
        if line.trim().is_empty() || about(trace, &line) {
            continue;
        }
        let Some(found) = Line::of(&line) else { return Err(input.wrong(LINE, &line)) };
        trace.facts.see_cpu(found.cpu);
        trace.facts.see_time(found.ts);
        let comm = Some(found.comm).filter(|comm| *comm != "<...>");
        if found.pid.is_none() && found.tid != 0 {
            trace.facts.lack(
                "which threads belong to one process",
                "the trace has thread ids only: each thread counts as a process",
                "echo 1 > /sys/kernel/tracing/options/record-tgid",
            );
        }
        let thread = match found.tid {
            0 => None,
            tid => Some(trace.thread(found.ts, tid, found.pid, comm)?),
        };
        let at = Circumstances { ts: found.ts, thread, in_interrupt: found.in_interrupt, stack: None, by_stack: None };
        // `sys_read(fd: 3, ...)` at entry, `sys_read -> 0x10` at exit.
        if let Some(call) = found.event.strip_prefix("sys_").filter(|call| call.contains(['(', '>'])) {
            match call.split_once('(') {
                Some((call, _)) if !call.contains(' ') => events.entered(&at, call),
                _ => events.left(&at),
            }
        } else if !events.text(trace, found.event, found.rest, &at)? {
            return Err(input.wrong(FIELDS, &line));
        }
    }
    Ok(())
}

/// Lines about the trace and not of an event.
fn about(trace: &mut Trace<'_>, line: &str) -> bool {
    let facts = &mut trace.facts;
    if let Some(comment) = line.strip_prefix('#') {
        if let Some((_, cpus)) = comment.split_once("#P:") {
            facts.cpus = cpus.trim().parse().ok().or(facts.cpus);
        }
        if let Some((_, entries)) = comment.split_once("entries-written: ") {
            let mut numbers = entries.split(['/', ' ']).map_while(|number| number.parse::<u64>().ok());
            if let (Some(here), Some(written)) = (numbers.next(), numbers.next()) {
                facts.losses.add("ftrace_overwritten.any", written.saturating_sub(here));
            }
        }
        return true;
    }
    if let Some(lost) = lost(line)
        && Line::of(line).is_none()
    {
        facts.losses.add("ftrace.any", lost);
        return true;
    }
    if is_cpu_count(line) {
        facts.cpus = line["cpus=".len()..].trim().parse().ok();
        return true;
    }
    line.starts_with("version = ") || line.starts_with("CPU ") && line.ends_with("is empty")
}

/// Events that were lost before this line: `CPU:7 [LOST 5 EVENTS]` of the kernel, `CPU:7 [5 EVENTS DROPPED]` of trace-cmd. At least
/// one where they do not know how many: `[LOST EVENTS]`, `[EVENTS DROPPED]`.
fn lost(line: &str) -> Option<u64> {
    let (before, said) = line.trim_end().strip_suffix(']')?.rsplit_once('[')?;
    if !before.contains("CPU:") {
        return None;
    }
    let number = match said.strip_prefix("LOST ") {
        Some(rest) => rest.strip_suffix("EVENTS")?,
        None => said.strip_suffix("EVENTS DROPPED")?,
    };
    Some(number.trim().parse().unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_and_of_trace_cmd_are_read() {
        let line = "    my-task-1234    (   1200) [001] d..3. 12.000001: sched_switch: prev_comm=a";
        let found = Line::of(line).unwrap();
        assert_eq!((found.comm, found.tid, found.pid, found.cpu), ("my-task", 1234, Some(1200), 1));
        assert_eq!((found.ts.0, found.event, found.rest), (12_000_001_000, "sched_switch", "prev_comm=a"));
        assert!(!found.in_interrupt);
        let found = Line::of("  <idle>-0  [000]  12.5: sched_wakeup:   a:7 [120] CPU:001").unwrap();
        assert_eq!((found.tid, found.event, found.rest), (0, "sched_wakeup", "a:7 [120] CPU:001"));
        assert!(Line::of("  a-7 [000] d.h1. 12.5: sched_wakeup: comm=a").unwrap().in_interrupt);
        let call = Line::of("  a-7 [000] ..... 12.5: sys_read(fd: 3, buf: 7f, count: 10)").unwrap();
        assert_eq!(call.event, "sys_read(fd: 3, buf: 7f, count: 10)");
        assert_eq!(Line::of("  a[1]-7 [000] ..... 12.5: x: y").unwrap().comm, "a[1]");
        for wrong in ["", "[", "a-7 [000]", "a-x [000] .... 1.0: e: f", "a-7 [0] 1: e: f"] {
            assert_eq!(Line::of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_wait_in_a_system_call_has_its_reason_and_what_was_overwritten_is_lost() {
        let trace = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 6/16   #P:2
            app-7       (      7) [000] d..1.    10.000001: sys_futex(uaddr: 1, op: 0)
            app-7       (      7) [000] d..2.    10.000002: sched_switch: prev_comm=app prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
          <idle>-0       (-------) [000] d.h3.    10.000500: sched_wakeup: comm=app pid=7 prio=120 target_cpu=000
          <idle>-0       (-------) [000] d..2.    10.000502: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=app next_pid=7 next_prio=120
            app-7       (      7) [000] .....    10.000600: sys_futex -> 0x0
            app-7       (      7) [000] .....    10.000700: mm_filemap_add_to_page_cache: dev 254:1 ino 1a pfn=0x1f ofs=8192 order=2
CPU:1 [LOST 5 EVENTS]
";
        let (tables, problem) = crate::foreign::import_bytes("ftrace", trace.as_bytes());
        assert_eq!(problem, None);
        let wait = &tables.off_cpu[0];
        assert_eq!(
            (wait.reason, wait.duration.0, wait.runnable.0),
            (slowpath_tables::OffCpuReason::Futex, 500_000, 2_000)
        );
        assert_eq!(wait.waker_pid, None);
        assert_eq!((tables.page_cache[0].page.0, tables.page_cache[0].pages.0), (2, 4));
        let losses = &tables.manifest.losses;
        assert_eq!((losses.0["ftrace_overwritten.any"], losses.0["ftrace.any"], losses.of("off_cpu")), (10, 5, 15));
        assert_eq!(tables.manifest.host.cpus, 2);
    }

    #[test]
    fn events_that_the_kernel_or_trace_cmd_dropped_are_lost_and_no_damage() {
        let event = |ts: &str| format!("  a-7 [000] {ts}: page_fault_user: address=0x1000 ip=0x2000 error_code=0x4\n");
        for (said, lost) in [
            ("CPU:7 [204600 EVENTS DROPPED]", 204_600),
            ("CPU:7 [EVENTS DROPPED]", 1),
            ("CPU:7 [LOST 12 EVENTS]", 12),
            ("CPU:7 [LOST EVENTS]", 1),
        ] {
            let trace = format!("cpus=8\n{said}\n{}{said}\n{}", event("1.000000"), event("2.000000"));
            let (tables, problem) = crate::foreign::import_bytes("ftrace", trace.as_bytes());
            assert_eq!((problem, tables.faults.len()), (None, 2), "{said}");
            assert_eq!(tables.manifest.losses.of("faults"), 2 * lost, "{said}");
        }
        // Names of tasks and what programs write into the trace are foreign text.
        let event = "  CPU:0-7 [000] .....  1.000000: print: [3 EVENTS DROPPED]\n";
        let (tables, problem) = crate::foreign::import_bytes("ftrace", event.as_bytes());
        assert_eq!((problem, tables.manifest.losses.of("faults")), (None, 0));
    }

    #[test]
    fn damage_is_named_with_its_place_and_what_was_read_is_kept() {
        let good = "  a-7 [000] .....  1.000000: page_fault_user: address=0x1000 ip=0x2000 error_code=0x4\n";
        for (damage, expected) in [
            ("  a-7 [000] ..... 1.0\n", "expected an event of ftrace"),
            ("rubbish\n", "expected an event of ftrace"),
            ("  a-7 [000] ..... 1.1: sched_switch: rubbish\n", "expected the fields of this kernel event"),
            ("  a-7 [000] ..... 1.1: block_rq_issue: 1\n", "expected the fields of this kernel event"),
        ] {
            let (tables, problem) = crate::foreign::import_bytes("ftrace", format!("{good}{damage}").as_bytes());
            let problem = problem.unwrap();
            let place = format!("trace, line 2 (byte {}): {expected}", good.len());
            assert!(problem.starts_with(&place), "{problem}");
            assert_eq!(tables.faults.len(), 1);
        }
    }
}
