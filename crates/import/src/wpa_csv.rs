//! Tables of Windows Performance Analyzer as CSV, exported row by row (`wpaexporter`, or a copied table): CPU samples and switches.
//!
//! The first line names the columns, with their units and in any order; which table it is follows from them. Names of columns are those
//! of the profiles and scripts of UIforETW (google/UIforETW: `startup10.wpaProfile`, `xperf_to_collapsedstacks.py`), which exports them:
//! a stack has `/` between its frames, the outermost first. Rows of one table may be in any order, so a million of them are held back.
//! Groups of rows, which WPA sums up, have no time of their own and are left out. What a name, a frame and a wait is, `xperf` says.

use crate::declaration::{Importer, head_lines};
use crate::in_order::InOrder;
use crate::input::Input;
use crate::problem::ImportError;
use crate::trace::Trace;
use crate::xperf::columns::{List, Row, split_by};
use crate::xperf::events::wait_reason;
use crate::xperf::group::{FrameText, place};
use slowpath_tables::{CpuSample, Nanos, OffCpu, OffCpuReason};
use std::collections::HashSet;
use std::rc::Rc;

/// The declaration.
pub const IMPORT: Importer = Importer {
    name: "wpa-csv",
    title: "CSV of Windows Performance Analyzer: CPU Usage (Sampled) and CPU Usage (Precise)",
    made_by: "wpaexporter trace.etl -symbols -profile P, where P shows every row: of CPU Usage (Sampled) Process, Thread ID, CPU, Stack, \
              Weight (in view), TimeStamp; of CPU Usage (Precise) New Process, New Thread Id, New Prev State, New Prev Wait Reason, \
              Last Switch-Out Time, Ready Time, Switch-In Time, CPU, New Thread Stack",
    reads: "CPU samples and waits of threads with their call stacks",
    lacks: "of WPA's tables these two are read, which hold no file and no memory: xperf -a dumper prints those events",
    probes: &["cpu_sample", "off_cpu"],
    detects,
    import,
};

/// Rows that are held back until those before them must have come.
const MOST_HELD: usize = 1 << 20;
/// Names of processes that are kept once for all rows.
const MOST_NAMES: usize = 1 << 16;
/// Most CPU samples a second (Windows: one every 0.1221 ms).
const MOST_HZ: u64 = 1_000_000;

const HEADER: &str = "the names of WPA's columns: Thread ID and TimeStamp (s) of CPU Usage (Sampled), or New Thread Id and \
                      Switch-In Time (s) of CPU Usage (Precise)";
const FIELDS: &str = "as many fields as the first line has columns";
const VALUE: &str = "times and ids as WPA exports them";

/// Units of times, in ns.
const UNITS: [(&str, u64); 5] = [("s", 1_000_000_000), ("ms", 1_000_000), ("\u{b5}s", 1000), ("us", 1000), ("ns", 1)];

/// Which table it is, by its columns of threads and times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sampled,
    Precise,
}

/// The columns of a table.
#[derive(Debug)]
struct Table {
    kind: Kind,
    separator: u8,
    columns: List,
}

/// A row until it is its turn.
#[derive(Debug)]
struct Held {
    ts: Nanos,
    pid: u32,
    tid: u32,
    name: Rc<str>,
    cpu: Option<u32>,
    stack: Option<u32>,
    event: Event,
}

#[derive(Debug)]
enum Event {
    Sample { kernel: bool },
    Wait { end: Nanos, ready: Option<Nanos>, reason: OffCpuReason, waker: Option<(u32, u32)> },
}

fn detects(head: &[u8]) -> bool {
    head_lines(head).next().is_some_and(|line| Table::of(line).is_some())
}

