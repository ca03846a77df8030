//! The text of a trace as events. Total: any bytes give events or nothing.
//!
//! Names of tasks in it are chosen by other programs: up to 15 bytes of anything. Fields are found from the side on which no
//! name can stand.

/// A task as an event names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Thread id; 0 is the idle task.
    pub thread: u32,
    /// Name.
    pub name: String,
    /// The kernel's priority: 0 to 98 real-time (99 - priority), 100 to 139 normal (120 + nice), below 0 deadline.
    pub priority: i32,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A CPU went from one task to another.
    Switch {
        /// Who ran.
        previous: Task,
        /// In which state that one left the CPU: the first letter of `prev_state` (`R` could have run on, `S` and `D` wait, `T` and `t`
        /// are stopped, `X` and `Z` ended).
        state: char,
        /// Who runs now.
        next: Task,
    },
    /// A task was made runnable (waking, wakeup, wakeup_new).
    Waking {
        /// Who.
        task: Task,
        /// On which CPU it will wait.
        cpu: u32,
        /// Whether it is a new one, made by the thread of the event.
        is_new: bool,
    },
    /// A task was moved to another CPU.
    Migrate {
        /// Who.
        thread: u32,
        /// To which CPU.
        to: u32,
    },
    /// A priority was lent or given back.
    Lend {
        /// To whom.
        thread: u32,
        /// The priority from now on.
        priority: i32,
    },
    /// An interrupt or softirq began.
    Enter {
        /// Which: what its end has, too.
        key: String,
        /// For people.
        name: String,
    },
    /// The one with this key ended.
    Leave(String),
    /// A work item of a work queue began.
    Work {
        /// Which: what its end has, too.
        key: String,
        /// Its function.
        function: String,
    },
    /// The work item with this key ended.
    WorkEnd(String),
    /// A CPU got another frequency.
    Frequency {
        /// Which.
        cpu: u32,
        /// kHz.
        khz: u32,
    },
    /// A CPU entered an idle state, or left it.
    Idle {
        /// Which.
        cpu: u32,
        /// The state's number; `None` where it left.
        state: Option<u32>,
    },
    /// An event of the binder driver, in the thread's own context.
    Binder {
        /// Its name without the prefix `binder_`.
        name: String,
        /// Its fields as the kernel printed them: numbers only.
        fields: String,
    },
    /// Anything else.
    Other,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// CLOCK_MONOTONIC in ns, to the microsecond.
    pub time: u64,
    /// Where.
    pub cpu: u32,
    /// Which thread was running, or was interrupted.
    pub thread: u32,
    /// Whether it happened in an interrupt or softirq.
    pub in_interrupt: bool,
    /// What.
    pub kind: EventKind,
}

/// All events of a text, by time; those of one time in the text's order. Lines that are none are left out.
pub fn events(text: &[u8]) -> Vec<Event> {
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.starts_with(b"#"));
    let mut events: Vec<Event> = lines.filter_map(|line| event(&String::from_utf8_lossy(line))).collect();
    // The kernel prints them so.
    events.sort_by_key(|event| event.time);
    events
}

/// `NAME-PID [CPU] FLAGS SECONDS.MICROS: EVENT: FIELDS` (Documentation/trace/ftrace.rst, "Output format").
fn event(line: &str) -> Option<Event> {
    // The first place where everything fits: a name of 15 bytes has no room for all of it.
    line.match_indices(" [").find_map(|(at, _)| {
        let (cpu, rest) = line.get(at + 2..)?.split_once(']')?;
        let mut words = rest.splitn(2, ": ");
        let mut before = words.next()?.split_ascii_whitespace();
        let flags = before.next()?;
        let time = before.next()?;
        if before.next().is_some() {
            return None;
        }
        let (seconds, micros) = time.split_once('.')?;
        let time = seconds.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(micros.parse().ok()?)?;
        let (name, fields) = words.next()?.split_once(": ").or_else(|| words.next().map(|_| ("", "")))?;
        let thread = line.get(..at)?.trim_end().rsplit('-').next()?.parse().ok()?;
        Some(Event {
            time: time.checked_mul(1000)?,
            cpu: cpu.trim().parse().ok()?,
            thread,
            // The third flag: h, H, s, z, Z for what is no task.
            in_interrupt: flags.chars().nth(2).is_some_and(|flag| "hHsSzZ".contains(flag)),
            kind: kind(name, fields),
        })
    })
}

