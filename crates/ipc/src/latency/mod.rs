//! Latency: pairs of processes, transactions of real-time and of normal callers, deadlines.
//!
//! Owns how transactions are made. What they mean is in [`outcome`], whether priority is inherited in [`inheritance`], both
//! pure functions of what was measured; what it costs where pairs run is in [`placement`].

pub mod inheritance;
pub mod judgement;
pub mod message;
pub mod outcome;
mod pairs;
pub mod placement;
pub mod pool;
pub mod sample;
pub mod work;

pub use crate::children::Process;
pub use pairs::Placement;

use crate::scheduling::{FIFO_PRIORITY, become_fifo, cpu, now_ns, sleep_until, thread};
use crate::trace::Stopper;
use crate::trace::beside::Beside;
use crate::transport::{IpcError, Transport};
use message::{PAYLOAD, Request};
use pairs::Caller as Calls;
use sample::{Caller, Notebook, Sample};
use std::io;
use std::time::Duration;

/// Transactions of one client at most: what is kept of each stays in memory.
pub const MOST_ITERATIONS: u32 = 1_000_000;
/// Pairs at most.
pub const MOST_PAIRS: usize = 256;

/// What to measure.
#[derive(Debug)]
pub struct Plan {
    /// Which transport.
    pub transport: &'static Transport,
    /// Iterations of each client; each is a transaction of a new SCHED_FIFO thread and one of the main thread.
    pub iterations: u32,
    /// Where each pair runs; its length is the number of pairs.
    pub places: Vec<Placement>,
    /// A transaction that takes longer misses.
    pub deadline: Duration,
    /// Transactions a second and pair; `None` is a closed loop, in which the next begins when the last ended.
    pub rate: Option<f64>,
    /// Processes of normal priority that compute all the time.
    pub load: usize,
    /// What a server does in each transaction besides answering.
    pub work: Option<fn()>,
}

impl Plan {
    /// Iterations by default, as in the original.
    pub const ITERATIONS: u32 = 100;

    /// The original's defaults: 100 iterations, one pair, 2.5 ms.
    pub fn new(transport: &'static Transport) -> Self {
        Self {
            transport,
            iterations: Self::ITERATIONS,
            places: vec![Placement::default()],
            deadline: Duration::from_micros(2500),
            rate: None,
            load: 0,
            work: None,
        }
    }
}

/// A process that a server started to be reached: a bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Helper {
    /// Which.
    pub process: Process,
    /// Its name, as it chose it.
    pub name: String,
}

impl Helper {
    /// The children of a server; none where the kernel does not list them (CONFIG_PROC_CHILDREN).
    fn of(server: Process) -> Vec<Self> {
        let Process { pid: parent, started } = server;
        let listed = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
        let of = |pid: &str| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim_end().to_owned();
            Some(Self { process: Process { pid: pid.parse().ok()?, started }, name })
        };
        listed.split_ascii_whitespace().filter_map(of).collect()
    }
}

/// What one pair measured.
#[derive(Debug)]
pub struct PairSamples {
    /// The client's process.
    pub client: Process,
    /// The server's; the client's for a call in one process.
    pub server: Process,
    /// What the server started.
    pub helpers: Vec<Helper>,
    /// All transactions, in their order.
    pub samples: Vec<Sample>,
    /// Why it ended before all iterations were done.
    pub ended: Option<String>,
    /// Why callers could not become SCHED_FIFO.
    pub fifo_refused: Option<io::Error>,
    /// The transaction that stopped the trace, with the client's and the server's process.
    pub missed: Option<Missed>,
}

/// A missed deadline and whose it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missed {
    /// The transaction.
    pub sample: Sample,
    /// The client's process.
    pub client: u32,
    /// The server's process; the client's for a call in one process.
    pub server: u32,
    /// Counters that grew meanwhile and have no event.
    pub beside: Beside,
}