fn import(input: &mut Input<'_>, trace: &mut Trace<'_>) -> Result<(), ImportError> {
    let mut rows = Rows { order: InOrder::new(MOST_HELD), names: HashSet::new(), weights: (0, 0) };
    let read = rows.read(input, trace);
    for row in rows.order.finish() {
        emit(trace, row)?;
    }
    if rows.order.late > 0 {
        trace.facts.losses.add("wpa_out_of_order.any", rows.order.late);
    }
    // All samples weigh what their interval is, but those that were late.
    let (count, weight) = rows.weights;
    let hz = u64::try_from(u128::from(count) * 1_000_000_000 / u128::from(weight.max(1))).unwrap_or(u64::MAX);
    if count > 0 && (1..=MOST_HZ).contains(&hz) {
        trace.facts.sample_hz = Some(hz);
    }
    read
}

impl Table {
    /// The table whose first line this is.
    fn of(line: &str) -> Option<Self> {
        let line = line.trim_start_matches('\u{feff}').trim();
        let count = |separator: &u8| line.bytes().filter(|byte| byte == separator).count();
        let separator = [b',', b'\t', b';'].into_iter().max_by_key(count).filter(|one| count(one) > 0)?;
        let names = split_by(line, separator);
        let has = |name: &str| names.contains(&name);
        let has_time = |name: &str| names.iter().any(|column| unit(column, name).is_some());
        let kind = if has("New Thread Id") && has_time("Switch-In Time") && has_time("Last Switch-Out Time") {
            Kind::Precise
        } else if has("Thread ID") && has("Process") && has_time("TimeStamp") {
            Kind::Sampled
        } else {
            return None;
        };
        let free = names.iter().position(|name| *name == kind.stack());
        Some(Self { kind, separator, columns: List::new(names, free) })
    }

    /// A time in a column of this name, whatever its unit. The outer value is none where it is no time, the inner one where there is none.
    fn time(&self, row: &Row<'_>, name: &str) -> Option<Option<Nanos>> {
        let mut columns = self.columns.names();
        let found = columns.find_map(|column| Some((row.text(column)?, unit(column, name)?)));
        match found {
            None | Some(("" | "n/a", _)) => Some(None),
            Some((text, unit)) => time(text, unit).map(Some),
        }
    }
}

impl Kind {
    fn stack(self) -> &'static str {
        match self {
            Self::Sampled => "Stack",
            Self::Precise => "New Thread Stack",
        }
    }
}

/// The rows of a table.
struct Rows {
    order: InOrder<Held>,
    names: HashSet<Rc<str>>,
    /// Samples with a weight, and their weights together in ns.
    weights: (u64, u64),
}

impl Rows {
    fn read(&mut self, input: &mut Input<'_>, trace: &mut Trace<'_>) -> Result<(), ImportError> {
        let mut line = String::new();
        if !input.next_line(&mut line)? {
            return Err(input.wrong(HEADER, ""));
        }
        let Some(table) = Table::of(&line) else { return Err(input.wrong(HEADER, &line)) };
        while input.next_line(&mut line)? {
            let text = line.trim_matches(['\r', '\n']);
            if text.trim().is_empty() {
                continue;
            }
            let fields = split_by(text, table.separator);
            if fields.len() < table.columns.names().count() {
                return Err(input.wrong(FIELDS, &line));
            }
            let Some(row) = table.columns.values(text, fields) else { return Err(input.wrong(FIELDS, &line)) };
            let done = match table.kind {
                Kind::Sampled => self.sample(trace, &table, &row)?,
                Kind::Precise => self.switch(trace, &table, &row)?,
            };
            if done.is_none() {
                return Err(input.wrong(VALUE, &line));
            }
            for row in self.order.ready() {
                emit(trace, row)?;
            }
        }
        Ok(())
    }

