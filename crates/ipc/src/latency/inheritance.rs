//! Does the server get the priority of its caller while it works for it?
//!
//! Judged from the priority in force (proc_pid_stat(5), field 18), which also shows what a PI futex lends, after the server
//! saw its caller blocked: before, nothing can be lent. And what its absence costs is shown: a real-time caller that waits
//! behind a computing process of normal priority.

use super::message::{PAYLOAD, REPLY, Reply, Request};
use super::pairs::{self, Caller as Calls, Placement};
use super::work::hog;
use crate::conditions::Conditions;
use crate::memory::SharedMemory;
use crate::scheduling::{FIFO_PRIORITY, allowed_cpus, become_fifo, set_nice, thread};
use crate::transport::{IpcError, Transport};
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_experiment::Level;
use slowpath_experiment::median::median;
use slowpath_tables::{Quantity, Unit};
use std::io;

/// Probes of each kind.
const PROBES: u32 = 10;
/// Nice of the caller that has one.
const NICE: i32 = -10;
/// Calls with a computing process beside, and what the server computes in each, in us of CPU time: several slices of the
/// scheduler (1.4 to 4 ms), and with all calls far below the 950 ms after which real-time threads are throttled.
const COMPUTED: u32 = 8;
const COMPUTE_US: u32 = 20_000;
/// What a caller can do about a refused SCHED_FIFO.
pub const FIFO_REMEDY: &str =
    "run as root, or with RLIMIT_RTPRIO of 99 (`ulimit -r 99`), in a cpu cgroup with real-time budget";

/// What is inherited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The real-time priority of the caller.
    Rt,
    /// Nice alone.
    Nice,
    /// Nothing.
    None,
    /// No caller could become real-time.
    NotTestable,
}

/// The judgement with what it rests on.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Inheritance {
    /// What is inherited.
    pub kind: Kind,
    /// Why it could not be tested.
    pub cause: Option<String>,
    /// Probes by callers under SCHED_FIFO 99.
    pub rt: Probes,
    /// Probes by callers of nice -10.
    pub nice: Probes,
    /// What a real-time caller waits for while a normal process computes on the server's CPU.
    pub inversion: Option<Inversion>,
}

/// Probes of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Probes {
    /// Probes in which the server had the caller's priority.
    pub inherited: u32,
    /// Probes in which the caller was seen blocked.
    pub of: u32,
    /// Why there are none.
    pub refused: Option<String>,
    /// Priorities in force that the server had: 20 + nice, or -1 - priority of a real-time one.
    pub effective: Vec<i16>,
}

/// A real-time caller and a normal process that computes on the CPU of its server.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Inversion {
    /// Calls, each of 20 ms CPU time in the server.
    pub calls: u32,
    /// Calls in which the normal process ran for more than 2 ms while the real-time caller waited.
    pub inverted: u32,
    /// Median of what it ran in a call.
    pub waited: Quantity,
}

impl Inversion {
    /// Whether callers wait behind it: in more than half of the calls.
    pub fn is_inverted(&self) -> bool {
        self.inverted * 2 > self.calls
    }
}

impl Inheritance {
    /// No judgement, and why.
    pub fn untested(cause: String) -> Self {
        Self {
            kind: Kind::NotTestable,
            cause: Some(cause),
            rt: Probes::default(),
            nice: Probes::default(),
            inversion: None,
        }
    }

    /// The original's word.
    pub fn verdict(&self) -> &'static str {
        match self.kind {
            Kind::Rt => "PASS",
            Kind::Nice | Kind::None => "FAIL",
            Kind::NotTestable => "NOT_TESTABLE",
        }
    }
}

/// Why SCHED_FIFO was refused.
pub fn fifo_cause(error: &io::Error, conditions: &Conditions) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM) if conditions.group_rt_runtime_us == Some(0) => {
            "SCHED_FIFO was refused: this cpu cgroup has no real-time budget (cpu.rt_runtime_us is 0)".to_owned()
        }
        Some(libc::EPERM) => "SCHED_FIFO was refused: it needs CAP_SYS_NICE or RLIMIT_RTPRIO".to_owned(),
        _ => format!("SCHED_FIFO was refused: {error}"),
    }
}

/// What one probe found.
#[derive(Clone, Copy, Debug, Default)]
struct Probed {
    reply: Reply,
    refused: i32,
}

/// A record in shared memory: the reply and, before it, an errno of becoming what the caller should be.
const RECORD: usize = 8 + REPLY;
const FIFO_AT: usize = 0;
const NICE_AT: usize = PROBES as usize;
const COMPUTED_AT: usize = 2 * PROBES as usize;
const RECORDS: usize = COMPUTED_AT + COMPUTED as usize;

