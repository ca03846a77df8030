//! Results in the format of Google Benchmark: its keys, its order, its console and CSV columns, so that its tools
//! (`compare.py`) read them. Pure but for [`Context::here`].

use super::session::Burst;
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_experiment::Level;
use slowpath_process::cpu_list;
use slowpath_tables::{Quantity, Unit};
use std::fmt::Write;

/// The whole output.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Report {
    /// The machine and the moment.
    pub context: Context,
    /// Runs and, with repetitions, their aggregates.
    pub benchmarks: Vec<Run>,
}

/// Where and when it ran.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Context {
    /// RFC 3339.
    pub date: String,
    /// Of uname(2).
    pub host_name: String,
    /// This program.
    pub executable: String,
    /// CPUs that are online.
    pub num_cpus: usize,
    /// Clock of the first CPU.
    pub mhz_per_cpu: u64,
    /// Whether a frequency governor other than `performance` is in force.
    pub cpu_scaling_enabled: bool,
    /// Caches of the first CPU.
    pub caches: Vec<Cache>,
    /// Load averages of 1, 5 and 15 minutes.
    pub load_avg: Vec<f64>,
    /// `release` or `debug`: how slowpath was built. A program of `debug` measures itself.
    #[schemars(extend("enum" = ["release", "debug"]))]
    pub library_build_type: &'static str,
    /// Whether all runs that were asked for are there. Not a key of Google Benchmark.
    pub complete: bool,
}

/// A cache of the first CPU.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Cache {
    /// `Data`, `Instruction`, `Unified`.
    pub r#type: String,
    /// 1 is nearest.
    pub level: u64,
    /// Bytes.
    pub size: u64,
    /// CPUs that share it.
    pub num_sharing: usize,
}

/// A line of results. Times are of one round trip.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Run {
    /// Name, for an aggregate with its suffix.
    pub name: String,
    /// Number of the transport.
    pub family_index: usize,
    /// Number of the size.
    pub per_family_instance_index: usize,
    /// Name without suffix.
    pub run_name: String,
    /// `iteration` is a run, `aggregate` a statistic of all runs.
    #[schemars(extend("enum" = ["iteration", "aggregate"]))]
    pub run_type: &'static str,
    /// How often the benchmark ran.
    pub repetitions: usize,
    /// Which of them; only of runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repetition_index: Option<usize>,
    /// Calling threads.
    pub threads: usize,
    /// `mean`, `median`, `stddev` (standard deviation) or `cv` (that over the mean) of the runs; only of aggregates.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["mean", "median", "stddev", "cv"]))]
    pub aggregate_name: Option<&'static str>,
    /// `time`, or for a `cv` `percentage`; only of aggregates.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["time", "percentage"]))]
    pub aggregate_unit: Option<&'static str>,
    /// Round trips of a run, or runs of an aggregate.
    pub iterations: u64,
    /// Wall time.
    pub real_time: f64,
    /// CPU time of the calling process.
    pub cpu_time: f64,
    /// Of both.
    pub time_unit: &'static str,
    /// Payload over wall time of one round trip.
    pub bytes_per_second: f64,
    /// Median wall time of a round trip with its interval, over the 20 parts of a run or over the runs of the aggregate `median`.
    /// Not a key of Google Benchmark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_trip: Option<Quantity>,
    /// The figure that the original documentation calls bandwidth: `bytes_per_second` times the iterations; with
    /// `--reference` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference_bytes_per_second: Option<f64>,
}

/// A number of several runs.
type Statistic = fn(&[f64]) -> f64;

/// What a benchmark is called: as in libbinder_benchmark.
pub fn name(transport: &str, size: usize) -> String {
    format!("BM_sendVec_{transport}/{size}")
}

/// The runs of one benchmark and, of several, their aggregates.
pub fn runs(transport: &str, size: usize, place: (usize, usize), bursts: &[Burst], reference: bool) -> Vec<Run> {
    let name = name(transport, size);
    let run = |repetition: usize, burst: &Burst| {
        let bytes_per_second = size as f64 * 1e9 / burst.real_each();
        Run {
            name: name.clone(),
            family_index: place.0,
            per_family_instance_index: place.1,
            run_name: name.clone(),
            run_type: "iteration",
            repetitions: bursts.len(),
            repetition_index: Some(repetition),
            threads: 1,
            aggregate_name: None,
            aggregate_unit: None,
            iterations: burst.iterations,
            real_time: burst.real_each(),
            cpu_time: burst.cpu_each(),
            time_unit: "ns",
            bytes_per_second,
            round_trip: typical(&burst.parts),
            reference_bytes_per_second: reference.then_some(bytes_per_second * burst.iterations as f64),
        }
    };
    let mut runs: Vec<Run> = bursts.iter().enumerate().map(|(index, burst)| run(index, burst)).collect();
    if runs.len() > 1 {
        let aggregates: [(&'static str, &'static str, Statistic); 4] = [
            ("mean", "time", mean),
            ("median", "time", median),
            ("stddev", "time", deviation),
            ("cv", "percentage", |values| deviation(values) / mean(values)),
        ];
        let of = |take: fn(&Run) -> f64| -> Vec<f64> { runs.iter().map(take).collect() };
        let (real, cpu, bytes) = (of(|run| run.real_time), of(|run| run.cpu_time), of(|run| run.bytes_per_second));
        let first = runs[0].clone();
        runs.extend(aggregates.map(|(suffix, unit, of)| Run {
            name: format!("{name}_{suffix}"),
            run_type: "aggregate",
            repetition_index: None,
            aggregate_name: Some(suffix),
            aggregate_unit: Some(unit),
            iterations: bursts.len() as u64,
            real_time: of(&real),
            cpu_time: of(&cpu),
            bytes_per_second: of(&bytes),
            round_trip: if suffix == "median" { typical(&real) } else { None },
            reference_bytes_per_second: None,
            ..first.clone()
        }));
    }
    runs
}