/// Runs the benchmark. With `trace`, the first miss of a real-time caller stops it and the run. When `stop` says so, the run ends
/// and what was measured until then is the result; its pairs say that they ended early.
///
/// # Errors
/// The plan makes no sense, processes or the transport cannot be had, or `stop` says so before all are ready. A process that dies in
/// the run is no error: its pair says so.
pub fn run(plan: &Plan, trace: Option<&Stopper>, stop: &dyn Fn() -> bool) -> Result<Vec<PairSamples>, IpcError> {
    if plan.places.is_empty() || plan.places.len() > MOST_PAIRS {
        return Err(IpcError::Usage(format!("pairs must be between 1 and {MOST_PAIRS}")));
    }
    if plan.iterations == 0 || plan.iterations > MOST_ITERATIONS {
        return Err(IpcError::Usage(format!("iterations must be between 1 and {MOST_ITERATIONS}")));
    }
    let pairs = plan.places.len() as u64;
    crate::limits::affordable(pairs * Notebook::bytes(2 * u64::from(plan.iterations)), "-i or -pair")?;
    let notebooks = plan
        .places
        .iter()
        .map(|_| Notebook::new(2 * plan.iterations as usize))
        .collect::<io::Result<Vec<_>>>()
        .map_err(|source| IpcError::system("mmap", source))?;
    let load = (0..plan.load).map(|_| work::hog(None)).collect::<Result<Vec<_>, _>>()?;
    let calling = |index: usize, calls: &mut Calls| call_all(plan, &notebooks[index], trace, calls);
    let largest = PAYLOAD.max(message::REPLY);
    let pairs = pairs::start(plan.transport, &plan.places, largest, plan.work, &calling, stop)?;
    let processes: Vec<_> = pairs
        .iter()
        .map(|pair| {
            let client = pair.client.child.process();
            let server = pair.server.as_ref().map(|server| server.child.process());
            (client, server.unwrap_or(client), server.map(Helper::of).unwrap_or_default())
        })
        .collect();
    let reasons = pairs::run(pairs, stop)?;
    drop(load);
    let results = notebooks.iter().zip(reasons).zip(processes).map(|((notebook, ended), (client, server, helpers))| {
        PairSamples {
            client,
            server,
            helpers,
            samples: notebook.samples(),
            ended,
            fifo_refused: notebook.refused(),
            missed: notebook.missed().map(|(sample, beside)| Missed {
                sample,
                client: client.pid,
                server: server.pid,
                beside,
            }),
        }
    });
    Ok(results.collect())
}

/// The client's life between start and done.
fn call_all(plan: &Plan, notebook: &Notebook, trace: Option<&Stopper>, calls: &mut Calls) -> io::Result<()> {
    let deadline = u64::try_from(plan.deadline.as_nanos()).unwrap_or(u64::MAX);
    let period = plan.rate.map(|rate| 1e9 / rate);
    let begin = now_ns();
    let server = calls.server();
    let halted = || trace.is_some_and(Stopper::is_stopped);
    let mut reply = Vec::with_capacity(message::REPLY);
    for iteration in 0..plan.iterations {
        for (turn, caller) in [Caller::Fifo, Caller::Normal].into_iter().enumerate() {
            if halted() {
                return Ok(());
            }
            let number = f64::from(2 * iteration) + turn as f64;
            let intended = period.map(|period| moment(begin, period, number));
            // Outside of what is timed, and only where it is used.
            let before =
                if trace.is_some() && caller == Caller::Fifo { Beside::now(server) } else { Beside::default() };
            let transact = |calls: &mut Calls, reply: &mut Vec<u8>| -> io::Result<()> {
                let sample = transaction(caller, intended, calls, reply)?;
                notebook.push(sample)?;
                if caller == Caller::Fifo
                    && sample.latency() > deadline
                    && let Some(trace) = trace
                    && trace.stop()
                {
                    notebook.miss(&Beside::now(server).since(&before));
                }
                Ok(())
            };
            match caller {
                Caller::Normal => transact(calls, &mut reply)?,
                Caller::Fifo => in_fifo_thread(notebook, || transact(calls, &mut reply))?,
            }
        }
    }
    Ok(())
}