/// Probes a transport.
///
/// # Errors
/// Processes or the transport cannot be had, a process dies, or `stop` says so.
pub fn probe(
    transport: &'static Transport,
    conditions: &Conditions,
    stop: &dyn Fn() -> bool,
) -> Result<Inheritance, IpcError> {
    let system = |call| move |source| IpcError::system(call, source);
    let memory = SharedMemory::new(RECORDS * RECORD).map_err(system("mmap"))?;
    let cpus = allowed_cpus().map_err(system("sched_getaffinity"))?;
    let server = cpus.last().copied();
    // The caller elsewhere where there is another CPU: it must not wait for its own.
    let place = Placement { client: cpus.first().copied(), server };
    let beside = hog(server)?;
    let calling = |_: usize, calls: &mut Calls| probe_all(&memory, beside.pid(), calls);
    let pairs = pairs::start(transport, &[place], PAYLOAD.max(REPLY), None, &calling, stop)?;
    let direct = pairs.first().is_some_and(|pair| pair.server.is_none());
    let ended = pairs::run(pairs, stop)?;
    drop(beside);
    if stop() {
        return Err(IpcError::Interrupted);
    }
    if let Some(ending) = ended.into_iter().flatten().next() {
        return Err(IpcError::Died { role: "probe", transport: transport.name, ending });
    }
    let records = |from: usize, number: u32| -> Vec<Probed> {
        (from..from + number as usize).filter_map(|index| read(&memory, index)).collect()
    };
    Ok(judge(&records(FIFO_AT, PROBES), &records(NICE_AT, PROBES), &records(COMPUTED_AT, COMPUTED), direct, conditions))
}

fn write(memory: &SharedMemory, index: usize, probed: Probed) -> io::Result<()> {
    memory.write(index * RECORD, &probed.refused.to_ne_bytes())?;
    memory.write(index * RECORD + 8, &probed.reply.to_bytes())
}

fn read(memory: &SharedMemory, index: usize) -> Option<Probed> {
    let mut bytes = Vec::new();
    memory.read(index * RECORD, RECORD, &mut bytes).ok()?;
    Some(Probed { refused: i32::from_ne_bytes(*bytes.first_chunk()?), reply: Reply::from_bytes(bytes.get(8..)?)? })
}

fn probe_all(memory: &SharedMemory, beside: u32, calls: &mut Calls) -> io::Result<()> {
    let fifo: fn() -> io::Result<()> = || become_fifo(FIFO_PRIORITY);
    let nice: fn() -> io::Result<()> = || set_nice(NICE);
    for index in 0..PROBES as usize {
        write(memory, FIFO_AT + index, in_thread(fifo, None, calls)?)?;
        write(memory, NICE_AT + index, in_thread(nice, None, calls)?)?;
    }
    for index in 0..COMPUTED as usize {
        write(memory, COMPUTED_AT + index, in_thread(fifo, Some(beside), calls)?)?;
    }
    Ok(())
}

/// One call from a new thread that becomes something first; when it may not, there is no call.
fn in_thread(become_what: fn() -> io::Result<()>, beside: Option<u32>, calls: &mut Calls) -> io::Result<Probed> {
    std::thread::scope(|scope| {
        let caller = std::thread::Builder::new().stack_size(128 * 1024).spawn_scoped(scope, || {
            if let Err(error) = become_what() {
                return Ok(Probed { refused: error.raw_os_error().unwrap_or(libc::EINVAL), ..Probed::default() });
            }
            let request = match beside {
                Some(beside) => Request::Compute { us: COMPUTE_US, beside },
                None => Request::Probe { process: std::process::id(), thread: thread() },
            };
            let mut payload = [0; PAYLOAD];
            request.write(&mut payload);
            let reply = calls.call(&payload, &mut Vec::new())?;
            Ok(Probed { reply, refused: 0 })
        })?;
        caller.join().unwrap_or_else(|_| Err(io::Error::other("a caller panicked")))
    })
}

/// Priority in force of a thread that has the caller's.
const OF_FIFO: i16 = -1 - FIFO_PRIORITY as i16;
const OF_NICE: i16 = 20 + NICE as i16;
/// From here on the normal process's time is more than what it may run before the server is scheduled, in ms.
const INVERTED_MS: f64 = 2.0;