fn kind(name: &str, fields: &str) -> EventKind {
    let known = match name {
        "sched_switch" => switch(fields),
        "sched_waking" | "sched_wakeup" => waking(fields, false),
        "sched_wakeup_new" => waking(fields, true),
        "workqueue_execute_start" => work(fields),
        "workqueue_execute_end" => work_key(fields).map(EventKind::WorkEnd),
        "cpu_frequency" => frequency(fields),
        "cpu_idle" => idle(fields),
        "sched_migrate_task" => migrate(fields),
        "sched_pi_setprio" => lend(fields),
        _ => None,
    };
    known.unwrap_or_else(|| match name {
        "irq_handler_entry" => EventKind::Enter {
            key: format!("irq {}", last(fields, "irq=").unwrap_or("?")),
            name: format!("interrupt {}", last(fields, "name=").unwrap_or("?")),
        },
        "irq_handler_exit" => EventKind::Leave(format!("irq {}", last(fields, "irq=").unwrap_or("?"))),
        "softirq_entry" => EventKind::Enter { key: softirq(fields), name: softirq(fields) },
        "softirq_exit" => EventKind::Leave(softirq(fields)),
        _ if name.starts_with("binder_") => {
            EventKind::Binder { name: name["binder_".len()..].to_owned(), fields: fields.trim().to_owned() }
        }
        _ => match (name.strip_suffix("_entry"), name.strip_suffix("_exit")) {
            (Some(vector), _) => {
                EventKind::Enter { key: vector.to_owned(), name: format!("interrupt {}", vector.replace('_', " ")) }
            }
            (_, Some(vector)) => EventKind::Leave(vector.to_owned()),
            _ => EventKind::Other,
        },
    })
}

fn softirq(fields: &str) -> String {
    format!("softirq {}", last(fields, "action=").unwrap_or("?").trim_end_matches(']'))
}

/// What stands behind the last `key` until the next space.
fn last<'a>(fields: &'a str, key: &str) -> Option<&'a str> {
    let at = fields.rfind(key)? + key.len();
    fields.get(at..)?.split(' ').next()
}

fn number<T: std::str::FromStr>(fields: &str, key: &str) -> Option<T> {
    last(fields, key)?.parse().ok()
}

fn named(fields: &str, name_key: &str, pid_key: &str, priority_key: &str) -> Option<Task> {
    let name = fields.get(fields.find(name_key)? + name_key.len()..fields.rfind(pid_key)?).unwrap_or("");
    Some(Task { thread: number(fields, pid_key)?, name: name.to_owned(), priority: number(fields, priority_key)? })
}

fn switch(fields: &str) -> Option<EventKind> {
    let at = fields.rfind(" ==> next_comm=")?;
    let (before, after) = (fields.get(..at)?, fields.get(at..)?);
    // A next task of that very name: what belongs to it stands behind the last one, its numbers in any case.
    Some(EventKind::Switch {
        previous: named(before, "prev_comm=", " prev_pid=", " prev_prio=")?,
        state: last(before, " prev_state=")?.chars().next()?,
        next: named(after, "next_comm=", " next_pid=", " next_prio=")?,
    })
}

fn waking(fields: &str, is_new: bool) -> Option<EventKind> {
    let task = named(fields, "comm=", " pid=", " prio=")?;
    Some(EventKind::Waking { task, cpu: number(fields, " target_cpu=")?, is_new })
}

/// `work struct 00000000abcdef: function vmstat_update`; both without the space behind `struct` in some kernels.
fn work(fields: &str) -> Option<EventKind> {
    Some(EventKind::Work { key: work_key(fields)?, function: last(fields, "function ")?.to_owned() })
}

fn work_key(fields: &str) -> Option<String> {
    let rest = fields.split_once("work struct")?.1.trim_start();
    Some(rest.split([':', ' ']).next()?.to_owned())
}

fn frequency(fields: &str) -> Option<EventKind> {
    Some(EventKind::Frequency { cpu: number(fields, "cpu_id=")?, khz: number(fields, "state=")? })
}

fn idle(fields: &str) -> Option<EventKind> {
    let state: u32 = number(fields, "state=")?;
    // PWR_EVENT_EXIT of include/trace/events/power.h.
    Some(EventKind::Idle { cpu: number(fields, "cpu_id=")?, state: (state != u32::MAX).then_some(state) })
}

fn migrate(fields: &str) -> Option<EventKind> {
    Some(EventKind::Migrate { thread: number(fields, " pid=")?, to: number(fields, " dest_cpu=")? })
}