/// When transaction `number` of a series should begin; one that never does at the end of the clock.
fn moment(begin: u64, period: f64, number: f64) -> u64 {
    begin.saturating_add((period * number) as u64)
}

/// Runs `work` in a new thread under SCHED_FIFO; where that is refused it is not run, and the reason is noted: transactions of
/// a thread that only should have been real-time are none.
fn in_fifo_thread(notebook: &Notebook, work: impl FnOnce() -> io::Result<()> + Send) -> io::Result<()> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(128 * 1024).spawn_scoped(scope, || {
            match become_fifo(FIFO_PRIORITY) {
                Ok(()) => work(),
                Err(error) => {
                    notebook.refuse(&error);
                    Ok(())
                }
            }
        })?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("a caller panicked")))
    })
}

fn transaction(caller: Caller, intended: Option<u64>, calls: &mut Calls, reply: &mut Vec<u8>) -> io::Result<Sample> {
    let mut payload = [0; PAYLOAD];
    Request::Transact.write(&mut payload);
    if let Some(moment) = intended {
        sleep_until(moment);
    }
    let client_thread = thread();
    let client_cpu = cpu();
    let start = now_ns();
    let answer = calls.call(&payload, reply)?;
    let end = now_ns();
    Ok(Sample {
        caller,
        intended: intended.unwrap_or(start),
        start,
        served: answer.served,
        end,
        client_thread,
        server_thread: answer.thread,
        client_cpu: client_cpu as u16,
        server_cpu: answer.cpu,
        server_policy: answer.policy,
        server_priority: answer.priority,
        server_nice: answer.nice,
    })
}

/// Samples for tests.
#[cfg(test)]
mod test_samples {
    use super::sample::{Caller, Sample};
    use super::{PairSamples, Process};

    /// A transaction in a closed loop.
    pub fn sample(caller: Caller, latency_us: u64, same_cpu: bool) -> Sample {
        Sample {
            caller,
            intended: 1_000,
            start: 1_000,
            served: 1_000,
            end: 1_000 + latency_us * 1000,
            client_thread: 1,
            server_thread: 2,
            client_cpu: 0,
            server_cpu: u16::from(!same_cpu),
            server_policy: 0,
            server_priority: 0,
            server_nice: 0,
        }
    }

    /// A pair that did all its iterations.
    pub fn measured(samples: Vec<Sample>) -> PairSamples {
        let (client, server) = (Process { pid: 1, started: 0 }, Process { pid: 2, started: 0 });
        PairSamples { client, server, helpers: Vec::new(), samples, ended: None, fifo_refused: None, missed: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::named;

    #[test]
    fn no_rate_is_too_slow_for_the_clock() {
        assert_eq!(moment(5, 1e6, 3.0), 3_000_005);
        assert_eq!(moment(5, 1e20, 1.0), u64::MAX);
        assert_eq!(moment(5, 1e20, 0.0), 5);
    }

    #[test]
    fn samples_beyond_the_memory_of_this_machine_are_refused_before_anything_is_mapped() {
        // 28 GB; where that is a quarter of the memory, this would run: not here.
        let places = vec![Placement::default(); MOST_PAIRS];
        let plan = Plan { iterations: MOST_ITERATIONS, places, ..Plan::new(named("pipe").unwrap()) };
        let bytes = MOST_PAIRS as u64 * Notebook::bytes(2 * u64::from(MOST_ITERATIONS));
        if crate::limits::affordable(bytes, "").is_ok() {
            println!("skipped: this machine has memory for all samples");
            return;
        }
        let refused = run(&plan, None, &|| true).unwrap_err();
        assert!(matches!(&refused, IpcError::Usage(text) if text.contains("lower -i or -pair")), "{refused}");
    }
}