/// The median with its interval.
fn typical(times: &[f64]) -> Option<Quantity> {
    let median = slowpath_experiment::median::median(times, Level::P95)?;
    Some(Quantity { value: median.value, low: median.low, high: median.high, unit: Unit::Ns })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn median(values: &[f64]) -> f64 {
    slowpath_experiment::median::point(values).unwrap_or(f64::NAN)
}

fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)).sqrt()
}

/// The table that Google Benchmark prints.
pub fn console(report: &Report) -> String {
    let width = report.benchmarks.iter().map(|run| run.name.len()).max().unwrap_or(0).max("Benchmark".len());
    let line = "-".repeat(width + 13 + 16 + 13);
    let mut text =
        format!("{line}\n{:<width$} {:>12} {:>15} {:>12}\n{line}\n", "Benchmark", "Time", "CPU", "Iterations");
    for run in &report.benchmarks {
        let time = |value: f64| match run.aggregate_unit {
            Some("percentage") => format!("{:.2} % ", value * 100.0),
            _ => format!("{} ns", three_digits(value)),
        };
        let bytes = match run.aggregate_unit {
            Some("percentage") => format!("bytes_per_second={:.2}%", run.bytes_per_second * 100.0),
            _ => format!("bytes_per_second={}/s", binary(run.bytes_per_second)),
        };
        let (real, cpu) = (time(run.real_time), time(run.cpu_time));
        let _ = write!(text, "{:<width$} {real:>12} {cpu:>15} {:>12} {bytes}", run.name, run.iterations);
        if let Some(Quantity { value, low, high, .. }) = run.round_trip {
            let _ = write!(text, " median={}ns", three_digits(value));
            let ends = low.zip(high).map(|(low, high)| format!("({}..{})", three_digits(low), three_digits(high)));
            text.push_str(&ends.unwrap_or_else(|| "(no interval)".to_owned()));
        }
        if let Some(multiplied) = run.reference_bytes_per_second {
            let _ = write!(text, " reference_bytes_per_second={}/s", binary(multiplied));
        }
        text.push('\n');
    }
    text
}