fn lend(fields: &str) -> Option<EventKind> {
    Some(EventKind::Lend { thread: number(fields, " pid=")?, priority: number(fields, " newprio=")? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_of_the_kernel_are_events() {
        let text = b"# tracer: nop\n#\n\
            \x20         <idle>-0       [001] d..2. 12345.000123: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=my server next_pid=77 next_prio=0\n\
            \x20  Web Content-1234    [000] d.h3. 12345.000200: sched_waking: comm=my server pid=77 prio=120 target_cpu=001\n\
            \x20           cc-9       [000] d.h1. 12345.000300: irq_handler_entry: irq=25 name=virtio0-input\n\
            \x20           cc-9       [000] d.h1. 12345.000301: local_timer_exit: vector=236\n\
            \x20           cc-9       [000] ..... 12345.000302: sched_migrate_task: comm=x pid=77 prio=120 orig_cpu=1 dest_cpu=0\n\
            \x20           cc-9       [000] d..3. 12345.000303: sched_pi_setprio: comm=x pid=77 oldprio=120 newprio=0\n\
            \x20           cc-9       [000] ..... 12345.000304: tracing_mark_write: slowpath-ipc: deadline missed\n";
        let events = events(text);
        assert_eq!(events.len(), 7, "{events:#?}");
        assert_eq!((events[0].time, events[0].cpu, events[0].thread), (12_345_000_123_000, 1, 0));
        let EventKind::Switch { previous, state: 'R', next } = &events[0].kind else { panic!("{:?}", events[0]) };
        assert_eq!((previous.thread, next.thread, next.priority, next.name.as_str()), (0, 77, 0, "my server"));
        assert!(events[1].in_interrupt && events[1].thread == 1234);
        assert!(matches!(&events[1].kind, EventKind::Waking { task, cpu: 1, is_new: false } if task.thread == 77));
        let (key, name) = ("irq 25".to_owned(), "interrupt virtio0-input".to_owned());
        assert_eq!(events[2].kind, EventKind::Enter { key, name });
        assert_eq!(events[3].kind, EventKind::Leave("local_timer".to_owned()));
        assert_eq!(events[4].kind, EventKind::Migrate { thread: 77, to: 0 });
        assert_eq!(events[5].kind, EventKind::Lend { thread: 77, priority: 0 });
        assert_eq!(events[6].kind, EventKind::Other);
    }

    #[test]
    fn what_cpus_and_the_binder_driver_did_is_read() {
        let kinds = |lines: &[&str]| -> Vec<EventKind> {
            let text: String =
                lines.iter().map(|line| format!("  kworker/0:1-9  [000] d..2.  5.000001: {line}\n")).collect();
            events(text.as_bytes()).into_iter().map(|event| event.kind).collect()
        };
        let found = kinds(&[
            "workqueue_execute_start: work struct 00000000c0ffee00: function vmstat_update",
            "workqueue_execute_end: work struct 00000000c0ffee00: function vmstat_update",
            "cpu_frequency: state=1800000 cpu_id=3",
            "cpu_idle: state=2 cpu_id=1",
            "cpu_idle: state=4294967295 cpu_id=1",
            "binder_transaction: transaction=77 dest_node=5 dest_proc=20 dest_thread=0 reply=0 flags=0x10 code=0x1",
        ]);
        let key = "00000000c0ffee00".to_owned();
        let expected = [
            EventKind::Work { key: key.clone(), function: "vmstat_update".to_owned() },
            EventKind::WorkEnd(key),
            EventKind::Frequency { cpu: 3, khz: 1_800_000 },
            EventKind::Idle { cpu: 1, state: Some(2) },
            EventKind::Idle { cpu: 1, state: None },
            EventKind::Binder {
                name: "transaction".to_owned(),
                fields: "transaction=77 dest_node=5 dest_proc=20 dest_thread=0 reply=0 flags=0x10 code=0x1".to_owned(),
            },
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn names_that_imitate_fields_change_no_number() {
        for hostile in ["a prev_pid=1 ", " ==> next_comm=", " next_pid=5 x", "-1 [000] d..2.", " prev_state=S ="] {
            let line = format!(
                "  {hostile}-10   [001] d..2.  5.000001: sched_switch: prev_comm={hostile} prev_pid=10 prev_prio=120 \
                 prev_state=R ==> next_comm={hostile} next_pid=20 next_prio=98\n"
            );
            let events = events(line.as_bytes());
            let Some(EventKind::Switch { previous, next, .. }) = events.first().map(|event| &event.kind) else {
                panic!("{hostile}: {events:?}")
            };
            assert_eq!((previous.thread, next.thread, next.priority), (10, 20, 98), "{hostile}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_no_panic(bytes: Vec<u8>) {
            events(&bytes);
        }

        #[test]
        fn any_fields_are_no_panic(name in "(sched_switch|sched_waking|softirq_entry|sched_pi_setprio)", fields in ".{0,80}") {
            events(format!(" a-1 [000] d..2. 1.000001: {name}: {fields}").as_bytes());
        }
    }
}
