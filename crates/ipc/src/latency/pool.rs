//! The worker pool of binderThroughputTest: N workers that call each other at random, or half of them the other half.

use super::outcome::{histogram, percentiles};
use super::sample::{Caller, Notebook, Sample};
use crate::children::Child;
use crate::memory::append;
use crate::scheduling::now_ns;
use crate::transport::{Client, IpcError, LARGEST_PAYLOAD, Pair, Server, Transport};
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_experiment::design::mixed;
use slowpath_tables::{Quantity, Unit};
use std::collections::BTreeMap;
use std::io;

/// Schema of [`Pool`].
pub const SCHEMA: &str = "slowpath-ipc-pool/1";
/// Workers at most: each pair of them has a connection, and each connection a serving thread.
pub const MOST_WORKERS: usize = 32;

/// What to measure; the original's options and defaults.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which transport.
    pub transport: &'static Transport,
    /// Workers (`-w`).
    pub workers: usize,
    /// Calls of each client (`-i`).
    pub iterations: u32,
    /// Payload in bytes (`-s`).
    pub payload: usize,
    /// Half of the workers are servers, each for one client (`-p`).
    pub pairs: bool,
    /// Expected latency at most, in us (`-m`): calls beyond are counted.
    pub most_us: Option<u64>,
    /// Run once before, and take twice its worst latency as what is expected (`-t`).
    pub training: bool,
    /// Seed of who calls whom.
    pub seed: u64,
}

impl Plan {
    /// Calls of each worker by default, as in the original.
    pub const ITERATIONS: u32 = 10_000;
}

/// What `slowpath ipc latency -w N --json` prints: a pool of workers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Pool {
    /// `slowpath-ipc-pool/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// Transport.
    pub transport: &'static str,
    /// Workers.
    pub workers: usize,
    /// Calls of each client.
    pub iterations: u32,
    /// Payload in bytes.
    pub payload_bytes: usize,
    /// Whether half of the workers only served.
    pub pairs: bool,
    /// Calls a second of all workers, over the time from the first start to the last reply.
    pub iterations_per_sec: Option<f64>,
    /// Mean.
    pub average: Option<Quantity>,
    /// Worst.
    pub worst: Option<Quantity>,
    /// Best.
    pub best: Option<Quantity>,
    /// By percentile.
    pub percentiles: BTreeMap<&'static str, Quantity>,
    /// Calls.
    pub calls: usize,
    /// Latency that was expected at most, in us, and calls beyond it.
    pub beyond: Option<Beyond>,
    /// Workers that ended early, and how.
    pub ended: Vec<String>,
}

impl Pool {
    /// Whether there are calls enough for a median with an interval.
    pub fn is_enough(&self) -> bool {
        self.percentiles.get("50").is_some_and(|median| median.low.is_some())
    }
}

/// Calls beyond what was expected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Beyond {
    /// What was expected at most, in us.
    pub expected_us: u64,
    /// Whether that is twice the worst of a training round.
    pub trained: bool,
    /// Calls beyond.
    pub calls: usize,
}

/// Runs it. When `stop` says so while workers call each other, the calls until then are the result, and `ended` says so.
///
/// # Errors
/// The plan makes no sense, processes or the transport cannot be had, or `stop` says so before workers call each other.
pub fn run(plan: &Plan, stop: &dyn Fn() -> bool) -> Result<Pool, IpcError> {
    let fewest = 2;
    if plan.workers < fewest || plan.workers > MOST_WORKERS || (plan.pairs && !plan.workers.is_multiple_of(2)) {
        let even = if plan.pairs { ", an even number for -p" } else { "" };
        return Err(IpcError::Usage(format!("-w takes {fewest} to {MOST_WORKERS} workers{even}")));
    }
    if plan.payload > LARGEST_PAYLOAD || plan.iterations == 0 || plan.iterations > super::MOST_ITERATIONS {
        let most = super::MOST_ITERATIONS;
        return Err(IpcError::Usage(format!("-s takes up to {LARGEST_PAYLOAD} bytes, -i 1 to {most} calls")));
    }
    let callers = if plan.pairs { plan.workers / 2 } else { plan.workers } as u64;
    crate::limits::affordable(callers * Notebook::bytes(u64::from(plan.iterations)), "-i or -w")?;
    let mut expected = plan.most_us;
    if plan.training {
        let (samples, ended) = round(plan, stop)?;
        if stop() {
            return Err(IpcError::Interrupted);
        }
        // A worst of some calls says less than what was asked for.
        if let Some(ending) = ended.into_iter().next() {
            return Err(IpcError::Died { role: "training round", transport: plan.transport.name, ending });
        }
        expected = samples.iter().map(Sample::latency).max().map(|worst| worst.div_ceil(500));
    }
    let (samples, ended) = round(plan, stop)?;
    Ok(result(plan, &samples, expected, ended))
}