fn three_digits(value: f64) -> String {
    match value {
        below if below < 9.995 => format!("{value:.2}"),
        below if below < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// With a binary prefix, as the counters of Google Benchmark.
fn binary(value: f64) -> String {
    const PREFIXES: [&str; 6] = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];
    let mut scaled = value;
    let mut prefix = 0;
    while scaled.abs() >= 1024.0 && prefix + 1 < PREFIXES.len() {
        scaled /= 1024.0;
        prefix += 1;
    }
    format!("{scaled:.6}").chars().take(7).collect::<String>().trim_end_matches('.').to_owned() + PREFIXES[prefix]
}

/// The columns that Google Benchmark writes; the median round trip and its interval stand where it has user counters.
pub fn csv(report: &Report) -> String {
    let reference = report.benchmarks.iter().any(|run| run.reference_bytes_per_second.is_some());
    let mut text = "name,iterations,real_time,cpu_time,time_unit,bytes_per_second,items_per_second,label,\
                    error_occurred,error_message,\"round_trip\",\"round_trip_low\",\"round_trip_high\""
        .to_owned();
    text.push_str(if reference { ",\"reference_bytes_per_second\"\n" } else { "\n" });
    for run in &report.benchmarks {
        let Run { name, iterations, real_time, cpu_time, time_unit, bytes_per_second, .. } = run;
        let _ = write!(text, "\"{name}\",{iterations},{real_time},{cpu_time},{time_unit},{bytes_per_second},,,,");
        let round_trip = run.round_trip.as_ref();
        for figure in
            [round_trip.map(|one| one.value), round_trip.and_then(|one| one.low), round_trip.and_then(|one| one.high)]
        {
            let _ = write!(text, ",{}", figure.map(|ns| ns.to_string()).unwrap_or_default());
        }
        if reference {
            text.push(',');
            if let Some(multiplied) = run.reference_bytes_per_second {
                let _ = write!(text, "{multiplied}");
            }
        }
        text.push('\n');
    }
    text
}

impl Context {
    /// Of this machine, at the moment `date`.
    pub fn here(date: String) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let executable = std::env::current_exe().unwrap_or_default().display().to_string();
        let mhz = read("/proc/cpuinfo")
            .lines()
            .find_map(|line| line.strip_prefix("cpu MHz")?.split(':').nth(1)?.trim().parse::<f64>().ok())
            .unwrap_or(0.0);
        let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        let listed = |list: &str| cpu_list(list).map_or(0, |cpus| cpus.len());
        let caches = (0..8).map_while(|index| {
            let of = |what: &str| read(&format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{what}"));
            let size = of("size");
            let level = of("level").parse().ok()?;
            let size = size.strip_suffix('K').and_then(|kib| kib.parse::<u64>().ok())? * 1024;
            Some(Cache { r#type: of("type"), level, size, num_sharing: listed(&of("shared_cpu_list")) })
        });
        Self {
            date,
            host_name: read("/proc/sys/kernel/hostname"),
            executable,
            num_cpus: listed(&read("/sys/devices/system/cpu/online")),
            mhz_per_cpu: mhz.round() as u64,
            cpu_scaling_enabled: !governor.is_empty() && governor != "performance",
            caches: caches.collect(),
            load_avg: read("/proc/loadavg").split(' ').take(3).filter_map(|load| load.parse().ok()).collect(),
            library_build_type: if cfg!(debug_assertions) { "debug" } else { "release" },
            complete: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(bursts: &[Burst], reference: bool) -> Report {
        let context = Context::here("2026-01-01T00:00:00Z".to_owned());
        Report { context, benchmarks: runs("pipe", 1000, (0, 0), bursts, reference) }
    }

    fn burst(real_ns: u64) -> Burst {
        Burst { iterations: 10, real_ns, cpu_ns: 5_000, parts: vec![real_ns as f64 / 10.0; 10] }
    }

    #[test]
    fn bandwidth_is_the_payload_over_the_time_of_one_round_trip() {
        let run = &report(&[burst(20_000)], false).benchmarks[0];
        assert_eq!((run.real_time, run.cpu_time, run.bytes_per_second), (2000.0, 500.0, 5e8));
        assert_eq!(run.reference_bytes_per_second, None);
        // The original multiplies once more by the iterations.
        assert_eq!(report(&[burst(20_000)], true).benchmarks[0].reference_bytes_per_second, Some(5e9));
    }

    #[test]
    fn the_keys_are_those_of_google_benchmark_in_its_order() {
        let text = serde_json::to_string(&report(&[burst(20_000)], false)).unwrap();
        let mut at = 0;
        for key in [
            "context",
            "date",
            "host_name",
            "executable",
            "num_cpus",
            "mhz_per_cpu",
            "cpu_scaling_enabled",
            "caches",
            "load_avg",
            "library_build_type",
            "benchmarks",
            "name",
            "family_index",
            "per_family_instance_index",
            "run_name",
            "run_type",
            "repetitions",
            "repetition_index",
            "threads",
            "iterations",
            "real_time",
            "cpu_time",
            "time_unit",
            "bytes_per_second",
        ] {
            at += text[at..].find(&format!("\"{key}\":")).unwrap_or_else(|| panic!("no {key} behind {}", &text[..at]));
        }
    }

    #[test]
    fn repetitions_have_aggregates_with_their_suffix() {
        let runs = report(&[burst(20_000), burst(40_000), burst(40_000)], false).benchmarks;
        let names: Vec<_> = runs[3..].iter().map(|run| run.name.rsplit('_').next().unwrap()).collect();
        assert_eq!(names, ["mean", "median", "stddev", "cv"]);
        assert_eq!(runs[4].real_time, 4000.0);
        assert!(runs[3..].iter().all(|run| run.iterations == 3 && run.run_name == runs[0].name));
        // Three runs have no interval at 95 %, ten parts of a run have.
        assert!(runs[4].round_trip.is_some_and(|median| median.value == 4000.0 && median.low.is_none()));
        assert!(runs[0].round_trip.is_some_and(|median| median.low == Some(2000.0)));
    }

    #[test]
    fn console_and_csv_have_a_line_a_run() {
        let report = report(&[burst(20_000)], false);
        let console = console(&report);
        assert!(console.lines().nth(3).unwrap().starts_with("BM_sendVec_pipe/1000"), "{console}");
        assert!(console.contains("2000 ns") && console.contains("bytes_per_second=476.837Mi/s"), "{console}");
        assert!(console.contains(" median=2000ns(2000..2000)\n"), "{console}");
        let csv = csv(&report);
        assert_eq!(csv.lines().nth(1), Some("\"BM_sendVec_pipe/1000\",10,2000,500,ns,500000000,,,,,2000,2000,2000"));
    }
}