    /// A row of CPU Usage (Sampled). None where it has other values.
    fn sample(&mut self, trace: &mut Trace<'_>, table: &Table, row: &Row<'_>) -> Result<Option<()>, ImportError> {
        let Some(ts) = table.time(row, "TimeStamp") else { return Ok(None) };
        let (Some(ts), Some((name, pid)), false) = (ts, row.process("Process"), is_group(row)) else {
            return Ok(left_out(trace));
        };
        let Some(tid) = row.id("Thread ID") else { return Ok(None) };
        let weight = ["Weight (in view)", "Weight"].into_iter().find_map(|name| table.time(row, name).flatten());
        if let Some(weight) = weight {
            self.weights = (self.weights.0 + 1, self.weights.1.saturating_add(weight.0));
        }
        let mut frames = frames(row.text("Stack").unwrap_or_default());
        if frames.is_empty()
            && let Some(module) = row.text("Module").filter(|module| !module.is_empty())
        {
            let code = format!("{module}!{}", row.text("Function").unwrap_or_default());
            frames.push(FrameText { address: 0, code });
        }
        let kernel = frames.first().is_some_and(FrameText::is_kernel);
        self.hold(trace, row, (ts, pid, tid, name), &frames, Event::Sample { kernel })
    }

    /// A row of CPU Usage (Precise): a thread that runs again, with the wait before. None where it has other values.
    fn switch(&mut self, trace: &mut Trace<'_>, table: &Table, row: &Row<'_>) -> Result<Option<()>, ImportError> {
        let times = ["Last Switch-Out Time", "Ready Time", "Switch-In Time"].map(|name| table.time(row, name));
        let [Some(since), Some(ready), Some(end)] = times else { return Ok(None) };
        let (Some(end), Some((name, pid)), false) = (end, row.process("New Process"), is_group(row)) else {
            return Ok(left_out(trace));
        };
        let Some(tid) = row.id("New Thread Id") else { return Ok(None) };
        // What it did before the trace began is not known.
        let Some(since) = since.filter(|since| *since <= end) else { return Ok(Some(())) };
        let reason = match row.text("New Prev State").unwrap_or_default() {
            "Waiting" => wait_reason(row.text("New Prev Wait Reason").unwrap_or_default()),
            _ => OffCpuReason::Runnable,
        };
        let waker = row.process("Readying Process").zip(row.id("Readying Thread Id"));
        let waker = waker.map(|((_, pid), tid)| (pid, tid)).filter(|(pid, tid)| *pid != 0 && *tid != 0);
        let ready = ready.filter(|ready| *ready >= since && *ready <= end && reason != OffCpuReason::Runnable);
        let frames = frames(row.text("New Thread Stack").unwrap_or_default());
        self.hold(trace, row, (since, pid, tid, name), &frames, Event::Wait { end, ready, reason, waker })
    }

    fn hold(
        &mut self,
        trace: &mut Trace<'_>,
        row: &Row<'_>,
        (ts, pid, tid, name): (Nanos, u32, u32, &str),
        frames: &[FrameText],
        event: Event,
    ) -> Result<Option<()>, ImportError> {
        let cpu = row.id("CPU").or_else(|| row.id("Cpu"));
        if let Some(cpu) = cpu {
            trace.facts.see_cpu(cpu);
        }
        match &event {
            Event::Sample { .. } => trace.facts.see_probe("cpu_sample"),
            Event::Wait { ready, reason, .. } => {
                trace.facts.see_wait(*reason);
                if ready.is_some() {
                    trace.facts.see_wake_up();
                }
            }
        }
        // The idle process.
        if pid == 0 || tid == 0 {
            return Ok(Some(()));
        }
        let mut places = Vec::with_capacity(frames.len());
        for frame in frames {
            places.push(place(trace, frame)?);
        }
        let stack = trace.stack(&places)?;
        let name = match self.names.get(name) {
            Some(name) => Rc::clone(name),
            None => {
                let name: Rc<str> = Rc::from(name);
                if self.names.len() < MOST_NAMES {
                    self.names.insert(Rc::clone(&name));
                }
                name
            }
        };
        self.order.add(ts.0, 1, Held { ts, pid, tid, name, cpu, stack, event });
        Ok(Some(()))
    }
}