fn result(plan: &Plan, samples: &[Sample], expected: Option<u64>, ended: Vec<String>) -> Pool {
    // Those of each worker follow each other: in the order of the run.
    let mut in_order: Vec<&Sample> = samples.iter().collect();
    in_order.sort_by_key(|sample| sample.start);
    let latencies: Vec<u64> = in_order.into_iter().map(Sample::latency).collect();
    let ms = |ns: f64| Quantity::exact(ns / 1e6, Unit::Ms);
    let histogram = histogram(&latencies);
    let begin = samples.iter().map(|sample| sample.start).min();
    let end = samples.iter().map(|sample| sample.end).max();
    let took = begin.zip(end).map(|(begin, end)| end.saturating_sub(begin).max(1) as f64 / 1e9);
    Pool {
        schema: SCHEMA,
        transport: plan.transport.name,
        workers: plan.workers,
        iterations: plan.iterations,
        payload_bytes: plan.payload,
        pairs: plan.pairs,
        iterations_per_sec: took.map(|took| samples.len() as f64 / took),
        average: histogram.as_ref().map(|_| ms(latencies.iter().sum::<u64>() as f64 / latencies.len() as f64)),
        worst: latencies.iter().max().map(|worst| ms(*worst as f64)),
        best: latencies.iter().min().map(|best| ms(*best as f64)),
        percentiles: percentiles(&latencies),
        calls: samples.len(),
        beyond: expected.map(|expected_us| Beyond {
            expected_us,
            trained: plan.training,
            calls: latencies.iter().filter(|latency| **latency > expected_us.saturating_mul(1000)).count(),
        }),
        ended,
    }
}

/// Ends of connections, by worker.
#[derive(Default)]
struct Worker {
    /// To whom it calls; `None` calls itself, where the transport has no border.
    clients: Vec<Option<Box<dyn Client>>>,
    servers: Vec<Box<dyn Server>>,
}

fn connect(plan: &Plan) -> Result<Vec<Worker>, IpcError> {
    let mut workers: Vec<Worker> = (0..plan.workers).map(|_| Worker::default()).collect();
    let half = plan.workers / 2;
    for caller in 0..plan.workers {
        for server in 0..plan.workers {
            let meant = if plan.pairs { caller >= half && server == caller - half } else { caller != server };
            if !meant {
                continue;
            }
            let pair = (plan.transport.connect)(plan.payload)
                .map_err(|source| IpcError::Connect { transport: plan.transport.name, source })?;
            match pair {
                Pair::Direct => workers[caller].clients.push(None),
                Pair::Processes { client, server: end } => {
                    workers[caller].clients.push(Some(client));
                    workers[server].servers.push(end);
                }
            }
        }
    }
    Ok(workers)
}

fn round(plan: &Plan, stop: &dyn Fn() -> bool) -> Result<(Vec<Sample>, Vec<String>), IpcError> {
    use super::pairs::Party;
    let system = |source| IpcError::system("mmap", source);
    let notebooks = (0..plan.workers)
        .map(|_| Notebook::new(plan.iterations as usize))
        .collect::<io::Result<Vec<_>>>()
        .map_err(system)?;
    let mut workers = connect(plan)?;
    let mut parties = Vec::new();
    for index in 0..plan.workers {
        parties.push(Party::start(|mut wire| {
            let own = std::mem::take(&mut workers[index]);
            workers.clear();
            i32::from(work(plan, index, own, &notebooks[index], &mut wire).is_err())
        })?);
    }
    drop(workers);
    let mut ended = Vec::new();
    // Ready to serve; ready to call; done.
    for step in 0..3 {
        for (index, party) in parties.iter_mut().enumerate() {
            match party.finished(&mut || stop()) {
                Ok(()) => {}
                Err(Some(ending)) => ended.push(format!("worker {index} {ending}")),
                Err(None) if step < 2 => return Err(IpcError::Interrupted),
                Err(None) => {
                    ended.push("interrupted".to_owned());
                    break;
                }
            }
        }
        // Whoever calls a worker that is gone may wait for good.
        if !ended.is_empty() {
            break;
        }
        parties.iter_mut().for_each(Party::go);
    }
    drop::<Vec<Child>>(parties.into_iter().map(|party| party.child).collect());
    Ok((notebooks.iter().flat_map(Notebook::samples).collect(), ended))
}

