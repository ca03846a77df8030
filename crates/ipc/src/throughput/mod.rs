//! Throughput: echoes of growing payloads, timed in bursts that are long enough to be measured.

pub mod google;
pub mod session;

use crate::transport::{IpcError, LARGEST_PAYLOAD, Transport};
use google::{Context, Report, Run};
use session::{Burst, Session};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which transports.
    pub transports: Vec<&'static Transport>,
    /// Payloads in bytes.
    pub sizes: Vec<usize>,
    /// Shortest time of a run in seconds: iterations are raised until it is reached.
    pub min_time: f64,
    /// Runs of each benchmark.
    pub repetitions: usize,
    /// Whether to add the figure that the original documentation calls bandwidth.
    pub reference: bool,
}

/// Most iterations of a run (`kMaxIterations` of Google Benchmark).
const MOST_ITERATIONS: u64 = 1_000_000_000;

/// Measures everything. When `stop` says so, the runs that were done by then are the result.
///
/// # Errors
/// A transport cannot be set up, one of its processes dies, or `stop` says so before a run is done.
pub fn measure(plan: &Plan, date: String, stop: &dyn Fn() -> bool) -> Result<Report, IpcError> {
    let mut report = Report { context: Context::here(date), benchmarks: Vec::new() };
    match measure_all(plan, stop, &mut report.benchmarks) {
        Err(IpcError::Interrupted) if !report.benchmarks.is_empty() => report.context.complete = false,
        other => other?,
    }
    Ok(report)
}

fn measure_all(plan: &Plan, stop: &dyn Fn() -> bool, benchmarks: &mut Vec<Run>) -> Result<(), IpcError> {
    for (family, transport) in plan.transports.iter().enumerate() {
        let mut session = Session::start(transport, plan.sizes.iter().copied().max().unwrap_or(0))?;
        for (instance, &size) in plan.sizes.iter().enumerate() {
            let mut bursts = vec![long_enough(&mut session, size, plan.min_time, stop)?];
            let mut stopped = None;
            while bursts.len() < plan.repetitions && stopped.is_none() {
                match session.burst(size, bursts[0].iterations, stop) {
                    Ok(burst) => bursts.push(burst),
                    Err(error) => stopped = Some(error),
                }
            }
            benchmarks.extend(google::runs(transport.name, size, (family, instance), &bursts, plan.reference));
            if let Some(error) = stopped {
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Raises the iterations until a burst takes `seconds`, as Google Benchmark does.
fn long_enough(session: &mut Session, size: usize, seconds: f64, stop: &dyn Fn() -> bool) -> Result<Burst, IpcError> {
    let mut iterations = 1;
    loop {
        let burst = session.burst(size, iterations, stop)?;
        match next(iterations, burst.real_ns as f64 / 1e9, seconds) {
            Some(more) => iterations = more,
            None => return Ok(burst),
        }
    }
}

/// How many iterations come next; `None` when the burst was long enough. The rule of Google Benchmark
/// (`BenchmarkRunner::PredictNumItersNeeded`): aim 40 % beyond, and tenfold at most while the time is not significant.
fn next(iterations: u64, took: f64, wanted: f64) -> Option<u64> {
    if took >= wanted || iterations >= MOST_ITERATIONS {
        return None;
    }
    let aim = wanted * 1.4 / took.max(1e-9);
    let factor = if took / wanted > 0.1 { aim } else { aim.min(10.0) };
    Some(((factor * iterations as f64) as u64).clamp(iterations + 1, MOST_ITERATIONS))
}

/// Payload sizes from `4..64k` (by powers of two) or a list such as `4,1k,64k`.
///
/// # Errors
/// What is wrong, in a sentence.
pub fn sizes(text: &str) -> Result<Vec<usize>, String> {
    let one = |text: &str| -> Result<usize, String> {
        let digits = text.trim_end_matches(['k', 'K']);
        let factor = match text.len() - digits.len() {
            0 => 1,
            1 => 1024,
            _ => return Err(format!("{text} is no size")),
        };
        let size = digits.parse::<usize>().ok().and_then(|number| number.checked_mul(factor));
        match size.ok_or_else(|| format!("{text} is no size: write bytes, or KiB with a k"))? {
            0 => Err("a payload has at least one byte".to_owned()),
            size if size > LARGEST_PAYLOAD => Err(format!("{size} bytes are more than {LARGEST_PAYLOAD}")),
            size => Ok(size),
        }
    };
    match text.split_once("..") {
        Some((from, to)) => {
            let (from, to) = (one(from)?, one(to)?);
            if from > to {
                return Err(format!("{text} is empty"));
            }
            Ok(std::iter::successors(Some(from), |size| Some(size * 2)).take_while(|size| *size <= to).collect())
        }
        None => text.split(',').map(one).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_go_by_powers_of_two_or_are_listed() {
        assert_eq!(sizes("4..64").unwrap(), [4, 8, 16, 32, 64]);
        assert_eq!(sizes("4..64k").unwrap().len(), 15);
        assert_eq!(sizes("4,1k").unwrap(), [4, 1024]);
        for wrong in ["", "0", "64..4", "128k", "4kk", "x", "4..", "99999999999999999999k"] {
            assert!(sizes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn iterations_grow_until_the_time_is_reached() {
        assert_eq!(next(1, 1e-6, 0.1), Some(10));
        assert!(next(1000, 0.05, 0.1).is_some_and(|more| (2799..=2800).contains(&more)));
        assert_eq!(next(1000, 0.1, 0.1), None);
        assert_eq!(next(MOST_ITERATIONS, 0.0, 0.1), None);
    }

    #[test]
    fn all_sizes_of_all_transports_are_reported_once() {
        let transports: Vec<_> =
            crate::transport::ALL.iter().copied().filter(|transport| (transport.check)().is_ok()).collect();
        let plan = Plan {
            transports: transports.clone(),
            sizes: vec![4, 65536],
            min_time: 0.0,
            repetitions: 2,
            reference: false,
        };
        let report = measure(&plan, String::new(), &|| false).unwrap();
        // Two runs and four aggregates each.
        assert_eq!(report.benchmarks.len(), transports.len() * 2 * 6);
        assert!(report.context.complete);
    }

    #[test]
    fn who_is_stopped_has_the_runs_that_were_done_and_without_any_an_error() {
        let pipe = crate::transport::named("pipe").unwrap();
        let plan =
            Plan { transports: vec![pipe], sizes: vec![4, 8], min_time: 0.0, repetitions: 1_000_000, reference: false };
        let looks = std::cell::Cell::new(0);
        let stop = || {
            looks.set(looks.get() + 1);
            looks.get() > 10
        };
        let report = measure(&plan, String::new(), &stop).unwrap();
        let runs = report.benchmarks.iter().filter(|run| run.run_type == "iteration").count();
        assert!(runs > 1 && runs <= 10, "{runs}");
        assert!(!report.context.complete && report.benchmarks.iter().all(|run| run.run_name.ends_with("/4")));
        assert!(matches!(measure(&plan, String::new(), &|| true), Err(IpcError::Interrupted)));
    }
}
