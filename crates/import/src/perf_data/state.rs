//! What is known while records are read: events, tasks, mappings, and records that wait for their turn.

use super::event::{Event, Shows, field};
use super::header::take_section;
use super::little_endian::Fields;
use super::mapped::{Code, Mapped, place};
use super::recorded_events::RecordedEvents;
use super::sample::{Mode, Sample};
use crate::in_order::InOrder;
use crate::input::Input;
use crate::kernel_event::{Circumstances, KernelEvents, fault};
use crate::mappings::Mappings;
use crate::perf_lost::Lost;
use crate::perf_sample::{Sampled, cpu_sample, stands_for_faults};
use crate::problem::ImportError;
use crate::tasks::Thread;
use crate::trace::Trace;
use slowpath_tables::{FaultKind, Nanos, OffCpuReason};
use std::collections::HashMap;

/// Names of threads.
const MOST_NAMES: usize = 1 << 20;
/// Bytes of records that are held back until those before them must have come.
const MOST_HELD: usize = 64 << 20;
/// Bytes that a record takes besides its own.
const RECORD_COST: usize = 128;

/// `PERF_RECORD_*` of `perf_event_open(2)`; from 64 on those that perf itself writes.
mod kind {
    pub const MMAP: u32 = 1;
    pub const LOST: u32 = 2;
    pub const COMM: u32 = 3;
    pub const EXIT: u32 = 4;
    pub const THROTTLE: u32 = 5;
    pub const FORK: u32 = 7;
    pub const SAMPLE: u32 = 9;
    pub const MMAP2: u32 = 10;
    pub const LOST_SAMPLES: u32 = 13;
    pub const SWITCH: u32 = 14;
    pub const SWITCH_CPU_WIDE: u32 = 15;
    pub const OF_PERF: u32 = 64;
    pub const HEADER_ATTR: u32 = 64;
    pub const FINISHED_ROUND: u32 = 68;
    pub const HEADER_FEATURE: u32 = 80;
}

/// `PERF_RECORD_MISC_*`: the mode of the CPU, and what is particular about a record.
const MODE: u16 = 7;
const MODE_KERNEL: u16 = 1;
const MODE_HYPERVISOR: u16 = 3;
const COMM_EXEC: u16 = 1 << 13;
const SWITCH_OUT: u16 = 1 << 13;
const SWITCH_OUT_PREEMPT: u16 = 1 << 14;

const OF_ITS_KIND: &str = "a record with the fields of its kind";
const AN_EVENT: &str = "an event that was recorded, before its first record";

/// A record.
#[derive(Debug)]
pub struct Record {
    /// `PERF_RECORD_*`.
    pub kind: u32,
    /// `PERF_RECORD_MISC_*`.
    pub misc: u16,
    /// What follows its head.
    pub body: Vec<u8>,
    /// Where it, or the compressed piece that it was in, stands in the file.
    pub offset: u64,
}

/// What is known so far.
pub struct State {
    /// What the records are of.
    pub events: RecordedEvents,
    names: HashMap<u32, String>,
    mappings: Mappings<Code>,
    kernel: KernelEvents,
    /// Records with the number of their event and their time.
    order: InOrder<(Record, usize, u64)>,
    /// The latest time so far, and the latest at the end of perf's last round through all CPUs.
    latest: u64,
    round: u64,
    has_frames: bool,
    lost: Lost,
    /// The first record that is none of its kind.
    wrong: Option<(u64, &'static str)>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            events: RecordedEvents::default(),
            names: HashMap::new(),
            mappings: Mappings::default(),
            kernel: KernelEvents::default(),
            order: InOrder::new(MOST_HELD),
            latest: 0,
            round: 0,
            has_frames: false,
            lost: Lost::default(),
            wrong: None,
        }
    }
}

impl State {
    /// Whether a record was none of its kind: no more are read.
    pub fn is_wrong(&self) -> bool {
        self.wrong.is_some()
    }

    /// The error of that record.
    pub fn wrong(&self, input: &Input<'_>) -> Result<(), ImportError> {
        self.wrong.map_or(Ok(()), |(offset, expected)| Err(input.wrong_bytes_at(offset, expected)))
    }