fn work(plan: &Plan, index: usize, own: Worker, notebook: &Notebook, wire: &mut super::pairs::Wire) -> io::Result<()> {
    let (ready, is_ready) = std::sync::mpsc::channel();
    let serving = own.servers.len();
    for mut server in own.servers {
        let ready = ready.clone();
        std::thread::Builder::new().stack_size(256 * 1024).spawn(move || {
            let prepared = server.prepare();
            let failed = prepared.is_err();
            let _ = ready.send(prepared);
            while !failed && server.serve(&mut append).is_ok() {}
        })?;
    }
    for _ in 0..serving {
        is_ready.recv().map_err(io::Error::other)??;
    }
    wire.step()?;
    let mut clients = own.clients;
    for client in clients.iter_mut().flatten() {
        client.prepare()?;
    }
    wire.step()?;
    let payload = vec![0x5a; plan.payload];
    let mut reply = Vec::new();
    let calls = if clients.is_empty() { 0 } else { plan.iterations };
    for iteration in 0..calls {
        let chosen = mixed(plan.seed ^ (index as u64) << 32, u64::from(iteration)) as usize % clients.len();
        let start = now_ns();
        match &mut clients[chosen] {
            Some(client) => client.call(&payload, &mut reply)?,
            None => {
                reply.clear();
                reply.extend_from_slice(std::hint::black_box(&payload));
            }
        }
        let end = now_ns();
        if reply.len() != payload.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a reply of another length"));
        }
        notebook.push(Sample {
            caller: Caller::Normal,
            intended: start,
            start,
            served: start,
            end,
            client_thread: 0,
            server_thread: 0,
            client_cpu: 0,
            server_cpu: 0,
            server_policy: 0,
            server_priority: 0,
            server_nice: 0,
        })?;
    }
    wire.step()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::{ALL, named};

    fn plan(transport: &'static Transport) -> Plan {
        Plan {
            transport,
            workers: 4,
            iterations: 50,
            payload: 100,
            pairs: false,
            most_us: None,
            training: false,
            seed: 1,
        }
    }

    #[test]
    fn all_workers_call_all_others_on_every_transport() {
        for transport in ALL.iter().filter(|transport| (transport.check)().is_ok()) {
            let pool = run(&plan(transport), &|| false).unwrap();
            assert_eq!((pool.calls, pool.ended.as_slice()), (200, &[][..]), "{}", transport.name);
            assert!(pool.best.unwrap().value <= pool.worst.unwrap().value);
        }
    }

    #[test]
    fn in_pairs_half_of_the_workers_call_and_a_training_round_says_what_to_expect() {
        let pipe = named("pipe").unwrap();
        let pool = run(&Plan { pairs: true, training: true, ..plan(pipe) }, &|| false).unwrap();
        assert_eq!(pool.calls, 100);
        assert!(pool.beyond.is_some_and(|beyond| beyond.trained && beyond.expected_us > 0));
        let beyond = run(&Plan { most_us: Some(0), ..plan(pipe) }, &|| false).unwrap().beyond;
        assert_eq!(beyond, Some(Beyond { expected_us: 0, trained: false, calls: 200 }));
    }

    #[test]
    fn workers_that_make_no_sense_are_refused() {
        let pipe = named("pipe").unwrap();
        for workers in [0, 1, 33] {
            assert!(matches!(run(&Plan { workers, ..plan(pipe) }, &|| false), Err(IpcError::Usage(_))));
        }
        assert!(run(&Plan { workers: 3, pairs: true, ..plan(pipe) }, &|| false).is_err());
    }
}