fn probes(probed: &[Probed], wanted: i16, refusal: impl Fn(&io::Error) -> String) -> Probes {
    let refused = probed.iter().find(|one| one.refused != 0);
    let blocked: Vec<&Probed> = probed.iter().filter(|one| one.refused == 0 && one.reply.caller_blocked).collect();
    let mut effective: Vec<i16> = blocked.iter().map(|one| one.reply.effective).collect();
    let inherited = effective.iter().filter(|priority| **priority == wanted).count();
    effective.sort_unstable();
    effective.dedup();
    Probes {
        inherited: u32::try_from(inherited).unwrap_or(u32::MAX),
        of: u32::try_from(blocked.len()).unwrap_or(u32::MAX),
        refused: refused.map(|one| refusal(&io::Error::from_raw_os_error(one.refused))),
        effective,
    }
}

fn judge(fifo: &[Probed], nice: &[Probed], computed: &[Probed], direct: bool, conditions: &Conditions) -> Inheritance {
    let rt = probes(fifo, OF_FIFO, |error| fifo_cause(error, conditions));
    let nice = probes(nice, OF_NICE, |error| {
        format!("nice {NICE} was refused: {error}; it needs CAP_SYS_NICE or RLIMIT_NICE")
    });
    let (kind, cause) = match (&rt, &nice) {
        (Probes { refused: Some(cause), .. }, _) => (Kind::NotTestable, Some(cause.clone())),
        (Probes { of: 0, .. }, _) => (
            Kind::NotTestable,
            Some("no server saw its caller blocked, and before that nothing can be inherited".to_owned()),
        ),
        (rt, _) if rt.inherited == rt.of => (Kind::Rt, None),
        (_, nice) if nice.of > 0 && nice.inherited == nice.of => (Kind::Nice, None),
        _ => (Kind::None, None),
    };
    // A call in the caller's own thread runs on the caller's CPU, where nothing computes.
    let ran = computed.iter().filter(|one| one.refused == 0 && !direct);
    let beside: Vec<f64> = ran.map(|one| one.reply.beside_ns as f64 / 1e6).collect();
    let inversion = median(&beside, Level::P95).map(|waited| Inversion {
        calls: u32::try_from(beside.len()).unwrap_or(u32::MAX),
        inverted: u32::try_from(beside.iter().filter(|ms| **ms > INVERTED_MS).count()).unwrap_or(u32::MAX),
        waited: Quantity { value: waited.value, low: waited.low, high: waited.high, unit: Unit::Ms },
    });
    Inheritance { kind, cause, rt, nice, inversion }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probed(effective: i16) -> Probed {
        Probed { reply: Reply { effective, caller_blocked: true, ..Reply::default() }, refused: 0 }
    }

    fn kind(fifo: &[Probed], nice: &[Probed]) -> Kind {
        judge(fifo, nice, &[], false, &Conditions::default()).kind
    }

    #[test]
    fn rt_is_inherited_only_when_every_probe_shows_it() {
        assert_eq!(kind(&[probed(-100); 2], &[probed(10)]), Kind::Rt);
        assert_eq!(kind(&[probed(-100), probed(20)], &[probed(10)]), Kind::Nice);
        assert_eq!(kind(&[probed(20)], &[probed(20)]), Kind::None);
        // A lower real-time priority is not the caller's.
        assert_eq!(kind(&[probed(-2)], &[]), Kind::None);
    }

    #[test]
    fn a_caller_that_did_not_become_real_time_tests_nothing() {
        let refused = Probed { refused: libc::EPERM, ..Probed::default() };
        let conditions = Conditions { group_rt_runtime_us: Some(0), ..Conditions::default() };
        let judged = judge(&[refused], &[probed(10)], &[refused], false, &conditions);
        assert_eq!((judged.kind, judged.verdict()), (Kind::NotTestable, "NOT_TESTABLE"));
        assert!(judged.cause.unwrap().contains("rt_runtime_us is 0"));
        assert!(judged.inversion.is_none());
        let unseen = Probed { reply: Reply { effective: -100, ..Reply::default() }, refused: 0 };
        assert_eq!(kind(&[unseen], &[]), Kind::NotTestable);
    }

    #[test]
    fn a_normal_process_that_runs_in_most_calls_is_an_inversion() {
        let ran = |ms: u64| Probed { reply: Reply { beside_ns: ms * 1_000_000, ..Reply::default() }, refused: 0 };
        let inversion = |times: &[u64]| {
            let computed: Vec<Probed> = times.iter().map(|ms| ran(*ms)).collect();
            judge(&[probed(20)], &[], &computed, false, &Conditions::default()).inversion.unwrap()
        };
        let shown = inversion(&[20, 19, 0]);
        assert_eq!((shown.inverted, shown.is_inverted(), shown.waited.value), (2, true, 19.0));
        assert!(!inversion(&[20, 1, 0]).is_inverted());
    }
}