    /// Takes the next record of the file. Those of the kernel wait until those before them must have come.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn take(&mut self, trace: &mut Trace<'_>, record: Record) -> Result<(), ImportError> {
        if record.kind >= kind::OF_PERF {
            return self.of_perf(trace, &record);
        }
        let Some(number) = self.event_of(&record) else {
            self.wrong.get_or_insert((record.offset, AN_EVENT));
            return Ok(());
        };
        let is_sample = record.kind == kind::SAMPLE;
        let time = self.events.get(number).and_then(|event| event.layout.time(is_sample, &record.body));
        match time {
            // What was there before the recording comes first, at no time.
            None | Some(0 | u64::MAX) => self.emit(trace, (record, number, 0)),
            Some(ts) => {
                self.latest = self.latest.max(ts);
                let weight = record.body.len() + RECORD_COST;
                self.order.add(ts, weight, (record, number, ts));
                let ready = self.order.ready();
                self.emit_all(trace, ready)
            }
        }
    }

    /// The number of a record's event. That of synthesised records is the first, which all have in common.
    fn event_of(&self, record: &Record) -> Option<usize> {
        let first = self.events.get(0)?;
        let id = first.layout.id(record.kind == kind::SAMPLE, &record.body);
        Some(id.and_then(|id| self.events.number_of(id)).unwrap_or(0))
    }

    fn of_perf(&mut self, trace: &mut Trace<'_>, record: &Record) -> Result<(), ImportError> {
        let mut fields = Fields(&record.body);
        match record.kind {
            kind::FINISHED_ROUND => {
                // What is written from now on is later than all that perf had seen a round ago.
                let ready = self.order.until(self.round);
                self.round = self.latest;
                return self.emit_all(trace, ready);
            }
            kind::HEADER_ATTR => match Event::of(&record.body) {
                Some((event, size)) => {
                    fields.take(size);
                    self.events.add(event, fields);
                }
                None => {
                    self.wrong.get_or_insert((record.offset, OF_ITS_KIND));
                }
            },
            kind::HEADER_FEATURE => {
                let number = fields.u64();
                if number.and_then(|number| take_section(number, fields.0, &mut self.events, trace)).is_none() {
                    self.wrong.get_or_insert((record.offset, OF_ITS_KIND));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Emits what is held back, and says what the file lacks.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn finish(&mut self, trace: &mut Trace<'_>) -> Result<(), ImportError> {
        for record in self.order.finish() {
            self.emit(trace, record)?;
        }
        self.lost.add_to(&mut trace.facts.losses);
        if self.order.late > 0 {
            trace.facts.losses.add("perf_out_of_order.any", self.order.late);
        }
        if self.has_frames {
            trace.has_no_names(
                "the files with these build ids and their debug files at their paths, or in a directory that --symbols names \
                 (perf archive packs those of a recording); or perf script where it was recorded, and slowpath import of what it prints",
            );
        }
        self.kernel.finish(trace)
    }

    fn emit_all(&mut self, trace: &mut Trace<'_>, records: Vec<(Record, usize, u64)>) -> Result<(), ImportError> {
        records.into_iter().try_for_each(|record| self.emit(trace, record))
    }

    /// A record whose turn it is.
    fn emit(&mut self, trace: &mut Trace<'_>, (record, number, ts): (Record, usize, u64)) -> Result<(), ImportError> {
        let ts = Nanos(ts);
        let done = match record.kind {
            kind::SAMPLE => self.sample(trace, &record, number, ts)?,
            kind::SWITCH | kind::SWITCH_CPU_WIDE => self.switch(trace, &record, number, ts)?,
            _ => self.about_tasks(trace, &record, ts)?,
        };
        if done.is_none() {
            self.wrong.get_or_insert((record.offset, OF_ITS_KIND));
        }
        Ok(())
    }

    fn about_tasks(&mut self, trace: &mut Trace<'_>, record: &Record, ts: Nanos) -> Result<Option<()>, ImportError> {
        let mut fields = Fields(&record.body);
        Ok(match record.kind {
            kind::MMAP | kind::MMAP2 => {
                let Some(mapped) = Mapped::of(&record.body, record.kind == kind::MMAP2, record.misc) else {
                    return Ok(None);
                };
                // The kernel's own code is known by its addresses.
                match mapped.pid {
                    0 => mapped.of_kernel(trace),
                    _ => mapped.add(&mut self.mappings, trace)?,
                }
                Some(())
            }
            kind::COMM => {
                let Some((pid, tid)) = fields.task().zip(fields.task()) else { return Ok(None) };
                let Some(name) = fields.text() else { return Ok(None) };
                if tid == 0 {
                    return Ok(Some(()));
                }
                if record.misc & COMM_EXEC != 0 {
                    self.mappings.forget(pid);
                }
                if ts.0 == 0 {
                    trace.belongs(tid, pid);
                } else {
                    trace.thread(ts, tid, Some(pid), Some(&name))?;
                }
                self.name(tid, name);
                Some(())
            }
            kind::FORK | kind::EXIT => {
                let ids = [fields.task(), fields.task(), fields.task(), fields.task()];
                let [Some(pid), Some(parent), Some(tid), Some(parent_tid)] = ids else { return Ok(None) };
                if record.kind == kind::EXIT {
                    if tid == pid {
                        self.mappings.forget(pid);
                    }
                    self.names.remove(&tid);
                    trace.end(ts, tid);
                } else if ts.0 == 0 {
                    trace.belongs(tid, pid);
                } else {
                    self.mappings.fork(parent, pid);
                    if let Some(name) = self.names.get(&parent_tid).cloned() {
                        self.name(tid, name);
                    }
                    let parent = trace.thread(ts, parent_tid, Some(parent), None)?;
                    trace.fork(ts, parent, tid, pid)?;
                }
                Some(())
            }
            kind::LOST => fields.u64().and_then(|_id| fields.u64()).map(|events| self.lost.said(events)),
            kind::LOST_SAMPLES => fields.u64().map(|events| self.lost.counted(events)),
            kind::THROTTLE => {
                trace.facts.leave_out("throttled");
                Some(())
            }
            _ => Some(()),
        })
    }

    fn name(&mut self, tid: u32, name: String) {
        if self.names.len() < MOST_NAMES || self.names.contains_key(&tid) {
            self.names.insert(tid, name);
        }
    }

    /// A thread left or entered its CPU, as perf record --switch-events says it.
    fn switch(
        &mut self,
        trace: &mut Trace<'_>,
        record: &Record,
        number: usize,
        ts: Nanos,
    ) -> Result<Option<()>, ImportError> {
        let Some((pid, tid)) = self.events.get(number).and_then(|event| event.layout.task(&record.body)) else {
            return Ok(None);
        };
        // The scheduler's own event says more.
        let is_recorded = |event: &Event| match event.shows() {
            Shows::Tracepoint(id) => self.events.formats.get(id).is_some_and(|format| format.name() == "sched_switch"),
            _ => false,
        };
        if tid == 0 || ts.0 == 0 || self.events.iter().any(is_recorded) {
            return Ok(Some(()));
        }
        let thread = trace.thread(ts, tid, Some(pid), self.names.get(&tid).map(String::as_str))?;
        if record.misc & SWITCH_OUT == 0 {
            trace.enter(ts, tid)?;
        } else {
            let is_displaced = record.misc & SWITCH_OUT_PREEMPT != 0;
            trace.leave(ts, thread, if is_displaced { OffCpuReason::Runnable } else { OffCpuReason::Kernel }, None);
            lack_reasons(trace);
        }
        Ok(Some(()))
    }

    fn sample(
        &mut self,
        trace: &mut Trace<'_>,
        record: &Record,
        number: usize,
        ts: Nanos,
    ) -> Result<Option<()>, ImportError> {
        let Some(event) = self.events.get(number) else { return Ok(None) };
        let Some(sample) = Sample::of(&record.body, event.layout) else { return Ok(None) };
        let Some((pid, tid)) = sample.task else {
            trace.facts.leave_out("samples without a thread");
            return Ok(Some(()));
        };
        if ts.0 == 0 {
            trace.facts.leave_out("samples without a time");
            return Ok(Some(()));
        }
        let (shows, word) = (event.shows(), event.word().to_owned());
        let period = sample.period.or(event.period);
        let has_stack_copies = event.layout.fields & field::STACK_USER != 0;
        trace.facts.see_time(ts);
        if let Some(cpu) = sample.cpu {
            trace.facts.see_cpu(cpu);
        }
        let thread = match tid {
            0 => None,
            tid => Some(trace.thread(ts, tid, Some(pid), self.names.get(&tid).map(String::as_str))?),
        };
        let kernel = matches!(record.misc & MODE, MODE_KERNEL | MODE_HYPERVISOR);
        let stack = match thread {
            Some(thread) => self.stack(trace, thread, &sample, (kernel, has_stack_copies))?,
            None => None,
        };
        let at = Circumstances { ts, thread, in_interrupt: false, stack, by_stack: None };
        let ip = sample.ip.unwrap_or(0);
        if matches!(shows, Shows::Faults | Shows::MinorFaults | Shows::MajorFaults) {
            stands_for_faults(trace, period);
        }
        match shows {
            Shows::Cpu(event) => {
                self.announce(trace);
                cpu_sample(trace, &at, Sampled { cpu: sample.cpu, period, event, kernel })?;
            }
            Shows::MinorFaults => fault(trace, &at, FaultKind::Minor, (sample.address, ip), kernel)?,
            Shows::MajorFaults => fault(trace, &at, FaultKind::Major, (sample.address, ip), kernel)?,
            Shows::Faults => self.kernel.fault(trace, &at, sample.address, ip, kernel)?,
            Shows::Other => trace.facts.leave_out(&word),
            Shows::Tracepoint(id) => match (self.events.formats.get(id), sample.raw) {
                (Some(format), Some(raw)) => {
                    if format.name() == "sched_switch" {
                        lack_reasons(trace);
                    }
                    let done = format.emit(raw, &mut self.kernel, trace, &at)?;
                    return Ok(done.then_some(()));
                }
                _ => {
                    trace.facts.lack(
                        "the fields of the kernel's events",
                        "the file has no formats of them, or perf record left them out",
                        "a whole file of perf record -R",
                    );
                    trace.facts.leave_out(&word);
                }
            },
        }
        Ok(Some(()))
    }

    /// Says which CPU samples there are, before the first: all events are known by then.
    fn announce(&self, trace: &mut Trace<'_>) {
        let samples = &mut trace.facts.cpu_samples;
        if samples.is_settled() {
            return;
        }
        // Other members of a group that its leader samples have no samples of their own, and a period of 0.
        for event in self.events.iter().filter(|event| event.period != Some(0)) {
            if let Shows::Cpu(event) = event.shows() {
                samples.announce(event);
            }
        }
    }

    fn stack(
        &mut self,
        trace: &mut Trace<'_>,
        thread: Thread,
        sample: &Sample<'_>,
        (kernel, has_stack_copies): (bool, bool),
    ) -> Result<Option<u32>, ImportError> {
        let (addresses, is_deferred) = sample.addresses(if kernel { Mode::Kernel } else { Mode::User });
        if has_stack_copies {
            trace.facts.lack(
                "the call stacks of programs",
                "they were recorded as copies of stacks (--call-graph dwarf), which are not unwound here",
                "perf record --call-graph fp; or perf script, which unwinds them, and slowpath import of what it prints",
            );
        }
        if is_deferred {
            trace.facts.lack(
                "the call stacks of programs below the kernel",
                "they are in records of their own (deferred call chains), which are not joined here",
                "perf script, which joins them, and slowpath import of what it prints",
            );
        }
        self.has_frames |= !addresses.is_empty();
        let place = |(mode, address)| place(&self.mappings, thread.process, mode, address);
        let frames: Vec<_> = addresses.into_iter().map(|one| (place(one), None)).collect();
        trace.stack(&frames)
    }
}

fn lack_reasons(trace: &mut Trace<'_>) {
    trace.facts.lack(
        "the reasons of waits",
        "perf.data does not name the kernel's functions: a wait that the thread's state does not explain is one in the kernel",
        "perf record -g, perf script, and slowpath import of what it prints",
    );
}