/// Whether a row counts others.
fn is_group(row: &Row<'_>) -> bool {
    row.text("Count").is_some_and(|count| !matches!(count, "" | "n/a" | "1"))
}

/// A row that sums up others.
fn left_out(trace: &mut Trace<'_>) -> Option<()> {
    trace.facts.leave_out("rows of groups");
    trace.facts.lack(
        "the rows behind sums",
        "the table was exported with groups: their rows have no time, or no process",
        "export it without a column left of the gold bar, so that each row is one event",
    );
    Some(())
}

fn emit(trace: &mut Trace<'_>, row: Held) -> Result<(), ImportError> {
    let Held { ts, pid, tid, name, cpu, stack, event } = row;
    let thread = trace.thread(ts, tid, Some(pid), Some(&name))?;
    let (pid, start) = (thread.process.pid, thread.process.start);
    match event {
        Event::Sample { kernel } => trace.row(CpuSample {
            ts,
            pid,
            start,
            tid,
            cpu: cpu.unwrap_or(0),
            kernel,
            stack,
            first_argument: None,
            second_argument: None,
            copies: None,
        }),
        Event::Wait { end, ready, reason, waker } => {
            trace.facts.see_time(end);
            let duration = end - ts;
            let runnable =
                if reason == OffCpuReason::Runnable { duration } else { ready.map_or(Nanos(0), |at| end - at) };
            trace.row(OffCpu {
                ts,
                duration,
                pid,
                start,
                tid,
                reason,
                runnable,
                woken: ready,
                waker_pid: waker.map(|(pid, _)| pid),
                waker_tid: waker.map(|(_, tid)| tid),
                syscall: -1,
                stack,
            })
        }
    }
}

/// The frames of a stack, the innermost first: `[Root]/ntdll.dll!RtlUserThreadStart/app.exe!main`. A name may hold a slash; what has no
/// image before it belongs to the name before.
fn frames(stack: &str) -> Vec<FrameText> {
    let mut frames: Vec<FrameText> = Vec::new();
    for piece in stack.split('/') {
        match frames.last_mut() {
            Some(before) if !piece.contains('!') => {
                before.code.push('/');
                before.code.push_str(piece);
            }
            None if matches!(piece, "" | "n/a" | "n" | "[Root]") => {}
            _ => frames.push(FrameText { address: 0, code: piece.to_owned() }),
        }
    }
    frames.retain(|frame| frame.code.contains('!'));
    frames.reverse();
    frames
}

/// Nanoseconds of the unit of a column that has this name.
fn unit(column: &str, name: &str) -> Option<u64> {
    let unit = column.strip_prefix(name)?.trim().strip_prefix('(')?.strip_suffix(')')?;
    UNITS.iter().find(|(known, _)| *known == unit).map(|(_, nanos)| *nanos)
}

/// A time as WPA writes it: with a fraction, behind the last point or comma, and others between thousands, as the language has them.
fn time(text: &str, unit: u64) -> Option<Nanos> {
    let (whole, fraction) = text.rsplit_once(['.', ',']).unwrap_or((text, ""));
    let digits: String =
        whole.chars().filter(|one| !matches!(one, '.' | ',' | ' ' | '\u{a0}' | '\u{202f}' | '\'')).collect();
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if digits.is_empty() || digits.len() > 18 || fraction.len() > 12 || !is_number(&digits) || !is_number(fraction) {
        return None;
    }
    let whole = digits.parse::<u64>().ok()?.checked_mul(unit)?;
    let part = match fraction.parse::<u64>() {
        Ok(part) => u128::from(part) * u128::from(unit) / 10u128.pow(fraction.len() as u32),
        Err(_) => 0,
    };
    whole.checked_add(u64::try_from(part).ok()?).map(Nanos)
}

#[cfg(test)]
pub(crate) mod tests;
