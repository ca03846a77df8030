//! What each CPU did, as rows of `cpu_events`: who ran, interrupts, softirqs, work items, idle states, frequencies. Pure.

use super::parse::{Event, EventKind, Task};
use slowpath_tables::{CpuEvent, CpuEventKind, Nanos};
use std::collections::BTreeMap;

/// An interrupt or softirq that has not ended.
struct Open<'a> {
    key: &'a str,
    name: &'a str,
    since: u64,
}

/// One CPU.
#[derive(Default)]
struct Cpu<'a> {
    /// Who runs, and since when.
    task: Option<(u64, Task)>,
    open: Vec<Open<'a>>,
    idle: Option<(u64, u32)>,
    is_seen: bool,
}

#[derive(Default)]
struct Reader<'a> {
    cpus: BTreeMap<u32, Cpu<'a>>,
    /// Work items by their key: since when, on which CPU, which thread, which function.
    work: BTreeMap<&'a str, (u64, u32, u32, &'a str)>,
    rows: Vec<CpuEvent>,
    lost: u64,
}

/// The rows between two moments, and how often a switch is missing.
pub(super) fn events(events: &[Event], begin: u64, end: u64) -> (Vec<CpuEvent>, u64) {
    let mut reader = Reader::default();
    events.iter().for_each(|event| reader.take(event, begin));
    reader.finish(end)
}

fn row(ts: u64, until: Option<u64>, cpu: u32, kind: CpuEventKind, name: &str) -> CpuEvent {
    let duration = until.map(|until| Nanos(until.saturating_sub(ts)));
    CpuEvent { ts: Nanos(ts), duration, cpu, kind, name: name.to_owned(), tid: None, value: None }
}

fn of_task(since: u64, until: u64, cpu: u32, task: &Task) -> CpuEvent {
    CpuEvent {
        tid: Some(task.thread),
        value: Some(task.priority.into()),
        ..row(since, Some(until), cpu, CpuEventKind::Task, &task.name)
    }
}

fn of_interrupt(open: &Open<'_>, until: Option<u64>, cpu: u32) -> CpuEvent {
    let kind = if open.key.starts_with("softirq") { CpuEventKind::Softirq } else { CpuEventKind::Interrupt };
    let name = open.name.split_once(' ').map_or(open.name, |(_, name)| name);
    row(open.since, until, cpu, kind, name)
}

impl<'a> Reader<'a> {
    fn take(&mut self, event: &'a Event, begin: u64) {
        let Event { time, cpu, .. } = *event;
        match &event.kind {
            EventKind::Switch { previous, next, .. } => self.switch(time, cpu, begin, previous, next),
            EventKind::Enter { key, name } => {
                let open = &mut self.cpus.entry(cpu).or_default().open;
                // None interrupts itself: the end of the one before is missing.
                if let Some(before) = open.iter().position(|one| one.key == key) {
                    open.truncate(before);
                }
                open.push(Open { key, name, since: time });
            }
            EventKind::Leave(key) => {
                let open = &mut self.cpus.entry(cpu).or_default().open;
                if let Some(index) = open.iter().rposition(|one| one.key == key) {
                    let ended = open.drain(index..).next();
                    self.rows.extend(ended.map(|ended| of_interrupt(&ended, Some(time), cpu)));
                }
            }
            EventKind::Work { key, function } => {
                self.work.insert(key, (time, cpu, event.thread, function.as_str()));
            }
            EventKind::WorkEnd(key) => {
                let done = self.work.remove(key.as_str());
                self.rows.extend(done.map(|(since, cpu, tid, function)| CpuEvent {
                    tid: Some(tid),
                    ..row(since, Some(time), cpu, CpuEventKind::Work, function)
                }));
            }
            EventKind::Idle { cpu, state } => {
                let idle = &mut self.cpus.entry(*cpu).or_default().idle;
                let before = std::mem::replace(idle, state.map(|state| (time, state)));
                self.rows.extend(before.map(|(since, state)| of_idle(since, time, *cpu, state)));
            }
            EventKind::Frequency { cpu, khz } => self.rows.push(CpuEvent {
                value: Some((*khz).into()),
                ..row(time, None, *cpu, CpuEventKind::Frequency, "frequency")
            }),
            EventKind::Binder { name, fields } => self.rows.push(CpuEvent {
                tid: Some(event.thread),
                ..row(time, None, cpu, CpuEventKind::Binder, &format!("{name} {fields}"))
            }),
            _ => {}
        }
    }

    fn switch(&mut self, time: u64, cpu: u32, begin: u64, previous: &Task, next: &Task) {
        let one = self.cpus.entry(cpu).or_default();
        let before = one.task.replace((time, next.clone()));
        let since = match before {
            Some((since, task)) if task.thread == previous.thread => Some(since),
            // The first switch that is seen of a CPU: that task ran from the beginning.
            None if !one.is_seen => Some(begin),
            // Since when it ran, and until when another one did, is not in the trace.
            _ => None,
        };
        one.is_seen = true;
        match since {
            Some(since) if previous.thread != 0 && time > since => self.rows.push(of_task(since, time, cpu, previous)),
            Some(_) => {}
            None => self.lost += 1,
        }
    }

    fn finish(mut self, end: u64) -> (Vec<CpuEvent>, u64) {
        for (cpu, one) in &self.cpus {
            let task = one.task.as_ref().filter(|(since, task)| task.thread != 0 && *since < end);
            self.rows.extend(task.map(|(since, task)| of_task(*since, end, *cpu, task)));
            self.rows.extend(one.open.iter().map(|open| of_interrupt(open, None, *cpu)));
            self.rows.extend(one.idle.map(|(since, state)| of_idle(since, end, *cpu, state)));
        }
        for (since, cpu, tid, function) in self.work.values() {
            self.rows.push(CpuEvent { tid: Some(*tid), ..row(*since, None, *cpu, CpuEventKind::Work, function) });
        }
        (self.rows, self.lost)
    }
}

fn of_idle(since: u64, until: u64, cpu: u32, state: u32) -> CpuEvent {
    CpuEvent { value: Some(state.into()), ..row(since, Some(until), cpu, CpuEventKind::Idle, "idle") }
}
